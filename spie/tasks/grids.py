"""Grid worlds from ASCII maps (Figures 1, 3 and 6), and random mazes."""

import functools
import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spie.errors import unknown
from spie.tasks.mdp import MDP, reachable
from spie.tasks.registry import PATTERNS, TASKS, Entry, register_task

LETTERS = "#. SG123456789"
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])  # up, right, down, left
GRID_TASKS = ("explore", "goal", "moving-goal")


def _rooms(
    size: int, rows: Iterable[int] = (), columns: Iterable[int] = (), doors: Iterable[tuple[int, int]] = ()
) -> str:
    """Square map with whole rows and columns walled but for the doors; S, G, 1 and 2 in the corners."""
    letters = np.full((size, size), ".")
    letters[list(rows), :] = letters[:, list(columns)] = "#"
    for door in doors:
        letters[door] = "."
    letters[[0, -1, 0, -1], [0, -1, -1, 0]] = list("SG12")
    return "\n".join(map("".join, letters))


MAPS = {
    "of-small": _rooms(10),
    "cluster-simple": _rooms(10, columns=[5], doors=[(5, 5)]),
    "cluster-hard": _rooms(10, rows=[5], columns=[5], doors=[(2, 5), (7, 5), (5, 2), (5, 7)]),
    "of-large": _rooms(20),
    "cluster-simple-large": _rooms(20, columns=[10], doors=[(10, 10)]),
    "four-rooms": _rooms(15, rows=[7], columns=[7], doors=[(3, 7), (11, 7), (7, 3), (7, 11)]),  # not in the paper
}


@register_task("grid", gymnasium="Grid")
def grid(map: str | Path = "of-small", task: str = "explore", bumps: bool = True, episodes_per_goal: int = 30) -> MDP:
    """Grid world of a named map, an ASCII map or a file that holds one; actions up, right, down, left.

    `#` wall, `.` or space free, `S` start (without one, anywhere), `G` goal, `1`..`9` later goals. States are the
    cells that are no wall, row by row, labelled "row,column". A move into a wall or over the border stays in place,
    or is not available with bumps=False.

    Task "explore" pays nothing and never ends. "goal" pays -1 a step and 0 on the one into G, which ends the episode;
    in "moving-goal" the goal is G, 1, 2, ... and round again, `episodes_per_goal` episodes each.
    """
    if task not in GRID_TASKS:
        raise unknown("task", task, GRID_TASKS)
    name, text = find_map(map)
    letters = _parse(name, text)
    goals = _goals(name, letters, task)

    cells = np.argwhere(letters != "#")
    S = len(cells)
    state = np.full(
        (letters.shape[0] + 2, letters.shape[1] + 2), -1
    )  # with a border, so that every cell has neighbours
    state[tuple(cells.T + 1)] = np.arange(S)
    successors = np.stack([state[tuple((cells + 1 + move).T)] for move in MOVES], axis=1)[:, :, None]
    free = successors >= 0
    successors = np.where(free, successors, np.arange(S)[:, None, None])
    if not bumps and not free.any(axis=1).all():
        raise ValueError(f"{name}: nothing to do at {_at(cells[~free.any(axis=(1, 2))][0])}, walled in; use bumps=True")

    goal_states = state[tuple(goals.T + 1)]  # [G]
    begins = letters[tuple(cells.T)] == "S"
    if not begins.any():
        begins[:] = True
        begins[goal_states] = False
        if not begins.any():
            raise ValueError(f"{name}: no cell to start from beside the goals")
    for letter, goal in zip("G123456789", goal_states, strict=False):
        lost = begins & ~reachable(successors, np.arange(S) == goal)  # moves go both ways
        if lost.any():
            raise ValueError(
                f"{name}: goal {letter} at {_at(cells[goal])} cannot be reached from {_at(cells[lost][0])}"
            )

    if task == "explore":
        reward, terminal = np.zeros((1, S, 4, 1)), np.zeros((1, S), dtype=np.bool_)
    else:
        reward = np.where(successors == goal_states[:, None, None, None], 0.0, -1.0)
        terminal = np.arange(S) == goal_states[:, None]
    return MDP(
        name,
        successors,
        prob=np.ones((S, 4, 1)) if bumps else free.astype(np.float64),
        reward=reward,
        start=begins / begins.sum(),
        terminal=terminal,
        episodes_per_phase=episodes_per_goal if task == "moving-goal" else 0,
        available=np.array(True) if bumps else free[:, :, 0],
        labels=tuple(f"{row},{column}" for row, column in cells.tolist()),
        cells=cells.astype(np.int32),
        shape=(letters.shape[0], letters.shape[1]),
    )


def doors(mdp: MDP) -> NDArray[np.bool_]:
    """Which states are doors [S]: free cells with walls on two opposite sides and none on the other two.

    So is every cell of a straight corridor; a dead end and a corner are none. An MDP that is no grid has no doors.
    """
    if mdp.cells is None or mdp.shape is None:
        return np.zeros(mdp.n_states, dtype=np.bool_)
    wall = np.ones((mdp.shape[0] + 2, mdp.shape[1] + 2), dtype=np.bool_)  # with a border
    wall[tuple(mdp.cells.T + 1)] = False
    up, right, down, left = (wall[tuple((mdp.cells + 1 + move).T)] for move in MOVES)
    return np.asarray((up == down) & (left == right) & (up != left))


