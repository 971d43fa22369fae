"""Where the states of an MDP lie: what every picture is drawn from, and no part of what determines a run."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Cell = Literal["square", "hexagon", "node"]
MOST_PLACED = 2000  # nodes that are given places by their links
HALF_SIDE = {"square": 0.5, "hexagon": 0.5 / 3**0.5}  # of a cell whose neighbours are 1 away

Pairs = NDArray[np.int64]


def _no_pairs() -> Pairs:
    return np.zeros((0, 2), np.int64)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the states of an MDP lie, for people: two MDPs that differ in this alone have the same digest.

    x goes to the right and y goes down, like columns and rows; neighbouring cells are 1 apart.

    Raises ValueError where shapes do not fit together.

    >>> [float(x) for x in spie.Layout(np.array([[0.0, 0.0], [1.0, 0.0]]), cell="square").box]
    [-0.5, 1.5, -0.5, 0.5]
    """

    positions: NDArray[np.float64]  # (x, y) of every state [S, 2]
    cell: Cell = "node"
    walls: NDArray[np.float64] = field(
        default_factory=lambda: np.zeros((0, 2, 2))
    )  # thin walls, each from (x, y) to (x, y) [n, 2, 2]
    arrows: Pairs = field(default_factory=_no_pairs)  # pairs of states that are passed one way only [n, 2]
    links: Pairs = field(default_factory=_no_pairs)  # pairs of nodes with moves both ways [n, 2]
    letters: tuple[str, ...] = ()  # what the map says of each state, if anything: S, G, 1, a, ...

    def __post_init__(self) -> None:
        positions = np.array(self.positions, dtype=np.float64)
        if positions.ndim != 2 or positions.shape[1] != 2:
            raise ValueError(f"positions have shape {list(positions.shape)}, not [S, 2]: an (x, y) for every state")
        if not np.isfinite(positions).all():
            s = int(np.argmin(np.isfinite(positions).all(axis=1)))
            raise ValueError(f"the position of state {s} is {positions[s].tolist()}, which is no place")
        if self.letters and len(self.letters) != len(positions):
            raise ValueError(f"{len(self.letters)} letters for {len(positions)} states")
        for name, array in {
            "positions": positions,
            "walls": np.array(self.walls, np.float64),
            "arrows": np.array(self.arrows, np.int64),
            "links": np.array(self.links, np.int64),
        }.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom of the whole, half a cell around the outermost states."""
        (left, top), (right, bottom) = self.positions.min(axis=0), self.positions.max(axis=0)
        aside, above = (0.5, 1 / 3**0.5) if self.cell == "hexagon" else (0.5, 0.5)
        return left - aside, right + aside, top - above, bottom + above


def moves(successors: NDArray[Any], prob: NDArray[Any]) -> Pairs:
    """The pairs of different states (s, s') with a move from the one to the other, each once [n, 2]."""
    s, a, k = np.nonzero(prob)
    s_next = successors[s, a, k].astype(np.int64)
    keys = np.unique(s[s != s_next] * len(successors) + s_next[s != s_next])
    return np.stack(np.divmod(keys, len(successors)), axis=1)


def both_ways(pairs: Pairs, n: int) -> tuple[Pairs, Pairs]:
    """Pairs with moves both ways, each once, and those that are passed one way only."""
    there, back = pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]
    mutual = np.isin(there, back)
    return pairs[mutual & (pairs[:, 0] < pairs[:, 1])], pairs[~mutual]


def cells_layout(cell: Cell, positions: NDArray[Any], pairs: Pairs, letters: tuple[str, ...] = ()) -> Layout:
    """The layout of a board: thin walls and one-way doors between neighbouring cells are found from its moves.

    Where a move goes farther than to a neighbour, nothing is known of walls and none is drawn.
    """
    positions, n = np.asarray(positions, np.float64), len(positions)
    steps = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    if not (np.abs(steps - 1) < 1e-6).all():
        return Layout(positions, cell, letters=letters)
    mutual, one_way = both_ways(pairs, n)
    beside = _neighbours(cell, positions)
    joined = np.concatenate([mutual, np.sort(one_way, axis=1)])
    closed = beside[~np.isin(beside[:, 0] * n + beside[:, 1], joined[:, 0] * n + joined[:, 1])]
    walls = _between(cell, positions[closed[:, 0]], positions[closed[:, 1]])
    if cell == "hexagon":
        walls = np.concatenate([walls, _outline(positions)])
    return Layout(positions, cell, walls, one_way, mutual, letters)


