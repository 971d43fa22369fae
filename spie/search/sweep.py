"""Sweeps: grids of settings, ranked, the best of them confirmed on fresh seeds; and tuning where a grid is hopeless."""

import contextlib
import csv
import dataclasses
import io
import itertools
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep
from spie.agents.registry import agent as named
from spie.agents.sarsa.batch import AGENTS, Sarsa
from spie.errors import unknown
from spie.files import write_whole
from spie.paper import chains, grid_worlds
from spie.paper import published as paper
from spie.paper.printed_grid import printed_grid
from spie.paper.registry import EXPERIMENTS, get_experiment
from spie.runs.run import Run, execute, load
from spie.runs.store import Store
from spie.search.grid import MEASURES, SettingsGrid, used
from spie.search.select import FRESH, Search
from spie.tasks import grid
from spie.tasks.grids import MAPS
from spie.tasks.mdp import MDP

MOST_SETTINGS, MOST_HOURS, MOST_BYTES = 1_000_000, 24, 2e9  # beyond, one must mean it
HALVING = 3  # each rung keeps a third of the settings and gives them three times the seeds

Array = NDArray[Any]
Progress = Callable[[float, float], None]  # (done, in all), in seconds of one core as estimated


class OutOfTime(TimeoutError):
    """The budget is used up; what was stored is kept."""


class Table(dict[str, Array]):
    """Columns by name, one row per setting, best first; `pandas.DataFrame` and `polars.DataFrame` take it as it is."""

    measure: str = ""  # what mean, se and confirmed_mean are of
    note: str = ""  # how it was found

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, row by row; a setting that an agent does not have is None."""
        columns = [[None if x != x else x for x in column.tolist()] for column in self.values()]
        return [dict(zip(self, row, strict=True)) for row in zip(*columns, strict=True)]

    def write(self, path: str | Path) -> None:
        """The table as a CSV file, whole or not at all."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(self))
        writer.writeheader()
        writer.writerows(self.rows())
        write_whole(path, text.getvalue())


def sweep(
    where: str | MDP,
    agents: str | Iterable[str] = (),
    *,
    seeds: int = 20,
    top: int = 5,
    confirm: int = 200,
    steps: int | None = None,
    episodes: int | None = None,
    halving: bool = False,
    budget: float | None = None,
    on: str = "serial",
    address: str | None = None,
    results: str | Path | None = None,
    yes: bool = False,
    progress: Progress | None = None,
    **values: Any,
) -> Table:
    """Try every combination of `values` for each agent, and confirm the best on fresh seeds.

        spie.sweep("riverswim", "sarsa-srr", alpha=[0.05, 0.1], beta=[1, 10, 100])

    where: an environment, a map, an MDP, or an experiment, whose environments, steps and settings are then used.
    agents: by name; without any, those of the experiment, else SARSA-SRR.
    values: settings and the values to try; without any, the paper's grid.
    top, confirm: the best `top` settings of each agent run again on `confirm` seeds that the search did not use.
    halving: successive halving, which gives most settings only a ninth of the seeds.
    budget: seconds; where they do not suffice, OutOfTime is raised, and the same call continues.
    results: the file that keeps what was run, as for `spie run`; the same call later is instant.
    yes: go on where the grid is very large.
    """
    for name, number, least in (("seeds", seeds, 1), ("top", top, 0), ("confirm", confirm, 0)):
        if not least <= number <= FRESH:
            raise ValueError(f"{name} must lie between {least} and {FRESH:,}, not {number}")
    chosen = {name: _several(given) for name, given in values.items()}
    searches = plan(where, [agents] if isinstance(agents, str) else list(agents), chosen, seeds, steps, episodes)
    if not yes:
        _refuse_absurd(searches)
    until = math.inf if budget is None else time.monotonic() + budget
    with Store(results) as store:
        run = partial(_run, store=store, on=on, address=address, until=until, progress=progress)
        scores = _halve(searches, run) if halving else _try_all(searches, run)
        confirmed = _confirm(searches, scores, top, tuple(range(FRESH, FRESH + confirm)), run) if confirm else {}
    return _table(searches, scores, confirmed, halving)


def _several(values: Any) -> tuple[Any, ...]:
    """One value or several, each once."""
    single = isinstance(values, str) or not isinstance(values, Iterable)
    return (values,) if single else tuple(dict.fromkeys(values))


