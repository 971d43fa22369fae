"""The tasks on which exploration is judged, and how: each run gets a score between 0 and 1, by what could be had."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep
from spie.paper.chains import best_return
from spie.runs.run import Run
from spie.tasks import cliff_walking, deep_sea, frozen_lake, grid, random_maze, riverswim, sixarms, taxi
from spie.tasks.mdp import MDP
from spie.tasks.toy_text import distances
from spie.trace import Trace

Array = NDArray[Any]
ENOUGH = 0.95  # a seed has solved a task if its greedy policy reaches the goal with this chance
TIES = 1e-9  # relative difference below which values count as equal
AFTER = 5  # episodes that count as after a switch of goals
EACH = 30  # episodes before a goal moves


@dataclass(frozen=True)
class JudgeTask:
    """A task, how long an agent has, and by what it is scored.

    tour     states over steps to see 99 % of them
    speed    steps of the shortest way over mean steps of an episode
    reward   total reward over the most that can be expected
    cost     the least that an episode costs over what it cost, where the reward of an episode is `bound` less that
    """

    make: Callable[[], MDP]
    steps: int  # with episodes, the most that one may have
    episodes: int | None = None
    scored: Literal["tour", "speed", "reward", "cost"] = "reward"
    bound: float = 0.0
    evaluated: bool = False  # whether the greedy policy is evaluated, too
    moving: bool = False  # whether the goal moves

    @functools.cached_property
    def mdp(self) -> MDP:
        return self.make()

    @functools.cached_property
    def scale(self) -> float:
        """What a perfect agent gets of the measure, so that its score is 1."""
        if self.scored == "tour":
            return 1.0
        if self.scored == "speed":
            return 1 / shortest(self.mdp)
        if self.episodes is None:
            return best_return(self.mdp, self.steps)
        best = best_episode(self.mdp, self.steps)
        return self.bound - best if self.scored == "cost" else self.episodes * best

    @property
    def keep(self) -> Keep:
        return Keep(("Q",)) if self.evaluated else Keep()

    def run(self, name: str, agent: str, settings: Any, seeds: Any, **more: Any) -> Run:
        return Run(name, agent, settings, self.mdp, self.steps, seeds, self.episodes, self.keep, **more)

    def score(self, trace: Trace) -> Array:
        """Of each seed [seeds]."""
        if self.scored == "tour":
            values = self.mdp.n_states / trace.steps_to(0.99)
        elif self.scored == "speed":
            values = 1 / trace.episode_steps.mean(axis=1) / self.scale
        elif self.scored == "cost":
            assert self.episodes is not None
            cost = self.bound - trace.total_reward / self.episodes
            values = self.scale / np.maximum(cost, self.scale)  # chance may be kinder than what is expected
        else:
            values = trace.total_reward / self.scale
        return np.clip(values, 0, 1)


def _goal(name: str, task: str) -> JudgeTask:
    moving, make = task == "moving-goal", functools.partial(grid, name, task)
    return JudgeTask(make, 1000, 6 * EACH if moving else 100, "speed", moving=moving)


def _lake(size: str, slippery: bool, episodes: int) -> JudgeTask:
    make = functools.partial(frozen_lake, size, slippery)
    return JudgeTask(make, {"4x4": 100, "8x8": 200}[size], episodes, evaluated=True)


def _sea(depth: int, episodes: int) -> JudgeTask:
    return JudgeTask(functools.partial(deep_sea, depth), depth, episodes, evaluated=True)


def _cover(name: str) -> JudgeTask:
    return JudgeTask(functools.partial(grid, name), 8000, scored="tour")


def _maze(size: int, seed: int, one_way: float, episodes: int) -> JudgeTask:
    return JudgeTask(functools.partial(random_maze, size, seed, one_way), 1000, episodes, "speed", evaluated=True)


def long_river() -> MDP:
    """A chain of 9 states like RiverSwim, with other numbers: right leads on half of the time, the far end pays 1."""
    s = np.arange(9)
    successors, prob, reward = np.zeros((9, 2, 3), dtype=np.int32), np.zeros((9, 2, 3)), np.zeros((9, 2, 3))
    successors[:, 0] = np.stack([np.maximum(s - 1, 0), s, np.minimum(s + 1, 8)], axis=1)
    prob[:, 0] = [0.2, 0.3, 0.5]
    reward[8, 0, 1:] = 1
    successors[:, 1, 0], prob[:, 1, 0] = np.maximum(s - 1, 0), 1
    reward[0, 1, 0] = 0.01
    return MDP("long-river", successors, prob, reward, start=np.eye(9)[0])


def three_arms() -> MDP:
    """A hub and three rooms like SixArms, with other numbers: entered 1, .1, .02 of the time, staying pays 1, 4, 20."""
    successors, prob, reward = np.zeros((4, 3, 2), dtype=np.int32), np.zeros((4, 3, 2)), np.zeros((4, 3, 2))
    successors[0, :, 0], prob[0, :, 0] = [1, 2, 3], [1, 0.1, 0.02]
    prob[0, :, 1] = 1 - prob[0, :, 0]
    prob[1:, :, 0] = 1  # back to the hub, but for the one action that stays
    for room, pays in ((1, 1), (2, 4), (3, 20)):
        successors[room, room - 1, 0], reward[room, room - 1, 0] = room, pays
    return MDP("three-arms", successors, prob, reward, start=np.eye(4)[0])


# Settings are chosen on these
TUNING: Mapping[str, JudgeTask] = {
    "of-small": _cover("of-small"),
    "cluster-simple": _cover("cluster-simple"),
    "cluster-simple/goal": _goal("cluster-simple", "goal"),
    "cluster-simple/moving-goal": _goal("cluster-simple", "moving-goal"),
    "deep-sea-10": _sea(10, 1000),
    "frozen-lake-4x4": _lake("4x4", False, 500),
    "frozen-lake-4x4-slippery": _lake("4x4", True, 500),
    "maze": _maze(11, 1, 0.0, 100),
    "deep-sea-30": _sea(30, 1000),
    "long-river": JudgeTask(long_river, 5000),
    "three-arms": JudgeTask(three_arms, 5000),
}
# No choice saw these
HELD_OUT: Mapping[str, JudgeTask] = {
    "cluster-hard": _cover("cluster-hard"),
    "of-large": _cover("of-large"),
    "cluster-simple-large": _cover("cluster-simple-large"),
    "one-way-maze, unrewarded": JudgeTask(functools.partial(random_maze, 15, 2, 1.0, False), 8000, scored="tour"),
    "of-small/goal": _goal("of-small", "goal"),
    "cluster-hard/goal": _goal("cluster-hard", "goal"),
    "of-small/moving-goal": _goal("of-small", "moving-goal"),
    "cluster-hard/moving-goal": _goal("cluster-hard", "moving-goal"),
    "larger maze": _maze(19, 3, 0.0, 200),
    "one-way-maze": _maze(15, 4, 1.0, 200),
    "riverswim": JudgeTask(riverswim, 5000),
    "sixarms": JudgeTask(sixarms, 5000),
    "deep-sea-20": _sea(20, 2000),
    "deep-sea-40": _sea(40, 2000),
    "frozen-lake-8x8": _lake("8x8", False, 2000),
    "frozen-lake-8x8-slippery": _lake("8x8", True, 2000),
    "cliff-walking": JudgeTask(cliff_walking, 1000, 500, "cost"),
    "taxi": JudgeTask(taxi, 200, 300, "cost", bound=20.0),
}
TASKS = {**TUNING, **HELD_OUT}
COVERAGE = tuple(name for name, task in TASKS.items() if task.scored == "tour" and "maze" not in name)
MOVING = tuple(name for name, task in TASKS.items() if task.moving)
EVALUATED = tuple(name for name, task in TASKS.items() if task.evaluated)


def shortest(mdp: MDP) -> float:
    """Steps of the shortest way from the start to the goal, averaged over the phases."""
    steps = distances(mdp.next, int(mdp.start.argmax()))
    return float(np.mean([steps[ends].min() for ends in mdp.terminal]))


def best_episode(mdp: MDP, cap: int) -> float:
    """The most that can be expected of an episode of at most `cap` steps, by dynamic programming."""
    expected = (mdp.prob * mdp.reward[0]).sum(axis=2)
    expected[~mdp.available] = -np.inf
    value = np.zeros(mdp.n_states)
    for _ in range(cap):
        value = (expected + (mdp.prob * value[mdp.next]).sum(axis=2)).max(axis=1)
        value[mdp.terminal[0]] = 0
    return float(mdp.start @ value)


def goals(mdp: MDP) -> NDArray[np.bool_]:
    """The states whose entrance ends an episode and pays as much as the best of such entrances [S]."""
    ends = mdp.terminal[0][mdp.next] & (mdp.prob > 0) & ~mdp.terminal[0][:, None, None]
    pays = np.full(mdp.n_states, -np.inf)
    np.maximum.at(pays, mdp.next[ends], mdp.reward[0][ends])
    return np.asarray(pays == pays.max())


def greedy_success(mdp: MDP, Q: Array, cap: int) -> Array:
    """The chance that the greedy policy of each Q [seeds, S, A] reaches the goal within `cap` steps [seeds].

    Exact, by following where it leads. Actions of equal value are taken with equal chance.
    """
    from scipy.sparse import csr_array

    n, S, goal = len(Q), mdp.n_states, goals(mdp)
    values = np.where(mdp.available, Q, -np.inf)
    best = values.max(axis=2, keepdims=True)
    policy = values >= best - TIES * np.maximum(1, np.abs(best))
    weight = (policy / policy.sum(axis=2, keepdims=True))[:, :, :, None] * mdp.prob
    weight[:, mdp.terminal[0]] = 0
    at = (weight > 0).nonzero()
    seed, s = at[:2]  # all seeds are one large chain of parts that never meet
    P = csr_array((weight[at], (seed * S + mdp.next[at[1:]], seed * S + s)), shape=(n * S, n * S))
    there, found = np.tile(mdp.start, n), np.zeros(n)
    for _ in range(cap):
        there = P @ there
        found += there.reshape(n, S)[:, goal].sum(axis=1)
        if not there.any():
            break
    return found


def steps_after_a_switch(trace: Trace) -> Array:
    """Mean steps of the first episodes after the goal has moved [seeds]."""
    n = trace.episode_steps.shape[1]
    after = [first + i for first in range(EACH, n, EACH) for i in range(AFTER)]
    return np.asarray(trace.episode_steps[:, after].mean(axis=1))
