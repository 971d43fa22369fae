"""Graphs as MDPs: an action goes to a neighbour. From NetworkX, edge lists, CSV files and adjacency matrices."""

import contextlib
import csv
import functools
import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.errors import as_array, check_flag, check_rewards, check_whole, is_name, is_row, told
from spie.tasks.layout import Layout, both_ways, cells_layout, moves, nodes_layout
from spie.tasks.mdp import MDP, reachable
from spie.tasks.registry import PATTERNS, Entry, register_task

MOST_ENTRIES = 10**8  # nodes x actions: some 4 GB of tables
PLACED_AT_ONCE = 100  # nodes; larger graphs find their places when they are drawn
Node = Hashable


@register_task("graph")
def graph(
    edges: Any = None,
    *,
    directed: bool | None = None,
    start: Any = None,
    rewards: Mapping[Any, float] | None = None,
    costs: bool = False,
    positions: Mapping[Any, Sequence[float]] | NDArray[Any] | None = None,
    name: str = "graph",
) -> MDP:
    """Graph as an MDP: action k goes to the k-th neighbour of a node, in the order in which nodes are named.

    edges: a NetworkX graph; pairs (node, node) or triples (node, node, weight); the path of a CSV file with such rows;
    an adjacency matrix [S, S], dense or SciPy sparse (any square array is one). A node's label is its name as text.
    directed: whether edges are passed one way only; by default what a NetworkX graph or a matrix says, else no.
    start: a node, or several that are equally likely; by default any that is no end.
    rewards: the nodes where a trial ends, and what entering them pays; without, nothing ends.
    costs: whether a step along an edge pays minus its weight.
    positions: (x, y) of the nodes, y going down, by name or [S, 2]; by default close where few moves apart.

    name: of the MDP. Raises ValueError for loops, edges given twice, parts out of reach, weights that are no numbers.

    >>> ring = spie.graph([("a", "b"), ("b", "c"), ("c", "a")], start="a")
    >>> ring.n_states, ring.n_actions, ring.labels
    (3, 2, ('a', 'b', 'c'))
    """
    if directed is not None:
        check_flag(f"{name}: directed", directed)
    check_flag(f"{name}: costs", costs)
    nodes, pairs, weights, one_way, given = _read(name, edges, directed)
    index = {node: i for i, node in enumerate(nodes)}
    if len(index) < len(nodes) or not nodes:
        raise ValueError(f"{name}: no edges, so no graph")
    labels = tuple(map(str, nodes))
    if len(set(labels)) < len(labels):
        ((twice, _),) = Counter(labels).most_common(1)
        raise ValueError(f'{name}: two nodes are called "{twice}", one as text; call them all by text or all by number')
    weights = _checked(name, nodes, pairs, weights, one_way)
    if not one_way:
        pairs, weights = np.concatenate([pairs, pairs[:, ::-1]]), np.tile(weights, 2)
    places = given if positions is None else _positions(name, index, positions)
    placed = places is not None or len(nodes) <= PLACED_AT_ONCE
    find = functools.partial(_node, name, index)
    return graph_mdp(
        name, labels, pairs,
        cost=weights if costs else np.zeros(len(pairs)),
        start=None if start is None else [find(node) for node in _several(start, index)],
        rewards=_ends(name, rewards, find),
        layout=nodes_layout(pairs, len(nodes), places) if placed else None,
    )  # fmt: skip


