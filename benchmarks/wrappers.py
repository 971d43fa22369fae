"""What IntrinsicReward adds to a step of a Gymnasium environment: `make bench` prints it, this file does so alone.

Each reward against the bare environment, one at a time and side by side in a vector environment, where a step counts
once for each environment.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from bench import BUILT_IN, race, spread, table
from gymnasium.vector import SyncVectorEnv

import spie

STEPS = 2000  # of all environments together
SIDE_BY_SIDE = (2, 4, 8)
# By environment: how to make it; rewards; those also side by side; at most how many microseconds
KINDS: dict[str, tuple[Callable[[], Any], Sequence[str], Sequence[str], int]] = {
    "OF-small, 100 states": (lambda: spie.MDPEnv(spie.grid("of-small")), BUILT_IN, ("sr-r",), 6),
    "MountainCar, 128 features": (lambda: gym.make("MountainCar-v0"), ("count", "sf", "sf-pf"), ("sf-pf",), 40),
}


def play(env: Any, actions: list[int]) -> None:
    env.reset(seed=0)
    for a in actions:
        _, _, terminated, truncated, _ = env.step(a)
        if terminated or truncated:
            env.reset()


def play_all(envs: Any, actions: Any) -> None:
    envs.reset(seed=0)
    for a in actions:
        envs.step(a)


def runs(make: Callable[[], Any], rewards: Sequence[str], together: Sequence[str]) -> dict[Any, Callable[[], Any]]:
    """What is timed, by reward ("" for the bare environment) and number of environments."""
    actions = np.random.default_rng(0).integers(make().action_space.n, size=STEPS)
    found: dict[Any, Callable[[], Any]] = {}
    for reward in ("", *rewards):
        env = spie.IntrinsicReward(make(), reward) if reward else make()
        found[reward, 1] = partial(play, env, actions.tolist())
    for reward in ("", *together):
        for n in SIDE_BY_SIDE:
            envs: Any = SyncVectorEnv([make] * n)
            envs = spie.IntrinsicReward(envs, reward) if reward else envs
            found[reward, n] = partial(play_all, envs, actions.reshape(-1, n))
    return found


def show() -> None:
    rows: list[tuple[Any, ...]] = []
    for name, (make, rewards, together, target) in KINDS.items():
        seconds = race(runs(make, rewards, together), rounds=25)
        added = {(reward, n): times[0] - seconds["", n][0] for (reward, n), times in seconds.items() if reward}
        for (reward, n), more in added.items():
            ratio = "" if n == 1 else f"{more / added[reward, 1]:.2f}"
            us = f"{1e6 * more / STEPS:.1f}"
            rows.append((name, reward, n, us, spread(seconds[reward, n]), target if n == 1 else "", ratio))
    header = ("environment", "reward", "environments", "us per step", "spread", "at most", "times one environment's")
    table("IntrinsicReward, beyond the bare environment", header, *rows)


if __name__ == "__main__":
    show()