def plan(
    where: str | MDP,
    agents: Sequence[str],
    values: Mapping[str, tuple[Any, ...]],
    seeds: int,
    steps: int | None = None,
    episodes: int | None = None,
) -> list[Search]:
    """The searches that a sweep consists of: one for each environment and agent."""
    cells = _cells(where, agents, steps, episodes)
    for name in values:
        if name in paper.SWEEP and not any(name in used(run.settings) for run in cells):
            names = ", ".join(dict.fromkeys(run.agent for run in cells))
            raise ValueError(f"{names} has no use for {name}; it uses {', '.join(used(cells[0].settings))}")
    searches = []
    for run in cells:
        measure = "episodes" if run.episodes else "reward" if run.task.reward.any() else "coverage"
        axes = tuple((k, v) for k, v in values.items() if k not in paper.SWEEP or k in used(run.settings))
        tried = (
            (SettingsGrid(run.settings, axes, measure),) if values else printed_grid(run.agent, run.settings, measure)
        )
        searches.append(Search(run.env, run.agent, tried, run.task, run.steps, seeds, run.episodes))
    return searches


def _cells(where: str | MDP, agents: Sequence[str], steps: int | None, episodes: int | None) -> list[Run]:
    """One run, with an agent's own settings, for each environment and agent."""
    if isinstance(where, str) and where in EXPERIMENTS:
        runs = [run for run in get_experiment(where).runs(1) if isinstance(run.settings, Sarsa)]
        if not runs:
            raise ValueError(f"{where} has no settings to vary; sweep an environment, such as riverswim")
        known = list(dict.fromkeys(run.agent for run in runs))
        for agent in agents:
            if agent not in known:
                raise unknown(f"agent in {where}", agent, known)
        envs = list(dict.fromkeys(run.env for run in runs))
        runs = sorted((run for run in runs if not agents or run.agent in agents), key=lambda run: envs.index(run.env))
        return [
            dataclasses.replace(run, steps=steps or run.steps, episodes=episodes or run.episodes, keep=Keep())
            for run in runs
        ]
    mdp = where if isinstance(where, MDP) else _environment(where)
    if mdp.name in chains.CHAINS:
        others, length = chains.controls(mdp.name), paper.CHAIN_STEPS
    else:
        others, length = grid_worlds.controls(), paper.COVERAGE_STEPS
    for agent in agents:
        if agent not in others and agent not in AGENTS:
            raise unknown("agent", agent, [*AGENTS, *others])
    settings = {agent: others.get(agent) or named(agent) for agent in agents or ("sarsa-srr",)}
    return [Run(mdp.name, agent, s, mdp, steps or length, 1, episodes) for agent, s in settings.items()]


def _environment(name: str) -> MDP:
    if name in chains.CHAINS:
        return chains.CHAINS[name]()
    if name not in MAPS and not os.path.isfile(name):
        raise unknown("experiment, environment, map or file", name, [*EXPERIMENTS.names(), *chains.CHAINS, *MAPS])
    return grid(name)


def size(searches: Sequence[Search]) -> tuple[int, float]:
    """How many settings, and about how many seconds on this machine."""
    seconds = sum(len(s) * s.run(SettingsGrid(s.grids[0].base), s.seeds).seconds for s in searches)
    return sum(map(len, searches)), seconds / (os.cpu_count() or 1)


def parse(words: Sequence[str]) -> dict[str, Any]:
    """Values to try, written as key=v1,v2,..."""
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise ValueError(f'"{word}" is no setting with values; write it as alpha=0.1,0.5')
        if key in values:
            raise ValueError(
                f"{key} is given twice; write all its values as {key}={','.join(map(str, values[key]))},..."
            )
        values[key] = tuple(dict.fromkeys(_value(part.strip()) for part in text.split(",") if part.strip()))
    return values


def _value(text: str) -> Any:
    """A number, true or false, or else a word, such as the name of a reward."""
    try:
        return {"true": True, "false": False}[text.lower()]
    except KeyError:
        try:
            return float(text)
        except ValueError:
            return text