def graph_mdp(
    name: str,
    labels: tuple[str, ...],
    pairs: NDArray[np.int64],
    *,
    cost: NDArray[np.float64],
    start: Sequence[int] | None,
    rewards: Mapping[int, float],
    layout: Layout | None,
) -> MDP:
    """The MDP of directed edges [n, 2]: neighbours of a node in rising order are its actions."""
    S = len(labels)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    pairs, cost = pairs[order], cost[order]
    degree = np.bincount(pairs[:, 0], minlength=S)
    A = int(degree.max())
    if S * A > MOST_ENTRIES:
        raise ValueError(
            f"{name}: {S:,} nodes with up to {A:,} neighbours need {40e-9 * S * A:,.0f} GB of tables; "
            "an MDP holds an action for each neighbour, so split such a hub"
        )
    ends = np.isin(np.arange(S), list(rewards))
    for s in np.flatnonzero((degree == 0) & ~ends)[:1]:
        raise ValueError(f'{name}: no edge leads on from node "{labels[s]}"; add one, or make it an end with rewards')
    successors = np.tile(np.arange(S)[:, None], (1, A))
    column = np.arange(len(pairs)) - np.repeat(np.cumsum(degree) - degree, degree)
    successors[pairs[:, 0], column] = pairs[:, 1]
    available = np.arange(A) < np.maximum(degree, 1)[:, None]  # an end that leads nowhere stays where it is
    pays = np.zeros(S)
    for end, pay in rewards.items():
        pays[end] = pay
    reward = np.where(available & ~ends[:, None], pays[successors], 0.0)
    reward[pairs[:, 0], column] -= np.where(ends[pairs[:, 0]], 0.0, cost)
    begins = ~ends if start is None else np.isin(np.arange(S), list(start))
    mdp = MDP(
        name, successors[:, :, None].astype(np.int32), available[:, :, None].astype(np.float64), reward[:, :, None],
        begins / max(1, begins.sum()), ends, available=available, labels=labels, places=layout,
    )  # fmt: skip
    _check_reach(mdp, begins, ends)
    return mdp


def _check_reach(mdp: MDP, begins: NDArray[np.bool_], ends: NDArray[np.bool_]) -> None:
    """Refuse nodes that no start leads to, and starts that lead to no end."""
    seen = reachable(mdp.next, begins)
    if begins.all() or (begins | ends).all():  # a start anywhere: then the graph must hang together
        pairs = moves(mdp.next, mdp.prob)
        seen = _joined(pairs, mdp.n_states)
    if not seen.all():
        lost = mdp.labels[int(np.argmin(seen))]
        origin = mdp.labels[int(np.argmax(begins & seen))]
        raise ValueError(
            f'{mdp.name}: node "{lost}" cannot be reached from "{origin}" ({int((~seen).sum()):,} of '
            f"{mdp.n_states:,} nodes cannot); leave that part out, or join it"
        )
    if ends.any():
        pairs = moves(mdp.next, mdp.prob)
        lost_starts = begins & ~_leading_to(pairs, ends)
        if lost_starts.any():
            raise ValueError(f'{mdp.name}: no end can be reached from node "{mdp.labels[int(np.argmax(lost_starts))]}"')


