"""Novelty on features: equal to its definition, a count where features are one-hot, a value where they look ahead."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from spie.novelty import LOOKED_AHEAD, RENEWED, CountedNovelty, SuccessorNovelty


def unit_rows(rng, n, D):
    rows = rng.normal(size=(n, D))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def walked(learner, states, phi, paid, ends=()):
    """Feed a walk over states; `ends` are steps that end an episode, after which the next state begins one."""
    learner.novelty_and_see(phi[states[0]])
    for t in range(len(states) - 1):
        learner.novelty_and_see(phi[states[t + 1]])
        if t - 1 not in ends:  # from the end of an episode to the start of the next leads no step
            learner.step(phi[states[t]], phi[states[t + 1]], [paid[t]], float(t not in ends))
    learner.look_ahead()


def test_one_hot_features_make_it_a_count():
    learner = SuccessorNovelty(4, ridge=2.0)
    for n in range(5):
        assert_allclose(learner.novelty_and_see(np.eye(4)[1]), 1 / np.sqrt(1 + n / 2.0))
    assert_allclose(learner.novelty(np.eye(4)), [1, 1 / np.sqrt(1 + 5 / 2.0), 1, 1])


def test_the_potential_is_the_value_of_what_was_paid():
    # 0 -> 1 -> 2, paying 0 and 5, an end there; 100 times. By hand, ridge 1: 101 V[1] = 100 * 5, 101 V[0] = 100 g V[1]
    learner, g = SuccessorNovelty(3, ridge=1.0, g=0.9), 0.9
    states = [0, 1, 2] * 100
    walked(learner, states, np.eye(3), [0.0, 5.0, 0.0] * 100, ends=set(range(1, 300, 3)))
    V1 = 100 * 5 / 101
    assert_allclose(learner.potential(np.eye(3))[:, 0], [100 * g * V1 / 101, V1, 0], rtol=1e-12)


def test_successor_and_predecessor_features_of_one_hot_states_are_m_and_n_of_what_was_seen():
    rng = np.random.default_rng(0)
    states = rng.integers(0, 5, 4000)
    learner = SuccessorNovelty(5, ridge=1e-9, g=0.8)
    walked(learner, states, np.eye(5), np.zeros(len(states)))
    counts = np.zeros((5, 5))
    np.add.at(counts, (states[:-1], states[1:]), 1)
    n = np.bincount(states, minlength=5)
    forward, backward = counts / n[:, None], counts.T / n[:, None]  # the last frame has no successor, the first no past
    assert_allclose(learner.successor_features(np.eye(5)), np.linalg.inv(np.eye(5) - 0.8 * forward), rtol=1e-8)
    assert_allclose(learner.predecessor_features(np.eye(5)), np.linalg.inv(np.eye(5) - 0.8 * backward), rtol=1e-8)


@pytest.mark.parametrize("D", [1, 7, 100])  # the last in several pieces
def test_novelty_is_its_definition_whatever_came_in_between(D):
    rng = np.random.default_rng(D)
    phi = unit_rows(rng, 40, D)
    learner, Lambda = SuccessorNovelty(D, ridge=0.5), 0.5 * np.eye(D)
    for t, s in enumerate(rng.integers(0, 40, 300)):
        seen = learner.novelty_and_see(phi[s])
        if t % 20 == 0:
            assert_allclose(seen, np.sqrt(0.5 * phi[s] @ np.linalg.solve(Lambda, phi[s])), rtol=1e-10)
        Lambda += np.outer(phi[s], phi[s])
    assert_allclose(learner.novelty(phi), np.sqrt(0.5 * np.vecdot(phi @ np.linalg.inv(Lambda), phi)), rtol=1e-10)
    assert_allclose(learner.inverse, learner.inverse.T, atol=1e-14)


def test_the_error_of_the_inverse_stays_below_its_bound():
    """Few directions seen many thousand times are the worst case: Lambda's eigenvalues lie as far apart as they can."""
    rng, n = np.random.default_rng(1), 20 * RENEWED - 1  # just before it is computed again
    phi = unit_rows(rng, 3, 12)
    learner = SuccessorNovelty(12)
    for s in rng.integers(0, 3, n).tolist():
        learner.novelty_and_see(phi[s])
    probe = unit_rows(rng, 50, 12)
    exact = np.sqrt(np.vecdot(probe @ np.linalg.inv(learner.Lambda), probe))
    error = np.abs(learner.novelty(probe) / exact - 1).max()
    assert error < RENEWED * 2.0**-53 * (1 + n)


def test_what_is_saved_goes_on_alike():
    rng = np.random.default_rng(2)
    phi, states = unit_rows(rng, 9, 20), rng.integers(0, 9, 3 * LOOKED_AHEAD)
    whole, first, second = (SuccessorNovelty(20) for _ in range(3))
    walked(whole, states, phi, states * 1.0)
    walked(first, states[:101], phi, states * 1.0)
    second.load({name: array.copy() for name, array in first.state().items()})
    for t in range(100, len(states) - 1):
        second.novelty_and_see(phi[states[t + 1]])
        second.step(phi[states[t]], phi[states[t + 1]], [float(states[t])], 1.0)
    second.look_ahead()
    for name, array in whole.state().items():
        np.testing.assert_array_equal(array, second.state()[name])


@pytest.mark.parametrize(
    ("options", "message"),
    [((0,), "at least 1"), ((2.5,), "whole number"), ((3, 0.0), "ridge"), ((3, float("nan")), "ridge"),
     ((3, 1.0, 1.0), r"g must lie in \[0, 1\)")],
)  # fmt: skip
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        SuccessorNovelty(*options)


def test_states_that_can_be_counted_give_what_one_hot_features_give():
    rng = np.random.default_rng(3)
    S, states = 6, rng.integers(0, 6, 400)
    dense, counted = SuccessorNovelty(S, 0.5, 0.9, streams=2), CountedNovelty(S, 0.5, 0.9, streams=2)
    for learner, phi in ((dense, np.eye(S)), (counted, range(S))):
        learner.novelty_and_see(phi[states[0]])
        for t in range(len(states) - 1):
            learner.novelty_and_see(phi[states[t + 1]])
            learner.step(phi[states[t]], phi[states[t + 1]], [states[t], t % 3], float(t % 7 != 0))
        learner.look_ahead()
    assert_allclose(counted.novelty(np.arange(S)), dense.novelty(np.eye(S)), rtol=1e-12)
    assert_allclose(counted.potential(np.arange(S)), dense.potential(np.eye(S)), rtol=1e-10)
    other = CountedNovelty(S, 0.5, 0.9, streams=2)
    other.load(counted.state())
    other.look_ahead()
    np.testing.assert_array_equal(other.potential(np.arange(S)), counted.potential(np.arange(S)))
