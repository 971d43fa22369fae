"""Algorithm 1 in plain NumPy, as the paper prints it: what the compiled engine must equal step for step."""

from types import SimpleNamespace

import numpy as np

import spie
from spie.rewards import get_reward, quantities


def stream(seed):
    """The random words of a seed, by number: SplitMix64 in whole numbers of Python."""
    wrap = 2**64 - 1

    def mix(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & wrap
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & wrap
        return word ^ (word >> 31)

    golden = 0x9E3779B97F4A7C15
    word = (2 * seed + 1) * golden & wrap
    key, stride = mix(word), mix(word + golden & wrap) | 1
    if (stride ^ stride >> 1).bit_count() < 24:
        stride ^= 0xAAAAAAAAAAAAAAAA
    return lambda i: mix(key + i * stride & wrap)


def sample(prob, word):
    """The index whose share of [0, 1) holds word / 2^64."""
    return int(sum(word >= int(p * 2.0**64) for p in np.cumsum(prob)[:-1]))


class Env:
    """An MDP as Algorithm 1 calls it. Word 4t + 1 decides where step t leads, 4t + 3 where an episode then begins."""

    def __init__(self, mdp, word):
        self.mdp, self.word, self.t, self.lengths = mdp, word, 0, []

    def reset(self):
        self.lengths.append(0)  # of the episodes so far; the goal moves after every so many
        period = self.mdp.episodes_per_phase
        self.phase = (len(self.lengths) - 1) // period % self.mdp.n_phases if period else 0
        self.s = sample(self.mdp.start, self.word(4 * self.t + 3))
        return self.s

    def step(self, a):
        self.t += 1
        self.lengths[-1] += 1
        at = self.s, a, sample(self.mdp.prob[self.s, a], self.word(4 * self.t + 1))
        self.s = self.mdp.next[at]
        return self.s, self.mdp.reward[(self.phase, *at)], self.mdp.terminal[self.phase, self.s]


def epsilon_greedy(agent, Q, available, word):
    """An action of a state: the upper half of the word decides whether to explore, the lower half which it is."""
    actions = np.flatnonzero(available)
    if word >> 32 >= round(agent.epsilon * 2**32):
        best = Q[actions].max()
        if agent.ties == "random":
            actions = actions[Q[actions] >= best - agent.tie_tolerance * max(1, abs(best))]
        else:
            actions = actions[Q[actions] == best][:1]
    return actions[(word % 2**32) * len(actions) >> 32]


def closed_forms(agent, mdp, phase, gamma_pr):
    P, terminal = mdp.transition(phase=phase), mdp.terminal[phase]
    return spie.sr(P, agent.gamma_sr, terminal), spie.fr(P, agent.gamma_sr, terminal), spie.pr(P, gamma_pr, terminal)


def reference(agent, mdp, steps, seed, episodes=None, words=stream):
    """Run `agent` (settings of Sarsa) on one seed; with `episodes`, so many of them, each cut off after `steps`."""
    reward, word, S = get_reward(agent.reward), words(seed), mdp.n_states
    eta_pr = agent.eta if agent.eta_pr is None else agent.eta_pr
    gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
    fixed = [] if agent.learned else [closed_forms(agent, mdp, phase, gamma_pr) for phase in range(mdp.n_phases)]
    one = np.eye(S)  # one[s] is 1(s)
    path = []

    def r_int():
        of = quantities(M, F, N, visits, s, s2)
        return reward.function(*(of[need] for need in reward.needs))

    env = Env(mdp, word)
    s = env.reset()
    M, F, N = (agent.m0 * one for _ in range(3))
    Q = np.full((S, mdp.n_actions), agent.q0)
    visits = np.eye(S, dtype=int)[s]
    a2 = None
    while True:
        t = env.t + 1
        a = epsilon_greedy(agent, Q[s], mdp.available[s], word(4 * t))
        if agent.next_action == "carry" and a2 is not None:
            a = a2
        if not agent.learned:
            M, F, N = fixed[env.phase]
        s2, r, done = env.step(a)
        visits[s2] += 1
        if agent.bonus_from == "previous":
            bonus = r_int()
        if agent.learned:
            M[s] += agent.eta * (one[s] + agent.gamma_sr * (1 - done) * M[s2] - M[s])
            F[s] += agent.eta * (one[s] + agent.gamma_sr * (1 - done) * (1 - one[s]) * F[s2] - F[s])
            N[:, s2] += eta_pr * (one[s2] + gamma_pr * N[:, s] - N[:, s2])
        if agent.bonus_from == "updated":
            bonus = r_int()
        a2 = epsilon_greedy(agent, Q[s2], mdp.available[s2], word(4 * t + 2))
        Q[s, a] += agent.alpha * (r + agent.beta * bonus + agent.gamma * (1 - done) * Q[s2, a2] - Q[s, a])
        path.append((s, a, s2, r, bonus))
        s = s2

        cut = episodes is not None and env.lengths[-1] == steps
        if len(env.lengths) == episodes and (done or cut):
            break
        if done or cut:
            s, a2 = env.reset(), None
            visits[s] += 1
        if t == steps and episodes is None:
            break
    states, actions, next_states, rewards, bonuses = map(np.array, zip(*path, strict=True))
    return SimpleNamespace(
        states=states, actions=actions, next_states=next_states, rewards=rewards, bonuses=bonuses,
        Q=Q, M=M, F=F, N=N, visits=visits, lengths=env.lengths,
    )  # fmt: skip
