"""The planner in plain Python, state by state, as its settings describe it: what the compiled one must equal."""

import math
from collections import defaultdict, deque
from types import SimpleNamespace

import numpy as np

from reference import Env, stream

KINDS = 8


class Mind:
    """What the planner knows."""

    def __init__(self, agent, mdp):
        self.agent, self.mdp, S = agent, mdp, mdp.n_states
        self.outcomes = defaultdict(dict)  # by (s, a): s' -> [count, last reward], oldest first
        self.entries = defaultdict(list)  # by s': (s, a) that led there, oldest first
        self.new = defaultdict(float)  # by ("action" or "state", which, kind): repeated tries that were discoveries
        self.sum = defaultdict(float)  # and the sum of 1 / n over all of them; by ("pair", (s, a), kind) likewise
        self.seen, self.r_most = set(), -math.inf  # states left or entered; the largest reward
        self.ends, self.V, self.Q = set(), {}, {}
        self.queue = deque()
        self.r_mean = self.size_mean = self.weight = self.r_best = self.size_best = 0.0
        self.column, self.M = np.zeros(S), np.zeros((S, S))
        self.eta_pr = agent.eta if agent.eta_pr is None else agent.eta_pr
        self.gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
        self.cost_most = {"count": 1.0, "sr-column": agent.eta}.get(agent.cost, self.eta_pr)
        self.last = None

    @property
    def unit(self):
        return self.size_best if self.size_best > 0 else self.agent.unit

    @property
    def top(self):
        agent = self.agent
        return (agent.optimism * self.r_best + agent.curiosity * self.unit) / (1 - agent.gamma)

    def tries(self, s, a):
        return sum(count for count, _ in self.outcomes[s, a].values())

    def left(self, s):
        return any(self.tries(s, a) for a in range(self.mdp.n_actions))

    def value(self, s):
        return 0.0 if s in self.ends else self.V[s] if self.left(s) else self.top

    def unseen(self, s, a):
        n = self.tries(s, a)
        if n == 0:
            return 1.0
        kind = min(len(self.outcomes[s, a]), KINDS)
        own = self.sum["pair", (s, a), kind]
        theta = (self.agent.prior + (self.new["action", a, kind] + self.new["state", s, kind])) / (
            1 + ((self.sum["action", a, kind] - own) + (self.sum["state", s, kind] - own))
        )
        return theta / (theta + n)

    def back_up(self, s):
        before = self.value(s)
        for a in range(self.mdp.n_actions):
            q = self.top
            if not self.mdp.available[s, a]:
                q = -math.inf
            elif n := self.tries(s, a):
                total = 0.0
                for s2, (count, r) in reversed(self.outcomes[s, a].items()):
                    worth = r + self.agent.gamma * self.value(s2)
                    if self.agent.cost != "none":
                        worth -= self.agent.cost_weight * self.unit * (self.column[s2] / self.cost_most)
                    total += count * worth
                x = self.unseen(s, a)
                q = x * self.top + (1 - x) * (total / n)
            self.Q[s, a] = q
        self.V[s] = max(self.Q[s, a] for a in range(self.mdp.n_actions))
        if abs(self.value(s) - before) > self.agent.tolerance * self.top:
            self.queue_predecessors(s)

    def queue_predecessors(self, s):
        for before, _ in reversed(self.entries[s]):
            if before not in self.queue:
                self.queue.append(before)

    def choose(self, s, word):
        self.back_up(s)
        actions = np.flatnonzero(self.mdp.available[s])
        if word >> 32 >= round(self.agent.epsilon * 2**32):
            Q = np.array([self.Q[s, a] for a in actions])
            actions = actions[Q.max() - self.agent.tie_tolerance * max(1, abs(Q.max())) <= Q]
            if self.last in actions:
                return self.last
        return int(actions[(word % 2**32) * len(actions) >> 32])

    def learn(self, s, a, r, s2, done):
        gamma = self.agent.gamma
        self.r_mean = gamma * self.r_mean + (1 - gamma) * r
        self.size_mean = gamma * self.size_mean + (1 - gamma) * abs(r)
        self.weight = gamma * self.weight + (1 - gamma)
        self.r_best = max(self.r_best, self.r_mean / self.weight)
        self.size_best = max(self.size_best, self.size_mean / self.weight)
        self.last = a if s2 != s else None
        if not self.left(s):
            self.V[s] = self.top
        before = self.value(s2)
        (self.ends.add if done else self.ends.discard)(s2)
        if self.value(s2) != before:
            self.queue_predecessors(s2)
        seen, n = self.outcomes[s, a], self.tries(s, a)
        if n:
            for which in (("action", a), ("state", s), ("pair", (s, a))):
                self.sum[*which, min(len(seen), KINDS)] += 1 / n
                self.new[*which, min(len(seen), KINDS)] += s2 not in seen and (s2 not in self.seen or r > self.r_most)
        self.seen |= {s, s2}
        self.r_most = max(self.r_most, r)
        if s2 not in seen:
            self.entries[s2].append((s, a))
        seen[s2] = [seen.get(s2, [0])[0] + 1, r]
        self.see_column(s, s2, done)
        self.back_up(s)
        for _ in range(min(self.agent.backups, 10**9)):
            if not self.queue:
                break
            self.back_up(self.queue.popleft())

    def see_column(self, s, s2, done):
        cost, column = self.agent.cost, self.column
        if cost == "count":
            column[s2] += 1
        elif cost == "pr-column":
            column[s2] += self.eta_pr * (1 + self.gamma_pr * column[s] - column[s2])
        elif cost == "sr-column":
            one = np.eye(len(column))[s]
            change = self.agent.eta * (one + self.agent.gamma_sr * (1 - done) * self.M[s2] - self.M[s])
            self.M[s] += change
            column += change
        if cost != "none":
            self.cost_most = max(self.cost_most, column[s if cost == "sr-column" else s2])


def reference_planner(agent, mdp, steps, seed, episodes=None):
    """Run `agent` (settings of Planner) on one seed; with `episodes`, that many, each truncated after `steps`."""
    word = stream(seed)
    mind, env, path = Mind(agent, mdp), Env(mdp, word), []
    s = env.reset()
    while True:
        t = env.t + 1
        a = mind.choose(s, word(4 * t))
        bonus = mind.unseen(s, a)
        s2, r, done = env.step(a)
        mind.learn(s, a, r, s2, done)
        path.append((s, a, s2, r, bonus))
        s = s2
        cut = episodes is not None and env.lengths[-1] == steps
        if len(env.lengths) == episodes and (done or cut):
            break
        if done or cut:
            s, mind.last = env.reset(), None
        if t == steps and episodes is None:
            break
    Q = np.full((mdp.n_states, mdp.n_actions), mind.top)
    for (state, a), q in mind.Q.items():
        if mind.left(state) and q > -math.inf:
            Q[state, a] = q
    states, actions, next_states, rewards, bonuses = map(np.array, zip(*path, strict=True))
    return SimpleNamespace(
        states=states, actions=actions, next_states=next_states, rewards=rewards, bonuses=bonuses, Q=Q, mind=mind,
        lengths=env.lengths,
    )  # fmt: skip
