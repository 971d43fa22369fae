"""The arms of a comparison: the bare agent, controls and bonuses, each with the settings that are tried."""

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym

from spie.comparison.calibration import Calibration
from spie.dropin.distillation import require_torch
from spie.dropin.environments import is_function, named_function, named_text
from spie.dropin.known import ETD, OURS, bonus_names
from spie.dropin.made_agents import MadeAgent
from spie.dropin.settings import Ends
from spie.dropin.spaces import numbering
from spie.dropin.teacher import NAMES as TEACHERS
from spie.dropin.training import BARE, PlainQ
from spie.errors import unknown
from spie.rewards import get_reward, reward_names
from spie.search.grid import SettingsGrid

SHARES = (0.1, 1.0, 10.0)  # of the scale of the environment's reward
MEASURE = "late reward"
Q_LEARNING = "q-learning"
DEEP = ("ppo", "dqn", "a2c")
OPTIMISTIC, CONSTANT = "optimistic", "constant"
ON_TABLES = (CONSTANT, "count", "sr-r", "sr-pr", "teacher")
ON_FEATURES = (CONSTANT, "count", "rnd", "sf-pf", "sp-novelty")
OWN_CHOICES = ("reward", "beta", "ends", "start", "seed", "env", "algorithm", "options", "text")  # of a comparison
BOTH_ENDS: tuple[Ends, ...] = ("as they are", "neutral")

Role = Literal["bare", "control", "bonus"]


@dataclass(frozen=True)
class Arm:
    """One way to train the agent, and the settings of it that are tried."""

    name: str
    role: Role
    grid: SettingsGrid

    @property
    def is_chosen(self) -> bool:
        """Whether there is more than one setting to choose from."""
        return len(self.grid) > 1


def usual_agent(calibration: Calibration) -> str:
    """Q-learning where states and actions can be counted, else PPO."""
    discrete = isinstance(calibration.action_space, gym.spaces.Discrete)
    return Q_LEARNING if discrete and numbering(calibration.observation_space) is not None else "ppo"


def check_agent(agent: str, calibration: Calibration) -> None:
    """Refuse an agent that is not known, or cannot act here, before anything runs; missing libraries, too."""
    if agent not in (Q_LEARNING, *DEEP) and not is_function(agent):
        error = unknown("agent", agent, (Q_LEARNING, *DEEP))
        raise ValueError(f"{error}; or module:make, a function of (env, seed) that returns an agent with learn(steps)")
    if agent in (Q_LEARNING, "dqn") and not isinstance(calibration.action_space, gym.spaces.Discrete):
        raise ValueError(f"{agent} needs actions that can be counted, not {calibration.action_space}; take --agent ppo")
    if agent in DEEP and isinstance(calibration.observation_space, gym.spaces.Tuple):
        raise ValueError(f"{agent} takes no Tuple of observations; make it a Dict, or take --agent {Q_LEARNING}")
    if agent != Q_LEARNING:
        from spie.dropin import sb3_agents  # noqa: F401  # says what is to be installed

        if is_function(agent):
            named_function(agent)


def usual_bonuses(calibration: Calibration) -> tuple[str, ...]:
    """The bonuses that are compared unless told otherwise."""
    if numbering(calibration.observation_space) is None:
        return tuple(name for name in ON_FEATURES if name != "rnd" or _has_torch())
    discrete = isinstance(calibration.action_space, gym.spaces.Discrete)
    return tuple(name for name in ON_TABLES if name not in TEACHERS or discrete)


def _has_torch() -> bool:
    try:
        require_torch()
    except ImportError:
        return False
    return True


def check_bonus(name: str, agent: str, calibration: Calibration) -> None:
    """Refuse a bonus that is not known, or not for this agent or these observations."""
    if name == OPTIMISTIC:
        if agent != Q_LEARNING or numbering(calibration.observation_space) is None:
            raise ValueError(f"{OPTIMISTIC} is a start of Q in a table; leave it out of --bonuses with {agent} here")
    elif name not in (*OURS, ETD):
        if name not in reward_names():
            raise unknown("bonus", name, (*bonus_names(), OPTIMISTIC))
        get_reward(name, on="features" if numbering(calibration.observation_space) is None else "tables")


def make_arms(agent: str, options: dict[str, Any], bonuses: tuple[str, ...], calibration: Calibration) -> list[Arm]:
    """The bare agent, then controls, then bonuses."""
    base = _base(agent, options)
    arms = [Arm("bare", "bare", SettingsGrid(base(BARE, 0.0), measure=MEASURE))]
    if agent == Q_LEARNING:
        gamma: float = base(BARE, 0.0).gamma
        top = calibration.scale / (1 - gamma) if gamma < 1 else calibration.scale
        starts = tuple(float(f"{share * top:.2g}") for share in SHARES)
        if OPTIMISTIC in bonuses:
            arms.append(Arm(OPTIMISTIC, "control", SettingsGrid(base(BARE, 0.0), (("start", starts),), MEASURE)))
    for name in bonuses:
        if name in TEACHERS:
            arms.append(Arm(name, "bonus", SettingsGrid(base(name, 1.0), measure=MEASURE)))
        elif name != OPTIMISTIC:
            betas = tuple(calibration.beta(name, share) for share in SHARES)
            ends = BOTH_ENDS if agent == Q_LEARNING else ("neutral",)
            grid = SettingsGrid(base(name, betas[0]), (("beta", betas), ("ends", ends)), MEASURE)
            arms.append(Arm(name, "control" if name in (CONSTANT, "count") else "bonus", grid))
    return arms


def _base(agent: str, options: dict[str, Any]) -> Any:
    """What makes the settings of the agent for a bonus and its beta."""
    for name in options:
        if name in OWN_CHOICES:
            raise ValueError(f"a comparison chooses {name} itself; leave out {name}=")
    if agent == Q_LEARNING:
        return lambda reward, beta: _settings(PlainQ, agent, reward=reward, beta=beta, **{"alpha": 0.1} | options)
    gamma = {"gamma": options["gamma"]} if "gamma" in options else {}
    rest = tuple(sorted((name, value) for name, value in options.items() if name != "gamma"))
    if is_function(agent) and rest:
        raise ValueError(f"{agent} has settings of its own; leave out {rest[0][0]}=")
    text = hashlib.sha256(named_text(agent).encode()).hexdigest() if is_function(agent) else ""
    more = {"options": rest, "text": text, **gamma}
    return lambda reward, beta: _settings(MadeAgent, agent, algorithm=agent, reward=reward, beta=beta, **more)


def _settings(kind: Any, agent: str, **settings: Any) -> Any:
    try:
        return kind(**settings)
    except TypeError as error:
        known = "alpha, gamma, epsilon" if kind is PlainQ else "gamma and those of the algorithm"
        raise ValueError(f"{agent} has no such setting ({str(error).rpartition(' ')[2]}); it has {known}") from error
