"""Boards as text, in two notations that are told apart by their look, read and written.

S..#    cells: a character each; a wall is as thick       +---+---+---+    cells and edges: walls, and doors that are
..#.    as a cell                                         | S >   | a |    passed one way only (> < ^ v), stand between
...G                                                      +   +-v-+   +    the cells; corners are +
                                                          |       | b |
                                                          +---+---+---+
"""

import textwrap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spie.errors import told

GOALS = "G123456789"
ENDS = "abcdefgh"
LETTERS = "#. S" + GOALS + ENDS
KNOWN = "known: # wall, . or space free, S start, G goal, 1-9 later goals, a-h ends of a trial"
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])  # up, right, down, left
UP, RIGHT, DOWN, LEFT = range(4)
WIDTH = 4  # characters from corner to corner, as boards are written; any other is read


@dataclass(frozen=True, eq=False)
class Board:
    """A map that was read: what stands in each cell, and where one can go from it."""

    letters: NDArray[np.str_]  # [rows, columns]; "#" is no cell
    passes: NDArray[np.bool_]  # [rows, columns, 4] whether up, right, down and left lead to the next cell

    @property
    def has_edges(self) -> bool:
        """Whether something stands between two cells, which the notation of cells alone cannot say."""
        return not np.array_equal(self.passes, _open(self.letters))


