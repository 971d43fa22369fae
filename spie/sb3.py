"""Intrinsic rewards for Stable-Baselines3: the public door to `spie.dropin.sb3`."""

from spie.dropin.sb3 import LogIntrinsicReward, ReplayBuffer
from spie.dropin.sb3 import VecIntrinsicReward as IntrinsicReward

__all__ = ["IntrinsicReward", "LogIntrinsicReward", "ReplayBuffer"]
