"""Policies and choice terms, simulated: equal to the reference step for step."""

import re

import numpy as np
import pytest

import spie
from reference import reference

ROOMS = """
S..#..1
...#...
.......
2..#..G
"""
USUAL = {"alpha": 0.2, "eta": 0.25, "beta": 1.0, "epsilon": 0.2}
SOFTMAX = USUAL | {"policy": "softmax", "inverse_temperature": 3.0}
TERMS = {"stickiness": 0.3, "heading": 0.7, "turn_back": -1.1, "habit": 0.9, "habit_rate": 0.3}
TASKS = {
    "rooms": (spie.grid(ROOMS, "goal", bumps=False), 80, 12),
    "moving": (spie.grid(ROOMS, "moving-goal", episodes_per_goal=2), 60, 12),
    "field": (spie.grid("of-small"), 600, None),
    "riverswim": (spie.riverswim(), 600, None),
}


def assert_equal_step_for_step(agent, name, seed=3):
    mdp, steps, episodes = TASKS[name]
    keep = spie.Keep(matrices=("Q", "M"), paths=(seed,))
    trace = agent.run(mdp, steps, [seed], episodes=episodes, keep=keep)
    expected = reference(agent, mdp, steps, seed, episodes)
    for field in ("states", "actions", "next_states", "rewards"):
        np.testing.assert_array_equal(getattr(trace.paths[seed], field), getattr(expected, field), err_msg=field)
    np.testing.assert_allclose(trace.Q[0], expected.Q, rtol=0, atol=1e-12 * np.abs(expected.Q).max())
    return trace.paths[seed]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_softmax_with_every_choice_term_equals_the_reference(task):
    terms = {key: value for key, value in TERMS.items() if key != "heading" or task != "riverswim"}
    with_lapse = spie.Sarsa(reward="sr-r", lapse=0.2, **SOFTMAX, **terms)
    assert_equal_step_for_step(with_lapse, task)
    assert_equal_step_for_step(spie.Sarsa(reward="sr-r", **SOFTMAX, **terms), task)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["riverswim"])
def test_an_epsilon_greedy_policy_with_choice_terms_equals_the_reference(task):
    terms = {key: value for key, value in TERMS.items() if key != "heading" or task != "riverswim"}
    assert_equal_step_for_step(spie.Sarsa(reward="sr-r", next_action="carry", **USUAL, **terms), task)


@pytest.mark.slow
def test_a_bare_softmax_equals_the_reference_and_is_the_same_beside_one_with_terms():
    agent = spie.Sarsa(reward="sr-r", **SOFTMAX)
    path = assert_equal_step_for_step(agent, "field")
    beside = spie.Sarsa(reward="sr-r", **SOFTMAX, stickiness=1.0)
    together = spie.run_sarsa([beside, agent], TASKS["field"][0], 600, [3], keep=spie.Keep(paths=(3,)))[1]
    np.testing.assert_array_equal(together.paths[3].next_states, path.next_states)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("riverswim", {"reward": "none", "optimism": 2.0, "target": "max", "epsilon": 0.05}),
        ("rooms", {"reward": "count", "optimism": 0.5, "next_action": "carry", "gamma": 0.9}),
        ("riverswim", {"reward": "none", "target": "expected"}),
        ("moving", {"reward": "none", "optimism": 2.0, "count": "sr-column", "eta": 0.2, "gamma_sr": 0.8}),
        ("riverswim", {"reward": "count", "optimism": 0.5, "count": "pr-column", "eta_pr": 0.3}),
        ("moving", {"reward": "count", "standardised": True, "potential": True, "beta": 0.1}),
        ("riverswim", {"reward": "sr-r", "standardised": True, "potential": True, "gamma": 0.9}),
        ("moving", {"reward": "etd", "m0": 1.0, "q0": 3.0}),
        ("moving", {"reward": "etd", "m0": 3.0, "q0": 3.0}),  # F[s', s'] falls, so another may be the largest
        ("rooms", {"reward": "sr-r", "target": "expected", "policy": "softmax"}),
    ],
    ids=str,
)
def test_optimism_targets_and_payments_equal_the_reference(task, settings):
    assert_equal_step_for_step(spie.Sarsa(**{"alpha": 0.2, "epsilon": 0.2} | settings), task)


