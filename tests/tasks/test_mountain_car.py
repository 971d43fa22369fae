"""The continuous tasks equal Gymnasium's step for step, and are Gymnasium environments themselves."""

import dataclasses
import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import spie


@pytest.mark.slow
def test_the_car_moves_as_gymnasiums_over_a_hundred_thousand_steps():
    theirs = gym.make("MountainCar-v0").unwrapped
    step, rng = spie.mountain_car().step, np.random.default_rng(0)
    x = np.zeros(2)
    theirs.reset(seed=0)
    theirs.state = tuple(x)
    ended = 0
    push = 0
    for t in range(100_000):
        if t % 50 == 0:
            push = rng.integers(4)
        a = int(rng.integers(3)) if push == 3 else push if push != 1 else (2 if x[1] >= 0 else 0)  # the latter climbs
        r, at_flag = step(x, a)
        _, _, terminated, _, _ = theirs.step(a)
        assert tuple(x) == tuple(theirs.state)
        assert at_flag == terminated
        assert r == float(terminated)
        if terminated:
            ended += 1
            x = rng.uniform([-0.6, 0], [-0.4, 0])
            theirs.state = tuple(x)
    assert ended > 20


@pytest.mark.slow
def test_the_pendulum_turns_as_gymnasiums():
    theirs = gym.make("Pendulum-v1").unwrapped
    step, rng = spie.pendulum().step, np.random.default_rng(0)
    x = np.array([math.pi, 0.0])
    theirs.reset(seed=0)
    theirs.state = x.copy()
    up = 0
    for t in range(20_000):
        a = int(rng.integers(3)) if t % 100 < 30 else (2 if x[1] >= 0 else 0)  # swings it up and over
        r, is_up = step(x, a)
        theirs.step(np.array([2.0 * (a - 1)]))
        assert tuple(x) == tuple(theirs.state)
        assert r == float(is_up)
        up += is_up
        observation = np.empty(3)
        spie.pendulum().observe(x, observation)
        np.testing.assert_allclose(observation, theirs._get_obs(), atol=1e-6)
    assert up > 0


@pytest.mark.slow
def test_acrobot_swings_as_gymnasiums():
    """Up to rounding: cosines of an angle less pi / 2 are sines here, and angles beyond pi are brought back at once."""
    theirs = gym.make("Acrobot-v1").unwrapped
    step, rng = spie.acrobot().step, np.random.default_rng(0)
    theirs.reset(seed=0)
    x, up, round_about = np.zeros(4), 0, 0
    for t in range(20_000):
        a = int(rng.integers(3)) if t % 100 < 20 else (2 if x[3] >= 0 else 0)  # swings it up, and over
        theirs.state = x.copy()
        _, _, terminated, _, _ = theirs.step(a)
        before = x.copy()
        r, is_up = step(x, a)
        np.testing.assert_allclose(x, theirs.state, rtol=1e-12, atol=1e-11)
        assert is_up == terminated == bool(r)
        up += is_up
        round_about += abs(x[0] - before[0]) > np.pi
        if t % 500 == 499:
            x = rng.uniform([-3, -3, -12, -28], [3, 3, 12, 28])
    assert up > 100
    assert round_about > 20


@pytest.mark.parametrize(
    ("name", "cap"), [("SparseMountainCar", 1000), ("SparsePendulum", 200), ("SparseAcrobot", 500)]
)
def test_the_tasks_are_gymnasium_environments(name, cap):
    env = gym.make(f"spie/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=0)
    for t in range(1, cap + 1):
        _, r, terminated, truncated, _ = env.step(1)  # nothing is done, so nothing is reached
        assert not terminated
        assert r == 0
        assert truncated == (t == cap)
    with pytest.raises(ValueError, match="no action 3; there are 0"):
        env.unwrapped.step(3)


def test_the_environment_of_a_task_is_truncated_where_it_is_told_and_draws_nothing():
    env = gym.make("spie/SparseMountainCar-v0", max_steps=3)
    env.reset(seed=0)
    assert [env.step(1)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(TypeError, match='mountain-car: no render mode "rgb_array"; it draws nothing'):
        spie.mountain_car().env("rgb_array")
    with pytest.raises(ValueError, match="mountain-car: max_steps is 0; give 1 or more"):
        spie.mountain_car().env(max_steps=0)


def glide(x, a):
    x[0] += 0.1 * (a - 1)
    return (1.0 if x[0] > 1.0 else 0.0), x[0] > 1.0


@pytest.mark.slow
def test_a_task_of_ones_own_is_a_few_lines():
    task = spie.ContinuousTask("glide", (-2.0,), (2.0,), ("back", "stay", "on"), (0.0,), (0.5,), glide)
    agent = spie.LinearQ(reward="constant", beta=1.0, dimension=16)
    trace = agent.run(task, 200, 2, episodes=30, keep=spie.Keep(matrices=("Q", "Psi", "Xi")))
    assert trace.failures == []
    assert trace.terminated[:, -10:].mean() > 0.8  # a random walk gets there in half of the episodes
    assert trace.episode_steps[:, -10:].mean() < trace.episode_steps[:, :3].mean()
    np.testing.assert_array_equal(trace.episode_rewards, trace.terminated)


def test_the_digest_is_of_numbers_and_dynamics():
    car = spie.mountain_car()
    assert car.digest == spie.mountain_car().digest
    others = [dataclasses.replace(car, step=glide), dataclasses.replace(car, start_low=(-0.7, 0.0)), spie.pendulum()]
    assert len({car.digest, *(task.digest for task in others)}) == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": (0.0,)}, "bounds of 1 and 2 numbers do not fit together"),
        ({"low": (-math.inf, 0.0)}, r"number 0 of the observation has bounds \[-inf, 0.6\], not a finite range"),
        ({"actions": ()}, "0 actions; there can be 1 to 64"),
        ({"start_low": (0.0, 1.0)}, r"episodes cannot start in \[0.0, -0.4\]"),
        ({"start_low": (0.0,) * 8, "start_high": (1.0,) * 8}, "a state of 8 numbers is too long"),
    ],
)
def test_a_task_that_cannot_be_is_refused_in_one_line(change, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(spie.mountain_car(), **change)
