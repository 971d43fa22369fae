"""Cells that differ, and what other readings of the open points do to them."""

import dataclasses

import pytest

from made_up import fill, published
from spie.paper.chains import settings
from spie.paper.contenders import label
from spie.paper.readings import runs
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.paper.sections import Text
from spie.runs.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


def section_of(name, store):
    experiment = get_experiment(name)
    return experiment.section(experiment, Results(store))


@pytest.mark.slow
def test_a_cell_that_differs_is_put_beside_the_other_readings(store):
    times_the_paper = {  # on RiverSwim; SR agrees under no reading, FR under one, which breaks SRR
        "sarsa-sr": 0.1,
        "sarsa-sr next_action=carry": 9,
        "sarsa-sr ties=first": 5,
        "sarsa-sr m0=1": 9,
        "sarsa-fr": 0.5,
        "sarsa-fr next_action=carry": 9,
        "sarsa-fr m0=1": 9,
        "sarsa-fr bonus_from=previous": 9,
        "sarsa-fr reward=fr-next": 9,
        "sarsa-srr ties=first": 9,
    }

    def reward(run):
        return published(run) * (times_the_paper.get(label(run.agent, run.variant), 1) if run.env == "riverswim" else 1)

    def reasons():
        (lines,) = (part for part in section_of("table1", store) if isinstance(part, Text))
        return [line.replace("\N{NARROW NO-BREAK SPACE}", " ") for line in lines.lines]

    fill(store, "table1", reward=reward)
    assert [line.partition(" Other ")[0] for line in reasons()] == [
        "sarsa-sr on riverswim: ours is 0.1 times the paper's.",
        "sarsa-fr on riverswim: ours is 0.5 times the paper's.",
    ]
    assert all(line.endswith("Other readings are not compared yet: spie run readings.") for line in reasons())

    fill(store, "readings", reward=reward)
    sr, fr = reasons()
    assert "None of 3 other readings agrees; nearest: ties=first (5 985 375, " in sr  # 5 times 1 197 075
    assert fr.endswith("Another reading agrees: ties=first (1 547 243, 0.0 apart).")
    counts = {row.values[0]: row.values[1:] for row in section_of("readings", store)[1].rows}
    assert counts["ties=first"] == (22, 20, 20, 1, 1)  # cells; agree as read here, under it; explained, broken
    assert counts["next_action=carry"] == (22, 20, 20, 0, 0)


def test_another_reading_changes_its_option_and_nothing_else():
    planned = runs(3)
    assert len(planned) == 100
    for run in planned:
        default = dataclasses.asdict(settings(run.env, run.agent))
        changed = {key: value for key, value in dataclasses.asdict(run.settings).items() if value != default[key]}
        assert changed == run.variant
        assert run.role == ("reading" if run.variant else "paper")


def test_controls_and_the_ceiling_are_rows_of_their_own(store):
    fill(store, "table4")
    table = section_of("table4", store)[0]
    kinds = {row.values[0]: row.kind for row in table.rows}
    assert kinds == {
        "sarsa-srr": "",
        "sarsa-srr-a": "",
        "sarsa-srr-b": "",
        "sarsa-srr-c": "",
        "constant": "control",
        "optimistic": "control",
        "count": "control",
        "random": "control",
        "best policy": "total",
    }
    marks = {row.values[2].text for row in table.rows if row.kind == "control"}
    assert marks == {"control, not in the paper"}
    for row in table.rows:  # a span stands for as many cells
        assert sum(getattr(value, "columns", 1) for value in row.values) == len(table.columns)
