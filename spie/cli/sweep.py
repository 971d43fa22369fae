"""`spie sweep` and `spie tune`: searches over settings."""

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import (
    Address,
    Backend,
    ResultsFile,
    Rewards,
    a_name,
    app,
    check_output,
    number,
    parse_assignments,
    parse_choices,
    parse_duration,
    plain,
    progress_bar,
)

if TYPE_CHECKING:
    from spie.search.select import Search
    from spie.search.sweep import SweepTable


@app.command()
def sweep(
    where: Annotated[
        str,
        a_name("EXPERIMENT-OR-ENV", "An experiment, a task, a map or its file.", completion.sweep_names),
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=V1,V2,...]...", help="Settings and values to try (default: the paper's grid)."),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="An agent or control; give it once for each.", autocompletion=completion.agent_names),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of each setting.")] = 20,
    top: Annotated[int, typer.Option(help="How many of the best settings are run again.")] = 5,
    confirm: Annotated[int, typer.Option(help="On how many fresh seeds; 0 for not at all.")] = 200,
    steps: Annotated[int | None, typer.Option(help="Length of a run (default: as in the paper).")] = None,
    task: Annotated[str | None, typer.Option(help="Of a map: explore, goal, moving-goal or trials.")] = None,
    halving: Annotated[bool, typer.Option("--halving", help="Successive halving: few seeds for most.")] = False,
    budget: Annotated[str | None, typer.Option(help="Stop after 90s, 10m or 2h; run again to continue.")] = None,
    results: ResultsFile = None,
    on: Backend = "serial",
    address: Address = None,
    rewards: Rewards = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The whole table as a CSV file.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run even a very large grid.")] = False,
) -> None:
    """Try a grid of settings, and confirm the best on fresh seeds, because the best of many noisy means flatters."""
    from rich.console import Console

    from spie.paper.sweeps import searches
    from spie.runs.user_code import load_rewards
    from spie.search.sweep import OutOfTime, Plan, size
    from spie.search.sweep import sweep as run_sweep

    for file in rewards or ():
        load_rewards(file)
    if output is not None:
        check_output(output)
    console = Console(stderr=True)
    options = {} if task is None else {"task": task}
    tried = searches(where, agent or [], parse_choices(values or []), steps, options=options)
    seconds_left = None if budget is None else parse_duration(budget)
    plan = Plan(seeds, top, confirm, halving, seconds_left, on, address, results, yes)
    n, cost = size(tried, plan)
    console.print(f"[bold]{plain(where)}[/]: {n:,} settings x {seeds} seeds, {cost}", highlight=False, soft_wrap=True)
    if task is None and (ignored := _ignored_goals(tried)):
        said = f"goals or ends {ignored} of the map are ignored: all of it is explored; --task goal seeks them"
        console.print(said, highlight=False, soft_wrap=True)
    try:
        with progress_bar(console, "{task.percentage:3.0f} %") as progress:
            table = run_sweep(tried, dataclasses.replace(plan, progress=progress))
    except OutOfTime as stop:
        console.print(f"unfinished: {plain(stop)}", highlight=False)
        return
    if output is not None:
        table.write(output)
    _print_sweep(table, top)


MEASURED = {"mean": "mean of the search", "confirmed_mean": "confirmed", "se": "± se", "confirmed_se": "± se"}


def _ignored_goals(tried: "list[Search]") -> str:
    from spie.tasks.grids import ignored_goals

    return next((ignored_goals(one.task) for one in tried if one.task.kind == "table"), "")


def _print_sweep(table: "SweepTable", top: int) -> None:
    """The best settings of each agent, and how they were found."""
    from itertools import groupby

    from rich.console import Console
    from rich.table import Table

    from spie.runs.user_code import source_of

    console = Console(width=None if sys.stdout.isatty() else 160)
    for (env, agent), group in groupby(table.rows(), lambda row: (row["env"], row["agent"])):
        rows = list(group)
        names = [n for n in table if n not in ("env", "agent") and any(row[n] is not None for row in rows)]
        varied = [n for n in names if n not in SCORES and len({row[n] for row in rows} - {None}) > 1]
        what = f"; {', '.join(varied)} {'vary' if len(varied) > 1 else 'varies'}" if varied else ""
        console.print(plain(f"{env}, {agent}: {table.measure}{what}"), highlight=False)
        shown = Table(box=None)
        for name in names:
            shown.add_column(MEASURED.get(name, name), justify="right")
        best, own = rows[: max(1, top)], {str(row["reward"]) for row in rows if source_of(row.get("reward") or "")}
        for reward in sorted(own - {str(row.get("reward")) for row in best}):  # the user's, however it did
            best.append(next(row for row in rows if row["reward"] == reward))
        for row in best:
            shown.add_row(*(plain(_cell(name, row[name])) for name in names))
        console.print(shown)
    Console(stderr=True).print(plain(table.note), highlight=False, soft_wrap=True)


SCORES = ("mean", "se", "seeds", "confirmed_mean", "confirmed_se")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name in MEASURED:
        return number(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@app.command()
def tune(
    agent: Annotated[
        str,
        a_name("NAME", "An agent: linear-q-sf-pf, dqn-sf-pf, sarsa-srr, ...", completion.agent_names),
    ],
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings of the agent that are not tuned.")
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="Task: riverswim, mountain-car, four-rooms, ... (default: by the agent's kind).",
            autocompletion=completion.task_names,
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Settings to try in all, those in the journal included.")] = 30,
    seeds: Annotated[int, typer.Option(help="Seeds of a trial; one that falls behind is stopped early.")] = 5,
    confirm: Annotated[int, typer.Option(help="Fresh seeds for the best, and for the settings as they were.")] = 20,
    steps: Annotated[int | None, typer.Option(help="Length of a run or episode (default: by the task).")] = None,
    episodes: Annotated[
        int | None, typer.Option(help="Episodes of a run, on tasks that have them (default on continuous tasks: 300).")
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="Where the search is kept (default: tune-NAME-ENV.journal).")
    ] = None,
) -> None:
    """Tune an agent where a grid is hopeless (Optuna); a search that was stopped continues."""
    from rich.console import Console

    from spie.search import tune as tuning

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    where = env or tuning.usual_task(agent)
    console.print(f"[bold]{plain(agent)}[/] on {plain(where)}: {trials} trials of up to {seeds} seeds")
    how: dict[str, Any] = {"seeds": seeds, "confirm": confirm, "steps": steps, "episodes": episodes, "journal": journal}
    with progress_bar(console, "{task.completed}/{task.total}") as progress:
        found = tuning.tune(agent, where, trials, **how, progress=progress, **parse_assignments(settings or []))
    best, mean, se, untuned, untuned_se = map(
        number, (found.searched, found.mean, found.se, found.default_mean, found.default_se)
    )
    print(f"{found.finished} trials, {found.pruned} of them stopped early; best mean of the search {best}")
    print(
        f"confirmed on {confirm} fresh seeds: {mean} (se {se}); untuned, on the same seeds: {untuned} (se {untuned_se})"
    )
    print(found.settings)