@pytest.mark.slow
def test_optimism_tries_every_action_of_a_state_before_any_twice():
    """Without reward, with a count of tries alone, and values that are not learned."""
    agent = spie.Sarsa(reward="count", beta=0.0, optimism=1.0, next_action="carry", alpha=0.0, epsilon=0.0, gamma=0.9)
    mdp, steps, _ = TASKS["rooms"]
    path = agent.run(mdp, steps, [0], episodes=1, keep=spie.Keep(matrices=("Q", "M"), paths=(0,))).paths[0]
    for s in set(path.states.tolist()):
        taken = path.actions[path.states == s]
        n = mdp.available[s].sum()
        for i in range(0, len(taken) - n + 1, n):
            assert len(set(taken[i : i + n].tolist())) == n


@pytest.mark.slow
def test_a_strong_turn_back_walks_to_and_fro_and_a_strong_heading_straight_on():
    field = TASKS["field"][0]
    common = SOFTMAX | {"alpha": 0.0}
    back = spie.Sarsa(reward="sr-r", turn_back=50.0, **common).run(field, 600, [3], keep=spie.Keep(paths=(3,))).paths[3]
    moved = back.next_states != back.states
    first = moved.argmax()  # after the first move it goes back and forth
    assert len(set(back.next_states[first:])) == 2
    straight = spie.Sarsa(reward="sr-r", heading=50.0, **common).run(field, 600, [3], keep=spie.Keep(paths=(3,)))
    path = straight.paths[3]
    s, a = path.states[1:], path.actions[:-1]
    may = (s != path.states[:-1]) & (field.next[s, a, 0] != s)  # it came by a move, and the way ahead is free
    assert may.sum() > 100
    np.testing.assert_array_equal(path.actions[1:][may], a[may])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "greedy"}, 'no policy for Sarsa "greedy"; did you mean "epsilon-greedy"?'),
        ({"lapse": 0.1}, 'Sarsa: lapse belongs to policy="softmax"; an epsilon-greedy one has its epsilon'),
        ({"inverse_temperature": 2.0}, 'Sarsa: inverse_temperature belongs to policy="softmax"'),
        ({"policy": "softmax", "lapse": 1.0}, "Sarsa: lapse must lie in [0, 1), not 1.0"),
        ({"optimism": -1.0, "reward": "none"}, "Sarsa: optimism must lie in [0, inf), not -1.0"),
        ({"optimism": np.inf, "reward": "none"}, "Sarsa: optimism must lie in [0, inf), not inf"),
        ({"optimism": 1.0}, 'Sarsa: optimism is in units of the reward of the task, and reward "sr-r" has no bound'),
        ({"optimism": 1.0, "reward": "none", "gamma": 1.0}, "Sarsa: optimism needs gamma below 1"),
        ({"target": "mean"}, 'no target for Sarsa "mean"'),
        ({"target": "max", "next_action": "carry"}, 'Sarsa: target="max" looks ahead to no action'),
        ({"optimism": 1.0, "reward": "none", "count": "sr"}, 'no count for Sarsa "sr"'),
        ({"count": "pr-column"}, 'Sarsa: count="pr-column" says how optimism counts; give optimism, too'),
        (
            {"optimism": 1.0, "reward": "none", "count": "sr-column", "learned": False},
            'Sarsa: count="sr-column" needs a matrix that is learned; leave out learned=False',
        ),
        ({"reward": "none", "standardised": True}, "Sarsa: standardised=True needs a bonus"),
        ({"reward": "etd", "learned": False}, 'Sarsa: reward "etd" needs F as it is learned; leave out learned=False'),
        ({"stickiness": np.inf}, "Sarsa: stickiness must lie in (-inf, inf), not inf"),
        ({"habit_rate": 0.0}, "Sarsa: habit_rate must lie in (0, 1], not 0.0"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        spie.Sarsa(**settings)


def test_heading_needs_a_map():
    with pytest.raises(ValueError, match=r"^heading needs a map, and riverswim has none"):
        spie.Sarsa(heading=1.0).run(spie.riverswim(), 10)
