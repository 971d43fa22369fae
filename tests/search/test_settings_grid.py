import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spie
from spie.runs.run import Run
from spie.search.grid import SettingsGrid

PLAIN = spie.Sarsa(reward="none", epsilon=0.1)
GRID = SettingsGrid(PLAIN, (("alpha", (0.1, 0.5)), ("epsilon", (0.01, 0.05, 0.1))))


def test_a_grid_is_every_combination_and_the_last_setting_varies_fastest():
    assert [(s.alpha, s.epsilon) for s in GRID.settings()] == [
        (0.1, 0.01),
        (0.1, 0.05),
        (0.1, 0.1),
        (0.5, 0.01),
        (0.5, 0.05),
        (0.5, 0.1),
    ]
    assert len(GRID) == 6
    some = dataclasses.replace(GRID, only=(1, 5))
    assert [(s.alpha, s.epsilon) for s in some.settings()] == [(0.1, 0.05), (0.5, 0.1)]
    assert len(some) == 2
    assert SettingsGrid(PLAIN).settings() == [PLAIN]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(0, 40))
def test_the_pieces_of_a_grid_are_the_grid(sizes, most):
    names = ("alpha", "gamma", "epsilon")
    axes = tuple((name, tuple(np.linspace(0.1, 0.9, n))) for name, n in zip(names, sizes, strict=False))
    grid = SettingsGrid(PLAIN, axes)
    pieces = list(grid.split(most))
    assert [s for piece in pieces for s in piece.settings()] == grid.settings()
    assert all(len(piece) <= max(1, most) for piece in pieces)


def test_a_piece_is_known_whatever_grid_it_is_of():
    def ids(base, alphas):
        grid = SettingsGrid(base, (("alpha", alphas), ("epsilon", (0.01, 0.1))))
        return [Run("", "", piece, spie.riverswim(), 10, 2).id for piece in grid.split(2)]

    assert ids(PLAIN, (0.1, 0.5))[1] == ids(dataclasses.replace(PLAIN, alpha=0.9), (0.5, 0.7))[0]
    assert len({*ids(PLAIN, (0.1, 0.5))}) == 2


@pytest.mark.slow
def test_a_setting_in_a_grid_gives_what_it_gives_alone():
    mdp = spie.riverswim()
    scores = GRID.run(mdp, 300, seeds=[4, 7])
    np.testing.assert_array_equal(scores.seeds, [4, 7])
    np.testing.assert_array_equal(scores.values, [s.run(mdp, 300, seeds=[4, 7]).total_reward for s in GRID.settings()])


@pytest.mark.slow
def test_coverage_is_the_step_of_the_last_state_that_99_percent_need():
    trace = PLAIN.run(spie.riverswim(), 5)
    four = dataclasses.replace(
        trace, steps=np.array([50, 50]), first_visit=np.array([[0, 9, 30, 2], [0, 1, -1, 3]], np.int32)
    )
    np.testing.assert_array_equal(four.steps_to(0.5), [2, 1])
    np.testing.assert_array_equal(four.steps_to(0.75), [9, 3])
    np.testing.assert_array_equal(four.steps_to(0.99), [30, 51])  # never: one step too late


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("sarsa", "alpha epsilon"),
        ("sarsa-sr", "alpha eta gamma_sr beta epsilon"),
        ("sarsa-fr-fixed", "alpha gamma_sr beta epsilon"),
        ("sarsa-sr-pr", "alpha eta gamma_sr eta_pr gamma_pr beta epsilon"),
    ],
)
def test_a_sweep_varies_what_makes_a_difference(agent, settings):
    assert tuple(spie.agent(agent).tuning_ranges(spie.riverswim())) == tuple(settings.split())


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        (("alhpa", (0.1,)), 'no setting of Sarsa "alhpa"; did you mean "alpha"'),
        (("alpha", ()), "alpha has no values; give some, as in alpha=0.1,0.5"),
        (("alpha", (0.1, 2.0)), r"alpha must lie in \[0, 1\], not 2.0"),
        (("alpha", ("fast",)), "alpha must be a number in .0, 1., not fast"),
        (("reward", ("sr_r",)), 'no intrinsic reward "sr_r"'),
    ],
)
def test_a_value_that_the_agent_does_not_take_is_named(axis, message):
    with pytest.raises(ValueError, match=message):
        SettingsGrid(PLAIN, (axis,))