def _directions(cell: Cell) -> NDArray[np.float64]:
    angles = np.arange(6) * np.pi / 3 if cell == "hexagon" else np.arange(4) * np.pi / 2
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _beside(positions: NDArray[np.float64], direction: NDArray[np.float64]) -> NDArray[np.int64]:
    """The state whose place is one step in a direction from each state [S], -1 where there is none."""

    def keys(points: NDArray[np.float64]) -> NDArray[np.int64]:
        # Multiples of 1/2 and of the height of a row of hexagons, each as a whole number, whatever was rounded.
        whole = np.rint((points - positions.min(axis=0)) * [8, 8]).astype(np.int64) + 16
        return np.asarray(whole[:, 0] * (1 << 32) + whole[:, 1])

    own = keys(positions)
    order = np.argsort(own)
    wanted = keys(positions + direction)
    found = order[np.minimum(np.searchsorted(own, wanted, sorter=order), len(own) - 1)]
    return np.where(own[found] == wanted, found, -1)


def _neighbours(cell: Cell, positions: NDArray[np.float64]) -> Pairs:
    """Pairs of cells that share a side, the smaller state first [n, 2]."""
    found = []
    for direction in _directions(cell):
        other = _beside(positions, direction)
        s = np.flatnonzero(other >= 0)
        found.append(np.stack([s, other[s]], axis=1))
    pairs = np.concatenate(found)
    return pairs[pairs[:, 0] < pairs[:, 1]]


def _between(cell: Cell, here: NDArray[np.float64], there: NDArray[np.float64]) -> NDArray[np.float64]:
    """The side that two neighbouring cells share, [n, 2, 2]."""
    along = (there - here)[:, ::-1] * [-1, 1] * HALF_SIDE[cell]
    middle = (here + there) / 2
    return np.stack([middle - along, middle + along], axis=1)


def _outline(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sides of hexagons that no other one shares."""
    sides = []
    for direction in _directions("hexagon"):
        edge = positions[_beside(positions, direction) < 0]
        sides.append(_between("hexagon", edge, edge + direction))
    return np.concatenate(sides)


def nodes_layout(pairs: Pairs, n: int, positions: NDArray[Any] | None = None, letters: tuple[str, ...] = ()) -> Layout:
    """The layout of a graph: where its nodes are given no places, by how many moves they are apart."""
    mutual, one_way = both_ways(pairs, n)
    if positions is None:
        positions = placed_by_links(pairs, n)
    return Layout(positions, "node", arrows=one_way, links=mutual, letters=letters)


def placed_by_links(pairs: Pairs, n: int) -> NDArray[np.float64]:
    """Places [n, 2] for the nodes of a graph, such that distances follow the number of moves between them.

    The stress, the sum over pairs of (distance / moves - 1)^2, is lowered step by step (de Leeuw's majorisation) from
    the plane that classical scaling gives; the same graph always gets the same places.
    """
    if n > MOST_PLACED:
        raise ValueError(
            f"{n:,} nodes are too many to be placed by their links (at most {MOST_PLACED:,}); give them positions"
        )
    if n == 1:
        return np.zeros((1, 2))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    moves_apart = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    finite = np.isfinite(moves_apart)
    moves_apart[~finite] = moves_apart[finite].max() + 1  # parts that nothing joins lie side by side
    centred = -0.5 * moves_apart**2
    centred -= centred.mean(axis=0)
    centred -= centred.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(centred)
    start = np.random.default_rng(0).normal(0, 0.01, (n, 2))  # nodes that classical scaling lays upon each other part
    places = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0.01)) + start
    off_diagonal = moves_apart + np.eye(n)
    weights = off_diagonal**-2.0
    np.fill_diagonal(weights, 0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    solve = np.linalg.pinv(laplacian)
    for _ in range(200 if n <= 300 else 40):
        apart = np.linalg.norm(places[:, None] - places, axis=2)
        pull = -weights * moves_apart / np.maximum(apart, 1e-9)
        np.fill_diagonal(pull, 0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = solve @ (pull @ places)
    return _upright(places)


def _upright(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turned so that the longest extent lies across, the first node to the left."""
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    places = places @ axes.T
    signs = np.where(places[0] > 0, -1.0, 1.0)
    return np.asarray(places * signs)
