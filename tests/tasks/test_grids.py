import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import spie
from spie.tasks.chains import riverswim
from spie.tasks.grids import MAPS, doors, grid, maze, middle
from spie.tasks.mdp import MDP, reachable

UP, RIGHT, DOWN, LEFT = range(4)


def goes(mdp: MDP, label: str) -> list[str]:
    """Labels of the successors of a cell: up, right, down, left."""
    return [mdp.labels[s] for s in mdp.next[mdp.labels.index(label), :, 0]]


@pytest.mark.parametrize(
    ("name", "shape", "walls"),
    [
        ("of-small", (10, 10), 0),
        ("cluster-simple", (10, 10), 9),  # a column of 10 less a door
        ("cluster-hard", (10, 10), 15),  # a row and a column of 10 share a cell: 19, less 4 doors
        ("of-large", (20, 20), 0),
        ("cluster-simple-large", (20, 20), 19),
    ],
)
def test_named_maps_have_their_size_start_and_goals(name: str, shape: tuple[int, int], walls: int) -> None:
    mdp = grid(name, task="moving-goal")
    last = shape[0] - 1
    assert (mdp.name, mdp.shape) == (name, shape)
    assert mdp.n_states == shape[0] * shape[1] - walls
    assert mdp.start[mdp.labels.index("0,0")] == 1
    goals = [mdp.labels[s] for _, s in np.argwhere(mdp.terminal)]
    assert goals == [f"{last},{last}", f"0,{last}", f"{last},0"]
    assert mdp.episodes_per_phase == 30


def test_there_are_the_five_maps_of_the_paper_and_one_more() -> None:
    of_the_paper = ["of-small", "cluster-simple", "cluster-hard", "of-large", "cluster-simple-large"]
    assert list(MAPS) == [*of_the_paper, "four-rooms"]


@pytest.mark.parametrize(
    ("name", "column", "door"), [("cluster-simple", 5, "5,5"), ("cluster-simple-large", 10, "10,10")]
)
def test_two_rooms_share_one_door(name: str, column: int, door: str) -> None:
    mdp = grid(name)
    assert [label for label in mdp.labels if label.endswith(f",{column}")] == [door]
    assert goes(mdp, door) == [door, f"{column},{column + 1}", door, f"{column},{column - 1}"]


def test_four_rooms_share_four_doors() -> None:
    mdp = grid("cluster-hard")
    assert {label for label in mdp.labels if "5" in label} == {"2,5", "7,5", "5,2", "5,7"}
    assert goes(mdp, "2,5") == ["2,5", "2,6", "2,5", "2,4"]
    assert goes(mdp, "5,2") == ["4,2", "5,2", "6,2", "5,2"]


CORNERED = """
..#..
.....
..##.
#.###
"""  # a door at 1,2; at 2,4 and 3,1 dead ends; the cells of the left and right room are none


def labels(mdp: MDP, states: np.ndarray) -> list[str]:
    return [mdp.labels[s] for s in np.flatnonzero(states)]


def test_a_door_has_walls_on_two_opposite_sides_and_none_on_the_other_two() -> None:
    assert labels(grid(CORNERED), doors(grid(CORNERED))) == ["1,2"]
    assert labels(grid(CORNERED), doors(grid(CORNERED, bumps=False))) == ["1,2"]
    corridor = grid("S...#")  # its ends are dead ends
    assert labels(corridor, doors(corridor)) == ["0,1", "0,2"]
    bend = grid("..\n#.\n#.")
    assert labels(bend, doors(bend)) == ["1,1"]
    assert labels(grid("cluster-hard"), doors(grid("cluster-hard"))) == ["2,5", "5,2", "5,7", "7,5"]
    assert not doors(grid("of-small")).any()


def test_a_maze_has_a_door_wherever_a_corridor_runs_straight() -> None:
    text = maze(15, 15)
    lines = text.split("\n")
    straight = []
    for r, line in enumerate(lines):
        for c, letter in enumerate(line):
            if letter != "#":
                sides = [lines[r - 1][c], lines[r + 1][c], line[c - 1], line[c + 1]]
                walls = "".join("#" if side == "#" else "." for side in sides)
                straight += [f"{r},{c}"] if walls in ("##..", "..##") else []
    assert labels(grid(text), doors(grid(text))) == straight
    assert len(straight) == 67


def test_an_mdp_that_is_no_grid_has_no_doors() -> None:
    assert doors(riverswim()).tolist() == [False] * 6
    assert middle(riverswim()) == 3


def test_the_middle_of_a_grid_is_the_door_nearest_to_it_or_else_the_cell() -> None:
    assert grid("cluster-simple").labels[middle(grid("cluster-simple"))] == "5,5"
    assert grid("...\n...\n...").labels[middle(grid("...\n...\n..."))] == "1,1"


@pytest.mark.parametrize("name", MAPS)
def test_the_chain_of_a_map_with_bumps_is_symmetric_and_stochastic(name: str) -> None:
    P = grid(name).transition()
    assert_array_equal(P, P.T)
    assert_array_equal(P.sum(axis=1), 1)  # quarters add up exactly


