"""Atari: the protocol, the picture, and an emulator that goes on as if it had not been put aside."""

import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from spie.tasks.atari import GAMES, make_atari, shrink
from spie.tasks.registry import task as find_task


def play(env, actions):
    """What an environment shows under given actions [steps, n], resets included."""
    seen = []
    for a in actions:
        observation, reward, terminated, truncated, _ = env.step(a)
        seen.append((observation.tobytes(), reward.tobytes(), terminated.tobytes(), truncated.tobytes()))
        if (terminated | truncated).any():
            observation, _ = env.reset(options={"reset_mask": terminated | truncated})
            seen.append(observation.tobytes())
    return seen


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_a_restored_emulator_goes_on_as_the_saved_one(game):
    actions = np.random.default_rng(1).integers(18, size=(90, 2))
    env, other = make_atari(game, n=2, seed=0), make_atari(game, n=2, seed=1)
    env.reset(), other.reset()
    play(env, actions[:40])
    state = env.get_state()
    assert {array.dtype.kind for array in state.values()} <= set("biu")  # plain arrays: no pickle needed
    went = play(env, actions[40:])
    other.set_state(state)
    assert play(other, actions[40:]) == went  # in an emulator of its own
    env.set_state(state)
    assert play(env, actions[40:]) == went
    assert len(set(went)) > 40  # something moved


def test_the_action_that_sticks_is_saved():
    env = make_atari("Freeway", sticky=0.999)
    env.reset()
    env._held[:] = 2
    state, rows = env.get_state(), []
    for held in (0, 2):
        state["held"][:] = held
        env.set_state(state)
        rows.append(play(env, np.zeros((20, 1), np.int64))[-1])
    assert rows[0] != rows[1]  # up is still pressed, so the chicken walks


def test_a_frame_keeps_the_action_before_with_probability_a_quarter():
    env = make_atari("Freeway", frame_skip=1)
    env.reset()
    kept = 0
    for _ in range(1000):
        held = int(env._held[0])
        env.step(np.array([(held + 1) % 18]))
        kept += env._held[0] == held
    assert abs(kept - 250) < 4 * np.sqrt(1000 * 0.25 * 0.75)


def test_without_sticky_actions_each_frame_does_as_told():
    env = make_atari("Freeway", frame_skip=1, sticky=0.0)
    env.reset()
    for action in (3, 0, 5):
        env.step(np.array([action]))
        assert env._held[0] == action


def test_the_protocol_is_that_of_machado_and_others():
    env = make_atari("MontezumaRevenge", n=2)
    assert env.single_action_space.n == 18
    assert env.single_observation_space == gym.spaces.Box(0, 255, (84, 84), np.uint8)
    assert env.metadata["autoreset_mode"] == gym.vector.AutoresetMode.DISABLED
    env.reset()
    env.step(np.array([0, 0]))
    assert [emulator.getEpisodeFrameNumber() for emulator in env._emulators] == [5, 5]
    assert [emulator.getFloat("repeat_action_probability") for emulator in env._emulators] == [0, 0]


def test_a_lost_life_does_not_end_an_episode():
    env = make_atari("MontezumaRevenge", sticky=0.0)
    env.reset()
    lives = []
    for _ in range(60):  # walk to the left and fall off the ledge
        _, _, terminated, _, _ = env.step(np.array([4]))
        lives.append(env._emulators[0].lives())
        assert not terminated
    assert min(lives) < lives[0]


def test_an_episode_is_truncated_after_its_frames():
    env = make_atari("Freeway", max_frames=12)
    env.reset()
    ends = [env.step(np.array([0]))[3].item() for _ in range(3)]
    assert ends == [False, False, True]
    assert env._emulators[0].getEpisodeFrameNumber() == 12  # in the middle of an action
    with pytest.raises(ValueError, match="no episode is under way in environment 0"):
        env.step(np.array([0]))


