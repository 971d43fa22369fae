"""The `spie` command. Heavy imports stand inside the commands, so that `spie --help` is instant."""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from spie.experiments import Experiment, Results
    from spie.run import Run
    from spie.store import Store

app = typer.Typer(
    help="Successor-Predecessor Intrinsic Exploration: run the paper's experiments, see how ours compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ResultsFile = Annotated[
    Path | None, typer.Option("--results", help="Where results are kept (default: $SPIE_RESULTS or results.db).")
]


@app.command("list")
def list_() -> None:
    """What there is: experiments, agents, rewards, environments."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

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
        steps = sum(run.steps * (run.episodes or 1) * run.n_seeds for run in runs)
        shape = f"{len(runs)} x {e.seeds}" if runs else "-"
        experiments.add_row(e.name, e.title, shape, f"{'up to ' if any(r.episodes for r in runs) else ''}{steps:,}")
    console.print(experiments, "")
    rewards = Table(title="intrinsic rewards", title_justify="left", box=None)
    rewards.add_column("name")
    rewards.add_column("what it pays for a step from s to s'")
    for name in reward_names():
        rewards.add_row(name, escape(get_reward(name).summary))
    console.print(rewards, "")
    console.print("agents", style="bold")
    console.print(" ", ", ".join(AGENTS))
    console.print("environments", style="bold")
    console.print("  riverswim, sixarms,", ", ".join(MAPS), "and any map of your own in a text file")


@app.command()
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments; none for all. See spie list.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Seeds of each run (default: each experiment's own).")] = None,
    results: ResultsFile = None,
    on: Annotated[str, typer.Option(help="Where to run: serial (threads) or processes.")] = "serial",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a cell instead of a table.")] = False,
) -> None:
    """Run experiments; what is stored already is not run again."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from spie.experiments import EXPERIMENTS, Results, get_experiment
    from spie.run import execute
    from spie.store import Store

    chosen = [get_experiment(name) for name in dict.fromkeys(names or EXPERIMENTS)]
    if seeds is not None and not 1 <= seeds <= 1_000_000:
        raise ValueError(f"--seeds must lie between 1 and 1,000,000, not {seeds}")
    console = Console(stderr=True)
    with Store(results) as store:
        for e in chosen:
            runs = e.runs(seeds or e.seeds)
            store.ask_for(e.name, seeds or e.seeds)
            console.print(f"[bold]{e.name}[/]: {_plan(runs, store)}", highlight=False)
            columns = (TextColumn("  {task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
            with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
                task = progress.add_task("", total=len(runs))
                for r in execute(runs, store, on):
                    progress.update(task, advance=1, description=f"{r.env} {r.agent}")
            cells = [summary(e, r, Results(store)) for r in runs]
            if as_json:
                for cell in cells:
                    print(json.dumps(cell))
            elif cells:
                _print_cells(e, cells)
    if not as_json:
        console.print(f"next: spie report{f' --results {results}' if results else ''}", highlight=False)


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
    return f"{shape}{stored}, {bound} {seconds:.0f} s, and some 5 s for each kernel that is compiled for the first time"


def summary(experiment: "Experiment", r: "Run", results: "Results") -> dict[str, Any]:
    """One cell in plain values: what was measured, our estimate, theirs, and whether the two agree."""
    from spie.experiments import CONTROLS, paper
    from spie.stats import agreement, estimate

    trace = results.trace(experiment.name, r.env, r.agent)
    assert trace is not None
    measure, values = "total reward", trace.total_reward
    if r.episodes is not None:
        measure, values = "steps an episode", trace.episode_steps.mean(axis=1)
    elif r.mdp.cells is not None:
        measure, values = f"states seen in {r.steps} steps, of {r.mdp.n_states}", (trace.first_visit >= 0).sum(axis=1)
    ours = estimate(values)
    cell: dict[str, Any] = {"experiment": experiment.name, "env": r.env, "agent": r.agent, "measure": measure}
    cell |= dataclasses.asdict(ours)
    published = experiment.published.get((r.env, r.agent))
    verdict = "control" if r.agent in CONTROLS else "no number printed"
    if published is not None:
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


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    try:
        code = app(standalone_mode=False)  # Typer hands back 130 for Ctrl-C
    except (ValueError, OSError) as error:
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
