"""A beta that means something, and ends of episodes that a bonus neither buys nor forbids."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given
from hypothesis import strategies as st
from test_wrappers import Car, corridor, play

import spie
from spie.dropin import scale
from spie.dropin.scale import AutoBeta

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(numbers, st.floats(-1e150, 1e150)), min_size=1, max_size=20), st.none() | st.just(5.0))
def test_an_automatic_beta_is_never_zero_infinite_or_nan(steps, reward_scale):
    auto = AutoBeta(reward_scale)
    for r, r_int in steps:
        auto.observe([min(max(r, -1e300), 1e300)], [r_int])
        assert 0 < auto.beta < math.inf


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_an_automatic_beta_makes_the_bonus_as_large_as_the_average_reward(unit):
    cost = AutoBeta(None)
    for _ in range(2000):
        cost.observe([-3 * unit], [-7.0])
    assert 7 * cost.beta == pytest.approx(3 * unit, rel=1e-4)  # a cost of 3 a step
    goal = AutoBeta(None)
    for t in range(2000):
        goal.observe([unit if t == 1500 else 0.0], [0.5])
    assert 0.5 * goal.beta == pytest.approx(0.01 * unit)  # one goal
    assert AutoBeta(None).beta == scale.UNSEEN == 0.01
    side_by_side = AutoBeta(None)
    for _ in range(2000):
        side_by_side.observe([-3 * unit] * 4, [-7.0] * 4)
    assert side_by_side.beta == pytest.approx(cost.beta, rel=1e-4)  # any number of environments


def test_an_automatic_beta_is_final_after_a_stated_number_of_rewards():
    auto = AutoBeta(None)
    for _ in range(scale.LAST_STEP):
        auto.observe([1.0], [1.0])
    before = auto.beta
    auto.observe([1e9], [1e9])
    assert auto.beta == before


def test_info_tells_the_automatic_beta_and_what_is_paid_is_made_with_it():
    env = spie.IntrinsicReward(corridor(5), "sr-r", "auto", anneal=40)
    for r, info in play(env, [1, 3] * 10):
        assert r == info["extrinsic_reward"] + info["beta"] * info["intrinsic_reward"]
    assert "beta" not in play(spie.IntrinsicReward(corridor(5), "sr-r", 2.0), [1])[0][1]
    given_scale = spie.IntrinsicReward(corridor(5), "constant", "auto", reward_scale=0.25)
    assert [r for r, _ in play(given_scale, [3, 3])] == [-1.25, -1.25]


def three_states():
    """State 0, 1 and the end 2; from 0: leave for 1 (action 0), go on (1); from 1: leave for 3 (0), stay (1)."""
    successors = np.array([[[2], [1]], [[2], [1]], [[2], [2]]])
    reward = np.array([[[1.0], [0.0]], [[3.0], [0.0]], [[0.0], [0.0]]])
    prob = np.ones((3, 2, 1))
    terminal = np.array([False, False, True])
    return spie.MDP("three", successors, prob, reward, np.eye(3)[0], terminal)


def returns(ends, beta, gamma, steps=4000):
    """Discounted return of every deterministic policy from state 0, by what the wrapper pays."""
    found = {}
    for policy in [(a, b) for a in (0, 1) for b in (0, 1)]:
        options = {"ends": ends, "gamma": gamma} if ends == "neutral" else {}
        env = spie.IntrinsicReward(spie.MDPEnv(three_states()), "constant", beta, **options)
        s, _ = env.reset(seed=0)
        value, discount = 0.0, 1.0
        for _ in range(steps):
            s, r, terminated, _, _ = env.step(policy[s])
            value += discount * r
            discount *= gamma
            if terminated:
                break
        found[policy] = value
    return found


@pytest.mark.parametrize("beta", [-5.0, 0.3, 40.0])
@pytest.mark.parametrize("gamma", [0.5, 0.95])
def test_with_neutral_ends_a_constant_bonus_ranks_policies_as_none_does(beta, gamma):
    bare = {(0, 0): 1.0, (0, 1): 1.0, (1, 0): 3 * gamma, (1, 1): 0.0}  # in closed form
    assert returns("as they are", 0.0, gamma) == pytest.approx(bare)
    neutral = returns("neutral", beta, gamma)
    for policy, value in bare.items():  # every policy gets the same on top: -beta for ever
        assert neutral[policy] == pytest.approx(value - beta / (1 - gamma))


def test_without_neutral_ends_a_cost_buys_an_early_end():
    paid = returns("as they are", 40.0, 0.95)
    assert paid[0, 0] > paid[1, 0]  # though 1 is less than 3


def test_a_vector_and_a_saved_bonus_pay_for_ends_alike(tmp_path):
    options = {"ends": "neutral", "gamma": 0.9}
    alone = spie.IntrinsicReward(corridor(6), "sr-r", 0.5, **options)
    expected = [r for r, _ in play(alone, [1] * 12)]
    plain = [r for r, _ in play(spie.IntrinsicReward(corridor(6), "sr-r", 0.5), [1] * 12)]
    assert [i for i in range(12) if expected[i] != plain[i]] == [5, 8, 11]  # ends, the first where the mean is 0 apart
    same_step = SyncVectorEnv([lambda: corridor(6)], autoreset_mode=AutoresetMode.SAME_STEP)
    vector = spie.IntrinsicReward(same_step, "sr-r", 0.5, **options)
    vector.reset(seed=0)
    np.testing.assert_allclose([vector.step(np.array([1]))[1][0] for _ in range(12)], expected)
    for choices in (options, {"beta": "auto"}):
        first = spie.IntrinsicReward(corridor(6), "sr-r", **{"beta": 0.5} | choices)
        play(first, [1] * 7)
        first.save(tmp_path / "bonus")
        again = spie.IntrinsicReward(corridor(6), "sr-r", **{"beta": 0.5} | choices)
        again.load(tmp_path / "bonus")
        assert [r for r, _ in play(again, [1] * 6)] == [r for r, _ in play(first, [1] * 6)]


def test_older_states_lack_the_new_settings_and_load():
    state = spie.IntrinsicReward(corridor(), "sr-r").state_dict()
    for name in ("ends", "gamma", "reward_scale"):
        del state["settings"][name]
    spie.IntrinsicReward(corridor(), "sr-r").load_state_dict(state)
    with pytest.raises(ValueError, match=r"saved with ends = as they are, but this wrapper has ends = neutral"):
        spie.IntrinsicReward(corridor(), "sr-r", ends="neutral", gamma=0.9).load_state_dict(state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": "big"}, 'beta must be a number or "auto", not "big"'),
        ({"reward_scale": 2.0}, 'reward_scale is for beta="auto"'),
        ({"beta": "auto", "reward_scale": 0.0}, "reward_scale must be above 0, not 0.0"),
        ({"ends": "soft"}, 'ends must be "as they are" or "neutral", not "soft"'),
        ({"ends": "neutral"}, 'ends="neutral" needs gamma=, the discount of your agent, in [0, 1), not None'),
        ({"ends": "neutral", "gamma": 1.0}, "in [0, 1), not 1.0"),
    ],
)
def test_a_scale_that_means_nothing_is_refused(options, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        spie.IntrinsicReward(corridor(), "sr-r", **options)
    assert message in str(error.value)


def test_a_teacher_has_ends_of_its_own():
    with pytest.raises(ValueError, match="knows about ends of episodes"):
        spie.IntrinsicReward(gym.make("FrozenLake-v1"), "teacher", ends="neutral", gamma=0.9)


def test_what_is_no_environment_is_refused_with_what_to_write():
    for wrong, message in (
        ("CartPole-v1", r'a text; write gym.make\("CartPole-v1"\)'),
        (gym.Env, r"a class; write Env\(\)"),
    ):
        with pytest.raises(ValueError, match=f"^IntrinsicReward wraps a Gymnasium environment, not {message}$"):
            spie.IntrinsicReward(wrong, "count")


def test_wrong_orders_are_refused_with_the_cure():
    with pytest.raises(ValueError, match=r"write NormalizeReward\(IntrinsicReward\(env, \.\.\.\)\)"):
        spie.IntrinsicReward(gym.wrappers.NormalizeReward(Car()), "count")
    with pytest.raises(
        ValueError, match=r"not list; for a VecEnv of Stable-Baselines3 take spie\.sb3\.IntrinsicReward"
    ):
        spie.IntrinsicReward([Car()], "count")
