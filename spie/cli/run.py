"""`spie run`: the experiments."""

import functools
import json
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import Address, ResultsFile, app, check_table, duration, plain, write_table
from spie.errors import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from spie.paper.experiment import Experiment
    from spie.runs.run import Run
    from spie.runs.store import Store

SILENCE = 60.0  # seconds between two lines that say how far runs are, where there is no terminal
WHOLE = 100.0  # from here on numbers of a task are shown without decimals


@app.command()
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Experiments; none for all but the long ones. See spie list.",
            autocompletion=completion.experiment_names,
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds of each run (default: each experiment's own).")] = None,
    frames: Annotated[int | None, typer.Option(help="Budget of each run of table2, recon and parity.")] = None,
    network: Annotated[str | None, typer.Option(help="Network of table2 and recon: paper or nature.")] = None,
    tier: Annotated[str | None, typer.Option(help="A budget of table2, exploration-dropin: minutes, hours ...")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Only the runs of this task or agent; again for each further one.")
    ] = None,
    results: ResultsFile = None,
    on: Annotated[
        str | None,
        typer.Option(help="Where to run: serial (threads), processes or ray (default: what suits the experiment)."),
    ] = None,
    address: Address = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per cell instead of a table.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Every cell as a row of a .csv or .parquet file.")
    ] = None,
    ship: Annotated[bool, typer.Option("--ship", help="Then write what ships with the package.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Instead, run a random tenth of what ships again.")] = False,
) -> None:
    """Run experiments; what is stored already is not run again."""
    from rich.console import Console

    from spie.paper import shipped
    from spie.paper.registry import get_experiment
    from spie.runs.store import Store

    if seeds is not None and not 1 <= seeds <= 1_000_000:
        raise ValueError(f"--seeds must lie between 1 and 1,000,000, not {seeds}")
    if check:
        asked = [get_experiment(name, frames, network, tier).key for name in dict.fromkeys(names or ())]
        _check(asked or sorted(shipped.available()[0]), on, address, only)
        return
    chosen = _chosen(names, frames, network, tier)
    for e in chosen:
        if ship and e.ships is None:
            raise ValueError(f"{e.name} does not say what it ships; leave out --ship, or see spie/paper/shipped.py")
    if output is not None:
        check_table(output)
    console, cells = Console(stderr=True), []
    with Store(results) as store:
        for e in chosen:
            for file, taken in (shipped.take_up(e, seeds or e.seeds, store) if ship else {}).items():
                console.print(f"[bold]{e.key}[/]: {taken} runs taken from {file}", highlight=False)
            after = functools.partial(_ship, e) if ship and e.grows else None
            cells += _run(e, seeds or e.seeds, store, on, address, as_json, after, only)
            if ship:
                print(_ship(e, store))
    if output is not None:
        write_table(output, [cell | {"variant": json.dumps(cell["variant"])} for cell in cells])
    if not as_json:
        console.print(f"next: spie report{f' --results {plain(results)}' if results else ''}", highlight=False)


def _chosen(names: "list[str] | None", frames: int | None, network: str | None, tier: str | None) -> "list[Experiment]":
    """The experiments by these names; without names those that have what is asked for, or all but the long ones."""
    from spie.paper.registry import experiments, get_experiment

    asked_for = {"frames": frames, "networks": network, "tiers": tier}
    able = [name for name, value in asked_for.items() if value is not None]
    every = [e.name for e in experiments() if (all(getattr(e, name) for name in able) if able else not e.long)]
    return [get_experiment(name, frames, network, tier) for name in dict.fromkeys(names or every)]


def _ship(e: "Experiment", store: "Store") -> "Path":
    from spie.paper import shipped
    from spie.paper.results import Results

    return shipped.ship(e, Results(store))


