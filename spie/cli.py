"""The `spie` command. Heavy imports stand inside the commands, so that `spie --help` is instant."""

import dataclasses
import json
import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from spie.continuous import ContinuousTask
    from spie.experiments import Experiment, Results
    from spie.mdp import MDP
    from spie.run import Run
    from spie.store import Store
    from spie.sweeps import Table

app = typer.Typer(
    help="Successor-Predecessor Intrinsic Exploration: run the paper's experiments, see how ours compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ResultsFile = Annotated[
    Path | None, typer.Option("--results", help="Where results are kept (default: $SPIE_RESULTS or results.db).")
]

Backend = Annotated[str, typer.Option("--on", help="Where to run: serial (threads), processes or ray.")]
Rewards = Annotated[list[Path] | None, typer.Option(help="A file of yours that defines rewards; workers get it, too.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster (default: Ray on this machine).")]


@app.command("list")
def list_() -> None:
    """What there is: experiments, agents, rewards, environments."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from spie.agents.linear_q import AGENTS as LINEAR_AGENTS
    from spie.agents.sarsa import AGENTS
    from spie.envs.grids import MAPS
    from spie.experiments import EXPERIMENTS
    from spie.rewards import get_reward, reward_names

    console = Console()
    experiments = Table(title="experiments (spie run NAME)", title_justify="left", box=None)
    for column in ("name", "what it reproduces", "runs x seeds", "steps"):
        experiments.add_column(column, justify="right" if column == "steps" else "left")
    for e in EXPERIMENTS.values():
        runs = e.runs(e.seeds)
        steps = sum(run.steps * (run.episodes or 1) * run.n_seeds * run.n_settings for run in runs)
        n = sum(run.n_settings for run in runs)  # a run of a search is many
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

    from spie.experiments import EXPERIMENTS, Results, get_experiment, with_frames
    from spie.run import execute
    from spie.store import Store

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
            cells = [summary(e, r, found) for r in runs if not r.is_search]
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
                left = _duration((time.monotonic() - began) * (total - done) / done)
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
    how_long = f"{seconds:.0f} s" if seconds < 600 else _duration(seconds)
    plan = f"{shape}{stored}, {bound} {how_long}"
    if any(not getattr(r.settings, "takes_long", False) for r in missing):
        plan += ", and some 2 s for each kernel that is compiled for the first time"
    return plan


def summary(experiment: "Experiment", r: "Run", results: "Results") -> dict[str, Any]:
    """One cell in plain values: what was measured, our estimate, theirs, and whether the two agree."""
    from spie.experiments import CONTROLS, deep, paper
    from spie.stats import agreement, estimate

    trace = results.trace(experiment.name, r.env, r.agent)
    assert trace is not None
    if isinstance(r.task, deep.Game):
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
    if isinstance(r.task, deep.Game):
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


@app.command()
def sweep(
    where: Annotated[
        str, typer.Argument(metavar="EXPERIMENT-OR-ENV", help="An experiment, riverswim, sixarms, a map or its file.")
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=V1,V2,...]...", help="Settings and values to try (default: the paper's grid)."),
    ] = None,
    agent: Annotated[list[str] | None, typer.Option(help="Agents or controls, once for each.")] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each setting.")] = 20,
    top: Annotated[int, typer.Option(help="So many of the best settings are run again.")] = 5,
    confirm: Annotated[int, typer.Option(help="On so many fresh seeds; 0 for not at all.")] = 200,
    steps: Annotated[int | None, typer.Option(help="Length of a run (default: as in the paper).")] = None,
    halving: Annotated[bool, typer.Option("--halving", help="Successive halving: few seeds for most.")] = False,
    budget: Annotated[str | None, typer.Option(help="Stop after 90s, 10m or 2h; run again to continue.")] = None,
    results: ResultsFile = None,
    on: Backend = "serial",
    address: Address = None,
    rewards: Rewards = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The whole table as a CSV file.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Go on where the grid is very large.")] = False,
) -> None:
    """Try a grid of settings, and confirm the best on fresh seeds, because the best of many noisy means flatters."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from spie import sweeps
    from spie.rewards import load_rewards

    for file in rewards or ():
        load_rewards(file)
    console = Console(stderr=True)
    chosen = sweeps.parse(values or [])
    n, seconds = sweeps.size(sweeps.plan(where, agent or [], chosen, seeds, steps))
    cost = f"at most {max(1, seconds):,.0f} s on this machine and some 2 s for each new kernel"
    console.print(f"[bold]{where}[/]: {n:,} settings x {seeds} seeds, {cost}", highlight=False, soft_wrap=True)
    columns = (TextColumn("  {task.percentage:3.0f} %"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("")
        try:
            table = sweeps.sweep(
                where,
                agent or (),
                seeds=seeds,
                top=top,
                confirm=confirm,
                steps=steps,
                halving=halving,
                budget=None if budget is None else sweeps.duration(budget),
                on=on,
                address=address,
                results=results,
                yes=yes,
                progress=lambda done, total: progress.update(bar, completed=done, total=total),
                **chosen,
            )
        except sweeps.OutOfTime as stop:
            console.print(f"unfinished: {stop}", highlight=False)
            return
    if output is not None:
        table.write(output)
    _print_sweep(table, top)


def _print_sweep(table: "Table", top: int) -> None:
    """The best settings of each agent, and how they were found."""
    from itertools import groupby

    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(width=None if sys.stdout.isatty() else 160)
    headings = {"mean": "mean of the search", "confirmed_mean": "confirmed", "se": "± se", "confirmed_se": "± se"}
    for (env, agent), group in groupby(table.rows(), lambda row: (row["env"], row["agent"])):
        rows = list(group)
        names = [n for n in table if n not in ("env", "agent") and any(row[n] is not None for row in rows)]
        shown = Grid(title=f"{env}, {agent}: {table.measure}", title_justify="left", box=None)
        for name in names:
            shown.add_column(headings.get(name, name), justify="right")
        for row in rows[: max(1, top)]:
            shown.add_row(*(_cell(name, row[name]) for name in names))
        console.print(shown)
    Console(stderr=True).print(table.note, highlight=False, soft_wrap=True)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    return (
        f"{value:,.0f}" if name.endswith(("mean", "se")) else f"{value:g}" if isinstance(value, float) else str(value)
    )


@app.command()
def tune(
    agent: Annotated[str, typer.Argument(metavar="NAME", help="An agent: linear-q-sf-pf, dqn-sf-pf, sarsa-srr, ...")],
    env: Annotated[
        str | None,
        typer.Option(help="Task: riverswim, mountain-car, four-rooms, ... (default: by the agent)."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings to try in all, those in the journal included.")] = 30,
    seeds: Annotated[int, typer.Option(help="Seeds of a trial; it is given up after some where it falls behind.")] = 5,
    confirm: Annotated[int, typer.Option(help="Fresh seeds for the best, and for the settings as they were.")] = 20,
    steps: Annotated[int | None, typer.Option(help="Length of a run or episode (default: as in the paper).")] = None,
    episodes: Annotated[int, typer.Option(help="Of a run, on tasks of episodes.")] = 300,
    journal: Annotated[
        Path | None, typer.Option(help="Where the search is kept (default: tune-NAME-ENV.journal).")
    ] = None,
) -> None:
    """Tune an agent where a grid is hopeless (Optuna); a search that was stopped continues."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from spie.tune import tune as tuned

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    usual = {"linear": "mountain-car", "dqn": "four-rooms", "rnd": "four-rooms"}
    where = env or usual.get(agent.partition("-")[0], "riverswim")
    console.print(f"[bold]{agent}[/] on {where}: {trials} trials of up to {seeds} seeds")
    columns = (TextColumn("  {task.completed}/{task.total}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("", total=trials)
        found = tuned(
            agent,
            where,
            trials,
            seeds=seeds,
            confirm=confirm,
            steps=steps,
            episodes=episodes,
            journal=journal,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    best, mean, se, untuned, untuned_se = (
        f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"
        for x in (found.searched, found.mean, found.se, found.default_mean, found.default_se)
    )
    print(f"{found.finished} trials, {found.pruned} of them given up early; best mean of the search {best}")
    print(
        f"confirmed on {confirm} fresh seeds: {mean} (se {se}); untuned, on the same seeds: {untuned} (se {untuned_se})"
    )
    print(found.settings)


@app.command()
def report(
    results: ResultsFile = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write one HTML page: ours beside the paper's, verdicts, figures and the commands that made them."""
    import webbrowser

    from rich.console import Console

    from spie.experiments import Results
    from spie.store import Store, default_path

    path = results or default_path()
    if not path.exists():
        raise ValueError(f"no results in {path}; make some with spie run, or name another file with --results")
    Console(stderr=True).print("drawing the page, about 20 s", highlight=False)
    from spie.report import tally, write  # matplotlib: seconds

    with Store(path) as store:
        found = Results(store)
        write(found, output)
        _, agree, differ, missing = tally(found).rows[-1].values
    print(f"{agree} published numbers agree, {differ} differ, {missing} were not run")
    print(output.resolve())
    if open_:
        webbrowser.open(output.resolve().as_uri())


@app.command()
def show(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="MAP-OR-ENV",
            help="riverswim, sixarms, mountain-car, pendulum, a named map, or a text file with a map.",
        ),
    ],
    task: Annotated[str | None, typer.Option(help="Of a map: explore (default), goal or moving-goal.")] = None,
    gamma: Annotated[float, typer.Option(help="Discount of M, F and N.")] = 0.95,
    of: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Whose columns to draw: its number or row,column (default: a door)."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The picture, .png or .svg (default: NAME.png in this folder)."),
    ] = None,
) -> None:
    """Draw an environment, its M, F and N under the uniform random policy, and the SR-R reward they give."""
    from rich.console import Console

    from spie import plots
    from spie.experiments.mountain_car import TASKS
    from spie.mdp import DENSE_STATES

    if environment in TASKS:
        _show_continuous(TASKS[environment](), output or Path(f"{environment}.png"))
        return
    mdp = _environment(environment, task)
    path = output or Path(f"{mdp.name}.png")
    plots.picture_format(path)
    if os.path.exists(environment) and path.exists() and path.samefile(environment):
        raise ValueError(f"{path} is the map itself; choose another name for the picture with -o")
    P, doors = mdp.transition(), _doors(mdp)
    s = _middle(mdp, doors) if of is None else _state(mdp, of)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    size = "" if mdp.shape is None else f" on {mdp.shape[0]} x {mdp.shape[1]} cells"
    console.print(f"{mdp.name}: {mdp.n_states:,} states{size}, {mdp.n_actions} actions")
    places = [_places(mdp, "start", mdp.start > 0)]
    if mdp.cells is not None:
        places += [_places(mdp, "goal", mdp.terminal.any(axis=0)), _places(mdp, "door", doors)]
    console.print("; ".join(places))
    symmetric = abs(P - P.T).max() < 1e-12
    console.print(f"P of the uniform random policy is {'' if symmetric else 'not '}symmetric")
    if mdp.n_states > DENSE_STATES:
        console.print(f"above {DENSE_STATES:,} states only the map is drawn; spie.sr_row_sums and sr_column_sums work")
        figure = plots.state_maps(mdp, {mdp.name: None})
    else:
        values = _values(mdp, P, gamma, s, console)
        figure = plots.state_maps(mdp, {mdp.name: None, **values}, of=s)
        _print_states(mdp, s, plots.shades(values[f"M[:, s], s = {mdp.labels[s]}"]), console)
    plots.save(figure, path)
    console.print(f"wrote {path}")


