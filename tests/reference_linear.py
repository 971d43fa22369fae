"""Linear Q-learning with SF and PF in plain NumPy: what the compiled engine must equal."""

from types import SimpleNamespace

import numpy as np

from reference import stream
from spie.features import td_pf, td_sf
from spie.rewards import get_reward


def start(task, word, t):
    """Words 8t + 1, 8t + 2, ... draw the numbers of the state in which an episode begins."""
    unit = np.array([(word(8 * t + 1 + i) >> 11) / 2**53 for i in range(len(task.start_low))])
    return np.array(task.start_low) + unit * (np.array(task.start_high) - np.array(task.start_low))


def observe(task, x):
    observation = np.empty(len(task.low))
    task.observe(x, observation)
    return observation


def choose(agent, q, word, epsilon):
    """The upper half of the word decides whether to explore, the lower half which action it is."""
    actions = np.arange(len(q))
    if word >> 32 >= round(epsilon * 2**32):
        actions = actions[q >= q.max() - agent.tie_tolerance * max(1, abs(q.max()))]
    return actions[(word % 2**32) * len(actions) >> 32]


class Counts:
    """Pseudo-counts on features and the potential, from whole matrices, each time from the start."""

    def __init__(self, agent, A):
        self.agent, self.A, self.bonuses, self.steps = agent, A, [], 0
        self.forget()

    def forget(self):
        d = self.agent.dimension
        self.Lambda, self.G, self.paid, self.u = np.eye(d), np.eye(d), np.zeros(d), np.zeros(d)
        self.tries = np.stack([np.eye(d)] * self.A)

    def see(self, phi):
        """1 + how often phi was seen before; from now on once more."""
        length = phi @ np.linalg.solve(self.Lambda, phi)
        self.Lambda += np.outer(phi, phi)
        return 1 / length

    def hope(self, q, phi):
        """Q(s, .) + C / (1 + n(s, .))^2"""
        rare = np.array([phi @ np.linalg.solve(Lambda, phi) for Lambda in self.tries])
        return q + self.agent.optimism * rare**2

    def standardised(self, bonus):
        self.bonuses.append(bonus)
        spread = np.ptp(self.bonuses) > 0
        return ((bonus - np.mean(self.bonuses)) / np.std(self.bonuses) if spread else 0.0) - 1

    def moved_back(self, phi, phi_next, paid, done):
        """gamma U(s') - U(s)"""
        gain = self.agent.gamma * (1 - done) * self.u @ phi_next - self.u @ phi
        self.G += np.outer(phi_next - self.agent.gamma_sr * (1 - done) * phi, phi_next)
        self.paid += paid * phi
        self.steps += 1
        if self.steps % 64 == 0:
            self.u = np.linalg.solve(self.G, self.paid)
        return gain


def reference(agent, task, cap, seed, episodes):
    """Run `agent` (settings of LinearQ) on one seed."""
    reward, word, phi_of = get_reward(agent.reward), stream(seed), agent.features(task, seed)
    A, d, cells = task.n_actions, agent.dimension, agent.cells
    w, Psi, Xi = np.zeros((A, d)), np.zeros((A, d, d)), np.zeros((d, d))
    visits = np.zeros((cells,) * len(task.low), int)
    counts = Counts(agent, A)
    lengths, rewards, bonuses, terminated, t = [], [], [], [], 0

    def cell(observation):
        inside = (observation - np.array(task.low)) / (np.array(task.high) - np.array(task.low)) * cells
        return tuple(np.clip(inside, 0, cells - 1).astype(int))

    for _ in range(episodes):
        if agent.episodic:
            counts.forget()
            for array in (Psi, Xi, visits):
                array[:] = 0
        x = start(task, word, t)
        phi = phi_of(observe(task, x))
        visits[cell(observe(task, x))] += 1
        counts.see(phi)
        counts.G += np.outer(phi, phi)
        a = choose(agent, counts.hope(w @ phi, phi), word(8 * t), agent.epsilon)
        length, total, total_bonus, done = 0, 0.0, 0.0, False
        while not done and length < cap:
            r, done = task.step(x, a)
            t, length, total = t + 1, length + 1, total + r
            phi_next = phi_of(observe(task, x))
            visits[cell(observe(task, x))] += 1
            counts.tries[a] += np.outer(phi, phi)
            q_next = counts.hope(w @ phi_next, phi_next)
            a_next = choose(agent, q_next, word(8 * t), agent.epsilon)
            ahead = a_next if agent.sf_target == "sarsa" else choose(agent, q_next, word(8 * t), 0.0)
            error = td_sf(Psi, phi, a, phi_next, ahead, agent.gamma_sr, 1.0 - done)
            Psi[a] += agent.eta * np.outer(error, phi)
            Xi += agent.eta_pr * np.outer(td_pf(Xi, phi, phi_next, agent.gamma_pr), phi_next)
            of = {"psi_norm": np.abs(Psi[a] @ phi).sum(), "xi_norm_next": np.abs(Xi @ phi_next).sum()}
            of |= {"phi_norm_next": np.abs(phi_next).sum(), "visits_next": visits[cell(observe(task, x))]}
            if agent.count == "features":
                of["visits_next"] = counts.see(phi_next)
            bonus = reward.function(*(of[need] for need in reward.needs))
            bonus = counts.standardised(bonus) if agent.standardised else bonus
            paid = r + agent.beta * bonus
            paid += counts.moved_back(phi, phi_next, paid, done) if agent.potential else 0.0
            target = paid + agent.gamma * (1 - done) * q_next.max()
            w[a] += agent.alpha * (target - w[a] @ phi) * phi
            total_bonus += bonus
            phi, a = phi_next, a_next
        t += 1
        lengths.append(length)
        rewards.append(total)
        bonuses.append(total_bonus)
        terminated.append(done)
    return SimpleNamespace(
        lengths=lengths, rewards=rewards, bonuses=bonuses, terminated=terminated, Q=w, Psi=Psi, Xi=Xi
    )
