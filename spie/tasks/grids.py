"""Grid worlds from ASCII maps (Figures 1, 3 and 6), and random mazes."""

import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.errors import check_flag, check_number, check_rewards, check_whole, is_among, told, unknown
from spie.tasks.layout import Layout, cells_layout, moves
from spie.tasks.maps import ENDS, GOALS, LETTERS, Board, at, read, write_cells, write_edges
from spie.tasks.maps import MOVES as MOVES  # others take it from here
from spie.tasks.mdp import MDP, reachable
from spie.tasks.registry import PATTERNS, TASKS, Entry, register_task

MOST_CELLS = 20_000_000  # of a map
GRID_TASKS = ("explore", "goal", "moving-goal", "trials")


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
def grid(
    map: str | Path = "of-small",
    task: str | None = None,
    bumps: bool = True,
    episodes_per_goal: int = 30,
    rewards: Mapping[str, float] | None = None,
) -> MDP:
    """Grid world of a named map, an ASCII map or a file that holds one; actions up, right, down, left.

    `#` wall, `.` or space free, `S` starts (without one, anywhere), `G` goal, `1`..`9` later goals, `a`..`h` ends of a
    trial. States are the cells that are no wall, row by row, labelled "row,column". A map that begins with a corner `+`
    has its walls between the cells (`docs/mazes.md`). A move into a wall or over the border stays in place, or is not
    available with bumps=False.

    Task "explore" pays nothing and never ends. "goal" pays -1 a step and 0 on the one into G, which ends the episode;
    in "moving-goal" the goal is G, 1, 2, ... and round again, `episodes_per_goal` episodes each. "trials" pays
    `rewards`, such as {"a": 1, "b": 0.2}, on the step into that end, and nothing before. By default "trials" where
    there are rewards, else "explore".
    map: a name (of-small, cluster-hard, ...), text, or a file. Raises ValueError with line and column of what is wrong.

    >>> maze = spie.grid("S..#\\n...G", task="goal")
    >>> maze.n_states, maze.labels[0], maze.labels[-1]
    (7, '0,0', '1,3')
    """
    if task is None:
        task = "explore" if rewards is None else "trials"
    _check_options(task, bumps, episodes_per_goal, rewards)
    name, text = find_map(map)
    board = read(name, text)
    pays = _rewards(name, board, task, rewards)
    goals = _goals(name, board.letters, task)

    cells, states, successors, free = _tables(board)
    S = len(cells)
    if not bumps and not free.any(axis=1).all():
        raise ValueError(f"{name}: nothing to do at {at(cells[~free.any(axis=(1, 2))][0])}, walled in; use bumps=True")

    letters = board.letters[tuple(cells.T)]
    goal_states = states[tuple(goals.T + 1)]  # [G]
    ends = np.isin(letters, list(pays))
    begins = _starts(name, letters, goal_states, ends)
    for letter, goal in zip(GOALS, goal_states, strict=False):
        _check_way(name, successors, np.arange(S) == goal, begins, cells, f"goal {letter} at {at(cells[goal])}")
    if task == "trials":
        _check_way(name, successors, ends, begins, cells, "an end")
    reward, terminal = _pay(
        task, successors, goal_states, ends, np.array([pays.get(letter, 0.0) for letter in letters])
    )
    prob = np.ones((S, 4, 1)) if bumps else free.astype(np.float64)
    marks = tuple(letter if letter in "S" + GOALS + ENDS else "" for letter in letters.tolist())
    return MDP(
        name,
        successors,
        prob=prob,
        reward=reward,
        start=begins / begins.sum(),
        terminal=terminal,
        episodes_per_phase=episodes_per_goal if task == "moving-goal" else 0,
        available=np.array(True) if bumps else free[:, :, 0],
        labels=tuple(f"{row},{column}" for row, column in cells.tolist()),
        cells=cells.astype(np.int32),
        shape=(board.letters.shape[0], board.letters.shape[1]),
        places=_layout(board, cells, successors, marks),
    )


def _check_options(task: Any, bumps: Any, episodes_per_goal: Any, rewards: Any) -> None:
    if not is_among(task, GRID_TASKS):
        raise unknown("task", task, GRID_TASKS)
    check_flag("grid: bumps", bumps)
    check_whole("grid: episodes_per_goal", episodes_per_goal, 1, 2**62)
    check_rewards("grid", rewards)


