"""`spie demo`: in a minute, what exploration looks like, and why a control stands beside every agent."""

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli.terminal import app, error_console, number

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from spie.tasks.mdp import MDP
    from spie.trace import Trace

RUNNERS = {  # agents by name, and what each is for a newcomer
    "random": "random walk",
    "constant": "constant cost",
    "sarsa-sr": "SARSA-SR",
    "sarsa-srr": "SARSA-SRR",
}
MAZE = """
S....#....
.....#....
.....#....
.....#....
.....#....
..........
.....#....
.....#....
.....#....
.....#....
"""
STEPS, SEEDS = 2000, 100
CAPTION = f"Steps until 90 % of the cells were seen, median of {SEEDS} seeds (fewer is better)"
FRAMES, SECONDS = 80, 6.0  # of the race, as it is shown
TOLD = (100, 250, 500, 1000, 2000)  # steps at which a pipe hears of it
NEXT = (
    ("spie studio", "draw a maze and race agents in it"),
    ("spie show four-rooms", "a picture of M, F and N of a maze"),
    ("spie run table1 && spie report", "the paper's Table 1 and ours, on a page"),
)


@app.command()
def demo(output: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("demo.html")) -> None:
    """Race four agents through two rooms: watch, read what happened, get a page. No options needed."""
    from rich.console import Console

    from spie.tasks.grids import grid

    console = Console(highlight=False)
    page = _writable(output)
    mdp = grid(MAZE)
    print("Two rooms and a door, no reward anywhere. Who sees all of it first?\n")
    print(MAZE.lstrip())
    traces = _run(mdp)
    _show_race(console, mdp, traces)
    there = steps_to_most(traces)
    medians = {label: number(there[label]) if label in there else f"not in {STEPS:,} steps" for label in traces}
    print("\n".join(["", f"{CAPTION}:", *(f"  {label:14} {steps}" for label, steps in medians.items())]))
    console.print("\n".join([*what_happened(there), ""]))
    _write_page(page, mdp, traces, medians, what_happened(there))
    print(f"The same with curves, as a page: {page.resolve()}\n\nNext:")
    for command, why in NEXT:
        console.print(f"  [bold]{command}[/]\n      {why}" if console.width < 80 else f"  [bold]{command:34}[/] {why}")