def _run(
    e: "Experiment",
    seeds: int,
    store: "Store",
    on: str | None,
    address: str | None,
    as_json: bool,
    after: "Callable[[Store], object] | None" = None,
    only: "Sequence[str] | None" = None,
) -> list[dict[str, Any]]:
    """Run what is missing of an experiment, and print its cells, which it returns.

    after: called where some runs are stored before, and after every run that is stored. only: see `_chosen_runs`.
    """
    from rich.console import Console

    from spie.paper.results import Results
    from spie.runs.backends import execute

    console = Console(stderr=True)
    store.ask_for(e.key, seeds)
    finished = False
    while not finished:  # what follows from these runs is planned once they are stored
        planned = e.planned(seeds, store)
        runs = _chosen_runs(e, planned, only)
        console.print(f"[bold]{e.key}[/]: {_plan(runs, store, on or e.on)}", highlight=False, soft_wrap=True)
        _say_sooner(runs, store, on or e.on, console)
        missing = {r.id for r in runs if r.id not in store}
        if after is not None and len(missing) < len(runs):
            after(store)
        with _progress(runs, store, console) as report:
            for r in execute(runs, store, on or e.on, address, report, functools.partial(_say_failed, console)):
                report(r, 1.0)
                if after is not None and r.id in missing:
                    after(store)
        finished = len(e.planned(seeds, store)) == len(planned)
    found = Results(store)
    cells = [e.cell(*stored) for of_env in found.found(e.key).values() for stored in of_env.values()]
    if as_json:
        for cell in cells:
            print(json.dumps(cell))
    elif cells:
        _print_cells(e, cells)
    return cells


def _say_failed(console: "Console", run: "Run", error: Exception) -> None:
    """That a run failed, while the others go on: hours may pass until they are stored."""
    from spie.paper.contenders import label_of

    console.print(
        f"{run.env} {label_of(run)} failed: {plain(str(error))}; the others go on", highlight=False, markup=False
    )


def _chosen_runs(e: "Experiment", runs: "list[Run]", only: "Sequence[str] | None") -> "list[Run]":
    """Of the runs those of the named tasks, or of all where none is named, and of the named agents, likewise."""
    tasks, agents, wanted = {r.env for r in runs}, {r.agent for r in runs}, set(only or ())
    for name in wanted - tasks - agents:
        raise unknown(f"task or agent of {e.name}", name, sorted(tasks | agents))
    chosen = [r for r in runs if r.env in (tasks & wanted or tasks) and r.agent in (agents & wanted or agents)]
    if runs and not chosen:
        raise ValueError(f"no run of {e.name} is of {' and '.join(sorted(wanted))}; leave out one --only")
    return chosen