def _open(letters: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Where one can go if nothing stands between the cells."""
    free = np.pad(letters != "#", 1)
    rows, columns = letters.shape
    there = [free[1 + r : 1 + r + rows, 1 + c : 1 + c + columns] for r, c in MOVES.tolist()]
    return np.asarray(np.stack(there, axis=2) & (letters != "#")[:, :, None])


def has_edges_look(text: str) -> bool:
    """Whether a text is in the notation of cells and edges: it begins with a corner."""
    return text.lstrip().startswith("+")


def read(name: str, text: str) -> Board:
    """The board of a text, checked; what is wrong is said with its place."""
    text = text.replace("\r\n", "\n")
    board = _read_edges(name, text) if has_edges_look(text) else _read_cells(name, text)
    if (board.letters == "#").all():
        raise ValueError(f"{name}: no free cell, the map is all walls")
    for letter in GOALS:
        if (board.letters == letter).sum() > 1:
            first, second = np.argwhere(board.letters == letter)[:2]
            raise ValueError(f'{name}: two "{letter}", at {at(first)} and {at(second)}; one at most')
    return board


def at(cell: NDArray[np.int64]) -> str:
    return f"row {cell[0]}, column {cell[1]}"


def _read_cells(name: str, text: str) -> Board:
    lines = text.removeprefix("\n").removesuffix("\n").split("\n")
    if not lines[0]:
        raise ValueError(f"{name}: the map is empty" if len(lines) == 1 else f"{name}: line 1 is empty")
    for number, line in enumerate(lines, start=1):
        if len(line) != len(lines[0]):
            raise ValueError(f"{name}: line {number} has {len(line)} characters, line 1 has {len(lines[0])}")
        rest = line.lstrip(LETTERS)  # begins with the first character that does not belong
        if rest:
            column = len(line) - len(rest) + 1
            raise ValueError(f'{name}: unknown character "{told(rest[0])}" in line {number}, column {column}; {KNOWN}')
    letters = np.array([list(line) for line in lines])
    return Board(letters, _open(letters))


def _read_edges(name: str, text: str) -> Board:
    lines = [line.rstrip() for line in textwrap.dedent(text).strip("\n").rstrip().split("\n")]
    length = len(lines[0])
    width = lines[0].find("+", 1)
    if width < 2 or (length - 1) % width:
        raise ValueError(f'{name}: line 1 must be corners "+" at equal distances, as in +---+---+')
    if len(lines) % 2 == 0 or len(lines) < 3:
        raise ValueError(f"{name}: {len(lines)} lines; a board has a line of edges above and below each line of cells")
    for number, line in enumerate(lines, start=1):
        if len(line) != length:
            raise ValueError(f"{name}: line {number} has {len(line)} characters, line 1 has {length}")
    rows, columns = len(lines) // 2, (length - 1) // width
    letters = np.full((rows, columns), ".")
    for r, c in np.ndindex(rows, columns):
        letters[r, c] = _cell(name, lines, 2 * r + 1, c * width, width)
    across = np.array(
        [[_flat_edge(name, lines, 2 * r, c * width, width) for c in range(columns)] for r in range(rows + 1)]
    )
    along = np.array(
        [[_upright_edge(name, lines, 2 * r + 1, c * width) for c in range(columns + 1)] for r in range(rows)]
    )
    for r in range(rows + 1):
        for c in range(columns + 1):
            if lines[2 * r][c * width] != "+":
                found = lines[2 * r][c * width]
                raise ValueError(
                    f'{name}: "{told(found)}" in line {2 * r + 1}, column {c * width + 1}, where a corner "+" belongs'
                )
    _check_border(name, letters, across, along, width)
    free = letters != "#"
    passes = np.zeros((rows, columns, 4), dtype=np.bool_)
    passes[:, :, UP], passes[:, :, DOWN] = np.isin(across[:-1], (" ", "^")), np.isin(across[1:], (" ", "v"))
    passes[:, :, LEFT], passes[:, :, RIGHT] = np.isin(along[:, :-1], (" ", "<")), np.isin(along[:, 1:], (" ", ">"))
    return Board(letters, passes & _open(np.where(free, ".", "#")))


def _cell(name: str, lines: list[str], i: int, j: int, width: int) -> str:
    """What stands in the cell to the right of column j."""
    inside = lines[i][j + 1 : j + width].strip()
    for unknown in inside.lstrip(LETTERS)[:1]:
        column = j + 2 + lines[i][j + 1 : j + width].index(unknown)
        raise ValueError(f'{name}: unknown character "{told(unknown)}" in line {i + 1}, column {column}; {KNOWN}')
    if len(inside) > 1:
        raise ValueError(
            f'{name}: "{told(inside)}" in line {i + 1}, column {j + 2}; a cell holds one character at most'
        )
    return inside or "."


def _flat_edge(name: str, lines: list[str], i: int, j: int, width: int) -> str:
    """What stands between a cell and the one below: "-", " ", "^" or "v"."""
    edge = lines[i][j + 1 : j + width]
    kind = edge.strip(" -")
    if kind in ("^", "v"):
        return kind
    where = f"line {i + 1}, columns {j + 2}-{j + width}" if width > 2 else f"line {i + 1}, column {j + 2}"
    if kind:
        raise ValueError(
            f'{name}: "{told(edge)}" in {where} is no edge; edges are - wall, space open, ^ or v a one-way door'
        )
    if len(set(edge)) > 1:
        raise ValueError(f'{name}: the wall "{edge}" in {where} does not meet its corners; fill it with -')
    return edge[0]


def _upright_edge(name: str, lines: list[str], i: int, j: int) -> str:
    """What stands between a cell and the one to its right: "|", " ", "<" or ">"."""
    edge = lines[i][j]
    if edge not in "| <>":
        raise ValueError(
            f'{name}: "{told(edge)}" in line {i + 1}, column {j + 1} is no edge; '
            "edges are | wall, space open, < or > a one-way door"
        )
    return edge


def _check_border(
    name: str, letters: NDArray[np.str_], across: NDArray[np.str_], along: NDArray[np.str_], width: int
) -> None:
    """Nothing but walls around the board."""
    for line, row in ((0, 0), (2 * len(letters), -1)):
        for c in np.flatnonzero((across[row] != "-") & (letters[row] != "#"))[:1]:
            raise ValueError(f"{name}: the border is open in line {line + 1}, column {c * width + 2}; close it with -")
    for column in (0, -1):
        for r in np.flatnonzero((along[:, column] != "|") & (letters[:, column] != "#"))[:1]:
            at_column = 1 if column == 0 else letters.shape[1] * width + 1
            raise ValueError(f"{name}: the border is open in line {2 * r + 2}, column {at_column}; close it with |")


def write_cells(letters: NDArray[np.str_]) -> str:
    """Cells alone, a character each."""
    return "\n".join(map("".join, letters))


def write_edges(board: Board) -> str:
    """Cells and edges."""
    rows, columns = board.letters.shape
    passes = board.passes
    page = np.full((2 * rows + 1, WIDTH * columns + 1), " ")
    page[::2, ::WIDTH] = "+"
    page[1::2, WIDTH // 2 :: WIDTH] = np.where(board.letters == ".", " ", board.letters)
    down, up = np.zeros((2, rows + 1, columns), dtype=np.bool_)
    down[1:], up[:-1] = passes[:, :, DOWN], passes[:, :, UP]
    right, left = np.zeros((2, rows, columns + 1), dtype=np.bool_)
    right[:, 1:], left[:, :-1] = passes[:, :, RIGHT], passes[:, :, LEFT]
    for i in range(1, WIDTH):
        page[::2, i::WIDTH] = np.where(up | down, " ", "-")
    for i in (1, WIDTH - 1):
        page[::2, i::WIDTH][up != down] = "-"
    middle = page[::2, WIDTH // 2 :: WIDTH]
    middle[up & ~down], middle[down & ~up] = "^", "v"
    page[1::2, ::WIDTH] = np.where(right & left, " ", np.where(right, ">", np.where(left, "<", "|")))
    return "\n".join(map("".join, page))
