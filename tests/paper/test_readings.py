"""Cells that differ, and what other readings of the open points do to them."""

import dataclasses

import pytest

from made_up import fill, published
from spie.paper import published as paper
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

    def times(run):
        return 9 if "row" in run.variant else times_the_paper.get(label(run.agent, run.variant), 1)

    def reward(run):
        return published(run) * (times(run) if run.env == "riverswim" else 1)

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
    assert len(planned) == 100 + 68  # readings, rows
    for run in planned:
        default = dataclasses.asdict(settings(run.env, run.agent))
        changed = {key: value for key, value in dataclasses.asdict(run.settings).items() if value != default[key]}
        if "row" in run.variant:
            row = paper.TABLE_5[run.env, run.variant["row"]]
            assert changed
            assert changed == {name: row[name] for name in changed}
        else:
            assert changed == run.variant
        assert run.role == ("reading" if run.variant else "paper")


def test_every_row_of_table_5_is_tried_where_it_has_what_the_agent_needs():
    tried = {(run.env, run.agent, run.variant["row"]) for run in runs(3) if "row" in run.variant}
    assert ("riverswim", "sarsa-sr", "sarsa-fr") in tried
    assert ("riverswim", "sarsa-fr", "sarsa-sr") in tried
    assert ("riverswim", "sarsa-srr-a", "sarsa-fr") in tried
    assert ("riverswim", "sarsa-srr-fixed", "sarsa-srr") in tried  # a fixed SR needs no eta
    assert ("riverswim", "sarsa-srr", "sarsa-srr-fixed") not in tried  # and its row has none
    assert ("riverswim", "sarsa-sr-pr", "sarsa-srr") not in tried  # no eta_pr
    assert ("sixarms", "sarsa-sr", "sarsa-fr") not in tried  # the same numbers
    assert all(agent != row for _, agent, row in tried)


def test_exchanged_rows_are_judged_both_ways_and_against_chance(store):
    exchanged = {"sarsa-sr row=sarsa-fr": 1.0, "sarsa-fr row=sarsa-sr": 1.1, "sarsa-sr": 0.1, "sarsa-fr": 0.1}

    def reward(run):
        times = exchanged.get(label(run.agent, run.variant), 0.01 if "row" in run.variant else 1.0)
        return published(run) * (times if run.env == "riverswim" else 1.0)

    fill(store, "table1", reward=reward)
    fill(store, "readings", reward=reward)
    (said,) = (part for part in section_of("readings", store) if isinstance(part, Text) and "Table 5" in part.title)
    lines = [line.replace("\N{NARROW NO-BREAK SPACE}", " ") for line in said.lines]
    assert lines[0].startswith("sarsa-sr on riverswim agrees with the row of sarsa-fr: 1 197 075 (0.0 standard")
    assert lines[0].endswith("sarsa-fr with the row of sarsa-sr: 1 701 967 (45.4 standard errors apart), differs.")
    assert lines[1].startswith("6 exchanges were tried on cells that differ, and 1 make one agree.")
    (reasons,) = (part for part in section_of("table1", store) if isinstance(part, Text))
    assert "With another row of Table 5 it agrees: row=sarsa-fr" in reasons.lines[0]
    assert "row" not in reasons.lines[1]


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
    marks = {row.values[3].text for row in table.rows if row.kind == "control"}
    assert marks == {"control, not in the paper"}
    for row in table.rows:  # a span stands for as many cells
        assert sum(getattr(value, "columns", 1) for value in row.values) == len(table.columns)
