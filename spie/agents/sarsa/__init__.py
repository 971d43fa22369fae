"""SARSA with an intrinsic reward (Algorithm 1)."""
