"""Intrinsic rewards for Stable-Baselines3: the public door to `spie.dropin.sb3`."""

from spie.dropin.sb3 import IntrinsicReward, LogIntrinsicReward, ReplayBuffer

__all__ = ["IntrinsicReward", "LogIntrinsicReward", "ReplayBuffer"]
