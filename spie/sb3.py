"""Intrinsic rewards for Stable-Baselines3: the public door to `spie.dropin.sb3`."""

from spie.dropin.sb3 import DictReplayBuffer, LogIntrinsicReward, ReplayBuffer
from spie.dropin.sb3 import VecIntrinsicReward as IntrinsicReward

__all__ = ["DictReplayBuffer", "IntrinsicReward", "LogIntrinsicReward", "ReplayBuffer"]
