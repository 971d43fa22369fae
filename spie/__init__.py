"""spie: Successor-Predecessor Intrinsic Exploration (Yu, Burgess, Sahani and Gershman, 2023)."""

from spie.agents.deep import DQN
from spie.agents.sarsa import Sarsa, run_sarsa
from spie.envs import grid, maze, register, riverswim, sixarms
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
from spie.trace import Path, Trace

__version__ = "0.1.0"

__all__ = [
    "DQN",
    "MDP",
    "MDPEnv",
    "Path",
    "Sarsa",
    "Trace",
    "fr",
    "grid",
    "maze",
    "pr",
    "reverse",
    "reward",
    "riverswim",
    "run_sarsa",
    "sixarms",
    "sr",
    "sr_column_sums",
    "sr_row_sums",
    "stationary",
    "td_fr",
    "td_pr",
    "td_sr",
]

register()  # Gymnasium's ids spie/RiverSwim-v0, spie/SixArms-v0 and spie/Grid-v0
