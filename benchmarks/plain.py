"""SARSA-SRR as a careful user would write it with NumPy: the baseline that the engine is measured against."""

import numpy as np

from spie import MDP, Sarsa


class Env:
    """The least that behaves like a Gymnasium environment: no checks, no info."""

    def __init__(self, mdp: MDP, rng: np.random.Generator) -> None:
        self.next, self.reward, self.start, self.rng = mdp.next, mdp.reward[0], mdp.start, rng
        self.cumulative = mdp.prob.cumsum(axis=2)[:, :, :-1]  # none where every action has one successor

    def reset(self) -> int:
        self.s = int(self.rng.choice(len(self.start), p=self.start))
        return self.s

    def step(self, a: int) -> tuple[int, float]:
        s, k = self.s, 0
        if self.cumulative.size:
            k = self.cumulative[s, a].searchsorted(self.rng.random(), side="right")
        self.s = self.next[s, a, k]
        return self.s, self.reward[s, a, k]


def sarsa_srr(agent: Sarsa, mdp: MDP, steps: int, seed: int) -> tuple[float, np.ndarray]:
    """Algorithm 1 with the settings of `agent` on a task without end; total reward and visits [S]."""
    rng = np.random.default_rng(seed)
    env, S, A = Env(mdp, rng), mdp.n_states, mdp.n_actions
    Q, M, visits, total = np.zeros((S, A)), np.zeros((S, S)), np.zeros(S, int), 0.0

    def policy(s: int) -> int:
        if rng.random() < agent.epsilon:
            return int(rng.random() * A)
        best = Q[s].max()
        ties = (Q[s] >= best - agent.tie_tolerance * max(1.0, abs(best))).nonzero()[0]
        return ties[int(rng.random() * len(ties))]

    s = env.reset()
    visits[s] += 1
    for _ in range(steps):
        a = policy(s)
        s_next, r = env.step(a)
        M[s] += agent.eta * (agent.gamma_sr * M[s_next] - M[s])
        M[s, s] += agent.eta
        bonus = M[s, s_next] - M[:, s_next].sum()
        a_next = policy(s_next)
        Q[s, a] += agent.alpha * (r + agent.beta * bonus + agent.gamma * Q[s_next, a_next] - Q[s, a])
        visits[s_next] += 1
        total += r
        s = s_next
    return total, visits