def _check(keys: list[str], on: str | None, address: str | None, only: "Sequence[str] | None" = None) -> None:
    """Run a random tenth of the runs that ship again, in a store that is forgotten, and say whether they come out."""
    import random
    import tempfile

    from rich.console import Console

    from spie.paper import shipped
    from spie.paper.contenders import label_of
    from spie.runs.backends import execute
    from spie.runs.run import load
    from spie.runs.store import Store

    console, failed = Console(stderr=True), 0
    for key in keys:
        file = shipped.find(key)
        if file is None:
            there = ", ".join(shipped.available()[0]) or "none"
            raise ValueError(f"nothing ships of {key}, so there is nothing to check; what ships: {there}")
        if file.stale:
            raise ValueError(f"what ships of {key} cannot be checked: {file.stale}; run it again with --ship")
        runs = _chosen_runs(file.experiment, list(shipped.recorded_runs(file).values()), only)
        tenth = random.sample(runs, -(-len(runs) // 10))
        with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/check.db") as store:
            console.print(
                f"[bold]{key}[/] ({file.mark}), a random tenth: {_plan(tenth, store, on or file.experiment.on)}",
                highlight=False,
            )
            with _progress(tenth, store, console) as report:
                for r in execute(tenth, store, on or file.experiment.on, address, report):
                    report(r, 1.0)
                    said = file.confirm(r, load(store, r))
                    print(f"{key} {r.env} {label_of(r)} {r.id}: {said}")
                    failed += said in (shipped.DIFFERS, shipped.OTHERWISE)
        print(f"{key}: {len(tenth)} of {len(file.content['runs'])} runs made again")
    if failed:
        print(f"{failed} runs differ from what ships")
        raise typer.Exit(1)


@contextmanager
def _progress(runs: "list[Run]", store: "Store", console: "Console") -> "Iterator[Callable[[Run, float], None]]":
    """How far the runs are, by their estimated time: a bar on a terminal, else a line every minute (SILENCE).

    Gives what is to be told how much of a run is done.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from spie.engine.specialise import watching
    from spie.paper.contenders import label_of

    seconds = {r.id: max(r.seconds, 1e-3) for r in runs if r.id not in store}  # of those that have to be run
    shares = dict.fromkeys(seconds, 0.0)
    firsts: dict[str, float] = {}  # what of each run was told of first: done before, by one that was killed
    began, total = time.monotonic(), sum(seconds.values())
    told = [began]  # when a line was printed
    columns = (TextColumn("  {task.description}", markup=False), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    terminal = console.is_terminal
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not terminal,
        speed_estimate_period=600,
    ) as progress:
        bar = progress.add_task("", total=total)

        def report(r: "Run", share: float) -> None:
            if r.id not in shares or share <= shares[r.id]:
                return
            shares[r.id] = share
            firsts.setdefault(r.id, share if share < 1 else 0.0)
            done = sum(share * seconds[name] for name, share in shares.items())
            here = done - sum(first * seconds[name] for name, first in firsts.items())
            ended = sum(share == 1 for share in shares.values())
            who = f"{ended}/{len(shares)} {r.env} {label_of(r)}"
            progress.update(bar, completed=done, description=who)
            now = time.monotonic()
            if not terminal and here and now - told[-1] >= SILENCE:
                told.append(now)
                left = duration((now - began) * (total - done) / here)
                console.print(f"  {who}, {done / total:.0%} done, about {left} left", highlight=False, markup=False)

        def compiling(what: str) -> None:
            said = f"compiling for {what}"
            if not terminal and said not in compiled:
                console.print(f"  {said}, once: kernels are kept", highlight=False, markup=False)
            compiled.add(said)
            progress.update(bar, description=said)

        compiled: set[str] = set()
        with watching(compiling):
            yield report


def _plan(runs: "list[Run]", store: "Store", on: str) -> str:
    """What a command is about to do, and how long that takes."""
    from spie.errors import unknown
    from spie.runs.backends import BACKENDS
    from spie.runs.estimate import estimate

    if on not in BACKENDS:  # before kernels are looked at
        raise unknown("backend", on, BACKENDS)
    if not runs:
        return "nothing to run, it is drawn from the settings"
    missing = [r for r in runs if r.id not in store]
    shape = f"{len(runs)} runs x {runs[0].n_seeds} seeds"
    if not missing:
        return f"{shape}, all stored"
    stored = f", {len(runs) - len(missing)} stored" if len(missing) < len(runs) else ""
    return f"{shape}{stored}, {estimate(missing, on)}"


def _say_sooner(runs: "list[Run]", store: "Store", on: str, console: "Console") -> None:
    """Where episodes end by themselves, try a few seeds, and say how long the rest takes by those."""
    from spie.runs.estimate import TRIED, can_be_tried, estimate

    missing = [r for r in runs if r.id not in store]
    if on == "serial" and any(map(can_be_tried, missing)) and estimate(missing).running > TRIED:
        console.print(f"  by a tenth of the seeds: {estimate(missing, tried=True)}", highlight=False)


def _print_cells(experiment: "Experiment", cells: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from spie.paper.contenders import label
    from spie.paper.sections import number

    whats = " or ".join(dict.fromkeys(cell["measure"] for cell in cells))
    title = f"{experiment.title}: {whats}, {cells[0]['n']} {'seed' if cells[0]['n'] == 1 else 'seeds'}"
    table = Table(title=title, title_justify="left", box=None)
    for column in ("environment", "agent", "ours", "sd", "median", "paper", "verdict"):
        table.add_column(column, justify="right" if column in ("ours", "sd", "median", "paper") else "left")
    names = ("mean", "sd", "median", "paper_mean")
    largest: dict[str, float] = {}
    for cell in cells:
        sizes = [abs(cell[name]) for name in names if cell[name] is not None]
        largest[cell["env"]] = max(largest.get(cell["env"], 0.0), *sizes, 0.0)
    for cell in cells:
        digits = 0 if largest[cell["env"]] >= WHOLE else 2  # shares and games of few points would be 0 or 1
        numbers = (number(cell[name], digits, thousands=",") for name in names)
        table.add_row(plain(cell["env"]), plain(label(cell["agent"], cell["variant"])), *numbers, cell["verdict"])
    Console().print(table)
