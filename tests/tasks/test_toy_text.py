"""Goal tasks: tables of Gymnasium under names of their own, random mazes, and mazes that lead one way."""

import numpy as np
import pytest

import spie
from spie.tasks.mdp import reachable
from spie.tasks.toy_text import distances, random_maze


@pytest.mark.parametrize(
    ("name", "options", "states", "actions"),
    [
        ("frozen-lake", {}, 64, 4),
        ("frozen-lake", {"size": "4x4", "slippery": True}, 16, 4),
        ("cliff-walking", {}, 48, 4),
        ("taxi", {}, 500, 6),
    ],
)
def test_tasks_of_gymnasium_are_tables_under_our_names(name, options, states, actions):
    mdp = spie.task(name, **options)
    assert (mdp.n_states, mdp.n_actions) == (states, actions)
    assert mdp.name.startswith(name)


def test_the_goal_of_a_maze_is_the_cell_farthest_from_its_start():
    mdp = random_maze(9, seed=3)
    steps = distances(mdp.next, int(mdp.start.argmax()))
    (goal,) = np.flatnonzero(mdp.terminal[0])
    assert steps[goal] == steps.max() > 8
    assert mdp.reward.max() == 1
    np.testing.assert_array_equal(mdp.next[mdp.reward[0] > 0], goal)
    assert random_maze(9, seed=3, rewarded=False).reward.any() == random_maze(9, rewarded=False).terminal.any() == False  # noqa: E712


def test_one_way_passages_cut_no_state_off():
    mdp, both = random_maze(15, seed=1, one_way=1.0), random_maze(15, seed=1)
    leads = {(s, t) for s, t in zip(*np.nonzero(mdp.transition(phase=0) > 0), strict=True) if s != t}
    closed = (mdp.next != both.next).sum()
    assert closed >= 5
    assert mdp.n_states == both.n_states
    assert len(leads) > 0
    everywhere = [reachable(mdp.next, np.arange(mdp.n_states) == s).all() for s in range(mdp.n_states)]
    assert all(everywhere)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: spie.task("frozen-lake", size="9x9"), 'no size of frozen-lake "9x9"'),
        (lambda: random_maze(9, one_way=2), "one_way is 2; give a share between 0 and 1"),
        (lambda: random_maze(2), "rows must be a whole number of at least 3"),
    ],
)
def test_bad_options_get_one_clear_line(make, said):
    with pytest.raises(ValueError, match=said):
        make()