def middle(mdp: MDP) -> int:
    """The door that is nearest to the middle of a grid; where there is none, the state that is."""
    if mdp.cells is None or mdp.shape is None:
        return mdp.n_states // 2
    away = ((mdp.cells - (np.array(mdp.shape) - 1) / 2) ** 2).sum(axis=1)
    candidates = doors(mdp)
    return int(np.where(candidates | ~candidates.any(), away, np.inf).argmin())


def maze(rows: int, columns: int, seed: int = 0, loops: float = 0.1) -> str:
    """Random maze as an ASCII map of rows x columns characters, S in its first cell.

    Corridors join the h = (rows - 1) // 2 by w = (columns - 1) // 2 cells with odd row and column in a random tree;
    then a share `loops` of the (h - 1)(w - 1) walls left between neighbours is opened. Free cells in all:
    2hw - 1 + round(loops (h - 1)(w - 1)); maze(449, 449) has 105,324.
    """
    if rows < 3 or columns < 3:
        raise ValueError(f"maze: {rows} x {columns} has no room for a corridor; give at least 3 rows and 3 columns")
    if not 0 <= loops <= 1:
        raise ValueError(f"maze: loops is {loops}; give a share between 0 and 1")
    rng = np.random.default_rng(seed)
    h, w = (rows - 1) // 2, (columns - 1) // 2
    letters = np.full((rows, columns), "#")
    letters[1 : 2 * h : 2, 1 : 2 * w : 2] = "."

    # Depth-first walk: each cell tries its neighbours in an order of its own; a new one is joined, then walked from.
    orders = rng.permuted(np.tile(np.arange(4), (h * w, 1)), axis=1).tolist()
    moves = MOVES.tolist()
    seen = [False] * (h * w)
    seen[0] = True
    path, walls = [0], []
    while path:
        cell = path[-1]
        if not orders[cell]:
            path.pop()
            continue
        row, column = divmod(cell, w)
        down, right = moves[orders[cell].pop()]
        neighbour = cell + down * w + right
        if 0 <= row + down < h and 0 <= column + right < w and not seen[neighbour]:
            seen[neighbour] = True
            path.append(neighbour)
            walls.append((2 * row + 1 + down, 2 * column + 1 + right))
    for opened in walls:
        letters[opened] = "."

    between = np.zeros(letters.shape, dtype=np.bool_)
    between[2 : 2 * h : 2, 1 : 2 * w : 2] = between[1 : 2 * h : 2, 2 : 2 * w : 2] = True
    left = np.argwhere(between & (letters == "#"))
    letters[tuple(rng.permutation(left)[: round(loops * len(left))].T)] = "."
    letters[1, 1] = "S"
    return "\n".join(map("".join, letters))


def find_map(map: str | Path) -> tuple[str, str]:
    """Name and text of a map given as name, path or text."""
    if map in MAPS:
        return str(map), MAPS[str(map)]
    if "\n" not in str(map) and os.path.isfile(map):
        return Path(map).stem, Path(map).read_text(encoding="utf-8-sig", errors="replace")
    if isinstance(map, str) and ("\n" in map or set(map) <= {*LETTERS, "0"}):
        return "map", map
    raise unknown("map or file", map, MAPS)


def _parse(name: str, text: str) -> NDArray[np.str_]:
    """Characters of a map [rows, columns], checked."""
    lines = text.replace("\r\n", "\n").removeprefix("\n").removesuffix("\n").split("\n")
    if not lines[0]:
        raise ValueError(f"{name}: the map is empty" if len(lines) == 1 else f"{name}: line 1 is empty")
    for number, line in enumerate(lines, start=1):
        if len(line) != len(lines[0]):
            raise ValueError(f"{name}: line {number} has {len(line)} characters, line 1 has {len(lines[0])}")
        rest = line.lstrip(LETTERS)  # begins with the first character that does not belong
        if rest:
            column = len(line) - len(rest) + 1
            raise ValueError(
                f'{name}: unknown character "{rest[0]}" in line {number}, column {column}; '
                "known: # wall, . or space free, S start, G goal, 1-9 later goals"
            )
    letters = np.array([list(line) for line in lines])
    if (letters == "#").all():
        raise ValueError(f"{name}: no free cell, the map is all walls")
    for letter in "SG123456789":
        if (letters == letter).sum() > 1:
            first, second = np.argwhere(letters == letter)[:2]
            raise ValueError(f'{name}: two "{letter}", at {_at(first)} and {_at(second)}; one at most')
    return letters


def _goals(name: str, letters: NDArray[np.str_], task: str) -> NDArray[np.int64]:
    """Cells of the task's goals in their order [G, 2]."""
    later = [digit for digit in "123456789" if digit in letters]
    for expected, digit in zip("123456789", later, strict=False):
        if digit != expected:
            raise ValueError(f"{name}: goal {digit} without goal {expected}; number later goals 1, 2, ...")
    wanted = {"explore": [], "goal": ["G"], "moving-goal": ["G", *(later or ["1"])]}[task]
    for letter in wanted:
        if letter not in letters:
            raise ValueError(f'{name}: task "{task}" needs a goal "{letter}" in the map')
    return np.array([np.argwhere(letters == letter)[0] for letter in wanted], dtype=np.int64).reshape(-1, 2)


def _at(cell: NDArray[np.int64]) -> str:
    return f"row {cell[0]}, column {cell[1]}"


def _entry(map: str) -> Entry | None:
    """A map in a file, or the text of one, as a task."""
    is_map = "\n" in map or os.path.isfile(map)
    return Entry(map, "table", functools.partial(grid, map)) if is_map else None


for _name in MAPS:
    TASKS["table"].add(_name, Entry(_name, "table", functools.partial(grid, _name)))
PATTERNS["table"].append(_entry)
