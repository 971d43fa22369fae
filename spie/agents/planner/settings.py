"""Settings of the planner, and the names of its variants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from spie.agents.base import Agent, Range, Request, check_ranges
from spie.engine.specialise import Kernel
from spie.errors import check_whole, is_among, unknown
from spie.tasks.mdp import MDP
from spie.trace import Trace

COSTS = ("none", "sr-column", "pr-column", "count")


@dataclass(frozen=True, kw_only=True)
class Planner(Agent[Trace]):
    """Settings of a planner: it learns a model, hopes for what it has not seen, and plans by a few backups per step.

        Q+[s, a] = x top + (1 - x) mean over the outcomes seen of (r + gamma V[s']),   V[s] = max Q+[s, :]

    x = theta / (theta + n) is the chance that try n + 1 is a discovery, a state not seen yet or a reward above all;
    theta is learned from the tries of other pairs, so that hope vanishes at once in a deterministic world and lasts
    where repeated tries have brought something. `top` is what a discovery is worth: (optimism r_best + curiosity R) /
    (1 - gamma), with the largest averages of r (at least 0) and of |r| over 1 / (1 - gamma) steps so far. So nothing
    depends on the scale of the rewards.

    Every field below is a setting; values out of range raise ValueError.

    >>> trace = spie.Planner().run(spie.riverswim(), steps=200, seeds=2)
    >>> trace.steps.tolist()
    [200, 200]
    """

    version: ClassVar[int] = 2

    gamma: float = 0.99
    backups: int = 10  # of states that wait, at most, in each step, beside the state left and the one acted in
    optimism: float = 3.0  # what is unseen pays this many times the best average reward so far,
    curiosity: float = 0.25  # and this many times the largest average of |r| so far
    unit: float = 0.01  # stands for the latter as long as every reward was 0
    prior: float = 0.5  # discoveries thought to be made before any was
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
        check_whole("Planner: backups", self.backups, 1, 1_000_000)
        unit, positive, below_one, real = "[0, 1]", "(0, 1]", "[0, 1)", "[0, inf)"
        check_ranges(
            self, gamma=below_one, optimism=real, curiosity=real, unit="(0, inf)", prior="(0, inf)",
            tolerance=below_one, epsilon=unit, tie_tolerance=below_one, cost_weight=real,
            eta=positive, gamma_sr=below_one, eta_pr=positive, gamma_pr=below_one,
        )  # fmt: skip
        if self.optimism + self.curiosity == 0:
            raise ValueError(
                "Planner: optimism and curiosity are both 0, so that nothing makes it explore; set one of them above 0"
            )
        if not is_among(self.cost, COSTS):
            raise unknown("cost for Planner", self.cost, COSTS)

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step takes on one core, compiled, where the queue is never empty."""
        row = 3e-10 * task.n_states if self.cost == "sr-column" else 0.0
        return 5e-8 + 1e-8 * (2 + self.backups) * task.n_actions + row

    @classmethod
    def execute_many(cls, settings: Sequence["Planner"], request: Request) -> list[Trace]:
        """All settings side by side, each pair of settings and seed a lane of a kernel.

        The bonus of a step is the chance, as the planner saw it, that it was a discovery. Of matrices
        it keeps "Q", its optimistic values; a state that was never left has the most that it hopes for.
        """
        from spie.agents.planner.batch import run_batch

        return run_batch(settings, request)

    @classmethod
    def kernels(cls, settings: Sequence["Planner"], request: Request) -> list[Kernel]:
        from spie.agents.planner.batch import compiled
        from spie.agents.planner.kernel import HELPERS, planner_kernel

        return [compiled(planner_kernel, HELPERS, request.task.n_actions)]

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
    "spie": {"optimism": 5.0, "curiosity": 0.75, "prior": 0.25},  # chosen by `spie run exploration`
}
