"""Recorded paths: who walked where, in which maze."""

import dataclasses
import functools
import hashlib
import itertools
import os
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spie.agents.replay import Replay
from spie.behaviour.columns import read_columns, read_file
from spie.behaviour.mazes import graph_of_moves, phase_of, possible, read_mazes
from spie.behaviour.reading import Options, Trial, read_table
from spie.behaviour.rows import Rows
from spie.errors import as_array, is_row, told
from spie.files import csv_text, write_whole
from spie.numbers import counted
from spie.tasks.mdp import MDP, reachable
from spie.trace import Trace, Trajectory

Walks = Mapping[Any, Any] | Sequence[Any]


class FlatWalks(NamedTuple):
    """Paths as compiled code reads them."""

    first: NDArray[np.int64]  # [subjects + 1] the first trial of each subject
    trials: NDArray[np.int64]  # [trials, 3] where its states begin, moves, and maze
    states: NDArray[np.int32]  # all states, trial after trial
    actions: NDArray[np.int32]  # the action that leaves each; -1 where it is not known, and at the end of a trial
    following: NDArray[np.int32]  # [mazes * S * A] where an action most likely leads
    legal: NDArray[np.uint8]  # [mazes * S * A]
    ends: NDArray[np.uint8]  # [mazes * S] whether a trial ends there
    position: NDArray[np.int32]  # [S] whose differences tell directions; empty where there is no map
    steps: NDArray[np.int64]  # [subjects] moves in all


