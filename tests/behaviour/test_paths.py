"""Paths: what is read is what was walked, and what cannot be is named in one line."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import spie
from spie.behaviour.mazes import cell_maze, read_mazes
from spie.behaviour.reading import Trial
from spie.behaviour.sarsa_walks import _trials
from spie.trace import Trajectory

MAP = """\
S..#.
.#...
...#G"""
# free cells, row by row: 0,0 0,1 0,2 0,4 / 1,0 1,2 1,3 1,4 / 2,0 2,1 2,2 2,4
WALK = [0, 1, 2, 5, 6, 7, 11]


def table(**columns):
    return {"subject": ["a"] * 7, "step": range(7), "state": WALK} | columns


def test_states_numbers_labels_cells_and_positions_give_one_path():
    mdp = read_mazes(MAP)["map"]
    labels = [mdp.labels[s] for s in WALK]
    rows, columns = np.array([label.split(",") for label in labels], int).T
    by = {
        "numbers": spie.Paths.from_table(table(), MAP),
        "labels": spie.Paths.from_table(table(state=labels), MAP),
        "cells": spie.Paths.from_table({"row": rows, "column": columns}, MAP),
        "positions": spie.Paths.from_positions(columns + 0.3, rows + 0.9, maze=MAP),
        "states": spie.Paths.from_states(WALK, MAP),
        "actions": spie.Paths.from_actions({"a": [0]}, {"a": [[1, 1, 2, 1, 1, 2]]}, MAP),
    }
    for how, paths in by.items():
        (trial,) = paths.trials
        assert trial.states.tolist() == WALK, how
        assert trial.actions.tolist() == [1, 1, 2, 1, 1, 2], how  # right right down right right down
        assert paths.goal == 11


def test_rows_may_come_in_any_order_and_columns_too():
    order = [3, 0, 6, 2, 5, 1, 4]
    shuffled = {"state": [WALK[i] for i in order], "STEP": order, "Subject": ["a"] * 7}
    assert spie.Paths.from_table(shuffled, MAP).trials[0].states.tolist() == WALK


def test_columns_that_say_nothing_here_are_left_aside_and_this_is_said():
    paths = spie.Paths.from_table(table(speed=range(7), date=["today"] * 7), MAP)
    assert paths.trials[0].states.tolist() == WALK
    assert "Not used of the table: speed, date." in str(paths.report())


def test_sessions_and_trials_are_in_the_order_of_their_numbers():
    rows = {"session": [10, 10, 9, 9], "step": [0, 1, 0, 1], "state": [0, 1, 1, 2]}
    paths = spie.Paths.from_table(rows, MAP)
    assert [(trial.session, trial.states.tolist()) for trial in paths.trials] == [("9", [1, 2]), ("10", [0, 1])]


def test_a_frame_is_read_like_a_mapping():
    class Frame:  # what pandas and polars have in common
        columns = ("state", "step")

        def __getitem__(self, name):
            return np.array(table()[name])

    assert spie.Paths.from_table(Frame(), MAP).trials[0].states.tolist() == WALK


def test_stays_are_dropped_and_jumps_cut_a_trial_in_two():
    x, y = np.array([0, 0, 0, 1, 2, 4, 4]) + 0.5, np.array([0, 0, 0, 0, 0, 0, 1]) + 0.5
    paths = spie.Paths.from_positions(x, y, maze=MAP)
    assert [trial.states.tolist() for trial in paths.trials] == [[0, 1, 2], [3, 7]]
    (row,) = paths.report()
    assert (row["stays dropped"], row["jumps or impossible moves"], row["steps"], row["trials"]) == (2, 1, 3, 1)


def test_positions_beside_the_maze_are_left_out_where_this_is_asked_for():
    x, y = np.array([0, 1, 1, 1, 2, -1]) + 0.5, np.array([0, 0, 1, 0, 0, 0]) + 0.5  # 1,1 is a wall, and -1 is outside
    paths = spie.Paths.from_positions(x, y, maze=MAP, missing="drop")
    assert [trial.states.tolist() for trial in paths.trials] == [[0, 1, 2]]
    (row,) = paths.report()
    assert (row["rows dropped"], row["stays dropped"], row["jumps or impossible moves"]) == (2, 1, 0)
    with pytest.raises(ValueError, match="no position of the table lies on a free cell of map; check rows and"):
        spie.Paths.from_positions(x + 90, y, maze=MAP, missing="drop")


