"""The six games of the paper with its five agents: finite throughout, and the same after a resume in the middle."""

import numpy as np
import pytest
import torch

from spie.agents import checkpoint
from spie.agents.deep import DQN
from spie.agents.training import resume, train
from spie.envs.atari import GAMES

torch.set_num_threads(1)
AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")
STEPS = 2000


class Stop(Exception):
    pass


def stop(report):
    if report.step >= 0.6 * STEPS:
        raise Stop


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("game", GAMES)
def test_every_agent_plays_every_game_and_resumes_in_the_middle(game, agent, tmp_path):
    sizes = {"stack": 4, "envs": 4, "replay": 1000, "batch": 4, "learning_starts": 1000, "train_every": 20}
    settings = DQN.named(agent, preset="small", **sizes)
    options = {"frame_skip": 2, "max_frames": 400}  # so that the first episodes are over when learning starts
    with pytest.raises(Stop):
        train(settings, game, STEPS, 0, tmp_path, options=options, progress=stop, checkpoint_steps=STEPS // 2)
    trace = resume(tmp_path, checkpoint_steps=STEPS)
    last = checkpoint.load(checkpoint.checkpoints(tmp_path / "checkpoints")[0])
    assert last.values["step"] == STEPS
    assert last.values["updates"] == 51
    assert trace.episode_steps.shape[1] >= 8
    assert all(np.isfinite(array).all() for array in last.weights.values())
    assert np.isfinite(last.arrays["replay0.slots"]["total"]).all()
