"""Intrinsic rewards in other people's environments: right numbers, right episode edges, saved and continued."""

import dataclasses
import json
import math
import random
from importlib.metadata import EntryPoint

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import own_reward  # noqa: F401  # makes the reward "everything" known
import spie
from reference import reference
from spie import registry
from spie.dropin.bonus import Bonus
from spie.dropin.settings import Settings
from spie.features import td_pf, td_sf

CORRIDOR = "S..G"  # states 0, 1, 2, 3; action 1 goes right, action 3 left
ROOM = """
S..#..
......
...#.G
"""


def corridor(max_steps=None):
    return spie.MDPEnv(spie.grid(CORRIDOR, task="goal"), max_steps=max_steps)


def play(env, actions):
    """Steps of a single environment, which is reset where an episode ends: (reward, info) of each."""
    env.reset(seed=0)
    steps = []
    for a in actions:
        _, r, terminated, truncated, info = env.step(a)
        steps.append((r, info))
        if terminated or truncated:
            env.reset()
    return steps


def bonuses(env, actions):
    return [info["intrinsic_reward"] for _, info in play(env, actions)]


def random_actions(env, n, seed=1):
    space = env.action_space if not hasattr(env, "single_action_space") else env.single_action_space
    shape = n if not hasattr(env, "num_envs") else (n, env.num_envs)
    return np.random.default_rng(seed).integers(space.n, size=shape)


