"""The planner as a learner of a bonus: it watches an agent's steps and pays each by how good it was."""

from collections.abc import Sequence
from typing import Any, ClassVar

from numpy.typing import NDArray

from spie.agents.planner.teacher import Teacher
from spie.agents.registry import agent
from spie.dropin.learners import CountedStates
from spie.dropin.spaces import Numbering
from spie.rewards import Reward

Array = NDArray[Any]
NAMES = ("teacher", "spie")  # of the reward; on tables they are the same
TEACHER = Reward("teacher", lambda advantage: advantage, ("advantage",))


class TeacherLearner(CountedStates):
    """A planner with the settings of `spie.agent("spie")` that learns from an agent's steps, rewards included.

    It pays the bounded advantage of the step under its own values: 0 for what it would have done itself, down to -2.
    """

    name: ClassVar[str] = "Teacher"
    growing: ClassVar[tuple[str, ...]] = ("model.next_", "model.outcome_")

    def __init__(self, states: Numbering, n_actions: int) -> None:
        super().__init__(states)
        self.n_actions = n_actions
        self.teacher = Teacher(self.n_states, n_actions, agent("spie"))

    def forget(self) -> None:
        self.visits[:] = 0
        self.teacher = Teacher(self.n_states, self.n_actions, agent("spie"))

    def step(self, s: int, a: int, s_next: int, discount: float, r: float = 0.0) -> list[float]:
        self.visits[s_next] += 1
        return [self.teacher.step(s, a, r, s_next, discount)]

    def query(self, s: int, a: int, s_next: int, discount: float = 1.0) -> list[float]:
        return [self.teacher.query(s, a)]

    query_learned = query

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        return [self.query(s, action, s) for s, action in zip(self.encode_all(observations, len(a)), a, strict=True)]

    def state(self) -> dict[str, Array]:
        return {"visits": self.visits, **self.teacher.state()}

    def load(self, arrays: dict[str, Array]) -> None:
        self.visits[:] = arrays["visits"]
        self.teacher.load(arrays)
