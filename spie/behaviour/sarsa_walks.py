"""SARSA as a walker: the likelihood of recorded paths, and paths of its own from the same starts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Session
from spie.agents.sarsa.batch import Batch
from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.likelihood import choice_log_probabilities, log_likelihoods
from spie.behaviour.mazes import phase_of
from spie.behaviour.paths import Paths
from spie.behaviour.reading import Trial
from spie.behaviour.walks import Walks
from spie.tasks.mdp import MDP
from spie.trace import Trajectory


def log_p(settings: Sequence[Sarsa], paths: Paths, rows: NDArray[np.int64], each: bool = False) -> NDArray[Any]:
    """Log-likelihood of lane i: settings i along the path of subject `rows[i]` [lanes]; each: [lanes, most steps]."""
    subjects = rows.tolist()
    if not each:
        return log_likelihoods(settings, paths.mazes, paths.replay, subjects=subjects)
    found = choice_log_probabilities(settings, paths.mazes, paths.replay, subjects=subjects)
    out = np.zeros((len(rows), int(paths.walks.steps.max())))
    for i, (row,) in enumerate(found):
        out[i, : len(row)] = row
    return out


def simulate(
    settings: Sequence[Sarsa], paths: Paths, rows: NDArray[np.int64], seeds: NDArray[np.int64]
) -> list[list[NDArray[np.int32]]]:
    """The states that lane i walks through in each trial of subject `rows[i]`: its starts, its mazes, its lengths."""
    batch = Batch(settings, paths.mazes, paths.replay.steps, np.arange(1), recorded=True)
    batch.guide(paths.replay, rows, seeds)
    batch.run_lanes(Session())
    walked = []
    for i, row in enumerate(rows):
        path = batch.paths(i)[0]
        walked.append(_trials(path, paths.of(paths.subjects[row]), paths.mazes))
    return walked


def _trials(path: Trajectory, trials: Sequence[Trial], mazes: Sequence[MDP]) -> list[NDArray[np.int32]]:
    """The states of each trial: it ends where the recorded one did, or earlier in a terminal state."""
    walked, at = [], 0
    for k, trial in enumerate(trials):
        terminal = mazes[trial.maze].terminal[phase_of(mazes[trial.maze], k)]
        ends = np.flatnonzero(terminal[path.next_states[at : at + len(trial.actions)]])
        n = int(ends[0]) + 1 if len(ends) else len(trial.actions)
        walked.append(np.append(path.states[at : at + n], path.next_states[at + n - 1 : at + n]))
        at += n
    return walked


SARSA_WALKS = Walks(Sarsa, log_p, simulate)
