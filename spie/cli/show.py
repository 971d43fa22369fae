"""`spie show`: a picture of an environment and its representations."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import app

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from spie.tasks.continuous import ContinuousTask
    from spie.tasks.mdp import MDP


@app.command()
def show(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="MAP-OR-ENV",
            help="A task of spie list: riverswim, mountain-car, a named map, ...; or a text file with a map.",
            autocompletion=completion.task_names,
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
    from spie.page import plots
    from spie.tasks.registry import find
    from spie.tasks.registry import task as make

    entry = find(environment)
    if task is not None and "task" not in entry.options:
        raise ValueError(f"{environment} has no tasks; --task is for maps")
    if entry.kind == "images":
        raise ValueError(
            f"{environment} shows images, which spie play films; spie show draws MDPs and continuous tasks"
        )
    made = make(environment, entry.kind, **({} if task is None else {"task": task}))
    path = output or Path(f"{made.name}.png")
    plots.picture_format(path)
    if os.path.exists(environment) and path.exists() and path.samefile(environment):
        raise ValueError(f"{path} is the map itself; choose another name for the picture with -o")
    if entry.kind == "table":
        _show_table(made, gamma, of, path)
    else:
        _show_continuous(made, path)
    print(f"wrote {path}")


def _show_table(mdp: "MDP", gamma: float, of: str | None, path: Path) -> None:
    """Draw an MDP, and on its states what M, F and N say of the state `of`."""
    from rich.console import Console

    from spie.page import plots
    from spie.tasks.grids import middle
    from spie.tasks.mdp import DENSE_STATES

    s = middle(mdp) if of is None else mdp.state(of)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    P = mdp.transition()
    _print_facts(mdp, P, console)
    if mdp.n_states > DENSE_STATES:
        console.print(f"above {DENSE_STATES:,} states only the map is drawn; spie.sr_row_sums and sr_column_sums work")
        figure = plots.state_maps(mdp, {mdp.name: None})
    else:
        values = _values(mdp, P, gamma, s, console)
        figure = plots.state_maps(mdp, {mdp.name: None, **values}, of=s)
        _print_states(mdp, s, plots.shades(values[f"M[:, s], s = {mdp.labels[s]}"]), console)
    plots.save(figure, path)


def _print_facts(mdp: "MDP", P: Any, console: "Console") -> None:
    from spie.tasks.grids import doors

    size = "" if mdp.shape is None else f" on {mdp.shape[0]} x {mdp.shape[1]} cells"
    console.print(f"{mdp.name}: {mdp.n_states:,} states{size}, {mdp.n_actions} actions")
    places = [_places(mdp, "start", mdp.start > 0)]
    if mdp.cells is not None:
        places += [_places(mdp, "goal", mdp.terminal.any(axis=0)), _places(mdp, "door", doors(mdp))]
    console.print("; ".join(places))
    symmetric = abs(P - P.T).max() < 1e-12
    console.print(f"P of the uniform random policy is {'' if symmetric else 'not '}symmetric")


def _show_continuous(task: "ContinuousTask", path: Path) -> None:
    """Draw random Fourier features over the state space, and which states they take for like the start."""
    import numpy as np

    from spie.features import fourier_features
    from spie.page import plots

    phi_of = fourier_features(task.space)
    phi, start = phi_of(task.seen_over_view(60)), np.empty(len(task.low))
    task.observe((np.array(task.start_low) + task.start_high) / 2, start)
    maps = {f"feature {i}": phi[:, :, i] / np.abs(phi).max() for i in range(7)}
    maps["likeness to the start"] = phi @ phi_of(start)
    print(f"{task.name}: {len(task.low)} numbers are observed, {task.n_actions} actions ({', '.join(task.actions)})")
    print(f"{phi_of.dimension} random Fourier features of length scale 0.2, seed 0; 7 of them are drawn")
    plots.save(plots.space_maps(maps, task.view, task.labels), path)


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

    from spie.tasks.draw import write

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
