"""Algorithm 1 in plain NumPy, as the paper prints it: what the compiled engine must equal step for step."""

import math
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
        self.lengths.append(0)  # of the episodes so far; the goal moves after a number of them
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


def exponential(x):
    """exp(x) as spie/engine/exponential.py describes it, in Python's own numbers."""
    if x < -708:
        return 0.0
    k = math.floor(min(x, 708.0) * 1.4426950408889634 + 0.5)
    r = (min(x, 708.0) - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    p = 1 / math.factorial(13)
    for n in range(12, -1, -1):
        p = p * r + 1 / math.factorial(n)
    return p * math.ldexp(1.0, k)


class Policy:
    """How an agent chooses in one MDP, and what it remembers for that."""

    def __init__(self, agent, mdp):
        self.agent, self.mdp = agent, mdp
        self.H = np.zeros((mdp.n_states, mdp.n_actions))
        self.n = np.zeros((mdp.n_states, mdp.n_actions))
        self.led, self.columns = {}, lambda s: 0.0  # by (s, a): where it led last; the pseudo-count of a state
        self.sizes, self.unit = [], 0.01  # |r| so far; the largest of their averages
        self.reset(mdp)

    def reset(self, mdp):
        """A new episode, perhaps in another maze."""
        self.mdp, self.last_action, self.left, self.direction = mdp, None, None, None

    def optimistic(self, Q):
        """Q with what is added to actions seldom tried."""
        if not self.agent.optimism:
            return Q
        n = self.n
        if self.agent.count != "visits":
            n = np.zeros_like(n)
            for (s, a), s2 in self.led.items():
                n[s, a] = self.columns(s2)
        return Q + self.agent.optimism * self.unit / (1 - self.agent.gamma) / (n + 1) ** 2

    def paid(self, s, a, r):
        """The last |r| weighs most, each before it gamma times less."""
        self.n[s, a] += 1
        if self.agent.optimism:
            self.sizes.append(abs(r))
            weights = self.agent.gamma ** np.arange(len(self.sizes))[::-1]
            average = weights @ self.sizes / weights.sum()
            self.unit = average if not any(self.sizes[:-1]) and average else max(self.unit, average)

    def moved(self, s, a, s2):
        self.last_action, self.led[s, a] = a, s2
        self.H[s] += self.agent.habit_rate * (np.eye(len(self.H[s]))[a] - self.H[s])
        if s2 != s:
            self.left = s
            if self.mdp.cells is not None:
                self.direction = tuple(self.mdp.cells[s2] - self.mdp.cells[s])

    def leads(self, s, a):
        return self.mdp.next[s, a, self.mdp.prob[s, a].argmax()]

    def is_straight_on(self, s, a):
        if self.mdp.cells is None:
            return False
        return tuple(self.mdp.cells[self.leads(s, a)] - self.mdp.cells[s]) == self.direction

    def preferences(self, Q, s):
        """Of each available action."""
        agent, Q = self.agent, self.optimistic(Q)
        x = {}
        for a in np.flatnonzero(self.mdp.available[s]):
            x[a] = Q[s, a] * (agent.inverse_temperature if agent.policy == "softmax" else 1.0)
            x[a] += agent.stickiness * (a == self.last_action)
            x[a] += agent.heading * self.is_straight_on(s, a)
            x[a] += agent.turn_back * (self.leads(s, a) == self.left)
            x[a] += agent.habit * self.H[s, a]
        return x

    def greedy(self, Q, s):
        """The actions that are best, up to rounding."""
        x = self.preferences(Q, s)
        best = max(x.values())
        if self.agent.ties == "random":
            return [a for a in x if x[a] >= best - self.agent.tie_tolerance * max(1, abs(best))]
        return [a for a in x if x[a] == best][:1]

    def softmax(self, Q, s):
        """Weights of all actions, which are probabilities once divided by their sum."""
        x = self.preferences(Q, s)
        w = {a: exponential(x[a] - max(x.values())) for a in x}
        total = sum(w.values())
        lapse = self.agent.lapse
        return {a: (1.0 - lapse) * w[a] + lapse * total / len(w) for a in w} if lapse else w

    def probabilities(self, Q, s):
        """Of all actions [A]."""
        p = np.zeros(self.mdp.n_actions)
        if self.agent.policy == "softmax":
            w = self.softmax(Q, s)
            for a in w:
                p[a] = w[a] / sum(w.values())
            return p
        epsilon = round(self.agent.epsilon * 2**32) / 2**32
        actions, greedy = np.flatnonzero(self.mdp.available[s]), self.greedy(Q, s)
        p[actions] = epsilon / len(actions)
        p[greedy] += (1 - epsilon) / len(greedy)
        return p

    def draw(self, Q, s, word):
        """An action. Epsilon-greedy: the upper half of the word decides whether to explore, the lower half which."""
        if self.agent.policy == "softmax":
            w = self.softmax(Q, s)
            left, reached = (word >> 11) * 2.0**-53 * sum(w.values()), 0.0
            for a in w:
                reached += w[a]
                if left < reached:
                    return a
        explores = word >> 32 < round(self.agent.epsilon * 2**32)
        actions = np.flatnonzero(self.mdp.available[s]) if explores else self.greedy(Q, s)
        return actions[(word % 2**32) * len(actions) >> 32]

    def log_p(self, Q, s, a, s2):
        """Of a recorded action, or of the move where a is -1."""
        p = self.probabilities(Q, s)
        if a >= 0:
            return math.log(p[a])
        return math.log(sum(p[b] * self.mdp.prob[s, b][self.mdp.next[s, b] == s2].sum() for b in range(len(p))))


class Payment:
    """What is paid for a bonus: spie/agents/sarsa/payment.py has the formulae."""

    def __init__(self, agent, S):
        self.agent, self.bonuses, self.t = agent, [], 0
        self.n, self.p, self.X, self.U = np.zeros(S), np.zeros(S), np.zeros((S, S)), np.zeros(S)

    def of(self, bonus):
        if not self.agent.standardised:
            return bonus
        self.bonuses.append(bonus)
        deviation = np.std(self.bonuses)
        return ((bonus - np.mean(self.bonuses)) / deviation if np.ptp(self.bonuses) > 0 else 0.0) - 1

    def moved_back(self, s, s2, paid, done):
        """gamma U[s'] - U[s]"""
        if not self.agent.potential:
            return 0.0
        gain = self.agent.gamma * (1 - done) * self.U[s2] - self.U[s]
        self.n[s] += 1
        self.p[s] += paid
        self.X[s, s2] += not done
        self.t += 1
        if self.t % 64 == 0:
            for x in [*range(len(self.U)), *reversed(range(len(self.U)))]:
                self.U[x] = (self.p[x] + self.agent.gamma * self.X[x] @ self.U) / (1 + self.n[x])
        return gain


class Recorded:
    """A recording in place of an MDP: trials of (states, actions, rewards or None, the MDP they happened in)."""

    def __init__(self, trials):
        self.trials, self.k, self.t, self.lengths = trials, -1, 0, []

    def reset(self):
        self.k += 1
        self.states, self.actions, self.rewards, self.mdp = self.trials[self.k]
        self.lengths.append(0)
        period = self.mdp.episodes_per_phase
        self.phase = self.k // period % self.mdp.n_phases if period else 0
        return self.states[0]

    def recorded(self, i):
        """Action and next state of step i of this trial, -1 if the action is not known."""
        return self.actions[i], self.states[i + 1]

    def taken(self, i):
        """The action, or the one that is most likely to have made the move."""
        a, s, s2 = self.actions[i], self.states[i], self.states[i + 1]
        chance = [self.mdp.prob[s, b][self.mdp.next[s, b] == s2].sum() for b in range(self.mdp.n_actions)]
        return a if a >= 0 else int(np.argmax(chance))

    def step(self, a):
        i = self.lengths[-1]
        s, s2 = self.states[i], self.states[i + 1]
        self.t += 1
        self.lengths[-1] += 1
        k = np.flatnonzero((self.mdp.next[s, a] == s2) & (self.mdp.prob[s, a] > 0))[0]
        r = self.mdp.reward[self.phase, s, a, k] if self.rewards is None else self.rewards[i]
        return s2, r, self.mdp.terminal[self.phase, s2]

    @property
    def over(self):
        return self.lengths[-1] == len(self.actions)


def closed_forms(agent, mdp, phase, gamma_pr):
    P, terminal = mdp.transition(phase=phase), mdp.terminal[phase]
    return spie.sr(P, agent.gamma_sr, terminal), spie.fr(P, agent.gamma_sr, terminal), spie.pr(P, gamma_pr, terminal)


def reference(agent, mdp, steps, seed, episodes=None, words=stream, along=None, formula=None):
    """Run `agent` (settings of Sarsa) on one seed; with `episodes`, that many of them, each truncated after `steps`.

    formula: the bonus of (M, F, N, visits, s, s', the states left in this episode); None: the registered function.

    along: trials of one subject to follow, as `Recorded` takes them. `log_p` is that of every action, or of the move
    where it is not known, at the moment of the choice.
    """
    reward, word, S = get_reward(agent.reward), words(seed), mdp.n_states
    eta_pr = agent.eta if agent.eta_pr is None else agent.eta_pr
    gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
    fixed = [] if agent.learned else [closed_forms(agent, mdp, phase, gamma_pr) for phase in range(mdp.n_phases)]
    one = np.eye(S)  # one[s] is 1(s)
    path, log_p = [], []

    def r_int():
        if formula is not None:
            return formula(M, F, N, visits, s, s2, walk)
        of = quantities(M, F, N, visits, s, s2) | {"F_episode_next": max(F[x, s2] for x in walk)}
        return reward.function(*(of[need] for need in reward.needs))

    env = Env(mdp, word) if along is None else Recorded(along)
    policy = Policy(agent, mdp)
    s = env.reset()
    policy.reset(env.mdp)
    M, F, N = (agent.m0 * one for _ in range(3))
    Q = np.full((S, mdp.n_actions), agent.q0)
    visits = np.eye(S, dtype=int)[s]
    policy.columns = lambda s: M[:, s].sum() / agent.eta if agent.count == "sr-column" else N[:, s].sum() / eta_pr
    payment, walk = Payment(agent, S), set()
    a2 = log_p2 = None
    carries = agent.next_action == "carry" or (
        along is not None and agent.target == "sarsa"
    )  # the a' of a recording is what was done next
    while True:
        t, i = env.t + 1, env.lengths[-1]
        a = env.taken(i) if along else policy.draw(Q, s, word(4 * t))
        if carries and a2 is not None:
            a = a2
        log_p.append(log_p2 if carries and i else policy.log_p(Q, s, *(env.recorded(i) if along else (a, None))))
        if not agent.learned:
            M, F, N = fixed[env.phase]
        s2, r, done = env.step(a)
        walk.add(s)
        policy.moved(s, a, s2)
        policy.paid(s, a, r)
        visits[s2] += 1
        if agent.bonus_from == "previous":
            bonus = r_int()
        if agent.learned:
            M[s] += agent.eta * (one[s] + agent.gamma_sr * (1 - done) * M[s2] - M[s])
            F[s] += agent.eta * (one[s] + agent.gamma_sr * (1 - done) * (1 - one[s]) * F[s2] - F[s])
            N[:, s2] += eta_pr * (one[s2] + gamma_pr * N[:, s] - N[:, s2])
            if agent.optimism and agent.count == "sr-column" and done:
                M[s2] += agent.eta * (one[s2] - M[s2])
        if agent.bonus_from == "updated":
            bonus = r_int()
        if along is None:
            a2 = policy.draw(Q, s2, word(4 * t + 2))
            log_p2, ahead = policy.log_p(Q, s2, a2, None), policy.optimistic(Q)[s2, a2]
        elif not env.over:
            a2 = env.taken(i + 1)
            log_p2, ahead = policy.log_p(Q, s2, *env.recorded(i + 1)), policy.optimistic(Q)[s2, a2]
        else:  # what would have come next is not known: the mean under the policy
            a2, ahead = None, policy.probabilities(Q, s2) @ policy.optimistic(Q)[s2]
        if agent.target != "sarsa":
            seen = policy.optimistic(Q)[s2]
            ahead = (
                policy.probabilities(Q, s2) @ seen if agent.target == "expected" else seen[env.mdp.available[s2]].max()
            )
        paid = r + agent.beta * payment.of(bonus)
        gain = payment.moved_back(s, s2, paid, done)
        Q[s, a] += agent.alpha * (paid + agent.gamma * (1 - done) * ahead - Q[s, a] + gain)
        path.append((s, a, s2, r, bonus))
        s = s2

        cut = env.over if along else episodes is not None and env.lengths[-1] == steps
        if len(env.lengths) == (len(along) if along else episodes) and (done or cut):
            break
        if done or cut:
            s, a2, walk = env.reset(), None, set()
            policy.reset(env.mdp)
            visits[s] += 1
        if t == steps and episodes is None and not along:
            break
    states, actions, next_states, rewards, bonuses = map(np.array, zip(*path, strict=True))
    return SimpleNamespace(
        states=states, actions=actions, next_states=next_states, rewards=rewards, bonuses=bonuses,
        log_p=np.array(log_p), Q=Q, M=M, F=F, N=N, visits=visits, lengths=env.lengths,
    )  # fmt: skip