def test_an_observation_is_the_maximum_of_the_last_two_frames():
    pooled, single = make_atari("Venture", sticky=0.0), make_atari("Venture", frame_skip=1, sticky=0.0)
    pooled.reset(), single.reset()
    for _ in range(10):
        observation = pooled.step(np.array([3]))[0]
        screens = []
        for _ in range(5):
            single.step(np.array([3]))
            screens.append(single._emulators[0].getScreenGrayscale())
        assert_array_equal(observation, shrink(np.maximum(screens[-1], screens[-2])[None]))


@pytest.mark.parametrize("shape", [(210, 160), (250, 160)])
def test_a_screen_is_averaged_over_areas(shape):
    screen = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)

    def overlap(length):  # of old pixel j and new pixel i, in old pixels
        edges, j = np.arange(85)[:, None] * length / 84, np.arange(length)
        return np.clip(np.minimum(edges[1:], j + 1) - np.maximum(edges[:-1], j), 0, None)

    exact = overlap(shape[0]) @ screen @ overlap(shape[1]).T / (shape[0] * shape[1] / 84**2)
    assert np.abs(shrink(screen[None])[0] - exact).max() <= 0.5 + 1e-9
    assert_array_equal(shrink(np.full((2, *shape), 255, np.uint8)), 255)


@pytest.mark.slow
def test_copies_differ_and_a_seed_repeats():
    actions = np.random.default_rng(0).integers(18, size=(30, 2))
    actions[:, 1] = actions[:, 0]
    runs = []
    for _ in range(2):
        env = make_atari("PrivateEye", n=2, seed=4)
        env.reset()
        runs.append(play(env, actions))
    assert runs[0] == runs[1]
    assert not np.array_equal(*env._observations)
    env.reset(seed=3)
    first = play(env, actions)
    env.reset(seed=3)
    assert play(env, actions) == first


def test_a_game_is_a_task_however_it_is_spelled():
    tasks = [find_task(name) for name in ("MontezumaRevenge", "montezuma-revenge", "ALE/MontezumaRevenge-v5")]
    assert len({task.digest for task in tasks}) == 1
    assert {(task.kind, task.frame_skip, task.shape) for task in tasks} == {("images", 5, (84, 84))}
    changed = [find_task("Freeway", **option) for option in ({}, {"frame_skip": 4}, {"max_frames": 99}, {"sticky": 0})]
    assert len({task.digest for task in (*tasks, *changed)}) == 5
    name, options = changed[1].recipe
    assert find_task(name, **options) == changed[1]
    assert changed[1].make(2).frame_skip == 4
    assert find_task("ALE/Pong-v5").make(1).reset()[0].shape == (1, 84, 84)  # a game that the paper does not have


@pytest.mark.parametrize("name", ["montezuma_revenge", "ALE/MontezumaRevenge-v5", "montezuma-revenge"])
def test_a_game_goes_by_any_of_its_names(name):
    assert make_atari(name)._rom.name == "montezuma_revenge.bin"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "Montezuma"}, 'no Atari game "Montezuma"; did you mean "MontezumaRevenge"'),
        ({"game": "Freeway", "frame_skip": 0}, "frame_skip 0"),
        ({"game": "Freeway", "sticky": 1.0}, "sticky 1.0"),
        ({"game": "Freeway", "n": 0}, "n = 1 or more"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        make_atari(**arguments)
    assert "\n" not in str(error.value)


def test_a_missing_rom_is_named_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(OSError, match=r"Pong: its ROM cannot be used .*pong\.bin.* ALE_ROMS_DIR"):
        make_atari("Pong")
    (tmp_path / "pong.bin").write_bytes(b"not a ROM")
    with pytest.raises(OSError, match=r"hash of pong\.bin does not match") as error:
        make_atari("Pong")
    assert "\n" not in str(error.value)


def test_a_damaged_or_foreign_state_is_refused():
    env = make_atari("Freeway")
    env.reset()
    state = env.get_state()
    with pytest.raises(ValueError, match="emulator 0 is missing or damaged"):
        env.set_state(state | {"emulator0": state["emulator0"][:100]})
    with pytest.raises(ValueError, match=r"has no random \[2, 6\]"):
        make_atari("Freeway", n=2).set_state(state)


def test_importing_the_module_does_not_load_ale():
    program = "import sys, spie.tasks.atari; print('ale_py' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"
