"""Boards as text: two notations, read, written, and refused with their place."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from spie import MDP
from spie.tasks.chains import riverswim
from spie.tasks.draw import draw, write
from spie.tasks.grids import MAPS, doors, grid, ignored_goals, maze, write_map
from spie.tasks.maps import Board, read, write_edges

UP, RIGHT, DOWN, LEFT = range(4)
BOARD = """
    +---+---+---+
    | S >   | a |
    +   +-v-+   +
    |       | b |
    +   +---+   +
    |           |
    +---+---+---+
"""


def goes(mdp: MDP, label: str) -> list[str]:
    return [mdp.labels[s] for s in mdp.next[mdp.labels.index(label), :, 0]]


def refused(message: str) -> "pytest.RaisesExc[ValueError]":
    return pytest.raises(ValueError, match="^" + re.escape(message) + "$")


def test_walls_and_one_way_doors_stand_between_cells() -> None:
    mdp = grid(BOARD)
    assert mdp.shape == (3, 3)
    assert mdp.n_states == 9
    assert goes(mdp, "0,0") == ["0,0", "0,1", "1,0", "0,0"]
    assert goes(mdp, "0,1") == ["0,1", "0,1", "1,1", "0,1"]  # the door > is passed to the right only, v down only
    assert goes(mdp, "1,1") == ["1,1", "1,1", "1,1", "1,0"]
    assert goes(mdp, "2,2") == ["1,2", "2,2", "2,2", "2,1"]


def test_the_layout_knows_walls_and_doors() -> None:
    layout = grid(BOARD).layout
    assert layout.cell == "square"
    assert {tuple(map(tuple, np.sort(wall, axis=0).tolist())) for wall in layout.walls} == {
        ((1.5, -0.5), (1.5, 0.5)),
        ((1.5, 0.5), (1.5, 1.5)),
        ((0.5, 1.5), (1.5, 1.5)),
    }
    labels = grid(BOARD).labels
    assert [(labels[a], labels[b]) for a, b in layout.arrows] == [("0,0", "0,1"), ("0,1", "1,1")]


@pytest.mark.parametrize("name", MAPS)
def test_a_map_of_cells_has_no_walls_between_them(name: str) -> None:
    layout = grid(name).layout
    assert len(layout.walls) == len(layout.arrows) == 0
    assert_array_equal(layout.positions, grid(name).cells[:, ::-1])


@pytest.mark.parametrize(
    "text",
    ["+-+-+\n|S  |\n+ +^+\n|  a|\n+-+-+", "+-----+-----+\n|  S        |\n+     +--^--+\n|        a  |\n+-----+-----+"],
)
def test_cells_may_be_of_any_width(text: str) -> None:
    assert write_map(grid(text))[0] == "+---+---+\n| S     |\n+   +-^-+\n|     a |\n+---+---+"


def test_a_trial_ends_at_its_letters_and_pays_by_their_names() -> None:
    mdp = grid(BOARD, rewards={"a": 1, "b": 0.25})
    a, b = mdp.labels.index("0,2"), mdp.labels.index("1,2")
    assert_array_equal(np.flatnonzero(mdp.terminal[0]), [a, b])
    assert mdp.reward[0, mdp.labels.index("2,2"), UP, 0] == 0.25
    assert mdp.reward[0].sum() == 0.25  # b is passed before a, and nothing else pays


def test_an_end_that_rewards_leave_out_pays_nothing() -> None:
    mdp = grid("a.S.b", rewards={"a": 2})
    assert_array_equal(mdp.terminal, [[1, 0, 0, 0, 1]])
    assert_array_equal(np.argwhere(mdp.reward[0, :, :, 0]), [[1, LEFT]])


def test_several_starts_are_equally_likely() -> None:
    assert_array_equal(grid("S.\n.S").start, [0.5, 0, 0, 0.5])


def test_goals_that_a_task_ignores_are_named() -> None:
    assert ignored_goals(grid("cluster-hard")) == "G 1 2"
    assert ignored_goals(grid("cluster-hard", task="goal")) == "1 2"
    assert ignored_goals(grid("cluster-hard", task="moving-goal")) == ""
    assert ignored_goals(grid("aGS", rewards={"a": 1})) == "G"
    assert ignored_goals(riverswim()) == ""


def test_a_goal_behind_a_one_way_door_is_reached_one_way_only() -> None:
    text = "+-+-+\n|{}>{}|\n+-+-+"
    assert grid(text.format("S", "G"), task="goal").terminal[0, 1]
    with refused("map: goal G at row 0, column 0 cannot be reached from row 0, column 1"):
        grid(text.format("G", "S"), task="goal")


def test_a_gap_in_a_thin_wall_is_a_door() -> None:
    mdp = grid("+-+-+-+\n| | | |\n+ + + +\n|     |\n+ + + +\n| | | |\n+-+-+-+")
    assert [mdp.labels[s] for s in np.flatnonzero(doors(mdp))] == []  # its sides are open above and below
    mdp = grid("+-+-+-+\n| | | |\n+ +-+ +\n|     |\n+ +-+ +\n| | | |\n+-+-+-+")
    assert [mdp.labels[s] for s in np.flatnonzero(doors(mdp))] == ["1,1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+-+\n| |", "map: 2 lines; a board has a line of edges above and below each line of cells"),
        ("+--\n|  \n+--", 'map: line 1 must be corners "+" at equal distances, as in +---+---+'),
        ("+-+--+\n| |  |\n+-+--+", 'map: line 1 must be corners "+" at equal distances, as in +---+---+'),
        ("+-+-+\n|  |\n+-+-+", "map: line 2 has 4 characters, line 1 has 5"),
        ("+-+-+\n|S  |\n+-- +\n|   |\n+-+-+", 'map: "-" in line 3, column 3, where a corner "+" belongs'),
        ("+---+---+\n| S     |\n+-- +   +\n|       |\n+---+---+",
         'map: the wall "-- " in line 3, columns 2-4 does not meet its corners; fill it with -'),
        ("+-+-+\n|S  |\n+=+ +\n|   |\n+-+-+",
         'map: "=" in line 3, column 2 is no edge; edges are - wall, space open, ^ or v a one-way door'),
        ("+-+-+\n|S! |\n+-+-+",
         'map: "!" in line 2, column 3 is no edge; edges are | wall, space open, < or > a one-way door'),
        ("+-+-+\n|S  |\n+-+ +", "map: the border is open in line 3, column 4; close it with -"),
        ("+-+-+\n|S  >\n+-+-+", "map: the border is open in line 2, column 5; close it with |"),
        ("+---+\n| SG|\n+---+", 'map: "SG" in line 2, column 2; a cell holds one character at most'),
        ("+---+\n| z |\n+---+", 'map: unknown character "z" in line 2, column 3; known: # wall, . or space free, '
         "S start, G goal, 1-9 later goals, a-h ends of a trial"),
        ("+-+\n|#|\n+-+", "map: no free cell, the map is all walls"),
    ],
)  # fmt: skip
def test_a_bad_board_is_refused_with_its_place(text: str, message: str) -> None:
    with refused(message):
        grid(text)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a.S", {"rewards": {"b": 1}}, 'map: rewards name an end "b", but the map has a'),
        ("..S", {"rewards": {"a": 1}}, 'map: rewards name an end "a", but the map has no ends a-h'),
        ("a.S", {"rewards": {"a": np.nan}}, 'grid: the reward of end "a" is nan; give a finite number'),
        ("a.S", {"task": "trials"},
         'map: task "trials" needs the rewards of its ends, such as {"a": 1}; the map has a'),
        ("a.SG", {"task": "goal", "rewards": {"a": 1}}, 'map: rewards are for task "trials", not "goal"'),
        ("a#S", {"rewards": {"a": 1}}, "map: an end cannot be reached from row 0, column 2"),
    ],
)  # fmt: skip
def test_ends_and_their_rewards_must_fit(text: str, options: dict[str, object], message: str) -> None:
    with refused(message):
        grid(text, **options)


# Round trips


def random_board(random: np.random.Generator, edges: bool) -> tuple[str, dict[str, object]]:
    """A board of random letters, walls and doors, and a task for it."""
    shape = tuple(random.integers(1, 6, 2))
    letters = random.choice([".", "#", "S"], shape, p=[0.75, 0.15, 0.1])
    kind = random.choice(["explore", "goal", "moving-goal", "trials"])
    marks = {"explore": "", "goal": "G", "moving-goal": "G1", "trials": "aab"}[kind]
    for mark in marks:
        letters[tuple(random.integers(0, shape))] = mark
    options: dict[str, object] = {"task": kind, "bumps": bool(random.integers(2))}
    if kind == "trials":
        options["rewards"] = {letter: float(random.normal()) for letter in "ab" if letter in letters}
    passes = read("board", "\n".join(map("".join, letters)) if (letters != "#").any() else ".").passes
    if not edges or not (letters != "#").any():
        return "\n".join(map("".join, letters)), options
    passes = passes & (random.random(passes.shape) < 0.8)
    return write_edges(Board(letters, passes)), options


BOARDS = 250  # of each notation; 5000 of each were run once, and all came back


@pytest.mark.parametrize("edges", [False, True], ids=["cells", "edges"])
def test_random_boards_come_back_from_their_text(edges: bool) -> None:
    random, done, tried = np.random.default_rng(int(edges)), 0, 0
    while done < BOARDS:
        tried += 1
        assert tried < 4 * BOARDS
        text, options = random_board(random, edges)
        try:
            mdp = grid(text + "\n", **options)
        except ValueError:  # a goal out of reach, a cell walled in, no free cell, ...
            continue
        done += 1
        for notation in ("edges",) if len(mdp.layout.walls) or len(mdp.layout.arrows) else ("cells", "edges"):
            written, found = write_map(mdp, notation)
            again = grid(written + "\n", **found)
            assert again.digest == mdp.digest
            assert again.labels == mdp.labels
            assert_array_equal(again.layout.walls, mdp.layout.walls)
            assert_array_equal(again.layout.arrows, mdp.layout.arrows)
            assert write_map(again, notation)[0] == written


@pytest.mark.parametrize("task", ["explore", "goal", "moving-goal"])
@pytest.mark.parametrize("name", MAPS)
def test_named_maps_are_written_as_they_are(name: str, task: str) -> None:
    text, options = write_map(grid(name, task=task))
    if task != "goal":  # which makes nothing of the later goals
        assert text == MAPS[name]
    assert grid(text, **options).digest == grid(name, task=task).digest


def test_a_maze_is_written_as_it_is() -> None:
    assert write_map(grid(maze(41, 61)))[0] == maze(41, 61)


def test_what_is_no_map_is_not_written_as_one() -> None:
    with refused("riverswim: no grid, so no map; it has no cells"):
        write_map(riverswim())
    slippery = grid("S.G", task="goal")
    stay = MDP("slippery", np.repeat(slippery.next, 2, 2), np.full((3, 4, 2), 0.5), 0.0, slippery.start,
               cells=slippery.cells, shape=slippery.shape)  # fmt: skip
    stay.next.flags.writeable = True
    stay.next[:, :, 1] = np.arange(3)[:, None]
    with refused("slippery: its moves, rewards or starts are not those of a map; maps are deterministic grids"):
        write_map(stay)
    with refused('map: walls or doors stand between its cells; use notation="edges"'):
        write_map(grid(BOARD), "cells")


# Pictures


def test_a_board_writes_itself_with_its_walls() -> None:
    mdp = grid(BOARD, rewards={"a": 1})
    assert write(mdp, 4) == "\n".join(
        [
            "+---+---+---+",
            "| S >   | a |",
            "+   +-v-+   +",
            "|     @ | b |",
            "+   +---+   +",
            "|           |",
            "+---+---+---+",
        ]
    )


def test_thin_walls_are_drawn_between_the_cells() -> None:
    plain, walled = (draw(grid(text), 0) for text in ("..\n..", "+-+-+\n| | |\n+ + +\n|   |\n+-+-+"))
    differs = (plain != walled).any(axis=2)
    rows, columns = np.nonzero(differs)
    assert differs.any()
    assert rows.max() <= 32 + 3  # beside the wall between the upper cells only
    assert 32 - 4 < columns.min() <= columns.max() < 32 + 4
