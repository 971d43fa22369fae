"""What a wrapper with a bonus may be told."""

import math
from dataclasses import dataclass
from typing import Literal

from spie.agents.base import pr_rates
from spie.dropin.episodes import FACTORS
from spie.dropin.learners import Rates
from spie.dropin.novelty import E3B
from spie.dropin.teacher import NAMES
from spie.errors import check_flag, is_among, told

Beta = float | Literal["auto"]
Ends = Literal["as they are", "neutral"]


@dataclass(frozen=True)
class Settings:
    """What an IntrinsicReward may be told; M, F and N learn as those of `Sarsa` do."""

    reward: str
    beta: Beta = 1.0  # scale of the intrinsic reward; "auto": set against the environment's own reward
    eta: float = 0.1  # learning rate of M, F and psi
    gamma_sr: float = 0.95  # discount of M, F and psi
    eta_pr: float | None = None  # learning rate of N and xi; None: eta
    gamma_pr: float | None = None  # discount of N and xi; None: gamma_sr
    replace: bool = False  # pure exploration: the environment's reward is left out
    normalise: bool = False  # divide the intrinsic reward by its root mean square so far
    anneal: int | None = None  # beta falls to 0 within this many steps, counted over all environments
    reward_scale: float | None = None  # of the environment's reward, for beta = "auto"; None: what is seen of it
    ends: Ends = "as they are"  # "neutral": the end of an episode pays what the average bonus for ever would
    gamma: float | None = None  # the agent's discount, for neutral ends
    episodic: bool = False  # all that was learned is forgotten when an episode begins
    times: str | None = None  # another bonus, of the episode, by which this one is multiplied

    def __post_init__(self) -> None:
        if self.reward in NAMES:
            object.__setattr__(self, "replace", True)  # a teacher's pay has the environment's reward in it
        if self.reward == E3B.name:
            object.__setattr__(self, "episodic", True)  # it is of the episode by its definition
        self._check_scale()
        check_flag("IntrinsicReward: episodic", self.episodic)
        if self.times is not None and not is_among(self.times, FACTORS):
            known = " or ".join(f'"{name}"' for name in FACTORS)
            raise ValueError(
                f"IntrinsicReward: times must be {known}, which are never negative, not {told(self.times)}"
            )
        for name, rate in {"eta": self.eta, "eta_pr": self.eta_pr}.items():
            if rate is not None and not 0 < rate <= 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in (0, 1], not {rate}")
        for name, gamma in {"gamma_sr": self.gamma_sr, "gamma_pr": self.gamma_pr}.items():
            if gamma is not None and not 0 <= gamma < 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in [0, 1), not {gamma}")
        if self.anneal is not None and self.anneal < 1:
            raise ValueError(f"IntrinsicReward: anneal must be a number of steps, 1 or more, not {self.anneal}")

    def _check_scale(self) -> None:
        if isinstance(self.beta, str) and self.beta != "auto":
            raise ValueError(f'IntrinsicReward: beta must be a number or "auto", not "{self.beta}"')
        if not isinstance(self.beta, str) and not math.isfinite(self.beta):
            raise ValueError(f"IntrinsicReward: beta must be a finite number, not {self.beta}")
        if self.reward_scale is not None:
            if self.beta != "auto":
                raise ValueError('IntrinsicReward: reward_scale is for beta="auto"; leave one of them out')
            if not 0 < self.reward_scale < math.inf:
                raise ValueError(f"IntrinsicReward: reward_scale must be above 0, not {self.reward_scale}")
        if self.ends not in ("as they are", "neutral"):
            raise ValueError(f'IntrinsicReward: ends must be "as they are" or "neutral", not "{self.ends}"')
        if self.ends == "neutral" and (self.gamma is None or not 0 <= self.gamma < 1):
            raise ValueError(
                f'IntrinsicReward: ends="neutral" needs gamma=, the discount of your agent, in [0, 1), not {self.gamma}'
            )
        if self.ends == "neutral" and self.reward in NAMES:
            raise ValueError(f'IntrinsicReward: "{self.reward}" knows about ends of episodes; leave out ends="neutral"')

    @property
    def rates(self) -> Rates:
        """What the learner takes of it."""
        return Rates(self.eta, self.gamma_sr, *pr_rates(self))


SINCE_0_1 = {  # settings that older files do not name
    "reward_scale": None,
    "ends": Settings.ends,
    "gamma": None,
    "episodic": False,
    "times": None,
}
