"""Settings of linear Q-learning with successor and predecessor features, and their names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from spie.agents.base import Agent, Range, Request, check_ranges
from spie.engine.specialise import Kernel
from spie.errors import check_flag, check_whole, is_among, unknown
from spie.features import FourierFeatures, fourier_features
from spie.rewards import get_reward
from spie.tasks.base import Kind
from spie.tasks.continuous import ContinuousTask
from spie.trace import EpisodeTrace


@dataclass(frozen=True, kw_only=True)
class LinearQ(Agent[EpisodeTrace]):
    """Settings of a Q-learning agent on random Fourier features. The defaults are the paper's for MountainCar.

    A negative `beta` pays the intrinsic reward with the other sign.

    Every field below is a setting; values out of range raise ValueError.

    >>> trace = spie.LinearQ(reward="none", dimension=8).run(spie.mountain_car(), steps=50, episodes=2)
    >>> trace.episode_rewards.tolist()  # far too short to find the flag
    [[0.0, 0.0]]
    """

    kind: ClassVar[Kind] = "continuous"

    reward: str = "sf-pf"
    alpha: float = 0.1  # learning rate of Q
    eta: float = 0.2  # learning rate of the SF
    eta_pr: float = 0.2  # learning rate of the PF
    gamma: float = 0.99  # discount of Q
    gamma_sr: float = 0.95  # discount of the SF
    gamma_pr: float = 0.95  # discount of the PF
    beta: float = 1000.0  # scale of the intrinsic reward
    epsilon: float = 0.3  # chance of an action at random
    dimension: int = 128  # of the features
    length_scale: float = 0.2  # of the features, as a fraction of the space's width
    features_seed: int | None = None  # None: every seed draws features of its own
    sf_target: Literal["sarsa", "greedy"] = "sarsa"  # psi looks ahead through the action taken next or the best one
    cells: int = 20  # along each axis, in which visits are counted
    count: Literal["cells", "features"] = "cells"  # how they are counted: in cells, or by how new features are
    standardised: bool = False  # whether the bonus is paid in deviations from its mean, less 1
    potential: bool = False  # whether what is paid is moved backwards by successor features of discount gamma_sr
    optimism: float = 0.0  # C of C / (1 + n)^2, which acting and looking ahead add to Q of an action tried n times
    episodic: bool = False  # whether SF, PF, counts and potential are forgotten when an episode begins
    tie_tolerance: float = 1e-9  # relative difference below which values count as equal
    precision: Literal["float64", "float32"] = "float64"  # of features, weights and matrices (docs/speed.md)

    def __post_init__(self) -> None:
        get_reward(self.reward, on="features")
        rate, unit, below_one, size = "[0, inf)", "[0, 1]", "[0, 1)", "[1, 10000]"
        check_ranges(
            self, alpha=rate, eta=rate, eta_pr=rate, gamma=unit, gamma_sr=below_one, gamma_pr=below_one,
            beta="(-inf, inf)", epsilon=unit, length_scale="(0, inf)", dimension=size, cells=size,
            tie_tolerance=below_one, optimism="[0, inf)",
        )  # fmt: skip
        for name in ("dimension", "cells"):
            check_whole(f"LinearQ: {name}", getattr(self, name), 1, 10_000)
        if self.features_seed is not None:
            check_whole("LinearQ: features_seed", self.features_seed, 0, 2**63 - 1)
        if not is_among(self.sf_target, ("sarsa", "greedy")):
            raise unknown("sf_target for LinearQ", self.sf_target, ("sarsa", "greedy"))
        if not is_among(self.precision, ("float64", "float32")):
            raise unknown("precision for LinearQ", self.precision, ("float64", "float32"))
        if not is_among(self.count, ("cells", "features")):
            raise unknown("count for LinearQ", self.count, ("cells", "features"))
        check_flag("LinearQ: standardised", self.standardised)
        check_flag("LinearQ: potential", self.potential)
        check_flag("LinearQ: episodic", self.episodic)
        if self.count == "features" and "visits_next" not in get_reward(self.reward).needs:
            cure = 'use "count", or leave out count="features"'
            raise ValueError(f'LinearQ: reward "{self.reward}" counts nothing; {cure}')
        if self.standardised and self.reward == "none":
            raise ValueError('LinearQ: standardised=True needs a bonus, and reward "none" pays none; use "count"')
        if self.precision == "float32" and (self.count == "features" or self.potential or self.optimism):
            raise ValueError("LinearQ: counts on features, potential and optimism need precision=float64")

    def features(self, task: ContinuousTask, seed: int) -> FourierFeatures:
        """The features that a seed of this agent sees."""
        own = seed if self.features_seed is None else self.features_seed
        return fourier_features(task.space, self.dimension, self.length_scale, own)

    def seconds_per_step(self, task: ContinuousTask) -> float:
        """About how long a step takes on one core, compiled."""
        ahead = 1e-11 * self.dimension**3 / 16 if self.potential else 0.0
        return 1.3e-9 * self.dimension + 5.2e-11 * self._n_matrices(task) * self.dimension**2 + ahead

    def size_of_step(self, task: ContinuousTask) -> float:
        ahead = 1e-11 * self.dimension**3 / 16 if self.potential else 0.0
        return 3e-9 * self.dimension + 1.3e-10 * self._n_matrices(task) * self.dimension**2 + ahead

    def _n_matrices(self, task: ContinuousTask) -> int:
        learned = len({"psi_norm", "xi_norm_next"} & set(get_reward(self.reward).needs))
        return learned + 2 * (self.count == "features") + task.n_actions * (self.optimism > 0)

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,)

    @classmethod
    def execute_many(cls, settings: Sequence["LinearQ"], request: Request) -> list[EpisodeTrace]:
        """All settings side by side. Steps are always the cap of an episode, of which there are 1000 by default.

        Of matrices it keeps "Q", the weights w [A, d], "Psi" and "Xi". A lane whose numbers overflow stops there;
        `failures` of its trace names it, and the other lanes go on.
        """
        from spie.agents.linear_q.batch import run_batch

        return run_batch(settings, request)

    @classmethod
    def kernels(cls, settings: Sequence["LinearQ"], request: Request) -> list[Kernel]:
        from spie.agents.linear_q.batch import kernels

        return kernels(settings, request)

    def tuning_ranges(self, task: ContinuousTask) -> dict[str, Range]:
        ranges = {"alpha": Range(0.001, 0.5, log=True), "epsilon": Range(0.01, 0.5, log=True)}
        ranges["length_scale"] = Range(0.05, 0.5, log=True)
        if self.reward != "none":
            ranges["beta"] = Range(1e-5, 1e3, log=True)
        for need, eta, gamma in (("psi_norm", "eta", "gamma_sr"), ("xi_norm_next", "eta_pr", "gamma_pr")):
            if need in get_reward(self.reward).needs:
                ranges |= {eta: Range(0.01, 1.0, log=True), gamma: Range(0.5, 0.99, log=False)}
        return ranges


run_linear_q = LinearQ.run_many

AGENTS: dict[str, dict[str, Any]] = {
    "linear-q": {"reward": "none"},
    "linear-q-sf": {"reward": "sf"},
    "linear-q-sf-pf": {"reward": "sf-pf"},
    "linear-q-constant": {"reward": "constant"},
    "linear-q-count": {"reward": "count"},
    "linear-q-novelty": {"reward": "count", "count": "features", "standardised": True, "beta": 0.01},
    "linear-q-sp-novelty": {
        "reward": "count", "count": "features", "standardised": True, "potential": True, "beta": 0.01,
    },
}  # fmt: skip
