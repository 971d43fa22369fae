"""Several maps in one figure: values of states as colours, on one scale where they are to be compared."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from spie.page.plots.diagrams import draw_diagram, is_small, layout
from spie.page.plots.states import (
    StateMap,
    cell_of,
    colour_bar,
    colours_of,
    extent,
    frame_axes,
    grid_picture,
    is_constant,
    log_scale,
    mark_state,
    plot_maze,
    plot_values,
    scale_of,
)
from spie.page.plots.style import DIVERGING, HEAT, ON_MAP, STYLE, WALL, new_figure, settled, short
from spie.tasks.mdp import MDP


@matplotlib.rc_context(STYLE)
def heat_maps(
    mdp: MDP,
    rows: Mapping[str, NDArray[Any]],
    columns: Sequence[str],
    label: str = "visits a state",
    shown: slice = slice(None),
    room: int = 0,
) -> Figure:
    """Small maps on one logarithmic colour scale: a row per agent [T, S], a column per time; 0 stays blank.

    shown: some of the columns, on the scale of all. room: for that many columns or more, so that figures of some of
    them have one size.
    """
    for name, row in rows.items():
        if np.shape(row) != (len(columns), mdp.n_states):
            raise ValueError(f'heat_maps: "{name}" has shape {list(np.shape(row))}, not {[len(columns), mdp.n_states]}')
    if not rows or not columns:
        raise ValueError("heat_maps: nothing to draw; give at least one row and one column")
    norm = log_scale(np.array(list(rows.values()), np.float64))
    rows, columns = {name: row[shown] for name, row in rows.items()}, columns[shown]
    if cell_of(mdp) != "square":
        return _shape_maps(mdp, rows, columns, norm, label)
    # All maps are one picture, a gap apart: a hundred axes would take seconds to lay out.
    assert mdp.shape is not None
    h, w = mdp.shape
    gap = max(1, min(h, w) // 10)
    across = max(room, len(columns))
    mosaic = np.zeros((len(rows) * (h + gap) - gap, across * (w + gap) - gap, 4))
    tops, lefts = (h + gap) * np.arange(len(rows)), (w + gap) * np.arange(len(columns))
    for top, row in zip(tops, rows.values(), strict=True):
        for left, values in zip(lefts, row, strict=True):
            mosaic[top : top + h, left : left + w] = grid_picture(mdp, colours_of(values, norm))
    names, wide = 0.55 + 0.065 * max(map(len, rows)), min(0.53 * across, 6.2)  # inches; browsers have wider letters
    figure = new_figure(names + wide, min(max(wide * mosaic.shape[0] / mosaic.shape[1], 0.4), 14.0) + 1.0)
    figure.set_label(f"{label}: {', '.join(rows)}")
    ax = figure.add_subplot()
    ax.imshow(mosaic, interpolation="none")
    walls = (
        [mdp.layout.walls + np.array([left, top]) for top in tops for left in lefts] if len(mdp.layout.walls) else []
    )
    for lines in walls:
        ax.add_collection(LineCollection(list(lines), colors=WALL, linewidths=0.9))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set_xticks(lefts + (w - 1) / 2, columns)
    ax.set_yticks(tops + (h - 1) / 2, list(rows))
    colour_bar(figure, ax, norm, label, aspect=30, shrink=0.6)
    return settled(figure)


def _shape_maps(
    mdp: MDP, rows: Mapping[str, NDArray[Any]], columns: Sequence[str], norm: Normalize, label: str
) -> Figure:
    """The same for hexagons and nodes."""
    across, down = (length + 1 for length in extent(mdp))
    figure = new_figure(7.4, min(max(5.7 * len(rows) * down / (len(columns) * across), 0.4), 14.0) + 1.0)
    figure.set_label(f"{label}: {', '.join(rows)}")
    ax = figure.add_subplot()
    for i, row in enumerate(rows.values()):
        for j, values in enumerate(row):
            StateMap(ax, mdp, (j * across, i * down)).fill(colours_of(values, norm))
    frame_axes(ax, mdp, len(columns), len(rows))
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    left, right, top, bottom = mdp.layout.box
    ax.set_xticks((left + right) / 2 + across * np.arange(len(columns)), columns)
    ax.set_yticks((top + bottom) / 2 + down * np.arange(len(rows)), list(rows))
    colour_bar(figure, ax, norm, label, aspect=30, shrink=0.6)
    return settled(figure)


class MapGroup(NamedTuple):
    """Maps that share one colour scale; None among them is the maze itself."""

    label: str  # of the scale
    maps: Mapping[str, NDArray[Any] | None]  # by title [S]
    diverging: bool = False  # two colours that meet at 0


@matplotlib.rc_context(STYLE)
def panel_maps(mdp: MDP, groups: Sequence[MapGroup], of: int | None = None) -> Figure:
    """Groups of maps side by side, each group with one colour scale."""
    if not groups:
        raise ValueError("panel_maps: nothing to draw; give at least one group")
    w, h = extent(mdp)
    most = 4 if w <= 2.2 * h else 2 if w <= 6 * h else 1
    rows = _rows(groups, most)
    across = max(max(sum(len(group.maps) for group in row) for row in rows), 1)
    width = 7.4 / most + 0.1 if most > 1 else 7.4
    height = min(max((width - 0.25) * h / w, 0.5), 9.0) + 0.95
    figure = new_figure(max(width * across, 3.0), height * len(rows))
    figure.set_label(f"{mdp.name}: {', '.join(title for group in groups for title in group.maps)}")
    for part, row in zip(np.atleast_1d(np.array(figure.subfigures(len(rows), 1))), rows, strict=True):
        axes = list(np.atleast_1d(part.subplots(1, across)))
        for ax in axes[sum(len(group.maps) for group in row) :]:
            ax.set_axis_off()
        for group in row:
            _draw_group(part, [axes.pop(0) for _ in group.maps], mdp, group, of)
    return settled(figure)


def _rows(groups: Sequence[MapGroup], most: int) -> list[list[MapGroup]]:
    """Groups side by side, at most that wide; where a row cannot hold one, its scale is said again in the next."""
    rows: list[list[MapGroup]] = [[]]
    for group in groups:
        titles = list(group.maps)
        for i in range(0, len(titles), most):
            part = group._replace(maps={title: group.maps[title] for title in titles[i : i + most]})
            if sum(len(other.maps) for other in rows[-1]) + len(part.maps) > most:
                rows.append([])
            rows[-1].append(part)
    return rows if rows[0] else rows[1:]


def _draw_group(part: Any, axes: list[Axes], mdp: MDP, group: MapGroup, of: int | None) -> None:
    shown = [values for values in group.maps.values() if values is not None]
    norm = _shared_scale(group) if shown else Normalize()
    for ax, (title, values) in zip(axes, group.maps.items(), strict=True):
        ax.set_title(title, loc="left", fontsize=9)
        if values is None:
            plot_maze(mdp, ax=ax, of=of)
        else:
            plot_values(mdp, values, ax=ax, norm=norm, diverging=group.diverging, bar=False, of=of)
        ax.set_anchor("N")
    if shown:
        colours = DIVERGING if group.diverging else HEAT
        shape = {"aspect": 14 * len(axes), "shrink": 0.9 if len(axes) == 1 else 0.7}
        blank = isinstance(norm, LogNorm) and any((values <= 0).any() for values in shown)
        colour_bar(part, axes, norm, f"{group.label} (blank: 0)" if blank else group.label, colours, **shape)


def _shared_scale(group: MapGroup) -> Normalize:
    values = np.concatenate([np.asarray(v, np.float64) for v in group.maps.values() if v is not None])
    return scale_of(values, group.diverging)


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
    w, h = (mdp.n_states, 1) if is_small(mdp) else extent(mdp)
    columns = 1 if is_small(mdp) or w > 3 * h else min(len(entries), 4 if len(entries) in (4, 7, 8) else 3)
    width = 7.4 if columns == 1 and w > h else 4.2 if columns == 1 else 2.15 if columns == 4 else 2.5

    def height(entry: NDArray[np.float64] | None) -> float:
        if is_small(mdp):
            return layout(mdp).height(width) if entry is None else 0.75
        below = 0.0 if entry is None else 0.26 if is_constant(entry) else 0.38
        return min(max((width - 0.1) * h / w, 0.4), 12.0) + 0.3 + below

    rows = [entries[i : i + columns] for i in range(0, len(entries), columns)]
    heights = [max(height(entry) for _, entry in row) for row in rows]
    figure = new_figure(width * columns, sum(heights))
    figure.set_label(f"{mdp.name}: {', '.join(values)}")
    places = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    for i, (name, entry) in enumerate(entries):
        ax = figure.add_subplot(places[i // columns, i % columns])
        ax.set_title(name, loc="left", fontsize=9.5)
        if entry is not None:
            _draw_values(figure, ax, mdp, entry)
        elif is_small(mdp):
            draw_diagram(ax, mdp)
            continue
        else:
            plot_maze(mdp, ax=ax)
        ax.set_anchor("N")  # maps of one row stand level, with a colour bar or without
        if of is not None and not is_small(mdp):
            mark_state(ax, mdp, of)
        elif of is not None:
            ax.add_patch(Rectangle((of - 0.5, -0.5), 1, 1, fill=False, edgecolor=ON_MAP, linewidth=1.6, clip_on=False))
    return settled(figure)


def _draw_values(figure: Figure, ax: Axes, mdp: MDP, values: NDArray[np.float64]) -> None:
    norm = scale_of(values)
    if is_small(mdp):
        ax.imshow(colours_of(values, norm)[None], interpolation="none", aspect="auto")
        ax.spines[:].set(visible=True, alpha=0.4)
        ax.set(xticks=[], yticks=[])
        for s, value in enumerate(values):
            colour = "white" if norm(value) > 0.55 else ON_MAP
            ax.text(s, 0, short(value), ha="center", va="center", color=colour, fontsize=9)
        return
    StateMap(ax, mdp).fill(colours_of(values, norm))
    frame_axes(ax, mdp)
    if is_constant(values):
        ax.set_xlabel(f"{short(np.nanmax(values))} in every state", fontsize=8.5)
    else:
        colour_bar(figure, ax, norm)


def shades(values: NDArray[Any]) -> list[str]:
    """The colours of values [S] on the scale that state_maps uses, as #rrggbb."""
    return [to_hex(colour) for colour in colours_of(values, scale_of(values))]


@matplotlib.rc_context(STYLE)
def space_maps(
    maps: Mapping[str, NDArray[Any]],
    view: Sequence[tuple[float, float]],
    labels: Sequence[str],
    columns: int = 4,
    most: float = 0.0,
) -> Figure:
    """Functions of a two-dimensional state, [rows, columns] each over `view`, on one colour scale around 0.

    most: the end of the scale, where it is not the largest value.
    """
    if not maps:
        raise ValueError("space_maps: nothing to draw; give at least one map")
    columns = min(columns, len(maps))
    rows = math.ceil(len(maps) / columns)
    figure = new_figure(1.85 * columns + 0.5, 1.5 * rows + 0.5)
    figure.set_label(f"{', '.join(maps)} over {' and '.join(labels)}")
    most = most or max(float(np.abs(values).max()) for values in maps.values()) or 1.0
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
            ax.set_xticklabels([short(left), short(right)])
            ax.set_xlabel(labels[0], labelpad=-6)
        if i % columns == 0:
            ax.set_yticklabels([short(bottom), short(top)])
            ax.set_ylabel(labels[1], labelpad=-12)
    figure.colorbar(ScalarMappable(norm, HEAT), ax=axes, aspect=30, shrink=0.8)
    return settled(figure)
