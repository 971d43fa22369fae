"""The six games of the paper with its five agents: finite throughout, also after a resume in the middle."""

import contextlib
import os
import shutil

import numpy as np
import pytest
import torch

import spie
from spie.agents.dqn import checkpoint
from spie.agents.dqn.session import resume, train
from spie.tasks.atari import GAMES, AtariTask
from spie.tasks.gymnasium import EnvTask

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")
STEPS, MIDDLE = 800, 600
SIZES = {"stack": 4, "envs": 2, "replay": 400, "batch": 4, "learning_starts": 400, "train_every": 20}


class Stop(Exception):
    pass


def stop(report):
    if report.step >= 0.8 * STEPS:
        raise Stop


@pytest.fixture(scope="module", params=GAMES)
def game(request):
    """Loaded once for all agents. Episodes so short that the first ones are over when learning starts."""
    env = AtariTask(request.param, frame_skip=1, max_frames=100).make(SIZES["envs"])
    return EnvTask(request.param, lambda n: env)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """For 60 MB of checkpoints, which need neither reach the disk nor stay."""
    monkeypatch.setattr(os, "fsync", lambda file: None)
    yield tmp_path / "run"
    shutil.rmtree(tmp_path)


def last_checkpoint(folder):
    return checkpoint.load(checkpoint.checkpoints(folder / "checkpoints")[0])


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_plays_every_game_and_resumes_in_the_middle(game, agent, folder):
    settings = spie.agent(agent, preset="small", **SIZES)
    with pytest.raises(Stop):
        train(settings, game, STEPS, 0, folder, progress=stop, checkpoint_steps=MIDDLE)
    middle = last_checkpoint(folder)
    assert (middle.values["step"], middle.values["updates"]) == (MIDDLE, 11)
    trace = resume(folder, game, checkpoint_steps=STEPS)
    last = last_checkpoint(folder)
    assert last.values["step"] == STEPS
    assert last.values["updates"] == 21
    assert trace.episode_steps.shape[1] >= 8
    assert all(np.isfinite(array).all() for array in last.weights.values())
    assert np.isfinite(last.arrays["replay0.slots"]["total"]).all()


@pytest.mark.parametrize("agent", ["dqn-sf-pf", "rnd"])
def test_a_game_that_is_resumed_is_the_unbroken_one_bit_for_bit(agent, tmp_path):
    settings = spie.agent(agent, preset="small", **SIZES)
    task = AtariTask("Venture", frame_skip=1, max_frames=100)
    for name in ("whole", "broken"):
        progress, often = (stop, MIDDLE) if name == "broken" else (None, STEPS)
        with pytest.raises(Stop) if progress else contextlib.nullcontext():
            train(settings, task, STEPS, 0, tmp_path / name, progress=progress, checkpoint_steps=often)
    resume(tmp_path / "broken", checkpoint_steps=STEPS)
    whole, broken = last_checkpoint(tmp_path / "whole"), last_checkpoint(tmp_path / "broken")
    for ours, theirs in ((broken.weights, whole.weights), (broken.arrays, whole.arrays)):
        assert ours.keys() == theirs.keys()
        assert [name for name in ours if ours[name].tobytes() != theirs[name].tobytes()] == []
    monitors = [(tmp_path / name / "monitor.csv").read_bytes() for name in ("whole", "broken")]
    assert monitors[0] == monitors[1]
