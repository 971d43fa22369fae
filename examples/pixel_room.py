"""A room seen as an image: no table, no coordinates. Features are a fixed random convolution."""

import sys

import gymnasium as gym
import numpy as np

import spie

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000

for reward in ("none", "sf-pf", "count"):
    env = spie.IntrinsicReward(gym.make("spie/Pixels-FourRooms-v0"), reward, replace=True)  # pure exploration
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=0)
    phi_of = spie.convolution_features(env.observation_space)
    phi, seen = phi_of(observation), {info["state"]}
    Q = np.zeros((env.action_space.n, len(phi)))
    for _ in range(STEPS):
        values = Q @ phi
        a = rng.integers(len(Q)) if rng.random() < 0.1 else rng.choice(np.flatnonzero(values == values.max()))
        observation, r, terminated, truncated, info = env.step(a)
        phi_next = phi_of(observation)
        Q[a] += 0.1 * (r + 0.95 * (not terminated) * (Q @ phi_next).max() - values[a]) * phi
        phi = phi_next
        seen.add(info["state"])
        if terminated or truncated:
            phi = phi_of(env.reset()[0])
    print(f"{reward:6} {len(seen)} of {env.unwrapped.mdp.n_states} places seen")