def test_a_path_is_cut_at_the_first_arrival_at_the_goal():
    paths = spie.Paths.from_table({"state": [*WALK, 7, 6]}, MAP)
    assert paths.trials[0].states.tolist() == WALK
    assert paths.report()[0]["cut at the goal"] == 1


def test_forced_moves_are_not_choices_and_chance_is_over_legal_actions():
    paths = spie.Paths.from_states(WALK, MAP)
    legal = [2, 2, 2, 3, 2, 3]
    assert paths.legal(paths.trials[0]).tolist() == legal
    assert paths.choices() == 6
    assert paths.chance("1") == pytest.approx(-np.log(legal).sum())
    back = spie.Paths.from_states([2, 1, 2], "S..")  # out of a dead end, and back into it
    assert back.choices() == 1
    assert back.report()[0]["forced moves"] == 1


def test_chance_is_that_of_the_move_where_the_action_is_not_known():
    corner = spie.grid("S.G", task="goal", bumps=True)  # up, down and left all stay in the west
    assert spie.Paths.from_states([0, 0, 1], corner).chance("1") == pytest.approx(np.log(3 / 4 / 4))
    known = spie.Paths.from_states([[0, 0, 1]], corner, actions=[[0, 1]])
    assert known.chance("1") == pytest.approx(np.log(1 / 4 / 4))
    swim = spie.riverswim()  # left for sure with one action, and with a chance of .1 with the other
    assert spie.Paths.from_states([2, 1], swim).chance("1") == pytest.approx(np.log((1 + 0.1) / 2))


def test_a_trial_without_a_move_is_left_out_and_counted():
    rows = {"trial": [1, 1, 2, 3, 3], "state": [0, 1, 5, 1, 2]}
    for paths in (spie.Paths.from_table(rows, MAP), spie.Paths.from_states([[0, 1], [5], [1, 2]], MAP)):
        assert [trial.states.tolist() for trial in paths.trials] == [[0, 1], [1, 2]]
        assert paths.report()[0]["trials without a move"] == 1
        assert paths.only(["1"]).report()[0]["trials without a move"] == 1  # and not once more
        assert paths.replay.n_subjects == 1


def test_what_is_paid_during_a_stay_counts_for_the_move_that_led_there():
    paid = {"state": [0, 0, 1, 1, 1, 2, 5], "reward": [9, 0, 0, 2, 3, 0.5, 0]}
    paths = spie.Paths.from_table(paid, MAP, stays="drop")
    assert paths.trials[0].states.tolist() == [0, 1, 2, 5]
    assert paths.trials[0].rewards.tolist() == [0 + 0 + 2, 3, 0.5]  # before the first move it is nobody's
    assert not any("last row" in note for note in paths.notes)
    late = spie.Paths.from_table({"state": [0, 1, 2], "reward": [0, 0, 1]}, MAP)
    assert "The reward in the last row of 1 trial is not used" in late.notes[0]


def test_places_may_have_names_of_several_words():
    walk = ["left arm", "centre", "right arm", "centre"]
    paths = spie.Paths.from_table({"state": walk})
    assert [paths.mazes[0].labels[s] for s in paths.trials[0].states] == walk
    assert spie.Paths.from_table({"state": ["0, 0", "0,1"]}, MAP).trials[0].states.tolist() == [0, 1]


def fake_trace(states, next_states, lengths=()):
    """A trace that holds one path and nothing else."""
    n = len(states)
    path = Trajectory(np.array(states), np.zeros(n, int), np.array(next_states), np.zeros(n), np.zeros(n))
    return SimpleNamespace(paths={7: path}, seeds=np.array([7]), episode_steps=np.array([lengths], int))


def test_episodes_of_a_trace_whose_goal_moves_are_trials_of_their_own():
    ring = spie.grid("S1\nG.", "moving-goal", episodes_per_goal=1)  # states 0 1 / 2 3; the goal is 2, then 1, ...
    assert ring.terminal.argmax(axis=1).tolist() == [2, 1]
    up, right, down, left = range(4)
    walks = [([0, 2], [down]), ([0, 2, 3, 1], [down, right, up]), ([0, 1, 0, 2], [right, left, down])]
    states, next_states = ([s for walk, _ in walks for s in walk[part]] for part in (slice(-1), slice(1, None)))
    for lengths in ((), (1, 3, 3)):
        trace = fake_trace(states, next_states, lengths)
        trace.paths[7] = dataclasses.replace(trace.paths[7], actions=np.array([a for _, done in walks for a in done]))
        paths = spie.Paths.from_trace(trace, ring)
        assert [trial.states.tolist() for trial in paths.trials] == [walk for walk, _ in walks]
        assert paths.goal is None  # there are two


