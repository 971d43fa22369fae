"""Scores on Atari within a budget, beside the paper's."""

import dataclasses
import json
import types

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import spie
from made_up import SEEDS, fill, played
from spie.paper import atari, recon, table2
from spie.paper import published as paper
from spie.paper.claims import judge
from spie.paper.registry import claims, experiment_of, get_experiment
from spie.paper.results import Results
from spie.runs.run import save
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
        ("table2", 0, "0 frames are too small a budget; give 1000 or more"),
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


# -- Budgets by name, networks by name


def test_a_network_can_be_asked_for_at_any_budget():
    small = get_experiment("table2", network="paper")
    assert {run.settings.network for run in small.runs(1)} == {"paper"}
    assert {run.steps for run in small.runs(1)} == {atari.SMALL_TIER // 5}
    large = get_experiment("table2", 10**8, "nature")
    assert (large.key, large.options) == ("table2@100000000@network=nature", " --frames 100000000 --network nature")
    assert {run.settings.network for run in large.runs(1)} == {"nature"}
    for asked in (small, large):
        assert [run.id for run in experiment_of(asked.key).runs(1)] == [run.id for run in asked.runs(1)]


def test_a_tier_is_a_budget_by_name():
    minutes, hours, papers = (get_experiment("table2", tier=name) for name in ("minutes", "hours", "paper"))
    assert minutes.key == "table2"
    assert (hours.key, hours.frames, hours.seeds, len(hours.runs(2))) == ("table2@tier=hours", 10**6, 2, 20)
    assert {run.settings.network for run in hours.runs(2)} == {"nature"}
    assert [run.seed_numbers for run in hours.runs(2)] == [(0,)] * 10 + [(1,)] * 10  # a seed is a run; more add to it
    assert [run.id for run in hours.runs(2)][:10] == [run.id for run in hours.runs(1)]
    by_frames = {run.id for run in get_experiment("table2", 10**6).runs(2)}
    ours = {run.id: run.agent for run in hours.runs(2) if run.id not in by_frames}
    assert list(ours.values()) == ["dqn-sp-novelty"] * 4
    assert (papers.frames, {run.settings.network for run in papers.runs(1)}) == (10**8, {"paper"})
    assert [run.id for run in experiment_of(hours.key).runs(2)] == [run.id for run in hours.runs(2)]


def test_an_agent_of_ours_stands_in_the_table_without_a_printed_cell(tmp_path):
    hours = get_experiment("table2", tier="hours")
    ours = [run for run in hours.runs(1) if run.agent == "dqn-sp-novelty"]
    assert [table2.printed(run) for run in ours] == [None, None]
    with Store(tmp_path / "results.db") as store:
        fill(store, hours.key)
        scores = hours.section(hours, Results(store))[0]
    by_agent = {row.values[1]: row.values[-2:] for row in scores.rows if row.values[0] == "freeway"}
    assert by_agent["dqn-sp-novelty"] == (None, None)
    assert by_agent["rnd"] == tuple(paper.TABLE_2["freeway", "rnd"])
    assert hours.compared(hours, ours[0], None)["verdict"] == "not in the paper"


def test_a_tier_that_does_not_fit_is_refused_before_its_first_run(spie, monkeypatch):
    monkeypatch.setattr("spie.engine.lanes.machine_memory", lambda: 2e9)
    code, _, err = spie("run", "table2", "--tier", "paper", "--seeds", "1")
    assert code == 2
    said = "would need 7.8 GB and this machine has 2.0 GB; run it with fewer frames or seeds, or on another machine"
    assert err.splitlines()[-1] == f"spie: freeway dqn, 20,000,000 steps, {said}"
    monkeypatch.setattr("shutil.disk_usage", lambda path: types.SimpleNamespace(free=1e9))
    monkeypatch.setattr("spie.runs.backends.machine_memory", lambda: 1e12)
    monkeypatch.setattr("spie.engine.lanes.machine_memory", lambda: 1e12)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    code, _, err = spie("run", "table2", "--tier", "paper", "--seeds", "1")
    assert code == 2
    assert "would need 2 x 7.8 GB of disk for checkpoints and" in err
    assert err.splitlines()[-1].endswith("has 1.0 GB; give a --results file elsewhere")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("table2", {"network": "natur"}, 'no network of table2 "natur"; did you mean "nature"'),
        ("table2", {"tier": "hour"}, 'no tier of table2 "hour"; did you mean "hours"'),
        ("table1", {"network": "paper"}, "table1 has no choice of networks; leave out --network"),
        ("recon", {"tier": "hours"}, "recon has no tiers; leave out --tier"),
        ("table2", {"tier": "hours", "frames": 5000}, "a tier says how many frames and which network"),
    ],
)
def test_an_unknown_network_or_tier_is_one_clear_line(name, options, message):
    with pytest.raises(ValueError, match=message):
        get_experiment(name, **options)