def _writable(path: Path) -> Path:
    """The path, or one in the folder for temporary files where nothing can be written here."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the page itself, such as --out {path / 'demo.html'}")
    try:
        with tempfile.TemporaryFile(dir=path.absolute().parent):
            return path
    except OSError as error:
        if path != Path("demo.html"):
            raise ValueError(f"cannot write {path}: {error.strerror}; name another page with --out") from error
        return Path(tempfile.mkdtemp(prefix="spie-demo-")) / path.name


def _run(mdp: "MDP") -> "dict[str, Trace]":
    from spie.agents.base import Keep
    from spie.agents.registry import agent

    console = error_console()
    traces = {}
    for i, (name, label) in enumerate(RUNNERS.items(), 1):
        if console.is_terminal:
            told = f"{i} of {len(RUNNERS)}: {label}; the first time, its loop is compiled for some seconds"
            console.print(told, end="\r", crop=True, soft_wrap=False, overflow="ellipsis")
        elif i == 1:
            console.print(f"running {len(RUNNERS)} agents; the first time, each is compiled for some seconds")
        traces[label] = agent(name, mdp).run(mdp, STEPS, SEEDS, keep=Keep(paths=(0,)))
    console.print(" " * (console.width - 1), end="\r") if console.is_terminal else None
    return traces


def _show_race(console: "Console", mdp: "MDP", traces: "dict[str, Trace]") -> None:
    """The first seed of each agent, step by step on a terminal, at a few steps elsewhere."""
    if not console.is_terminal:
        print("share of the cells seen, first seed of each")
        print(f"{'steps':>14}" + "".join(f"{t:>6}" for t in TOLD))
        for label, trace in traces.items():
            shares = trace.coverage(TOLD)[0]
            print(f"{label:>14}" + "".join(f"{share:>6.0%}" for share in shares))
        return
    from rich.live import Live

    with Live(console=console, auto_refresh=False) as live:
        for frame in range(1, FRAMES + 1):
            live.update(_frame(console, mdp, traces, round(STEPS * (frame / FRAMES) ** 2)), refresh=True)
            time.sleep(SECONDS / FRAMES)


def _frame(console: "Console", mdp: "MDP", traces: "dict[str, Trace]", t: int) -> "RenderableType":
    """The race after t steps: a bar for each agent, and above it a map where there is room."""
    from rich.columns import Columns
    from rich.console import Group
    from rich.text import Text

    solid = "█" if (console.encoding or "").lower().startswith("utf") else "#"
    wide = max(8, min(40, console.width - 26))
    lines = []
    for label, trace in traces.items():
        share = float(trace.coverage([t])[0, 0])
        bar = (solid * round(share * wide)).ljust(wide)
        lines.append(Text.assemble(f"{label:>14} ", (bar, "green"), f" {share:>4.0%}"))
    parts: list[Any] = [Text(f"step {t:,} of {STEPS:,}"), *lines]
    if console.width >= 60:
        maps = [_map(mdp, label, trace, t, solid) for label, trace in traces.items()]
        parts.insert(1, Columns(maps, padding=(1, 2)))
    return Group(*parts)


def _map(mdp: "MDP", label: str, trace: "Trace", t: int, solid: str) -> "RenderableType":
    """Where the first seed has been after t steps, and where it is."""
    import numpy as np
    from rich.text import Text

    assert mdp.cells is not None
    assert mdp.shape is not None
    path = trace.paths[0]
    letters = np.full(mdp.shape, solid)
    first = trace.first_visit[0]
    letters[tuple(mdp.cells.T)] = np.where((first >= 0) & (first <= t), "·" if solid == "█" else ".", " ")
    letters[tuple(mdp.cells[path.next_states[t - 1] if t else path.states[0]])] = "@"
    return Text("\n".join([label, *("".join(row) for row in letters)]))


def steps_to_most(traces: "dict[str, Trace]") -> dict[str, float]:
    """Median steps until nine tenths of the cells were seen, over all seeds; those who got there in time."""
    import numpy as np

    medians = {label: float(np.median(trace.steps_to(0.9))) for label, trace in traces.items()}
    return {label: steps for label, steps in medians.items() if steps <= STEPS}


def what_happened(there: dict[str, float]) -> list[str]:
    """What these numbers say, in sentences."""
    lines = []
    if {"constant cost", "SARSA-SRR"} <= there.keys():
        ratio = there["SARSA-SRR"] / there["constant cost"]
        lines.append(
            f"SARSA-SRR looks at what states lead to and at what leads to them. It needed {ratio:.2f} times the steps "
            "of a plain cost of 1 a step, which knows nothing of the maze: a control stands beside every agent here."
        )
    if "SARSA-SR" not in there:
        lines.append(
            "SARSA-SR looks forward only. Its bonus is never negative, so what it never tried does not look better "
            "than what it has, and it turns to little that is new."
        )
    return lines


def _write_page(
    path: Path, mdp: "MDP", traces: "dict[str, Trace]", medians: dict[str, str], sentences: list[str]
) -> None:
    import numpy as np

    from spie import stats
    from spie.page import standalone
    from spie.paper.sections import Curve, CurvePanels, Maps, Panel, Row, SectionPart, Table, Text

    steps = np.arange(0, STEPS + 1, 10)
    curves = {label: Curve(steps, *stats.mean_curve(100 * trace.coverage(steps))) for label, trace in traces.items()}
    panel = Panel("", curves, "steps", "cells seen, %")
    table = Table(CAPTION, ("agent", "steps"), [Row(row) for row in medians.items()])
    sections: list[tuple[str, list[SectionPart]]] = [
        ("What happened", [table, Text("", sentences)]),
        ("Cells seen", [CurvePanels(f"Mean of {SEEDS} seeds with its 95 % interval", [panel])]),
        ("The maze", [Maps("Two rooms; agents start at S, and nothing pays", {"two rooms": mdp})]),
    ]
    introduction = ["Four agents explore two rooms in which there is no reward. What drives them is their bonus alone."]
    standalone.write(path, "Exploration in two rooms", introduction, sections, " ".join(["spie", *sys.argv[1:]]))
