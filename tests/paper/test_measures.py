"""What is read off a trace, by hand on small ones."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import rankdata

from made_up import a_path, a_trace
from spie.agents.base import Keep
from spie.paper import measures
from spie.paper.grid_worlds import settings
from spie.tasks import grid
from spie.tasks.grids import doors


def test_intervals_are_as_wide_as_the_standard_error_says():
    a, b = np.random.default_rng(1).normal([[10], [5]], 1, size=(2, 400))
    part = measures.ratio("", a, b)
    error = part.value * math.hypot(a.std() / a.mean(), b.std() / b.mean()) / math.sqrt(400)
    assert part.value == pytest.approx(a.mean() / b.mean())
    # An end of 2000 resamples has itself an error: sqrt(.025 * .975 / 2000) over the normal density there, .06.
    assert part.low == pytest.approx(part.value - 1.96 * error, abs=0.2 * error)
    assert part.high == pytest.approx(part.value + 1.96 * error, abs=0.2 * error)


def test_a_double_ratio_is_a_ratio_of_ratios():
    part = measures.double_ratio("", *(np.full(10, x) for x in (6.0, 2.0, 10.0, 5.0)), floor=1)
    assert (part.value, part.low, part.high) == (1.5, 1.5, 1.5)


def test_steps_to_a_share_count_seeds_that_never_get_there_as_too_late():
    trace = a_trace([[0, 5, 3, 9], [0, 2, -1, -1]], steps=10)
    np.testing.assert_array_equal(measures.steps_to(trace, 0.5), [3, 2])
    np.testing.assert_array_equal(measures.steps_to(trace, 0.9), [9, 11])
    np.testing.assert_allclose(measures.area(trace), [(1 + 0.5 + 0.7 + 0.1) / 4, (1 + 0.8) / 4])


def test_doors_borders_and_rooms_are_found_from_the_walls():
    expected = {"of-small": ([], 36, 1), "cluster-simple": (["5,5"], 48, 2)}
    for name, (door, border, n) in expected.items():
        mdp = grid(name)
        assert [mdp.labels[s] for s in np.flatnonzero(doors(mdp))] == door
        assert measures.borders(mdp).sum() == border
        assert measures.rooms(mdp).max() + 1 == n
    hard = grid("cluster-hard")
    assert {hard.labels[s] for s in np.flatnonzero(doors(hard))} == {"2,5", "7,5", "5,2", "5,7"}
    assert sorted(np.bincount(measures.rooms(hard) + 1)) == [4, 16, 20, 20, 25]


def test_stays_end_when_the_other_room_is_entered():
    room = np.array([0, 0, -1, 1, 1])  # a corridor with a door in its middle
    path = a_path([0, 1, 2, 1, 2, 3, 3, 2, 1, 0])
    assert measures.stays(path, room) == [(5, 1.0), (3, 0.5)]  # the last stay is not over


def test_idleness_is_the_mean_time_since_the_last_visit():
    # Ages of states 0 and 1 at the four steps: 0 1 0 1 and 0 0 1 0, over 4 steps, 2 states, and 2 states again.
    trace = a_trace([[0, 1]], paths={0: a_path([0, 1, 0, 1])})
    assert measures.idleness(trace) == pytest.approx([3 / 16])
    tour = a_trace([np.zeros(50)], paths={0: a_path(list(range(50)) * 200)})
    assert measures.idleness(tour) == pytest.approx([0.5], abs=0.02)


@pytest.mark.slow
def test_row_norms_are_those_that_the_agent_has_learned():
    agent = settings("sarsa-sr")
    path = agent.run(grid("of-small"), 300, 1, keep=Keep(paths=(0,))).paths[0]
    norms = measures.row_norms(path, 100, agent.eta, agent.gamma_sr)
    assert 1 / norms[path.states[-1]] == pytest.approx(path.bonuses[-1])


def test_ranks_are_those_of_scipy():
    x = np.random.default_rng(0).integers(10, size=50)
    np.testing.assert_array_equal(measures.ranks(x), rankdata(x))


def test_bonus_drift_is_of_one_state_and_action():
    path = a_path([0, 1, 0, 1, 0], bonuses=[1, 5, 1, 7], actions=[0, 1, 0, 1])
    assert measures.bonus_drift(path) == 2
    assert measures.bonus_drift(dataclasses.replace(path, actions=np.array([0, 1, 0, 0]))) == 0


def test_visits_are_counted_by_the_kind_of_cell():
    trace = a_trace(np.zeros((2, 91)))  # every cell once
    assert measures.visit_share(trace, doors, "cluster-simple") == pytest.approx([1 / 91] * 2)
    assert measures.visit_share(trace, measures.borders, "cluster-simple") == pytest.approx([48 / 91] * 2)


def test_episodes_are_compared_with_each_other_and_with_the_other_seeds():
    trace = a_trace(np.zeros((2, 3)), episode_steps=np.array([[1, 5, 3], [3, 3, 3]]))
    np.testing.assert_array_equal(measures.episode(trace, slice(-2, None)), [4, 3])
    np.testing.assert_array_equal(measures.roughness(trace), [3, 0])
    np.testing.assert_allclose(measures.off_average(trace), [2 / 3, 2 / 3])
