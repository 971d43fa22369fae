"""Values of states as colours on a map."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from spie.page.plots.diagrams import draw_diagram, is_small, layout
from spie.page.plots.style import FLOOR, GOAL, HEAT, ON_MAP, START, STYLE, WALL, new_figure, number, settled, short
from spie.tasks.mdp import MDP


@matplotlib.rc_context(STYLE)
def heat_maps(
    mdp: MDP,
    rows: Mapping[str, NDArray[Any]],
    columns: Sequence[str],
    label: str = "visits a state",
    shown: slice = slice(None),
) -> Figure:
    """Small maps on one logarithmic colour scale: a row per agent [T, S], a column per time; 0 stays blank.

    shown: some of the columns, on the scale of all.
    """
    for name, row in rows.items():
        if np.shape(row) != (len(columns), mdp.n_states):
            raise ValueError(f'heat_maps: "{name}" has shape {list(np.shape(row))}, not {[len(columns), mdp.n_states]}')
    if not rows or not columns:
        raise ValueError("heat_maps: nothing to draw; give at least one row and one column")
    norm = _log_norm(np.array(list(rows.values()), np.float64))
    rows, columns = {name: row[shown] for name, row in rows.items()}, columns[shown]
    # All maps are one picture, a gap apart: a hundred axes would take seconds to lay out.
    h, w = _shape(mdp)
    gap = max(1, min(h, w) // 10)
    mosaic = np.zeros((len(rows) * (h + gap) - gap, len(columns) * (w + gap) - gap, 4))
    tops, lefts = (h + gap) * np.arange(len(rows)), (w + gap) * np.arange(len(columns))
    for top, row in zip(tops, rows.values(), strict=True):
        for left, values in zip(lefts, row, strict=True):
            mosaic[top : top + h, left : left + w] = _picture(mdp, np.asarray(values, np.float64), norm)
    names, wide = 1.2, min(0.53 * len(columns), 6.2)  # inches
    figure = new_figure(names + wide, min(max(wide * mosaic.shape[0] / mosaic.shape[1], 0.4), 14.0) + 1.0)
    figure.set_label(f"{label}: {', '.join(rows)}")
    ax = figure.add_subplot()
    _show(ax, mosaic)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labeltop=True, labelbottom=False)
    ax.set_xticks(lefts + (w - 1) / 2, columns)
    ax.set_yticks(tops + (h - 1) / 2, list(rows))
    _colour_bar(figure, ax, norm, label, aspect=30, shrink=0.6)
    return settled(figure)


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
        if is_small(mdp):
            return layout(mdp).height(width) if entry is None else 0.75
        below = 0.0 if entry is None else 0.26 if _is_constant(entry) else 0.38
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
            _draw_environment(ax, mdp, cell=72 * width / w)
        ax.set_anchor("N")  # maps of one row stand level, with a colour bar or without
        if of is not None:
            _frame(ax, mdp, of)
    return settled(figure)


def _draw_values(figure: Figure, ax: Axes, mdp: MDP, values: NDArray[np.float64]) -> None:
    norm = _norm(values)
    _show(ax, _picture(mdp, values, norm))
    if is_small(mdp):
        ax.set_aspect("auto")
        for s, value in enumerate(values):
            colour = "white" if norm(value) > 0.55 else ON_MAP
            ax.text(s, 0, short(value), ha="center", va="center", color=colour, fontsize=9)
    elif _is_constant(values):
        ax.set_xlabel(f"{short(np.nanmax(values))} in every state", fontsize=8.5)
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
    bar.ax.xaxis.set_major_formatter(FuncFormatter(number))
    bar.ax.tick_params(labelsize=8, length=2)


def _cells(mdp: MDP) -> NDArray[Any]:
    """Row and column of every state [S, 2]; without a grid, all in one row."""
    s = np.arange(mdp.n_states)
    return np.stack([0 * s, s], axis=1) if mdp.cells is None else mdp.cells


def _shape(mdp: MDP) -> tuple[int, int]:
    return mdp.shape or (1, mdp.n_states)


def _is_constant(values: NDArray[np.float64]) -> bool:
    finite = values[np.isfinite(values)]
    return not finite.size or bool(np.ptp(finite) <= 1e-9 * np.abs(finite).max())


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