def test_a_simulated_walk_is_split_where_the_goal_of_each_trial_ends_it():
    ring = spie.grid("S1\nG.", "moving-goal", episodes_per_goal=1)  # the goal is 2, then 1
    recorded = [Trial("a", "1", str(k), 0, np.zeros(5, np.int32), np.zeros(4, np.int32)) for k in range(3)]
    walks = [[0, 1, 3, 2], [0, 2, 0, 1], [0, 1, 0, 1, 0]]  # each but the last ends at its goal, and passes the other
    path = fake_trace(*([s for walk in walks for s in walk[part]] for part in (slice(-1), slice(1, None)))).paths[7]
    assert [walk.tolist() for walk in _trials(path, recorded, [ring])] == walks


@pytest.mark.parametrize("starts", [{}, {"a": 0}, {"a": [0, 0]}])
def test_actions_need_a_first_state_for_each_trial(starts):
    with pytest.raises(ValueError, match=r"^subject a: starts must hold a first state for each of 1 trial$"):
        spie.Paths.from_actions(starts, {"a": [[1]]}, "S..")


def test_an_episode_that_begins_where_the_last_was_truncated_is_known_by_its_length():
    field = spie.grid("S..")
    right, left = 1, 3
    trace = fake_trace([0, 1, 0, 1], [1, 0, 1, 0], (2, 2))
    trace.paths[7] = dataclasses.replace(trace.paths[7], actions=np.array([right, left] * 2))
    assert [trial.states.tolist() for trial in spie.Paths.from_trace(trace, field).trials] == [[0, 1, 0]] * 2


def test_a_trial_that_was_cut_many_times_is_read_back_in_order(tmp_path):
    x = np.tile([0, 1, 4], 12) + 0.5  # from 4 to 0 and from 1 to 4 the tracker jumps
    paths = spie.Paths.from_positions(x, np.full(36, 0.5), maze=MAP)
    walks = [trial.states.tolist() for trial in paths.trials]
    assert len(walks) == 12
    paths.to_csv(tmp_path / "paths.csv")
    trials = [line.split(",")[2] for line in (tmp_path / "paths.csv").read_text().splitlines()[1:]]
    again = spie.Paths.from_csv(tmp_path / "paths.csv", MAP)
    assert [trial.trial for trial in again.trials] == list(dict.fromkeys(trials))


def test_many_jumps_are_spoken_of():
    x = np.array([0, 1, 2, 4, 0, 2, 4, 0, 1, 0]) + 0.5
    paths = spie.Paths.from_positions(x, np.full(10, 0.5), maze=MAP)
    assert paths.notes[0].startswith("5 of 9 moves are impossible in the maze, and trials are cut there; check rows")


def test_without_a_maze_the_graph_is_that_of_the_moves():
    paths = spie.Paths.from_table({"state": ["den", "fork", "left", "fork", "right"]})
    (maze,) = paths.mazes
    assert maze.labels == ("den", "fork", "left", "right")
    assert paths.legal(paths.trials[0]).tolist() == [1, 2, 1, 2]
    assert "graph is that of the moves" in str(paths.report())


def test_where_several_actions_lead_there_the_action_stays_unknown():
    mdp = spie.grid("S.\n..", bumps=True)
    paths = spie.Paths.from_states([0, 0, 1], mdp)
    assert paths.trials[0].actions.tolist() == [-1, 1]


def test_several_mazes_have_the_same_states():
    mazes = {"one": "S.#\n...", "two": "S..\n#.."}
    rows = {"maze": ["one"] * 3 + ["two"] * 3, "trial": [1] * 3 + [2] * 3, "step": [0, 1, 2] * 2}
    paths = spie.Paths.from_table(rows | {"row": [0, 0, 1, 0, 0, 0], "column": [0, 1, 1, 0, 1, 2]}, mazes)
    assert [trial.states.tolist() for trial in paths.trials] == [[0, 1, 4], [0, 1, 2]]
    assert [trial.maze for trial in paths.trials] == [0, 1]
    assert paths.legal(paths.trials[0]).tolist() == [2, 2]


