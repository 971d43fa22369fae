"""Graphs as MDPs, the mazes of laboratories, and where their states lie."""

import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array

import spie
from spie.tasks.draw import draw
from spie.tasks.layout import Layout

PATH = [("a", "b"), ("b", "c"), ("c", "d")]


def refused(message: str) -> "pytest.RaisesExc[ValueError]":
    return pytest.raises(ValueError, match="^" + re.escape(message))


def goes(mdp: spie.MDP, label: str) -> list[str]:
    s = mdp.labels.index(label)
    return [mdp.labels[mdp.next[s, a, 0]] for a in np.flatnonzero(mdp.available[s])]


def test_an_action_goes_to_a_neighbour() -> None:
    mdp = spie.graph(PATH)
    assert mdp.labels == ("a", "b", "c", "d")
    assert [goes(mdp, node) for node in "abcd"] == [["b"], ["a", "c"], ["b", "d"], ["c"]]
    assert_array_equal(mdp.start, 0.25)
    assert not mdp.terminal.any()


def test_a_graph_is_the_same_however_it_is_given(tmp_path: Path) -> None:
    G = nx.Graph([(0, 1), (1, 2), (0, 2), (2, 3)])
    expected = spie.graph(G)
    (tmp_path / "g.csv").write_text("source,target\n0,1\n1,2\n\n0,2\n2,3\n")
    (tmp_path / "g.tsv").write_text("0\t1\n1\t2\n0\t2\n2\t3\n")
    dense = nx.to_numpy_array(G)
    given = [dense, csr_array(dense), list(G.edges), tmp_path / "g.csv", str(tmp_path / "g.tsv"), np.array(G.edges)]
    for edges in given:
        assert spie.graph(edges).digest == expected.digest
        assert spie.graph(edges).labels == expected.labels
    assert spie.task(str(tmp_path / "g.csv")).digest == expected.digest
    assert spie.task(str(tmp_path / "g.csv")).name == "g"


def test_directions_come_from_the_graph() -> None:
    ring = [(0, 1), (1, 2), (2, 0)]
    assert [goes(spie.graph(nx.DiGraph(ring)), node) for node in "012"] == [["1"], ["2"], ["0"]]
    directed = spie.graph(ring, directed=True)
    assert directed.digest == spie.graph(nx.to_numpy_array(nx.DiGraph(ring))).digest
    assert len(directed.layout.arrows) == 3
    assert len(spie.graph(ring).layout.arrows) == 0
    assert len(spie.graph(ring).layout.links) == 3


def test_rewards_end_a_trial_and_weights_are_costs_where_asked() -> None:
    weighted = [("a", "b", 2.0), ("b", "c", 0.5)]
    mdp = spie.graph(weighted, start="a", rewards={"c": 10}, costs=True)
    assert_array_equal(mdp.terminal, [[0, 0, 1]])
    assert_array_equal(mdp.start, [1, 0, 0])
    assert mdp.reward[0, 0, 0, 0] == -2
    assert mdp.reward[0, 1, :, 0].tolist() == [-2, 9.5]
    assert not spie.graph(weighted).reward.any()


