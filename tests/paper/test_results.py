"""What a store has of an experiment: cells by environment, agent and variant, whatever their names."""

import pytest

from made_up import fill
from spie.paper.contenders import Contender, label, of
from spie.paper.registry import experiments
from spie.paper.results import Results
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def test_a_cell_is_found_by_its_variant(store):
    rewards = {None: 1, "first": 2, "carry": 3}
    fill(store, "readings", reward=lambda run: rewards.get(next(iter(run.variant.values()), None), 9))
    results = Results(store)
    for variant, reward in (({}, 1), ({"ties": "first"}, 2), ({"next_action": "carry"}, 3), ({"m0": 1.0}, 9)):
        trace = results.trace("readings", "riverswim", "sarsa-srr", **variant)
        assert trace.total_reward.mean() == reward
    assert results.trace("readings", "riverswim", "sarsa-srr", ties="random") is None
    assert results.trace("readings", "riverswim", "sarsa-srr", ties="first", m0=1.0) is None


def test_what_was_never_asked_for_has_no_runs(store):
    results = Results(store)
    assert results.runs("table1") == []
    assert not results.finished("table1")
    assert results.trace("table1", "riverswim", "sarsa") is None


def test_an_experiment_is_finished_when_all_of_its_runs_are_stored(store):
    fill(store, "table3", runs=3)
    assert (Results(store).missing("table3"), Results(store).finished("table3")) == (11, False)
    fill(store, "table3")
    assert (Results(store).missing("table3"), Results(store).finished("table3")) == (0, True)


def test_the_runs_of_a_search_are_no_cells(store):
    fill(store, "figure4", seeds=2)
    results = Results(store)
    assert {*results.found("figure4")} == {"mountain-car", "mountain-car, norms", "pendulum"}
    searched = results.searched("figure4")
    assert len(searched) == 12
    assert all(min(run.seeds) >= 10**6 for run, _ in searched)
    env = searched[0].run.env
    assert results.trace("figure4", env, "linear-q-sf", beta=0.01) is None


def test_what_is_computed_once_is_kept(store):
    calls = []

    def double(results, n):
        calls.append(n)
        return 2 * n

    results = Results(store)
    assert [results.once(double, n) for n in (1, 2, 1)] == [2, 4, 2]
    assert calls == [1, 2]


def test_a_variant_is_told_in_words():
    assert label("sarsa-srr", {}) == "sarsa-srr"
    assert label("linear-q-sf", {"beta": 0.0001}) == "linear-q-sf beta=0.0001"
    assert [who.label for who in of("figure7", "a", "b", q0="bound")] == ["a q0=bound", "b q0=bound"]
    assert Contender("figure1", "sarsa").label == "sarsa"


def test_runs_of_one_cell_differ_in_their_seeds_only():
    for experiment in experiments():
        specs, seeds = {}, {}
        for run in experiment.runs(12):
            if run.role != "search":
                cell = (run.env, label(run.agent, run.variant))
                spec = {name: value for name, value in run.spec.items() if name != "seeds"}
                assert specs.setdefault(cell, spec) == spec, (experiment.name, cell)
                assert not seeds.setdefault(cell, set()) & set(run.seed_numbers), (experiment.name, cell)
                seeds[cell] |= set(run.seed_numbers)
