"""Q-learning on FrozenLake: bare, with SR-R, and with a constant cost that knows nothing.

The costs find the holes: an agent that pays for every step learns to end the episode. Look before you use a bonus.
"""

import sys

import gymnasium as gym
import numpy as np

import spie

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000


def q_learning(env, steps, alpha=0.5, gamma=0.99, epsilon=0.1, seed=0):
    """How many episodes ended, and how many of them at the goal."""
    rng = np.random.default_rng(seed)
    Q = np.zeros((env.observation_space.n, env.action_space.n))
    s, _ = env.reset(seed=seed)
    ended = reached = 0
    for _ in range(steps):
        best = np.flatnonzero(Q[s] == Q[s].max())
        a = rng.integers(len(Q[s])) if rng.random() < epsilon else rng.choice(best)
        s_next, r, terminated, truncated, info = env.step(a)
        Q[s, a] += alpha * (r + gamma * (not terminated) * Q[s_next].max() - Q[s, a])
        s = s_next
        if terminated or truncated:
            ended, reached = ended + 1, reached + int(info["extrinsic_reward"])
            s, _ = env.reset()
    return ended, reached


for reward in ("none", "sr-r", "constant", "count"):
    env = gym.make("FrozenLake-v1", map_name="8x8", is_slippery=False)
    env = spie.IntrinsicReward(env, reward, beta=0.01)
    ended, reached = q_learning(env, STEPS)
    print(f"{reward:10} {ended:5} episodes, {reached:4} at the goal, {env.bonus.learner.coverage:.0%} of the lake seen")
