"""The experiment with other people's agents: what counts as solved, and that its parts run."""

import dataclasses

import numpy as np
import pytest
import torch

from spie.agents.base import Agent, Keep, Replay, Session
from spie.page import report
from spie.paper.beyond import dropin
from spie.paper.registry import EXPERIMENTS, get_experiment
from spie.paper.results import Results
from spie.paper.sections import percent
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


@pytest.mark.slow
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
    together = agent.run(task, 300, (2,)).joined_with([alone])  # seeds that were run apart
    for name, array in vars(among).items():
        np.testing.assert_array_equal(vars(together)[name], array, err_msg=name)
    assert dropin.TASKS["frozen-lake"].digest != dropin.TASKS["deep-sea"].digest


def test_the_page_counts_the_seeds_that_solved_each_task(tmp_path, monkeypatch):
    monkeypatch.setattr(dropin, "STEPS", 40)

    def some(seeds):
        return [run for run in dropin.runs(seeds) if run.env == "deep-sea"]

    with Store(tmp_path / "results.db") as store, EXPERIMENTS.restored():
        experiment = dataclasses.replace(get_experiment("dropin"), runs=some)
        EXPERIMENTS.add("dropin", experiment, again=True)
        store.ask_for("dropin", 2)
        for run in execute(some(2), store):
            assert load(store, run).episode_steps.shape == (2, 2)
        table, said = dropin.section(experiment, Results(store))
        settings = report.section(Results(store), experiment).settings
    assert table.rows[0].values == ("bare", "0 of 2", 0, None, percent(0, 1))
    assert [row.kind for row in table.rows] == [""] * 4 + ["control"] * 6
    assert "8 of its last 10" in said.lines[0]
    assert "alpha = 0.5" in settings.caption


@pytest.mark.parametrize("agent", [dropin.PlainQ("none", 0.0), dropin.SB3DQN("none", 0.0)])
@pytest.mark.parametrize(
    "asked", [{"episodes": 3}, {"replay": Replay(np.zeros(5, int))}, {"keep": Keep(matrices=("Q",))}]
)
def test_what_an_agent_cannot_do_is_refused(agent, asked):
    assert isinstance(agent, Agent)
    with pytest.raises(ValueError, match="leave it out"):
        agent.run(dropin.TASKS["deep-sea"], 10, 1, **asked)


def test_a_run_says_how_far_it_is():
    shares = []
    dropin.PlainQ("none", 0.0).run(dropin.TASKS["deep-sea"], 40, 4, session=Session(progress=shares.append))
    assert shares == [0.25, 0.5, 0.75, 1.0]


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
