"""`spie compare`: does a bonus help on my task?"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import (
    Address,
    ResultsFile,
    Rewards,
    app,
    check_output,
    error_console,
    number,
    parse_assignments,
    parse_duration,
    progress_bar,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spie.comparison.outcome import BonusComparison


@app.command()
def compare(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="The agent's settings: alpha=0.5, n_steps=128")
    ] = None,
    env: Annotated[
        str,
        typer.Option(
            help="A Gymnasium id, a task of spie list, a map, MiniGrid-..., ALE/..., or FILE.py:function.",
            autocompletion=completion.task_names,
        ),
    ] = "",
    agent: Annotated[
        str | None,
        typer.Option(help="q-learning, ppo, dqn, a2c, or MODULE:function of (env, seed) (default: what suits it)."),
    ] = None,
    bonuses: Annotated[
        str | None, typer.Option(help="Names with commas: constant,count,sr-r (default: by the observations).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Of each run (default: 20,000, or 50,000 of deep agents).")] = None,
    seeds: Annotated[int | None, typer.Option(help="Fresh seeds of the confirmation (default: 10, or 5).")] = None,
    choose: Annotated[int | None, typer.Option(help="Seeds on which settings are chosen (default: 3, or 2).")] = None,
    again: Annotated[int, typer.Option(help="Repeat all of it on other seeds: 1, 2, ...")] = 0,
    budget: Annotated[str | None, typer.Option(help="90s, 10m or 2h; run again to continue.")] = None,
    results: ResultsFile = None,
    on: Annotated[str, typer.Option(help="Where to run: serial, processes or ray.")] = "serial",
    address: Address = None,
    rewards: Rewards = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("compare.html"),
) -> None:
    """Does a bonus help on my task? Bare agent, controls and bonuses, chosen on some seeds, confirmed on others."""
    if not env:
        raise ValueError(
            "--env is missing: a Gymnasium id such as FrozenLake-v1, a task of spie list, FILE.py:function"
        )
    from spie.comparison.compare import compare as run_comparison
    from spie.runs.user_code import load_rewards
    from spie.search.sweep import OutOfTime

    for file in rewards or ():
        load_rewards(file)
    check_output(output)
    console = error_console()
    how: dict[str, Any] = {"steps": steps, "seeds": seeds, "choose": choose, "again": again, "on": on}
    how |= {"address": address, "results": results, "budget": None if budget is None else parse_duration(budget)}
    how |= {"bonuses": [name.strip() for name in bonuses.split(",") if name.strip()] if bonuses else None}
    try:
        with progress_bar(console, "{task.percentage:3.0f} %") as progress:
            how |= {"progress": progress, "say": lambda line: console.print(f"{env}: {line}")}
            found = run_comparison(env, agent, **how, **parse_assignments(settings or []))
    except OutOfTime as stop:
        console.print(f"unfinished: {stop}")
        return
    try:
        _print(found)
    finally:  # also where what reads the tables has enough of them: | head
        from spie.page import comparison  # matplotlib: seconds

        comparison.write(output, found, shlex.join(["spie", *sys.argv[1:]]))
    print(output.resolve())


def _print(found: "BonusComparison") -> None:
    """Verdict and tables, which fit a terminal of 80 columns."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, soft_wrap=True)
    for line in found.verdict:
        console.print(line)
    table, bonuses = found.table(), found.bonuses()
    settings = {row["arm"]: {"setting": row["setting"]} for row in table}
    reward = REWARD | {"seeds that get there": f"seeds of\n{found.seeds} that\nget there"}
    for rows, columns in ((table, reward), (bonuses, BONUS)):
        shown = Table(title=rows.title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        for name, heading in columns.items():
            words = name in ("arm", "setting", "sign")
            shown.add_column(heading, justify="left" if words else "right", no_wrap=name in UNBROKEN)
        for row in rows:
            shown.add_row(*(_cell({**row, **settings[row["arm"]]}, name) for name in columns))
        console.print("")
        Console(highlight=False).print(shown)
        for note in rows.notes:
            Console(highlight=False, markup=False).print(note)


REWARD = {
    "arm": "arm", "reward per episode": "reward per episode\n[95 %]", "seeds that get there": "",
    "chance to beat bare": "chance to beat\nbare [95 %]", "p": "p",
}  # fmt: skip
BONUS = {
    "arm": "arm", "sign": "sign", "rms per step": "rms\nper\nstep", "outweighs the reward": "out-\nweighs\nreward",
    "steps per episode": "steps\nper\nepisode", "episodes that end by themselves": "end by\nthem-\nselves",
    "microseconds per step more than bare": "µs a\nstep\nmore", "setting": "setting",
}  # fmt: skip
UNBROKEN = ("arm", "reward per episode", "chance to beat bare")  # the others may be broken in a narrow terminal


def _cell(row: "Mapping[str, Any]", name: str) -> str:
    from spie.behaviour.rows import short

    value = row.get(name)
    if name == "reward per episode" and value is not None:
        return f"{number(value)} [{number(row['95 % from'])}, {number(row['to'])}]"
    if name == "chance to beat bare" and value is not None:
        return f"{value:.2f} [{row['chance from']:.2f}, {row['chance to']:.2f}]"
    if name in ("outweighs the reward", "episodes that end by themselves") and value is not None:
        return f"{value:.0%}"
    if name in ("steps per episode", "microseconds per step more than bare") and value is not None:
        return number(value)
    return f"{value:.2g}" if name in ("p", "rms per step") and value is not None else short(value)
