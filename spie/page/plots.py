"""Figures, drawn from estimates and never from raw runs.

`svg` is for a page: no background, and the ink is the colour of the text around it, so that one picture serves light,
dark and print; the colours of agents keep a contrast of 3 to both. `save` is for a file: on white.
An agent has the same colour and dash wherever it appears.
"""

import hashlib
import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Polygon, Rectangle
from matplotlib.path import Path as Bezier
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from spie.tasks.mdp import MDP

Item = TypeVar("Item")

INK = "#1f2328"  # in a page: the colour of its text
ON_MAP = "#22222c"  # writing on a map, whose floor is light in any page
WALL, FLOOR, START, GOAL = "#3a3d46", "#efeee8", "#a9cdf5", "#f5c451"
HEAT = LinearSegmentedColormap.from_list("heat", ["#fde9a9", "#9fd3a8", "#3fa7b5", "#2f6fae", "#2b3f8c"])  # low to high
COLOURS = {  # chosen so that colour-blind readers tell the first ones apart; the dashes help
    "sarsa": "#a0409b",
    "sarsa-sr": "#2563eb",
    "sarsa-fr": "#3a9d86",
    "sarsa-srr": "#cc3d12",
    "sarsa-sr-pr": "#c08a10",
    "sarsa-srr-a": "#4c93c4",
    "sarsa-srr-b": "#8a7bd0",
    "sarsa-srr-c": "#a8744f",
    "linear-q": "#a0409b",
    "linear-q-sf": "#2563eb",
    "linear-q-sf-pf": "#cc3d12",
    "constant": "#6f7f99",
    "optimistic": "#93806f",
    "count": "#748a6e",
    "random": "#858585",
}
LIKE = {  # a deep agent looks like the tabular one of its kind
    "dqn": "sarsa",
    "dqn-mmc": "sarsa-sr-pr",
    "rnd": "sarsa-fr",
    "dqn-sr": "sarsa-sr",
    "dqn-sf-pf": "sarsa-srr",
}
CONTROL_DASHES = {"constant": (4, 1.5), "optimistic": (2, 1.2), "count": (7, 2), "random": (1.5, 2.5)}
SUFFIX_DASHES = {"-optimistic-bound": (6, 1.5, 1, 1.5, 1, 1.5), "-optimistic": (6, 1.5, 1, 1.5), "-fixed": (1, 1.2)}
OPTION_DASHES: tuple[Any, ...] = ((0, (5, 1)), (0, (1, 1)), (0, (3, 1, 1, 1)), (0, (8, 1.5)))
MINUS = "\N{MINUS SIGN}"
MOST_POINTS = 200  # of a curve: a panel shows no more
MOST_NODES = 12  # of a diagram
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.xmargin": 0.01,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "spie",
} | dict.fromkeys("text.color axes.edgecolor axes.labelcolor xtick.color ytick.color".split(), INK)


class Curve(NamedTuple):
    """A mean with its interval."""

    x: NDArray[Any]  # [n], rising
    mean: NDArray[Any]  # [n]
    low: NDArray[Any]  # [n]
    high: NDArray[Any]  # [n]


class Panel(NamedTuple):
    """One set of axes: a curve per agent, horizontal lines with their names, vertical ones without."""

    title: str
    curves: Mapping[str, Curve]
    x_label: str
    y_label: str
    horizontal: Mapping[str, float] = {}
    vertical: Sequence[float] = ()
    log: Literal["", "x", "y", "xy"] = ""  # which axes are logarithmic


def line_style(agent: str) -> dict[str, Any]:
    """Colour, dash and width of an agent: SPIE's stands out, variants are dotted or dash-dotted, controls quiet.

    "agent option" has the agent's colour.
    """
    name, _, option = agent.partition(" ")
    if name in CONTROL_DASHES:  # in front, to be seen where they are as good as SARSA-SRR
        return {"color": COLOURS[name], "linestyle": (0, CONTROL_DASHES[name]), "linewidth": 1.2, "zorder": 5}
    suffix = next(filter(name.endswith, SUFFIX_DASHES), "")
    name = LIKE.get(name, name).removesuffix(suffix)
    agents = list(COLOURS)[: -len(CONTROL_DASHES)]
    # An agent that has no colour yet gets one by its name alone, so that it too keeps it from figure to figure.
    i = agents.index(name) if name in agents else int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(agents)
    dash: Any = (1.1 * i, SUFFIX_DASHES[suffix]) if suffix else "-"  # shifted, so that equal curves show in turn
    if option:
        dash = OPTION_DASHES[int(hashlib.sha256(option.encode()).hexdigest(), 16) % len(OPTION_DASHES)]
    hero = agent in ("sarsa-srr", "linear-q-sf-pf", "dqn-sf-pf")
    return {"color": COLOURS[agents[i]], "linestyle": dash, "linewidth": 2.4 if hero else 1.6, "zorder": 3 + hero}


