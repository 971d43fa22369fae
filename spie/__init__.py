"""spie: Successor-Predecessor Intrinsic Exploration (Yu, Burgess, Sahani and Gershman, 2023)."""

import warnings
from typing import TYPE_CHECKING, Any

from spie.agents.base import Agent, Keep, Replay, Session
from spie.agents.dqn.agent import DQN
from spie.agents.linear_q.batch import run_linear_q
from spie.agents.linear_q.settings import LinearQ
from spie.agents.planner.settings import Planner
from spie.agents.registry import agent, register_agent
from spie.agents.sarsa.batch import run_sarsa
from spie.agents.sarsa.settings import Sarsa
from spie.dropin.check import check_reward
from spie.dropin.gymnasium import IntrinsicReward
from spie.features import FourierFeatures, convolution_features, fourier_features, td_pf, td_sf
from spie.representations import fr, pr, reverse, sr, sr_column_sums, sr_row_sums, stationary, td_fr, td_pr, td_sr
from spie.rewards import reward
from spie.tasks import (
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
from spie.trace import EpisodeTrace, Scores, Trace, Trajectory

if TYPE_CHECKING:
    from spie import data
    from spie.behaviour.paths import Paths
    from spie.paper.sweeps import sweep

__version__ = "0.1.0"

__all__ = [
    "DQN",
    "MDP",
    "Agent",
    "ContinuousEnv",
    "ContinuousTask",
    "EpisodeTrace",
    "FourierFeatures",
    "IntrinsicReward",
    "Keep",
    "Layout",
    "LinearQ",
    "MDPEnv",
    "Paths",
    "Planner",
    "Replay",
    "Sarsa",
    "Scores",
    "Session",
    "Task",
    "Trace",
    "Trajectory",
    "agent",
    "check_reward",
    "convolution_features",
    "data",
    "fourier_features",
    "fr",
    "graph",
    "grid",
    "hexgrid",
    "linear_track",
    "maze",
    "mountain_car",
    "pendulum",
    "plus_maze",
    "pr",
    "register_agent",
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
    "td_fr",
    "td_pf",
    "td_pr",
    "td_sf",
    "td_sr",
    "tree",
    "write_map",
]

_ON_FIRST_USE: dict[str, tuple[str, str | None]] = {  # where a name lies; None: it is the module
    "Paths": ("spie.behaviour.paths", "Paths"),
    "data": ("spie.data", None),
    "sweep": ("spie.paper.sweeps", "sweep"),
}


def __getattr__(name: str) -> Any:
    """What is loaded on first use: it needs more than most users do."""
    if name in _ON_FIRST_USE:
        import importlib

        module, what = _ON_FIRST_USE[name]
        loaded = importlib.import_module(module)
        return loaded if what is None else vars(loaded)[what]
    if name == "Path":
        warnings.warn("spie.Path is now spie.Trajectory; the old name goes with the next release", stacklevel=2)
        return Trajectory
    raise AttributeError(f"module 'spie' has no attribute {name!r}")
