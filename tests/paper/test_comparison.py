"""Published cells beside ours: agreeing, not told apart, differing, not run."""

import pytest

from made_up import fill, published
from spie.paper.comparison import comparisons, tally
from spie.paper.results import Results
from spie.paper.rules import FEWEST_SEEDS
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def test_cells_are_counted_as_agreeing_differing_or_not_run(store):
    times = {"sarsa-srr-fixed": 9, "sarsa-sr-fixed": 0.5}  # 0.5: within the wide spread that is printed
    fill(store, "table3", reward=lambda run: published(run) * times.get(run.agent, 1))
    rows = {row.values[0][:7]: tuple(row.values[1:]) for row in tally(Results(store)).rows}
    assert rows["Table 3"] == (2, 2, 2, 0)  # agree, cannot be told apart, differ, not run
    assert rows["Table 1"] == (0, 0, 0, 10)
    assert rows["Table 4"] == (0, 0, 0, 8)
    assert rows["Table 2"] == (0, 0, 0, 30)
    assert rows["all"] == (2, 2, 2, 48)


def test_too_few_seeds_give_no_verdict(store):
    fill(store, "table3", seeds=FEWEST_SEEDS - 1)
    assert tuple(tally(Results(store)).rows[-1].values[1:]) == (0, 0, 0, 54)
    assert {c.verdict for c in comparisons(Results(store), "table3")} == {"too few seeds"}