@matplotlib.rc_context(STYLE)
def curve_panels(panels: Sequence[Panel], columns: int = 2) -> Figure:
    """Curves with their intervals, a panel each, and one legend for all."""
    if not panels:
        raise ValueError("curve_panels: nothing to draw; give at least one panel")
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    agents = list(dict.fromkeys(agent for panel in panels for agent in panel.curves))
    across = 2 if columns == 1 else 4 if all(len(agent) < 18 for agent in agents) else 3
    legend_rows = math.ceil(len(agents) / across)
    figure = _figure(3.7 * columns + 0.6 * (columns == 1), 2.35 * rows + 0.2 * legend_rows + 0.2)
    figure.set_label("; ".join(panel.title for panel in panels))
    for i, panel in enumerate(panels):
        ax = figure.add_subplot(rows, columns, i + 1)
        _draw_panel(ax, panel)
        if i + columns >= len(panels) or panels[i + columns].x_label != panel.x_label:
            ax.set_xlabel(panel.x_label)
        if i % columns == 0 or panels[i - 1].y_label != panel.y_label:
            ax.set_ylabel(panel.y_label, rotation_mode="anchor")
    lines = [Line2D([], [], label=agent, **line_style(agent)) for agent in agents]
    by_rows = [line for column in range(across) for line in lines[column::across]]  # a legend fills its columns first
    if agents:
        figure.legend(handles=by_rows, loc="outside upper left", ncols=across, fontsize=9)
    return _settled(figure)


