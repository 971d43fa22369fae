"""`spie show`: a picture of an environment and its representations."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import Ends, a_name, app, check_output, parse_ends

if TYPE_CHECKING:
    from rich.console import Console

    from spie.page.plots import MapGroup
    from spie.spatial import Representations
    from spie.tasks.continuous import ContinuousTask
    from spie.tasks.mdp import MDP


def _eigenvector(k: int) -> Any:
    return lambda mdp, found, s: found.eigenvector(k)


# Panels by name: the label of their colour scale (those with the same share it), whether it meets at 0, and their maps.
PANELS: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "maze": ("", False, {"{name}": None}),
    "M": ("discounted visits", False, {"M[:, s], {at}": lambda mdp, found, s: found.M[:, s]}),
    "M-row": ("discounted visits", False, {"M[s, :], {at}": lambda mdp, found, s: found.M[s]}),
    "N": ("discounted visits", False, {"N[:, s], {at}": lambda mdp, found, s: found.N[:, s]}),
    "F": ("gamma^t at the first visit", False, {"F[:, s], {at}": lambda mdp, found, s: found.F[:, s]}),
    "sums": (
        "sum of discounted visits",
        False,
        {
            "row sums of M": lambda mdp, found, s: found.M.sum(axis=1),
            "column sums of M": lambda mdp, found, s: found.M.sum(axis=0),
            "column sums of N": lambda mdp, found, s: found.N.sum(axis=0),
        },
    ),
    "z": ("stationary probability", False, {"z": lambda mdp, found, s: found.z}),
    "sr-r": ("mean over actions", False, {"fixed SR-R reward": lambda mdp, found, s: _sr_r(mdp, found)}),
    "betweenness": ("share of shortest paths", False, {"betweenness": lambda mdp, found, s: found.betweenness}),
    "fiedler": ("entry of the vector", True, {"Fiedler vector": lambda mdp, found, s: found.fiedler}),
    "eigenvectors": ("entry of the eigenvector", True, {f"eigenvector {k}": _eigenvector(k) for k in (1, 2, 3, 4)}),
    "default": ("Z", False, {"Z[:, s], {at}": lambda mdp, found, s: found.default()[:, s]}),
}
DEFAULT_PANELS = ("maze", "M", "N", "F", "sr-r", "betweenness", "fiedler", "z")

ENVIRONMENT_HELP = "A task of spie list: riverswim, mountain-car, a named map, ...; or a text file with a map."


@app.command()
def show(
    environment: Annotated[str, a_name("MAP-OR-ENV", ENVIRONMENT_HELP, completion.task_names)],
    task: Annotated[str | None, typer.Option(help="Of a map: explore (default), goal or moving-goal.")] = None,
    ends: Ends = None,
    gamma: Annotated[float, typer.Option(help="Discount of M, F and N.")] = 0.95,
    of: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Whose columns to draw: its number or row,column (default: a door)."),
    ] = None,
    panels: Annotated[
        str, typer.Option(help=f"What to draw, separated by commas, or all: {', '.join(PANELS)}.")
    ] = ",".join(DEFAULT_PANELS),
    policy: Annotated[
        str,
        typer.Option(
            help="random; an agent, which learns first: spie, sarsa-srr, ...; or a .npy file with a policy or values "
            "of actions, [states, actions].",
            autocompletion=completion.agent_names,
        ),
    ] = "random",
    steps: Annotated[int, typer.Option(help="How long the agent of --policy learns.")] = 10_000,
    bumps: Annotated[
        bool | None, typer.Option("--bumps/--no-bumps", help="Of a map: whether one can walk into a wall, and stay.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The picture, .png, .svg or .pdf (default: NAME.png in this folder)."),
    ] = None,
) -> None:
    """Draw an environment, what M, F and N of a policy say of a state, and where its bottlenecks are."""
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
    if bumps is not None and "bumps" not in entry.options:
        raise ValueError(f"{environment} has no bumps; --bumps and --no-bumps are for maps")
    if ends is not None and "rewards" not in entry.options:
        raise ValueError(f"{environment} has no ends that pay; --ends is for maps with ends a to h")
    given = {"task": task, "bumps": bumps, "rewards": parse_ends(ends)}
    made = make(environment, entry.kind, **{name: value for name, value in given.items() if value is not None})
    wanted = _panels(panels)
    path = output or Path(f"{made.name}.png")
    plots.picture_format(path)
    check_output(path)
    if os.path.exists(environment) and path.exists() and path.samefile(environment):
        raise ValueError(f"{path} is the map itself; choose another name for the picture with -o")
    if entry.kind == "table":
        _show_table(made, gamma, of, wanted, (policy, steps), path)
    else:
        _show_continuous(made, path)
    print(f"wrote {path}")


def _panels(text: str) -> list[str]:
    from spie.errors import unknown

    names = list(PANELS) if text == "all" else list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    for name in names:
        if name not in PANELS:
            raise unknown("panel", name, PANELS)
    if not names:
        raise ValueError("--panels names nothing to draw; give maze, for example")
    return names


def _policy(name: str, mdp: "MDP", steps: int) -> Any:
    """The policy of a name: "random", or a table [S, A]; of an agent its Q after that many steps, seed 0."""
    import numpy as np

    from spie.agents.base import Keep
    from spie.agents.registry import AGENTS, agent
    from spie.errors import check_whole

    if name == "random":
        return name
    check_whole("--steps", steps, 1, 10**9)
    if name in AGENTS:
        return agent(name, mdp).run(mdp, steps, keep=Keep(matrices=("Q",))).Q[0]
    if not name.endswith(".npy") or not os.path.isfile(name):
        shape = [mdp.n_states, mdp.n_actions]
        raise ValueError(f'no policy "{name}"; give random, an agent of spie list, or a .npy file of numbers {shape}')
    try:
        return np.asarray(np.load(name, allow_pickle=False), np.float64)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{name} cannot be read as an array: {error}") from None


def _values(name: str, table: Any, mdp: "MDP") -> "MapGroup":
    """What the best action is worth in each state; nothing at an end."""
    import numpy as np

    from spie.page.plots import MapGroup

    best = np.where(mdp.available, table, -np.inf).max(axis=1)
    return MapGroup("value of the best action", {f"V of {name}": np.where(mdp.terminal[0], np.nan, best)})


def _show_table(
    mdp: "MDP", gamma: float, of: str | None, panels: list[str], policy: tuple[str, int], path: Path
) -> None:
    """Draw an MDP, and on its states what M, F and N say of the state `of`."""
    from rich.console import Console

    from spie.agents.registry import AGENTS
    from spie.page import plots
    from spie.page.plots.diagrams import is_small
    from spie.tasks.grids import middle
    from spie.tasks.mdp import DENSE_STATES

    s = middle(mdp) if of is None else mdp.state(of)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    is_large = mdp.n_states > DENSE_STATES
    table = "random" if is_large else _policy(policy[0], mdp, policy[1])
    _print_facts(mdp, mdp.transition(), console)
    if is_large:
        console.print(f"above {DENSE_STATES:,} states only the map is drawn; spie.sr_row_sums and sr_column_sums work")
        figure = plots.state_maps(mdp, {mdp.name: None})
    else:
        if mdp.n_states > 2000:
            console.print("solving for M and N, which may take half a minute")
        found = mdp.representations(table, gamma)
        groups = _groups(mdp, found, s, panels, console)
        if policy[0] in AGENTS and policy[0] != "random":
            groups.append(_values(policy[0], table, mdp))
        if is_small(mdp):
            figure = plots.state_maps(mdp, {title: v for group in groups for title, v in group.maps.items()}, of=s)
        else:
            figure = plots.panel_maps(mdp, groups, of=s)
        _print_states(mdp, s, plots.shades(found.M[:, s]), console)
    plots.save(figure, path)


def _print_facts(mdp: "MDP", P: Any, console: "Console") -> None:
    from spie.tasks.grids import doors, ignored_goals

    size = "" if mdp.shape is None else f" on {mdp.shape[0]} x {mdp.shape[1]} cells"
    console.print(f"{mdp.name}: {mdp.n_states:,} states{size}, {mdp.n_actions} actions")
    places = [_places(mdp, "start", mdp.start > 0)]
    if mdp.cells is not None:
        places += [_places(mdp, "goal", mdp.terminal.any(axis=0)), _places(mdp, "door", doors(mdp))]
    console.print("; ".join(places))
    if ignored := ignored_goals(mdp):
        cure = "--task chooses another" if "G" in ignored else "--ends says what ends pay"
        console.print(f"goals or ends {ignored} of the map are ignored in this task; {cure}")
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


def _groups(mdp: "MDP", found: "Representations", s: int, panels: list[str], console: "Console") -> list[Any]:
    """The maps of the panels, in groups that share a colour scale; what cannot be drawn, or is constant, is said."""
    import numpy as np

    from spie.page.plots import MapGroup, is_constant

    at = f"s = {mdp.labels[s]}"
    drawn: dict[str, MapGroup] = {}
    for panel in panels:
        label, diverging, maps = PANELS[panel]
        try:
            values = {
                title.format(at=at, name=mdp.name): None if of is None else of(mdp, found, s)
                for title, of in maps.items()
            }
        except ValueError as error:
            console.print(f"{panel} is not drawn: {str(error).partition(';')[0]}")
            continue
        for title in [title for title, v in values.items() if v is not None and is_constant(v)]:
            value = values.pop(title)
            assert value is not None
            console.print(f"{title} is not drawn: {np.nanmax(value):.4g} in every state")
        if values:
            before = drawn[label].maps if label in drawn else {}
            drawn[label] = MapGroup(label, {**before, **values}, diverging)
    return list(drawn.values()) or [MapGroup("", {mdp.name: None})]


def _sr_r(mdp: "MDP", found: "Representations") -> Any:
    """The SR-R reward with this M, averaged over the available actions; nothing is done at an end."""
    import numpy as np

    from spie.rewards import get_reward

    M, columns = found.M, found.M.sum(axis=0)
    rewards = get_reward("sr-r").function(M[np.arange(mdp.n_states)[:, None, None], mdp.next], columns[mdp.next])
    mean = (mdp.prob * rewards).sum(axis=2).sum(axis=1) / mdp.available.sum(axis=1)
    mean[mdp.terminal[0]] = np.nan
    return mean


def _print_states(mdp: "MDP", s: int, shades: list[str], console: "Console") -> None:
    """A picture for the terminal: the map, or the states in a line, shaded; plain text where colours do not go."""
    from rich.text import Text

    from spie.tasks.draw import write

    def styled(word: str, shade: str) -> Text:
        dark = sum(bytes.fromhex(shade[1:])) < 330
        return Text(word, style=f"{'white' if dark else 'black'} on {shade}")

    mark = "in brackets" if mdp.cells is None else "marked @"
    if mdp.cells is None and mdp.n_states > 40:
        return  # a line of names tells nothing
    if mdp.cells is not None and (len(mdp.layout.walls) or len(mdp.layout.arrows)):
        console.print(write(mdp, s))
        return
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