def test_paths_written_are_paths_read(tmp_path):
    rows = {"subject": ["a"] * 3 + ["b"] * 2, "step": [0, 1, 2, 0, 1], "state": [0, 1, 2, 4, 0]}
    rows |= {"reward": [0.25, 1.5, 0, -1, 0]}
    paths = spie.Paths.from_table(rows, MAP)
    paths.to_csv(tmp_path / "paths.csv")
    again = spie.Paths.from_csv(tmp_path / "paths.csv", MAP)
    for one, other in zip(paths.trials, again.trials, strict=True):
        for value, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(value, same)


@pytest.mark.slow
def test_a_trace_becomes_paths_with_its_actions_and_rewards():
    mdp = spie.grid("four-rooms", task="goal")
    trace = spie.Sarsa().run(mdp, 60, 2, episodes=3, keep=spie.Keep(paths=(0, 1)))
    paths = spie.Paths.from_trace(trace, mdp)
    assert paths.subjects == ("seed 0", "seed 1")
    for seed in (0, 1):
        trials = paths.of(f"seed {seed}")
        assert len(trials) == 3
        assert [len(trial.actions) for trial in trials] == trace.episode_steps[seed].tolist()
        np.testing.assert_array_equal(np.concatenate([t.actions for t in trials]), trace.paths[seed].actions)


def test_a_hole_is_left_but_never_entered():
    free = np.array([[True, True], [True, False]])
    maze = cell_maze("m", free, goal=None)
    assert maze.available[3].tolist() == [True, False, False, True]  # up and left, out of the hole
    assert not maze.available[1, 2]
    assert not maze.available[2, 1]


BAD = {
    "unknown state": ({"state": [0, 1, 99]}, 'step 2: no state "99" in map; states are 0 ... 11'),
    "impossible move": ({"state": [0, 1, 2, 5, 6, 7, 3, 5]}, "step 7: the subject goes from 0,4 to 1,2, which map"),
    "a stay": ({"state": [0, 1, 1]}, 'stays in 0,1, which map does not allow; drop stays, stays="drop" (--stays drop)'),
    "empty subject": ({"subject": ["a", "a", ""], "state": [0, 1, 2]}, "row 3: subject is empty"),
    "no move": ({"subject": ["a", "a", "b"], "state": [0, 1, 2]}, "subject b has made no move in 1 trial; leave"),
    "constant": ({"state": [1, 1, 1]}, "subject 1 is in 1 in all of its 3 rows: the column is constant; leave"),
    "constant cell": ({"x": [0.1, 0.5], "y": [0.2, 0.3]}, "subject 1 is in 0,0 in all of its 2 rows"),
    "other maze": ({"state": [0, 6, 0, 7, 0, 8, 11, 3]}, "does not fit the data: 6 of 6 moves are impossible"),
    "other places": ({"row": [8] * 4, "column": [0, 1, 2, 3]}, "not fit the data: 4 of 4 places are no state of map"),
    "in a wall": ({"x": [0.5, 1.5, 1.5], "y": [0.5, 0.5, 1.5]}, "it is no free cell; leave such positions out"),
    "duplicates": ({"step": [0, 1, 1], "state": [0, 1, 2]}, "rows 2 and 3 are duplicates: subject 1, session 1"),
    "NaN": ({"x": [0.5, float("nan")], "y": [0.5, 0.5]}, "row 2: x is empty or NaN"),
    "no place": ({"subject": ["a"]}, "no column says where the subject is"),
    "other column": ({"stat": [1]}, 'no column "stat"; did you mean "state"?'),
    "wrong action": ({"state": [0, 1], "action": ["down", ""]}, "step 1: action 2 does not lead from 0,0 to 0,1"),
    "no action": ({"state": [0, 1], "action": ["north", ""]}, 'row 1: no action "north"; actions are 0 ... 3, up'),
    "no order": ({"state": [0, 1], "t": ["soon", "now"]}, 'row 1: t is "soon", which is no finite number'),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_clear_line(what):
    columns, line = BAD[what]
    with pytest.raises(ValueError, match=r".") as error:
        spie.Paths.from_table(columns, MAP)
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_none_is_one_clear_line(tmp_path):
    (tmp_path / "empty.csv").write_text("state\n")
    (tmp_path / "ragged.csv").write_text("state,step\n1,2,3\n")
    for name, line in {
        "empty.csv": "holds no rows",
        "ragged.csv": "row 2 has 3 columns",
        "none.csv": "no file",
    }.items():
        with pytest.raises(ValueError, match=line):
            spie.Paths.from_csv(tmp_path / name)