def _tables(board: Board) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]:
    """Cells [S, 2], states of the cells with a border, successors [S, 4, 1] and which of them are moves [S, 4, 1]."""
    cells = np.argwhere(board.letters != "#")
    S = len(cells)
    states = np.full((board.letters.shape[0] + 2, board.letters.shape[1] + 2), -1)  # a border: all have neighbours
    states[tuple(cells.T + 1)] = np.arange(S)
    free = board.passes[tuple(cells.T)][:, :, None]
    successors = np.stack([states[tuple((cells + 1 + move).T)] for move in MOVES], axis=1)[:, :, None]
    successors = np.where(free, successors, np.arange(S)[:, None, None])
    return cells, states, successors, free


def _layout(board: Board, cells: NDArray[np.int64], successors: NDArray[Any], marks: tuple[str, ...]) -> Layout:
    if board.has_edges:
        return cells_layout("square", cells[:, ::-1], moves(successors, np.ones_like(successors)), marks)
    return Layout(
        cells[:, ::-1].astype(np.float64), "square", letters=marks
    )  # walls are cells: nothing stands between the others


def _rewards(name: str, board: Board, task: str, rewards: Mapping[str, float] | None) -> dict[str, float]:
    """What every end of the map pays, in task "trials"."""
    ends = [letter for letter in ENDS if letter in board.letters]
    known = f"the map has {', '.join(ends) or 'no ends a-h'}"
    if task != "trials":
        if rewards is not None:
            raise ValueError(f'{name}: rewards are for task "trials", not "{task}"')
        return {}
    if not rewards:
        raise ValueError(f'{name}: task "trials" needs the rewards of its ends, such as {{"a": 1}}; {known}')
    for end in rewards:
        if end not in ends:
            raise ValueError(f'{name}: rewards name an end "{told(end)}", but {known}')
    return {end: float(rewards.get(end, 0.0)) for end in ends}


