"""Bonuses that know the episode: what starts over at every reset, how far a state is from those of this episode, and
the product of a bonus over all time and one of the episode.

Each copy of an environment has a learner of its own here, because each is in an episode of its own.
"""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spie.dropin.learners import BonusLearner, Rates, TableLearner
from spie.dropin.spaces import Numbering
from spie.rewards import Reward

Array = NDArray[Any]
FACTORS = ("e3b", "count")  # by which another bonus may be multiplied: never negative
NO_RESET = 100_000  # steps of a copy without one, after which it is worth a word


class Episodic:
    """Any learner, for one copy of an environment, which forgets everything when an episode begins."""

    def __init__(self, inner: BonusLearner[Any]) -> None:
        self.inner = inner
        self.name, self.growing = inner.name, inner.growing
        self.encode, self.encode_all = inner.encode, inner.encode_all
        self.pack, self.unpack = inner.pack, inner.unpack
        self.query, self.query_all = inner.query, inner.query_all
        self.state, self.load = inner.state, inner.load
        self.since_reset = 0

    @property
    def coverage(self) -> float:
        """Of this episode."""
        return self.inner.coverage

    def forget(self) -> None:
        self.inner.forget()

    def begin(self, s: Any) -> None:
        self.inner.forget()
        self.inner.begin(s)
        self.since_reset = 0

    def step(self, s: Any, a: int, s_next: Any, discount: float, r: float = 0.0) -> list[float]:
        self.since_reset += 1
        if self.since_reset == NO_RESET:
            warnings.warn(
                f"an episodic bonus saw no reset for {NO_RESET:,} steps, so that nothing starts over; end episodes "
                "with gymnasium.wrappers.TimeLimit, or leave out episodic=True",
                stacklevel=2,
            )
        return self.inner.step(s, a, s_next, discount, r)

    def learn(self, steps: Sequence[tuple[Any, int, Any, float, float]]) -> None:
        for step in steps:
            self.step(*step)

    def query_learned(self, s: Any, a: int, s_next: Any, discount: float = 1.0) -> list[float]:
        """Of a step that the others learned from together: this copy learns from it by itself."""
        return self.step(s, a, s_next, discount)


class DistanceLearner(TableLearner):
    """For the reward "etd": F of all copies of an environment, and the states that this one left in its episode.

    F starts as the identity, which it is for states that nothing is known of: a state is at no distance from itself.
    """

    growing: ClassVar[tuple[str, ...]] = ("left",)

    def __init__(
        self, states: Numbering, rates: Rates, shared: "DistanceLearner | None" = None, copies: int = 1
    ) -> None:
        """shared: the learner of the first copy, whose F this one takes part in."""
        super().__init__(states, ("F_row",) if shared is None else (), rates, copies)
        self.shared = shared
        if shared is None:
            np.fill_diagonal(self.F, 1.0)
        else:
            self.F, self.visits = shared.F, shared.visits
            self.F_row = shared.F_row
            self.has_F = True
        self.left: dict[int, None] = {}  # in this order

    def forget(self) -> None:
        super().forget()
        np.fill_diagonal(self.F, 1.0)
        self.left.clear()

    def begin(self, s: int) -> None:
        super().begin(s)
        self.left.clear()

    def step(self, s: int, a: int, s_next: int, discount: float, r: float = 0.0) -> list[float]:
        super().step(s, a, s_next, discount, r)
        return self.query_learned(s, a, s_next, discount)

    def learn(self, steps: Sequence[tuple[int, int, int, float, float]]) -> None:
        for step in sorted(steps):
            super().step(*step)

    def query_learned(self, s: int, a: int, s_next: int, discount: float = 1.0) -> list[float]:
        self.left[s] = None
        return self.query(s, a, s_next)

    def query(self, s: int, a: int, s_next: int, discount: float = 1.0) -> list[float]:
        return [float(self.F[[s, *self.left], s_next].max())]

    def state(self) -> dict[str, Array]:
        own = {"left": np.array(list(self.left), np.int64)}
        return own if self.shared is not None else own | {"F": self.F, "F_row": self.F_row, "visits": self.visits}

    def load(self, arrays: dict[str, Array]) -> None:
        self.left = dict.fromkeys(arrays["left"].tolist())
        if self.shared is None:
            self.F[:], self.F_row[:], self.visits[:] = (arrays[name] for name in ("F", "F_row", "visits"))


