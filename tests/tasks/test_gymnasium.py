"""Classic control behind a wrapper that makes images: an episode under way goes on exactly, by playing it again."""

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from spie.tasks.gymnasium import GymnasiumImages

CLASSIC = {"CartPole-v1": 500, "MountainCar-v0": 200, "Acrobot-v1": 500}  # all with discrete actions; the time limits


def as_images(name):
    """Each number that the environment shows is a bright pixel in a column of its own: much less than the state."""
    env = gym.make(name)
    columns = np.arange(env.observation_space.shape[0])

    def draw(seen):
        frame = np.zeros((20, len(columns)), np.uint8)
        frame[(9.5 + 9.5 * np.tanh(seen)).astype(int), columns] = 255
        return frame

    space = gym.spaces.Box(0, 255, (20, len(columns)), np.uint8)
    return gym.wrappers.TransformObservation(env, draw, space)


@pytest.fixture(params=CLASSIC)
def classic(request):
    """The id of a game of classic control as images."""
    gym.register("Test/Classic-v0", lambda: as_images(request.param))
    yield request.param
    gym.registry.pop("Test/Classic-v0")


def play(envs, steps, rng):
    """All that is seen, paid and ended in that many steps; what has ended begins again."""
    found = []
    for _ in range(steps):
        frames, rewards, terminated, truncated, _ = envs.step(rng.integers(envs.single_action_space.n, size=3))
        found.append((frames, rewards, terminated, truncated))
        over = terminated | truncated
        if over.any():
            found.append((envs.reset(options={"reset_mask": over})[0], rewards, terminated, truncated))
    return [np.stack(column) for column in zip(*found, strict=True)]


def test_an_episode_of_classic_control_is_brought_back_to_the_last_bit(classic):
    envs, again = GymnasiumImages("Test/Classic-v0", 3), GymnasiumImages("Test/Classic-v0", 3)
    envs.reset(seed=[4, 5, 6])
    play(envs, 37, np.random.default_rng(1))
    again.set_state(envs.get_state())
    for one, other in zip(envs.envs, again.envs, strict=True):
        assert_array_equal(np.asarray(one.unwrapped.state), np.asarray(other.unwrapped.state))
        assert one.unwrapped.np_random.bit_generator.state == other.unwrapped.np_random.bit_generator.state
    onwards = [play(these, 2 * CLASSIC[classic], np.random.default_rng(2)) for these in (envs, again)]
    for one, other in zip(*onwards, strict=True):
        assert_array_equal(one, other)
    ended = onwards[0][2] | onwards[0][3]
    assert ended.any(axis=0).all()  # what follows is compared over the ends of all three, too
    if classic == "MountainCar-v0":  # which nobody solves by chance: the count of the time limit is brought back
        assert ended[:, 0].argmax() == CLASSIC[classic] - 37 - 1


def test_an_episode_of_classic_control_that_was_changed_is_not_taken_for_the_same(classic):
    envs, again = GymnasiumImages("Test/Classic-v0", 3), GymnasiumImages("Test/Classic-v0", 3)
    envs.reset(seed=[4, 5, 6])
    for _ in range(8):
        envs.step(np.zeros(3, np.int64))
    state = envs.get_state()
    state["frames"][1] = np.roll(state["frames"][1], 1, axis=0)
    with pytest.raises(ValueError, match="Test/Classic-v0: the episode under way cannot be brought back"):
        again.set_state(state)
