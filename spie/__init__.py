"""spie: Successor-Predecessor Intrinsic Exploration (Yu, Burgess, Sahani and Gershman, 2023)."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from spie.rewards import reward
from spie.tasks import (
    EnvTask,
    acrobot,
    graph,
    grid,
    hexgrid,
    linear_track,
    maze,
    mountain_car,
    pendulum,
    plus_maze,
    riverswim,
    sixarms,
    t_maze,
    tartarus,
    tree,
    write_map,
)
from spie.tasks.base import Task
from spie.tasks.continuous import ContinuousEnv, ContinuousTask
from spie.tasks.layout import Layout
from spie.tasks.mdp import MDP, MDPEnv
from spie.tasks.registry import register_task, task

if TYPE_CHECKING:  # loaded on first use
    from spie import data
    from spie.agents.base import Agent, Keep, Replay, Request, Session
    from spie.agents.dqn.agent import DQN
    from spie.agents.linear_q.settings import LinearQ, run_linear_q
    from spie.agents.planner.settings import Planner
    from spie.agents.registry import agent, register_agent
    from spie.agents.sarsa.settings import Sarsa, run_sarsa
    from spie.behaviour.fit import fit, loglikelihood
    from spie.behaviour.model import ChoiceModel, Parameter, model, register_model
    from spie.behaviour.paths import Paths
    from spie.comparison.compare import compare
    from spie.dropin.check import check_reward
    from spie.dropin.gymnasium import IntrinsicReward
    from spie.features import FourierFeatures, convolution_features, fourier_features, td_pf, td_sf
    from spie.paper.sweeps import sweep
    from spie.representations import (
        dr,
        fr,
        pr,
        reverse,
        sr,
        sr_column_sums,
        sr_row_sums,
        stationary,
        td_dr,
        td_fr,
        td_pr,
        td_sr,
    )
    from spie.trace import EpisodeTrace, Scores, Trace, Trajectory

__version__ = "0.2.0"

__all__ = [
    "DQN",
    "MDP",
    "Agent",
    "ChoiceModel",
    "ContinuousEnv",
    "ContinuousTask",
    "EnvTask",
    "EpisodeTrace",
    "FourierFeatures",
    "IntrinsicReward",
    "Keep",
    "Layout",
    "LinearQ",
    "MDPEnv",
    "Parameter",
    "Paths",
    "Planner",
    "Replay",
    "Request",
    "Sarsa",
    "Scores",
    "Session",
    "Task",
    "Trace",
    "Trajectory",
    "acrobot",
    "agent",
    "check_reward",
    "compare",
    "convolution_features",
    "data",
    "dr",
    "fit",
    "fourier_features",
    "fr",
    "graph",
    "grid",
    "hexgrid",
    "linear_track",
    "loglikelihood",
    "maze",
    "model",
    "mountain_car",
    "pendulum",
    "plus_maze",
    "pr",
    "register_agent",
    "register_model",
    "register_task",
    "reverse",
    "reward",
    "riverswim",
    "run_linear_q",
    "run_sarsa",
    "sixarms",
    "sr",
    "sr_column_sums",
    "sr_row_sums",
    "stationary",
    "sweep",
    "t_maze",
    "tartarus",
    "task",
    "td_dr",
    "td_fr",
    "td_pf",
    "td_pr",
    "td_sf",
    "td_sr",
    "tree",
    "write_map",
]

_ON_FIRST_USE = {  # modules, and the names that they bring: `import spie` itself loads tasks and rewards alone
    "spie.agents.base": "Agent Keep Replay Request Session",
    "spie.agents.dqn.agent": "DQN",
    "spie.agents.linear_q.settings": "LinearQ run_linear_q",
    "spie.agents.planner.settings": "Planner",
    "spie.agents.registry": "agent register_agent",
    "spie.agents.sarsa.settings": "Sarsa run_sarsa",
    "spie.behaviour.fit": "fit loglikelihood",
    "spie.behaviour.model": "ChoiceModel Parameter model register_model",
    "spie.behaviour.paths": "Paths",
    "spie.comparison.compare": "compare",
    "spie.dropin.check": "check_reward",
    "spie.dropin.gymnasium": "IntrinsicReward",
    "spie.features": "FourierFeatures convolution_features fourier_features td_pf td_sf",
    "spie.paper.sweeps": "sweep",
    "spie.representations": "dr fr pr reverse sr sr_column_sums sr_row_sums stationary td_dr td_fr td_pr td_sr",
    "spie.trace": "EpisodeTrace Scores Trace Trajectory",
}
_PLACES = {name: module for module, names in _ON_FIRST_USE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """What is loaded on first use."""
    if name in ("data", "plot"):
        return importlib.import_module(f"spie.{name}")
    if name in _PLACES:
        globals()[name] = found = vars(importlib.import_module(_PLACES[name]))[name]
        return found
    if name == "Path":
        warnings.warn("spie.Path is now spie.Trajectory; the old name goes with the next release", stacklevel=2)
        return __getattr__("Trajectory")
    raise AttributeError(f"module 'spie' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