def duration(text: str) -> float:
    """Seconds in 90s, 10m or 2h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    try:
        seconds = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f'"{text}" is no time; write it as 90s, 10m or 2h')
    return seconds


def _refuse_absurd(searches: Sequence[Search]) -> None:
    seeds, (n, seconds) = searches[0].seeds, size(searches)
    hours = seconds / 3600
    if n > MOST_SETTINGS or hours > MOST_HOURS or 8 * n * seeds > MOST_BYTES:
        raise ValueError(
            f"{n:,} settings x {seeds:,} seeds take about {hours:,.0f} hours on this machine and "
            f"{8 * n * seeds / 1e9:,.1f} GB of memory; give fewer values or seeds, or --yes if you mean it"
        )


def _run(
    runs: Sequence[Run], store: Store, on: str, address: str | None, until: float, progress: Progress | None
) -> list[Any]:
    """What the runs leave, in their order; what is stored is not run again."""
    total, done = sum(run.seconds for run in runs), 0.0
    finished = 0
    with contextlib.closing(execute(runs, store, on, address)) as executed:
        for run in executed:
            finished, done = finished + 1, done + run.seconds
            if progress is not None:
                progress(done, total)
            if time.monotonic() > until and finished < len(runs):
                raise OutOfTime(
                    f"the budget is used up, {finished} of {len(runs)} pieces are stored; run again to continue"
                )
    return [load(store, run) for run in runs]


Runner = Callable[[Sequence[Run]], list[Any]]


def _try_all(searches: Sequence[Search], run: Runner) -> list[Array]:
    """The scores [settings, seeds] of each search."""
    found = iter(run([piece for search in searches for piece in search.runs]))
    return [np.concatenate([next(found).values for _ in search.runs]) for search in searches]


def _halve(searches: Sequence[Search], run: Runner) -> list[Array]:
    """Successive halving: scores as above, not a number for seeds that a setting did not get."""
    seeds = searches[0].seeds
    rungs = sorted({math.ceil(seeds / HALVING**2), math.ceil(seeds / HALVING), seeds})
    first = [dataclasses.replace(search, seeds=rungs[0]) for search in searches]
    scores = [np.full((len(search), seeds), np.nan) for search in searches]
    for values, found in zip(scores, _try_all(first, run), strict=True):
        values[:, : rungs[0]] = found
    for begin, end in itertools.pairwise(rungs):
        pieces = []
        for search, values in zip(first, scores, strict=True):
            still = np.flatnonzero(~np.isnan(values[:, begin - 1]))
            best = still[search.best(values[still, :begin].mean(axis=1), math.ceil(len(still) / HALVING))]
            pieces += [(values, inside, piece) for piece, inside in search.again(best, tuple(range(begin, end)))]
        for (values, inside, _), found in zip(pieces, run([piece for *_, piece in pieces]), strict=True):
            values[inside, begin:end] = found.values
    return scores


def _ranking(search: Search, values: Array) -> Array:
    """The settings, best first; those that halving dropped come after those it kept."""
    got = (~np.isnan(values)).sum(axis=1)
    return np.lexsort((-search.sign * np.nanmean(values, axis=1), -got))


def _confirm(
    searches: Sequence[Search], scores: Sequence[Array], top: int, seeds: tuple[int, ...], run: Runner
) -> dict[int, dict[int, Array]]:
    """The best of each search on fresh seeds: by search and setting, [seeds]."""
    pieces = [
        (i, inside, piece)
        for i, (search, values) in enumerate(zip(searches, scores, strict=True))
        for piece, inside in search.again(_ranking(search, values)[:top], seeds)
    ]
    confirmed: dict[int, dict[int, Array]] = {}
    for (i, inside, _), found in zip(pieces, run([piece for *_, piece in pieces]), strict=True):
        confirmed.setdefault(i, {}).update(zip(inside.tolist(), found.values, strict=True))
    return confirmed


def _table(
    searches: Sequence[Search], scores: Sequence[Array], confirmed: Mapping[int, Mapping[int, Array]], halving: bool
) -> Table:
    parts = []
    for i, (search, values) in enumerate(zip(searches, scores, strict=True)):
        again = confirmed.get(i, {})
        order = _ranking(search, values)
        first = sorted(again, key=lambda k: -search.sign * again[k].mean())
        order = np.concatenate([np.array(first, np.int64), order[~np.isin(order, first)]])
        got = (~np.isnan(values)).sum(axis=1)
        part = {"env": np.full(len(search), search.env), "agent": np.full(len(search), search.agent)}
        part |= search.columns
        part |= {"mean": np.nanmean(values, axis=1), "se": _se(values, got), "seeds": got}
        for name, of in (("confirmed_mean", np.mean), ("confirmed_se", lambda x: _se(x[None], len(x))[0])):
            if again:
                part[name] = np.array([of(again[k]) if k in again else np.nan for k in range(len(search))])
        parts.append({name: column[order] for name, column in part.items()})
    last = ("mean", "se", "seeds", "confirmed_mean", "confirmed_se")
    names = list(dict.fromkeys(name for part in parts for name in part if name not in last))
    names += [name for name in last if name in parts[0]]
    table = Table()
    for name in names:
        missing = [np.full(len(part["env"]), np.nan) for part in parts]
        table[name] = np.concatenate([part.get(name, none) for part, none in zip(parts, missing, strict=True)])
    table.measure = MEASURES[searches[0].grids[0].measure].title
    table.note = f"{len(table['mean']):,} settings x {searches[0].seeds} seeds"
    if halving:
        table.note += ", by successive halving: `seeds` says how many a setting got"
    if confirmed:
        n = len(next(iter(confirmed[0].values())))
        table.note += f"; confirmed: on {n} fresh seeds, which `mean`, being the best of many, is not"
    return table


def _se(values: Array, n: Any) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.nansum((values - np.nanmean(values, axis=1, keepdims=True)) ** 2, axis=1)
        return np.asarray(np.sqrt(squares / (n - 1) / n))