class Product:
    """A bonus over all time, and one of the episode: the quantities of both, in this order."""

    def __init__(self, lasting: BonusLearner[Any], of_episode: Episodic) -> None:
        self.lasting, self.of_episode = lasting, of_episode
        self.name = f"{lasting.name} x {of_episode.name}"
        self.growing = (*lasting.growing, *(f"factor.{name}" for name in of_episode.growing))

    @property
    def coverage(self) -> float:
        return self.lasting.coverage

    def encode(self, observation: Any) -> tuple[Any, Any]:
        return self.lasting.encode(observation), self.of_episode.encode(observation)

    def encode_all(self, observations: Any, n: int) -> list[tuple[Any, Any]]:
        both = self.lasting.encode_all(observations, n), self.of_episode.encode_all(observations, n)
        return list(zip(*both, strict=True))

    def forget(self) -> None:
        self.lasting.forget()
        self.of_episode.forget()

    def begin(self, s: tuple[Any, Any]) -> None:
        self.lasting.begin(s[0])
        self.of_episode.begin(s[1])

    def step(self, s: Any, a: int, s_next: Any, discount: float, r: float = 0.0) -> list[float]:
        return [
            *self.lasting.step(s[0], a, s_next[0], discount, r),
            *self.of_episode.step(s[1], a, s_next[1], discount, r),
        ]

    def learn(self, steps: Sequence[tuple[Any, int, Any, float, float]]) -> None:
        """What all copies share; each learns its own episode in `query_learned`."""
        self.lasting.learn([(s[0], a, s_next[0], discount, r) for s, a, s_next, discount, r in steps])

    def query_learned(self, s: Any, a: int, s_next: Any, discount: float = 1.0) -> list[float]:
        return [
            *self.lasting.query_learned(s[0], a, s_next[0], discount),
            *self.of_episode.query_learned(s[1], a, s_next[1], discount),
        ]

    def query(self, s: Any, a: int, s_next: Any, discount: float = 1.0) -> list[float]:
        return [
            *self.lasting.query(s[0], a, s_next[0], discount),
            *self.of_episode.query(s[1], a, s_next[1], discount),
        ]

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        steps = observations, a, next_observations, discounts
        both = self.lasting.query_all(*steps), self.of_episode.query_all(*steps)
        return [[*one, *other] for one, other in zip(*both, strict=True)]

    def pack(self, states: Sequence[tuple[Any, Any] | None]) -> dict[str, Array]:
        lasting, of_episode = ([None if s is None else s[k] for s in states] for k in range(2))
        factor = {f"factor.{name}": array for name, array in self.of_episode.pack(of_episode).items()}
        return self.lasting.pack(lasting) | factor

    def unpack(self, arrays: dict[str, Array]) -> list[tuple[Any, Any] | None]:
        both = zip(self.lasting.unpack(arrays), self.of_episode.unpack(_of_factor(arrays)), strict=True)
        return [None if s[0] is None else s for s in both]

    def state(self) -> dict[str, Array]:
        return self.lasting.state() | {f"factor.{name}": array for name, array in self.of_episode.state().items()}

    def load(self, arrays: dict[str, Array]) -> None:
        self.lasting.load(arrays)
        self.of_episode.load(_of_factor(arrays))


def _of_factor(arrays: dict[str, Array]) -> dict[str, Array]:
    return {name.removeprefix("factor."): array for name, array in arrays.items() if name.startswith("factor.")}


def product(one: Reward, other: Reward) -> Reward:
    """The reward that pays what both would, multiplied."""
    n = len(one.needs)

    def function(*values: float) -> Any:
        return one.function(*values[:n]) * other.function(*values[n:])

    return Reward(f"{one.name} x {other.name}", function, (*one.needs, *other.needs))