@dataclass(frozen=True, eq=False)
class Paths:
    """Recorded paths of subjects, each move checked against its maze.

    Make them with `from_csv`, `from_table`, `from_states`, `from_positions` or `from_trace`. Where an action is not
    known but only one leads to the next state, it is filled in; else the likelihood is that of the move.

    Moves that the maze does not have raise ValueError, with subject, trial and step.

    >>> maze = spie.grid("S..\\n.#.\\n..G", bumps=False)
    >>> paths = spie.Paths.from_states({"Ada": [[0, 1, 2, 4], [0, 3, 5]]}, maze)
    >>> len(paths.trials), paths.trials[0].subject
    (2, 'Ada')
    """

    mazes: tuple[MDP, ...]  # with the same states and actions
    trials: tuple[Trial, ...]  # subject by subject, each in the order in which they were walked
    maze_names: tuple[str, ...] = ()
    goal: int | None = None  # a state that the subjects know to pay, where there is one
    start_matrix: NDArray[np.float64] | None = None  # [S, S] the chain of an earlier phase, from which an SR may start
    published: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # estimates of others, one per subject
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # stays dropped, jumps, ... by subject
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        first = self.mazes[0]
        for maze in self.mazes[1:]:
            if (maze.n_states, maze.n_actions) != (first.n_states, first.n_actions):
                raise ValueError(f"mazes {first.name} and {maze.name} differ in their states or actions")
        if not self.trials:
            raise ValueError("no subject has made a move")
        order = list(dict.fromkeys(trial.subject for trial in self.trials))
        trials = sorted(self.trials, key=lambda trial: order.index(trial.subject))
        object.__setattr__(self, "trials", tuple(self._checked(trial) for trial in trials))
        object.__setattr__(self, "maze_names", self.maze_names or tuple(maze.name for maze in self.mazes))
        for subject in order:
            self._check_subject(subject)
        self._leave_out_trials_without_a_move()
        if self.goal is None:
            goals = {int(s) for maze in self.mazes for s in np.flatnonzero(maze.terminal.any(axis=0))}
            object.__setattr__(self, "goal", goals.pop() if len(goals) == 1 else None)

    def _checked(self, trial: Trial) -> Trial:
        """The trial with its actions filled in where only one leads on."""
        maze = self.mazes[trial.maze]
        s, s_next = trial.states[:-1], trial.states[1:]
        outside = np.flatnonzero((trial.states < 0) | (trial.states >= maze.n_states))
        for i in outside[:1]:
            raise ValueError(f"{trial.at(i)}: no state {trial.states[i]}; states are 0 ... {maze.n_states - 1}")
        if len(trial.actions) != len(s) or (trial.rewards is not None and len(trial.rewards) != len(s)):
            raise ValueError(f"{trial.at(0)}: {len(s)} moves, but {len(trial.actions)} actions")
        for i in np.flatnonzero((trial.actions < -1) | (trial.actions >= maze.n_actions))[:1]:
            raise ValueError(f"{trial.at(i + 1)}: no action {trial.actions[i]}; they are 0 ... {maze.n_actions - 1}")
        ways = possible(maze, s, s_next)
        for i in np.flatnonzero(~ways.any(axis=1))[:1]:
            here, there = maze.labels[s[i]], maze.labels[s_next[i]]
            what = f"stays in {here}" if s[i] == s_next[i] else f"goes from {here} to {there}"
            cure = 'drop stays, stays="drop" (--stays drop)'
            if s[i] != s_next[i]:
                cure = 'cut the trial there, jumps="cut" (--jumps cut)'
            raise ValueError(f"{trial.at(i + 1)}: the subject {what}, which {maze.name} does not allow; {cure}")
        known = trial.actions >= 0
        wrong = known & ~ways[np.arange(len(s)), np.maximum(trial.actions, 0)]
        for i in np.flatnonzero(wrong)[:1]:
            here, there = maze.labels[s[i]], maze.labels[s_next[i]]
            raise ValueError(f"{trial.at(i + 1)}: action {trial.actions[i]} does not lead from {here} to {there}")
        only = np.where(ways.sum(axis=1) == 1, ways.argmax(axis=1), -1)
        return trial._replace(
            states=trial.states.astype(np.int32), actions=np.where(known, trial.actions, only).astype(np.int32)
        )

    def _leave_out_trials_without_a_move(self) -> None:
        """They say nothing about choices; how many there were is in the report."""
        changes = {subject: dict(of) for subject, of in self.changes.items()}
        for trial in self.trials:
            if not len(trial.actions):
                of = changes.setdefault(trial.subject, {})
                of["trials without a move"] = of.get("trials without a move", 0) + 1
        object.__setattr__(self, "changes", changes)
        object.__setattr__(self, "trials", tuple(trial for trial in self.trials if len(trial.actions)))

    def _check_subject(self, subject: str) -> None:
        trials = [trial for trial in self.trials if trial.subject == subject]
        moves = sum(len(trial.actions) for trial in trials)
        if moves == 0:
            raise ValueError(
                f"subject {told(subject)} has made no move in {counted(len(trials), 'trial')}; leave it out"
            )
        if len({int(s) for trial in trials for s in trial.states}) == 1:
            place = self.mazes[0].labels[trials[0].states[0]]
            raise ValueError(f"subject {told(subject)} never leaves {place} in {moves} steps: the column is constant")

    # Ways to make them

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], maze: Any = None, **options: Any) -> "Paths":
        """Paths of a CSV or TSV file with the columns of `spie.behaviour.reading`; other arguments as `from_table`."""
        return cls._from_columns(read_file(Path(path)), maze, options)

    @classmethod
    def from_table(cls, table: Any, maze: Any = None, **options: Any) -> "Paths":
        """Paths of a data frame (pandas, polars) or a mapping from columns to values.

        maze: an MDP, a map (name, text or file), or a mapping from names to these; None: the graph of the moves.
        stays: "drop" or "keep" steps without a move. jumps: "cut" the trial at an impossible move, or "refuse" it.
        missing: "drop" or "refuse" rows without a place. cell: the side of a cell, in the unit of x and y.
        """
        return cls._from_columns(read_columns(table), maze, options)

    @classmethod
    def _from_columns(cls, columns: dict[str, list[Any]], maze: Any, options: Mapping[str, Any]) -> "Paths":
        mazes, trials, changes, notes = read_table(columns, maze, Options(**options))
        return cls(tuple(mazes.values()), tuple(trials), tuple(mazes), changes=changes, notes=tuple(notes))

    @classmethod
    def from_states(cls, walks: Walks, maze: Any = None, *, actions: Walks | None = None) -> "Paths":
        """Paths of state numbers or labels: {subject: [states, ...]}, a list of states for each trial.

        One list of states is one trial of one subject; a list of such lists are trials of one subject. `actions` has
        the same form, an entry less each.
        """
        trials = []
        given = None if actions is None else _by_subject(actions)
        mazes = {"": graph_of_moves(_labels(walks))} if maze is None else read_mazes(maze)
        (mdp,) = list(mazes.values())[:1]
        for subject, walked in _by_subject(walks).items():
            for i, states in enumerate(walked):
                numbers = np.array([mdp.state(str(s)) for s in states], np.int32)
                if not len(numbers):
                    raise ValueError(f"subject {told(subject)}, trial {i + 1} has no states; leave it out")
                done = np.full(len(numbers) - 1, -1, np.int32) if given is None else _actions(given, subject, i)
                trials.append(Trial(str(subject), "1", str(i + 1), 0, numbers, done))
        return cls((mdp,), tuple(trials))

    @classmethod
    def from_actions(cls, starts: Mapping[Any, Any], actions: Mapping[Any, Any], maze: Any) -> "Paths":
        """Paths of actions in a deterministic maze: {subject: [first state, ...]}, {subject: [actions, ...]}."""
        (mdp,) = read_mazes(maze).values()
        if (mdp.prob > 0).sum(axis=2).max() > 1:
            raise ValueError(f"{mdp.name} is stochastic: actions alone do not say where they led; give states")
        walks: dict[Any, list[list[int]]] = {}
        for subject, done in _by_subject(actions).items():
            walks[subject] = []
            first: Any = starts.get(subject)
            if not is_row(first) or len(first) != len(done):
                trials = counted(len(done), "trial")
                raise ValueError(f"subject {told(subject)}: starts must hold a first state for each of {trials}")
            for i, trial in enumerate(done):
                walk = [mdp.state(str(first[i]))]
                for step, a in enumerate(trial, start=1):
                    if not (0 <= a < mdp.n_actions and mdp.available[walk[-1], a]):
                        raise ValueError(
                            f"subject {subject}, trial {i + 1}, step {step}: action {a} is not available in "
                            f"state {walk[-1]}"
                        )
                    walk.append(int(mdp.next[walk[-1], a, 0]))
                walks[subject].append(walk)
        return cls.from_states(walks, mdp, actions=actions)

    @classmethod
    def from_positions(
        cls,
        x: ArrayLike,
        y: ArrayLike,
        t: ArrayLike | None = None,
        *,
        maze: Any,
        subject: ArrayLike | None = None,
        **options: Any,
    ) -> "Paths":
        """Paths of positions on a map; the origin is the north-west corner, x the column; options of `from_table`."""
        table: dict[str, Any] = {"x": x, "y": y}
        table |= {name: values for name, values in {"t": t, "subject": subject}.items() if values is not None}
        return cls.from_table(table, maze, **options)

    @classmethod
    def from_trace(cls, trace: Trace, maze: MDP) -> "Paths":
        """The recorded trajectories of a run (`keep=spie.Keep(paths=seeds)`): a subject a seed, a trial an episode."""
        if not trace.paths:
            raise ValueError("the trace holds no trajectories; run with keep=spie.Keep(paths=(0, 1, ...))")
        trials = []
        for seed, path in trace.paths.items():
            lengths = trace.episode_steps[trace.seeds.tolist().index(seed)]
            for i, (a, b) in enumerate(itertools.pairwise(_episode_ends(path, maze, lengths)), start=1):
                states = np.append(path.states[a:b], path.next_states[b - 1])
                rewards = path.rewards[a:b]
                trials.append(Trial(f"seed {seed}", "1", str(i), 0, states, path.actions[a:b], rewards))
        return cls((maze,), tuple(trials))

    # What there is

    @functools.cached_property
    def subjects(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.subject for trial in self.trials))

    @functools.cached_property
    def replay(self) -> Replay:
        """The paths as an agent follows them."""
        by = [self.of(subject) for subject in self.subjects]
        paid = any(trial.rewards is not None for trial in self.trials)
        return Replay(
            states=[[trial.states for trial in trials] for trials in by],
            actions=[[trial.actions for trial in trials] for trials in by],
            rewards=[[trial.rewards for trial in trials] for trials in by] if paid else None,  # type: ignore[misc]
            mazes=[[trial.maze for trial in trials] for trials in by],
            subjects=self.subjects,
        )

    @functools.cached_property
    def walks(self) -> FlatWalks:
        """The paths in flat arrays."""
        counts = [len(self.of(subject)) for subject in self.subjects]
        rows, at = [], 0
        for trial in self.trials:
            rows.append((at, len(trial.actions), trial.maze))
            at += len(trial.states)
        cells, shape = self.mazes[0].cells, self.mazes[0].shape
        likely = [np.take_along_axis(m.next, m.prob.argmax(axis=2)[:, :, None], axis=2) for m in self.mazes]
        first = np.append(0, np.cumsum(counts))
        moves = np.array([len(trial.actions) for trial in self.trials])
        return FlatWalks(
            first,
            np.array(rows, np.int64),
            np.concatenate([trial.states for trial in self.trials]),
            np.concatenate([np.append(trial.actions, -1) for trial in self.trials]).astype(np.int32),
            np.concatenate([next_.reshape(-1) for next_ in likely]).astype(np.int32),
            np.concatenate([maze.available.reshape(-1) for maze in self.mazes]).astype(np.uint8),
            np.concatenate([maze.terminal[0] for maze in self.mazes]).astype(np.uint8),
            np.zeros(0, np.int32) if cells is None or shape is None else cells[:, 0] * (2 * shape[1]) + cells[:, 1],
            np.add.reduceat(moves, first[:-1]),
        )

    @functools.cached_property
    def digest(self) -> str:
        """A hash of mazes, moves and rewards."""
        digest = hashlib.sha256(repr((self.goal, [maze.digest for maze in self.mazes])).encode())
        for trial in self.trials:
            digest.update(repr(trial[:4]).encode())
            for array in (trial.states, trial.actions, trial.rewards):
                digest.update(b"" if array is None else array.tobytes())
        digest.update(b"" if self.start_matrix is None else self.start_matrix.tobytes())
        return digest.hexdigest()[:24]

    def of(self, subject: str) -> tuple[Trial, ...]:
        """The trials of a subject, in order."""
        return tuple(trial for trial in self.trials if trial.subject == subject)

    def only(self, subjects: Sequence[str] | str) -> "Paths":
        """The paths of some subjects: their names, or a text that separates them by commas."""
        if isinstance(subjects, str):
            subjects = list(dict.fromkeys(filter(None, map(str.strip, subjects.split(",")))))
        known = f"there are: {', '.join(map(told, self.subjects))}"
        if not subjects:
            raise ValueError(f"no subject is named; {known}")
        for subject in subjects:
            if subject not in self.subjects:
                raise ValueError(f"no subject {told(subject)}; {known}")
        published = {
            name: np.asarray(values)[[self.subjects.index(subject) for subject in subjects]]
            for name, values in self.published.items()
        }
        trials = tuple(trial for trial in self.trials if trial.subject in set(subjects))
        return dataclasses.replace(self, trials=trials, published=published)

    def legal(self, trial: Trial) -> NDArray[np.int64]:
        """How many actions were on offer at each step of a trial [moves]; 1 is a forced move."""
        return np.asarray(self.mazes[trial.maze].available[trial.states[:-1]].sum(axis=1))

    def choices(self, subject: str | None = None) -> int:
        """Moves at which there was a choice; forced moves say nothing about a subject."""
        return sum(int((self.legal(trial) > 1).sum()) for trial in self.trials if subject in (None, trial.subject))

    def chance(self, subject: str) -> float:
        """Log-likelihood of a random walk over legal actions; of the move, where the action is not known."""
        return float(sum(np.log(self._ways(trial) / self.legal(trial)).sum() for trial in self.of(subject)))

    def _ways(self, trial: Trial) -> NDArray[np.float64]:
        """How many of the legal actions make each move, each by its chance to do so: 1 where the action is known."""
        maze, s = self.mazes[trial.maze], trial.states[:-1]
        leads = maze.prob[s] * (maze.next[s] == trial.states[1:, None, None]) * maze.available[s][:, :, None]
        return np.where(trial.actions >= 0, 1.0, leads.sum(axis=(1, 2)))

    def report(self) -> Rows:
        """What the paths hold, a row a subject."""
        rows = []
        for subject in self.subjects:
            trials = self.of(subject)
            steps = sum(len(trial.actions) for trial in trials)
            seen = {int(s) for trial in trials for s in trial.states}
            within = np.zeros(self.mazes[0].n_states, dtype=np.bool_)
            for maze, starts in {t.maze: [u.states[0] for u in trials if u.maze == t.maze] for t in trials}.items():
                sources = np.zeros_like(within)
                sources[starts] = True
                within |= reachable(self.mazes[maze].next, sources)
            changed = self.changes.get(subject, {})
            rows.append(
                {
                    "subject": subject,
                    "sessions": len({trial.session for trial in trials}),
                    "trials": len({(trial.session, trial.trial) for trial in trials}),
                    "steps": steps,
                    "forced moves": steps - self.choices(subject),
                    "choices": self.choices(subject),
                    "unknown actions": int(sum((trial.actions < 0).sum() for trial in trials)),
                    "states seen": len(seen),
                    "coverage": len(seen) / int(within.sum()),
                    "stays dropped": changed.get("stays", 0),
                    "jumps or impossible moves": changed.get("jumps", 0),
                    "cut at the goal": changed.get("cut at the goal", 0),
                    "rows dropped": changed.get("rows without a place", 0),
                    "trials without a move": changed.get("trials without a move", 0),
                }
            )
        title = f"{counted(len(self.subjects), 'subject')} in {counted(len(self.mazes), 'maze')}"
        columns = (
            "Forced moves: with one action on offer; the others are choices. Unknown actions: moves that several "
            "actions may have made. Coverage: share of the states within reach that were seen."
        )
        return Rows(rows, title, [columns, *self.notes], even=("coverage",))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the paths as a table that `from_csv` reads back; the maze is not in it."""
        several, paid = len(self.mazes) > 1, any(trial.rewards is not None for trial in self.trials)
        names = ["subject", "session", "trial", "step", "state", "action"]
        rows = [names + ["reward"] * paid + ["maze"] * several]
        parts: dict[tuple[str, str, str], int] = {}  # a trial cut at a jump goes on as a trial of its own
        for trial in self.trials:
            key = (trial.subject, trial.session, trial.trial)
            parts[key] = parts.get(key, 0) + 1
            name = trial.trial if parts[key] == 1 else f"{trial.trial}.{parts[key]:04d}"  # the tenth after the ninth
            labels = self.mazes[trial.maze].labels
            for i, s in enumerate(trial.states):
                is_move = i < len(trial.actions)
                done = str(trial.actions[i]) if is_move and trial.actions[i] >= 0 else ""
                row = [
                    trial.subject,
                    trial.session,
                    name,
                    str(i),
                    labels[s],
                    done,
                ]
                row += [repr(float(trial.rewards[i])) if is_move and trial.rewards is not None else ""] * paid
                rows.append(row + [self.maze_names[trial.maze]] * several)
        write_whole(path, csv_text(rows))


def _episode_ends(path: Trajectory, maze: MDP, lengths: NDArray[np.int32]) -> list[int]:
    """Where the episodes of a path begin and end: by their lengths, where these are known, else by what they are like.

    Then an episode ends in a terminal state, or where the next step does not begin where the last one led.
    """
    n = len(path.states)
    if lengths.sum() == n:
        return [0, *np.cumsum(lengths[lengths > 0]).tolist()]
    broken = np.flatnonzero(path.next_states[:-1] != path.states[1:]) + 1
    ends = [np.union1d(broken, np.flatnonzero(terminal[path.next_states]) + 1) for terminal in maze.terminal]
    found = [0]
    while found[-1] < n:
        there = ends[phase_of(maze, len(found) - 1)]
        after = there[np.searchsorted(there, found[-1], side="right") :][:1]
        found.append(int(after[0]) if len(after) else n)
    return found


def _by_subject(walks: Walks) -> dict[Any, list[Any]]:
    """{subject: [trial, ...]} of whatever form was given."""
    if isinstance(walks, Mapping):
        return {subject: _trials(walk) for subject, walk in walks.items()}
    return {1: _trials(walks)}


def _actions(given: Mapping[Any, list[Any]], subject: Any, i: int) -> NDArray[np.int32]:
    """What a subject did in its i-th trial; -1 where that is not known."""
    what = f"actions of subject {told(subject)}, trial {i + 1}"
    if len(given.get(subject, ())) <= i:
        raise ValueError(f"{what} are missing; give as many as walks")
    done: NDArray[Any] = as_array(what, given[subject][i])
    if done.ndim != 1 or done.dtype.kind not in "iu":
        raise ValueError(f"{what} must be whole numbers, one after the other")
    return done.clip(-2, 2**31 - 1).astype(np.int32)  # what a maze does not have is refused as such


def _trials(walk: Any) -> list[Any]:
    if not is_row(walk) or isinstance(walk, Mapping | Set):
        raise ValueError(f"a walk must be states, one after the other, not {told(walk)}")
    walk = list(walk)
    if len(walk) == 0:
        raise ValueError("a subject without any trial; leave it out")
    nested = not isinstance(walk[0], str) and np.ndim(walk[0]) > 0
    return list(walk) if nested else [walk]


def _labels(walks: Walks) -> list[list[str]]:
    return [[str(s) for s in walk] for found in _by_subject(walks).values() for walk in found]