@pytest.mark.parametrize("text", [*MAPS.values(), maze(12, 15, seed=1)])
def test_moves_are_those_of_a_cell_by_cell_reading(text: str) -> None:
    mdp = grid(text)
    lines = text.split("\n")
    cells = [(r, c) for r, line in enumerate(lines) for c, letter in enumerate(line) if letter != "#"]
    assert mdp.cells is not None
    assert [tuple(cell) for cell in mdp.cells.tolist()] == cells
    assert mdp.labels == tuple(f"{r},{c}" for r, c in cells)
    for s, (r, c) in enumerate(cells):
        for a, move in enumerate([(r - 1, c), (r, c + 1), (r + 1, c), (r, c - 1)]):
            assert mdp.next[s, a, 0] == (cells.index(move) if move in cells else s)
            assert mdp.prob[s, a, 0] == 1


def test_exploring_pays_nothing_and_never_ends() -> None:
    mdp = grid("cluster-hard")
    assert mdp.n_phases == 1
    assert not mdp.reward.any()
    assert not mdp.terminal.any()


def test_a_goal_costs_one_a_step_but_for_the_step_that_gets_there() -> None:
    mdp = grid("of-small", task="goal")
    goal = 99
    assert_array_equal(np.flatnonzero(mdp.terminal), [goal])
    free_steps = {(int(s), int(a)) for _, s, a, _ in np.argwhere(mdp.reward == 0) if s != goal}
    assert free_steps == {(89, DOWN), (98, RIGHT)}
    assert set(np.unique(mdp.reward)) == {-1, 0}


def test_moving_goals_pay_each_in_its_phase() -> None:
    mdp = grid("cluster-simple", task="moving-goal", episodes_per_goal=7)
    assert (mdp.n_phases, mdp.episodes_per_phase) == (3, 7)
    for phase, goal in enumerate(["9,9", "0,9", "9,0"]):
        s = mdp.labels.index(goal)
        assert_array_equal(np.flatnonzero(mdp.terminal[phase]), [s])
        assert_array_equal(mdp.reward[phase] == 0, mdp.next == s)


def test_without_bumps_an_action_that_would_bump_is_not_available() -> None:
    mdp = grid("S.\n.#", bumps=False)
    assert_array_equal(mdp.available, [[0, 1, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]])
    assert_array_equal(mdp.transition(), [[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]])


def test_without_S_the_start_is_uniform_over_cells_that_are_no_goal_of_the_task() -> None:
    assert_array_equal(grid("..G\n#.1").start, np.full(5, 1 / 5))
    assert_array_equal(grid("..G\n#.1", task="goal").start, [1 / 4, 1 / 4, 0, 1 / 4, 1 / 4])
    assert_array_equal(grid("..G\n#.1", task="moving-goal").start, [1 / 3, 1 / 3, 0, 1 / 3, 0])


def test_exploring_may_leave_cells_out_of_reach() -> None:
    assert grid("S#.").n_states == 2


@pytest.mark.parametrize("text", ["S.\n.G", "\nS.\n.G\n", "S.\r\n.G\r\n", "S \n G"])
def test_line_ends_and_spaces_do_not_matter(text: str) -> None:
    mdp = grid(text, task="goal")
    assert mdp.shape == (2, 2)
    assert_array_equal(mdp.terminal, [[0, 0, 0, 1]])


def test_leading_spaces_are_free_cells() -> None:
    assert grid("  S\n  .").n_states == 6


def test_one_line_is_a_map() -> None:
    assert grid("S.#..").labels == ("0,0", "0,1", "0,3", "0,4")


def test_a_map_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "two_cells.txt"
    path.write_bytes("S.\r\n##\r\n".encode("utf-8-sig"))
    for given in (path, str(path)):
        assert (grid(given).name, grid(given).n_states) == ("two_cells", 2)


def test_a_grid_is_a_task_by_the_name_text_or_file_of_its_map(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_text("S.\n#G")
    for given, states in (("of-small", 100), ("S.\n#G", 3), (str(path), 3)):
        mdp = spie.task(given, task="goal")
        assert (mdp.kind, mdp.n_states, mdp.terminal.sum()) == ("table", states, 1)
    assert spie.task("grid", map="of-small", task="goal").digest == spie.task("of-small", task="goal").digest


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("of-smal", {}, 'no task, map or file "of-smal"; did you mean "of-small"? Known: '),
        ("nowhere.txt", {}, 'no task, map or file "nowhere.txt". Known: '),
        ("of-small", {"tusk": "goal"}, 'no option of of-small "tusk"; did you mean "task"? Known: '),
        (
            "of-small",
            {"task": "gaol"},
            'no task "gaol"; did you mean "goal"? Known: explore, goal, moving-goal, trials',
        ),
        ("S..\nx..", {}, 'map: unknown character "x" in line 2, column 1; known: '),
    ],
)
def test_a_wrong_name_or_option_of_a_task_is_one_line(name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message)) as error:
        spie.task(name, **options)
    assert "\n" not in str(error.value)


