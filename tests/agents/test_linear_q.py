"""The compiled linear agent: equal to the reference, the same in any company, and clear about what goes wrong."""

import dataclasses

import numpy as np
import pytest

import spie
from reference_linear import reference
from spie.agents.linear_q.counting import RENEWED
from spie.agents.linear_q.settings import LinearQ, run_linear_q

CAR = spie.mountain_car()
MATRICES = ("Q", "Psi", "Xi")
ALL = spie.Keep(MATRICES)  # everywhere, so that the tests share a kernel for each reward
REWARDS = ["none", "sf", "sf-pf", "sf-pf-printed", "constant", "count"]


def assert_equal_to_reference(agent, task, cap, seed, episodes):
    """Same steps; weights and matrices to 1e-10 of their largest entry."""
    trace = agent.run(task, cap, [seed], episodes=episodes, keep=ALL)
    expected = reference(agent, task, cap, seed, episodes)
    np.testing.assert_array_equal(trace.episode_steps[0], expected.lengths)
    np.testing.assert_array_equal(trace.terminated[0], expected.terminated)
    np.testing.assert_allclose(trace.episode_rewards[0], expected.rewards, rtol=1e-12)
    np.testing.assert_allclose(trace.episode_bonuses[0], expected.bonuses, rtol=1e-10)
    for name in MATRICES:
        matrix = getattr(expected, name)
        np.testing.assert_allclose(
            getattr(trace, name)[0], matrix, rtol=0, atol=1e-10 * np.abs(matrix).max(), err_msg=name
        )
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("reward", REWARDS)
def test_engine_equals_the_reference_over_three_episodes(reward):
    expected = assert_equal_to_reference(LinearQ(reward=reward), CAR, 1000, seed=1, episodes=3)
    assert np.abs(expected.Psi).max() > 0.5
    assert np.abs(expected.Xi).max() > 0.5
    assert np.abs(expected.Q).max() > 0 or reward == "none"  # which sees no reward in three episodes


@pytest.mark.slow
def test_engine_equals_the_reference_where_episodes_end_at_the_flag():
    agent = LinearQ(eta=0.25, eta_pr=0.25, gamma_pr=0.94, epsilon=0.25, cells=10)
    expected = assert_equal_to_reference(agent, CAR, 1000, seed=0, episodes=4)
    assert any(expected.terminated)


@pytest.mark.slow
def test_engine_equals_the_reference_on_a_task_whose_state_is_not_what_is_seen():
    agent = LinearQ(reward="sf-pf", sf_target="greedy", dimension=20, features_seed=5, beta=-1.0)
    assert_equal_to_reference(agent, spie.pendulum(), 200, seed=4, episodes=3)


@pytest.mark.slow
def test_engine_equals_the_reference_on_a_state_of_four_numbers():
    agent = LinearQ(reward="constant", beta=0.1, dimension=16)
    assert_equal_to_reference(agent, spie.acrobot(), 60, seed=4, episodes=3)


@pytest.mark.slow
def test_float32_learns_what_float64_learns_along_one_path():
    """All actions at random, so the path is the same. A step rounds D products, and 1 / (1 - gamma) of them count."""
    keep = spie.Keep(matrices=("Q", "Psi", "Xi"))
    double, single = (
        spie.LinearQ(epsilon=1.0, precision=precision).run(spie.task("mountain-car"), 3000, 1, episodes=1, keep=keep)
        for precision in ("float64", "float32")
    )
    assert double.episode_steps.tolist() == single.episode_steps.tolist()
    bound = 128 * 2.0**-24 / (1 - 0.95)
    for name in ("Psi", "Xi", "Q"):
        exact, found = getattr(double, name), getattr(single, name)
        size = np.abs(exact).max()
        assert 0 < np.abs(found - exact).max() < (bound if name != "Q" else bound / (1 - 0.99)) * size
    np.testing.assert_allclose(single.episode_bonuses, double.episode_bonuses, rtol=bound)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "cap"),
    [
        ({"count": "features", "standardised": True, "potential": True, "beta": 0.01}, 300),
        ({"count": "features", "standardised": True, "potential": True, "optimism": 2.0}, 300),
        ({"count": "features", "dimension": 20, "beta": -1.0}, 2 * RENEWED),  # Lambda^-1 is computed again
    ],
)
def test_engine_equals_the_reference_where_features_are_counted(options, cap):
    agent = LinearQ(reward="count", epsilon=0.1, **{"dimension": 40} | options)
    assert_equal_to_reference(agent, CAR, cap, seed=1, episodes=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"count": "features", "standardised": True, "potential": True, "optimism": 2.0}]
)
def test_engine_equals_the_reference_where_every_episode_starts_again_from_nothing(options):
    """Psi, Xi and cells of the one, counts on features and U of the other."""
    agent = LinearQ(reward="count", epsilon=0.1, beta=0.01, dimension=40, episodic=True, **options)
    expected = assert_equal_to_reference(agent, CAR, 150, seed=1, episodes=3)
    assert np.abs(expected.Psi).max() > 0.1
    all_three = reference(dataclasses.replace(agent, episodic=False), CAR, 150, 1, 3)
    assert np.abs(all_three.Psi - expected.Psi).max() > 0.01  # which it would not be if nothing were forgotten


