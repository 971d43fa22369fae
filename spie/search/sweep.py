"""Sweeps: grids of settings in pieces that are stored one by one, ranked, the best of them confirmed on fresh seeds."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.errors import check_flag, check_number, check_whole
from spie.files import csv_text, write_whole
from spie.notebook import html_table
from spie.runs.backends import execute
from spie.runs.estimate import NeededTime, cores, estimate
from spie.runs.run import Run, load
from spie.runs.store import Store
from spie.runs.user_code import source_of
from spie.search.grid import MEASURES
from spie.search.select import FRESH, Choice, Round, Search, SearchRun, fresh, halving, mean_and_error

MOST_SETTINGS, MOST_HOURS, MOST_BYTES = 1_000_000, 24, 2e9  # beyond, one must mean it

Array = NDArray[Any]
Progress = Callable[[float, float], None]  # (done, in all), in seconds of one core as estimated


class OutOfTime(TimeoutError):
    """The budget is used up; what was stored is kept."""


class SweepTable(dict[str, Array]):
    """Columns by name, one row per setting, best first; `pandas.DataFrame` and `polars.DataFrame` take it as it is."""

    measure: str = ""  # what mean, se and confirmed_mean are of
    note: str = ""  # how it was found

    def __repr__(self) -> str:
        n = len(next(iter(self.values()), ()))
        return f"SweepTable: {n:,} settings, columns {', '.join(self)}; best first by {self.measure}"

    def _repr_html_(self) -> str:
        return html_table(self.measure, list(self), self.rows(), (self.note,) if self.note else ())

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, row by row; a setting that an agent does not have is None."""
        columns = [[None if x != x else x for x in column.tolist()] for column in self.values()]
        return [dict(zip(self, row, strict=True)) for row in zip(*columns, strict=True)]

    def write(self, path: str | Path) -> None:
        """The table as a CSV file, whole or not at all."""
        write_whole(path, csv_text([list(self), *(list(row.values()) for row in self.rows())]))


@dataclass(frozen=True)
class Plan:
    """How a sweep is done.

    seeds: of each setting.
    top, confirm: the best `top` settings of each agent run again on `confirm` seeds that the search did not use.
    halving: successive halving, which gives most settings only a ninth of the seeds.
    budget: seconds; where they do not suffice, OutOfTime is raised, and the same sweep continues.
    on, address: where runs execute, as for `spie.runs.backends.execute`.
    results: the file that keeps what was run, as for `spie run`; the same sweep later is instant.
    yes: go on where the grid is very large.
    progress: told what is done and what is to do.
    """

    seeds: int = 20
    top: int = 5
    confirm: int = 200
    halving: bool = False
    budget: float | None = None
    on: str = "serial"
    address: str | None = None
    results: str | Path | None = None
    yes: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, number, least in (("seeds", self.seeds, 1), ("top", self.top, 0), ("confirm", self.confirm, 0)):
            check_whole(name, number, least, FRESH)
            object.__setattr__(self, name, int(number))  # a whole number of NumPy's becomes one of Python's
        for name, flag in (("halving", self.halving), ("yes", self.yes)):
            check_flag(name, flag)
        if self.budget is not None:
            check_number("budget, in seconds,", self.budget, "(0, inf)")

    def choice(self, search: Search) -> Choice:
        rounds = halving(len(search), self.seeds) if self.halving else (Round(self.seeds, self.top),)
        return Choice((search,), rounds, fresh(self.confirm))


def sweep(searches: Sequence[Search], plan: Plan) -> SweepTable:
    """Try all settings of each search, and confirm the best on fresh seeds."""
    if not plan.yes:
        _refuse_absurd(searches, plan.seeds)
    choices = [plan.choice(search) for search in searches]
    until = math.inf if plan.budget is None else time.monotonic() + plan.budget
    with Store(plan.results) as store:
        stored, how = partial(load, store), (store, until, plan.on, plan.address, plan.progress)
        for n_round in range(max(len(choice.rounds) for choice in choices)):
            finish([run for choice in choices for run in choice.runs(n_round, stored)], *how)
        again = []
        if plan.confirm:
            again = [choice.trials(0, _shown(choice, plan.top, stored), choice.confirm) for choice in choices]
            finish([trial.run for trials in again for trial in trials], *how)
        last = [trial.run for trials in again for trial in trials]
        first = [run for choice in choices for n in range(len(choice.rounds)) for run in choice.runs(n, stored)]
        stopped = _stopped([*first, *last], stored)
        table = _join([_rows(c, stored, again[i] if again else []) for i, c in enumerate(choices)])
    measure = MEASURES[searches[0].measure]
    table.measure = f"{measure.title} ({'more' if measure.sign > 0 else 'less'} is better)"
    table.note = f"{len(table['mean']):,} settings x {plan.seeds} seeds"
    if plan.halving:
        table.note += ", by successive halving: `seeds` says how many a setting got"
    if plan.confirm and plan.top:
        table.note += f"; confirmed: on {plan.confirm} fresh seeds, which `mean`, being the best of many, is not"
    for note in dict.fromkeys(search.note for search in searches if search.note):
        table.note += f"; {note}"
    if stopped:
        table.note += f"; {stopped}; they count what they had until then"
    return table


