"""Walkers that know the value of places, in plain NumPy: what `spie/behaviour/state_values.py` must equal.

The SR agent keeps its whole matrix M here and reads M[s', goal]; the planner looks for the shortest way breadth first,
in what it has seen; the bee-line measures the distance.
"""

import numpy as np


def distances(goal, ways):
    """The number of moves to the goal from each place that has a way there, breadth first; ways: {place: set}."""
    distance, front = {goal: 0}, [goal]
    for s in front:
        for before, leads in ways.items():
            if s in leads and before not in distance:
                distance[before] = distance[s] + 1
                front.append(before)
    return distance


class Values:
    """The value of a place to a walker, and what it learns on the way."""

    def __init__(self, walker, paths):
        self.walker, self.goal, first = walker, paths.goal, paths.mazes[0]
        S = first.n_states
        self.one = np.eye(S)
        chain = paths.start_matrix
        if chain is None:  # a random walk in the first maze; after its end the next trial starts
            chain = np.zeros((S, S))
            for s in range(S):
                for a in np.flatnonzero(first.available[s]):
                    chain[s, first.next[s, a, 0]] += 1 / first.available[s].sum()
            chain[first.terminal[0]] = first.start
        self.M = np.linalg.inv(self.one - walker.gamma * chain)
        self.seen = {s: open_ways(first, s) for s in range(S)}
        self.cells = first.cells

    def of(self, place):
        if self.walker.start == "successors":
            return self.M[place, self.goal]
        if self.walker.start == "planned":
            distance = distances(self.goal, self.seen)
            return self.walker.gamma ** distance[place] if place in distance else 0.0
        return -np.linalg.norm(self.cells[place] - self.cells[self.goal])

    def look_around(self, maze, s):
        self.seen[s] = open_ways(maze, s)

    def learn(self, s, s_next):
        walker = self.walker
        self.M[s] += walker.alpha * (self.one[s] + walker.gamma * self.M[s_next] - self.M[s])


def open_ways(maze, s):
    return set(maze.next[s, maze.available[s], 0].tolist())


def reference_places(walker, paths, subject):
    """log p of every move of a subject, and how many different plans or values of its neighbours there were."""
    values, out, opinions = Values(walker, paths), [], set()
    for trial in paths.of(subject):
        maze, before, move, action = paths.mazes[trial.maze], None, None, None
        for s, a, s_next in zip(trial.states.tolist(), trial.actions.tolist(), trial.states[1:].tolist(), strict=False):
            values.look_around(maze, s)
            x = {}
            for b in np.flatnonzero(maze.available[s]):
                to = int(maze.next[s, b, 0])
                x[b] = walker.inverse_temperature * values.of(to)
                x[b] += walker.stickiness * (b == action) + walker.turn_back * (to == before)
                if maze.cells is not None:
                    x[b] += walker.heading * (tuple(maze.cells[to] - maze.cells[s]) == move)
            opinions.add((s, *np.round(list(x.values()), 9)))
            p = np.exp(np.array(list(x.values())) - max(x.values()))
            p = (1 - walker.lapse) * p / p.sum() + walker.lapse / len(p)
            leads = {b for b in x if maze.next[s, b, 0] == s_next} if a < 0 else {a}  # not known: all that lead there
            out.append(np.log(sum(q for b, q in zip(x, p, strict=True) if b in leads)))
            values.learn(s, s_next)
            action = a if a >= 0 else min(leads)
            if s_next != s:
                before = s
                move = None if maze.cells is None else tuple(maze.cells[s_next] - maze.cells[s])
    return np.array(out), len(opinions)
