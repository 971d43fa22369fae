"""Settings of the planner, and the names of its variants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spie.agents.base import Agent, Keep, Range, Replay, Seeds, Session, check_ranges
from spie.errors import unknown
from spie.tasks.mdp import MDP
from spie.trace import Trace

COSTS = ("none", "sr-column", "pr-column", "count")


@dataclass(frozen=True, kw_only=True)
class Planner(Agent):
    """Settings of a planner: it learns a model, hopes for what it has not seen, and plans by a few backups a step.

        Q+[s, a] = x top + (1 - x) mean over the outcomes seen of (r + gamma V[s']),   V[s] = max Q+[s, :]

    x = theta / (theta + n) is the chance that try n + 1 has an outcome not seen yet; theta is learned from the tries so
    far, so that hope vanishes at once in a deterministic world and lasts in a random one. `top` is what such an
    outcome is worth: (optimism r_best + curiosity R) / (1 - gamma), with the largest averages of r (at least 0) and
    of |r| over 1 / (1 - gamma) steps so far. So nothing depends on the scale of the rewards.
    """

    gamma: float = 0.99
    backups: int = 10  # of states that wait, at most, in each step, beside the state left and the one acted in
    optimism: float = 3.0  # what is unseen pays this many times the best average reward so far,
    curiosity: float = 0.25  # and this many times the largest average of |r| so far
    unit: float = 0.01  # stands for the latter as long as every reward was 0
    prior: float = 0.5  # new outcomes thought to be seen before any was
    tolerance: float = 1e-4  # a value moves if it changes by more than this share of `top`
    epsilon: float = 0.0  # chance of an action at random
    tie_tolerance: float = 1e-9  # relative difference below which values count as equal
    cost: Literal["none", "sr-column", "pr-column", "count"] = "none"  # of states, by what is summed over its column
    cost_weight: float = 0.1  # of the state that costs most, in units of the rewards seen
    eta: float = 0.1  # learning rate of M, for cost="sr-column"
    gamma_sr: float = 0.95  # its discount
    eta_pr: float | None = None  # of N, for cost="pr-column"; None: eta
    gamma_pr: float | None = None  # None: gamma_sr

    def __post_init__(self) -> None:
        if not (isinstance(self.backups, int) and not isinstance(self.backups, bool) and self.backups >= 1):
            raise ValueError(f"Planner: backups must be a whole number of 1 or more, not {self.backups}")
        unit, positive, below_one, real = "[0, 1]", "(0, 1]", "[0, 1)", "[0, inf)"
        check_ranges(
            self, gamma=below_one, optimism=real, curiosity=real, unit="(0, inf)", prior="(0, inf)",
            tolerance=below_one, epsilon=unit, tie_tolerance=below_one, cost_weight=real,
            eta=positive, gamma_sr=below_one, eta_pr=positive, gamma_pr=below_one,
        )  # fmt: skip
        if self.optimism + self.curiosity == 0:
            raise ValueError("Planner: optimism and curiosity are both 0; without hope there is nothing to explore for")
        if self.cost not in COSTS:
            raise unknown("cost for Planner", self.cost, COSTS)

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step takes on one core, compiled, where the queue is never empty."""
        row = 3e-10 * task.n_states if self.cost == "sr-column" else 0.0
        return 5e-8 + 1e-8 * (2 + self.backups) * task.n_actions + row

    def run(
        self,
        task: MDP,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> Trace:
        """Run this agent on an MDP, once per seed; arguments as for `run_sarsa`."""
        from spie.agents.planner.batch import run_planner

        options: dict[str, Any] = {"episodes": episodes, "keep": keep, "replay": replay, "session": session}
        return run_planner([self], task, steps, seeds, **options)[0]

    @classmethod
    def run_many(
        cls,
        settings: Sequence["Planner"],
        task: MDP,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        session: Session = Session(),
    ) -> list[Trace]:
        """All settings side by side."""
        from spie.agents.planner.batch import run_planner

        return run_planner(settings, task, steps, seeds, episodes=episodes, session=session)

    def tuning_ranges(self, task: MDP | None) -> dict[str, Range]:
        """What may be worth a try."""
        ranges = {
            "gamma": (True, Range(0.9, 0.999, log=False)),
            "optimism": (True, Range(1.0, 10.0, log=True)),
            "curiosity": (True, Range(0.05, 2.0, log=True)),
            "prior": (True, Range(0.05, 2.0, log=True)),
            "cost_weight": (self.cost != "none", Range(0.001, 1.0, log=True)),
        }
        return {name: where for name, (is_used, where) in ranges.items() if is_used}


AGENTS: dict[str, dict[str, Any]] = {
    "planner": {},
    "spie": {"curiosity": 0.5, "cost": "sr-column", "cost_weight": 0.02},  # chosen by `spie run exploration`
}
