"""The judge of exploration on pixels: what is run, and what follows from results of our choice."""

import dataclasses

import numpy as np
import pytest

from made_up import fill
from spie.paper.beyond import exploration_pixels as judge_of
from spie.paper.claims import judge
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.paper.rules import NOT_REPRODUCED, REPRODUCED
from spie.paper.sections import Table
from spie.runs.store import Store


def test_every_run_is_another_one_and_the_rivals_are_those_of_pixels():
    runs = judge_of.runs(20)
    assert len({run.id for run in runs}) == len(runs)
    cells = {(run.env, run.agent, *run.variant.items()) for run in runs}
    assert len(cells) == len(runs) - 2 * 6  # shared runs have blocks of 10 seeds
    shared = {run.id for run in get_experiment("pixels").runs(20)} & {run.id for run in runs}
    assert len(shared) == 2 * 6 * 2  # all but DQN without a Monte-Carlo part, on two tasks
    assert [(run.env, run.agent) for run in runs[:3]] == [("four-rooms", who) for who in ("spie", "novelty", "count")]


def test_the_oracle_and_the_constant_differ_from_spie_in_nothing_but_the_bonus():
    runs = [run for run in judge_of.runs(20) if run.env == "four-rooms"]
    ours = dataclasses.asdict(next(run.settings for run in runs if run.agent == "spie" and not run.variant))
    for name in ("count", "constant"):
        theirs = dataclasses.asdict(
            next(run.settings for run in runs if run.agent == name and run.variant == judge_of.PAID)
        )
        assert {key for key in ours if ours[key] != theirs[key]} == {"bonus"}
    for run in runs:
        if run.agent == "spie" and run.variant:
            theirs = dataclasses.asdict(run.settings)
            assert 1 <= len({key for key in ours if ours[key] != theirs[key]} - {"bonus"}) <= 2


def test_tasks_that_no_trial_saw_have_a_goal_that_can_be_reached():
    for env in judge_of.HELD_OUT:
        task = next(run.task for run in judge_of.runs(1) if run.env == env)
        goal = np.flatnonzero((task.mdp.reward[0] > 0).any(axis=(1, 2)))
        P = task.mdp.transition()
        reached = task.mdp.start > 0
        for _ in range(task.mdp.n_states):
            reached = reached | (reached.astype(float) @ P > 0)
        assert reached[goal].any()


@pytest.mark.parametrize(("who", "verdict"), [("spie", REPRODUCED), ("constant", NOT_REPRODUCED)])
def test_the_ledger_follows_who_succeeds_late(tmp_path, monkeypatch, who, verdict):
    success = {"spie": 0.5, who: 0.9}
    monkeypatch.setattr(judge_of, "late_success", lambda trace: trace.total_reward)
    with Store(tmp_path / "results.db") as store:
        fill(store, judge_of.NAME, reward=lambda run: 100 * success.get(run.agent, 0.1))
        results = Results(store)
        found = {one.claim.id: one.verdict for one in judge(results, judge_of.CLAIMS)}
        parts = judge_of.section(get_experiment(judge_of.NAME), results)
    assert found["spie-pixels-beats-all-controls"] == verdict
    assert found["spie-pixels-survives-noise"] == found["spie-pixels-held-out"] == verdict
    overview, *tables = [part for part in parts if isinstance(part, Table)]
    assert len(tables) == len(overview.rows) == 2 + 4 + 3  # tasks, with noise, held out
    assert all("\N{EN DASH}" not in row.values for row in overview.rows)  # the names in it are those of the runs
    assert len(tables[0].rows) == 3 + 6 + 1 + len(judge_of.ABLATIONS) + 4


def test_twice_is_the_bar_unless_it_would_exceed_one():
    assert judge_of._over_the_bar(0.7, 0.3) == pytest.approx(0.1)
    assert judge_of._over_the_bar(0.95, 0.6) == pytest.approx(0.05)


def test_the_remedy_is_measured_against_the_same_agent_on_the_same_noise(tmp_path, monkeypatch):
    monkeypatch.setattr(judge_of, "late_success", lambda trace: trace.total_reward)
    runs = judge_of.runs(20)
    for run in runs[-2:]:
        plain = next(one for one in runs if (one.env, one.agent, one.variant) == (run.env, "spie", {}))
        ours, theirs = (dataclasses.asdict(one.settings) for one in (run, plain))
        assert {key for key in ours if ours[key] != theirs[key]} == {"novelty_encoder"}
        assert run.task.digest == plain.task.digest

    def reward(run):
        return 90 if run.variant == judge_of.REMEDY else 10 if run.agent == "spie" else 50

    with Store(tmp_path / "results.db") as store:
        fill(store, judge_of.NAME, reward=reward)
        found = {one.claim.id: one.verdict for one in judge(Results(store), judge_of.CLAIMS)}
    assert found["spie-pixels-remedy"] == REPRODUCED
    assert found["spie-pixels-survives-noise"] == NOT_REPRODUCED  # which is of spie as it comes
