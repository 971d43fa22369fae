"""Novelty as a bonus: how new the state entered is, and with "sp-novelty" also what can be reached from it.

    payment   b = (e(s') - mean) / deviation - offset          e of spie/novelty.py, mean and deviation of all so far
    bonus     beta b                                           "novelty"
              beta b + gamma U(s') - U(s)                      "sp-novelty": U the value of r + beta b, 0 after an end

The second is shaped by a potential, which changes no optimal policy of r + beta b: what is new or pays is felt at once
by every state that is known to lead there. "e3b" pays e^2 / ridge, before the visit counts, as it is.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spie.dropin.observations import Reader
from spie.dropin.spaces import Numbering
from spie.novelty import CountedNovelty, SuccessorNovelty
from spie.rewards import Reward

Array = NDArray[Any]
Vector = NDArray[np.float64]
NOVELTIES = {name: Reward(name, lambda novelty: novelty, ("novelty",)) for name in ("novelty", "sp-novelty")}
E3B = Reward("e3b", lambda ellipse: ellipse, ("ellipse",))
GAMMA = 0.99  # of an agent that does not say
FEATURES = 256  # of an observation that cannot be counted


class _Novelty:
    """What novelty of states and of features share: how e was spread so far, what is paid for it, and the potential.

    seen: what novelty is of; it gives e and U of what `encode` returns.
    """

    name: ClassVar[str] = "Novelty"
    growing: ClassVar[tuple[str, ...]] = ("moves",)
    # A cost of one deviation makes what was never tried look good, and early ends as well: on FrozenLake an agent that
    # learns slowly then never reaches the goal (docs/exploration.md has the trial, which is small).
    offset: ClassVar[float]
    ridge: ClassVar[float] = 1.0

    def __init__(self, seen: Any, looks_ahead: bool, gamma: float | None, beta: Callable[[], float]) -> None:
        self.seen = seen
        self.looks_ahead, self.gamma, self.beta = looks_ahead, GAMMA if gamma is None else gamma, beta
        self.n, self.mean, self.squares = 0, 0.0, 0.0  # of e over all steps: how many, mean, squared deviations

    def encode_all(self, observations: Any, n: int) -> list[Any]:
        raise NotImplementedError

    def place(self, s: Any) -> float:
        """A number by which states can be put in order."""
        raise NotImplementedError

    def begin(self, s: Any) -> None:
        self.seen.novelty_and_see(s)

    def forget(self) -> None:
        """What was seen; how e was spread stays, for that is the scale of the pay."""
        self.seen.forget()

    def step(self, s: Any, a: int, s_next: Any, discount: float, r: float = 0.0) -> list[float]:
        before = self.seen.novelty_and_see(s_next)
        e = before / math.sqrt(1 + before * before / self.seen.ridge)  # with this visit
        self.n += 1
        from_mean = e - self.mean
        self.mean += from_mean / self.n
        self.squares += from_mean * (e - self.mean)
        b = self._payment(e)
        if self.looks_ahead:
            self.seen.step(s, s_next, (r, b), discount)
        return [b + self._ahead(s, s_next, discount)]

    def learn(self, steps: Sequence[tuple[Any, int, Any, float, float]]) -> None:
        for step in sorted(steps, key=lambda step: (self.place(step[0]), step[1], self.place(step[2]))):
            self.step(*step)

    def _payment(self, e: Any) -> Any:
        deviation = math.sqrt(self.squares / self.n) if self.n else 0.0
        return (e - self.mean) / deviation - self.offset if deviation > 1e-9 else 0.0 * e - self.offset

    def _ahead(self, s: Any, s_next: Any, discount: Any) -> Any:
        """gamma U(s') - U(s), in units of beta: of what the environment paid, and of novelty."""
        if not self.looks_ahead or not (beta := self.beta()):
            return 0.0
        rise = self.gamma * (np.asarray(discount)[..., None] * self.seen.potential(s_next)) - self.seen.potential(s)
        ahead = rise[..., 0] / beta + rise[..., 1]
        return float(ahead) if ahead.ndim == 0 else ahead

    def query(self, s: Any, a: int, s_next: Any, discount: float = 1.0) -> list[float]:
        return [float(self._payment(self.seen.novelty(s_next))) + self._ahead(s, s_next, discount)]

    query_learned = query

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        n = len(a)
        s, s_next = (np.array(self.encode_all(some, n)) for some in (observations, next_observations))
        ahead = self._ahead(s, s_next, np.ones(n) if discounts is None else discounts)
        values: list[float] = (self._payment(self.seen.novelty(s_next)) + ahead).tolist()
        return [[value] for value in values]

    def state(self) -> dict[str, Array]:
        arrays: dict[str, Array] = self.seen.state()
        return arrays | {"spread": np.array([self.n, self.mean, self.squares])}

    def load(self, arrays: dict[str, Array]) -> None:
        self.seen.load(arrays)
        self.n, self.mean, self.squares = int(arrays["spread"][0]), *map(float, arrays["spread"][1:])


class NoveltyOfStates(_Novelty):
    """Of states that can be counted: a state's own visits make it old."""

    offset = 0.0

    def __init__(self, states: Numbering, *how: Any) -> None:
        super().__init__(CountedNovelty(states.n, self.ridge, streams=2), *how)
        _, self.encode, self._encode_all = states

    @property
    def coverage(self) -> float:
        return float((self.seen.visits > 0).mean())

    def encode_all(self, observations: Any, n: int) -> list[int]:
        return self._encode_all(observations, n)

    def place(self, s: int) -> float:
        return s

    def pack(self, states: Sequence[int | None]) -> dict[str, Array]:
        return {"s": np.array([-1 if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[int | None]:
        return [None if s < 0 else s for s in arrays["s"].tolist()]


class NoveltyOfFeatures(_Novelty):
    """Of all else: what has features like those seen is old."""

    offset = 1.0
    coverage = math.nan

    def __init__(self, reader: Reader, *how: Any) -> None:
        super().__init__(SuccessorNovelty(reader.dimension, self.ridge, streams=2), *how)
        self.reader = reader
        self.line = np.random.default_rng(0).normal(size=reader.dimension)

    def encode(self, observation: Any) -> Vector:
        return self.reader.read(observation)

    def encode_all(self, observations: Any, n: int) -> list[Vector]:
        return list(self.reader.read_all(observations, n))

    def place(self, s: Vector) -> float:
        return float(self.line @ s)

    def pack(self, states: Sequence[Vector | None]) -> dict[str, Array]:
        nowhere = np.zeros(len(self.line))  # a phi of 0, which no observation has
        return {"s": np.array([nowhere if phi is None else phi for phi in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[Vector | None]:
        return [phi if phi.any() else None for phi in arrays["s"]]

    def state(self) -> dict[str, Array]:
        return super().state() | self.reader.state()

    def load(self, arrays: dict[str, Array]) -> None:
        super().load(arrays)
        self.reader.load(arrays)


class _Ellipse(_Novelty):
    """phi(s')^T C^-1 phi(s'), C = ridge I + sum of phi phi^T over the frames before (E3B, Henaff et al. 2022)."""

    name: ClassVar[str] = "Ellipse"
    ridge: ClassVar[float] = 0.1  # theirs

    def __init__(self, what: Any) -> None:
        super().__init__(what, False, None, lambda: 1.0)

    def step(self, s: Any, a: int, s_next: Any, discount: float, r: float = 0.0) -> list[float]:
        return [self.seen.novelty_and_see(s_next) ** 2 / self.ridge]

    def query(self, s: Any, a: int, s_next: Any, discount: float = 1.0) -> list[float]:
        return [float(self.seen.novelty(s_next)) ** 2 / self.ridge]

    query_learned = query

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        s_next = np.array(self.encode_all(next_observations, len(a)))
        values: list[list[float]] = (self.seen.novelty(s_next) ** 2 / self.ridge)[:, None].tolist()
        return values


class EllipseOfStates(_Ellipse, NoveltyOfStates):
    """Of states that can be counted, 1 / (ridge + n) after n visits."""


class EllipseOfFeatures(_Ellipse, NoveltyOfFeatures):
    """Of all else."""
