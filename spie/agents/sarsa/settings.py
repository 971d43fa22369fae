"""Settings of SARSA with an intrinsic reward, and the names under which the paper compares them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from spie.agents.base import Agent, Range, Request, check_ranges
from spie.engine.specialise import Kernel
from spie.errors import check_flag, is_among, unknown
from spie.rewards import get_reward
from spie.tasks.mdp import MDP
from spie.trace import Trace

BOUNDED = ("none", "constant", "count")  # rewards of a size that is known beforehand


@dataclass(frozen=True, kw_only=True)
class Sarsa(Agent[Trace]):
    """Settings of a SARSA agent with an intrinsic reward. The defaults are the paper's for grid worlds.

    Each open point of the paper is an option, its default the reading that docs/paper.md gives.

    Every field below is a setting. Raises ValueError for values out of range and for rewards that are not there.

    >>> trace = spie.Sarsa(reward="sr-r").run(spie.grid("cluster-simple"), steps=300, seeds=2)
    >>> trace.seeds.tolist()
    [0, 1]
    """

    reward: str = "sr-r"
    alpha: float = 0.1  # learning rate of Q; 0 leaves Q as it is
    eta: float = 0.1  # learning rate of M and F
    gamma: float = 0.95  # discount of Q
    gamma_sr: float = 0.95  # discount of M and F
    eta_pr: float | None = None  # learning rate of N; None: eta
    gamma_pr: float | None = None  # discount of N; None: gamma_sr
    beta: float = 1.0  # scale of the intrinsic reward
    policy: Literal["epsilon-greedy", "softmax"] = "epsilon-greedy"
    epsilon: float = 0.1  # chance of an action at random (epsilon-greedy)
    inverse_temperature: float = 1.0  # chances are proportional to exp(inverse_temperature * Q) (softmax)
    lapse: float = 0.0  # chance of an action at random (softmax)
    # Choice terms, added to what the policy sees of each action: choice.py has the formula
    stickiness: float = 0.0  # for the last action
    heading: float = 0.0  # for going straight on
    turn_back: float = 0.0  # for going back to the state before the last move
    habit: float = 0.0  # for what was done in this state before: weight ...
    habit_rate: float = 0.1  # ... and learning rate
    learned: bool = True  # False: M, F and N in closed form under the uniform random policy, never updated
    q0: float = 0.0  # Q starts at this value
    m0: float = 0.0  # M, F and N start at m0 times the identity
    next_action: Literal["resample", "carry"] = "resample"  # whether the action after a' is drawn again
    target: Literal["sarsa", "expected", "max"] = "sarsa"  # Q[s', a'], its mean under the policy, its maximum
    optimism: float = 0.0  # what is added to Q of an action never tried, in units of the reward seen (choice.py)
    count: Literal["visits", "sr-column", "pr-column"] = "visits"  # how often it was tried, for optimism (choice.py)
    standardised: bool = False  # whether the bonus is paid in deviations from its mean, less 1 (payment.py)
    potential: bool = False  # whether what is paid is moved backwards by the empirical SR (payment.py)
    ties: Literal["random", "first"] = "random"  # among actions of equal value
    tie_tolerance: float = 1e-9  # relative difference below which values count as equal
    bonus_from: Literal["updated", "previous"] = "updated"  # the matrices after or before this step's update
    sparse: bool | None = None  # whether M is kept row-sparse; None: above 4096 states
    tolerance: float = 1e-8  # entries below it are dropped from row-sparse matrices

    def __post_init__(self) -> None:
        needs = get_reward(self.reward, on="tables and episodes").needs
        unit, positive, below_one, real = "[0, 1]", "(0, 1]", "[0, 1)", "(-inf, inf)"
        check_ranges(
            self, alpha=unit, eta=positive, gamma=unit, gamma_sr=below_one, eta_pr=positive, gamma_pr=below_one,
            beta=real, epsilon=unit, q0=real, m0="[0, inf)", tie_tolerance=below_one, tolerance="(0, 1)",
            inverse_temperature=real, lapse=below_one, stickiness=real, heading=real, turn_back=real, habit=real,
            habit_rate=positive, optimism="[0, inf)",
        )  # fmt: skip
        for name, choices in {
            "policy": ("epsilon-greedy", "softmax"),
            "next_action": ("resample", "carry"),
            "target": ("sarsa", "expected", "max"),
            "count": ("visits", "sr-column", "pr-column"),
            "ties": ("random", "first"),
            "bonus_from": ("updated", "previous"),
        }.items():
            if not is_among(getattr(self, name), choices):
                raise unknown(f"{name} for Sarsa", getattr(self, name), choices)
        check_flag("Sarsa: learned", self.learned)
        check_flag("Sarsa: standardised", self.standardised)
        if self.sparse is not None:
            check_flag("Sarsa: sparse", self.sparse)
        if self.target != "sarsa" and self.next_action == "carry":
            raise ValueError(f'Sarsa: target="{self.target}" looks ahead to no action; leave out next_action="carry"')
        if self.optimism and self.reward not in BOUNDED:
            raise ValueError(
                f'Sarsa: optimism is in units of the reward of the task, and reward "{self.reward}" has no bound in '
                f"them; use one of {', '.join(BOUNDED)}"
            )
        if self.count != "visits" and not self.optimism:
            raise ValueError(f'Sarsa: count="{self.count}" says how optimism counts; give optimism, too')
        if self.count != "visits" and not self.learned:
            raise ValueError(f'Sarsa: count="{self.count}" needs a matrix that is learned; leave out learned=False')
        if self.standardised and self.reward == "none":
            raise ValueError('Sarsa: standardised=True needs a bonus, and reward "none" pays none; use "count"')
        if "F_episode_next" in needs and not self.learned:
            raise ValueError(f'Sarsa: reward "{self.reward}" needs F as it is learned; leave out learned=False')
        if self.optimism and self.gamma == 1:
            raise ValueError("Sarsa: optimism needs gamma below 1: values have no scale without discount")
        if self.policy != "softmax" and (self.lapse or self.inverse_temperature != 1):
            name = "lapse" if self.lapse else "inverse_temperature"
            raise ValueError(f'Sarsa: {name} belongs to policy="softmax"; an epsilon-greedy one has its epsilon')

    def is_scale_free(self, task: MDP) -> bool:
        """Where nothing is paid but the bonus, beta scales Q as a whole, and what is greedy stays greedy."""
        terms = (self.stickiness, self.heading, self.turn_back, self.habit, self.optimism, self.q0)
        return self.policy == "epsilon-greedy" and not task.reward.any() and not any(terms)

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step takes on one core, compiled."""
        matrices = len(get_reward(self.reward).matrices) if self.learned else 0
        return 1.5e-8 + 1.5e-10 * matrices * task.n_states

    def size_of_step(self, task: MDP) -> float:
        return 3e-8 + 3e-10 * task.n_states

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,)

    @classmethod
    def execute_many(cls, settings: Sequence["Sarsa"], request: Request) -> list[Trace]:
        """All settings side by side, each pair of settings and seed a lane of a kernel.

        Several mazes may stand in place of the task (a sequence of MDPs with the same states): the replay then says
        which trial was in which. A lane whose numbers are no longer finite stops there; `failures` of its trace names
        it, and the other lanes go on.
        """
        from spie.agents.sarsa.batch import run_batch

        return run_batch(settings, request)

    @classmethod
    def kernels(cls, settings: Sequence["Sarsa"], request: Request) -> list[Kernel]:
        from spie.agents.sarsa.batch import kernels

        return kernels(settings, request)

    def tuning_ranges(self, task: MDP | None) -> dict[str, Range]:
        """The settings of the paper's sweep, from its least value to its largest."""
        matrices = get_reward(self.reward).matrices
        rate = Range(0.005, 0.5, log=True)
        discount = Range(0.5, 0.99, log=False)
        ranges = {
            "alpha": (True, rate),
            "eta": (self.learned and bool(matrices & {"M", "F"}), rate),
            "gamma_sr": (bool(matrices & {"M", "F"}), discount),
            "eta_pr": (self.learned and "N" in matrices, rate),
            "gamma_pr": ("N" in matrices, discount),
            "beta": (self.reward != "none", Range(1.0, 10_000.0, log=True)),
            "epsilon": (True, Range(0.01, 0.1, log=True)),
            "optimism": (self.optimism > 0, Range(0.1, 100.0, log=True)),
        }
        return {name: where for name, (is_used, where) in ranges.items() if is_used}