def _joined(pairs: NDArray[np.int64], S: int) -> NDArray[np.bool_]:
    """The nodes that hang together with node 0, whichever way edges point."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(S, S))
    _, part = connected_components(links.tocsr(), directed=False)
    return np.asarray(part == part[0])


def _leading_to(pairs: NDArray[np.int64], ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The nodes from which some end can be reached."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    S = len(ends)  # also the number of a node before all ends, from which edges are walked backwards
    last = np.flatnonzero(ends)
    here, there = np.append(pairs[:, 1], np.full(len(last), S)), np.append(pairs[:, 0], last)
    links = coo_array((np.ones(len(here)), (here, there)), shape=(S + 1, S + 1))
    found = np.zeros(S + 1, np.bool_)
    found[breadth_first_order(links.tocsr(), S, return_predecessors=False)] = True
    return found[:S]


# What a graph is given as

Read = tuple[list[Node], NDArray[np.int64], NDArray[np.float64], bool, NDArray[np.float64] | None]


def _read(name: str, edges: Any, directed: bool | None) -> Read:
    """Nodes in order, edges as pairs of their numbers, weights, whether edges have directions, and positions if any."""
    if edges is None:
        raise ValueError(f"{name}: give edges: pairs of nodes, a CSV file, a matrix or a NetworkX graph")
    if isinstance(edges, str | Path):
        return _from_list(name, _csv_rows(edges), bool(directed), "row")
    kind = type(edges)
    if kind.__module__.partition(".")[0] == "networkx":
        return _from_networkx(name, edges, directed)
    if kind.__module__.partition(".")[0] == "scipy":
        edges = edges.tocoo()
        rows, columns = edges.coords
        return _from_matrix(name, edges.shape, rows, columns, edges.data.astype(np.float64), directed)
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[0] == edges.shape[1]:
        edges = as_array(f"{name}: an adjacency matrix", edges)
        rows, columns = np.nonzero(edges)
        return _from_matrix(name, edges.shape, rows, columns, edges[rows, columns].astype(np.float64), directed)
    if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[1] not in (2, 3):
        raise ValueError(f"{name}: a matrix of shape {list(edges.shape)} is neither square nor a list of edges [n, 2]")
    if not is_row(edges):
        raise ValueError(
            f"{name}: {told(edges)} is no graph; give pairs of nodes, a CSV file, a matrix or a NetworkX graph"
        )
    return _from_list(name, list(edges), bool(directed), "edge")


def _from_list(name: str, rows: Iterable[Any], directed: bool, word: str) -> Read:
    index: dict[Node, int] = {}
    pairs, weights = [], []
    for number, row in enumerate(rows, start=1):
        row = tuple(row) if is_row(row) else (row,)
        if len(row) not in (2, 3):
            raise ValueError(
                f"{name}: {word} {number} has {len(row)} entries; give two nodes, and a weight if you like"
            )
        try:
            pairs.append([index.setdefault(node, len(index)) for node in row[:2]])
        except TypeError:  # a list, for example, is no key
            raise ValueError(f"{name}: {word} {number} has nodes that are no names: {told(row)}") from None
        try:
            weights.append(float(row[2]) if len(row) == 3 else 1.0)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f'{name}: the weight of {word} {number} is "{told(row[2])}", which is no number') from None
    return list(index), np.array(pairs, np.int64).reshape(-1, 2), np.array(weights), directed, None


def _from_matrix(
    name: str,
    shape: tuple[int, ...],
    rows: NDArray[Any],
    columns: NDArray[Any],
    weights: NDArray[Any],
    directed: bool | None,
) -> Read:
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{name}: an adjacency matrix is square, not {list(shape)}")
    pairs = np.stack([rows, columns], axis=1).astype(np.int64)
    _, one_way = both_ways(pairs[rows != columns], shape[0])
    if directed is None:
        directed = len(one_way) > 0
    if not directed:
        if len(one_way):
            raise ValueError(
                f"{name}: the matrix joins {one_way[0][0]} to {one_way[0][1]} one way only; say directed=True"
            )
        upper = rows <= columns
        pairs, weights = pairs[upper], weights[upper]
    return list(range(shape[0])), pairs, weights, directed, None


def _from_networkx(name: str, G: Any, directed: bool | None) -> Read:
    is_directed = bool(G.is_directed())
    if directed is not None and directed != is_directed:
        raise ValueError(f"{name}: this NetworkX graph is {'' if is_directed else 'not '}directed; convert it there")
    nodes = list(G.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    found = [(index[a], index[b], 1.0 if w is None else w) for a, b, w in G.edges(data="weight")]
    pairs = np.array([edge[:2] for edge in found], np.int64).reshape(-1, 2)
    weights = np.array([edge[2] for edge in found], np.float64)
    given = [G.nodes[node].get("pos") for node in nodes]
    positions = None if any(place is None for place in given) else np.array(given, np.float64)
    return nodes, pairs, weights, is_directed, positions


def _csv_rows(path: str | Path) -> list[list[str]]:
    """Rows of a CSV file, separated by commas, semicolons or tabs; a first row of headings is left out."""
    if not str(path).isprintable() or not os.path.isfile(path):
        raise ValueError(f'graph: no file "{told(str(path))}"')
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"graph: {path} is not a text file; give a CSV file in UTF-8, two nodes per row") from None
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    mark = next((mark for mark in "\t;" if lines and mark in lines[0]), ",")
    rows = [[entry.strip() for entry in row] for row in csv.reader(lines, delimiter=mark)]
    headings = {"source", "target", "from", "to", "node1", "node2", "weight"}
    return rows[1:] if rows and set(map(str.lower, rows[0])) <= headings else rows


def _checked(
    name: str, nodes: list[Node], pairs: NDArray[np.int64], weights: NDArray[np.float64], directed: bool
) -> NDArray[np.float64]:
    """The weights, where no edge is a loop, double or without a sensible weight."""

    def words(i: int) -> str:
        a, b = pairs[i]
        return f'"{nodes[a]}" to "{nodes[b]}"'

    for i in np.flatnonzero(pairs[:, 0] == pairs[:, 1])[:1]:
        raise ValueError(f'{name}: edge {i + 1} joins node "{nodes[pairs[i, 0]]}" to itself; leave such loops out')
    ends = pairs if directed else np.sort(pairs, axis=1)
    keys = ends[:, 0] * len(nodes) + ends[:, 1]
    order = np.argsort(keys, kind="stable")
    for i in np.sort(order[1:][np.diff(keys[order]) == 0])[:1]:
        other = int(np.argmax(keys == keys[i]))
        hint = "" if directed else "; edges go both ways unless directed=True"
        raise ValueError(f"{name}: edge {i + 1}, {words(i)}, is edge {other + 1} once more{hint}")
    for i in np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[:1]:
        raise ValueError(f"{name}: edge {i + 1}, {words(i)}, has weight {weights[i]:g}; give finite numbers from 0 on")
    return weights


def _node(name: str, index: Mapping[Any, int], node: Any) -> int:
    """The number of a node, by its name or by its name as text."""
    with contextlib.suppress(TypeError):  # a list, for example, is no key
        if node in index:
            return index[node]
    for known, i in index.items():
        if str(known) == str(node):
            return i
    raise ValueError(f'{name}: no node "{told(node)}"; there are {len(index):,}, such as "{next(iter(index))}"')


def _ends(name: str, rewards: Mapping[Any, float] | None, find: Callable[[Any], int]) -> dict[int, float]:
    """What entering a node pays, by its number."""
    check_rewards(name, rewards, "node")
    return {find(node): pays for node, pays in (rewards or {}).items()}


def _several(start: Any, index: Mapping[Any, int]) -> Iterable[Any]:
    if not is_row(start):
        return [start]
    with contextlib.suppress(TypeError):  # a list, for example, is no key
        if start in index:
            return [start]
    return list(start)


def _positions(name: str, index: Mapping[Any, int], positions: Any) -> NDArray[np.float64]:
    if isinstance(positions, Mapping):
        for node in index:
            if node not in positions:
                raise ValueError(f'{name}: positions leave out node "{node}"')
        positions = [positions[node] for node in index]
    places: NDArray[np.float64] = as_array(f"{name}: positions", positions, np.float64)
    if places.shape != (len(index), 2):
        raise ValueError(f"{name}: positions must have shape {[len(index), 2]}, not {list(places.shape)}")
    return places


def _entry(name: str) -> Entry | None:
    """The CSV file of a graph as a task."""
    is_graph = name.lower().endswith((".csv", ".tsv")) and name.isprintable() and os.path.isfile(name)
    make: Callable[..., MDP] = functools.partial(graph, name, name=Path(name).stem)
    return Entry(name, "table", make) if is_graph else None


PATTERNS["table"].insert(0, _entry)  # before any file is taken for a map


# Graphs that laboratories have


@register_task("tree")
def tree(depth: int = 6, *, home: bool = False, start: Any = None, rewards: Mapping[Any, float] | None = None) -> MDP:
    """Binary tree of corridors, laid out as an H of Hs: the labyrinth of 127 nodes at depth 6.

    Node 1 is the first junction, 2k and 2k + 1 follow junction k, the last 2^depth nodes are dead ends. With `home`,
    node 0 lies before node 1. Starts at the first of them unless told; `rewards` of nodes end a trial, as in `graph`.

    depth: 1 to 14. start: a node. Raises ValueError beyond, or for nodes that are not there.

    >>> spie.tree(6).n_states, spie.tree(6, home=True).n_states
    (127, 128)
    """
    check_whole("tree: depth", depth, 1, 14)  # at which there are 32,767 nodes
    check_flag("tree: home", home)
    n = 2 ** (depth + 1) - 1
    children = np.arange(2, n + 1)
    edges = np.stack([children // 2, children], axis=1)
    places = np.zeros((n + 1, 2))
    for level in range(1, depth + 1):
        of = np.arange(2**level, 2 ** (level + 1))
        step = 2.0 ** ((depth - level) // 2) / 2
        places[of] = places[of // 2]
        places[of, (level + 1) % 2] += np.where(of % 2 == 0, -step, step)
    places[0] = places[1] + [0, 0.75] if depth > 1 else [0, -0.75]
    first = 0 if home else 1
    if home:
        edges = np.concatenate([[[0, 1]], edges])
    nodes = range(first, n + 1)
    edges = np.concatenate([edges, edges[:, ::-1]]) - first
    index = {node: node - first for node in nodes}
    find = functools.partial(_node, "tree", index)
    return graph_mdp(
        "tree", tuple(map(str, nodes)), edges, cost=np.zeros(len(edges)),
        start=[find(node) for node in _several(first if start is None else start, index)],
        rewards=_ends("tree", rewards, find),
        layout=nodes_layout(edges, len(nodes), places[first:]),
    )  # fmt: skip


@register_task("hexgrid")
def hexgrid(
    rows: int = 7,
    columns: int = 8,
    *,
    holes: Iterable[str] = (),
    bumps: bool = False,
    start: Any = None,
    rewards: Mapping[str, float] | None = None,
) -> MDP:
    """Board of hexagons, every other row shifted by half a cell; actions east, north-east, north-west, west, ...

    Cells are labelled "row,column"; those in `holes` are left out. A move over the border stays in place with bumps,
    else it is not available. `start` and `rewards` as in `graph`; starts anywhere unless told.

    rows, columns: 1 to 1,000. Raises ValueError for cells that are not there, or where holes cut the board in parts.

    >>> board = spie.hexgrid(2, 3, holes=["0,1"])
    >>> board.n_states, board.n_actions
    (5, 6)
    """
    check_whole("hexgrid: rows", rows, 1, 1000)
    check_whole("hexgrid: columns", columns, 1, 1000)
    check_flag("hexgrid: bumps", bumps)
    if rows * columns < 2:
        raise ValueError(f"hexgrid: {rows} x {columns} is not a board; give at least two cells")
    if not is_row(holes) or not all(map(is_name, holes := list(holes))):
        raise ValueError(f'hexgrid: holes must be cells, such as ["0,1"], not {told(holes)}')
    left_out = {hole.replace(" ", "") for hole in holes}
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    for hole in left_out - {f"{r},{c}" for r, c in cells}:
        raise ValueError(f'hexgrid: no cell "{told(hole)}" to leave out; cells are row,column, such as 0,0')
    cells = [(r, c) for r, c in cells if f"{r},{c}" not in left_out]
    index = {cell: s for s, cell in enumerate(cells)}
    labels = tuple(f"{r},{c}" for r, c in cells)
    successors = np.array([[index.get(there, -1) for there in _hex_neighbours(r, c)] for r, c in cells])
    S, free = len(cells), successors >= 0
    for s in np.flatnonzero(~free.any(axis=1))[:1]:
        raise ValueError(f"hexgrid: nothing to do at {labels[s]}, between holes; leave it out, too")
    successors = np.where(free, successors, np.arange(S)[:, None])
    named = dict(zip(labels, range(S), strict=True))
    find = functools.partial(_node, "hexgrid", named)
    pays, ends = np.zeros(S), np.zeros(S, dtype=np.bool_)
    for s, pay in _ends("hexgrid", rewards, find).items():
        pays[s], ends[s] = pay, True
    begins = ~ends if start is None else np.isin(np.arange(S), [find(label) for label in _several(start, named)])
    available = np.ones_like(free) if bumps else free
    reward = np.where(available & ~ends[:, None], pays[successors], 0.0)
    places = np.array([(c + 0.5 * (r % 2), r * 3**0.5 / 2) for r, c in cells])
    pairs = moves(successors[:, :, None], np.ones((S, 6, 1)))
    mdp = MDP(
        "hexgrid", successors[:, :, None].astype(np.int32), available[:, :, None].astype(np.float64),
        reward[:, :, None], begins / begins.sum(), ends, available=available, labels=labels,
        places=cells_layout("hexagon", places, pairs),
    )  # fmt: skip
    _check_reach(mdp, begins, ends)
    return mdp


def _hex_neighbours(r: int, c: int) -> list[tuple[int, int]]:
    """East, north-east, north-west, west, south-west and south-east of a cell."""
    right = c + r % 2
    return [(r, c + 1), (r - 1, right), (r - 1, right - 1), (r, c - 1), (r + 1, right - 1), (r + 1, right)]
