import itertools

import numpy as np
import pytest

from made_up import fill, shorten_search
from spie.paper import contests, tuned, tuned_grids
from spie.paper.chains import CELLS
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.runs.store import Store
from spie.search.select import FRESH
from spie.trace import Scores


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A grid of two values each."""
    shorten_search(monkeypatch)


def made_up(score):
    """Loads, for any run of a search, scores that depend on the settings alone."""

    def load(run):
        seeds = np.arange(run.n_seeds) if isinstance(run.seeds, int) else np.array(run.seeds)
        values = [np.full(run.n_seeds, score(run, s)) for s in run.settings.settings()]
        return Scores(seeds, np.array(values))

    return load


def test_every_agent_of_the_tables_and_every_control_is_searched_on_both_chains():
    found = tuned.contests(1000)
    agents = {agent for _, agent in CELLS} | {"constant", "optimistic", "count", "random"}
    assert {*found} == {*itertools.product(("riverswim", "sixarms"), agents)}
    sizes = {agent: len(found["riverswim", agent].searches[0]) for agent in agents}
    assert sizes["sarsa-srr"] == sizes["sarsa-sr"] == sizes["sarsa-srr-a"] == 2**5
    assert sizes["sarsa-sr-pr"] == 2**7  # its own eta_pr and gamma_pr
    assert sizes["constant"] == sizes["optimistic"] == sizes["count"] == 2**3


def test_no_seed_serves_in_two_rounds():
    contest = tuned.contests(1000)["riverswim", "sarsa"]
    load = made_up(lambda run, s: s.alpha)
    searched = {seed for run in contest.runs(0, load) for seed in range(run.seeds)}
    second = {seed for run in contest.runs(1, load) for seed in run.seeds}
    confirmed = {seed for run in tuned.confirmation(1000, load) for seed in run.seeds}
    assert (len(searched), len(second), len(confirmed)) == (20, 200, 1000)
    assert len(searched | second | confirmed) == 1220


def test_the_second_round_decides_among_the_best_of_the_search():
    """The search likes a large alpha; on fresh seeds the smaller alpha does better, but only with epsilon 0.05."""
    contest = tuned.contests(1000)["riverswim", "sarsa"]

    def score(run, s):
        fresh = not isinstance(run.seeds, int)
        return 10 * (s.alpha == 0.005) + (s.epsilon == 0.05) if fresh else s.alpha

    winner = contests.winner(contest, made_up(score))
    assert (winner.alpha, winner.epsilon) == (0.005, 0.05)


def test_one_setting_serves_all_maps_and_each_counts_by_its_size():
    """Less is better. On three maps the first setting is faster by 1 step a state, on the largest slower by 5."""
    contest = tuned_grids.contests(200)["sarsa"]

    def score(run, s):
        slow = 5 if run.env == "of-large" else -1
        return run.task.n_states * (10 + slow * (s.alpha == 0.005))

    winner = contests.winner(contest, made_up(score))
    assert winner.alpha == 0.01  # 5 > 3


def test_the_unseen_maps_are_not_those_of_the_search():
    contest = tuned_grids.contests(200)["sarsa-srr"]
    assert not {search.env for search in contest.searches} & {*tuned_grids.UNSEEN}
    runs = tuned_grids.confirmation(200, made_up(lambda run, s: s.alpha))
    assert {run.env for run in runs} == {search.env for search in contest.searches} | {*tuned_grids.UNSEEN}
    assert {run.task.digest for run in runs if run.env in tuned_grids.UNSEEN}.isdisjoint(
        search.task.digest for search in contest.searches
    )
    assert all(min(run.seeds) >= FRESH for run in runs)


def test_settings_are_found_by_number_across_pieces():
    contest = tuned.contests(1000)["riverswim", "count"]
    assert len(contest.runs(0, None)) == 2  # one for each beta, with its q0
    columns = contest.searches[0].columns
    for number in range(len(contest)):
        s = contest.settings(number)
        assert (s.alpha, s.epsilon, s.beta, s.q0) == tuple(
            columns[n][number] for n in ("alpha", "epsilon", "beta", "q0")
        )
    again = contest.trials(0, np.array([7, 0, 5]), (FRESH,))
    assert [(len(run.settings), numbers.tolist()) for run, numbers in again] == [(1, [0]), (2, [5, 7])]


@pytest.mark.slow
def test_the_order_of_tuned_agents_is_judged_pair_by_pair_against_the_printed_one(tmp_path):
    """SARSA-SR-PR and SARSA-SRR change places with what Table 1 prints for RiverSwim, SARSA and SARSA-FR are level."""
    means = {"sarsa-srr": 9e5, "sarsa-sr-pr": 8e5, "sarsa": 5e4, "sarsa-fr": 5e4, "sarsa-sr": 4e4, "constant": 1e6}
    experiment = get_experiment("tuned")
    with Store(tmp_path / "r.db") as store:
        fill(store, "tuned", reward=lambda run: 1e3 if run.variant else means.get(run.agent, 1e3))
        table, lines, *_ = experiment.section(experiment, Results(store))
    assert [row.values[0] for row in table.rows][:3] == [
        "constant (control, not in the paper)",
        "sarsa-srr",
        "sarsa-sr-pr",
    ]
    assert lines.lines[1:] == [
        "Of 10 pairs 7 are as printed and 1 undecided; the other way round: sarsa-sr-pr above sarsa-srr, "
        "sarsa-sr above sarsa.",
        "Of all agents and controls constant earns most; not told apart from it: none.",
    ]
    for row in table.rows:  # a span stands for as many cells
        assert sum(getattr(value, "columns", 1) for value in row.values) == len(table.columns)