run_sarsa = Sarsa.run_many

_LEARNED: dict[str, dict[str, Any]] = {
    "sarsa": {"reward": "none"},
    "sarsa-sr": {"reward": "sr"},
    "sarsa-fr": {"reward": "fr"},
    "sarsa-srr": {"reward": "sr-r"},
    "sarsa-srr-a": {"reward": "sr-r(a)"},
    "sarsa-srr-b": {"reward": "sr-r(b)"},
    "sarsa-srr-c": {"reward": "sr-r(c)"},
    "sarsa-sr-pr": {"reward": "sr-pr"},
}
_FIXED = {f"{name}-fixed": s | {"learned": False} for name, s in _LEARNED.items() if name != "sarsa"}
_CONTROLS: dict[str, dict[str, Any]] = {  # ours, not in the paper: no representation at all
    "constant": {"reward": "constant"},
    "optimistic": {"reward": "none", "q0": 20.0},  # 1 / (1 - gamma)
    "count": {"reward": "count", "q0": 20.0},
    "random": {"reward": "none", "epsilon": 1.0},
}
_BEYOND: dict[str, dict[str, Any]] = {  # not in the paper: docs/exploration.md
    "sarsa-sp-novelty": {"reward": "count", "standardised": True, "potential": True, "beta": 0.01},
    "sarsa-etd": {"reward": "etd", "m0": 1.0, "q0": 20.0},
}
AGENTS = _LEARNED | _FIXED | _CONTROLS | _BEYOND