def _shown(choice: Choice, top: int, stored: Callable[[Run], Any]) -> Array:
    """The numbers of the best settings, and of the best with each reward of the user's own, which they want to see."""
    ranking = choice.scored(stored).ranking
    rewards = choice.searches[0].columns.get("reward", np.array([]))
    own = [ranking[rewards[ranking] == name][0] for name in dict.fromkeys(rewards.tolist()) if source_of(name)]
    return np.array([*ranking[:top], *(number for number in own if number not in ranking[:top])], np.int64)


def _stopped(runs: Sequence[Run], stored: Callable[[Run], Any]) -> str:
    """In words how many runs ended early because their numbers were no longer finite; empty for none."""
    names, in_all = [], 0
    for run in runs:
        scores = stored(run)
        in_all += scores.values.size
        if scores.stopped is not None:
            tried, axes = run.settings.combinations(), [name for name, _ in run.settings.axes]
            for i, k in np.argwhere(scores.stopped >= 0).tolist():
                values = "".join(f" {name}={value}" for name, value in zip(axes, tried[i], strict=True))
                names.append(f"{run.agent}{values}, seed {scores.seeds[k]}, at step {scores.stopped[i, k]:,}")
    if not names:
        return ""
    if len(names) == in_all:
        raise ValueError(f"the numbers of every run became infinite or NaN, such as {names[0]}; try smaller values")
    return f"{len(names):,} of {in_all:,} runs stopped where their numbers became infinite or NaN, such as {names[0]}"


def size(searches: Sequence[Search], plan: Plan) -> tuple[int, NeededTime]:
    """How many settings, and how long they take on this machine, what is stored aside; without those that confirm."""
    if not plan.yes:
        _refuse_absurd(searches, plan.seeds)
    choices = [plan.choice(search) for search in searches]
    with Store(plan.results) as store:
        runs = [run for choice in choices for run in choice.runs(0, partial(load, store)) if run.id not in store]
    return sum(map(len, searches)), estimate(runs, plan.on)


def _refuse_absurd(searches: Sequence[Search], seeds: int) -> None:
    n = sum(map(len, searches))
    hours = sum(search.seconds(seeds) for search in searches) / cores() / 3600
    if n > MOST_SETTINGS or hours > MOST_HOURS or 8 * n * seeds > MOST_BYTES:
        raise ValueError(
            f"{n:,} settings x {seeds:,} seeds take about {hours:,.0f} hours on this machine and "
            f"{8 * n * seeds / 1e9:,.1f} GB of memory; give fewer values or seeds, or --yes if you mean it"
        )


def finish(
    runs: Sequence[Run],
    store: Store,
    until: float = math.inf,
    on: str = "serial",
    address: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Have all runs in the store; what is stored is not run again. OutOfTime once the clock shows `until`."""
    shares = {run.id: 0.0 for run in runs}
    seconds = {run.id: run.seconds for run in runs}

    def report(run: Run, share: float) -> None:
        shares[run.id] = share
        if progress is not None:
            progress(sum(shares[name] * seconds[name] for name in shares), sum(seconds.values()))

    finished = 0
    with contextlib.closing(execute(runs, store, on, address, report)) as executed:
        for run in executed:
            finished += 1
            report(run, 1.0)
            if time.monotonic() > until and finished < len(shares):
                raise OutOfTime(
                    f"the budget is used up, {finished} of {len(shares)} pieces are stored; run again to continue"
                )


def _rows(choice: Choice, stored: Callable[[Run], Any], trials: Sequence[SearchRun]) -> dict[str, Array]:
    """The columns of one search, its settings best first: those that were confirmed by that, then the others."""
    (search,), (values, order) = choice.searches, choice.scored(stored)
    (mean, se, got) = mean_and_error(values[0])
    columns = {"env": np.full(len(search), search.env), "agent": np.full(len(search), search.agent)}
    columns |= search.columns | {"mean": mean, "se": se, "seeds": got}
    if trials:
        confirmed = np.full((2, len(search)), np.nan)
        for run, numbers in trials:
            confirmed[:, numbers] = mean_and_error(stored(run).values)[:2]
        columns |= {"confirmed_mean": confirmed[0], "confirmed_se": confirmed[1]}
        first = np.flatnonzero(~np.isnan(confirmed[0]))
        first = first[np.argsort(-search.sign * confirmed[0, first], kind="stable")]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    return {name: column[order] for name, column in columns.items()}


def _join(parts: Sequence[Mapping[str, Array]]) -> SweepTable:
    """The rows of all searches in one table; a setting that only some agents have is not a number for the others."""
    last = ("mean", "se", "seeds", "confirmed_mean", "confirmed_se")
    names = list(dict.fromkeys(name for part in parts for name in part if name not in last))
    names += [name for name in last if name in parts[0]]
    table = SweepTable()
    for name in names:
        missing = [np.full(len(part["env"]), np.nan) for part in parts]
        table[name] = np.concatenate([part.get(name, none) for part, none in zip(parts, missing, strict=True)])
    return table
