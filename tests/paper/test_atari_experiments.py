"""Scores on Atari within a budget, beside the paper's."""

import json

import pytest

from made_up import SEEDS, fill
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.runs.store import Store


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
