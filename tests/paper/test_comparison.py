"""Published cells beside ours: agreeing, differing, not run."""

import pytest

from made_up import fill, published
from spie.paper.claims import FEWEST_SEEDS
from spie.paper.comparison import comparisons, tally
from spie.paper.results import Results
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def test_cells_are_counted_as_agreeing_differing_or_not_run(store):
    fill(store, "table3", reward=lambda run: published(run) * (9 if run.agent == "sarsa-srr-fixed" else 1))
    rows = {row.values[0][:7]: tuple(row.values[1:]) for row in tally(Results(store)).rows}
    assert rows["Table 3"] == (4, 2, 0)  # SARSA-SRR on both chains is far off
    assert rows["Table 1"] == (0, 0, 10)
    assert rows["Table 4"] == (0, 0, 8)
    assert rows["Table 2"] == (0, 0, 30)
    assert rows["all"] == (4, 2, 48)


def test_too_few_seeds_give_no_verdict(store):
    fill(store, "table3", seeds=FEWEST_SEEDS - 1)
    assert tuple(tally(Results(store)).rows[-1].values[1:]) == (0, 0, 54)
    assert {c.verdict for c in comparisons(Results(store), "table3")} == {"too few seeds"}
