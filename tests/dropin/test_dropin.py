"""The experiment with other people's agents: what counts as solved, and that its parts run."""

import numpy as np
import pytest
import torch

from spie.page import report
from spie.paper import Results, dropin, get_experiment
from spie.runs.backends import execute
from spie.runs.run import load
from spie.runs.store import Store
from spie.trace import EpisodeTrace


def trace(rewards, steps=5):
    rewards = np.array(rewards, float)
    played = np.where(np.isnan(rewards), 0, steps).astype(np.int32)
    rewards = np.nan_to_num(rewards)
    n = len(rewards)
    return EpisodeTrace("", np.arange(n), played, rewards, 0 * rewards, rewards > 0, np.full(n, -1))


def test_a_task_is_solved_by_its_last_episodes():
    never, not_played = [0] * 12, float("nan")
    found_and_lost = [1] * 9 + [0] * 3
    at_last = [0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, not_played]  # 8 of the last 10 that were played
    seeds = trace([never, found_and_lost, at_last])
    assert dropin.solved(seeds).tolist() == [False, False, True]
    assert dropin.found(seeds).tolist() == [-1, 5, 15]


def test_every_agent_plays_its_task(tmp_path):
    torch.set_num_threads(1)
    runs = {(run.env, run.settings.reward): run for run in dropin.runs(1)}
    assert len(runs) == 4 * 4
    for run in runs.values():
        steps, seeds = (1100, (5,)) if isinstance(run.settings, dropin.SB3DQN) else (60, (5, 6))
        if steps > 100 and run.settings.reward not in ("none", "sf-pf"):
            continue  # two of DQN are enough
        played = run.settings.run(run.task, steps, seeds)
        assert len(played.seeds) == len(seeds)
        assert played.episode_steps.sum() <= steps * len(seeds)
        if run.env != "mountain-car":
            assert played.episode_steps.sum() > 0
        if run.env == "deep-sea":
            assert (played.episode_steps == 20).all()
            assert (played.episode_bonuses != 0).any() == (run.settings.reward != "none")


def test_a_seed_gives_the_same_run_again():
    agent, task = dropin.PlainQ("sr-r", 0.01), dropin.TASKS["frozen-lake"]
    alone, among = agent.run(task, 300, (3,)), agent.run(task, 300, (2, 3))
    n = alone.episode_steps.shape[1]
    np.testing.assert_array_equal(alone.episode_steps[0], among.episode_steps[1, :n])
    np.testing.assert_array_equal(alone.episode_bonuses[0], among.episode_bonuses[1, :n])
    assert dropin.TASKS["frozen-lake"].digest != dropin.TASKS["deep-sea"].digest


def test_the_page_counts_the_seeds_that_solved_each_task(tmp_path, monkeypatch):
    monkeypatch.setattr(dropin, "STEPS", 40)
    some = dropin.runs
    monkeypatch.setattr(dropin, "runs", lambda seeds: [run for run in some(seeds) if run.env == "deep-sea"])
    experiment = get_experiment("dropin")
    monkeypatch.setitem(report.EXPERIMENTS, "dropin", type(experiment)("dropin", "", 1, dropin.runs))
    with Store(tmp_path / "results.db") as store:
        store.ask_for("dropin", 2)
        for run in execute(dropin.runs(2), store):
            assert load(store, run).episode_steps.shape == (2, 2)
        table, said = report.drop_in(Results(store), "dropin")
        settings = report.section(Results(store), report.EXPERIMENTS["dropin"]).settings
    assert table.rows[0].values == ("bare", "0 of 2", 0, None, report.percent(0, 1))
    assert [row.kind for row in table.rows] == [""] * 4 + ["control"] * 6
    assert "8 of its last 10" in said.lines[0]
    assert "alpha = 0.5" in settings.caption


@pytest.mark.parametrize("env", dropin.TASKS)
def test_a_task_pays_at_its_goal_alone(env):
    task = dropin.TASKS[env].make()
    task.action_space.seed(0)
    task.reset(seed=0)
    for _ in range(200):
        _, r, terminated, truncated, _ = task.step(task.action_space.sample())
        assert abs(r) < dropin.GOAL or terminated
        if terminated or truncated:
            task.reset()
