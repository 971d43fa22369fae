"""From a table of recorded steps to trials on a maze.

A table has a row for every recorded moment, with these columns in any order:

    subject, session, trial    optional; without one, all rows are of subject, session or trial 1
    step or t                  the order within a trial; without one, the order of the rows
    state                      a number or a label; or row and column; or x and y, positions on a map
    action, reward             optional: what was done in this row's state, and what that move paid
    maze                       optional: the name of the maze, where there are several

The origin is the north-west corner; x is the column, y the row, in units of `cell`.
"""

import difflib
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.mazes import COMPASS, graph_of_moves, possible, read_mazes
from spie.errors import is_number, told, unknown
from spie.numbers import counted
from spie.tasks.mdp import MDP

COLUMNS = ("subject", "session", "trial", "step", "t", "state", "row", "column", "x", "y", "action", "reward", "maze")


class Trial(NamedTuple):
    """One walk through one maze. What a subject learns carries on from trial to trial."""

    subject: str
    session: str
    trial: str
    maze: int  # number of its maze
    states: NDArray[np.int32]  # [moves + 1]
    actions: NDArray[np.int32]  # [moves], -1 where it is not known
    rewards: NDArray[np.float64] | None = None  # [moves]; None: what the maze pays

    def at(self, step: int) -> str:
        """Where a step lies, for messages; steps count from 1."""
        names = (told(name) for name in (self.subject, self.session, self.trial))
        return "subject {}, session {}, trial {}, step {}".format(*names, step)


class Options(NamedTuple):
    """How a table is read."""

    stays: Literal["keep", "drop"] | None = None  # None: dropped from positions, else kept
    jumps: Literal["refuse", "cut"] | None = None  # None: positions are cut there, else refused
    missing: Literal["refuse", "drop"] = "refuse"  # rows without a place
    cell: float = 1.0  # side of a cell, in the unit of x and y


AS_USUAL = Options()
MANY = 0.05  # share of jumps above which something else than a slip of the tracker is likely
SLIP = 0.75  # how much alike two names are, of which one is likely a slip of the pen for the other
FITS = (
    "check rows and columns, the origin (north-west, x the column), the size of a cell, and whether stays are to be "
    "dropped"
)
WORDS = {"stays": ("keep", "drop"), "jumps": ("refuse", "cut"), "missing": ("refuse", "drop")}


class Reading(NamedTuple):
    """What was read, and how often something was changed on the way, by subject."""

    mazes: dict[str, MDP]
    trials: list[Trial]
    changes: dict[str, dict[str, int]]  # "stays", "jumps", "cut at the goal" by subject
    notes: list[str]


def read_table(columns: dict[str, list[Any]], maze: Any = None, options: Options = AS_USUAL) -> Reading:
    """Trials from the columns of a table; `maze` as for `read_mazes`, None for the graph of the moves."""
    places, notes = _check_columns(columns)
    for name, words in WORDS.items():
        if options._asdict()[name] not in (None, *words):
            raise unknown(f"way to treat {name}", options._asdict()[name], words)
    if not (is_number(options.cell) and 0 < options.cell < math.inf):
        raise ValueError(f"the side of a cell must be a positive number, not {told(options.cell)}")
    mazes = None if maze is None else read_mazes(maze)
    n = len(columns[places[0]])
    if n == 0:
        raise ValueError("the table holds no rows")
    if places == ("x", "y"):
        options = options._replace(stays=options.stays or "drop", jumps=options.jumps or "cut")
        if mazes is None:
            raise ValueError("positions x, y need a maze to lie on; give one, or a column state")
    changes: dict[str, dict[str, int]] = {}
    groups = _groups(columns, _present(columns, places, n, options, changes))
    if not groups:
        raise ValueError("no row of the table has a place")
    labels = {key: [_label(columns, places, i, options.cell) for i in rows] for key, rows in groups.items()}
    _check_constant(labels)
    if mazes is None:
        mazes = {"": graph_of_moves(list(labels.values()))}
        notes.append("No maze was given: the graph is that of the moves in the data, so a way never taken is no way.")
    else:
        if places == ("x", "y") and options.missing == "drop":
            _leave_out_of_the_maze(groups, labels, mazes, changes)
        _check_places(labels, mazes)
    trials: list[Trial] = []
    for key, rows in groups.items():
        raw = _raw_trial(columns, key, rows, labels[key], mazes)
        trials += _tidy(raw, list(mazes.values())[raw.maze], options, changes)
    _check_fit(trials, list(mazes.values()))
    notes += _unused_rewards(columns, groups) + _many_jumps(trials, changes)
    return Reading(mazes, trials, changes, notes)


