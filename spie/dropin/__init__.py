"""Bonuses in other people's loops: Gymnasium, Stable-Baselines3, and a check of any reward."""
