"""What a wrapper with a bonus may be told."""

import math
from dataclasses import dataclass
from typing import Literal

from spie.agents.base import pr_rates
from spie.dropin.episodes import FACTORS
from spie.dropin.learners import Rates
from spie.dropin.novelty import E3B
from spie.dropin.teacher import NAMES
from spie.errors import check_flag, check_number, is_among, is_name, is_number, told

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
        if not is_name(self.reward):
            raise ValueError(f"IntrinsicReward: reward must be the name of one, see spie list, not {told(self.reward)}")
        if self.reward in NAMES:
            object.__setattr__(self, "replace", True)  # a teacher's pay has the environment's reward in it
        if self.reward == E3B.name:
            object.__setattr__(self, "episodic", True)  # it is of the episode by its definition
        self._check_scale()
        for name in ("replace", "normalise", "episodic"):
            check_flag(f"IntrinsicReward: {name}", getattr(self, name))
        if self.times is not None and not is_among(self.times, FACTORS):
            known = " or ".join(f'"{name}"' for name in FACTORS)
            raise ValueError(
                f"IntrinsicReward: times must be {known}, which are never negative, not {told(self.times)}"
            )
        for name, rate in {"eta": self.eta, "eta_pr": self.eta_pr}.items():
            if rate is not None or name == "eta":
                check_number(f"IntrinsicReward: {name}", rate, "(0, 1]")
        for name, gamma in {"gamma_sr": self.gamma_sr, "gamma_pr": self.gamma_pr}.items():
            if gamma is not None or name == "gamma_sr":
                check_number(f"IntrinsicReward: {name}", gamma, "[0, 1)")
        if self.anneal is not None and (not is_number(self.anneal) or not self.anneal >= 1):
            raise ValueError(f"IntrinsicReward: anneal must be a number of steps, 1 or more, not {told(self.anneal)}")

    def _check_scale(self) -> None:
        if not is_among(self.beta, ("auto",)):
            if not is_number(self.beta):
                raise ValueError(f'IntrinsicReward: beta must be a number or "auto", not "{told(self.beta)}"')
            if not math.isfinite(float(self.beta)):
                raise ValueError(f"IntrinsicReward: beta must be a finite number, not {self.beta}")
        if self.reward_scale is not None:
            if self.beta != "auto":
                raise ValueError('IntrinsicReward: reward_scale is for beta="auto"; leave one of them out')
            if not is_number(self.reward_scale) or not 0 < self.reward_scale < math.inf:
                raise ValueError(f"IntrinsicReward: reward_scale must be above 0, not {told(self.reward_scale)}")
        if not is_among(self.ends, ("as they are", "neutral")):
            raise ValueError(f'IntrinsicReward: ends must be "as they are" or "neutral", not "{told(self.ends)}"')
        if self.ends == "neutral" and self.gamma is None:
            raise ValueError(
                'IntrinsicReward: ends="neutral" needs gamma=, the discount of your agent, in [0, 1), not None'
            )
        if self.gamma is not None:
            check_number("IntrinsicReward: gamma", self.gamma, "[0, 1)" if self.ends == "neutral" else "[0, 1]")
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
