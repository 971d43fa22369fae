"""Linear Q-learning with SF and PF as a careful user would write it, with NumPy on Gymnasium: the engine's baseline."""

import gymnasium as gym
import numpy as np

from spie.agents.linear_q.settings import LinearQ
from spie.features import fourier_features, td_pf, td_sf


def linear_q(agent: LinearQ, episodes: int, seed: int, cap: int = 1000) -> np.ndarray:
    """Run the settings of `agent` on MountainCar with a reward at the flag alone; steps of each episode."""
    env = gym.make("MountainCar-v0", max_episode_steps=cap)
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    phi_of = fourier_features(env.observation_space, agent.dimension, agent.length_scale, seed)
    A, d = env.action_space.n, agent.dimension
    w, Psi, Xi = np.zeros((A, d)), np.zeros((A, d, d)), np.zeros((d, d))
    lengths = np.zeros(episodes, int)

    def policy(q: np.ndarray) -> int:
        if rng.random() < agent.epsilon:
            return int(rng.random() * A)
        ties = (q >= q.max() - 1e-9 * max(1.0, abs(q.max()))).nonzero()[0]
        return ties[int(rng.random() * len(ties))]

    for episode in range(episodes):
        phi = phi_of(env.reset()[0])
        a = policy(w @ phi)
        over = False
        while not over:
            x, _, terminated, truncated, _ = env.step(a)
            over = terminated or truncated
            r, discount = float(terminated), float(not terminated)
            phi_next = phi_of(x)
            q_next = w @ phi_next
            a_next = policy(q_next)
            bonus = 0.0
            if agent.reward in ("sf", "sf-pf"):
                error = td_sf(Psi, phi, a, phi_next, a_next, agent.gamma_sr, discount)
                Psi[a] += np.outer(agent.eta * error, phi)
                bonus = 1 / np.abs(Psi[a] @ phi).sum()
            if agent.reward == "sf-pf":
                Xi += np.outer(agent.eta_pr * td_pf(Xi, phi, phi_next, agent.gamma_pr), phi_next)
                bonus = 1 / np.abs(Xi @ phi_next).sum() - bonus
            error = r + agent.beta * bonus + agent.gamma * discount * q_next.max() - w[a] @ phi
            w[a] += agent.alpha * error * phi
            phi, a = phi_next, a_next
            lengths[episode] += 1
    return lengths