def _draw_panel(ax: Axes, panel: Panel) -> None:
    ax.set_title(panel.title, loc="left")
    ax.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
    for axis, letter in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        if letter in panel.log:
            ax.set(**{f"{letter}scale": "log"})
            axis.set_minor_locator(NullLocator())
        wide = letter == "x" and any(curve.x[-1] > 1e3 * curve.x[0] > 0 for curve in panel.curves.values())
        ticks = LogLocator(subs=(1,) if wide else (1, 3))  # so that their labels do not run into each other
        axis.set_major_locator(ticks if letter in panel.log else MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(_number))
    for at in panel.vertical:
        ax.axvline(at, color=INK, alpha=0.35, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    for agent, curve in panel.curves.items():
        x, mean, low, high = _thinned(curve, "x" in panel.log)
        style = line_style(agent)
        ax.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)
        ax.plot(x, mean, marker="o" if len(mean) == 1 else "", **style)
    for name, y in panel.horizontal.items():
        ax.axhline(y, color=INK, alpha=0.55, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
        ax.annotate(
            name, (1, y), (-2, 2), ("axes fraction", "data"), "offset points", ha="right", va="bottom", fontsize=8.5
        )
    if "y" not in panel.log and all(np.nanmin(curve.low) >= 0 for curve in panel.curves.values()):
        ax.set_ylim(bottom=0)


def _thinned(curve: Curve, log: bool) -> Curve:
    """At most MOST_POINTS points of a curve, evenly spread over its axis, both ends among them."""
    x = np.asarray(curve.x)
    if len(x) <= MOST_POINTS:
        return curve
    spread = np.geomspace(x[x > 0][0], x[-1], MOST_POINTS) if log else np.linspace(x[0], x[-1], MOST_POINTS)
    keep = np.unique(np.append(np.searchsorted(x, spread[:-1]), len(x) - 1))
    return Curve(*(np.asarray(values)[keep] for values in curve))


@matplotlib.rc_context(STYLE)
def heat_maps(
    mdp: MDP, rows: Mapping[str, NDArray[Any]], columns: Sequence[str], label: str = "visits a state"
) -> Figure:
    """Small maps on one logarithmic colour scale: a row per agent [T, S], a column per time; 0 stays blank."""
    for name, row in rows.items():
        if np.shape(row) != (len(columns), mdp.n_states):
            raise ValueError(f'heat_maps: "{name}" has shape {list(np.shape(row))}, not {[len(columns), mdp.n_states]}')
    if not rows or not columns:
        raise ValueError("heat_maps: nothing to draw; give at least one row and one column")
    norm = _log_norm(np.array(list(rows.values()), np.float64))
    # All maps are one picture, a gap apart: a hundred axes would take seconds to lay out.
    h, w = _shape(mdp)
    gap = max(1, min(h, w) // 10)
    mosaic = np.zeros((len(rows) * (h + gap) - gap, len(columns) * (w + gap) - gap, 4))
    tops, lefts = (h + gap) * np.arange(len(rows)), (w + gap) * np.arange(len(columns))
    for top, row in zip(tops, rows.values(), strict=True):
        for left, values in zip(lefts, row, strict=True):
            mosaic[top : top + h, left : left + w] = _picture(mdp, np.asarray(values, np.float64), norm)
    figure = _figure(7.4, min(max(5.7 * mosaic.shape[0] / mosaic.shape[1], 0.4), 14.0) + 1.0)
    figure.set_label(f"{label}: {', '.join(rows)}")
    ax = figure.add_subplot()
    _show(ax, mosaic)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set_xticks(lefts + (w - 1) / 2, columns)
    ax.set_yticks(tops + (h - 1) / 2, list(rows))
    _colour_bar(figure, ax, norm, label, aspect=30, shrink=0.6)
    return _settled(figure)


@matplotlib.rc_context(STYLE)
def state_maps(mdp: MDP, values: Mapping[str, NDArray[Any] | None], of: int | None = None) -> Figure:
    """One map per entry [S], each on a colour scale of its own: a grid by its cells, else a strip of boxes.

    None draws the environment: a map with start and goals, or the diagram of a small MDP. State `of` gets a frame.
    """
    if not values:
        raise ValueError("state_maps: nothing to draw; give at least one entry")
    entries: list[tuple[str, NDArray[np.float64] | None]] = []
    for name, entry in values.items():
        if entry is not None and np.shape(entry) != (mdp.n_states,):
            raise ValueError(f'state_maps: "{name}" has shape {list(np.shape(entry))}, not {[mdp.n_states]}')
        entries.append((name, None if entry is None else np.asarray(entry, np.float64)))
    h, w = _shape(mdp)
    columns = 1 if mdp.cells is None or w > 3 * h else min(len(entries), 4 if len(entries) in (4, 7, 8) else 3)
    width = 7.4 if columns == 1 and w > h else 4.2 if columns == 1 else 2.15 if columns == 4 else 2.5

    def height(entry: NDArray[np.float64] | None) -> float:
        if _is_small(mdp):
            return _layout(mdp).height(width) if entry is None else 0.75
        below = 0.0 if entry is None else 0.26 if _is_constant(entry) else 0.38
        return min(max((width - 0.1) * h / w, 0.4), 12.0) + 0.3 + below

    heights = [max(height(entry) for _, entry in row) for row in _batches(entries, columns)]
    figure = _figure(width * columns, sum(heights))
    figure.set_label(f"{mdp.name}: {', '.join(values)}")
    places = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for i, (name, entry) in enumerate(entries):
        ax = figure.add_subplot(places[i // columns, i % columns])
        ax.set_title(name, loc="left", fontsize=9.5)
        if entry is not None:
            _draw_values(figure, ax, mdp, entry)
        elif _is_small(mdp):
            _draw_diagram(ax, mdp)
            continue
        else:
            _draw_environment(ax, mdp, cell=72 * width / w)
        ax.set_anchor("N")  # maps of one row stand level, with a colour bar or without
        if of is not None:
            _frame(ax, mdp, of)
    return _settled(figure)


def _draw_values(figure: Figure, ax: Axes, mdp: MDP, values: NDArray[np.float64]) -> None:
    norm = _norm(values)
    _show(ax, _picture(mdp, values, norm))
    if _is_small(mdp):
        ax.set_aspect("auto")
        for s, value in enumerate(values):
            colour = "white" if norm(value) > 0.55 else ON_MAP
            ax.text(s, 0, _short(value), ha="center", va="center", color=colour, fontsize=9)
    elif _is_constant(values):
        ax.set_xlabel(f"{_short(np.nanmax(values))} in every state", fontsize=8.5)
    else:
        _colour_bar(figure, ax, norm)


def shades(values: NDArray[Any]) -> list[str]:
    """The colours of values [S] on the scale that state_maps uses, as #rrggbb."""
    numbers = np.asarray(values, np.float64)
    return [to_hex(colour) for colour in _colours(numbers, _norm(numbers))]


def _norm(values: NDArray[np.float64]) -> Normalize:
    """Logarithmic where nothing is below 0 and much differs 50-fold; where all are equal, it shows no rounding."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if _is_constant(values):
        return Normalize(low - 1, high + 1)
    log = _log_norm(values)
    return log if low >= 0 and high > 50 * (log.vmin or 0) else Normalize(low, high)


def _draw_environment(ax: Axes, mdp: MDP, cell: float) -> None:
    """The map alone: walls, start and the goals of every phase; `cell` is the width of a cell in points."""
    picture = _picture(mdp, np.full(mdp.n_states, np.nan), Normalize())
    cells, starts = _cells(mdp), np.flatnonzero(mdp.start > 0)
    if 2 * len(starts) > mdp.n_states:  # a start that may be almost anywhere marks nothing
        starts = starts[:0]
    marks = [("S", START, s) for s in starts]
    for letter, ends in zip("G123456789", mdp.terminal, strict=False):
        marks += [(letter, GOAL, s) for s in np.flatnonzero(ends)]
    for _, colour, s in marks:
        picture[tuple(cells[s])] = to_rgba(colour)
    _show(ax, picture)
    for letter, colour, s in marks[:20]:
        row, column = cells[s]
        ground = {"boxstyle": "circle,pad=0.15", "facecolor": colour, "edgecolor": ON_MAP} if cell < 10 else None
        ax.text(column, row, letter, ha="center", va="center", color=ON_MAP, fontsize=8, bbox=ground)


def _frame(ax: Axes, mdp: MDP, s: int) -> None:
    side = max(1.0, max(_shape(mdp)) / 40)
    row, column = _cells(mdp)[s]
    for colour, width in (("white", 3.0), (ON_MAP, 1.4)):  # to be seen on any ground
        corner = column - side / 2, row - side / 2
        ax.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=colour, linewidth=width, clip_on=False))


def _picture(mdp: MDP, values: NDArray[np.float64], norm: Normalize) -> NDArray[np.float64]:
    """Colours of a map's cells [rows, columns, 4]."""
    picture = np.tile(to_rgba(WALL), (*_shape(mdp), 1))
    picture[tuple(_cells(mdp).T)] = _colours(values, norm)
    return picture


def _colours(values: NDArray[np.float64], norm: Normalize) -> NDArray[np.float64]:
    """[S, 4]; a state without value, or with 0 on a logarithmic scale, is floor."""
    blank = ~np.isfinite(values) | ((values <= 0) & isinstance(norm, LogNorm))
    colours = np.tile(to_rgba(FLOOR), (len(values), 1))
    colours[~blank] = HEAT(norm(values[~blank]))
    return colours


def _show(ax: Axes, picture: NDArray[np.float64]) -> None:
    ax.imshow(picture, interpolation="none")
    ax.spines[:].set(visible=True, alpha=0.4)
    ax.set(xticks=[], yticks=[])


def _log_norm(values: NDArray[np.float64]) -> LogNorm:
    """Down from the largest value, four decades at most."""
    positive = values[np.isfinite(values) & (values > 0)]
    high = float(positive.max()) if positive.size else 1.0
    low = max(float(positive.min()), high / 1e4) if positive.size else 1.0
    return LogNorm(low, high if high > low else 10 * low, clip=True)


def _colour_bar(figure: Figure, ax: Axes, norm: Normalize, label: str = "", **shape: Any) -> None:
    bar = figure.colorbar(ScalarMappable(norm, HEAT), ax=ax, location="bottom", pad=0.03, label=label, **shape)
    assert bar.solids is not None
    bar.solids.set_rasterized(True)  # one picture instead of 256 boxes
    bar.outline.set_visible(False)
    wide = isinstance(norm, LogNorm) and (norm.vmax or 1) > 300 * (norm.vmin or 1)
    log = LogLocator(subs=(1,) if wide else (1, 3))
    bar.ax.xaxis.set_major_locator(log if isinstance(norm, LogNorm) else MaxNLocator(4))
    bar.ax.xaxis.set_minor_locator(NullLocator())
    bar.ax.xaxis.set_major_formatter(FuncFormatter(_number))
    bar.ax.tick_params(labelsize=8, length=2)


def _cells(mdp: MDP) -> NDArray[Any]:
    """Row and column of every state [S, 2]; without a grid, all in one row."""
    s = np.arange(mdp.n_states)
    return np.stack([0 * s, s], axis=1) if mdp.cells is None else mdp.cells


def _shape(mdp: MDP) -> tuple[int, int]:
    return mdp.shape or (1, mdp.n_states)


def _is_small(mdp: MDP) -> bool:
    """No grid, and few enough states for a diagram and for boxes that hold their numbers."""
    return mdp.cells is None and mdp.n_states <= MOST_NODES


def _is_constant(values: NDArray[np.float64]) -> bool:
    finite = values[np.isfinite(values)]
    return not finite.size or bool(np.ptp(finite) <= 1e-9 * np.abs(finite).max())


@matplotlib.rc_context(STYLE)
def mdp_diagram(mdp: MDP) -> Figure:
    """A small MDP as circles and arrows (Figure 5): a chain in a line, a hub amid its rooms, any other in a ring."""
    if mdp.n_states > MOST_NODES:
        raise ValueError(f"{mdp.name}: a diagram holds {MOST_NODES} states, not {mdp.n_states}; use state_maps")
    width = 7.4 if _layout(mdp).kind == "chain" else 6.4
    figure = _figure(width, _layout(mdp).height(width))
    figure.set_label(f"{mdp.name}: states, actions, probabilities and rewards")
    _draw_diagram(figure.add_subplot(), mdp)
    return _settled(figure)


class _Layout(NamedTuple):
    """Where the states of a diagram are, with radius 0.5, and on which side of each an arrow to itself has room."""

    kind: Literal["chain", "hub", "ring"]
    places: Any  # [S, 2]
    outward: Any  # [S], an angle
    x: tuple[float, float]
    y: tuple[float, float]

    def height(self, width: float) -> float:
        return width * (self.y[1] - self.y[0]) / (self.x[1] - self.x[0]) + 0.5


def _layout(mdp: MDP) -> _Layout:
    S, up = mdp.n_states, np.pi / 2
    s, a, k = np.nonzero(mdp.prob)
    s_next = mdp.next[s, a, k]
    if (abs(s - s_next) <= 1).all() and mdp.n_actions <= 2:
        places = np.stack([2.2 * np.arange(S), np.zeros(S)], axis=1)
        return _Layout("chain", places, np.full(S, up), (-1.2, 2.2 * S - 1), (-1.6, 1.7))
    for hub in range(S if S > 3 else 0):
        if ((s == s_next) | (s == hub) | (s_next == hub)).all():  # rooms clockwise, with a gap above the hub
            turn = np.insert(up - np.linspace(-0.86, 0.86 - 2 * np.pi, S - 1)[::-1] - 2 * np.pi, hub, up)
            return _Layout("hub", 3.5 * (np.arange(S) != hub)[:, None] * _towards(turn), turn, (-5.4, 5.4), (-4.6, 3.4))
    turns = up - 2 * np.pi / S * np.arange(S)
    return _Layout("ring", 3.4 * _towards(turns), turns, (-5.3, 5.3), (-4.9, 4.9))


def _towards(turn: Any) -> Any:
    """The point(s) at distance 1 in the direction of an angle."""
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1)


ACTION_STYLES: list[dict[str, Any]] = [
    {"color": COLOURS["sarsa-sr"], "linewidth": 1.3},
    {"color": COLOURS["sarsa-srr"], "linewidth": 1.3, "linestyle": (0, (3, 1.5))},
]
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}


def _draw_diagram(ax: Axes, mdp: MDP) -> None:
    kind, places, outward, x, y = _layout(mdp)
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axis("off")
    for s, place in enumerate(places):
        if mdp.start[s] > 0:
            ax.add_patch(Circle(place, 0.5, facecolor=START, alpha=0.5))
        for radius in (0.5, 0.42) if mdp.terminal[0, s] else (0.5,):
            ax.add_patch(Circle(place, radius, fill=False, edgecolor=INK, linewidth=1.1))
        ax.text(place[0], place[1], mdp.labels[s], ha="center", va="center")
    disc: dict[str, Any] = {"marker": "o", "markersize": 9, "color": "none", "markeredgecolor": INK}
    notes = [Line2D([], [], label="start", markerfacecolor=START, **disc)]
    if kind == "chain":  # every action has its own arrows, else they share them
        for a in range(mdp.n_actions):
            for (s, s_next), text in _arrows(mdp, [a]).items():
                if s == s_next:
                    _loop(ax, places[s], outward[s] + np.pi * a, text, ACTION_STYLES[a])
                else:
                    _arc(ax, places[s], places[s_next], 0.28 + 0.42 * a, text, ACTION_STYLES[a])
        notes = [Line2D([], [], label=f"action {a}", **ACTION_STYLES[a]) for a in range(mdp.n_actions)] + notes
    else:
        for (s, s_next), text in _arrows(mdp, list(range(mdp.n_actions))).items():
            if s == s_next:
                _loop(ax, places[s], outward[s], text, {"color": INK})
            else:
                bend = 0.55 / math.dist(places[s], places[s_next])  # all bow alike, long or short
                _arc(ax, places[s], places[s_next], bend, text, {"color": INK}, out=1.15 if kind == "hub" else 1.0)
    reading = ("" if kind == "chain" else "action: ") + "probability if below 1, reward in bold"
    reading += ", double ring where it ends" if mdp.terminal[0].any() else ""
    ax.legend(handles=notes, ncols=4, fontsize=8.5, title=reading, title_fontsize=8.5, **BELOW)


BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0}


def _arrows(mdp: MDP, actions: list[int]) -> dict[tuple[int, int], str]:
    """What to write at the one arrow from s to s' for all these actions; a text with a sign has a reward in it."""
    found: dict[tuple[int, int], dict[str, list[int]]] = {}
    for s, a, k in np.argwhere(mdp.prob > 0).tolist():
        if a in actions and not mdp.terminal[0, s]:
            p, r = mdp.prob[s, a, k], mdp.reward[0, s, a, k]
            numbers = ", ".join(filter(None, (f"{p:.3g}" if p < 1 else "", _number(r, sign="+") if r else "")))
            found.setdefault((s, int(mdp.next[s, a, k])), {}).setdefault(numbers, []).append(a)
    texts = {}
    for pair, cases in found.items():
        parts = [numbers if len(actions) == 1 else _who(takers, actions, numbers) for numbers, takers in cases.items()]
        stays = len(parts) > 3 and pair[0] == pair[1] and not {"+", MINUS} & set("".join(parts))
        texts[pair] = "otherwise" if stays else ", ".join(parts)  # what is left of 1 needs no list
    return texts


def _who(takers: list[int], actions: list[int], numbers: str) -> str:
    others = [a for a in actions if a not in takers]
    few, words = (others, "all but ") if len(takers) > len(others) else (takers, "")
    who = words + ", ".join(f"a{a}" for a in few) if others else "any"
    return f"{who}: {numbers}" if numbers else who


def _font(text: str) -> dict[str, Any]:
    return {"fontsize": 8.5, "fontweight": "bold" if {"+", MINUS} & set(text) else "normal"}


def _arc(ax: Axes, here: Any, there: Any, bend: float, text: str, style: dict[str, Any], out: float = 0.0) -> None:
    """An arrow that bows to its left, its text over the crest; with `out`, turned along the arrow and so far out."""
    ends = [Circle(place, 0.54, transform=ax.transData) for place in (here, there)]
    arc = f"arc3,rad={-bend}"
    ax.add_patch(FancyArrowPatch(here, there, connectionstyle=arc, patchA=ends[0], patchB=ends[1], **ARROW, **style))
    dx, dy = there - here
    x, y = (out or 1) * (here + there) / 2 + np.array([-dy, dx]) * (bend / 2 + 0.24 / math.hypot(dx, dy))
    angle = (math.degrees(math.atan2(dy, dx)) + 90.01) % 180 - 90.01 if out else 0.0  # never upside down
    ax.text(x, y, text, ha="center", va="center", rotation=angle, rotation_mode="anchor", **_font(text))


def _loop(ax: Axes, place: Any, turn: float, text: str, style: dict[str, Any]) -> None:
    """An arrow from a state to itself."""
    corners = ((0.5, -0.5), (1.45, -0.6), (1.45, 0.6), (0.54, 0.5))  # distance and angle from the middle of the state
    path = Bezier(
        [place + far * _towards(turn + aside) for far, aside in corners], [Bezier.MOVETO, *[Bezier.CURVE4] * 3]
    )
    ax.add_patch(FancyArrowPatch(path=path, **ARROW, **style))
    x, y = place + 1.15 * _towards(turn)
    cos, sin = _towards(turn)
    aside = abs(cos) > 0.5
    ha: Any = ("left" if cos > 0 else "right") if aside else "center"
    va: Any = "center" if aside else "bottom" if sin > 0 else "top"
    ax.text(x, y, text, ha=ha, va=va, **_font(text))


class Layer(NamedTuple):
    """A layer of a network: what it is, and the shape of what it gives."""

    name: str
    shape: tuple[int, ...]


@matplotlib.rc_context(STYLE)
def network_diagram(trunk: Sequence[Layer], heads: Mapping[str, Sequence[Layer]], decoder: Sequence[Layer]) -> Figure:
    """A network (Figure 2): the trunk to the right, the heads on from its last layer, the decoder back to the left.

    A head whose name ends in `|` is cut off from the trunk's gradient, which a double stroke shows.
    """
    rows, columns = len(heads) + 1, max(len(trunk) + max(map(len, heads.values())), len(decoder))
    figure = _figure(7.4, 0.72 * rows + 0.2)
    figure.set_label("network: " + ", ".join(layer.name for layer in (*trunk, *decoder)))
    ax = figure.add_subplot()
    ax.set(xlim=(-0.45, columns - 0.3), ylim=(-rows + 0.5, 0.3))
    ax.axis("off")
    middle = -(len(heads) - 1) / 2
    for i, layer in enumerate(trunk):
        _draw_layer(ax, (i, middle), layer, (i - 1, middle) if i else None)
    phi = len(trunk) - 1, middle
    for row, (name, layers) in enumerate(heads.items()):
        for i, layer in enumerate(layers):
            before = (phi[0] + i, -row) if i else phi
            _draw_layer(ax, (phi[0] + i + 1, -row), layer, before, cut=i == 0 and name.endswith("|"))
        ax.text(phi[0] + len(layers) + 0.43, -row, name.removesuffix("|"), va="center", fontweight="bold")
    for i, layer in enumerate(decoder):
        x = len(decoder) - 1 - i
        _draw_layer(ax, (x, 1 - rows), layer, (x + 1, 1 - rows) if i else phi)
    return _settled(figure)


def _draw_layer(ax: Axes, place: Any, layer: Layer, before: Any = None, cut: bool = False) -> None:
    """A box with the shape in it and the name below, and the arrow from the layer before."""
    half, rise = 0.4, 0.15
    x, y = place
    ax.add_patch(Rectangle((x - half, y - rise), 2 * half, 2 * rise, facecolor="none", edgecolor=INK, linewidth=0.9))
    ax.text(x, y, "×".join(map(str, layer.shape)), ha="center", va="center", fontsize=8.5)
    ax.text(x, y - rise - 0.04, layer.name, ha="center", va="top", fontsize=7, alpha=0.8)
    if before is None:
        return
    here, there = (before[0] + half, before[1]), (x - half, y)
    if y == before[1] and x < before[0]:
        here, there = (before[0] - half, y), (x + half, y)
    elif y < before[1] - 1:  # down to the decoder
        here, there = (before[0], before[1] - rise - 0.2), (x, y + rise)
    ax.add_patch(FancyArrowPatch(here, there, color=INK, linewidth=0.9, **ARROW))
    if cut:
        at = (here[0] + there[0]) / 2, (here[1] + there[1]) / 2
        ax.text(*at, "‖", ha="center", va="center", color=COLOURS["sarsa-srr"], fontweight="bold")


@matplotlib.rc_context(STYLE)
def film(
    frames: Sequence[NDArray[Any]],
    Q: Sequence[NDArray[Any]],
    actions: Sequence[int],
    bonuses: Sequence[float],
    predicted: Sequence[NDArray[Any] | None],
    path: str | Path,
) -> None:
    """An episode as a GIF: the frame, the frame that was expected after it, Q of every action, the bonus so far."""
    from matplotlib.animation import FuncAnimation, PillowWriter

    figure = _figure(8.4, 2.6)
    axes = figure.subplots(1, 4, width_ratios=[1, 1, 1, 1.2])
    grey = {"cmap": "gray", "vmin": 0, "vmax": 255}
    images = [ax.imshow(frames[0], **grey) for ax in axes[:2]]
    for ax, title in zip(axes, ("frame", "expected next frame", "Q", "bonus"), strict=True):
        ax.set_title(title)
    for ax in axes[:2]:
        ax.set_axis_off()
    low, high = min(map(np.min, Q)), max(map(np.max, Q))
    bars = axes[2].bar(range(len(Q[0])), Q[0], color=COLOURS["sarsa-sr"])
    axes[2].set_ylim(min(low, 0), max(high, 1e-9))
    (line,) = axes[3].plot(bonuses, color=COLOURS["sarsa-srr"])

    def draw_step(t: int) -> list[Any]:
        images[0].set_data(frames[t])
        expected = predicted[t - 1] if t else None
        images[1].set_data(np.zeros_like(frames[t]) if expected is None else expected)
        for a, bar in enumerate(bars):
            bar.set_height(Q[t][a])
            bar.set_color(COLOURS["sarsa-srr" if a == actions[t] else "sarsa-sr"])
        line.set_data(range(t + 1), bonuses[: t + 1])
        return []

    FuncAnimation(figure, draw_step, len(frames)).save(path, PillowWriter(fps=15))


@matplotlib.rc_context(STYLE)
def mountain_car() -> Figure:
    """Figure 4a: the valley, the car where an episode starts, and the flag."""
    figure = _figure(4.2, 2.1)
    figure.set_label("MountainCar: a car in a valley, a flag on the right hill")
    ax = figure.add_subplot()
    ax.set_axis_off()
    ax.set_aspect("equal")

    def hill(x: Any) -> Any:
        return 0.45 * np.sin(3 * x) + 0.55

    x = np.linspace(-1.2, 0.6, 200)
    ax.fill_between(x, hill(x), -0.05, color=FLOOR, linewidth=0)
    ax.plot(x, hill(x), color=INK, linewidth=1.4)
    at = -0.5
    turn = np.arctan2(1.35 * np.cos(3 * at), 1)
    body = np.array([[-0.11, 0.05], [0.11, 0.05], [0.11, 0.1], [0.05, 0.15], [-0.06, 0.15], [-0.11, 0.1]])
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    ax.add_patch(Polygon(body @ rotation + [at, hill(at)], closed=True, color=COLOURS["linear-q-sf-pf"]))
    for wheel in (-0.065, 0.065):
        ax.add_patch(Circle(tuple(np.array([wheel, 0.045]) @ rotation + [at, hill(at)]), 0.035, color=INK))
    ax.plot([0.5, 0.5], [hill(0.5), hill(0.5) + 0.24], color=INK, linewidth=1.4)
    flag = [(0.5, hill(0.5) + 0.24), (0.62, hill(0.5) + 0.19), (0.5, hill(0.5) + 0.14)]
    ax.add_patch(Polygon(flag, closed=True, color=GOAL))
    return _settled(figure)


@matplotlib.rc_context(STYLE)
def space_maps(
    maps: Mapping[str, NDArray[Any]], view: Sequence[tuple[float, float]], labels: Sequence[str], columns: int = 4
) -> Figure:
    """Functions of a two-dimensional state, [rows, columns] each over `view`, on one colour scale around 0."""
    if not maps:
        raise ValueError("space_maps: nothing to draw; give at least one map")
    columns = min(columns, len(maps))
    rows = math.ceil(len(maps) / columns)
    figure = _figure(1.85 * columns + 0.5, 1.5 * rows + 0.5)
    figure.set_label(f"{', '.join(maps)} over {' and '.join(labels)}")
    most = max(float(np.abs(values).max()) for values in maps.values()) or 1.0
    norm = Normalize(-most, most)
    (left, right), (bottom, top) = view
    axes = []
    for i, (name, values) in enumerate(maps.items()):
        ax = figure.add_subplot(rows, columns, i + 1)
        axes.append(ax)
        ax.imshow(
            values, cmap=HEAT, norm=norm, extent=(left, right, bottom, top), origin="lower", aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        ax.set_title(name, loc="left", fontsize=9)
        ax.set_xticks([left, right] if i + columns >= len(maps) else [])
        ax.set_yticks([bottom, top] if i % columns == 0 else [])
        if i + columns >= len(maps):
            ax.set_xticklabels([_short(left), _short(right)])
            ax.set_xlabel(labels[0], labelpad=-6)
        if i % columns == 0:
            ax.set_yticklabels([_short(bottom), _short(top)])
            ax.set_ylabel(labels[1], labelpad=-12)
    figure.colorbar(ScalarMappable(norm, HEAT), ax=axes, aspect=30, shrink=0.8)
    return _settled(figure)


@matplotlib.rc_context(STYLE)
def svg(figure: Figure) -> str:
    """The figure as an element of a page: the same text every time, and as wide as the page lets it be."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue().partition("<svg")[2].partition(">")[2]
    # Matplotlib's style sheet would apply to the whole page; what it says stands in the root element below.
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\d+\.\d{3,}", lambda x: f"{float(x[0]):.2f}", path[0]), text)
    text = re.sub(r"\s*\n\s*", "\n", text).replace(INK, "currentColor")
    # Pictures of one page share no names: those that nobody refers to go, the others get a mark of this picture.
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda name: f' id="{mark}-{name[1]}"' if name[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{mark}-", text)
    width, height = 72 * figure.get_size_inches()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(str(figure.get_label()))}" '
        f'style="width:100%;max-width:{width:g}pt;height:auto;stroke-linejoin:round;stroke-linecap:butt">{text}'
    )


@matplotlib.rc_context(STYLE)
def save(figure: Figure, path: str | Path) -> None:
    """Write the figure to a file on white, PNG or SVG by its suffix."""
    format = picture_format(path)
    figure.savefig(path, format=format, dpi=200, metadata={"Date": None} if format == "svg" else None)


def picture_format(path: str | Path) -> str:
    """png or svg, by the suffix of a file's name; no other picture is written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg"):
        raise ValueError(f"{path}: cannot write a picture of this kind; give a name that ends in .png or .svg")
    return suffix[1:]


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
    return figure


def _settled(figure: Figure) -> Figure:
    """The figure with its layout done for good: done again at each drawing, no two drawings would be the same."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _batches(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def _number(x: float, position: int | None = None, sign: str = "-") -> str:
    return f"{x:{sign},.10g}".replace("-", MINUS)


def _short(x: float) -> str:
    return _number(float(f"{x:.3g}")) if math.isfinite(x) else "-"