@pytest.mark.slow
def test_novelty_looked_ahead_to_finds_the_flag_and_the_agent_without_does_not():
    """Random actions, which are all that an agent without bonus has, hardly ever reach it within 200 steps."""
    found = {}
    for name in ("linear-q-sp-novelty", "linear-q"):
        trace = spie.agent(name, epsilon=0.1).run(CAR, 200, 10, episodes=60, keep=ALL)
        found[name] = trace.terminated.any(axis=1).mean()
    assert found["linear-q-sp-novelty"] > 0.5 > found["linear-q"]


@pytest.mark.slow
def test_a_lane_is_the_same_alone_in_company_and_on_any_number_of_threads():
    settings = [LinearQ(), LinearQ(beta=0.01, length_scale=0.3), LinearQ(reward="none"), LinearQ(features_seed=0)]
    together = run_linear_q(settings, CAR, 300, [7, 1, 4], episodes=2, keep=ALL, session=spie.Session(threads=2))
    for s, trace in zip(settings, together, strict=True):
        alone = s.run(CAR, 300, [1], episodes=2, keep=ALL, session=spie.Session(threads=1))
        np.testing.assert_array_equal(trace.Q[1], alone.Q[0])
        np.testing.assert_array_equal(trace.episode_steps[1], alone.episode_steps[0])
        assert trace.settings == repr(s)


def test_seeds_see_features_of_their_own_unless_one_set_is_given():
    assert np.abs(LinearQ().features(CAR, 0).W - LinearQ().features(CAR, 1).W).max() > 0.1
    fixed = LinearQ(features_seed=9)
    np.testing.assert_array_equal(fixed.features(CAR, 0).W, fixed.features(CAR, 1).W)


@pytest.mark.slow
def test_a_lane_that_overflows_stops_and_is_named_while_the_others_go_on():
    settings = [LinearQ(reward="constant", alpha=50.0), LinearQ(reward="constant")]
    wild, tame = run_linear_q(settings, CAR, 1000, [3], episodes=2, keep=ALL)
    assert tame.failures == []
    assert tame.episode_steps.min() > 0
    assert wild.stopped[0] > 0
    (line,) = wild.failures
    assert "alpha=50.0" in line
    assert f"seed 3: infinite or NaN at step {wild.stopped[0]:,}" in line


@pytest.mark.slow
def test_the_other_sign_of_the_bonus_is_a_negative_beta():
    up, down = (LinearQ(beta=beta, alpha=0.1).run(CAR, 50, [0], episodes=1, keep=ALL) for beta in (2.0, -2.0))
    assert np.sign(up.episode_bonuses[0, 0]) == np.sign(down.episode_bonuses[0, 0])  # before beta
    assert np.abs(up.Q).max() > 0
    assert np.abs(up.Q - down.Q).max() > 1e-3


@pytest.mark.slow
def test_first_success_is_the_first_episode_that_ended_by_itself():
    trace = LinearQ().run(CAR, 1000, 2, episodes=4, keep=ALL)
    for row, first in zip(trace.terminated, trace.first_success, strict=True):
        assert first == (list(row).index(True) if row.any() else -1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "sr-r"}, "which a learner on features does not have"),
        ({"reward": "sf_pf"}, 'did you mean "sf-pf"'),
        ({"epsilon": 1.5}, r"epsilon must lie in \[0, 1\], not 1.5"),
        ({"alpha": float("nan")}, "alpha must lie in"),
        ({"dimension": 0}, r"dimension must lie in \[1, 10000\], not 0"),
        ({"dimension": 2.5}, "dimension must be a whole number of at least 1 and at most 10,000, not 2.5"),
        ({"length_scale": 0.0}, r"length_scale must lie in \(0, inf\), not 0.0"),
        ({"sf_target": "best"}, 'no sf_target for LinearQ "best"'),
        ({"precision": "float16"}, 'no precision for LinearQ "float16"'),
        ({"count": "tiles"}, 'no count for LinearQ "tiles"'),
        ({"count": "features"}, 'reward "sf-pf" counts nothing; use "count", or leave out count="features"'),
        ({"reward": "none", "standardised": True}, 'reward "none" pays none; use "count"'),
        ({"optimism": -1.0}, r"optimism must lie in \[0, inf\)"),
        ({"potential": 2}, "potential must be"),
        ({"episodic": "yes"}, "episodic must be true or false, not yes"),
        ({"potential": True, "precision": "float32"}, "potential and optimism need precision=float64"),
    ],
)
def test_wrong_settings_are_answered_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as error:
        LinearQ(**settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ({"episodes": 0}, "episodes must be a whole number of at least 1, not 0"),
        ({"keep": spie.Keep(("M",))}, 'no matrix to keep "M"'),
        ({"seeds": 100_000, "keep": spie.Keep(("Psi",))}, "would need .* GB and this machine has"),
    ],
)
def test_wrong_arguments_are_answered_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearQ().run(CAR, **{"steps": 10, "seeds": 1} | arguments)


def test_agents_have_names():
    assert spie.agent("linear-q-sf-pf", beta=1.0) == LinearQ(reward="sf-pf", beta=1.0)
    assert dataclasses.asdict(spie.agent("linear-q"))["reward"] == "none"
    with pytest.raises(ValueError, match='did you mean "linear-q-sf-pf"'):
        spie.agent("linear-q-sfpf")
