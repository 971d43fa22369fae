"""The six games of the paper with its five agents: finite throughout, and the same after a resume in the middle."""

import os
import shutil

import numpy as np
import pytest
import torch

from spie.agents import checkpoint
from spie.agents.deep import DQN
from spie.agents.training import resume, train
from spie.envs.atari import GAMES, make_atari

torch.set_num_threads(1)
AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")
STEPS = 2000


class Stop(Exception):
    pass


def stop(report):
    if report.step >= 0.6 * STEPS:
        raise Stop


@pytest.fixture(scope="module", params=GAMES)
def game(request):
    """Loaded once for all agents. Episodes so short that the first ones are over when learning starts."""
    return make_atari(request.param, 4, frame_skip=1, max_frames=200)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """For 60 MB of checkpoints, which need neither reach the disk nor stay."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    yield tmp_path / "run"
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_plays_every_game_and_resumes_in_the_middle(game, agent, folder):
    sizes = {"stack": 4, "envs": 4, "replay": 1000, "batch": 4, "learning_starts": 1000, "train_every": 20}
    settings = DQN.named(agent, preset="small", **sizes)
    with pytest.raises(Stop):
        train(settings, game, STEPS, 0, folder, progress=stop, checkpoint_steps=STEPS // 2)
    trace = resume(folder, game, checkpoint_steps=STEPS)
    last = checkpoint.load(checkpoint.checkpoints(folder / "checkpoints")[0])
    assert last.values["step"] == STEPS
    assert last.values["updates"] == 51
    assert trace.episode_steps.shape[1] >= 8
    assert all(np.isfinite(array).all() for array in last.weights.values())
    assert np.isfinite(last.arrays["replay0.slots"]["total"]).all()
