"""A finite MDP as a picture and as text."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.tasks.maps import ENDS, Board, write_cells, write_edges

if TYPE_CHECKING:  # an MDPEnv draws itself with these
    from spie.tasks.mdp import MDP

COLOURS = {
    "wall": (45, 45, 55), "free": (245, 245, 240), "start": (190, 215, 245), "goal": (250, 215, 110),
    "agent": (200, 55, 45), "link": (150, 150, 155),
}  # fmt: skip


def draw(mdp: "MDP", s: int, phase: int = 0) -> NDArray[np.uint8]:
    """Picture of an MDP with the agent in state s, uint8 [height, width, 3].

    A board of squares or hexagons with its walls, or nodes and links; an MDP that says nothing of places is a row of
    boxes.
    """
    fills = np.array([COLOURS["free"]] * mdp.n_states, dtype=np.uint8)
    fills[_marked_starts(mdp)] = COLOURS["start"]
    fills[mdp.terminal[phase]] = COLOURS["goal"]
    if mdp.cells is not None or mdp.places is None:
        return _squares(mdp, s, fills)
    return _shapes(mdp, s, fills)


def _squares(mdp: "MDP", s: int, fills: NDArray[np.uint8]) -> NDArray[np.uint8]:
    cells, shape = _cells(mdp)
    colours = np.full((*shape, 3), COLOURS["wall"], dtype=np.uint8)
    colours[tuple(cells.T)] = fills
    side = min(32, max(6, 640 // max(shape)))  # pixels per cell
    picture = colours.repeat(side, axis=0).repeat(side, axis=1)
    picture[::side] = picture[:, ::side] = COLOURS["wall"]  # lines between the cells
    if mdp.cells is not None and len(mdp.layout.walls):
        half = max(1, side // 10)
        for (x, y), (x_end, y_end) in np.rint((mdp.layout.walls + 0.5) * side).astype(int):
            rows, columns = (
                slice(max(0, min(y, y_end) - half), max(y, y_end) + half),
                slice(max(0, min(x, x_end) - half), max(x, x_end) + half),
            )
            picture[rows, columns] = COLOURS["wall"]
    y, x = np.ogrid[:side, :side]
    disc = (y - side / 2) ** 2 + (x - side / 2) ** 2 <= (0.35 * side) ** 2
    top, left = cells[s] * side
    picture[top : top + side, left : left + side][disc] = COLOURS["agent"]
    return picture


def _shapes(mdp: "MDP", s: int, fills: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Hexagons, or nodes and links, pixel by pixel."""
    layout = mdp.layout
    left, right, top, bottom = layout.box
    unit = max(4.0, min(32.0, 640 / max(right - left, bottom - top)))  # pixels from a cell to the next
    height, width = (max(8, round(unit * extent)) for extent in (bottom - top, right - left))
    ground = COLOURS["free" if layout.cell == "node" else "wall"]
    picture = np.full((height, width, 3), ground, dtype=np.uint8)
    places = (layout.positions - [left, top]) * unit
    for a, b in np.concatenate([layout.links, layout.arrows]).tolist():
        _line(picture, places[a], places[b], COLOURS["link"], 1)
    for here, fill in zip(places, fills, strict=True):
        if layout.cell == "hexagon":
            _disc(picture, here, 0.5 * unit - 0.5, fill, sides=6)
        else:
            _disc(picture, here, 0.3 * unit + 1, COLOURS["wall"])
            _disc(picture, here, 0.3 * unit, fill)
    for start, end in (layout.walls - [left, top]) * unit:
        _line(picture, start, end, COLOURS["wall"], max(1.0, unit / 12))
    _disc(picture, places[s], 0.25 * unit, COLOURS["agent"])
    return picture


def _disc(picture: NDArray[np.uint8], place: Any, radius: float, colour: Any, sides: int = 0) -> None:
    """Fill a disc, or a hexagon that stands on its tip."""
    reach = 1.2 * radius + 1
    (x, y), (height, width) = place, picture.shape[:2]
    rows = np.arange(max(0, int(y - reach)), min(height, int(y + reach) + 2))
    columns = np.arange(max(0, int(x - reach)), min(width, int(x + reach) + 2))
    dy, dx = np.meshgrid(rows + 0.5 - y, columns + 0.5 - x, indexing="ij")
    if sides:
        far = np.max([np.abs(dx * np.cos(turn) + dy * np.sin(turn)) for turn in np.arange(3) * np.pi / 3], axis=0)
    else:
        far = np.hypot(dx, dy)
    picture[np.ix_(rows, columns)] = np.where(
        (far <= radius)[:, :, None], np.uint8(colour), picture[np.ix_(rows, columns)]
    )


def _line(picture: NDArray[np.uint8], start: Any, end: Any, colour: Any, half: float) -> None:
    n = int(np.abs(np.subtract(end, start)).max() * 2) + 2
    for x, y in np.linspace(start, end, n):
        rows = slice(max(0, round(y - half)), max(0, round(y + half)))
        picture[rows, max(0, round(x - half)) : max(0, round(x + half))] = colour


def write(mdp: "MDP", s: int, phase: int = 0) -> str:
    """An MDP as text with the agent in state s: a map with `@`, else a line of states, the agent's in brackets."""
    if mdp.cells is None:
        return " ".join(f"[{label}]" if i == s else label for i, label in enumerate(mdp.labels))
    cells, shape = _cells(mdp)
    letters = np.full(shape, "#")
    letters[tuple(cells.T)] = "."
    letters[tuple(cells[_marked_starts(mdp)].T)] = "S"
    ends = np.flatnonzero(mdp.terminal[phase])
    marks = mdp.layout.letters or ("",) * mdp.n_states
    letters[tuple(cells[ends].T)] = [marks[end] if marks[end] in tuple(ENDS) else "G" for end in ends]
    letters[tuple(cells[s])] = "@"
    if not len(mdp.layout.walls) and not len(mdp.layout.arrows):
        return write_cells(letters)
    moves = mdp.next[:, :, 0] != np.arange(mdp.n_states)[:, None]
    passes = np.zeros((*shape, 4), dtype=np.bool_)
    passes[tuple(cells.T)] = moves
    return write_edges(Board(letters, passes))


def _cells(mdp: "MDP") -> tuple[NDArray[np.int32], tuple[int, int]]:
    if mdp.cells is not None and mdp.shape is not None:
        return mdp.cells, mdp.shape
    return np.stack([np.zeros(mdp.n_states), np.arange(mdp.n_states)], axis=1).astype(np.int32), (1, mdp.n_states)


def _marked_starts(mdp: "MDP") -> NDArray[np.bool_]:
    starts: NDArray[np.bool_] = mdp.start > 0
    if 2 * starts.sum() > mdp.n_states:  # a start that may be almost anywhere marks nothing
        starts[:] = False
    return starts