def test_an_end_may_lead_nowhere() -> None:
    mdp = spie.graph([("s", "left"), ("s", "right")], directed=True, start="s", rewards={"left": 1, "right": 0})
    assert mdp.terminal.sum() == 2
    assert spie.Sarsa().seconds_per_step(mdp) > 0


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        (None, {}, "graph: give edges: pairs of nodes, a CSV file, a matrix or a NetworkX graph"),
        ([], {}, "graph: no edges, so no graph"),
        ([("a", "a")], {}, 'graph: edge 1 joins node "a" to itself; leave such loops out'),
        ([*PATH, ("b", "a")], {}, 'graph: edge 4, "b" to "a", is edge 1 once more; edges go both ways unless directed'),
        ([*PATH, ("a", "b")], {"directed": True}, 'graph: edge 4, "a" to "b", is edge 1 once more'),
        ([("a", "b", np.nan)], {}, 'graph: edge 1, "a" to "b", has weight nan; give finite numbers from 0 on'),
        ([("a", "b", -1)], {}, 'graph: edge 1, "a" to "b", has weight -1; give finite numbers from 0 on'),
        ([("a", "b", "far")], {}, 'graph: the weight of edge 1 is "far", which is no number'),
        ([("a",)], {}, "graph: edge 1 has 1 entries; give two nodes, and a weight if you like"),
        ([*PATH, ("x", "y")], {}, 'graph: node "x" cannot be reached from "a" (2 of 6 nodes cannot); leave that part'),
        (PATH, {"directed": True, "start": "b", "rewards": {"d": 1}}, 'graph: node "a" cannot be reached from "b"'),
        (PATH, {"directed": True}, 'graph: no edge leads on from node "d"; add one, or make it an end with rewards'),
        ([("a", "b"), ("b", "a"), ("a", "c")], {"directed": True, "start": "a", "rewards": {"z": 1}},
         'graph: no node "z"; there are 3, such as "a"'),
        (PATH, {"start": "z"}, 'graph: no node "z"; there are 4, such as "a"'),
        (PATH, {"rewards": {"d": np.inf}}, 'graph: the reward of node "d" is inf; give a finite number'),
        (PATH, {"positions": {"a": (0, 0)}}, 'graph: positions leave out node "b"'),
        (np.ones((2, 5)), {}, "graph: a matrix of shape [2, 5] is neither square nor a list of edges [n, 2]"),
        (np.triu(np.ones((4, 4)), 1), {"directed": False},
         "graph: the matrix joins 0 to 1 one way only; say directed=True"),
        (nx.DiGraph([(0, 1)]), {"directed": False}, "graph: this NetworkX graph is directed; convert it there"),
        ("nowhere.csv", {}, 'graph: no file "nowhere.csv"'),
        (5, {}, "graph: 5 is no graph; give pairs of nodes, a CSV file, a matrix or a NetworkX graph"),
        ([1, 2], {}, "graph: edge 1 has 1 entries; give two nodes, and a weight if you like"),
        ([("a", 1), (1, "1")], {}, 'graph: two nodes are called "1", one as text; call them all by text or all by'),
    ],
)  # fmt: skip
def test_a_bad_graph_is_one_clear_line(edges: object, options: dict[str, object], message: str) -> None:
    with refused(message) as error:
        spie.graph(edges, **options)
    assert "\n" not in str(error.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    for content in (b"\xff\xfea,b\n", b"a,b\0\n"):
        (tmp_path / "g.csv").write_bytes(content)
        with refused(f"graph: {tmp_path / 'g.csv'} is not a text file; give a CSV file in UTF-8, two nodes per row"):
            spie.graph(tmp_path / "g.csv")


def test_a_large_graph_is_an_mdp_without_a_picture_and_a_hub_is_refused() -> None:
    n = 10**5  # a ring of 10^6 nodes, built by hand once, took 3.3 s
    s = np.arange(n)
    ring = coo_array((np.ones(2 * n), (np.append(s, (s + 1) % n), np.append((s + 1) % n, s))), shape=(n, n))
    mdp = spie.graph(ring, start=0)
    assert mdp.n_states == n
    with refused("100,000 nodes are too many to be placed by their links (at most 2,000); give them positions"):
        _ = mdp.layout
    hub = coo_array((np.ones(2 * n - 2), (np.append(s[1:], 0 * s[1:]), np.append(0 * s[1:], s[1:]))), shape=(n, n))
    with refused("graph: 100,000 nodes with up to 99,999 neighbours need 400 GB of tables; an MDP holds"):
        spie.graph(hub)


def test_a_long_track_with_an_end_is_checked_in_a_moment() -> None:
    n = 10**5  # an end that is as far away: walked back node by node, and not edge list by edge list
    track = coo_array((np.ones(n - 1), (np.arange(n - 1), np.arange(1, n))), shape=(n, n))
    assert spie.graph(track, start=0, rewards={n - 1: 1.0}).terminal[0, -1]
    with refused('graph: no end can be reached from node "4"'):
        spie.graph([(0, 1), (1, 2), (1, 3), (3, 4), (4, 3)], directed=True, start=[0, 4], rewards={2: 1.0})


def test_nodes_that_are_few_moves_apart_lie_close() -> None:
    ring = spie.graph(nx.cycle_graph(12)).layout.positions
    radii = np.linalg.norm(ring - ring.mean(axis=0), axis=1)
    assert_allclose(radii, radii[0], rtol=1e-2)  # a ring is drawn as a ring
    line = spie.graph(nx.path_graph(9)).layout.positions
    assert_allclose(np.abs(np.diff(line[:, 0])), 1, atol=0.02)
    assert_allclose(np.ptp(line[:, 1]), 0, atol=0.2)


def test_positions_are_taken_as_given() -> None:
    places = {"a": (0, 0), "b": (1, 0), "c": (1, 1), "d": (5, 5)}
    assert_array_equal(spie.graph(PATH, positions=places).layout.positions, list(places.values()))
    G = nx.Graph(PATH)
    nx.set_node_attributes(G, places, "pos")
    assert_array_equal(spie.graph(G).layout.positions, list(places.values()))
    with pytest.raises(ValueError, match=re.escape("the position of state 1 is [nan, 0.0], which is no place")):
        spie.graph(PATH, positions=places | {"b": (np.nan, 0)})


def test_where_states_lie_changes_no_digest() -> None:
    places = np.arange(8.0).reshape(4, 2)
    assert spie.graph(PATH).digest == spie.graph(PATH, positions=places).digest


def test_a_layout_must_fit_its_mdp() -> None:
    two = Layout(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="pair: 2 positions for 3 states"):
        spie.MDP("pair", np.zeros((3, 1, 1), int), np.ones((3, 1, 1)), 0.0, np.eye(3)[0], places=two)


# Mazes of laboratories


def test_the_labyrinth_is_a_tree_of_127_nodes() -> None:
    mdp = spie.tree(6)
    assert mdp.n_states == 127
    assert goes(mdp, "1") == ["2", "3"]
    assert goes(mdp, "5") == ["2", "10", "11"]
    assert goes(mdp, "127") == ["63"]
    assert (mdp.available.sum(axis=1) == 1).sum() == 64
    assert len({tuple(place) for place in mdp.layout.positions.round(6).tolist()}) == 127  # no two in one place
    assert spie.tree(6, home=True).labels[0] == "0"
    assert goes(spie.tree(6, home=True), "1") == ["0", "2", "3"]


def test_no_two_corridors_of_the_labyrinth_cross() -> None:
    mdp = spie.tree(6)
    for axis in (0, 1):  # every corridor is straight, and none passes through a node that it does not join
        for a, b in mdp.layout.links:
            here, there = mdp.layout.positions[a], mdp.layout.positions[b]
            if here[axis] == there[axis]:
                low, high = sorted((here[1 - axis], there[1 - axis]))
                on_line = (mdp.layout.positions[:, axis] == here[axis]) & (
                    mdp.layout.positions[:, 1 - axis] > low + 1e-9
                )
                assert not (on_line & (mdp.layout.positions[:, 1 - axis] < high - 1e-9)).any()


def test_a_cell_of_a_hexgrid_has_six_neighbours() -> None:
    mdp = spie.hexgrid(5, 5)
    assert goes(mdp, "2,2") == ["2,3", "1,2", "1,1", "2,1", "3,1", "3,2"]
    assert goes(mdp, "1,2") == ["1,3", "0,3", "0,2", "1,1", "2,2", "2,3"]
    assert goes(mdp, "0,0") == ["0,1", "1,0"]
    links = mdp.layout.positions[mdp.layout.links]
    assert_allclose(np.linalg.norm(links[:, 0] - links[:, 1], axis=1), 1)
    # the outline: sides of all cells less those that two share
    assert len(mdp.layout.walls) == 6 * 25 - 2 * len(mdp.layout.links)
    assert spie.hexgrid(5, 5, bumps=True).available.all()
    P = spie.hexgrid(5, 5, bumps=True).transition()
    assert_array_equal(P, P.T)


def test_holes_of_a_hexgrid_are_no_states() -> None:
    mdp = spie.hexgrid(3, 3, holes=["1,1"], start="0,0", rewards={"2,2": 1})
    assert mdp.n_states == 8
    assert goes(mdp, "1,0") == ["0,1", "0,0", "2,0", "2,1"]
    assert mdp.terminal.sum() == 1


def test_a_t_maze_pays_at_the_end_of_an_arm() -> None:
    mdp = spie.t_maze(stem=3, arm=2)
    assert mdp.n_states == 5 + 3
    assert spie.write_map(mdp)[0] == "a...b\n##.##\n##.##\n##S##"
    assert mdp.reward.sum() == 1
    assert not spie.t_maze(task="explore").terminal.any()
    assert spie.t_maze(rewards={"b": 3}).reward.sum() == 3


def test_plus_maze_and_linear_track() -> None:
    assert spie.write_map(spie.plus_maze(arm=1))[0] == "#b#\na.c\n#S#"
    assert spie.write_map(spie.linear_track(5))[0] == "S...a"


@pytest.mark.parametrize("seed", range(5))
def test_a_tartarus_board_hangs_together(seed: int) -> None:
    mdp = spie.tartarus(seed=seed)
    assert mdp.n_states == 70
    assert mdp.terminal[0, mdp.labels.index("3,3")]
    assert not (mdp.next[mdp.available][:, 0] == np.repeat(np.arange(70), mdp.available.sum(axis=1))).any()  # no bumps


@pytest.mark.parametrize("name", ["tree", "hexgrid", "t-maze", "plus-maze", "linear-track", "tartarus"])
def test_the_mazes_are_tasks_by_name_and_draw_themselves(name: str) -> None:
    mdp = spie.task(name)
    assert mdp.name == name
    picture = draw(mdp, 0)
    assert picture.dtype == np.uint8
    assert (picture == (200, 55, 45)).all(axis=2).any()  # the agent


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spie.tree(0), "tree: depth must be a whole number of at least 1 and at most 14, not 0"),
        (lambda: spie.tree(3, rewards={"99": 1}), 'tree: no node "99"; there are 15, such as "1"'),
        (lambda: spie.hexgrid(1, 1), "hexgrid: 1 x 1 is not a board; give at least two cells"),
        (lambda: spie.hexgrid(2, 2, holes=["9,9"]), 'hexgrid: no cell "9,9" to leave out'),
        (lambda: spie.hexgrid(1, 3, holes=["0,1"]), "hexgrid: nothing to do at 0,0, between holes"),
        (lambda: spie.t_maze(stem=0), "t-maze: stem must be a whole number of at least 1 and at most 2,000, not 0"),
        (lambda: spie.t_maze(rewards={"z": 1}), 'map: rewards name an end "z", but the map has a, b'),
        (lambda: spie.linear_track(1), "linear-track: length must be a whole number of at least 2 and"),
        (lambda: spie.tartarus(goal="x"), 'tartarus: goal is "x"; give row,column, such as 3,3'),
        (lambda: spie.tartarus(holes=100), "tartarus: 100 holes in 10 x 10 cells; leave at least two cells"),
    ],
)
def test_bad_options_of_a_maze_are_one_clear_line(make: object, message: str) -> None:
    with refused(message):
        make()  # type: ignore[operator]
