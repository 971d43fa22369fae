"""A finite MDP as a picture and as text."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # an MDPEnv draws itself with these
    from spie.tasks.mdp import MDP


def draw(mdp: "MDP", s: int, phase: int = 0) -> NDArray[np.uint8]:
    """Picture of an MDP with the agent in state s, uint8 [height, width, 3]: a grid as it is, else a row of boxes."""
    cells, shape = _layout(mdp)
    wall, free, start, goal, agent = (45, 45, 55), (245, 245, 240), (190, 215, 245), (250, 215, 110), (200, 55, 45)
    colours = np.full((*shape, 3), wall, dtype=np.uint8)
    colours[tuple(cells.T)] = free
    colours[tuple(cells[_marked_starts(mdp)].T)] = start
    colours[tuple(cells[mdp.terminal[phase]].T)] = goal
    side = min(32, max(6, 640 // max(shape)))  # pixels per cell
    picture = colours.repeat(side, axis=0).repeat(side, axis=1)
    picture[::side] = picture[:, ::side] = wall  # lines between the cells
    y, x = np.ogrid[:side, :side]
    disc = (y - side / 2) ** 2 + (x - side / 2) ** 2 <= (0.35 * side) ** 2
    top, left = cells[s] * side
    picture[top : top + side, left : left + side][disc] = agent
    return picture


def write(mdp: "MDP", s: int, phase: int = 0) -> str:
    """An MDP as text with the agent in state s: a map with `@`, else a line of states, the agent's in brackets."""
    if mdp.cells is None:
        return " ".join(f"[{label}]" if i == s else label for i, label in enumerate(mdp.labels))
    cells, shape = _layout(mdp)
    letters = np.full(shape, "#")
    letters[tuple(cells.T)] = "."
    letters[tuple(cells[_marked_starts(mdp)].T)] = "S"
    letters[tuple(cells[mdp.terminal[phase]].T)] = "G"
    letters[tuple(cells[s])] = "@"
    return "\n".join(map("".join, letters))


def _layout(mdp: "MDP") -> tuple[NDArray[np.int32], tuple[int, int]]:
    if mdp.cells is not None and mdp.shape is not None:
        return mdp.cells, mdp.shape
    return np.stack([np.zeros(mdp.n_states), np.arange(mdp.n_states)], axis=1).astype(np.int32), (1, mdp.n_states)


def _marked_starts(mdp: "MDP") -> NDArray[np.bool_]:
    starts: NDArray[np.bool_] = mdp.start > 0
    if 2 * starts.sum() > mdp.n_states:  # a start that may be almost anywhere marks nothing
        starts[:] = False
    return starts