class Car(gym.Env):
    """Two numbers, three actions or one force; ends on the right. Small enough to follow."""

    observation_space = gym.spaces.Box(-1, 1, (2,))

    def __init__(self, force=False):
        self.action_space = gym.spaces.Box(-1, 1, (1,)) if force else gym.spaces.Discrete(3)

    def _see(self):
        return np.array([self.x, self.v], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.v = 0.0
        return self._see(), {}

    def step(self, action):
        self.v = float(np.clip(self.v + 0.1 * (float(np.ravel(action)[0]) - 1), -0.3, 0.3))
        self.x = min(max(-1.0, self.x + self.v), 1.0)
        return self._see(), float(self.x > 0.95), self.x > 0.95, False, {}


class Picture(gym.Env):
    """A dot that walks over a small picture."""

    observation_space = gym.spaces.Box(0, 255, (9, 9, 3), np.uint8)
    action_space = gym.spaces.Discrete(4)

    def _see(self):
        image = np.zeros((9, 9, 3), np.uint8)
        image[self.at] = 255
        return image

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0, 0
        return self._see(), {}

    def step(self, action):
        move = [(0, 1), (1, 0), (0, -1), (-1, 0)][action]
        self.at = tuple(np.clip(np.add(self.at, move), 0, 8).tolist())
        return self._see(), 0.0, False, False, {}


# The numbers


def test_a_table_learns_as_algorithm_1_does():
    mdp, max_steps = spie.grid(ROOM, task="goal"), 60
    agent = spie.Sarsa(reward="everything", eta=0.3, eta_pr=0.2, gamma_sr=0.9, gamma_pr=0.8, epsilon=1)
    expected = reference(agent, mdp, max_steps, seed=3, episodes=12)
    env = spie.MDPEnv(mdp, max_steps=max_steps)
    env = spie.IntrinsicReward(env, "everything", beta=2, eta=0.3, eta_pr=0.2, gamma_sr=0.9, gamma_pr=0.8)
    steps = play(env, expected.actions)
    found = np.array([(r, info["extrinsic_reward"], info["intrinsic_reward"]) for r, info in steps])
    np.testing.assert_allclose(found[:, 2], expected.bonuses, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(found[:, 1], expected.rewards)
    np.testing.assert_allclose(found[:, 0], expected.rewards + 2 * expected.bonuses, rtol=1e-10, atol=1e-12)
    assert 0 < expected.lengths.count(max_steps) < 12  # some were truncated, some ended


@pytest.mark.parametrize("reward", spie.rewards.reward_names("tables"))
def test_what_a_reward_does_not_ask_for_makes_no_difference(reward):
    actions = random_actions(corridor(), 40)
    alone, everything = (spie.IntrinsicReward(corridor(9), name, eta=0.3) for name in (reward, "everything"))
    assert all(map(math.isfinite, bonuses(alone, actions)))
    play(everything, actions)
    for name, array in alone.bonus.learner.arrays.items():
        if array.any():  # what is not kept stays 0
            np.testing.assert_array_equal(array, everything.bonus.learner.arrays[name])
    for need in alone.bonus.reward.needs:
        assert alone.bonus.learner.arrays[need.removesuffix("_next")].any()


@pytest.mark.parametrize("force", [False, True])
def test_features_learn_by_the_equations_of_the_paper(force):
    env = Car(force)
    phi_of = spie.fourier_features(env.observation_space, dimension=12, length_scale=0.5)
    wrapped = spie.IntrinsicReward(Car(force), "sf-pf", features=phi_of, eta=0.3, eta_pr=0.2, gamma_sr=0.9)
    actions = np.random.default_rng(0).integers(3, size=30)
    n_actions = 1 if force else 3  # of a force psi is of the state alone
    Psi, Xi = np.zeros((n_actions, 12, 12)), np.zeros((12, 12))
    (s, _), _ = env.reset(), wrapped.reset()
    for action in actions:
        s_next, _, ends, _, _ = env.step([action] if force else action)
        info = wrapped.step([action] if force else action)[4]
        a, phi, phi_next = 0 if force else action, phi_of(s), phi_of(s_next)
        error = np.mean([td_sf(Psi, phi, a, phi_next, b, 0.9, not ends) for b in range(n_actions)], axis=0)
        Psi[a] += 0.3 * np.outer(error, phi)
        Xi += 0.2 * np.outer(td_pf(Xi, phi, phi_next, 0.9), phi_next)
        expected = 1 / np.abs(Xi @ phi_next).sum() - 1 / np.abs(Psi[a] @ phi).sum()
        np.testing.assert_allclose(info["intrinsic_reward"], expected, rtol=1e-10)
        s = s_next
        if ends:
            (s, _), _ = env.reset(), wrapped.reset()
    np.testing.assert_allclose(wrapped.bonus.learner.Psi, Psi, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(wrapped.bonus.learner.Xi, Xi, rtol=1e-10, atol=1e-13)


def test_a_reward_of_ones_own_on_features_gets_what_it_asks_for_by_name():
    @spie.reward("own-on-features")
    def own(phi_norm_next, visits_next, xi_norm_next, psi_norm):
        if psi_norm > 5:
            return math.log(psi_norm) + phi_norm_next
        return xi_norm_next / visits_next

    wrapped = spie.IntrinsicReward(Car(), "own-on-features", eta=0.4)
    phi_of = spie.fourier_features(Car.observation_space)
    Psi, Xi, visits, branches = np.zeros((3, 128, 128)), np.zeros((128, 128)), {}, set()
    s, _ = wrapped.reset()
    visits[wrapped.bonus.encode(s).cell] = 1
    for a in [1, 1, 1, 2, 2, 0, 1]:
        s_next, _, _, _, info = wrapped.step(a)
        phi, phi_next = phi_of(s), phi_of(s_next)
        error = np.mean([td_sf(Psi, phi, a, phi_next, b, 0.95) for b in range(3)], axis=0)
        Psi[a] += 0.4 * np.outer(error, phi)
        Xi += 0.4 * np.outer(td_pf(Xi, phi, phi_next, 0.95), phi_next)
        cell = wrapped.bonus.encode(s_next).cell
        visits[cell] = visits.get(cell, 0) + 1
        psi_norm, xi_norm = np.abs(Psi[a] @ phi).sum(), np.abs(Xi @ phi_next).sum()
        branches.add(bool(psi_norm > 5))
        expected = math.log(psi_norm) + np.abs(phi_next).sum() if psi_norm > 5 else xi_norm / visits[cell]
        np.testing.assert_allclose(info["intrinsic_reward"], expected, rtol=1e-10)
        s = s_next
    assert branches == {True, False}
    assert max(visits.values()) > 1


def test_a_reward_of_a_plugin_is_known_by_name(monkeypatch, tmp_path):
    text = "import spie\n@spie.reward('of-a-plugin')\ndef mine(visits_next):\n    return 2 * visits_next\n"
    (tmp_path / "toy_reward_plugin.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("toy", "toy_reward_plugin", registry.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    monkeypatch.setattr(registry, "_loaded", False)
    assert bonuses(spie.IntrinsicReward(corridor(), "of-a-plugin"), [1, 3, 1]) == [2, 4, 4]
    with pytest.raises(ValueError, match='no intrinsic reward "of-a-plgin"; did you mean "of-a-plugin"'):
        spie.IntrinsicReward(corridor(), "of-a-plgin")


def test_the_state_is_saved_under_the_names_that_older_files_have():
    common = {"s", "steps", "sum_of_squares"}
    names = set(spie.IntrinsicReward(corridor(), "everything").state_dict()["arrays"])
    assert names == common | {"M", "F", "N", "M_row", "M_col", "F_row", "N_col", "visits"}
    features = common | {"s_cell", "Psi", "Xi", "cells", "cell_visits", "line", "directions"}
    names = set(spie.IntrinsicReward(Car(), "sf-pf").state_dict()["arrays"])
    assert names == features | {"phi_W", "phi_b", "phi_low", "phi_high"}
    names = set(spie.IntrinsicReward(Picture(), "sf-pf").state_dict()["arrays"])
    assert names == features | {"phi_filters", "phi_projection", "phi_bias", "phi_bounds", "phi_channels"}
    given = spie.IntrinsicReward(Car(), "sf-pf", features=lambda s: s + 2).state_dict()
    assert set(given["arrays"]) == features
    settings = {field.name for field in dataclasses.fields(Settings)}
    assert set(given["settings"]) == settings | {"learner"}
    assert given["settings"]["learner"] == "Features"


def test_a_count_bonus_counts_cells_of_a_grid_over_the_space():
    env = spie.IntrinsicReward(Car(), "count")
    # x stays 0 while it waits; the tenth parts of [-1, 1] meet there, at cell 5 of both numbers
    assert bonuses(env, [1, 1, 1]) == [1 / math.sqrt(n) for n in (2, 3, 4)]
    assert env.bonus.learner.counts == {5 + 10 * 5: 4}


def test_an_image_gets_a_fixed_convolution_and_can_be_counted():
    env = spie.IntrinsicReward(Picture(), "sf-pf")
    assert all(map(math.isfinite, bonuses(env, [0, 1, 2, 3, 0])))
    env = spie.IntrinsicReward(Picture(), "count")
    there_and_back = bonuses(env, [0, 2, 0, 2])
    assert there_and_back == [1, 1 / math.sqrt(2), 1 / math.sqrt(2), 1 / math.sqrt(3)]


def test_any_observation_can_be_given_features():
    class Two(gym.Env):
        observation_space = gym.spaces.Dict(
            {"where": gym.spaces.Discrete(3), "light": gym.spaces.Box(0, 1, (2,)), "t": gym.spaces.Tuple(())}
        )
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return {"where": 0, "light": np.ones(2, np.float32), "t": ()}, {}

        def step(self, action):
            return {"where": int(action), "light": np.ones(2, np.float32), "t": ()}, 0.0, False, False, {}

    one_hot = {"features": lambda observation: 7 * np.eye(3)[int(observation["where"])], "eta": 0.5}
    env = spie.IntrinsicReward(Two(), "sf", **one_hot)
    # First steps of state 0 with each action: psi = eta phi, of length 1 whatever the function returns; and again
    assert bonuses(env, [0, 1]) == [2, 2]
    with pytest.raises(ValueError, match="which has no direction"):
        spie.IntrinsicReward(Two(), "sf", features=lambda observation: np.zeros(3)).reset()


def test_beta_anneals_and_the_own_reward_can_be_left_out():
    steps = play(spie.IntrinsicReward(corridor(9), "constant", beta=0.5, anneal=4, replace=True), [3] * 6)
    assert [r for r, _ in steps] == [-0.5, -0.375, -0.25, -0.125, 0, 0]
    told = {"extrinsic_reward": -1, "intrinsic_reward": -1, "reward_replaced_by": "constant"}
    assert all(info == told for _, info in steps)


def test_normalise_divides_by_the_root_mean_square_so_far():
    # to state 1 twice, by way of the start: visits 1, 2, 2
    found = bonuses(spie.IntrinsicReward(corridor(), "count", normalise=True), [1, 3, 1])
    raw = np.array([1, 1 / math.sqrt(2), 1 / math.sqrt(2)])
    np.testing.assert_allclose(found, raw / np.sqrt(np.cumsum(raw**2) / [1, 2, 3]), rtol=1e-12)
    assert bonuses(spie.IntrinsicReward(corridor(), "none", normalise=True), [1, 3]) == [0, 0]


def test_observations_may_be_counted_from_another_number_than_0():
    class Shifted(gym.ObservationWrapper):
        observation_space = gym.spaces.Discrete(4, start=-10)

        def observation(self, observation):
            return observation - 10

    actions = random_actions(corridor(), 30)
    plain = bonuses(spie.IntrinsicReward(corridor(9), "sr-r"), actions)
    assert bonuses(spie.IntrinsicReward(Shifted(corridor(9)), "sr-r"), actions) == plain


# Episode edges


def vector(mode=AutoresetMode.NEXT_STEP, n=3, max_steps=5):
    return SyncVectorEnv([lambda: spie.MDPEnv(spie.grid(ROOM, "goal"), max_steps=max_steps)] * n, autoreset_mode=mode)


def roll(env, actions, seed=0):
    """Steps of a vector environment that the caller resets where it does not itself: intrinsic rewards and masks."""
    env.reset(seed=seed)
    found = []
    for action in actions:
        _, r, terminated, truncated, infos = env.step(action)
        bonus, real = infos["intrinsic_reward"], infos["_intrinsic_reward"]
        np.testing.assert_allclose(r, infos["extrinsic_reward"] + env.bonus.beta * bonus)
        found.append(np.where(real, bonus, np.nan))
        if env.metadata["autoreset_mode"] == AutoresetMode.DISABLED and (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
    return np.array(found)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("name", ["everything", "sf-pf", "sp-novelty"])
def test_one_environment_in_a_vector_is_as_it_is_alone(mode, name):
    def make():
        return corridor(max_steps=5) if name != "sf-pf" else gym.wrappers.TimeLimit(Car(), 5)

    alone, vectored = make(), SyncVectorEnv([make], autoreset_mode=mode)
    actions = random_actions(alone, 40)
    expected = bonuses(spie.IntrinsicReward(alone, name), actions)
    env, found = spie.IntrinsicReward(vectored, name), []
    env.reset(seed=0)
    left = list(actions)
    while left:
        waiting = env.bonus.states[0] is None  # the action of a step that only resets is not used
        _, _, terminated, truncated, infos = env.step(np.array([0 if waiting else left.pop(0)]))
        assert infos["_intrinsic_reward"][0] != waiting
        found += [] if waiting else [infos["intrinsic_reward"][0]]
        if mode == AutoresetMode.DISABLED and (terminated | truncated)[0]:
            env.reset(options={"reset_mask": terminated | truncated})
    assert found == expected


@pytest.mark.parametrize("mode", AutoresetMode)
def test_no_step_leads_from_one_episode_into_the_next(mode):
    env = spie.IntrinsicReward(vector(mode), "everything", eta=0.5)
    found = roll(env, random_actions(env, 60))
    learner, mdp = env.bonus.learner, spie.grid(ROOM, "goal")
    resets = 60 * 3 // 5 if mode != AutoresetMode.NEXT_STEP else 60 * 3 // 6
    assert np.isnan(found).sum() == (resets if mode == AutoresetMode.NEXT_STEP else 0)
    # each begin and each step counts one visit; what begins in the last step counts too where it is reset at once
    begins = 3 + resets
    assert learner.visits.sum() == begins + (~np.isnan(found)).sum()
    beyond = np.linalg.matrix_power(mdp.transition() + np.eye(mdp.n_states), 5) == 0  # the length of an episode
    assert beyond.any()
    assert (learner.M[beyond] == 0).all()
    assert env.bonus.steps == (~np.isnan(found)).sum()


def test_truncation_bootstraps_and_termination_does_not():
    # Teach M[1, 1] = 0.5 by a step from 1 to 0; then 0 -> 1, in one case truncated there, in the other ended there.
    def last(env):
        bonus = spie.IntrinsicReward(env, "sr-r", eta=0.5, gamma_sr=0.9).bonus
        for s, s_next, ends in ((1, 0, False), (0, 1, env is ended)):
            bonus.begin(0, s)
            bonus.step(0, 1, s_next, ends)
        return bonus.learner.M[0]

    truncated, ended = corridor(), corridor()
    np.testing.assert_allclose(last(truncated)[:2], [0.5, 0.5 * 0.9 * 0.5])
    np.testing.assert_allclose(last(ended)[:2], [0.5, 0])


@pytest.mark.parametrize("name", ["sr-r", "sr-pr", "sf-pf", "count", "sp-novelty"])
def test_the_order_of_environments_makes_no_difference(name):
    def make():
        if name == "sf-pf":
            return SyncVectorEnv([lambda: gym.wrappers.TimeLimit(Car(), 6)] * 4)
        return vector(n=4)

    straight, turned = (spie.IntrinsicReward(make(), name, normalise=True) for _ in range(2))
    actions = random_actions(straight, 40)
    permutation = np.array([2, 0, 3, 1])
    found = roll(straight, actions)
    np.testing.assert_array_equal(roll(turned, actions[:, permutation]), found[:, permutation])
    assert len(np.unique(found[~np.isnan(found)])) > 4


@pytest.mark.parametrize("n", [1, 8])
def test_environments_in_processes_are_as_those_in_line(n):
    makers = [corridor_of_five] * n
    in_line = spie.IntrinsicReward(SyncVectorEnv(makers), "sr-r")
    in_processes = spie.IntrinsicReward(AsyncVectorEnv(makers, context="forkserver"), "sr-r")
    actions = random_actions(in_line, 20)
    try:
        np.testing.assert_array_equal(roll(in_processes, actions), roll(in_line, actions))
    finally:
        in_processes.close()


def corridor_of_five():
    return corridor(max_steps=5)


def test_a_reset_in_the_middle_of_an_episode_is_no_step():
    env = spie.IntrinsicReward(corridor(), "sr-r")
    env.reset()
    env.step(1)
    env.step(1)
    env.reset()
    env.step(1)
    assert env.bonus.learner.visits.tolist() == [2, 2, 1, 0]
    assert env.bonus.learner.M[2].tolist() == [0, 0, 0, 0]


# Without learning


@pytest.mark.parametrize("make", [corridor, Car, Picture])
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.filterwarnings("ignore:.*WARN")  # of Gymnasium, on wrappers in general
def test_without_learning_it_is_an_environment_like_any_other(make, trained):
    reward = "sr" if make is corridor else "sf-pf"
    env = spie.IntrinsicReward(make(), reward)
    if trained:
        play(env, random_actions(env, 30))
    env.bonus.learn = False
    before = env.state_dict()["arrays"]
    check_env(env, skip_render_check=True, skip_close_check=True)
    after = env.state_dict()["arrays"]
    for name in before.keys() - {"s", "s_cell"}:
        np.testing.assert_array_equal(before[name], after[name])


def test_what_was_never_learned_pays_as_after_a_first_step():
    env = spie.IntrinsicReward(corridor(), "sr", eta=0.25, learn=False)
    assert bonuses(env, [1, 1]) == [4, 4]
    env = spie.IntrinsicReward(corridor(), "count", learn=False)
    assert bonuses(env, [1, 3, 1]) == [1, 1, 1]
    env = spie.IntrinsicReward(Car(), "sf", learn=False, eta=0.5)
    phi = spie.fourier_features(Car.observation_space)(np.zeros(2))
    np.testing.assert_allclose(bonuses(env, [1]), 1 / (0.5 * np.abs(phi).sum()))


@pytest.mark.parametrize("make", [corridor, Car])
def test_steps_of_the_past_are_looked_at_as_they_are_paid_now(make):
    name = "everything" if make is corridor else "sf-pf"
    env = spie.IntrinsicReward(make(), name, beta=3)
    play(env, random_actions(env, 20))
    env.bonus.learn = False
    s, _ = env.reset()
    s_next, r, _, _, info = env.step(2)
    (looked,) = env.bonus.query(np.array([s]), np.array([2]), np.array([s_next]))
    np.testing.assert_allclose(looked, 3 * info["intrinsic_reward"], rtol=1e-12)
    np.testing.assert_allclose(looked, r - info["extrinsic_reward"], rtol=1e-12)


# Saved and continued


@pytest.mark.parametrize("make", [corridor, Car, Picture, lambda: vector()])
@pytest.mark.parametrize("name", ["learned", "count", "sp-novelty"])
def test_saved_and_loaded_the_bonus_goes_on_bit_for_bit(make, name, tmp_path):
    options = {"normalise": True, "anneal": 70, "beta": 0.3, "eta_pr": 0.3}
    reward = name if name != "learned" else "sf-pf" if make in (Car, Picture) else "everything"
    env = spie.IntrinsicReward(make(), reward, **options)
    actions = random_actions(env, 60)

    def go_on(env, actions):
        rewards = []
        for action in actions:
            _, r, terminated, truncated, _ = env.step(action)
            rewards.append(r)
            if not hasattr(env, "num_envs") and (terminated or truncated):
                env.reset()
        return np.array(rewards)

    env.reset(seed=0)
    go_on(env, actions[:33])  # in the middle of an episode; of a vector, some are about to be reset
    env.save(tmp_path / "bonus")
    loaded = spie.IntrinsicReward(env.env, reward, **options)  # the environment itself goes on as it is
    loaded.load(tmp_path / "bonus")
    copied = spie.IntrinsicReward(env.env, reward, **options)
    copied.load_state_dict(env.state_dict())
    position = {name: array.copy() for name, array in env.state_dict()["arrays"].items()}
    found = go_on(loaded, actions[33:])
    assert loaded.bonus.steps > env.bonus.steps
    for key, array in copied.state_dict()["arrays"].items():
        np.testing.assert_array_equal(array, position[key])
    whole = spie.IntrinsicReward(make(), reward, **options)
    whole.reset(seed=0)
    np.testing.assert_array_equal(go_on(whole, actions)[33:], found)
    assert [path.name for path in tmp_path.iterdir()] == ["bonus"]


def test_a_file_holds_arrays_and_json_and_no_code(tmp_path):
    env = spie.IntrinsicReward(corridor(), "sr-r", beta=0.5)
    env.save(tmp_path / "bonus")
    data = (tmp_path / "bonus").read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    assert json.loads(header["__metadata__"]["spie"])["beta"] == 0.5
    assert header["M"]["shape"] == [4, 4]


def test_a_state_of_something_else_is_refused_in_one_line(tmp_path):
    env = spie.IntrinsicReward(corridor(), "sr-r")
    env.save(tmp_path / "bonus")
    with pytest.raises(ValueError, match="saved with reward = sr-r, but this wrapper has reward = sr; build it as"):
        spie.IntrinsicReward(corridor(), "sr").load(tmp_path / "bonus")
    with pytest.raises(ValueError, match=r"M of the saved state is \[4, 4\], not \[16, 16\]; it belongs to another"):
        spie.IntrinsicReward(spie.MDPEnv(spie.grid(ROOM)), "sr-r").load(tmp_path / "bonus")
    with pytest.raises(ValueError, match="saved with learner = Tables, but this"):
        spie.IntrinsicReward(corridor(), "count", features=lambda s: [s + 1.0]).load_state_dict(
            spie.IntrinsicReward(corridor(), "count").state_dict()
        )
    (tmp_path / "bonus").write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"bonus was not written by IntrinsicReward\.save, or is damaged"):
        env.load(tmp_path / "bonus")
    with pytest.raises(OSError, match="No such file"):
        env.load(tmp_path / "nothing")


def test_a_damaged_file_is_refused_or_says_what_it_said_before(tmp_path):
    env = spie.IntrinsicReward(corridor(), "sr-r")
    play(env, [1, 1, 3, 1] * 20)
    env.save(tmp_path / "bonus")
    whole, before = (tmp_path / "bonus").read_bytes(), env.state_dict()["arrays"]
    rng, refused = random.Random(0), 0
    for case in range(400):
        data = bytearray(whole)
        if case % 10 == 0:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.choice([1, 1, 8]) if data else 0):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / "bonus").write_bytes(data)
        found = spie.IntrinsicReward(corridor(), "sr-r")
        try:
            found.load(tmp_path / "bonus")
        except ValueError as error:
            refused += str(error).endswith("bonus was not written by IntrinsicReward.save, or is damaged")
            continue
        for name, array in found.state_dict()["arrays"].items():
            np.testing.assert_array_equal(array, before[name], err_msg=str(case))
    assert refused > 390


# Random network distillation


@pytest.mark.parametrize("make", [corridor, Car, Picture, lambda: vector()])
def test_rnd_fades_where_one_has_been_and_goes_on_bit_for_bit_when_loaded(make, tmp_path):
    torch.set_num_threads(1)
    env = spie.IntrinsicReward(make(), "rnd", beta=2)
    actions = random_actions(env, 20)
    roll(env, actions) if hasattr(env, "num_envs") else play(env, actions)
    env.save(tmp_path / "bonus")
    again = spie.IntrinsicReward(env.env, "rnd", beta=2)
    again.load(tmp_path / "bonus")
    space = getattr(env, "single_observation_space", env.observation_space)
    space.seed(0)
    observation, paid = space.sample(), []
    for bonus in (env.bonus, again.bonus):
        s = bonus.encode(observation)
        bonus.begin(0, s)
        paid.append([bonus.step(0, 0, s, False) for _ in range(30)])
        (looked,) = bonus.query(np.array([observation]), [0], np.array([observation]))
        np.testing.assert_allclose(looked, 2 * paid[-1][-1], rtol=1e-5)
    assert paid[0] == paid[1]
    assert 0 < paid[0][-1] < paid[0][0]


# Mistakes


@pytest.mark.parametrize(
    ("make", "reward", "options", "message"),
    [
        (corridor, "sr_r", {}, 'no intrinsic reward "sr_r"; did you mean "sr-r"?'),
        (corridor, "sf-pf", {}, '"sf-pf" needs psi_norm, xi_norm_next, which a learner on tables does not have'),
        (Car, "sr-r", {}, '"sr-r" needs M_next, M_col_next, which a learner on features does not have'),
        (corridor, "sr-r", {"beta": math.nan}, "beta must be a finite number, not nan"),
        (corridor, "sr-r", {"eta": 0}, "eta must lie in (0, 1], not 0"),
        (corridor, "sr-r", {"gamma_pr": 1.0}, "gamma_pr must lie in [0, 1), not 1.0"),
        (corridor, "sr-r", {"anneal": 0}, "anneal must be a number of steps, 1 or more, not 0"),
    ],
)
def test_a_mistake_is_one_clear_line(make, reward, options, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        spie.IntrinsicReward(make(), reward, **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_table_past_memory_says_how_large_it_would_be_and_what_to_use():
    actions = gym.spaces.Discrete(2)

    def bonus(reward):
        return Bonus("Go", gym.spaces.Discrete(10**6), actions, 1, Settings(reward))

    with pytest.raises(ValueError, match=r"^M of 1,000,000 states would need 8,000\.0 GB; use a reward that needs no"):
        bonus("sr-r")
    with pytest.raises(ValueError, match=r"^M and F and N of 1,000,000 states would need 24,000\.0 GB"):
        bonus("everything")
    bonus("sr")
    bonus("count")


def test_a_space_without_bounds_says_what_to_give():
    env = gym.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"^CartPole-v1: features: number 1 .* as features=spie\.fourier_features\("):
        spie.IntrinsicReward(env, "sf-pf")
    bounds = {"low": [-4.8, -3, -0.42, -3], "high": [4.8, 3, 0.42, 3]}
    phi = spie.fourier_features(env.observation_space, **bounds)
    assert all(map(math.isfinite, bonuses(spie.IntrinsicReward(env, "sf-pf", features=phi), [0, 1] * 20)))


def test_the_guard_names_reward_step_and_environment():
    @spie.reward("hasty")
    def hasty(M_col_next):
        return 1 / M_col_next

    message = r'^reward "hasty" is nan at step 1 of MDPEnv: M_col_next = 0$'
    with pytest.raises(ValueError, match=message):
        bonuses(spie.IntrinsicReward(corridor(), "hasty"), [1])
    with pytest.raises(ValueError, match=r'"hasty" is nan at step 2 of MDPEnv, environment \d: M_col_next = 0$'):
        roll(spie.IntrinsicReward(SyncVectorEnv([corridor] * 2), "hasty"), [np.array([1, 1])])

    class Broken(Car):
        def step(self, action):
            s, _, *rest = super().step(action)
            return (s * math.nan if action == 2 else s), math.nan, *rest

    with pytest.raises(ValueError, match=r"^Broken: the environment's own reward is nan at step 1$"):
        bonuses(spie.IntrinsicReward(Broken(), "none"), [1])
    with pytest.raises(ValueError, match=r"^Broken, after step 0: features: observation .* is not finite$"):
        bonuses(spie.IntrinsicReward(Broken(), "sf-pf"), [2])
    with pytest.raises(ValueError, match=r"^MDPEnv: no episode is under way; call reset\(\) first$"):
        spie.IntrinsicReward(corridor(), "sr-r").bonus.step(0, 1, 2, False)


@pytest.mark.parametrize("policy", [None, lambda s: [0.7, 0.0, 0.3, 0.0] if s == 1 else [0.1, 0.6, 0.1, 0.2]])
def test_psi_of_the_policy_that_is_given_is_a_fixed_point_of_learning(policy):
    """Corridor of four states with one-hot phi: psi(s, a) = phi(s) + gamma sum_a' pi(a'|s') psi(s', a')."""
    gamma, mdp = 0.8, spie.grid(CORRIDOR, task="goal")
    env = spie.IntrinsicReward(corridor(), "sf", features=lambda s: np.eye(4)[s], gamma_sr=gamma, policy=policy)
    pi = np.array([np.full(4, 0.25) if policy is None else policy(s) for s in range(4)])
    next_state = mdp.next[:3, :, 0]  # the goal ends an episode
    P = np.zeros((12, 12))
    for s, a in np.ndindex(3, 4):
        if (s_next := next_state[s, a]) < 3:
            P[4 * s + a, 4 * s_next : 4 * s_next + 4] = pi[s_next]
    psi = np.linalg.solve(np.eye(12) - gamma * P, np.repeat(np.eye(4)[:3], 4, axis=0))  # [s a, d]
    learner = env.bonus.learner
    learner.Psi[:, :, :3] = psi.reshape(3, 4, 4).transpose(1, 2, 0)
    before = learner.Psi.copy()
    for s, a in np.ndindex(3, 4):
        s_next = int(next_state[s, a])
        learner.step(learner.encode(s), a, learner.encode(s_next), float(s_next < 3))
    np.testing.assert_allclose(learner.Psi, before, atol=1e-12)


def test_a_policy_is_refused_where_it_has_no_use_or_is_none():
    with pytest.raises(ValueError, match=r"policy= has no use here, because sr-r does not look ahead by features"):
        spie.IntrinsicReward(corridor(), "sr-r", policy=lambda s: [1.0])
    with pytest.raises(ValueError, match=r"policy= needs actions that can be counted"):
        spie.IntrinsicReward(Car(force=True), "sf-pf", policy=lambda s: [1.0])
    env = spie.IntrinsicReward(Car(), "sf-pf", policy=lambda s: [0.5, 0.2, 0.2])
    with pytest.raises(ValueError, match=r"policy gave \[0.5, 0.2, 0.2\]; it must give the chances of 3 actions"):
        env.reset()
