"""What vectorised environments share: a random generator per environment, and which environments to reset.

A finished environment waits for `reset(options={"reset_mask": mask})` (Gymnasium's AutoresetMode.DISABLED), so that no
step of an agent is spent on a reset. Generators are saved as arrays, without pickle.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

State = dict[str, NDArray[Any]]
_WORD = 2**64 - 1


def generators(seed: int | Sequence[int], n: int) -> list[np.random.Generator]:
    """Generators of n environments: all from one seed, or one seed each. The first n - 1 of n are those of n - 1."""
    if n < 1:
        raise ValueError(f"an environment needs n = 1 or more copies, not {n}")
    if isinstance(seed, int):
        words = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    elif len(seed) == n:
        words = np.array([np.random.SeedSequence(one).generate_state(1, np.uint64)[0] for one in seed])
    else:
        raise ValueError(f"{len(seed)} seeds for {n} environments; give one each, or a single number for all")
    return [np.random.default_rng(int(word)) for word in words]


def save_generators(rngs: Sequence[np.random.Generator]) -> NDArray[np.uint64]:
    """State of PCG64 generators, [n, 6]: two words of state, two of increment, and half a word kept for later."""
    rows = []
    for rng in rngs:
        state: Any = rng.bit_generator.state
        halves = [half for word in state["state"].values() for half in (word >> 64, word & _WORD)]
        rows.append([*halves, state["has_uint32"], state["uinteger"]])
    return np.array(rows, np.uint64)


def load_generators(rngs: Sequence[np.random.Generator], words: NDArray[np.uint64]) -> None:
    """Set the generators to what `save_generators` returned."""
    for rng, row in zip(rngs, words.tolist(), strict=True):
        rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": row[0] << 64 | row[1], "inc": row[2] << 64 | row[3]},
            "has_uint32": row[4],
            "uinteger": row[5],
        }


def reset_mask(n: int, options: Mapping[str, Any] | None) -> NDArray[np.bool_]:
    """The environments [n] that a reset is meant for: those of options["reset_mask"], else all."""
    mask = np.asarray((options or {}).get("reset_mask", np.ones(n, np.bool_)))
    if mask.shape != (n,) or mask.dtype != np.bool_ or not mask.any():
        raise ValueError(f"reset_mask must be {n} booleans, at least one of them true, not {mask!r}")
    return mask


def reseed(
    rngs: list[np.random.Generator], seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Seed the generators that a reset is meant for as Gymnasium does: seed + i, or seed[i]. Returns which were."""
    n = len(rngs)
    seeds = [None] * n if seed is None else [seed + i for i in range(n)] if isinstance(seed, int) else list(seed)
    if len(seeds) != n:
        raise ValueError(f"{len(seeds)} seeds for {n} environments; give one each, or a single number for all")
    given = np.array([one is not None for one in seeds]) & mask
    for i in np.flatnonzero(given).tolist():
        rngs[i] = np.random.default_rng(seeds[i])
    return given


def check_step(name: str, actions: NDArray[np.int64], n_actions: int, over: NDArray[np.bool_]) -> None:
    """Refuse actions that do not fit, and steps of an environment whose episode is over."""
    if actions.shape != over.shape or actions.min() < 0 or actions.max() >= n_actions:
        raise ValueError(f"{name}: {len(over)} actions of 0..{n_actions - 1} are needed, not {actions.tolist()}")
    if over.any():
        raise ValueError(f"{name}: no episode is under way in environment {over.argmax()}; reset it first")


def check_state(name: str, state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a saved state that is not of this environment."""
    for key, array in expected.items():
        if key not in state or state[key].shape != array.shape or state[key].dtype != array.dtype:
            raise ValueError(f"{name}: the saved state has no {key} {list(array.shape)} of {array.dtype}; other run?")


class CannotGoOnError(ValueError):
    """A saved episode cannot be brought back; the message says why. All else of the run can."""


def true_states(env: Any) -> int:
    """How many true states an environment tells of, in info["state"]; 0: it tells none."""
    return int(getattr(env, "n_states", 0))


def can_be_saved(env: Any) -> bool:
    """Whether an environment has `get_state` and `set_state`, as those of spie have."""
    return hasattr(env, "get_state") and hasattr(env, "set_state")


def planes(env: Any) -> int:
    """How many planes its frames are made of, one below the other; 1: they are plain images."""
    return int(getattr(env, "planes", 1))
