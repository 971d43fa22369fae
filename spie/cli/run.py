"""`spie list` and `spie run`: the experiments."""

import dataclasses
import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli.terminal import Address, ResultsFile, app, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from spie.paper import Experiment, Results
    from spie.runs.run import Run
    from spie.runs.store import Store


@app.command("list")
def list_() -> None:
    """What there is: experiments, agents, rewards, environments."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from spie.agents.linear_q.settings import AGENTS as LINEAR_AGENTS
    from spie.agents.sarsa.settings import AGENTS
    from spie.paper import EXPERIMENTS
    from spie.rewards import get_reward, reward_names
    from spie.tasks.grids import MAPS

    console = Console()
    experiments = Table(title="experiments (spie run NAME)", title_justify="left", box=None)
    for column in ("name", "what it reproduces", "runs x seeds", "steps"):
        experiments.add_column(column, justify="right" if column == "steps" else "left")
    for e in EXPERIMENTS.values():
        runs = e.runs(e.seeds)
        steps = sum(run.steps * (run.episodes or 1) * run.n_seeds * run.settings.n_settings for run in runs)
        n = sum(run.settings.n_settings for run in runs)  # a run of a search is many
        shape = f"{n:,} x {runs[0].n_seeds}{f', best x {e.seeds}' if e.then else ''}" if runs else "-"
        experiments.add_row(e.name, e.title, shape, f"{'up to ' if any(r.episodes for r in runs) else ''}{steps:,}")
    console.print(experiments, "")
    rewards = Table(title="intrinsic rewards", title_justify="left", box=None)
    rewards.add_column("name")
    rewards.add_column("what it pays for a step from s to s'")
    for name in reward_names():
        rewards.add_row(name, escape(get_reward(name).summary))
    console.print(rewards, "")
    console.print("agents", style="bold")
    console.print(" ", ", ".join((*AGENTS, *LINEAR_AGENTS)))
    console.print("environments", style="bold")
    console.print(
        "  riverswim, sixarms, mountain-car, pendulum,", ", ".join(MAPS), "and any map of yours in a text file"
    )


@app.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments; none for all but the long ones. See spie list.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds of each run (default: each experiment's own).")] = None,
    frames: Annotated[int | None, typer.Option(help="Budget of each run of table2 and recon (paper: 10^8).")] = None,
    results: ResultsFile = None,
    on: Annotated[
        str | None,
        typer.Option(help="Where to run: serial (threads), processes or ray (default: what suits the experiment)."),
    ] = None,
    address: Address = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a cell instead of a table.")] = False,
) -> None:
    """Run experiments; what is stored already is not run again."""
    from rich.console import Console

    from spie.paper import EXPERIMENTS, Results, get_experiment, with_frames
    from spie.runs.backends import execute
    from spie.runs.store import Store

    quick = [name for name, e in EXPERIMENTS.items() if not e.long]
    if frames is not None:
        names = [f"{name}@{frames}" for name in names or with_frames()]
    chosen = [get_experiment(name) for name in dict.fromkeys(names or quick)]
    if seeds is not None and not 1 <= seeds <= 1_000_000:
        raise ValueError(f"--seeds must lie between 1 and 1,000,000, not {seeds}")
    console = Console(stderr=True)
    with Store(results) as store:
        for e in chosen:
            store.ask_for(e.name, seeds or e.seeds)
            finished = False
            while not finished:  # what follows from these runs is planned once they are stored
                runs = e.planned(seeds or e.seeds, store)
                console.print(f"[bold]{e.name}[/]: {_plan(runs, store)}", highlight=False)
                with _progress(runs, store, console) as report:
                    for r in execute(runs, store, on or e.on, address, report):
                        report(r, 1.0)
                finished = len(e.planned(seeds or e.seeds, store)) == len(runs)
            found = Results(store)
            cells = [summary(e, r, found) for r in runs if r.role != "search"]
            if as_json:
                for cell in cells:
                    print(json.dumps(cell))
            elif cells:
                _print_cells(e, cells)
    if not as_json:
        console.print(f"next: spie report{f' --results {results}' if results else ''}", highlight=False)


@contextmanager
def _progress(runs: "list[Run]", store: "Store", console: "Console") -> "Iterator[Callable[[Run, float], None]]":
    """How far the runs are, by their estimated time: a bar on a terminal, else a line for each run of minutes.

    Gives what is to be told how much of a run is done.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    seconds = {r.id: max(r.seconds, 1e-3) for r in runs if r.id not in store}  # of those that have to be run
    shares = dict.fromkeys(seconds, 0.0)
    began, total = time.monotonic(), sum(seconds.values())
    columns = (TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
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
            done = sum(share * seconds[name] for name, share in shares.items())
            ended = sum(share == 1 for share in shares.values())
            progress.update(bar, completed=done, description=f"{ended}/{len(shares)} {r.env} {r.agent}")
            if share == 1 and not terminal and seconds[r.id] > 60:
                left = duration((time.monotonic() - began) * (total - done) / done)
                line = f"  {ended}/{len(shares)} {r.env} {r.agent}, about {left} left"
                console.print(line, highlight=False)

        yield report


def _plan(runs: "list[Run]", store: "Store") -> str:
    """What a command is about to do, and how long that takes."""
    if not runs:
        return "nothing to run, it is drawn from the settings"
    missing = [r for r in runs if r.id not in store]
    shape = f"{len(runs)} runs x {runs[0].n_seeds} seeds"
    if not missing:
        return f"{shape}, all stored"
    seconds = sum(r.seconds for r in missing) / (os.cpu_count() or 1)
    bound = "at most" if any(r.episodes for r in missing) else "about"
    stored = f", {len(runs) - len(missing)} stored" if len(missing) < len(runs) else ""
    how_long = f"{seconds:.0f} s" if seconds < 600 else duration(seconds)
    plan = f"{shape}{stored}, {bound} {how_long}"
    if any(not r.settings.resumable for r in missing):
        plan += ", and some 2 s for each kernel that is compiled for the first time"
    return plan


def summary(experiment: "Experiment", r: "Run", results: "Results") -> dict[str, Any]:
    """One cell in plain values: what was measured, our estimate, theirs, and whether the two agree."""
    from spie.paper import CONTROLS, deep
    from spie.paper import published as paper
    from spie.stats import agreement, estimate
    from spie.tasks.atari import AtariTask

    trace = results.trace(experiment.name, r.env, r.agent)
    assert trace is not None
    if isinstance(r.task, AtariTask):
        measure, values = "mean reward of the last 100 episodes that ended", deep.score(trace)
    elif r.episodes is not None:
        measure, values = "steps an episode", trace.episode_steps.mean(axis=1)
    elif getattr(r.task, "cells", None) is not None:
        measure, values = f"states seen in {r.steps} steps, of {r.task.n_states}", (trace.first_visit >= 0).sum(axis=1)
    elif hasattr(trace, "terminated"):
        measure, values = "total reward", trace.episode_rewards.sum(axis=1)
    else:
        measure, values = "total reward", trace.total_reward
    ours = estimate(values)
    cell: dict[str, Any] = {"experiment": experiment.name, "env": r.env, "agent": r.agent, "measure": measure}
    cell |= {name: None if value != value else value for name, value in dataclasses.asdict(ours).items()}  # no NaN
    published = experiment.published.get((r.env, r.agent))
    verdict = "control" if r.agent.partition(" ")[0] in CONTROLS else "no number printed"
    if isinstance(r.task, AtariTask):
        published = (paper.TABLE_2 | paper.RECONSTRUCTION)[r.env, r.agent]
        less = experiment.frames < deep.PAPER_FRAMES
        verdict = f"not comparable: {experiment.frames:,} frames" if less else "the paper's budget"
    elif published is not None:
        test = agreement(ours, *published, paper.SEEDS_OF_TABLES_1_AND_3)
        verdict = "agrees" if test.agrees else "differs"
        cell |= {"standard_errors_apart": round(test.z, 2), "spread_read_as": test.reading}
    mean, spread = published or (None, None)
    return cell | {"paper_mean": mean, "paper_spread": spread, "verdict": verdict}


def _print_cells(experiment: "Experiment", cells: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{experiment.title} ({cells[0]['n']} seeds)", title_justify="left", box=None)
    for column in ("environment", "agent", "ours", "sd", "median", "paper", "verdict"):
        table.add_column(column, justify="right" if column in ("ours", "sd", "median", "paper") else "left")
    for cell in cells:
        names = ("mean", "sd", "median", "paper_mean")
        numbers = ("-" if cell[name] is None else f"{cell[name]:,.0f}" for name in names)
        table.add_row(cell["env"], cell["agent"], *numbers, cell["verdict"])
    Console().print(table)