def _check_columns(columns: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """The columns that say where the subject is, and a line about those that say nothing here.

    A name that is nearly one of ours is a slip of the pen.
    """
    others = [name for name in columns if name not in COLUMNS]
    for name in others:
        if difflib.get_close_matches(name, COLUMNS, 1, SLIP):
            raise unknown("column", name, COLUMNS)
    notes = [f"Not used of the table: {', '.join(map(told, others))}."] if others else []
    for places in (("state",), ("row", "column"), ("x", "y")):
        if set(places) <= set(columns):
            return places, notes
    raise ValueError(f"no column says where the subject is: give state, or row and column, or x and y; there are: "
                     f"{', '.join(columns)}")  # fmt: skip


def _present(
    columns: Mapping[str, list[Any]],
    places: Sequence[str],
    n: int,
    options: Options,
    changes: dict[str, dict[str, int]],
) -> list[int]:
    """The rows that have a place; the others are refused or dropped."""
    kept = []
    for i in range(n):
        empty = [name for name in places if _is_empty(columns[name][i])]
        if empty and options.missing == "refuse":
            raise ValueError(
                f"row {i + 1}: {empty[0]} is empty or NaN; mend the row, or leave such rows out, "
                'missing="drop" (--missing drop)'
            )
        for name in ("subject", "session", "trial"):
            if name in columns and _is_empty(columns[name][i]):
                raise ValueError(f"row {i + 1}: {name} is empty; give every row one")
        if empty:
            _count(changes, _word(columns["subject"][i]) if "subject" in columns else "1", "rows without a place")
        else:
            kept.append(i)
    return kept


def _groups(columns: Mapping[str, list[Any]], rows: Iterable[int]) -> dict[tuple[str, str, str], list[int]]:
    """The rows of each subject, session and trial, in the order of their steps."""
    names = ("subject", "session", "trial")
    groups: dict[tuple[str, str, str], list[int]] = {}
    for i in rows:
        subject, session, trial = (_word(columns[name][i]) if name in columns else "1" for name in names)
        groups.setdefault((subject, session, trial), []).append(i)
    order = "step" if "step" in columns else "t" if "t" in columns else None
    if order is not None:
        for key, found in groups.items():
            when = {i: _number(columns[order][i], order, i) for i in found}
            found.sort(key=when.__getitem__)
            for i, j in itertools.pairwise(found):
                if when[i] == when[j]:
                    raise ValueError(
                        f"rows {i + 1} and {j + 1} are duplicates: subject {key[0]}, session {key[1]}, trial {key[2]} "
                        f"has {order} {columns[order][i]} twice"
                    )
    rank = [_ranks(dict.fromkeys(key[level] for key in groups)) for level in range(3)]
    subjects = {subject: i for i, subject in enumerate(dict.fromkeys(key[0] for key in groups))}
    return dict(
        sorted(groups.items(), key=lambda item: (subjects[item[0][0]], rank[1][item[0][1]], rank[2][item[0][2]]))
    )


def _ranks(names: Iterable[str]) -> dict[str, float]:
    """Sessions and trials in the order of their numbers, where they are numbers; else in that of the table."""
    names = list(names)
    try:
        return {name: float(name) for name in names}
    except ValueError:
        return {name: float(i) for i, name in enumerate(names)}


def _label(columns: Mapping[str, list[Any]], places: Sequence[str], i: int, cell: float) -> str:
    """The place of a row as a label: a state, or "row,column"."""
    if places == ("state",):
        return _word(columns["state"][i])
    if places == ("x", "y"):
        x, y = (math.floor(_number(columns[name][i], name, i) / cell) for name in ("x", "y"))
        return f"{y},{x}"
    row, column = (_number(columns[name][i], name, i) for name in ("row", "column"))
    return f"{_word(row)},{_word(column)}"


def _check_constant(labels: Mapping[tuple[str, str, str], Sequence[str]]) -> None:
    """A subject that is always in one place is no walker."""
    for subject in dict.fromkeys(key[0] for key in labels):
        places = [label for key, found in labels.items() if key[0] == subject for label in found]
        if len(places) > 1 and len(set(places)) == 1:
            raise ValueError(
                f"subject {told(subject)} is in {told(places[0])} in all of its {len(places)} rows: the column is "
                "constant; leave the subject out, or check the columns and the size of a cell"
            )


def _leave_out_of_the_maze(
    groups: dict[tuple[str, str, str], list[int]],
    labels: dict[tuple[str, str, str], list[str]],
    mazes: Mapping[str, MDP],
    changes: dict[str, dict[str, int]],
) -> None:
    """Leave out positions on no free cell of any maze: a tracker sees a head above a wall."""
    free = {label for mdp in mazes.values() for label in mdp.labels}
    for key in list(groups):
        kept = [k for k, label in enumerate(labels[key]) if label in free]
        _count(changes, key[0], "rows without a place", len(labels[key]) - len(kept))
        groups[key], labels[key] = [groups[key][k] for k in kept], [labels[key][k] for k in kept]
        if not kept:
            del groups[key], labels[key]
    if not groups:
        raise ValueError(f"no position of the table lies on a free cell of {next(iter(mazes))}; {FITS}")


def _check_places(labels: Mapping[Any, Sequence[str]], mazes: Mapping[str, MDP]) -> None:
    """A maze that has not even the places of the data is another maze; say so rather than naming one place."""
    first = next(iter(mazes.values()))
    free = {label for mdp in mazes.values() for label in mdp.labels} | {str(s) for s in range(first.n_states)}
    places = [label for found in labels.values() for label in found]
    wrong = sum(not free & {label, label.replace(" ", "")} for label in places)
    if wrong > max(3, len(places) / 4):
        raise ValueError(
            f"the maze does not fit the data: {wrong:,} of {len(places):,} places are no state of {first.name}; {FITS}"
        )


def _raw_trial(
    columns: Mapping[str, list[Any]],
    key: tuple[str, str, str],
    rows: list[int],
    labels: list[str],
    mazes: dict[str, MDP],
) -> Trial:
    """A trial as it was recorded, its states known to the maze."""
    maze = _maze_of(columns, rows, mazes, key)
    mdp = list(mazes.values())[maze]
    index = {label: s for s, label in enumerate(mdp.labels)}
    states = np.zeros(len(rows), np.int32)
    for step, label in enumerate(labels):
        s = index.get(label, index.get(label.replace(" ", ""), -1))
        if s < 0 and label.isdecimal() and int(label) < mdp.n_states:
            s = int(label)
        if s < 0:
            where = Trial(*key, maze, states, states).at(step)
            known = f"states are 0 ... {mdp.n_states - 1}"
            if mdp.cells is not None:
                known += f', or "row,column" of a free cell such as "{mdp.labels[0]}"'
            if "x" in columns and "state" not in columns:
                known = 'it is no free cell; leave such positions out, missing="drop" (--missing drop)'
            raise ValueError(f'{where}: no state "{told(label)}" in {mdp.name}; {known}')
        states[step] = s
    actions = np.full(len(rows) - 1, -1, np.int32)
    if "action" in columns:
        actions[:] = [_action(columns["action"][i], i, mdp) for i in rows[:-1]]
    rewards = None
    if "reward" in columns:
        rewards = np.array([_reward(columns, i) for i in rows[:-1]])
    return Trial(*key, maze, states, actions, rewards)


def _reward(columns: Mapping[str, list[Any]], row: int) -> float:
    """What the move that leaves a row paid; nothing is 0."""
    return 0.0 if _is_empty(columns["reward"][row]) else _number(columns["reward"][row], "reward", row)


def _unused_rewards(columns: Mapping[str, list[Any]], groups: Mapping[Any, Sequence[int]]) -> list[str]:
    """A line where trials end with a reward: whoever notes a reward on arrival has all of them a row too late."""
    n = sum(_reward(columns, rows[-1]) != 0 for rows in groups.values()) if "reward" in columns else 0
    if n == 0:
        return []
    where = f"The reward in the last row of {counted(n, 'trial')} is not used"
    return [f"{where}: a row has what the move that leaves it paid, so a reward on arrival belongs to the row before."]


def _maze_of(
    columns: Mapping[str, list[Any]], rows: list[int], mazes: dict[str, MDP], key: tuple[str, str, str]
) -> int:
    if "maze" not in columns or (len(mazes) == 1 and len({_word(name) for name in columns["maze"]}) == 1):
        if len(mazes) > 1:
            raise ValueError(f"{len(mazes)} mazes are given, but no column maze says which is whose")
        return 0
    names = {_word(columns["maze"][i]) for i in rows}
    if len(names) > 1:
        subject, session, trial = key
        raise ValueError(
            f"subject {subject}, session {session}, trial {trial} is in {len(names)} mazes; give one per trial"
        )
    (name,) = names
    if name not in mazes:
        raise unknown("maze", name, mazes)
    return list(mazes).index(name)


def _action(value: Any, row: int, mdp: MDP) -> int:
    """An action: a number, a direction on a grid, or nothing."""
    if _is_empty(value):
        return -1
    word = _word(value).lower()
    if mdp.cells is not None and word in COMPASS:
        return COMPASS.index(word)
    if not word.lstrip("-").isdecimal() or not -1 <= int(word) < mdp.n_actions:
        known = f"0 ... {mdp.n_actions - 1}" + (f", {', '.join(COMPASS)}" if mdp.cells is not None else "")
        raise ValueError(
            f'row {row + 1}: no action "{told(value)}"; actions are {known}, or nothing where it is not known'
        )
    return int(word)


def _tidy(trial: Trial, mdp: MDP, options: Options, changes: dict[str, dict[str, int]]) -> list[Trial]:
    """The trial without stays, cut at jumps and at the first arrival at a goal, as asked for."""
    states, actions, rewards = trial.states, trial.actions, trial.rewards
    if options.stays == "drop":
        moves = np.flatnonzero(np.diff(states))
        _count(changes, trial.subject, "stays", len(actions) - len(moves))
        states = states[np.append(moves, len(states) - 1)]
        actions = actions[moves]
        if rewards is not None and len(moves):  # what is paid during a stay counts for the move that led there
            rewards = np.add.reduceat(rewards, moves)
    ends = np.flatnonzero(mdp.terminal[:, states[1:]].all(axis=0))  # a goal that moves may be passed by
    if len(ends) and ends[0] + 1 < len(actions):
        _count(changes, trial.subject, "cut at the goal")
        last = ends[0] + 1
        states, actions, rewards = states[: last + 1], actions[:last], None if rewards is None else rewards[:last]
    cuts = np.zeros(0, np.int64)
    if options.jumps == "cut":
        cuts = np.flatnonzero(~possible(mdp, states[:-1], states[1:]).any(axis=1)) + 1
        _count(changes, trial.subject, "jumps", len(cuts))
    parts = []
    for a, b in zip([0, *cuts], [*cuts, len(states)], strict=True):
        part = None if rewards is None else rewards[a : b - 1]
        parts.append(trial._replace(states=states[a:b], actions=actions[a : b - 1], rewards=part))
    return [part for part in parts if len(part.actions)] or parts[:1]


def _many_jumps(trials: Sequence[Trial], changes: Mapping[str, Mapping[str, int]]) -> list[str]:
    """A line where trials were cut more often than a tracker slips."""
    jumps = sum(of.get("jumps", 0) for of in changes.values())
    total = jumps + sum(len(trial.actions) for trial in trials)
    if jumps <= max(3, MANY * total):
        return []
    return [f"{jumps:,} of {total:,} moves are impossible in the maze, and trials are cut there; {FITS}."]


def _check_fit(trials: Sequence[Trial], mazes: Sequence[MDP]) -> None:
    """A maze in which half of the moves are impossible is another maze; say so rather than naming one move."""
    wrong = total = 0
    for trial in trials:
        wrong += int((~possible(mazes[trial.maze], trial.states[:-1], trial.states[1:]).any(axis=1)).sum())
        total += len(trial.actions)
    if wrong > max(3, total / 4):
        raise ValueError(f"the maze does not fit the data: {wrong} of {total} moves are impossible in it; {FITS}")


def _count(changes: dict[str, dict[str, int]], subject: str, what: str, n: int = 1) -> None:
    of = changes.setdefault(subject, {})
    of[what] = of.get(what, 0) + n


def _is_empty(value: Any) -> bool:
    return (
        value is None or value == "" or (isinstance(value, float) and math.isnan(value)) or str(value).lower() == "nan"
    )


def _number(value: Any, name: str, row: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f'row {row + 1}: {name} is "{told(value)}", which is no finite number')
    return number


def _word(value: Any) -> str:
    """A name as text; 3.0 is 3."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