def _show_continuous(task: "ContinuousTask", path: Path) -> None:
    """Draw random Fourier features over the state space, and which states they take for like the start."""
    import numpy as np

    from spie import plots
    from spie.features import fourier_features

    plots.picture_format(path)
    phi_of = fourier_features(task.space)
    phi, start = phi_of(task.seen_over_view(60)), np.empty(len(task.low))
    task.observe((np.array(task.start_low) + task.start_high) / 2, start)
    maps = {f"feature {i}": phi[:, :, i] / np.abs(phi).max() for i in range(7)}
    maps["likeness to the start"] = phi @ phi_of(start)
    print(f"{task.name}: {len(task.low)} numbers are observed, {task.n_actions} actions ({', '.join(task.actions)})")
    print(f"{phi_of.dimension} random Fourier features of length scale 0.2, seed 0; 7 of them are drawn")
    plots.save(plots.space_maps(maps, task.view, task.labels), path)
    print(f"wrote {path}")


def _environment(name: str, task: str | None) -> "MDP":
    from spie.envs import grid, riverswim, sixarms
    from spie.envs.grids import MAPS
    from spie.errors import unknown

    chains = {"riverswim": riverswim, "sixarms": sixarms}
    if name in chains:
        if task is not None:
            raise ValueError(f"{name} has no tasks; --task is for maps")
        return chains[name]()
    if name not in MAPS and os.path.isdir(name):
        raise ValueError(f"{name} is a folder; give the text file of a map")
    if name not in MAPS and not os.path.isfile(name):
        raise unknown("environment, map or file", name, [*chains, *MAPS, "mountain-car", "pendulum"])
    return grid(name, task or "explore")


