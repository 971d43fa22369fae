"""What is measured on the image tasks, and what the page says of it."""

import numpy as np
import pytest

from made_up import fill
from spie.paper.beyond import pixels
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.paper.sections import CONTROL, Table
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def test_the_image_tasks_show_every_agent_against_every_other(store):
    fill(store, "pixels", reward=lambda run: 5 + 9 * (run.agent == "count"))
    tables = [part for part in pixels.section(get_experiment("pixels"), Results(store)) if isinstance(part, Table)]
    assert len(tables) == 2 * 3  # two tasks: measures, then two comparisons
    measures = {row.values[0]: row.values for row in tables[0].rows}
    assert measures["dqn"][3] == "5.0"
    assert measures[f"count ({CONTROL})"][3] == "14.0"
    for table in tables[1:3]:
        names = list(table.columns[1:])
        chances = {
            (row.values[0].removesuffix(f" ({CONTROL})"), name): row.values[1 + i]
            for row in table.rows
            for i, name in enumerate(names)
        }
        assert chances["dqn", "dqn"] == "–"
        for (a, b), p in chances.items():
            if a != b:
                assert float(p.rstrip("*")) + float(chances[b, a].rstrip("*")) == pytest.approx(1, abs=0.011)


def test_a_sentence_says_whom_an_agent_beats_and_to_whom_it_loses():
    ours, rivals = np.full(5, 3.0), {"a": np.full(5, 1.0), "b": np.full(5, 3.0), "c": np.full(5, 9.0), "d": np.ones(5)}
    assert pixels.against(ours, rivals) == "above a and d, undecided against b, below c"
