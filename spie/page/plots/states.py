"""States drawn where they lie: squares with thick or thin walls, hexagons, nodes and links. Everything takes `ax=`."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import EllipseCollection, LineCollection, PolyCollection
from matplotlib.colors import Colormap, LogNorm, Normalize, is_color_like, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

from spie.errors import as_array, check_flag, check_whole, told
from spie.page.plots.style import DIVERGING, FLOOR, GOAL, HEAT, ON_MAP, START, STYLE, WALL, new_figure, number, settled
from spie.tasks.mdp import MDP

NODE = 0.34  # radius of a node where links are 1 long
MOST_LABELS = 40  # nodes that are named in a picture
Colours = NDArray[np.float64]


class StateMap:
    """The states of an MDP on some axes, to be coloured, once or again and again."""

    def __init__(self, ax: Axes, mdp: MDP, offset: tuple[float, float] = (0.0, 0.0)) -> None:
        self.ax, self.mdp, self.offset = ax, mdp, np.array(offset)
        self.cell = cell_of(mdp)
        floor = np.tile(to_rgba(FLOOR), (mdp.n_states, 1))
        if self.cell == "square":
            self.image = ax.imshow(grid_picture(mdp, floor), interpolation="none")
        else:
            self._shapes()
        if self.cell != "box":
            self._walls_and_doors()

    def _shapes(self) -> None:
        layout = self.mdp.layout
        places = layout.positions + self.offset
        self.unit = link_length(self.mdp)
        if layout.cell == "hexagon":
            turns = np.pi / 6 + np.arange(6) * np.pi / 3
            corners = np.stack([np.cos(turns), np.sin(turns)], axis=1) / 3**0.5
            self.shapes: Any = PolyCollection(places[:, None] + corners, edgecolors=WALL, linewidths=0.3, zorder=2)
        else:
            lines = places[np.concatenate([layout.links, layout.arrows])]
            self.ax.add_collection(LineCollection(list(lines), colors=WALL, linewidths=1.0, alpha=0.6, zorder=1))
            size = np.full(len(places), 2 * NODE * self.unit)
            self.shapes = EllipseCollection(
                size, size, 0 * size, units="x", offsets=places, offset_transform=self.ax.transData,
                edgecolors=WALL, linewidths=0.6, zorder=2,
            )  # fmt: skip
        self.ax.add_collection(self.shapes)

    def _walls_and_doors(self) -> None:
        layout = self.mdp.layout
        if len(layout.walls):
            lines = LineCollection(list(layout.walls + self.offset), colors=WALL, linewidths=2.0, zorder=3)
            lines.set_capstyle("round")
            self.ax.add_collection(lines)
        if len(layout.arrows):
            here, there = (layout.positions[layout.arrows[:, i]] + self.offset for i in (0, 1))
            along = (there - here) / np.linalg.norm(there - here, axis=1, keepdims=True)
            aside, middle = along[:, ::-1] * [-1, 1], (here + there) / 2
            size = 0.2 * (1 if self.cell == "square" else self.unit)
            tips = np.stack(
                [middle + size * along, middle - size * (along - aside), middle - size * (along + aside)], 1
            )
            triangles = PolyCollection(list(tips), facecolors=DOOR, edgecolors="white", linewidths=0.5, zorder=4)
            self.ax.add_collection(triangles)
            if self.cell == "square":
                half = 0.5 * aside
                sides = np.stack([middle - half, middle + half], axis=1)
                self.ax.add_collection(
                    LineCollection(list(sides), colors=WALL, linewidths=1.2, linestyles=(0, (1, 1)), zorder=3)
                )

    def fill(self, colours: Colours) -> None:
        """Colours of all states [S, 4]."""
        if self.cell == "square":
            self.image.set_data(grid_picture(self.mdp, colours))
        else:
            self.shapes.set_facecolor(colours)

    def place(self, s: int) -> NDArray[np.float64]:
        """Where state s is."""
        return np.asarray(places_of(self.mdp)[s] + self.offset)


DOOR = "#b3261e"  # one-way doors


def cell_of(mdp: MDP) -> str:
    """What a state looks like: "square", "hexagon", "node"."""
    return "square" if mdp.cells is not None else mdp.layout.cell


def places_of(mdp: MDP) -> NDArray[np.float64]:
    return mdp.cells[:, ::-1].astype(np.float64) if mdp.cells is not None else mdp.layout.positions


def link_length(mdp: MDP) -> float:
    """The shortest link of a graph, or what is nearest: nodes are drawn in proportion."""
    if mdp.cells is not None or mdp.layout.cell != "node":
        return 1.0
    pairs = np.concatenate([mdp.layout.links, mdp.layout.arrows])
    ends = mdp.layout.positions[pairs]
    lengths = np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1) if len(pairs) else np.ones(1)
    return float(max(lengths.min(), 0.35 * np.median(lengths)))


def grid_picture(mdp: MDP, colours: Colours) -> Colours:
    """Colours of the cells of a grid [rows, columns, 4]."""
    assert mdp.cells is not None
    assert mdp.shape is not None
    picture = np.tile(to_rgba(WALL), (*mdp.shape, 1))
    picture[tuple(mdp.cells.T)] = colours
    return picture


def extent(mdp: MDP) -> tuple[float, float]:
    """Width and height of the whole, in cells."""
    if mdp.shape is not None:
        return float(mdp.shape[1]), float(mdp.shape[0])
    left, right, top, bottom = mdp.layout.box
    return right - left, bottom - top


def frame_axes(ax: Axes, mdp: MDP, columns: int = 1, rows: int = 1) -> None:
    """The limits of axes that hold one map, or a table of them one cell apart."""
    if mdp.cells is not None:
        ax.spines[:].set(visible=True, alpha=0.4)
    else:
        left, right, top, bottom = mdp.layout.box
        ax.spines[:].set_visible(False)
        ax.set_aspect("equal")
        ax.set_xlim(left - 0.1, left + columns * (right - left + 1) - 0.9)
        ax.set_ylim(top + rows * (bottom - top + 1) - 0.9, top - 0.1)
    ax.set(xticks=[], yticks=[])


def colours_of(values: NDArray[Any], norm: Normalize, colours: Colormap = HEAT) -> Colours:
    """[S, 4]; a state without value, or with 0 on a logarithmic scale, is floor."""
    values = np.asarray(values, np.float64)
    blank = ~np.isfinite(values) | ((values <= 0) & isinstance(norm, LogNorm))
    found = np.tile(to_rgba(FLOOR), (len(values), 1))
    found[~blank] = colours(norm(values[~blank]))
    return found


def scale_of(values: NDArray[Any], diverging: bool = False) -> Normalize:
    """Logarithmic where nothing is below 0 and much differs 50-fold; where all are equal, it shows no rounding."""
    values = np.asarray(values, np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if diverging:
        most = max(abs(low), abs(high)) or 1.0
        return Normalize(-most, most)
    if is_constant(values):
        return Normalize(low - 1, high + 1)
    log = log_scale(values)
    return log if low >= 0 and high > 50 * (log.vmin or 0) else Normalize(low, high)


def log_scale(values: NDArray[np.float64]) -> LogNorm:
    """Down from the largest value, four decades at most."""
    positive = values[np.isfinite(values) & (values > 0)]
    high = float(positive.max()) if positive.size else 1.0
    low = max(float(positive.min()), high / 1e4) if positive.size else 1.0
    return LogNorm(low, high if high > low else 10 * low, clip=True)


def is_constant(values: NDArray[Any]) -> bool:
    """Whether all values are the same but for rounding."""
    values = np.asarray(values, np.float64)
    finite = values[np.isfinite(values)]
    return not finite.size or bool(np.ptp(finite) <= 1e-9 * np.abs(finite).max())


def colour_bar(
    figure: Any, axes: Any, norm: Normalize, label: str = "", colours: Colormap = HEAT, **shape: Any
) -> None:
    bar = figure.colorbar(ScalarMappable(norm, colours), ax=axes, location="bottom", pad=0.03, **shape)
    bar.set_label(label, fontsize=8.5)
    assert bar.solids is not None
    bar.solids.set_rasterized(True)  # one picture instead of 256 boxes
    bar.outline.set_visible(False)
    wide = isinstance(norm, LogNorm) and (norm.vmax or 1) > 300 * (norm.vmin or 1)
    log = LogLocator(subs=(1,) if wide else (1, 3))
    bar.ax.xaxis.set_major_locator(log if isinstance(norm, LogNorm) else MaxNLocator(4))
    bar.ax.xaxis.set_minor_locator(NullLocator())
    bar.ax.xaxis.set_major_formatter(FuncFormatter(number))
    bar.ax.tick_params(labelsize=8, length=2)


def mark_state(ax: Axes, mdp: MDP, s: int) -> None:
    """A frame around a state, to be seen on any ground."""
    x, y = places_of(mdp)[s]
    side = max(1.0, max(extent(mdp)) / 40)
    for colour, width in (("white", 3.0), (ON_MAP, 1.4)):
        frame: Any = (
            Rectangle((x - side / 2, y - side / 2), side, side)
            if cell_of(mdp) == "square"
            else Circle((x, y), 1.25 * NODE * link_length(mdp) if cell_of(mdp) == "node" else 0.45)
        )
        frame.set(fill=False, edgecolor=colour, linewidth=width, clip_on=False, zorder=6)
        ax.add_patch(frame)


def marks_of(mdp: MDP) -> list[tuple[str, str, int]]:
    """Letter, colour and state of the starts, of the goals of every phase and of the ends of trials."""
    starts = np.flatnonzero(mdp.start > 0)
    if 2 * len(starts) > mdp.n_states:  # a start that may be almost anywhere marks nothing
        starts = starts[:0]
    told = mdp.layout.letters or ("",) * mdp.n_states
    marks = [("S", START, int(s)) for s in starts]
    for letter, ends in zip("G123456789", mdp.terminal, strict=False):
        marks += [(told[s] if mdp.n_phases == 1 and told[s] else letter, GOAL, int(s)) for s in np.flatnonzero(ends)]
    return marks


# What `spie.plot` offers


def _axes(ax: Axes | None, mdp: MDP) -> tuple[Axes, bool]:
    """The axes to draw on; where none are given, those of a new figure."""
    if ax is not None:
        return ax, False
    width, height = extent(mdp)
    across = 4.2 if width <= 3 * height else 7.4
    return new_figure(across, min(max(across * height / width, 0.8), 12) + 0.8).add_subplot(), True


def _check_state(mdp: MDP, of: int | None) -> None:
    if of is not None:
        check_whole("of, a state,", of, 0, mdp.n_states - 1)


def _done(ax: Axes, new: bool) -> Axes:
    if new and isinstance(ax.figure, Figure):
        settled(ax.figure)
    return ax


@matplotlib.rc_context(STYLE)
def plot_maze(mdp: MDP, *, ax: Axes | None = None, of: int | None = None) -> Axes:
    """The maze alone: walls, one-way doors, starts, goals and ends; state `of` gets a frame.

    mdp: what to draw. ax: Matplotlib axes; by default a figure of its own. Returns the axes.

    >>> ax = spie.plot.maze(spie.grid("S..\\n.#."))
    >>> len(ax.figure.axes)
    1
    """
    _check_state(mdp, of)
    ax, new = _axes(ax, mdp)
    states = StateMap(ax, mdp)
    frame_axes(ax, mdp)
    colours = np.tile(to_rgba(FLOOR), (mdp.n_states, 1))
    marks = marks_of(mdp)
    for _, colour, s in marks:
        colours[s] = to_rgba(colour)
    states.fill(colours)
    cell = 72 * ax.get_position().width * ax.figure.get_figure(root=True).get_figwidth() / extent(mdp)[0]
    if states.cell == "node":
        cell *= 2 * NODE * link_length(mdp)
    for letter, colour, s in marks[:20]:
        x, y = states.place(s)
        ground = {"boxstyle": "circle,pad=0.15", "facecolor": colour, "edgecolor": ON_MAP} if cell < 7 else None
        ax.text(x, y, letter, ha="center", va="center", color=ON_MAP, fontsize=8, bbox=ground, zorder=5)
    if states.cell == "node" and mdp.n_states <= MOST_LABELS:
        marked = {s for _, _, s in marks}
        for s, label in enumerate(mdp.labels):
            if s not in marked and len(label) <= 4:
                x, y = states.place(s)
                ax.text(x, y, label, ha="center", va="center", color=ON_MAP, fontsize=7, zorder=5)
    if of is not None:
        mark_state(ax, mdp, of)
    return _done(ax, new)


@matplotlib.rc_context(STYLE)
def plot_values(
    mdp: MDP,
    values: NDArray[Any],
    *,
    ax: Axes | None = None,
    norm: Normalize | None = None,
    diverging: bool = False,
    label: str = "",
    bar: bool = True,
    of: int | None = None,
) -> Axes:
    """A number of every state [S] as colours on the maze.

    norm: a colour scale shared with other maps (Matplotlib's Normalize); by default one of its own, logarithmic where
    values differ 50-fold. diverging: two colours that meet at 0. bar: whether a colour bar with `label` is drawn below.

    mdp, ax, of: as for `plot_maze`. values: [S]. Returns the axes. Raises ValueError where there is not one a state.

    >>> maze = spie.grid("S..\\n.#.")
    >>> ax = spie.plot.values(maze, maze.representations().z, label="z")
    >>> len(ax.figure.axes)  # the map and its colours
    2
    """
    values = as_array("values", values, np.float64)
    if values.shape != (mdp.n_states,):
        raise ValueError(f"values have shape {list(values.shape)}, not {[mdp.n_states]}")
    _check_state(mdp, of)
    for name, flag in (("diverging", diverging), ("bar", bar)):
        check_flag(name, flag)
    if not isinstance(label, str):
        raise ValueError(f"label must be a text, not {told(label)}")
    ax, new = _axes(ax, mdp)
    norm = scale_of(values, diverging) if norm is None else norm
    colours = DIVERGING if diverging else HEAT
    states = StateMap(ax, mdp)
    frame_axes(ax, mdp)
    states.fill(colours_of(values, norm, colours))
    if of is not None:
        mark_state(ax, mdp, of)
    if bar:
        colour_bar(ax.figure, ax, norm, label, colours)
    return _done(ax, new)


@matplotlib.rc_context(STYLE)
def plot_path(mdp: MDP, states: NDArray[Any], *, ax: Axes | None = None, colour: str = DOOR) -> Axes:
    """A path, a sequence of states, as a line through the maze that begins at a ring and ends at a dot.

    mdp, ax: as for `plot_maze`. states: their numbers. colour: of the line. Returns the axes.
    Raises ValueError for states that are not there.

    >>> ax = spie.plot.path(spie.grid("S..\\n.#."), [0, 1, 2])
    >>> len(ax.figure.axes)
    1
    """
    states = as_array("a path", states)
    within = states.dtype.kind in "iu" and bool(((states >= 0) & (states < mdp.n_states)).all())
    if states.ndim != 1 or not len(states) or not within:
        raise ValueError(f"a path is a sequence of states, 0..{mdp.n_states - 1}")
    if not is_color_like(colour):
        raise ValueError(f'colour must be one of Matplotlib\'s, such as "#b3261e", not {told(colour)}')
    new = ax is None
    ax = plot_maze(mdp, ax=ax)
    spread = np.random.default_rng(0).uniform(-0.18, 0.18, (len(states), 2)) * link_length(mdp)  # ways back are seen
    places = places_of(mdp)[states] + spread
    ax.plot(*places.T, color=colour, linewidth=0.9, alpha=0.75, zorder=7)
    ax.plot(*places[0], marker="o", markersize=6, markerfacecolor="white", markeredgecolor=colour, zorder=8)
    ax.plot(*places[-1], marker="o", markersize=5, color=colour, zorder=8)
    return _done(ax, new)