def _doors(mdp: "MDP") -> "NDArray[np.bool_]":
    """Which states of a grid have walls on two opposite sides and none on the other two [S]."""
    import numpy as np

    if mdp.cells is None:
        return np.zeros(mdp.n_states, dtype=np.bool_)
    up, right, down, left = (mdp.next[:, :, 0] == np.arange(mdp.n_states)[:, None]).T  # into a wall
    doors: NDArray[np.bool_] = (up == down) & (left == right) & (up != left)
    return doors


def _middle(mdp: "MDP", doors: "NDArray[np.bool_]") -> int:
    """The door, or else the state, that is nearest to the middle."""
    import numpy as np

    if mdp.cells is None or mdp.shape is None:
        return mdp.n_states // 2
    away = ((mdp.cells - (np.array(mdp.shape) - 1) / 2) ** 2).sum(axis=1)
    return int(np.where(doors | ~doors.any(), away, np.inf).argmin())


def _state(mdp: "MDP", name: str) -> int:
    """The state of a label or number."""
    if name in mdp.labels:
        return mdp.labels.index(name)
    if name.isdecimal() and int(name) < mdp.n_states:
        return int(name)
    label = "" if mdp.cells is None else f" or the row,column of a free cell, such as {mdp.labels[0]}"
    raise ValueError(f'{mdp.name}: no state "{name}"; give a number 0..{mdp.n_states - 1}{label}')


