import itertools

import numpy as np
import pytest

from spie.paper import published as paper
from spie.paper import tabular, tuned
from spie.search.select import FRESH
from spie.trace import Scores


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A grid of two values each."""
    monkeypatch.setattr(paper, "SWEEP", {name: values[:2] for name, values in paper.SWEEP.items()})


def made_up(score):
    """Loads, for any run of a search, scores that depend on the settings alone."""

    def load(run):
        seeds = np.arange(run.n_seeds) if isinstance(run.seeds, int) else np.array(run.seeds)
        values = [np.full(run.n_seeds, score(run, s)) for s in run.settings.settings()]
        return Scores(seeds, np.array(values))

    return load


def test_every_agent_of_the_tables_and_every_control_is_searched_on_both_chains():
    contests = tuned.chain_contests(1000)
    agents = {agent for _, agent in tabular.CELLS} | {"constant", "optimistic", "count", "random"}
    assert {*contests} == {*itertools.product(("riverswim", "sixarms"), agents)}
    sizes = {agent: len(contests["riverswim", agent].searches[0]) for agent in agents}
    assert sizes["sarsa-srr"] == sizes["sarsa-sr"] == sizes["sarsa-srr-a"] == 2**5
    assert sizes["sarsa-sr-pr"] == 2**7  # its own eta_pr and gamma_pr
    assert sizes["constant"] == sizes["optimistic"] == sizes["count"] == 2**3


def test_no_seed_serves_in_two_rounds():
    contest = tuned.chain_contests(1000)["riverswim", "sarsa"]
    load = made_up(lambda run, s: s.alpha)
    searched = {seed for run in contest.runs(0, load) for seed in range(run.seeds)}
    second = {seed for run in contest.runs(1, load) for seed in run.seeds}
    confirmed = {seed for run in tuned.chain_confirmed(1000, load) for seed in run.seeds}
    assert (len(searched), len(second), len(confirmed)) == (20, 200, 1000)
    assert len(searched | second | confirmed) == 1220


def test_the_second_round_decides_among_the_best_of_the_search():
    """The search likes a large alpha; on fresh seeds the smaller alpha does better, but only with epsilon 0.05."""
    contest = tuned.chain_contests(1000)["riverswim", "sarsa"]

    def score(run, s):
        fresh = not isinstance(run.seeds, int)
        return 10 * (s.alpha == 0.005) + (s.epsilon == 0.05) if fresh else s.alpha

    winner = tuned.winner(contest, made_up(score))
    assert (winner.alpha, winner.epsilon) == (0.005, 0.05)


def test_one_setting_serves_all_maps_and_each_counts_by_its_size():
    """Less is better. On three maps the first setting is faster by 1 step a state, on the largest slower by 5."""
    contest = tuned.map_contests(200)["sarsa"]

    def score(run, s):
        slow = 5 if run.env == "of-large" else -1
        return run.task.n_states * (10 + slow * (s.alpha == 0.005))

    winner = tuned.winner(contest, made_up(score))
    assert winner.alpha == 0.01  # 5 > 3


def test_the_unseen_maps_are_not_those_of_the_search():
    contest = tuned.map_contests(200)["sarsa-srr"]
    assert not {search.env for search in contest.searches} & {*tuned.UNSEEN}
    runs = tuned.map_confirmed(200, made_up(lambda run, s: s.alpha))
    assert {run.env for run in runs} == {search.env for search in contest.searches} | {*tuned.UNSEEN}
    assert {run.task.digest for run in runs if run.env in tuned.UNSEEN}.isdisjoint(
        search.task.digest for search in contest.searches
    )
    assert all(min(run.seeds) >= FRESH for run in runs)


def test_settings_are_found_by_number_across_pieces():
    contest = tuned.chain_contests(1000)["riverswim", "count"]
    assert len(contest.runs(0, None)) == 2  # one for each beta, with its q0
    columns = contest.searches[0].columns
    for number in range(len(contest)):
        s = contest.settings(number)
        assert (s.alpha, s.epsilon, s.beta, s.q0) == tuple(
            columns[n][number] for n in ("alpha", "epsilon", "beta", "q0")
        )
    again = contest.trials(0, np.array([7, 0, 5]), (FRESH,))
    assert [(len(run.settings), numbers.tolist()) for run, numbers in again] == [(1, [0]), (2, [5, 7])]