# -- The claims, on made-up results


def stored(store, key, scores, seeds=12, **fields):
    """Runs of an experiment whose agents score as given, by game and agent, with a spread of 1; others are missing."""
    store.ask_for(key, seeds)
    for run in experiment_of(key).runs(seeds):
        mean = scores.get((run.env, run.agent, run.settings.reconstruction))
        if mean is not None:
            (seed,) = run.seed_numbers
            rewards = np.full((1, 150), mean + (-1.0, 1.0)[seed % 2])
            trace = played(run.steps, np.full((1, 150), run.steps // 150), rewards)
            save(store, run, dataclasses.replace(trace, **fields), 0.5)


def judged(store, name):
    known = claims()
    return judge(Results(store), [claim for claim in known if claim.id == name], known)[0]


def test_claims_on_atari_are_measured_at_any_budget_and_comparable_only_at_the_papers(store):
    losses = np.ones((1, 10, 4)) * [2.0, 2 / 1500, 30 / 1500, 2000.0]
    games = {(game, "dqn-sr", True): 10.0 for game in ("freeway", "venture")}
    games |= {(game, "dqn-sf-pf", True): 11.0 for game in ("freeway", "venture")}
    stored(store, "table2", games, losses=losses)
    like = judged(store, "atari-like-sr")
    assert [round(part.value, 6) for part in like.parts] == [1.1, 1.1]
    assert like.verdict == "not run at the paper's budget"
    assert (
        "20,000 frames, the paper has 100,000,000, 12 seed(s): not comparable; there it holds in all 2" in like.reason
    )
    scales = judged(store, "atari-losses")
    assert [round(part.value, 6) for part in scales.parts[:3]] == [1.0, 15.0, 1.0]
    assert [part.outcome for part in scales.parts[:3]] == ["holds", "fails", "holds"]

    stored(store, "table2@100000000", games, losses=losses)
    assert judged(store, "atari-like-sr").verdict == "reproduced"
    assert judged(store, "atari-losses").verdict == "partly"


def test_the_ablation_is_measured_by_scores_with_and_without(store):
    game = recon.GAME
    scores = {(game, "dqn-sf-pf", True): 9.0, (game, "dqn-sf-pf", False): 4.0, (game, "dqn-sr", False): 6.0}
    stored(store, "recon@100000000", scores)
    assert judged(store, "atari-reconstruction").verdict == "reproduced"
    without = judged(store, "atari-without-reconstruction")
    assert (without.verdict, without.parts[0].value) == ("not reproduced", -2.0)


def test_saturation_is_where_the_mean_of_a_hundred_episodes_nears_its_last():
    rewards = np.concatenate([np.zeros(100), np.full(200, 10.0)])
    t = played(300, np.full((2, 300), 1), np.stack([rewards, np.zeros(300)]))
    # a window of 100 holds 90 of the tens after 190 episodes, of 5 frames each
    assert_array_equal(atari.saturation(t), [950, np.nan])


def test_a_game_has_a_curve_where_enough_episodes_ended(store):
    store.ask_for("table2", 1)
    for run in get_experiment("table2").runs(1):
        n = atari.CURVE_EPISODES - (run.env != "freeway")
        save(store, run, played(run.steps, np.full((1, n), 5), np.ones((1, n))), 0.5)
    scores, curves = get_experiment("table2").section(get_experiment("table2"), Results(store))
    assert len(scores.rows) == 30
    assert [panel.title for panel in curves.panels] == ["freeway"]


def test_a_learning_curve_is_the_mean_of_the_last_hundred_episodes_by_then():
    t = played(6, [[2, 2, 2]], [[1.0, 3.0, 8.0]])
    assert_array_equal(atari.reward_curve(t, np.array([0.0, 10, 19, 20, 30])), [[0, 1, 1, 2, 4]])