def _places(mdp: "MDP", kind: str, states: Any) -> str:
    """Where the start, the goals or the doors are, from a mask [S]."""
    n = int(states.sum())
    labels = " ".join(mdp.labels[s] for s in states.nonzero()[0][:6])
    return (
        f"no {kind}" if n == 0 else f"{kind} {labels}" if n == 1 else f"{n:,} {kind}s{f' ({labels})' if n <= 6 else ''}"
    )


def _values(mdp: "MDP", P: Any, gamma: float, s: int, console: "Console") -> "dict[str, NDArray[np.float64]]":
    """What there is to see of every state: sums of M and N, the fixed SR-R reward, and what M, F and N say of s."""
    import numpy as np

    from spie.representations import pr, sr
    from spie.rewards import get_reward

    if mdp.n_states > 2000:
        console.print("solving for M and N, which may take half a minute")
    ends = mdp.terminal[0] if mdp.terminal[0].any() else None
    M = sr(P, gamma, ends)
    columns = M.sum(axis=0)
    rewards = get_reward("sr-r").function(M[np.arange(mdp.n_states)[:, None, None], mdp.next], columns[mdp.next])
    mean_reward = (mdp.prob * rewards).sum(axis=2).mean(axis=1)
    mean_reward[mdp.terminal[0]] = np.nan  # nothing is done there
    at = f"s = {mdp.labels[s]}"
    values = {"row sums of M": M.sum(axis=1), "column sums of M": columns}
    of_s = {f"M[:, s], {at}": M[:, s], f"F[:, s], {at}": M[:, s] / M[s, s]}
    try:
        N = pr(P, gamma, ends)
    except ValueError as error:
        console.print(f"N is not drawn: {str(error).partition(';')[0]}")
    else:
        values["column sums of N"] = N.sum(axis=0)
        of_s[f"N[:, s], {at}"] = N[:, s]
    return values | {"fixed SR-R reward": mean_reward} | of_s


def _print_states(mdp: "MDP", s: int, shades: list[str], console: "Console") -> None:
    """A picture for the terminal: the map, or the states in a line, shaded; plain text where colours do not go."""
    from rich.text import Text

    from spie.mdp import write

    def styled(word: str, shade: str) -> Text:
        dark = sum(bytes.fromhex(shade[1:])) < 330
        return Text(word, style=f"{'white' if dark else 'black'} on {shade}")

    mark = "in brackets" if mdp.cells is None else "marked @"
    if mdp.cells is None:
        words = zip(write(mdp, s).split(" "), shades, strict=True)
        console.print(Text("").join(styled(f" {word} ", shade) for word, shade in words))
    elif mdp.shape is not None and console.is_terminal and console.width < 2 * mdp.shape[1]:
        console.print(f"(the map does not fit into {console.width} columns)")
    else:
        shade = dict(zip(map(tuple, mdp.cells.tolist()), shades, strict=True))
        for row, line in enumerate(write(mdp, s).splitlines()):
            cells = (
                styled(letter * 2 if letter == "#" else f"{letter} ", shade.get((row, column), "#3a3d46"))
                for column, letter in enumerate(line)
            )
            console.print(Text("").join(cells))
    console.print(f"shaded by M[:, s]: how soon and how often each state leads to s = {mdp.labels[s]}, {mark}")


