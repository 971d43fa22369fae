"""The five sentences that the page opens with, for an empty, a half and a whole store."""

import numpy as np
import pytest

from made_up import SEEDS, fill, published
from spie.paper.claims import judge
from spie.paper.findings import findings, leaders
from spie.paper.registry import claims
from spie.paper.results import Results
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def sentences(store, only=()):
    results = Results(store)
    known = claims()
    found = findings(results, judge(results, [c for c in known if not only or c.id in only], known))
    return [sentence.replace("\N{NARROW NO-BREAK SPACE}", " ") for sentence in found]


NEEDED = ("goal-efficiency", "mountain-car", "table1-best", "table1-best-of-controls")


def test_an_empty_store_gives_no_number_and_says_what_to_run(store):
    found = sentences(store, NEEDED)
    assert len(found) == 5
    assert found[0] == "Who earns most on RiverSwim and SixArms is not known yet: spie run table1."
    assert found[1] == "Who covers the grid worlds fastest is not known yet: spie run figure1."
    assert "spie run figure3" in found[2]
    assert "spie run figure4" in found[2]
    assert (
        found[3]
        == "The verdicts on 3 claims of the paper are: 1 contradicted by the paper's own numbers and 2 not run."
    )
    assert found[4].endswith("is not known yet: spie run.")


def test_half_a_store_says_what_is_known_and_what_is_not(store):
    fill(store, "table1", reward=lambda run: published(run) if run.role == "paper" else 3e6)
    found = sentences(store, NEEDED)
    assert found[0] == (
        "With the paper's settings, most reward of the paper's agents is earned by sarsa-sr-pr on riverswim (1.12 "
        "times sarsa-srr's) and sarsa-srr on sixarms; of our controls, by constant on riverswim (1.18 "
        "times sarsa-srr's; not told apart from it: optimistic, count, random) and constant on sixarms (1.36 times "
        "sarsa-srr's; not told apart from it: optimistic, count, random)."
    )
    assert "not known yet" in found[1]
    assert (
        found[3]
        == "The verdicts on 3 claims of the paper are: 1 contradicted by the paper's own numbers and 2 not run."
    )
    assert found[4] == (
        "Whether SPIE does better than our controls, agents without any representation, is asked 1 times; "
        "the answer is 1 times no."
    )


def test_too_few_seeds_and_half_an_experiment_lead_nowhere(store):
    fill(store, "table1", seeds=9)
    assert "not known yet" in sentences(store, NEEDED)[0]
    fill(store, "table1", seeds=SEEDS, runs=3)
    assert "not known yet" in sentences(store, NEEDED)[0]


def test_a_whole_store_leaves_nothing_open(store):
    for name in ("table1", "figure1", "figure3", "figure4"):
        fill(store, name)
    found = sentences(store, NEEDED)
    assert len(found) == 5
    assert not any("not known" in sentence for sentence in found)
    assert found[1].startswith(
        "Without reward, the fewest median steps to 50, 90 and 99 % of four maps, 12 comparisons"
    )
    assert "on goal tasks sarsa-srr takes" in found[2]
    assert found[2].endswith("times the steps of r_SF (far fewer: not reproduced).")  # made up alike for both


def test_who_cannot_be_told_apart_from_the_leader_is_named():
    seeds = np.arange(20.0)
    assert leaders({"a": seeds, "b": seeds + 9, "c": seeds + 8}) == ("b", ["c"])
