"""The planner as a learner of a bonus: it watches an agent's steps and pays each by how good it was."""

from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.agents.planner.teacher import Teacher
from spie.agents.registry import agent
from spie.rewards import Reward

Array = NDArray[Any]
NAMES = ("teacher", "spie")  # of the reward; on tables they are the same
TEACHER = Reward("teacher", lambda advantage: advantage, ("advantage",))


class TeacherLearner:
    """A planner with the settings of `spie.agent("spie")` that learns from an agent's steps, rewards included.

    It pays the bounded advantage of the step under its own values: 0 for what it would have done itself, down to -2.
    """

    name: ClassVar[str] = "Teacher"
    growing: ClassVar[tuple[str, ...]] = ("model.next_", "model.outcome_")

    def __init__(self, space: gym.spaces.Discrete, n_actions: int) -> None:
        self.n_states, self.first = int(space.n), int(space.start)
        self.teacher = Teacher(self.n_states, n_actions, agent("spie"))
        self.visits = np.zeros(self.n_states, np.int64)

    @property
    def coverage(self) -> float:
        return float((self.visits > 0).mean())

    def encode(self, observation: Any) -> int:
        return int(observation) - self.first

    def encode_all(self, observations: Any, n: int) -> list[int]:
        states: list[int] = (np.asarray(observations).reshape(n) - self.first).tolist()
        return states

    def begin(self, s: int) -> None:
        self.visits[s] += 1

    def step(self, s: int, a: int, s_next: int, discount: float, r: float = 0.0) -> list[float]:
        self.visits[s_next] += 1
        return [self.teacher.step(s, a, r, s_next, discount)]

    def learn(self, steps: Sequence[tuple[int, int, int, float, float]]) -> None:
        for step in sorted(steps):
            self.step(*step)

    def query(self, s: int, a: int, s_next: int) -> list[float]:
        return [self.teacher.query(s, a)]

    query_learned = query

    def query_all(self, observations: Any, a: Sequence[int], next_observations: Any) -> list[list[float]]:
        return [self.query(s, action, s) for s, action in zip(self.encode_all(observations, len(a)), a, strict=True)]

    def pack(self, states: Sequence[int | None]) -> dict[str, Array]:
        return {"s": np.array([-1 if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[int | None]:
        return [None if s < 0 else s for s in arrays["s"].tolist()]

    def state(self) -> dict[str, Array]:
        return {"visits": self.visits, **self.teacher.state()}

    def load(self, arrays: dict[str, Array]) -> None:
        self.visits[:] = arrays["visits"]
        self.teacher.load(arrays)
