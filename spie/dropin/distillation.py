"""Random network distillation as the learner of a bonus."""

import functools
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.observations import reader
from spie.dropin.spaces import singles

Array = NDArray[Any]


class DistillationLearner:
    """Random network distillation: how badly a network predicts another, fixed one, of the state entered.

    States that can be counted are seen one-hot, images in grey, numbers as they are, all else by features.
    """

    name: ClassVar[str] = "Distillation"
    growing: ClassVar[tuple[str, ...]] = ("rnd.optimiser",)
    coverage = math.nan

    def __init__(self, env: str, space: gym.Space[Any], features: Callable[[Any], Any] | None) -> None:
        self.space, self.features = space, features
        if features is None and not isinstance(space, gym.spaces.Discrete | gym.spaces.Box):
            self.features = reader(env, space, None).read
        self.shape = self.encode(space.sample()).shape
        self.rnd, self.on_one_thread = _networks(self.shape)

    def encode(self, observation: Any) -> Array:
        if self.features is not None:
            return np.asarray(self.features(observation), np.float32).reshape(-1)
        if isinstance(self.space, gym.spaces.Discrete):
            one_hot: Array = np.zeros(int(self.space.n), np.float32)
            one_hot[int(observation) - int(self.space.start)] = 1
            return one_hot
        image = np.asarray(observation, np.float32)
        if image.ndim == 3:
            return np.asarray(image.mean(axis=0 if image.shape[0] < image.shape[2] else 2))
        is_grey = image.ndim == 2 and self.space.dtype == np.uint8
        return np.asarray(image if is_grey else image.reshape(-1))

    def encode_all(self, observations: Any, n: int) -> list[Array]:
        return [self.encode(observation) for observation in singles(observations, n)]

    def begin(self, s: Array) -> None:
        """Nothing: a first state is not entered by a step."""

    def forget(self) -> None:
        self.rnd, _ = _networks(self.shape)

    def step(self, s: Array, a: int, s_next: Array, discount: float, r: float = 0.0) -> list[float]:
        self.learn([(s, a, s_next, discount, r)])
        return self.query(s, a, s_next)

    def learn(self, steps: Sequence[tuple[Array, int, Array, float, float]]) -> None:
        with self.on_one_thread():
            self.rnd.learn(np.stack([s_next for _, _, s_next, _, _ in steps])[None])

    def query(self, s: Array, a: int, s_next: Array, discount: float = 1.0) -> list[float]:
        with self.on_one_thread():
            return [float(self.rnd.compute(s_next[None, None])[0, 0])]

    query_learned = query

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        with self.on_one_thread():
            errors = self.rnd.compute(np.stack(self.encode_all(next_observations, len(a)))[None])[0]
        return [[error] for error in errors.tolist()]

    def pack(self, states: Sequence[Array | None]) -> dict[str, Array]:
        nowhere = np.full(self.shape, np.nan, np.float32)
        return {"s": np.stack([nowhere if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[Array | None]:
        return [None if np.isnan(s).any() else s for s in arrays["s"]]

    def state(self) -> dict[str, Array]:
        return {f"rnd.{name}": tensor.detach().numpy() for name, tensor in self.rnd.state().items()}

    def load(self, arrays: dict[str, Array]) -> None:
        own = {name.removeprefix("rnd."): array for name, array in arrays.items() if name.startswith("rnd.")}
        self.rnd, _ = _networks(self.shape)
        self.rnd.load(own)


def require_torch() -> None:
    """Say what is to be installed where "rnd" cannot run."""
    try:
        import spie.agents.dqn.bonuses  # noqa: F401
    except ImportError as error:
        raise ImportError('the reward "rnd" needs torch: pip install "spie-rl[deep]"') from error


def _networks(shape: tuple[int, ...]) -> tuple[Any, Callable[[], AbstractContextManager[None]]]:
    """The two networks of random network distillation, with `compute`, `learn`, `state` and `load`.

    And what runs them on one thread: so small are they that a second one, woken on a busy machine, costs far more.
    """
    require_torch()
    from spie.agents.dqn import bonuses, hardware, networks

    return bonuses.RND(shape, networks.architecture("small")), functools.partial(hardware.on_threads, 1)
