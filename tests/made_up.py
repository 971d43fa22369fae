"""Results that no agent made: traces and stores of our choice, for tests of claims and of the page."""

import numpy as np

from spie.dropin.environments import MadeTask
from spie.paper import published as paper
from spie.paper.beyond.dropin import GoalTask
from spie.paper.chains import CELLS
from spie.paper.registry import experiment_of
from spie.runs.run import save
from spie.search.grid import SettingsGrid
from spie.tasks.continuous import ContinuousTask
from spie.trace import EpisodeTrace, Scores, Trace, Trajectory

SEEDS = 12  # enough for verdicts


def a_trace(first_visit, steps=8000, **fields):
    first = np.atleast_2d(np.asarray(first_visit, np.int32))
    n, S = first.shape
    empty = {
        "seeds": np.arange(n),
        "total_reward": np.zeros(n),
        "total_bonus": np.zeros(n),
        "steps": np.full(n, steps),
        "visits": np.ones((n, S), np.int32),
        "first_visit": first,
        "episode_steps": np.zeros((n, 0), np.int32),
        "truncated": np.zeros(n, np.int32),
        "snapshots": np.zeros((n, 0, S), np.int32),
    }
    return Trace(**(empty | fields))


def played(steps, episode_steps, episode_rewards):
    """The trace of a deep agent whose episodes were these; the states are not known."""
    fields = {
        "episode_steps": np.array(episode_steps, np.int32),
        "episode_rewards": np.array(episode_rewards, np.float64),
        "total_reward": np.sum(episode_rewards, axis=1),
        "visits": np.zeros((len(episode_steps), 1), np.int32),
    }
    return a_trace(np.zeros((len(episode_steps), 1)), steps, **fields)


def a_path(states, bonuses=None, actions=None):
    n = len(states) - 1
    zeros = np.zeros(n)
    return Trajectory(
        np.array(states[:-1], np.int32),
        np.array(zeros if actions is None else actions, np.int32),
        np.array(states[1:], np.int32),
        zeros,
        zeros if bonuses is None else np.array(bonuses, float),
    )


def walk(run, seed):
    """A random walk in place of an agent."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(run.task.n_actions, size=run.steps)
    states = [int(np.argmax(run.task.start))]
    for a in actions:
        states.append(int(run.task.next[states[-1], a, 0]))
    states = np.array(states, np.int32)
    return Trajectory(states[:-1], actions.astype(np.int32), states[1:], np.zeros(run.steps), -rng.random(run.steps))


def made_up_episodes(run):
    """The same for a run on a continuous task: ever more episodes reach the goal."""
    n, rng, episodes = run.n_seeds, np.random.default_rng(len(run.agent)), run.episodes or 40
    ends = rng.random((n, episodes)) < np.linspace(0, 1, episodes)
    steps = np.where(ends, 100, run.steps).astype(np.int32)
    return EpisodeTrace(
        repr(run.settings), np.arange(n), steps, ends.astype(float), -0.1 * steps, ends, np.full(n, -1, np.int64)
    )


def made_up(run, reward):
    """A trace of the shape that the run would leave, with a mean reward of our choice and a spread of 1."""
    if isinstance(run.settings, SettingsGrid):
        seeds = np.arange(run.seeds) if isinstance(run.seeds, int) else np.array(run.seeds)
        return Scores(seeds, np.full((len(run.settings), run.n_seeds), float(reward)))
    deep = run.settings.kind == "images"
    if isinstance(run.task, ContinuousTask | GoalTask) or (isinstance(run.task, MadeTask) and not deep):
        return made_up_episodes(run)
    n, S = run.n_seeds, 90 if deep else run.task.n_states
    rng = np.random.default_rng(len(run.agent))
    spread = np.resize([-1.0, 1.0], n)
    first = rng.permuted(np.tile(np.arange(S, dtype=np.int32) * 9, (n, 1)), axis=1)
    visits = rng.integers(1, 90, size=(n, S)).astype(np.int32)
    episodes = (n, run.episodes or 24)  # of a deep agent: as many as it took, enough for a curve
    return Trace(
        seeds=np.arange(n),
        total_reward=reward + spread,
        total_bonus=np.zeros(n),
        steps=np.full(n, run.steps),
        visits=visits,
        first_visit=np.where(first > run.steps, -1, first),
        episode_steps=rng.integers(20, 90, size=episodes).astype(np.int32),
        truncated=np.zeros(n, np.int32),
        snapshots=np.stack([visits * k // 9 for k in range(len(run.keep.snapshots))], axis=1)
        if run.keep.snapshots
        else np.zeros((n, 0, S), np.int32),
        episode_rewards=rng.integers(2, size=episodes).astype(float) if deep else None,
        Q=rng.random((n, S, run.task.n_actions)) if "Q" in run.keep.matrices else None,
        paths={seed: walk(run, seed) for seed in run.keep.paths},
    )


def published(run):
    """The paper's mean of a cell, whatever the reading; 1 where it prints none."""
    return CELLS.get((run.env, run.agent.removesuffix(" search")), paper.Cell(1.0, 1.0)).mean


def fill(store, name, seeds=SEEDS, reward=published, runs=None):
    """Store made-up traces of an experiment, by its key, or of some of its runs, the first ones."""
    store.ask_for(name, seeds)
    while todo := [run for run in experiment_of(name).planned(seeds, store)[:runs] if run.id not in store]:
        for run in todo:
            save(store, run, made_up(run, reward(run)), 0.5)


def shorten_search(monkeypatch):
    monkeypatch.setattr(paper, "SWEEP", {name: values[:2] for name, values in paper.SWEEP.items()})
