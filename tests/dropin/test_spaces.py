"""Bonuses on observations of every kind: counted where they can be, else by features of each part."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import spie
from spie.dropin.observations import reader
from spie.dropin.spaces import MOST_COUNTED, numbering

SMALL = {
    "multi-discrete": spaces.MultiDiscrete([3, 4], start=[1, 0]),
    "multi-binary": spaces.MultiBinary(5),
    "dict": spaces.Dict({"a": spaces.Discrete(3, start=2), "b": spaces.MultiBinary((2, 2))}),
    "tuple": spaces.Tuple((spaces.Discrete(4), spaces.Dict({"x": spaces.Discrete(2)}))),
}
LARGE = {
    "many categories": spaces.MultiDiscrete([50] * 40),
    "numbers and an image": spaces.Dict(
        {"image": spaces.Box(0, 255, (7, 7, 3), np.uint8), "speed": spaces.Box(-1, 1, (2,)), "way": spaces.Discrete(4)}
    ),
    "text": spaces.Dict({"mission": spaces.Text(9), "at": spaces.Box(0, 1, (1,))}),
    "tuple": spaces.Tuple((spaces.Box(0, 1, (2,)), spaces.MultiBinary(3))),
}


class Shuffled(gym.Env):
    """Shows observations of any space, a few of them over and over; every fifth step ends an episode."""

    action_space = spaces.Discrete(2)

    def __init__(self, space):
        self.observation_space = space
        space.seed(0)
        self.shown = [space.sample() for _ in range(4)]
        self.t = 0

    def reset(self, *, seed=None, options=None):
        return self.shown[0], {}

    def step(self, action):
        self.t += 1
        return self.shown[self.t % 4], 1.0, self.t % 5 == 0, False, {}


@pytest.mark.parametrize("name", SMALL)
def test_every_observation_of_a_small_space_has_a_number_of_its_own(name):
    space = SMALL[name]
    states = numbering(space)
    space.seed(0)
    seen = {}
    for _ in range(60 * states.n):
        observation = space.sample()
        seen.setdefault(states.number(observation), repr(observation))
        assert seen[states.number(observation)] == repr(observation)
    assert sorted(seen) == list(range(states.n))


def test_too_many_states_are_not_counted_unless_they_are_discrete():
    assert numbering(spaces.MultiBinary(12)).n == MOST_COUNTED
    assert numbering(spaces.MultiBinary(13)) is None
    assert numbering(spaces.MultiDiscrete([2**31] * 40)) is None
    assert numbering(spaces.Discrete(10**6)).n == 10**6
    assert numbering(spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0, 1, (1,))})) is None


@pytest.mark.parametrize("space", [*SMALL.values(), *LARGE.values()], ids=[*SMALL, *LARGE])
def test_a_bonus_learns_on_any_space_alone_and_in_a_vector(space, tmp_path):
    reward = "sr-r" if numbering(space) is not None else "sf-pf"
    for name in (reward, "count"):
        env = spie.IntrinsicReward(Shuffled(space), name, 0.1)
        env.reset(seed=0)
        alone = []
        for t in range(12):
            _, r, terminated, _, _ = env.step(t % 2)
            alone.append(r)
            if terminated:
                env.reset()
        assert np.isfinite(alone).all()
        assert np.ptp(alone) > 0
        vector = SyncVectorEnv([lambda: Shuffled(space)], autoreset_mode=AutoresetMode.SAME_STEP)
        vector = spie.IntrinsicReward(vector, name, 0.1)
        vector.reset(seed=0)
        np.testing.assert_allclose([vector.step(np.array([t % 2]))[1][0] for t in range(12)], alone)
        env.save(tmp_path / "bonus")
        again = spie.IntrinsicReward(Shuffled(space), name, 0.1)
        again.load(tmp_path / "bonus")
        for one in (env, again):
            one.unwrapped.t = 0
            one.reset()
        assert [again.step(1)[1] for _ in range(3)] == [env.step(1)[1] for _ in range(3)]


@pytest.mark.parametrize("name", LARGE)
def test_features_of_parts_have_length_1_and_tell_observations_apart(name):
    space = LARGE[name]
    space.seed(1)
    phi_of = reader("toy", space, None)
    one, other = space.sample(), space.sample()
    for observation in (one, other):
        assert np.linalg.norm(phi_of.read(observation)) == pytest.approx(1)
        assert phi_of.read(observation).shape == (phi_of.dimension,)
    assert phi_of.read(one) @ phi_of.read(other) < 0.999
    np.testing.assert_array_equal(phi_of.read(one), reader("toy", space, None).read(one))


def test_an_image_is_read_alike_with_channels_first_and_last():
    images = np.random.default_rng(0).integers(0, 256, (3, 12, 10), np.uint8)
    first = reader("toy", spaces.Box(0, 255, (3, 12, 10), np.uint8), None)
    last = reader("toy", spaces.Box(0, 255, (12, 10, 3), np.uint8), None)
    np.testing.assert_allclose(first.read(images), last.read(np.moveaxis(images, 0, -1)), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_rnd_reads_a_dict_by_its_features_and_leaves_threads_alone():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    seen = []
    env = spie.IntrinsicReward(Shuffled(LARGE["numbers and an image"]), "rnd", 0.1)
    learn = env.bonus.learner.rnd.learn
    env.bonus.learner.rnd.learn = lambda s: seen.append(torch.get_num_threads()) or learn(s)
    env.reset(seed=0)
    paid = [env.step(0)[1] for _ in range(3)]
    assert np.isfinite(paid).all()
    assert (seen, torch.get_num_threads()) == ([1, 1, 1], 2)
    torch.set_num_threads(before)


def test_a_space_that_nobody_can_read_says_what_to_give():
    endless = spaces.Sequence(spaces.Discrete(3))
    with pytest.raises(
        ValueError, match=r"^Shuffled: observations of Sequence have no default features; give features="
    ):
        spie.IntrinsicReward(Shuffled(endless), "count")


@pytest.mark.slow
def test_minigrid_is_taken_as_it_comes():
    pytest.importorskip("minigrid")
    env = spie.IntrinsicReward(gym.make("MiniGrid-DoorKey-5x5-v0"), "sf-pf", "auto")
    env.reset(seed=0)
    assert all(np.isfinite(env.step(a)[1]) for a in (0, 1, 2, 5, 2))
