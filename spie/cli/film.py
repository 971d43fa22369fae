"""`spie film`: agents in a maze, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import Ends, app, check_output, error_console, parse_ends

if TYPE_CHECKING:
    from spie.page.plots.frames import FilmedRun
    from spie.tasks.mdp import MDP


@app.command()
def film(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="MAZE", help="A task with a table: a map, a graph, a maze.", autocompletion=completion.task_names
        ),
    ],
    agents: Annotated[str, typer.Option(help="Agents to film, separated by commas.")] = "sarsa,sarsa-srr,constant",
    task: Annotated[str | None, typer.Option(help="Of a map: explore (default), goal or moving-goal.")] = None,
    bumps: Annotated[
        bool | None, typer.Option("--bumps/--no-bumps", help="Of a map: whether one can walk into a wall, and stay.")
    ] = None,
    ends: Ends = None,
    steps: Annotated[int, typer.Option(help="Steps of each agent.")] = 2000,
    frames: Annotated[int, typer.Option(help="Frames of the film, evenly over the steps.")] = 120,
    seed: Annotated[int, typer.Option(help="Seed of every agent.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The film, .gif or .mp4 (default: NAME.gif in this folder).")
    ] = None,
) -> None:
    """Film agents in a maze: where they go, what they are paid for it, and what their representation says."""
    from spie.agents.registry import agent as find_agent
    from spie.page.plots.frames import check_film, maze_frames, write_film
    from spie.tasks.registry import find
    from spie.tasks.registry import task as make

    for name, value, most in (("--steps", steps, 1_000_000), ("--frames", frames, 2000)):
        if not 1 <= value <= most:
            raise ValueError(f"{name} must lie between 1 and {most:,}, not {value}")
    given = {"task": task, "bumps": bumps, "rewards": parse_ends(ends)}
    entry = find(environment, "table")
    for option, asked in zip(given, ("task", "bumps", "ends"), strict=True):
        if given[option] is not None and option not in entry.options:
            raise ValueError(f"{environment} has no {asked}; leave it out")
    mdp = make(environment, "table", **{name: value for name, value in given.items() if value is not None})
    path = output or Path(f"{mdp.name}.gif")
    check_film(path)
    check_output(path)
    names = list(dict.fromkeys(filter(None, map(str.strip, agents.split(",")))))
    if not names:
        raise ValueError("--agents names nobody; give sarsa-srr, for example")
    chosen = {name: find_agent(name, mdp) for name in names}
    times = sorted({round(steps * (i + 1) / frames) for i in range(frames)} | {0})
    console = error_console()
    console.print(f"{mdp.name}: {', '.join(names)}, {steps:,} steps, {len(times)} frames into {path}")
    runs = [filmed_run(mdp, name, agent, times, seed) for name, agent in chosen.items()]
    count = write_film(_told(maze_frames(mdp, runs, times), len(times)), path)
    print(f"wrote {path}: {count} frames of {len(runs)} agents")


def filmed_run(mdp: "MDP", name: str, agent: Any, times: list[int], seed: int) -> "FilmedRun":
    """What a film shows of an agent; its representation at a time is that of a run that ends there."""
    import numpy as np

    from spie.agents.base import Keep
    from spie.page.plots.frames import FilmedRun, phases

    steps = times[-1]
    path = agent.run(mdp, steps, (seed,), keep=Keep(paths=(seed,))).paths[seed]
    states = np.append(path.states[:1], path.next_states)
    phase, ended = phases(mdp, path.next_states)
    matrix = representation_of(agent)
    rows: list[Any] = []
    for t in times if matrix else []:
        kept = agent.run(mdp, max(t, 1), (seed,), keep=Keep(matrices=(matrix,)))
        found = {"M": kept.M, "F": kept.F, "N": kept.N}[matrix]
        rows.append(found[0][states[t]] if t else np.zeros(mdp.n_states))
    goals = [mdp.terminal[phase[t]] for t in times]
    return FilmedRun(name, states, path.bonuses, matrix, rows, goals, ended[times].tolist())


def representation_of(agent: Any) -> str:
    """The matrix that the reward of an agent asks for first, M, F or N; empty where it asks for none."""
    from spie.rewards import get_reward

    needs = [need for reward in agent.rewards for need in get_reward(reward).needs]
    return next((need[0] for need in needs if need[:2] in ("M_", "F_", "N_")), "")


def _told(frames: Any, n: int) -> Any:
    """The same frames, with a bar on a terminal."""
    from rich.progress import Progress

    console = error_console()
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        yield from bar.track(frames, total=n, description="drawing")
