"""How likely recorded choices are under an agent, from the same kernel that simulates it.

    replay = spie.Replay(states=..., actions=..., mazes=...)
    log_likelihoods([agent, other], task, replay)                    [settings, subjects]
    log_likelihoods(agents, task, replay, subjects=[0, 0, 1, 2])     one subject each: [settings]
    choice_log_probabilities([agent], task, replay)[0][2]            of each step of the third subject

Each step's log p is that of the recorded action given all that happened before, or, where the action is not known, of
the recorded move: the sum over the actions that may have made it. It is taken at the moment of the choice. Along a
recording that is before Q[s, a] changes, because the action chosen is the a' of that change: `next_action="carry"`.
Under these settings a simulated path has the likelihood under which it was drawn. An agent with "resample" looks ahead
to an a' of its own that nobody recorded; what is computed for it is the likelihood of its twin with "carry".
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Replay, Session
from spie.agents.sarsa.batch import Batch, as_mazes, in_order
from spie.agents.sarsa.recording import recording
from spie.agents.sarsa.settings import Sarsa
from spie.tasks.mdp import MDP


def log_likelihoods(
    settings: Sequence[Sarsa],
    task: MDP | Sequence[MDP],
    replay: Replay,
    *,
    subjects: Sequence[int] | None = None,
    session: Session = Session(),
) -> NDArray[np.float64]:
    """Sum of log p over the steps of each subject under each set of settings: [settings, subjects].

    subjects: for each set of settings the one subject (its number, from 0) that it is about; the result is [settings].
    Settings whose numbers are no longer finite on the way have -inf.
    """
    batch, order = _followed(settings, task, replay, subjects, "sum", session)
    sums = np.where(np.isfinite(batch.lanes["log_p"]) & (batch.lanes["over"] == 1), batch.lanes["log_p"], -np.inf)
    sums = sums.reshape(len(settings), -1)[np.argsort(order)]
    return sums if subjects is None else sums[:, 0]


def choice_log_probabilities(
    settings: Sequence[Sarsa],
    task: MDP | Sequence[MDP],
    replay: Replay,
    *,
    subjects: Sequence[int] | None = None,
    session: Session = Session(),
) -> list[list[NDArray[np.float64]]]:
    """log p of each step, one array per subject, one list per set of settings; trials one after the other.

    Forced moves have log p = 0, and `forced_moves` says which they are.
    """
    batch, order = _followed(settings, task, replay, subjects, "each", session)
    n = len(batch.seeds)
    lengths = np.resize(
        replay.lengths if subjects is None else replay.lengths[np.array(subjects)[order]], len(batch.log_p)
    )
    rows = [np.array(row[:length]) for row, length in zip(batch.log_p, lengths, strict=True)]
    return [rows[i * n : (i + 1) * n] for i in np.argsort(order)]


def forced_moves(task: MDP | Sequence[MDP], replay: Replay) -> list[NDArray[np.bool_]]:
    """Which steps of each subject had only one available action: no choice, and so nothing to predict."""
    made = recording(replay, as_mazes(task))
    return [made.forced[begin:end][made.leaves[begin:end]] for begin, end in zip(made.begin, made.end, strict=True)]


def _followed(
    settings: Sequence[Sarsa],
    task: MDP | Sequence[MDP],
    replay: Replay,
    subjects: Sequence[int] | None,
    likelihood: Literal["sum", "each"],
    session: Session,
) -> tuple[Batch, NDArray[np.int64]]:
    """The lanes after they have followed the recording, and the order of the settings in them."""
    if not replay.given:
        raise ValueError("a likelihood needs recorded states: Replay(states=...)")
    if subjects is not None and len(subjects) != len(settings):
        raise ValueError(f"subjects must be one for each of the {len(settings)} settings, not {len(subjects)}")
    order = np.array(in_order(settings))
    rows = np.arange(replay.n_subjects) if subjects is None else np.asarray(subjects)[order]
    if not ((rows >= 0) & (rows < replay.n_subjects)).all():
        raise ValueError(f"subjects must be numbers from 0 to {replay.n_subjects - 1}")
    seeds = np.arange(replay.n_subjects if subjects is None else 1)
    batch = Batch([settings[i] for i in order], as_mazes(task), replay.steps, seeds, likelihood=likelihood)
    batch.follow(replay, rows)
    batch.run_lanes(session)
    return batch, order