def _starts(
    name: str, letters: NDArray[np.str_], goal_states: NDArray[np.int64], ends: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Where episodes begin [S]: at S, else anywhere beside the goals and ends."""
    begins: NDArray[np.bool_] = letters == "S"
    if not begins.any():
        begins = ~ends
        begins[goal_states] = False
        if not begins.any():
            raise ValueError(f"{name}: no cell to start from beside the goals")
    return begins


def _check_way(
    name: str,
    successors: NDArray[Any],
    ends: NDArray[np.bool_],
    begins: NDArray[np.bool_],
    cells: NDArray[np.int64],
    what: str,
) -> None:
    """Refuse a map where some start does not lead to any of the ends."""
    back = np.tile(np.arange(len(cells), dtype=np.int32)[:, None], (1, 4))  # from where each action gets here
    s, a = np.nonzero(successors[:, :, 0] != np.arange(len(cells))[:, None])
    back[successors[s, a, 0], a] = s
    lost = begins & ~reachable(back[:, :, None], ends)
    if lost.any():
        raise ValueError(f"{name}: {what} cannot be reached from {at(cells[lost][0])}")


def _pay(
    task: str,
    successors: NDArray[Any],
    goal_states: NDArray[np.int64],
    ends: NDArray[np.bool_],
    pays: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Rewards [G, S, 4, 1] and terminal states [G, S]."""
    S = len(successors)
    if task == "explore":
        return np.zeros((1, S, 4, 1)), np.zeros((1, S), dtype=np.bool_)
    if task == "trials":
        return np.where(ends[:, None, None], 0.0, pays[successors])[None], ends[None]
    reward = np.where(successors == goal_states[:, None, None, None], 0.0, -1.0)
    return reward, np.arange(S) == goal_states[:, None]


def ignored_goals(mdp: MDP) -> str:
    """The letters of goals and ends in the map of an MDP that its task makes nothing of."""
    used = np.flatnonzero(mdp.terminal.any(axis=0))
    letters = {letter for s, letter in enumerate(mdp.layout.letters) if s not in used} - {"", "S"}
    return " ".join(sorted(letters, key=(GOALS + ENDS).index))


def write_map(mdp: MDP, notation: Literal["cells", "edges"] | None = None) -> tuple[str, dict[str, Any]]:
    """The map of a grid MDP as text, and the options with which `grid` gives the same MDP again.

    notation: "cells", or "edges" for walls between cells; by default the first unless something stands between cells.
    An MDP whose tables are not those of a map is refused.

    mdp: a grid world. Returns (text, options). Raises ValueError where it is none.

    >>> text, options = spie.write_map(spie.grid("S.#G\\n....", task="goal"))
    >>> print(text, options["task"])
    S.#G
    .... goal
    """
    if mdp.cells is None or mdp.shape is None:
        raise ValueError(f"{mdp.name}: no grid, so no map; it has no cells")
    if notation not in (None, "cells", "edges"):
        raise unknown("notation", notation, ("cells", "edges"))
    letters = np.full(mdp.shape, "#")
    options, marks = _marks(mdp)
    letters[tuple(mdp.cells.T)] = marks
    passes = np.zeros((*mdp.shape, 4), dtype=np.bool_)
    if mdp.n_actions == 4 and mdp.n_successors == 1:
        passes[tuple(mdp.cells.T)] = mdp.next[:, :, 0] != np.arange(mdp.n_states)[:, None]
    board = Board(letters, passes)
    if notation == "cells" and board.has_edges:
        raise ValueError(f'{mdp.name}: walls or doors stand between its cells; use notation="edges"')
    text = write_edges(board) if notation == "edges" or board.has_edges else write_cells(letters)
    try:
        same = grid(text + "\n", **options).digest == mdp.digest
    except ValueError:
        same = False
    if not same:
        raise ValueError(
            f"{mdp.name}: its moves, rewards or starts are not those of a map; maps are deterministic grids"
        )
    return text, options


def _marks(mdp: MDP) -> tuple[dict[str, Any], NDArray[np.str_]]:
    """The options of `grid`, and the letter of every state."""
    told = np.array(mdp.layout.letters or [""] * mdp.n_states)
    letters = np.full(mdp.n_states, ".")
    options: dict[str, Any] = {"bumps": bool(mdp.available.all())}
    ends = mdp.terminal[0]
    if not mdp.terminal.any():
        options["task"] = "explore"
        letters = np.where(np.isin(told, list(GOALS + ENDS)), told, ".")
    elif mdp.n_phases > 1 or (
        ends.sum() == 1 and (mdp.reward[0][(mdp.next != ends.argmax()) & (mdp.prob > 0)] == -1).all()
    ):
        options["task"] = "goal" if mdp.n_phases == 1 else "moving-goal"
        if mdp.n_phases > 1:
            options["episodes_per_goal"] = mdp.episodes_per_phase
        for letter, goal in zip(GOALS, mdp.terminal, strict=False):
            letters[goal] = letter
    else:
        entered = np.zeros(mdp.n_states)
        s, a, k = np.nonzero((mdp.prob > 0) & ends[mdp.next] & ~ends[:, None, None])
        entered[mdp.next[s, a, k]] = mdp.reward[0, s, a, k]
        if not np.isin(told[ends], list(ENDS)).all():  # letters for the ends of tables that came without
            _, number = np.unique(entered[ends], return_inverse=True)
            told = told.astype("<U1")
            told[ends] = np.array(list(ENDS))[np.minimum(number, len(ENDS) - 1)]
        letters[ends] = told[ends]
        pays = dict.fromkeys(told[ends].tolist(), 0.0)  # an end that nothing leads to pays nothing
        options["rewards"] = pays | {str(told[s]): float(entered[s]) for s in np.flatnonzero(ends & (entered != 0))}
    begins = mdp.start > 0
    if not (begins | mdp.terminal.any(axis=0)).all() or (told == "S").any():
        letters[begins] = "S"
    return options, letters


def doors(mdp: MDP) -> NDArray[np.bool_]:
    """Which states are doors [S]: free cells with walls on two opposite sides and none on the other two.

    So is every cell of a straight corridor; a dead end and a corner are none. An MDP that is no grid has no doors.
    """
    if mdp.cells is None or mdp.shape is None:
        return np.zeros(mdp.n_states, dtype=np.bool_)
    wall = np.ones((mdp.shape[0] + 2, mdp.shape[1] + 2), dtype=np.bool_)  # with a border
    wall[tuple(mdp.cells.T + 1)] = False
    sides = [wall[tuple((mdp.cells + 1 + move).T)] for move in MOVES]
    if len(mdp.layout.walls):  # walls may stand between the cells as well
        sides = [side | closed for side, closed in zip(sides, _closed_sides(mdp), strict=True)]
    up, right, down, left = sides
    return np.asarray((up == down) & (left == right) & (up != left))


def _closed_sides(mdp: MDP) -> list[NDArray[np.bool_]]:
    """Of each state, whether no move leads over its upper, right, lower and left side either way [S] each."""
    joined = np.concatenate([mdp.layout.links, mdp.layout.arrows, mdp.layout.arrows[:, ::-1]])
    here = np.concatenate([joined, joined[:, ::-1]])
    steps = np.rint(mdp.layout.positions[here[:, 1]] - mdp.layout.positions[here[:, 0]])[:, ::-1]
    closed = []
    for move in MOVES:
        side = np.ones(mdp.n_states, dtype=np.bool_)
        side[here[(steps == move).all(axis=1), 0]] = False
        closed.append(side)
    return closed


def middle(mdp: MDP) -> int:
    """The door that is nearest to the middle of a grid; where there is none, the state that is."""
    if mdp.cells is None or mdp.shape is None:
        if mdp.places is None:
            return mdp.n_states // 2
        left, right, top, bottom = mdp.layout.box
        return int(((mdp.layout.positions - [(left + right) / 2, (top + bottom) / 2]) ** 2).sum(axis=1).argmin())
    away = ((mdp.cells - (np.array(mdp.shape) - 1) / 2) ** 2).sum(axis=1)
    candidates = doors(mdp)
    return int(np.where(candidates | ~candidates.any(), away, np.inf).argmin())


def maze(rows: int, columns: int, seed: int = 0, loops: float = 0.1) -> str:
    """Random maze as an ASCII map of rows x columns characters, S in its first cell.

    Corridors join the h = (rows - 1) // 2 by w = (columns - 1) // 2 cells with odd row and column in a random tree;
    then a share `loops` of the (h - 1)(w - 1) walls left between neighbours is opened. Free cells in all:
    2hw - 1 + round(loops (h - 1)(w - 1)); maze(449, 449) has 105,324.

    seed: of the tree and of the loops. Raises ValueError for fewer than 3 rows or columns.

    >>> print(spie.maze(5, 7, seed=1).splitlines()[0])
    #######
    >>> spie.grid(spie.maze(5, 7, loops=0.0)).n_states  # 2 x 3 cells and the 5 openings of a tree
    11
    """
    check_whole("maze: rows", rows, 3)
    check_whole("maze: columns", columns, 3)
    if rows * columns > MOST_CELLS:
        raise ValueError(f"maze: {told(rows)} x {told(columns)} cells are too many; give at most {MOST_CELLS:,}")
    check_number("maze: loops", loops, "[0, 1]")
    check_whole("maze: seed", seed, 0)
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
    if not isinstance(map, str | Path):
        raise ValueError(f"a map is text, the name of one, or a file, not {type(map).__name__}")
    if str(map) in MAPS:
        return str(map), MAPS[str(map)]
    if str(map).isprintable() and os.path.isfile(map):
        if (size := os.path.getsize(map)) > 4 * MOST_CELLS:
            raise ValueError(f"{map} has {size / 1e9:,.1f} GB and is not a map; maps have at most {MOST_CELLS:,} cells")
        return Path(map).stem, Path(map).read_text(encoding="utf-8-sig", errors="replace")
    is_line = set(str(map)) <= {*LETTERS, "0"} and (not map or bool(set(str(map)) & set("#. SG")))  # no word in a-h
    if isinstance(map, str) and ("\n" in map or is_line):
        return "map", map
    raise unknown("map or file", map, MAPS)


def _goals(name: str, letters: NDArray[np.str_], task: str) -> NDArray[np.int64]:
    """Cells of the task's goals in their order [G, 2]."""
    later = [digit for digit in "123456789" if digit in letters]
    for expected, digit in zip("123456789", later, strict=False):
        if digit != expected:
            raise ValueError(f"{name}: goal {digit} without goal {expected}; number later goals 1, 2, ...")
    wanted = {"explore": [], "trials": [], "goal": ["G"], "moving-goal": ["G", *(later or ["1"])]}[task]
    for letter in wanted:
        if letter not in letters:
            raise ValueError(f'{name}: task "{task}" needs a goal "{letter}" in the map')
    return np.array([np.argwhere(letters == letter)[0] for letter in wanted], dtype=np.int64).reshape(-1, 2)


def _entry(map: str) -> Entry | None:
    """A map in a file, or the text of one, as a task."""
    is_map = "\n" in map or (map.isprintable() and os.path.isfile(map))
    return Entry(map, "table", functools.partial(grid, map)) if is_map else None


for _name in MAPS:
    TASKS["table"].add(_name, Entry(_name, "table", functools.partial(grid, _name)))
PATTERNS["table"].append(_entry)
