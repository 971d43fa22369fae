"""spie: Successor-Predecessor Intrinsic Exploration (Yu, Burgess, Sahani and Gershman, 2023)."""

from typing import TYPE_CHECKING, Any

from spie.agents.deep import DQN
from spie.agents.linear_q import LinearQ, run_linear_q
from spie.agents.sarsa import Sarsa, run_sarsa
from spie.check import check_reward
from spie.continuous import ContinuousEnv, ContinuousTask
from spie.envs import grid, maze, mountain_car, pendulum, register, riverswim, sixarms
from spie.features import FourierFeatures, convolution_features, fourier_features, td_pf, td_sf
from spie.mdp import MDP, MDPEnv
from spie.representations import (
    fr,
    pr,
    reverse,
    sr,
    sr_column_sums,
    sr_row_sums,
    stationary,
    td_fr,
    td_pr,
    td_sr,
)
from spie.rewards import reward
from spie.trace import EpisodeTrace, Path, Trace
from spie.wrappers import IntrinsicReward

if TYPE_CHECKING:
    from spie.sweeps import sweep

__version__ = "0.1.0"

__all__ = [
    "DQN",
    "MDP",
    "ContinuousEnv",
    "ContinuousTask",
    "EpisodeTrace",
    "FourierFeatures",
    "IntrinsicReward",
    "LinearQ",
    "MDPEnv",
    "Path",
    "Sarsa",
    "Trace",
    "check_reward",
    "convolution_features",
    "fourier_features",
    "fr",
    "grid",
    "maze",
    "mountain_car",
    "pendulum",
    "pr",
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
    "td_fr",
    "td_pf",
    "td_pr",
    "td_sf",
    "td_sr",
]

register()  # Gymnasium's ids: RiverSwim, Grid, SparseMountainCar, Pixels-... and others, each as spie/Name-v0


def __getattr__(name: str) -> Any:
    """`spie.sweep` is loaded on first use: it needs the experiments and the store."""
    if name == "sweep":
        from spie.sweeps import sweep

        return sweep
    raise AttributeError(f"module 'spie' has no attribute {name!r}")
