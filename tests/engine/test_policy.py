"""Whatever numbers Q holds, what is drawn is an action, and one that is available: indices come from it."""

import itertools
from typing import no_type_check

import numpy as np
import pytest

from spie.agents.sarsa.options import VECTOR_CODE
from spie.engine.policy import HALF, LOW_HALF, epsilon_greedy, greedy_actions
from spie.engine.specialise import specialise
from spie.rewards import get_reward

pytestmark = pytest.mark.slow

NUMBERS = (0.0, 1.0, -1.0, 1e308, -1e308, np.inf, -np.inf, np.nan)
WORDS = np.array([0, 1, 2**31, 2**32 - 1, 2**32, 2**63, 2**64 - 1], np.uint64)


@no_type_check
def draws(Q, words, epsilon, legal, tie_tolerance, greedy, actions):
    """The greedy set of a row of Q, and the action that each word draws."""
    greedy[0] = greedy_actions(Q, np.uint64(0), legal, tie_tolerance)
    for i in range(len(words)):
        actions[i] = epsilon_greedy(words[i], epsilon, greedy[0], legal)


def compiled(n_actions, width):
    constants = {"ACTIONS": n_actions, "Q_WIDTH": width, "MASKED": True, "FIRST_TIE": False}
    constants |= {"HALF": HALF, "LOW_HALF": LOW_HALF}
    return specialise(draws, [epsilon_greedy, greedy_actions], constants, VECTOR_CODE, get_reward("none"))


def rows(n_actions):
    """Every combination of three numbers, and drawn ones of as many as there are actions."""
    for some in itertools.product(NUMBERS, repeat=3):
        yield np.resize(some, n_actions)
    yield from np.random.default_rng(n_actions).choice(NUMBERS, size=(300, n_actions))


@pytest.mark.parametrize(("n_actions", "width"), [(3, 3), (6, 8), (12, 12)], ids=str)
def test_an_available_action_is_drawn_whatever_the_numbers(n_actions, width):
    draw, rng = compiled(n_actions, width), np.random.default_rng(0)
    greedy, actions = np.zeros(1, np.uint64), np.zeros(len(WORDS), np.int64)
    for values in rows(n_actions):
        available = rng.random(n_actions) < 0.6
        available[rng.integers(n_actions)] = True
        legal = np.uint64(sum(1 << int(a) for a in np.flatnonzero(available)))
        Q = np.full(max(width, n_actions), -np.inf)
        Q[:n_actions] = np.where(available, values, -np.inf)
        for epsilon in (0, 2**31, 2**32):
            draw(Q, WORDS, np.uint64(epsilon), legal, 1e-9, greedy, actions)
            assert greedy[0] & ~legal == 0 < greedy[0], values
            assert available[actions].all(), (values, actions)