@app.command()
def train(
    environment: Annotated[
        str,
        typer.Argument(metavar="ENV", help="A game, four-rooms, deep-sea-10, a map, or a Gymnasium id with images."),
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings of the agent or options of the environment."),
    ] = None,
    agent: Annotated[
        str, typer.Option(help="dqn, dqn-mmc, rnd, dqn-sr, dqn-sf-pf, dqn-constant, dqn-count.")
    ] = "dqn-sf-pf",
    preset: Annotated[
        str | None, typer.Option(help="paper, nature or small (default: paper for games, else small).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of the agent (default: 30,000).")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the emulator, instead of steps.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: runs/ENV-AGENT-SEED).")] = None,
    results: ResultsFile = None,
) -> None:
    """Train a deep agent; stop it as you like, spie resume goes on."""
    import re

    from spie.agents import training
    from spie.agents.deep import DQN, steps_of
    from spie.envs.images import options_of
    from spie.errors import unknown

    known = {field.name for field in dataclasses.fields(DQN)} - {"bonus", "preset"}
    values = _assignments(assignments or [])
    options = {name: values.pop(name) for name in list(values) if name not in known}
    theirs = options_of(environment)
    for name in options:
        if theirs and name not in theirs:
            raise unknown("setting or option", name, known | set(theirs))
    task = training.Task(environment, options)
    env = task.make(1)
    default = "paper" if hasattr(env, "frame_skip") else "small"
    settings = DQN.named(agent, preset=preset or default, **values)
    n = steps_of(30_000 if steps is None and frames is None else steps, frames, env)
    folder = out or Path("runs") / f"{re.sub('[^A-Za-z0-9]+', '-', environment).strip('-')}-{agent}-{seed}"
    training.check_new(folder)
    console = _console()
    console.print(f"{environment}: {agent} ({settings.preset}), {n:,} steps, seed {seed}, into {folder}")
    cost = training.cost(settings, task, n, training.default_threads(settings))
    console.print(
        f"needs {cost.bytes / 1e9:.2f} GB of memory and about {_duration(cost.seconds)} here; Ctrl-C saves and stops"
    )
    with _watch(console) as progress:
        trace = training.train(settings, environment, n, seed, folder, options=options, progress=progress)
    _finish(folder, trace, results, console)


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")], results: ResultsFile = None
) -> None:
    """Go on with a run that was stopped, or killed, as if nothing had happened."""
    from spie.agents import training

    console = _console()
    with _watch(console) as progress:
        trace = training.resume(folder, progress=progress, warn=console.print)
    _finish(folder, trace, results, console)


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    episodes: Annotated[int, typer.Option(help="To play.")] = 10,
    epsilon: Annotated[float, typer.Option(help="Chance of an action at random.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as JSON.")] = False,
) -> None:
    """Play episodes without learning, and say what they pay."""
    import numpy as np

    from spie.agents import training

    _between("--episodes", episodes, 1, 100_000)
    _between("--epsilon", epsilon, 0, 1)
    rewards = np.array(training.evaluate(folder, episodes, epsilon, _console().print))
    if as_json:
        print(json.dumps({"episodes": rewards.tolist(), "mean": rewards.mean(), "sd": rewards.std(ddof=episodes > 1)}))
    else:
        spread = f", sd {rewards.std(ddof=1):,.2f}" if episodes > 1 else ""
        print(f"{episodes} episodes: mean reward {rewards.mean():,.2f}{spread}, best {rewards.max():,.2f}")


