"""Which bonus helps agents of Stable-Baselines3: what is measured, and that the parts run."""

import numpy as np
import pytest

from spie.paper.beyond import exploration_dropin as judge
from spie.paper.registry import get_experiment
from spie.trace import EpisodeTrace


def trace(rewards, steps):
    rewards, steps = np.array(rewards, float), np.array(steps, np.int32)
    return EpisodeTrace("", np.arange(len(steps)), steps, rewards, 0 * rewards, rewards > 0, np.full(len(steps), -1))


def test_late_success_is_of_the_episodes_that_ended_late():
    # of 100 steps the last 20: the first seed ended two episodes there, of which one reached the goal; 0 is no episode
    seeds = trace([[0, 1, 1, 0], [1, 0, 0, 0]], [[40, 30, 15, 15], [80, 20, 0, 0]])
    assert judge.late_success(seeds, 100).tolist() == [0.5, 0.0]
    assert judge.first_goal(seeds).tolist() == [70, 80]
    assert judge.first_goal(trace([[0, 0]], [[5, 5]])).tolist() == [-1]


def test_the_tiers_grow_and_only_the_full_one_has_the_large_levels():
    small, hours, full = (get_experiment("exploration-dropin", tier=name) for name in ("minutes", "hours", "full"))
    assert small.key == "exploration-dropin"
    assert max(run.steps for run in small.runs(5)) == 60_000
    assert {run.steps for run in hours.runs(5)} == {150_000, 50_000}
    assert {run.env for run in full.runs(10)} - {run.env for run in small.runs(5)} == set(judge.LARGE)
    assert [run.agent for run in small.runs(5)][-4:] == ["rnd"] * 4
    assert len({run.id for run in small.runs(5)}) == len(small.runs(5))


@pytest.mark.slow
@pytest.mark.parametrize("env", ["mountain-car, DQN", "mountain-car, PPO", "doorkey-5x5"])
def test_agents_play_their_tasks(env):
    pytest.importorskip("minigrid")
    for run in judge.runs(1):
        if run.env == env and run.agent in ("count x e3b", "sp-novelty"):
            played = run.settings.run(run.task, 4100, (3,))  # of 16 copies each ends an episode
            assert 0 < played.episode_steps.sum() <= 6144  # PPO takes whole rollouts, of 2048 steps
