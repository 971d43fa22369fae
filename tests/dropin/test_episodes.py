"""Bonuses that know the episode: they start over at a reset, each copy by itself, and go on when they were saved."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.testing import assert_allclose, assert_array_equal
from test_spaces import LARGE, SMALL, Shuffled
from test_wrappers import Car, Picture, bonuses, corridor, play, random_actions, vector

import spie
from spie.dropin import episodes
from spie.dropin.observations import reader
from spie.dropin.spaces import numbering

TABLES = ("sr", "fr", "sr-r", "sr-pr", "count", "novelty", "sp-novelty", "e3b", "etd", "constant")
FEATURES = ("sf", "sf-pf", "count", "novelty", "sp-novelty", "e3b", "constant")
ROUND = [1, 3, 1, 1, 1]  # in the corridor: forth, back, and on to the goal


def going(env, actions):
    """Steps of an environment whose episode is under way."""
    found = []
    for action in actions:
        _, _, terminated, truncated, infos = env.step(action)
        found.append(infos["intrinsic_reward"])
        if not hasattr(env, "num_envs") and (terminated or truncated):
            env.reset()
    return np.array(found)


def everything(state):
    """What of a state is no scale: running means go on over episodes."""
    scales = {"steps", "sum_of_squares", "spread", "s", "auto_beta"}
    return {name: array for name, array in state["arrays"].items() if name.rpartition("/")[2] not in scales}


@pytest.mark.parametrize("name", [*TABLES, pytest.param("teacher", marks=pytest.mark.slow)])
def test_every_episode_begins_as_the_first_on_tables(name):
    env = spie.IntrinsicReward(corridor(), name, episodic=True)
    env.reset(seed=0)
    first = everything(env.state_dict())
    paid = [bonuses(env, ROUND) for _ in range(3)]
    if "novelty" not in name:  # whose scale is learned over all episodes
        assert paid[0] == paid[1] == paid[2]
    for key, array in everything(env.state_dict()).items():
        assert_array_equal(array, first[key], err_msg=key)
    lasting = spie.IntrinsicReward(corridor(), name)
    again = [bonuses(lasting, ROUND) for _ in range(3)]
    assert name in ("constant", "e3b") or again[0] != again[2]


@pytest.mark.parametrize("make", [Car, Picture])
@pytest.mark.parametrize("name", [*FEATURES, pytest.param("rnd", marks=pytest.mark.slow)])
def test_every_episode_begins_as_the_first_on_features(make, name):
    env = spie.IntrinsicReward(make(), name, episodic=True)
    env.reset(seed=0)
    first = everything(env.state_dict())
    paid = []
    for _ in range(2):
        env.reset(seed=0)
        paid.append(going(env, [0, 1, 1, 0, 0]).tolist())
    if "novelty" not in name:
        assert paid[0] == paid[1]
    env.reset(seed=0)
    for key, array in everything(env.state_dict()).items():
        assert_array_equal(array, first[key], err_msg=key)


@pytest.mark.parametrize("space", [*SMALL.values(), *LARGE.values()], ids=[*SMALL, *LARGE])
@pytest.mark.parametrize("times", [None, "e3b"])
def test_copies_in_a_vector_are_each_as_alone_on_any_space(space, times):
    for name in ("sr-r" if numbering(space) is not None else "sf-pf", "count", "e3b"):
        options = {"episodic": True, "times": times}
        alone = []
        for begin in range(2):  # the second copy is some steps ahead of the first
            env = spie.IntrinsicReward(Shuffled(space), name, 0.1, **options)
            env.unwrapped.t = begin
            env.reset(seed=0)
            alone.append(going(env, [t % 2 for t in range(12)]))
        vectored = SyncVectorEnv([lambda: Shuffled(space)] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
        vectored.envs[1].unwrapped.t = 1
        env = spie.IntrinsicReward(vectored, name, 0.1, **options)
        env.reset(seed=0)
        assert_allclose(going(env, [np.full(2, t % 2) for t in range(12)]).T, alone, rtol=1e-9)


@pytest.mark.parametrize("make", [lambda: corridor(9), Car, Picture, vector], ids=["table", "car", "picture", "vector"])
@pytest.mark.parametrize(
    "options",
    [{"episodic": True}, {"times": "e3b"}, {"reward": "etd"}, {"reward": "e3b", "times": "count"}],
    ids=str,
)
def test_saved_in_the_middle_of_an_episode_it_goes_on_bit_for_bit(make, options, tmp_path):
    counted = make not in (Car, Picture)
    if options.get("reward") == "etd" and not counted:
        pytest.skip("there is no F of what cannot be counted")
    options = {"reward": "sr-r" if counted else "sf-pf", "normalise": True, **options}
    env = spie.IntrinsicReward(make(), **options)
    actions = random_actions(env, 60)
    env.reset(seed=0)
    going(env, actions[:33])
    env.save(tmp_path / "bonus")
    loaded = spie.IntrinsicReward(env.env, **options)  # the environment itself goes on as it is
    loaded.load(tmp_path / "bonus")
    found = going(loaded, actions[33:])
    whole = spie.IntrinsicReward(make(), **options)
    whole.reset(seed=0)
    assert_array_equal(going(whole, actions)[33:], found)


# E3B


def test_e3b_by_hand():
    env = spie.IntrinsicReward(corridor(), "e3b")
    assert env.bonus.settings.episodic
    # 1 / (ridge + visits of this episode before): 1 and 0 (where it began) seen, then 1 again, 2 and the goal
    expected = [1 / 0.1, 1 / 1.1, 1 / 1.1, 1 / 0.1, 1 / 0.1]
    for _ in range(2):
        assert_allclose(bonuses(env, ROUND), expected)


def test_e3b_on_features_is_the_ellipse_of_the_episode():
    env = spie.IntrinsicReward(Car(), "e3b")
    phi_of = reader("car", Car.observation_space, None, 256).read
    for _ in range(2):
        observation, _ = env.reset(seed=0)
        C = 0.1 * np.eye(256)
        for action in (2, 2, 0, 0, 1, 1, 2):
            phi = phi_of(observation)
            C += np.outer(phi, phi)
            observation, _, _, _, info = env.step(action)
            phi = phi_of(observation)
            assert_allclose(info["intrinsic_reward"], phi @ np.linalg.solve(C, phi), rtol=1e-9)


# ETD


def test_etd_is_the_distance_from_the_nearest_state_of_the_episode():
    """The smallest of -log F[x, s'], F the TD rule of equation 6 from the identity; F itself is of all episodes."""
    eta, gamma = 0.3, 0.9
    env = spie.IntrinsicReward(corridor(), "etd", eta=eta, gamma_sr=gamma)
    F = np.eye(4)
    for _ in range(3):
        s, _ = env.reset(seed=0)
        left = set()
        for action in ROUND:
            s_next, _, terminated, _, info = env.step(action)
            left.add(s)
            target = np.eye(4)[s] + gamma * (not terminated) * (1 - np.eye(4)[s]) * F[s_next]
            F[s] += eta * (target - F[s])
            assert_allclose(info["intrinsic_reward"], min(-math.log(max(F[x, s_next], 0.01)) for x in left))
            s = s_next


def test_etd_of_a_learned_ring_is_the_number_of_steps_to_the_nearest_state():
    """Round a ring F[x, s'] is gamma to the number of steps: what follows at once is 1 step away, what was left 0."""
    gamma, n = 0.9, 6
    after = np.roll(np.arange(n), -1).reshape(n, 1, 1)
    ring = spie.MDP("ring", after, np.ones((n, 1, 1)), np.zeros((n, 1, 1)), np.eye(n)[0])
    env = spie.IntrinsicReward(spie.MDPEnv(ring, max_steps=n), "etd", eta=0.5, gamma_sr=gamma)
    for _ in range(60):
        paid = bonuses(env, [0] * n)
    assert_allclose(paid[:-1], -math.log(gamma), rtol=1e-6)
    assert_allclose(paid[-1], 0, atol=1e-6)


def test_copies_share_f_but_not_their_episodes():
    """Two copies that do the same learn F twice as fast; in turns they pay as one that saw both."""
    env = spie.IntrinsicReward(vector(AutoresetMode.SAME_STEP, n=2), "etd")
    env.reset(seed=0)
    paid = going(env, random_actions(env, 38))
    one, other = env.bonus.learners
    assert one.F is other.F
    assert one.left != other.left
    turned = spie.IntrinsicReward(vector(AutoresetMode.SAME_STEP, n=2), "etd")
    turned.reset(seed=0)
    assert_array_equal(going(turned, random_actions(env, 38)[:, ::-1])[:, ::-1], paid)


def test_etd_where_nothing_can_be_counted_names_another():
    with pytest.raises(ValueError, match=r'^Car: "etd" needs observations that can be counted \(Discrete\); use e3b$'):
        spie.IntrinsicReward(Car(), "etd")


# The product


@pytest.mark.parametrize("factor", ["e3b", "count"])
@pytest.mark.parametrize("name", ["count", "sp-novelty", "e3b"])
def test_the_product_is_that_of_what_both_pay(name, factor):
    one, other, both = (
        spie.IntrinsicReward(corridor(), reward, **options)
        for reward, options in ((name, {}), (factor, {"episodic": True}), (name, {"times": factor}))
    )
    actions = [*ROUND, *ROUND]
    assert_allclose(bonuses(both, actions), np.multiply(bonuses(one, actions), bonuses(other, actions)))


def test_the_order_of_copies_makes_no_difference_to_a_product():
    paid = []
    for turn in (1, -1):
        env = spie.IntrinsicReward(vector(n=4), "sr-r", times="e3b")
        env.reset(seed=0)
        paid.append(going(env, random_actions(env, 50)[:, ::turn])[:, ::turn])
    assert_array_equal(*paid)


# Mistakes


def test_nothing_that_knows_its_episode_is_asked_about_other_steps():
    env = spie.IntrinsicReward(corridor(), "count", episodic=True)
    env.reset(seed=0)
    said = '^MDPEnv: "count" depends on the episode so far; it cannot score recorded steps$'
    with pytest.raises(ValueError, match=said):
        env.bonus.query([0], [1], [1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": "sr-r"}, 'times must be "e3b" or "count", which are never negative, not sr-r'),
        ({"times": 3}, 'times must be "e3b" or "count", which are never negative, not 3'),
        ({"episodic": "yes"}, "episodic must be true or false, not yes"),
    ],
)
def test_a_wrong_option_is_one_clear_line(options, message):
    with pytest.raises(ValueError, match=f"^IntrinsicReward: {message}$"):
        spie.IntrinsicReward(corridor(), "count", **options)


@pytest.mark.parametrize(
    ("name", "meant"), [("novelti", "novelty"), ("sp_novelty", "sp-novelty"), ("e3", "e3b"), ("teachr", "teacher")]
)
def test_a_misspelt_name_is_answered_with_what_was_meant(name, meant):
    with pytest.raises(ValueError, match=f'no intrinsic reward "{name}"; did you mean "{meant}"'):
        spie.IntrinsicReward(corridor(), name)


def test_where_no_reset_is_seen_it_says_so(monkeypatch):
    monkeypatch.setattr(episodes, "NO_RESET", 20)
    env = spie.IntrinsicReward(Picture(), "count", episodic=True)  # which never ends
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="an episodic bonus saw no reset for 20 steps, so that nothing starts over"):
        going(env, [0] * 25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        play(spie.IntrinsicReward(gym.wrappers.TimeLimit(Picture(), 19), "count", episodic=True), [0] * 60)


def test_an_environment_that_resets_itself_below_is_found_out():
    env = spie.IntrinsicReward(gym.wrappers.Autoreset(corridor(3)), "e3b")
    env.reset(seed=0)
    with pytest.raises(ValueError, match="; a wrapper that resets by itself belongs above this one"):
        [env.step(1) for _ in range(6)]
    above = gym.wrappers.Autoreset(spie.IntrinsicReward(corridor(3), "e3b"))
    above.reset(seed=0)
    assert [above.step(1)[1] for _ in range(7)][-1] > 5  # a new episode, in which all is new


def test_tables_of_many_copies_past_memory_are_refused_together():
    space = gym.spaces.Discrete(4000)
    many = [gym.wrappers.TransformObservation(corridor(), lambda s: s, space)] * 20
    with pytest.raises(ValueError, match=r"^M of 4,000 states, one for each of 20 environments, would need 2\.6 GB"):
        spie.IntrinsicReward(SyncVectorEnv([lambda: many[0]] * 20), "sr-r", episodic=True)
