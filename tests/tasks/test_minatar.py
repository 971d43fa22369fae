"""MinAtar games as tasks: planes of an observation, saved and restored to the bit."""

import sys

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import spie
from spie.agents.dqn.session import resume, train
from spie.agents.dqn.state import state_of
from spie.tasks.minatar import N_ACTIONS, PLANES, MinAtarTask


@pytest.mark.slow
@pytest.mark.parametrize("game", PLANES)
def test_a_frame_is_the_planes_of_the_game_one_below_the_other(game):
    task = spie.task(f"minatar/{game}")
    env = task.make(2)
    frames, _ = env.reset(seed=[3, 4])
    assert frames.shape == (2, *task.shape)
    assert set(np.unique(frames)) <= {0, 255}
    planes = frames.reshape(2, PLANES[game], 10, 10)
    for i in range(2):
        assert_array_equal(planes[i], 255 * np.moveaxis(env._games[i].state(), 2, 0))


@pytest.mark.slow
@pytest.mark.parametrize("game", PLANES)
def test_a_saved_game_goes_on_as_it_would_have(game):
    task, rng = MinAtarTask(game), np.random.default_rng(0)
    env, other = task.make(2, seed=7), task.make(2, seed=8)
    env.reset()
    other.reset()

    def play(env, actions):
        seen = []
        for a in actions:
            frames, rewards, terminated, truncated, _ = env.step(a)
            seen.append((frames.tobytes(), rewards.tolist()))
            if (over := terminated | truncated).any():
                seen.append(env.reset(options={"reset_mask": over})[0].tobytes())
        return seen

    play(env, rng.integers(N_ACTIONS, size=(300, 2)))
    state = env.get_state()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    actions = rng.integers(N_ACTIONS, size=(300, 2))
    expected = play(env, actions)
    other.set_state(state)
    assert play(other, actions) == expected


@pytest.mark.slow
def test_a_state_of_another_game_is_refused():
    state = MinAtarTask("breakout").make(1).get_state()
    with pytest.raises(ValueError, match="minatar/freeway: the saved state of game 0 is missing or damaged"):
        MinAtarTask("freeway").make(1).set_state(state)


def test_bad_input_is_one_clear_line(monkeypatch):
    with pytest.raises(ValueError, match='no game of MinAtar "minatar/breakot"; did you mean'):
        spie.task("minatar/breakot")
    with pytest.raises(ValueError, match="max_steps must be a whole number of 1 or more"):
        MinAtarTask("breakout", max_steps=0)
    monkeypatch.setitem(sys.modules, "minatar", None)
    with pytest.raises(ImportError, match=r'MinAtar games need minatar: pip install "spie-rl\[minatar\]"'):
        MinAtarTask("breakout").make(1)


class Stop(Exception):
    pass


@pytest.mark.slow
def test_a_run_on_minatar_that_dies_goes_on_to_the_same_bits(tmp_path):
    torch.set_num_threads(1)
    task = spie.task("minatar/breakout")
    agent = spie.agent("dqn-sf-pf", task, learning_starts=40, batch=8)
    assert (agent.preset, agent.network) == ("small", "minatar")

    def stop(report):
        if report.step >= 90:
            raise Stop

    whole = train(agent, task, 160, 1, tmp_path / "whole")
    with pytest.raises(Stop):
        train(agent, task, 160, 1, tmp_path / "run", progress=stop, checkpoint_steps=40)
    trace = resume(tmp_path / "run")
    assert_array_equal(trace.episode_rewards, whole.episode_rewards)
    assert_array_equal(trace.losses, whole.losses)
    assert_array_equal(trace.total_bonus, whole.total_bonus)


def test_planes_are_channels_of_the_network():
    from spie.agents.dqn.build import build

    task = spie.task("minatar/breakout")
    learner = build(spie.agent("dqn-sf-pf", task), task.make(1), [0], 10)
    assert learner.online.encoder.convolutions[0].weight.shape == (1, 16, 3, 3, 4)
    x = torch.from_numpy(learner.stacks / 255).float()
    phi = learner.online.phi(x)
    assert learner.online.decoder(phi, torch.zeros(1, 1, dtype=torch.long)).shape == (1, 1, 40, 10)
    planes = x[0, 0, 0].reshape(4, 10, 10)
    conv = learner.online.encoder.convolutions[0]
    plain = torch.nn.functional.conv2d(planes[None], conv.weight[0].permute(0, 3, 1, 2), conv.bias[0]).relu()
    torch.testing.assert_close(conv(planes[None, None])[0], plain)
    assert "stacks" in state_of(learner)[0]