@app.command()
def play(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The film, .gif.")] = Path("play.gif"),
    epsilon: Annotated[float, typer.Option(help="Chance of an action at random.")] = 0.05,
    steps: Annotated[int, typer.Option(help="At most so many.")] = 300,
) -> None:
    """Film an episode: frame, expected frame, Q and bonus side by side."""
    import numpy as np

    from spie import plots
    from spie.agents import training

    _between("--steps", steps, 1, 10_000)
    _between("--epsilon", epsilon, 0, 1)
    if output.suffix != ".gif":
        raise ValueError(f"{output}: a film is a .gif; choose such a name with -o")
    taken = []
    for step in training.player(folder, _console().print).play(epsilon, np.random.default_rng(0)):
        taken.append(step)
        if step.over or len(taken) == steps:
            break
    plots.film(
        [step.frame for step in taken],
        [step.q for step in taken],
        [step.action for step in taken],
        [step.bonus for step in taken],
        [step.predicted for step in taken],
        output,
    )
    print(f"wrote {output}: {len(taken)} steps, reward {sum(step.reward for step in taken):,.2f}")


def _assignments(words: list[str]) -> dict[str, Any]:
    """key=value ..., with numbers, true, false and null as JSON has them."""
    values = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f'"{word}" is no setting; settings are key=value, such as beta=0.1')
        try:
            values[key] = json.loads(text)
        except json.JSONDecodeError:
            values[key] = text
    return values


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low} and {high:,}, not {value}")


def _console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


@contextmanager
def _watch(console: "Console") -> "Iterator[Any]":
    """How a run stands: one line on a terminal, elsewhere a line for every tenth of the run."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = TextColumn("{task.percentage:3.0f} %"), BarColumn(bar_width=20), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        tenth = -1

        def show(report: Any) -> None:
            nonlocal tenth
            words = [f"{report.step:,} steps", f"{report.rate:,.0f}/s"]
            if (reward := report.curves.get("rollout/ep_rew_mean")) is not None:
                words.append(f"return {reward:,.2f}")
            if (bonus := report.curves.get("intrinsic/raw_mean")) is not None:
                words.append(f"bonus {bonus:.3g}")
            words.append(f"{_duration(report.seconds_left)} left")
            bar.update(task, total=report.steps, completed=report.step, description="  ".join(words))
            if not console.is_terminal and 10 * report.step // report.steps > tenth:
                tenth = 10 * report.step // report.steps
                console.print("  ".join(words))

        yield show


def _finish(folder: Path, trace: Any, results: Path | None, console: "Console") -> None:
    """Keep a finished run in the store as well, and say how it ended."""
    from spie.agents import checkpoint, training
    from spie.run import Run, save
    from spie.store import Store

    spec = training.read_run(folder)
    settings, task = spec["settings"], training.Task(spec["env"], spec["options"])
    run = Run(spec["env"], settings.name, settings, task, spec["steps"], (spec["seed"],))
    last_checkpoint = checkpoint.read_manifest(checkpoint.checkpoints(folder / "checkpoints")[0])
    with Store(results) as store:
        save(store, run, trace, last_checkpoint["values"]["seconds"])
    last = trace.episode_rewards[0][-100:]
    mean = f", mean reward of the last {len(last)} {last.mean():,.2f}" if len(last) else ""
    print(f"{run.env} {run.agent}: {int(trace.steps[0]):,} steps, {trace.episode_steps.shape[1]} episodes{mean}")
    console.print(f"next: spie evaluate {folder}; spie play {folder}; tensorboard --logdir {folder}")


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="An intrinsic reward. See spie list.")],
    env: Annotated[
        str | None, typer.Option(help="Gymnasium id of an environment (default: a maze, or MountainCar).")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a random policy to check it on.")] = 2000,
    file: Annotated[Path | None, typer.Option("--from", help="A Python file of yours with @spie.reward.")] = None,
) -> None:
    """Check an intrinsic reward: numbers, episode edges, order of environments, scale, whether it fades, speed."""
    import runpy

    import gymnasium as gym

    from spie.check import check_reward

    if file is not None:
        runpy.run_path(str(file))
    if steps < 100:
        raise ValueError(f"--steps must be 100 or more, not {steps}")
    try:
        chosen = None if env is None else gym.make(env)
    except gym.error.Error as error:
        raise ValueError(f"--env {env}: {error}") from error
    check_reward(name, chosen, steps)


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    try:
        code = app(standalone_mode=False)  # Typer hands back 130 for Ctrl-C
    except (ValueError, OSError) as error:
        _fail(str(error))
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):  # a fault of ours; what is not installed, we say ourselves
            raise
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        if hasattr(error, "format_message"):  # how the command line's own errors tell themselves
            _fail(error.format_message())
        raise
    if code == 130:
        print("stopped; what is stored stays, run again to continue", file=sys.stderr)
    sys.exit(code or 0)


def _fail(message: str) -> NoReturn:
    print(f"spie: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
