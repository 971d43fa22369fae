"""Novelty in the wrappers: what is paid, and that looking ahead changes no optimal policy."""

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import spie

LAKE = {"map_name": "4x4", "is_slippery": False}


def lake():
    return gym.make("FrozenLake-v1", **LAKE)


def car():
    return gym.make("MountainCar-v0", max_episode_steps=60)


def walked(env, steps, seed=0):
    """Random steps; what was seen, done, seen next, and whether it ended."""
    rng = np.random.default_rng(seed)
    env.action_space.seed(seed)
    found, (observation, _) = [], env.reset(seed=seed)
    for _ in range(steps):
        action = int(rng.integers(env.action_space.n))
        seen, _, terminated, truncated, _ = env.step(action)
        found.append((observation, action, seen, terminated))
        observation = env.reset()[0] if terminated or truncated else seen
    return found


def test_by_hand_in_a_corridor():
    env = spie.IntrinsicReward(spie.MDPEnv(spie.grid("S..G", task="goal")), "novelty", beta=1.0)
    env.reset(seed=0)
    # e after a visit is 1 / sqrt(1 + n): state 1 and state 2 for the first time, then state 1 for the second
    e = np.array([1 / np.sqrt(2), 1 / np.sqrt(2), 1 / np.sqrt(3)])
    paid = [env.step(action)[-1]["intrinsic_reward"] for action in (1, 1, 3)]
    assert_allclose(paid[:2], [0, 0])  # no spread as yet
    assert_allclose(paid[2], (e[2] - e.mean()) / e.std())


@pytest.mark.parametrize("make", [lake, car])
def test_looking_ahead_adds_a_difference_of_potentials(make):
    """Along any episode the discounted sum of what is added is -U(s_0), whatever is done on the way."""
    gamma, beta = 0.9, 0.3
    both = [spie.IntrinsicReward(make(), name, beta=beta, gamma=gamma) for name in ("novelty", "sp-novelty")]
    steps = [walked(env, 400) for env in both][1]
    plain, ahead = (env.bonus for env in both)
    U = ahead.learner.seen.potential
    assert np.abs(U(ahead.encode(steps[0][0]))).sum() > 0
    path = [steps[0]]
    for step in steps[1:40]:
        path.append(step)
        if step[-1]:
            break
    s, a, s_next = (np.array(column) for column in list(zip(*path, strict=True))[:3])
    ended = np.zeros(len(path), bool)
    ended[-1] = True  # as if it had ended there
    added = ahead.query(s, a, s_next, ended) - plain.query(s, a, s_next, ended)
    start = U(ahead.encode(s[0]))
    assert_allclose(added @ gamma ** np.arange(len(path)), -(start[0] + beta * start[1]), rtol=1e-9)


def test_what_the_environment_paid_is_felt_by_what_leads_there():
    env = spie.IntrinsicReward(spie.MDPEnv(spie.grid("S...G", task="goal")), "sp-novelty", beta=0.01)
    for _ in range(40):
        env.reset(seed=0)
        while not env.step(1)[2]:
            pass
    U = env.bonus.learner.seen
    U.look_ahead()
    value = U.potential(np.arange(5))[:, 0]  # -1 a step, 0 into the goal
    assert (np.diff(value[:4]) > 0).all()
    assert value[0] < -1.5


@pytest.mark.parametrize("make", [lake, car])
def test_novelty_fades_where_one_has_been(make):
    env = spie.IntrinsicReward(make(), "novelty")
    first = walked(env, 200)
    (s, a, s_next, _), seen = first[0], env.bonus.learner.seen
    e = seen.novelty(env.bonus.encode(s_next))
    for _ in range(50):
        env.bonus.begin(0, env.bonus.encode(s))
        env.bonus.step(0, a, env.bonus.encode(s_next), False)
    assert seen.novelty(env.bonus.encode(s_next)) < 0.9 * e


def test_what_cannot_be_read_is_one_line():
    env = spie.IntrinsicReward(car(), "novelty", features=lambda observation: observation * np.nan)
    with pytest.raises(ValueError, match="features: the given function returns"):
        env.reset(seed=0)
