"""Scores on Atari within a budget, beside the paper's."""

import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import spie
from made_up import SEEDS, fill, played
from spie.paper import atari, recon, table2
from spie.paper import published as paper
from spie.paper.registry import experiment_of, get_experiment
from spie.paper.results import Results
from spie.runs.store import Store


def test_table_2_has_the_papers_settings_at_its_budget_and_smaller_ones_below():
    runs = table2.runs(1)
    assert len(runs) == 30
    assert {run.steps for run in runs} == {atari.SMALL_TIER // 5}
    paper_run = get_experiment("table2", 10**8).runs(10)[0]
    assert (paper_run.steps, paper_run.settings) == (2 * 10**7, spie.agent("dqn", preset="paper"))
    small = runs[0].settings
    assert (small.network, small.learning_starts, small.epsilon_frames) == ("nature", 200, 2000)


def test_the_ablation_shares_a_run_with_table_2():
    with_it, without, sf = recon.runs(1)
    assert with_it.id in {run.id for run in table2.runs(1)}
    assert [run.settings.reconstruction for run in (with_it, without, sf)] == [True, False, False]
    assert [run.settings.bonus for run in (with_it, without, sf)] == ["sf-pf", "sf-pf", "sf"]
    found = [(run.agent, run.settings.reconstruction) for run in (with_it, without, sf)]
    assert found == list(paper.RECONSTRUCTION)
    assert [recon.printed(run) for run in (with_it, without, sf)] == list(paper.RECONSTRUCTION.values())


@pytest.mark.parametrize(
    ("name", "frames", "message"),
    [
        ("table2", 0, "0 frames are no budget; give 1000 or more"),
        ("table1", 2000, "table1 has no budget in frames; leave out --frames"),
        ("table22", 2000, 'no experiment "table22"; did you mean "table2"'),
    ],
)
def test_a_budget_that_is_none_is_refused(name, frames, message):
    with pytest.raises(ValueError, match=message):
        get_experiment(name, frames)


def test_a_budget_is_part_of_what_a_store_notes():
    plain, asked = get_experiment("table2"), get_experiment("table2", 50_000)
    assert (plain.key, asked.key, asked.options) == ("table2", "table2@50000", " --frames 50000")
    again = experiment_of(asked.key)
    assert (again.name, again.frames, again.key) == ("table2", 50_000, asked.key)
    assert {run.steps for run in again.runs(1)} == {10_000}
    assert {run.id for run in again.runs(1)}.isdisjoint(run.id for run in plain.runs(1))


def test_a_score_is_the_mean_of_the_last_hundred_episodes():
    t = played(1000, [[5] * 101 + [0], [0] * 102], [[1000, *range(100), 7], [0] * 102])
    assert_array_equal(atari.score(t), [49.5, np.nan])


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


@pytest.mark.parametrize(
    ("frames", "verdict"),
    [(None, "not comparable: 20,000 frames"), (10**8, "the paper's budget")],
)
def test_a_command_shows_scores_of_games_beside_the_papers_and_no_nan(store, frames, verdict):
    experiment = get_experiment("recon", frames)
    fill(store, experiment.key)
    run = experiment.runs(SEEDS)[0]
    cell = experiment.cell(run, Results(store).trace(experiment.key, run.env, run.agent))
    assert (cell["paper_mean"], cell["verdict"]) == (1530.0, verdict)
    assert cell["measure"] == "mean reward of the last 100 episodes that ended"
    json.dumps(cell, allow_nan=False)
