"""MDPs and replays as the kernel reads them. Every mismatch between the two is found here."""

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.agents.replay import Replay
from spie.agents.sarsa.layout import MOMENT, Dynamics
from spie.engine.simulator import action_sets, thresholds
from spie.tasks.mdp import MDP


class Recorded(NamedTuple):
    """A replay as the kernel reads it."""

    moments: NDArray[Any]  # of MOMENT; those of a subject one after the other
    begin: NDArray[np.int64]  # [subjects] where its moments begin
    end: NDArray[np.int64]  # [subjects] and end
    ways: NDArray[np.float64]  # [n, A] P[s, a, s'] of each action where it is not known which was taken
    forced: NDArray[np.bool_]  # [moments] only one action is available
    leaves: NDArray[np.bool_]  # [moments] a step leaves from here: all but the last of a trial


class _Steps(NamedTuple):
    """All steps of all subjects, and the trial of each."""

    s: NDArray[np.int64]
    a: NDArray[np.int64]
    s_next: NDArray[np.int64]
    trial: NDArray[np.int64]
    number: NDArray[np.int64]  # within its trial, from 1
    maze: NDArray[np.int64]


def stacked(mazes: tuple[MDP, ...], name: str) -> NDArray[Any]:
    """An array of all mazes, [X, ...]; successor lists are padded to the longest."""
    K = max(mdp.n_successors for mdp in mazes)
    arrays = []
    for mdp in mazes:
        array: NDArray[Any] = getattr(mdp, name)
        if name in ("next", "prob", "reward"):
            array = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, K - mdp.n_successors)])
        arrays.append(array)
    return np.stack(arrays)


def check_mazes(mazes: tuple[MDP, ...]) -> None:
    """Several mazes must be alike but for their walls."""
    first = mazes[0]
    for mdp in mazes[1:]:
        for what in ("n_states", "n_actions", "n_phases", "episodes_per_phase"):
            ours, theirs = getattr(first, what), getattr(mdp, what)
            if ours != theirs:
                raise ValueError(f"{mdp.name}: {what} is {theirs}, but {ours} in the first maze, {first.name}")


@functools.lru_cache(maxsize=16)
def dynamics(mazes: tuple[MDP, ...]) -> Dynamics:
    """MDPs, one after the other, as the kernel reads them."""
    mdp = mazes[0]
    (starts,) = np.nonzero(mdp.start)
    following, prob = stacked(mazes, "next"), stacked(mazes, "prob")
    leads = np.take_along_axis(following, prob.argmax(axis=-1)[..., None], axis=-1)
    position = np.zeros(0, np.int32)
    if mdp.cells is not None and mdp.shape is not None:  # a step sideways is never taken for one of several rows
        position = mdp.cells[:, 0] * 2 * mdp.shape[1] + mdp.cells[:, 1]
    return Dynamics(
        following.astype(np.uint32).reshape(-1),
        thresholds(prob).reshape(-1),
        stacked(mazes, "reward").reshape(-1),
        starts.astype(np.uint32),
        thresholds(mdp.start[starts])[:-1],
        stacked(mazes, "terminal").reshape(-1),
        action_sets(stacked(mazes, "available")).reshape(-1),
        leads.astype(np.uint32).reshape(-1),
        position.astype(np.int32),
        mdp.n_states,
        mdp.n_phases,
        mdp.episodes_per_phase,
    )


