"""MinAtar (Young and Tian, 2019): five games of 10 x 10 cells, with a plane for every kind of thing that is seen.

A frame is all planes of an observation, one below the other, uint8 [planes * 10, 10] of 0 and 255; `planes` says how
many there are, and the networks read them as channels. Sticky actions, rising difficulty and the six actions are
MinAtar's own; only the cap of an episode is ours, because a game of Breakout may never end.
"""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spie.errors import unknown
from spie.tasks import vector
from spie.tasks.base import ImageTask
from spie.tasks.registry import PATTERNS, Entry, register_task

PLANES = {"asterix": 4, "breakout": 4, "freeway": 7, "seaquest": 10, "space_invaders": 6}  # by game
N_ACTIONS = 6
SIDE = 10


@dataclass(frozen=True)
class MinAtarTask(ImageTask):
    """A game of MinAtar: "breakout", "freeway", "asterix", "seaquest" or "space_invaders"."""

    game: str
    sticky: float = 0.1
    max_steps: int = 5_000

    def __post_init__(self) -> None:
        if _plain(self.game) not in PLANES:
            raise unknown("game of MinAtar", self.game, PLANES)
        if not isinstance(self.max_steps, int) or self.max_steps < 1 or not 0 <= self.sticky < 1:
            raise ValueError(f"{self.name}: max_steps must be a whole number of 1 or more, sticky lie in [0, 1)")

    @property
    def name(self) -> str:
        return f"minatar/{_plain(self.game)}"

    @property
    def digest(self) -> str:
        what = json.dumps(["minatar", _plain(self.game), self.sticky, self.max_steps])
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    @property
    def frame_skip(self) -> int:
        return 1

    @property
    def planes(self) -> int:
        return PLANES[_plain(self.game)]

    @property
    def shape(self) -> tuple[int, int]:
        return self.planes * SIDE, SIDE

    @property
    def recipe(self) -> tuple[str, dict[str, Any]]:
        return self.name, {"sticky": self.sticky, "max_steps": self.max_steps}

    def make(self, n: int, seed: int | Sequence[int] = 0) -> "MinAtarVectorEnv":
        return MinAtarVectorEnv(self, vector.generators(seed, n))


class MinAtarVectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Copies of a game, each with a generator of its own."""

    def __init__(self, task: MinAtarTask, rngs: list[np.random.Generator]) -> None:
        make = _environment()
        self.task, self.planes, self._rngs = task, task.planes, rngs
        self.num_envs = n = len(rngs)
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED}
        self.single_observation_space = gym.spaces.Box(0, 255, task.shape, np.uint8)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.single_action_space = gym.spaces.Discrete(N_ACTIONS)
        self.action_space = batch_space(self.single_action_space, n)
        self._games = [make(_plain(task.game), sticky_action_prob=task.sticky) for _ in rngs]
        self._steps = np.zeros(n, np.int64)
        self._over = np.ones(n, np.bool_)
        self._seed(np.ones(n, np.bool_))

    def _seed(self, which: NDArray[np.bool_]) -> None:
        for i in np.flatnonzero(which):
            self._games[i].seed(int(self._rngs[i].integers(2**31)))

    def _frames(self) -> NDArray[np.uint8]:
        planes = np.stack([np.moveaxis(np.asarray(game.state(), np.uint8), 2, 0) for game in self._games])
        return (255 * planes).reshape(self.num_envs, *self.task.shape)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        mask = vector.reset_mask(self.num_envs, options)
        self._seed(vector.reseed(self._rngs, seed, mask))
        for i in np.flatnonzero(mask):
            self._games[i].reset()
        self._steps[mask], self._over[mask] = 0, False
        return self._frames(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        a = np.asarray(actions)
        vector.check_step(self.task.name, a, N_ACTIONS, self._over)
        paid = [game.act(int(one)) for game, one in zip(self._games, a, strict=True)]
        self._steps += 1
        terminated = np.array([over for _, over in paid], np.bool_)
        truncated = ~terminated & (self._steps >= self.task.max_steps)
        self._over = terminated | truncated
        return self._frames(), np.array([r for r, _ in paid], np.float64), terminated, truncated, {}

    def get_state(self) -> vector.State:
        """Everything that decides how the episodes go on: of each game its own fields, as text, and the generators."""
        games = {
            f"game{i}": np.frombuffer(json.dumps(_fields(game)).encode(), np.uint8)
            for i, game in enumerate(self._games)
        }
        return games | self._arrays()

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state of `get_state`."""
        vector.check_state(self.task.name, state, self._arrays())
        for i, game in enumerate(self._games):
            try:
                _set_fields(game, json.loads(state[f"game{i}"].tobytes()))
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"{self.task.name}: the saved state of game {i} is missing or damaged") from error
        vector.load_generators(self._rngs, state["random"])
        self._steps, self._over = state["steps"].copy(), state["over"].copy()

    def _arrays(self) -> vector.State:
        return {
            "random": vector.save_generators(self._rngs),
            "steps": self._steps.copy(),
            "over": self._over.copy(),
        }


def _fields(game: Any) -> dict[str, Any]:
    """All of a game that changes, in plain values: the action that sticks, its generator, its own fields."""
    kind, key, position, has_gauss, gauss = game.random.get_state()
    own = {name: value for name, value in vars(game.env).items() if name not in ("channels", "action_map", "random")}
    return {
        "last action": int(game.last_action),
        "random": [kind, key.tolist(), int(position), int(has_gauss), float(gauss)],
        "arrays": {name: [str(x.dtype), x.tolist()] for name, x in own.items() if isinstance(x, np.ndarray)},
        "values": {name: _plain_value(x) for name, x in own.items() if not isinstance(x, np.ndarray)},
    }


def _set_fields(game: Any, fields: Mapping[str, Any]) -> None:
    """The inverse of `_fields`."""
    kind, key, *rest = fields["random"]
    game.random.set_state((kind, np.array(key, np.uint32), *rest))
    game.env.random = game.random
    game.last_action = fields["last action"]
    known = set(vars(game.env)) - {"channels", "action_map", "random"}
    if known != {*fields["arrays"], *fields["values"]}:
        raise ValueError("fields of another game")
    for name, (dtype, values) in fields["arrays"].items():
        setattr(game.env, name, np.array(values, dtype))
    for name, value in fields["values"].items():
        setattr(game.env, name, value)


def _plain_value(value: Any) -> Any:
    """Numbers of NumPy as Python's; lists of things one by one."""
    if isinstance(value, list | tuple):
        return [_plain_value(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def _environment() -> Any:
    try:
        from minatar import Environment
    except ImportError as error:
        raise ImportError('MinAtar games need minatar: pip install "spie-rl[minatar]"') from error
    return Environment


def _plain(game: str) -> str:
    return game.removeprefix("minatar/").replace("-", "_").lower()


def _entry(name: str) -> Entry | None:
    """minatar/GAME, however it is spelled; a wrong one is refused by the task itself."""
    return Entry(name, "images", functools.partial(MinAtarTask, name)) if name.startswith("minatar/") else None


for _game in PLANES:
    register_task(f"minatar/{_game}", "images")(functools.partial(MinAtarTask, _game))
PATTERNS["images"].append(_entry)
