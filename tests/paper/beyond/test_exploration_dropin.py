"""Which bonus helps agents of Stable-Baselines3: what is measured, and that the parts run."""

import numpy as np
import pytest

from made_up import fill
from spie.paper import claims
from spie.paper.beyond import exploration_dropin as judge
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.runs.store import Store
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
    for tier in (small, hours, full):  # a seed is a run, and all have their first before any has its second
        one, two = tier.runs(1), tier.runs(2)
        assert [run.seed_numbers for run in two] == [(0,)] * len(one) + [(1,)] * len(one)
        assert [run.id for run in two[: len(one)]] == [run.id for run in one]


@pytest.mark.parametrize(("share", "verdict"), [(0.9, "reproduced"), (0.2, "not reproduced")])
def test_the_ledger_takes_the_largest_tier_and_the_best_rival_of_each_task(tmp_path, monkeypatch, share, verdict):
    shares = {"sp-novelty": share, "count": 0.5, "novelty": 0.4}
    monkeypatch.setattr(judge, "late_success", lambda trace, steps: np.resize([-0.1, 0.1], 12) + of(trace))

    def of(trace):
        return shares[next((name for name in shares if f"reward='{name}'" in trace.settings), "novelty")]

    with Store(tmp_path / "results.db") as store:
        fill(store, "exploration-dropin@tier=hours")
        results = Results(store)
        found = {one.claim.id: one for one in claims.judge(results, judge.CLAIMS)}
        tables = judge.section(get_experiment(judge.NAME, tier="hours"), results)[:-1]
    assert found["spie-dropin-beats-all-controls"].verdict == verdict
    assert found["spie-dropin-adds-to-novelty"].verdict == verdict
    labels = [part.label for part in found["spie-dropin-beats-all-controls"].parts]
    assert labels == [f"{env} count" for env in judge.JUDGED]
    assert [len(table.rows) for table in tables] == [9, 11, 9, 9]


@pytest.mark.slow
@pytest.mark.parametrize("env", ["mountain-car, DQN", "mountain-car, PPO", "doorkey-5x5"])
def test_agents_play_their_tasks(env):
    pytest.importorskip("minigrid")
    for run in judge.runs(1):
        if run.env == env and run.agent in ("count x e3b", "sp-novelty"):
            played = run.settings.run(run.task, 4100, (3,))  # of 16 copies each ends an episode
            assert 0 < played.episode_steps.sum() <= 6144  # PPO takes whole rollouts, of 2048 steps