@functools.lru_cache(maxsize=16)
def recording(replay: Replay, mazes: tuple[MDP, ...]) -> Recorded:
    """A replay in these mazes, checked."""
    trials = replay.trials()
    states, actions, rewards = replay.moments()
    for k in np.flatnonzero((trials["maze"] < 0) | (trials["maze"] >= len(mazes)))[:1]:
        refuse(replay, k, 0, f"no maze {trials['maze'][k]}; there are {len(mazes)}")
    leaves = np.ones(len(states), np.bool_)
    leaves[trials["first"] + trials["steps"]] = False
    trial = np.repeat(np.arange(len(trials)), trials["steps"] + 1)  # of each moment
    number = np.arange(len(states)) - trials["first"][trial]
    for i in np.flatnonzero((states < 0) | (states >= mazes[0].n_states))[:1]:
        refuse(replay, trial[i], number[i], f"no state {states[i]}; states are 0 ... {mazes[0].n_states - 1}")
    (at,) = np.nonzero(leaves)
    steps = _Steps(
        states[at], actions[at], states[at + 1], trial[at], number[at] + 1, trials["maze"][trial[at]]
    )  # fmt: skip
    chance = _chances(mazes, steps)
    _check_actions(replay, mazes, steps, chance)
    period, n_phases = mazes[0].episodes_per_phase, mazes[0].n_phases
    phase = trials["trial"] // period % n_phases if period else np.zeros(len(trials), np.int64)
    ends = stacked(mazes, "terminal")[steps.maze, phase[steps.trial], steps.s_next]
    for i in np.flatnonzero(ends & (steps.number < trials["steps"][steps.trial]))[:1]:
        refuse(replay, steps.trial[i], steps.number[i], f"goes on after state {steps.s_next[i]}, which is terminal")

    unknown = steps.a < 0
    a = np.where(unknown, chance.argmax(axis=1), steps.a)
    several = unknown & ((chance > 0).sum(axis=1) + (chance.max(axis=1) < 1) > 1)
    moments = np.zeros(len(states), MOMENT)
    moments["state"], moments["maze"], moments["phase"] = states, trials["maze"][trial], phase[trial]
    moments["action"] = mazes[0].n_actions
    moments["action"][at] = a
    moments["ways"][at[several]] = 1 + np.arange(several.sum())
    moments["discount"][at] = np.where(ends, 0.0, 1.0)
    paid = _rewards(mazes, steps, a, phase)
    moments["reward"][at] = np.where(np.isnan(rewards[at]), paid, rewards[at])

    first = np.flatnonzero(trials["trial"] == 0)
    begin = trials["first"][first]
    available = stacked(mazes, "available")
    forced = available[moments["maze"], states].sum(axis=1) == 1
    return Recorded(moments, begin, np.append(begin[1:], len(states)), chance[several], forced, leaves)


def _chances(mazes: tuple[MDP, ...], steps: _Steps) -> NDArray[np.float64]:
    """P[s, a, s'] of each step's move, for all actions [n, A]."""
    following, prob = stacked(mazes, "next"), stacked(mazes, "prob")
    there = following[steps.maze, steps.s] == steps.s_next[:, None, None]
    return np.asarray((prob[steps.maze, steps.s] * there).sum(axis=2))


def _rewards(
    mazes: tuple[MDP, ...], steps: _Steps, a: NDArray[np.int64], phase: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What the MDP pays for each step."""
    following, prob, reward = (stacked(mazes, name) for name in ("next", "prob", "reward"))
    there = (following[steps.maze, steps.s, a] == steps.s_next[:, None]) & (prob[steps.maze, steps.s, a] > 0)
    return np.asarray(reward[steps.maze, phase[steps.trial], steps.s, a, there.argmax(axis=1)])


def _check_actions(replay: Replay, mazes: tuple[MDP, ...], steps: _Steps, chance: NDArray[np.float64]) -> None:
    """Every action is on offer and may lead where it led; where it is not known, some action may."""
    s, a, A = steps.s, steps.a, mazes[0].n_actions
    for i in np.flatnonzero((a < -1) | (a >= A))[:1]:
        refuse(replay, steps.trial[i], steps.number[i], f"action {a[i]} is none of 0 ... {A - 1}")
    available = stacked(mazes, "available")[steps.maze, s]
    known, row = a >= 0, np.arange(len(a))
    for i in np.flatnonzero(known & ~available[row, a])[:1]:
        offer = ", ".join(map(str, np.flatnonzero(available[i])))
        why = f"action {a[i]} is not available in state {s[i]}; available: {offer}"
        refuse(replay, steps.trial[i], steps.number[i], why)
    for i in np.flatnonzero(np.where(known, chance[row, a], chance.max(axis=1)) <= 0)[:1]:
        what = f"action {a[i]} does not lead" if known[i] else "no action leads"
        why = f"{what} from state {s[i]} to state {steps.s_next[i]} in {mazes[steps.maze[i]].name}"
        refuse(replay, steps.trial[i], steps.number[i], why)


def refuse(replay: Replay, k: int, step: int, why: str) -> None:
    trial = replay.trials()[k]
    at = f", step {step}" if step else ""
    raise ValueError(f"replay: subject {replay.subjects[trial['subject']]}, trial {trial['trial'] + 1}{at}: {why}")