def test_a_folder_is_no_map(tmp_path: Path) -> None:
    with refused(f"{tmp_path} is a folder; give the text file of a map"):
        spie.task(str(tmp_path))


def refused(message: str) -> "pytest.RaisesExc[ValueError]":
    return pytest.raises(ValueError, match="^" + re.escape(message) + "$")


@pytest.mark.parametrize(
    ("text", "task", "message"),
    [
        ("", "explore", "map: the map is empty"),
        ("\n", "explore", "map: the map is empty"),
        ("\n\nS.", "explore", "map: line 1 is empty"),
        ("S..\n..\n...", "explore", "map: line 2 has 2 characters, line 1 has 3"),
        ("##\n##", "explore", "map: no free cell, the map is all walls"),
        (
            "S..\n.x.",
            "explore",
            'map: unknown character "x" in line 2, column 2; '
            "known: # wall, . or space free, S start, G goal, 1-9 later goals, a-h ends of a trial",
        ),
        (
            "S.0",
            "explore",
            'map: unknown character "0" in line 1, column 3; '
            "known: # wall, . or space free, S start, G goal, 1-9 later goals, a-h ends of a trial",
        ),
        ("SG\n.G", "explore", 'map: two "G", at row 0, column 1 and row 1, column 1; one at most'),
        ("SG11", "explore", 'map: two "1", at row 0, column 2 and row 0, column 3; one at most'),
        ("SG13", "explore", "map: goal 3 without goal 2; number later goals 1, 2, ..."),
        ("SG2", "moving-goal", "map: goal 2 without goal 1; number later goals 1, 2, ..."),
        ("S..", "goal", 'map: task "goal" needs a goal "G" in the map'),
        ("S.1", "moving-goal", 'map: task "moving-goal" needs a goal "G" in the map'),
        ("S.G", "moving-goal", 'map: task "moving-goal" needs a goal "1" in the map'),
        ("S#G", "goal", "map: goal G at row 0, column 2 cannot be reached from row 0, column 0"),
        ("S.G#1", "moving-goal", "map: goal 1 at row 0, column 4 cannot be reached from row 0, column 0"),
        ("..G#.", "goal", "map: goal G at row 0, column 2 cannot be reached from row 0, column 4"),
        ("#G#", "goal", "map: no cell to start from beside the goals"),
        ("S.G", "gaol", 'no task "gaol"; did you mean "goal"? Known: explore, goal, moving-goal, trials'),
        ("S.G", "swim", 'no task "swim". Known: explore, goal, moving-goal, trials'),
    ],
)
def test_a_bad_map_or_task_is_refused_with_its_place(text: str, task: str, message: str) -> None:
    with refused(message):
        grid(text, task=task)


def test_an_unknown_name_gets_a_suggestion() -> None:
    known = "cluster-hard, cluster-simple, cluster-simple-large, four-rooms, of-large, of-small"
    with refused(f'no map or file "cluster-smple"; did you mean "cluster-simple"? Known: {known}'):
        grid("cluster-smple")
    with refused(f'no map or file "elsewhere.txt". Known: {known}'):
        grid(Path("elsewhere.txt"))


def test_a_walled_in_cell_is_refused_without_bumps() -> None:
    with refused("map: nothing to do at row 0, column 2, walled in; use bumps=True"):
        grid("S#.\n..#", bumps=False)


@pytest.mark.parametrize("loops", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (3, 9), (21, 31), (20, 30)])
def test_a_maze_has_its_size_and_its_promised_number_of_cells_all_joined(rows: int, columns: int, loops: float) -> None:
    text = maze(rows, columns, seed=5, loops=loops)
    mdp = grid(text)
    h, w = (rows - 1) // 2, (columns - 1) // 2
    assert mdp.shape == (rows, columns)
    assert mdp.n_states == 2 * h * w - 1 + round(loops * (h - 1) * (w - 1))
    assert mdp.start[mdp.labels.index("1,1")] == 1
    assert reachable(mdp.next, mdp.start > 0).all()


def test_a_maze_without_loops_is_a_tree() -> None:
    mdp = grid(maze(31, 41, loops=0))
    passages = (mdp.next[:, :, 0] != np.arange(mdp.n_states)[:, None]).sum() / 2
    assert passages == mdp.n_states - 1  # and all cells are joined, by the test above


def test_mazes_follow_their_seed() -> None:
    assert maze(21, 21, seed=1) == maze(21, 21, seed=1)
    assert maze(21, 21, seed=1) != maze(21, 21, seed=2)


def test_a_maze_of_a_hundred_thousand_cells_becomes_an_mdp() -> None:
    assert grid(maze(449, 449)).n_states == 2 * 224 * 224 - 1 + round(0.1 * 223 * 223)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, 9), "maze: rows must be a whole number of at least 3, not 2"),
        ((9, 9, 0, 1.5), "maze: loops must lie in [0, 1], not 1.5"),
    ],
)
def test_a_bad_maze_is_refused(arguments: tuple[int, int], message: str) -> None:
    with refused(message):
        maze(*arguments)
