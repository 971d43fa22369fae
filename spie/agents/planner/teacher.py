"""The planner beside somebody else's agent: it learns from the steps that the other takes, and says how good each was.

    advantage = max(-2, (Q+[s, a] - V[s]) / spread),   spread = V[s] - min Q+[s, a'] over a' not known to end an episode

So the best action pays 0, the worst that goes on -1, and what ends an episode in vain at most -2, whatever the task's
rewards are.
"""

from typing import Any, no_type_check

import numpy as np
from numpy.typing import NDArray

from spie.agents.planner.batch import COSTS, OF_OUTCOMES, compiled, lane_numbers, new_model
from spie.agents.planner.kernel import AGENT, LANE, back_up, forget, learn
from spie.agents.planner.settings import Planner
from spie.engine.simulator import action_sets

ACTIONS = 1
LEAST_SPREAD = 0.01  # of |V[s]|
WORST = -2.0
POOL = 256  # outcomes to begin with; doubled when they are used up


@no_type_check
def teach(lanes, s, a, r, s_next, discount, learned, model):
    """How good a step from s by a is, by what was known before it; then, where that is asked for, learn from it.

    So a first try pays 0, as it should: the planner itself would have tried it.
    """
    lane = lanes[0]
    if lane.weight == 0.0:  # its first step
        forget(lane, model)
    pay = 0.0
    if model.left[s] > 0:
        back_up(lane, s, model)
        pay = advantage(lane, s, a, model)
    if learned and not learn(lane, s, a, r, s_next, discount, model):
        return np.nan
    return pay


@no_type_check
def advantage(lane, s, a, model):
    """Between -2 and 0; 0 where nothing is known."""
    if model.left[s] == 0:
        return 0.0
    V = model.V[s]
    least = V
    for b in range(ACTIONS):
        if not may_end(s * ACTIONS + b, model):
            least = min(least, model.Q[s * ACTIONS + b])
    spread = max(V - least, LEAST_SPREAD * abs(V))
    if spread <= 0.0:
        return 0.0
    return max(WORST, (model.Q[s * ACTIONS + a] - V) / spread)


@no_type_check
def may_end(pair, model):
    """Whether an episode was seen to end after a pair."""
    i = model.first_outcome[pair]
    while i >= 0:
        if model.ends[model.outcome_state[i]]:
            return True
        i = model.next_outcome[i]
    return False


class Teacher:
    """A planner that is shown steps between states 0 ... S-1 by actions 0 ... A-1."""

    def __init__(self, n_states: int, n_actions: int, settings: Planner) -> None:
        if n_actions > 64:
            raise ValueError(f"the teacher takes at most 64 actions, not {n_actions}")
        everything = action_sets(np.ones((n_states, n_actions), np.bool_))
        self.model = new_model(everything, n_actions, POOL, COSTS[settings.cost])
        self.lanes: NDArray[Any] = np.zeros(1, LANE)
        lane_numbers(self.lanes, settings)
        helpers = (*AGENT, may_end, advantage)
        self._teach = compiled(teach, helpers, n_actions, LEAST_SPREAD=LEAST_SPREAD, WORST=WORST)

    def step(self, s: int, a: int, r: float, s_next: int, discount: float) -> float:
        """Learn from a step; then how good it was."""
        if self.lanes["outcomes"][0] == len(self.model.outcome_pair):
            self.grow(2 * len(self.model.outcome_pair))
        return float(self._teach(self.lanes, s, a, r, s_next, discount, True, self.model))

    def query(self, s: int, a: int) -> float:
        """How good an action in s is, without learning."""
        return float(self._teach(self.lanes, s, a, 0.0, s, 1.0, False, self.model))

    def grow(self, n: int) -> None:
        """Room for n outcomes."""
        grown = {}
        for name in OF_OUTCOMES:
            array = getattr(self.model, name)
            grown[name] = np.zeros(n, array.dtype)
            grown[name][: len(array)] = array[:n]
        self.model = self.model._replace(**grown)

    def state(self) -> dict[str, NDArray[Any]]:
        """All that it has learned: the arrays themselves, not copies."""
        numbers = self.lanes.view(np.uint8)
        return {**{f"model.{k}": v for k, v in self.model._asdict().items() if k != "available"}, "lane": numbers}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.grow(len(arrays["model.outcome_pair"]))
        for name, own in self.model._asdict().items():
            if name != "available":
                own[:] = arrays[f"model.{name}"]
        self.lanes.view(np.uint8)[:] = arrays["lane"]
