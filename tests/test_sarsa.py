"""The compiled engine against the plain reference, and what a run promises."""

import dataclasses

import numpy as np
import pytest
from reference import reference

import spie
from spie.rewards import reward_names

REWARDS = [name for name in reward_names()]


def assert_equal_step_for_step(agent, mdp, steps, seed, episodes=None):
    """Same states, actions and rewards; matrices to 1e-12 of their largest entry."""
    keep = "QMFN"
    trace = agent.run(mdp, steps, [seed], episodes=episodes, keep=keep, record=[seed])
    expected = reference(agent, mdp, steps, seed, episodes)
    path = trace.paths[seed]
    for name in ("states", "actions", "next_states", "rewards"):
        np.testing.assert_array_equal(getattr(path, name), getattr(expected, name), err_msg=name)
    assert_close(path.bonuses, expected.bonuses)
    for name in keep:
        assert_close(getattr(trace, name)[0], getattr(expected, name))
    np.testing.assert_array_equal(trace.visits[0], expected.visits)
    if episodes is not None:
        np.testing.assert_array_equal(trace.episode_steps[0], expected.lengths)
    assert trace.total_reward[0] == pytest.approx(expected.rewards.sum(), rel=1e-12, abs=1e-12)
    assert trace.total_bonus[0] == pytest.approx(expected.bonuses.sum(), rel=1e-9, abs=1e-9)
    return trace


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * max(1, np.abs(expected).max()))
