"""Algorithm 1 in plain NumPy, as the paper prints it: what the compiled engine must equal step for step."""

from types import SimpleNamespace

import numpy as np

import spie
from spie.rewards import get_reward

MASK = 2**64 - 1


def stream(seed):
    """The random words of a seed, by number, in whole numbers of Python."""

    def mix(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
        return word ^ (word >> 31)

    golden = 0x9E3779B97F4A7C15
    word = (2 * seed + 1) * golden & MASK
    key, stride = mix(word), mix((word + golden) & MASK) | 1
    if (stride ^ stride >> 1).bit_count() < 24:
        stride ^= 0xAAAAAAAAAAAAAAAA
    return lambda i: mix(key + i * stride & MASK)


def sample(prob, word):
    """The index whose share of [0, 1) holds word / 2^64."""
    return int(sum(word >= int(p * 2.0**64) for p in np.cumsum(prob)[:-1]))


def closed_forms(agent, mdp, phase):
    P, terminal = mdp.transition(phase=phase), mdp.terminal[phase]
    gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
    return spie.sr(P, agent.gamma_sr, terminal), spie.fr(P, agent.gamma_sr, terminal), spie.pr(P, gamma_pr, terminal)


def reference(agent, mdp, steps, seed, episodes=None):
    """Run `agent` (settings of Sarsa) on one seed."""
    S, A, word = mdp.n_states, mdp.n_actions, stream(seed)
    eta_pr = agent.eta if agent.eta_pr is None else agent.eta_pr
    gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
    reward = get_reward(agent.reward)
    Q, M, F, N = np.full((S, A), agent.q0), *(agent.m0 * np.eye(S) for _ in range(3))
    visits, path, lengths = np.zeros(S, int), [], []

    def policy(s, word):
        legal = np.flatnonzero(mdp.available[s])
        best = Q[s, legal].max()
        tolerance = agent.tie_tolerance * max(1, abs(best)) if agent.ties == "random" else 0
        greedy = legal[Q[s, legal] >= best - tolerance]
        if agent.ties == "first":
            greedy = greedy[:1]
        actions = legal if word >> 32 < round(agent.epsilon * 2**32) else greedy
        return actions[(word & 0xFFFFFFFF) * len(actions) >> 32]

    def bonus():
        names = {"M_next": M[s, s2], "M_row": M[s].sum(), "M_col_next": M[:, s2].sum(), "F_row": F[s].sum()}
        names |= {"F_row_next": F[s2].sum(), "N_next": N[s, s2], "N_col_next": N[:, s2].sum()}
        names |= {"visits": visits[s], "visits_next": visits[s2]}
        return reward.function(*(names[need] for need in reward.needs))

    t = length = phase = 0
    carried = None
    s = sample(mdp.start, word(3))
    visits[s] += 1
    while t < steps if episodes is None else len(lengths) < episodes:
        t, length = t + 1, length + 1
        a = policy(s, word(4 * t)) if carried is None else carried
        k = sample(mdp.prob[s, a], word(4 * t + 1))
        s2, r = mdp.next[s, a, k], mdp.reward[phase, s, a, k]
        done = mdp.terminal[phase, s2]
        visits[s2] += 1
        if not agent.learned:
            M, F, N = closed_forms(agent, mdp, phase)
        before = bonus() if agent.bonus_from == "previous" else None
        if agent.learned:
            M[s] += agent.eta * spie.td_sr(M, s, s2, agent.gamma_sr, 1 - done)
            F[s] += agent.eta * spie.td_fr(F, s, s2, agent.gamma_sr, 1 - done)
            N[:, s2] += eta_pr * spie.td_pr(N, s, s2, gamma_pr)
        intrinsic = bonus() if before is None else before
        a2 = policy(s2, word(4 * t + 2))
        Q[s, a] += agent.alpha * (r + agent.beta * intrinsic + agent.gamma * (1 - done) * Q[s2, a2] - Q[s, a])
        path.append((s, a, s2, r, intrinsic))
        s, carried = s2, a2 if agent.next_action == "carry" else None
        if done or (episodes is not None and length == steps):
            lengths.append(length)
            length, carried = 0, None
            phase = len(lengths) // mdp.episodes_per_phase % mdp.n_phases if mdp.episodes_per_phase else 0
            if episodes is None or len(lengths) < episodes:
                s = sample(mdp.start, word(4 * t + 3))
                visits[s] += 1
    states, actions, next_states, rewards, bonuses = map(np.array, zip(*path, strict=True))
    return SimpleNamespace(
        states=states, actions=actions, next_states=next_states, rewards=rewards, bonuses=bonuses,
        Q=Q, M=M, F=F, N=N, visits=visits, lengths=lengths,
    )  # fmt: skip
