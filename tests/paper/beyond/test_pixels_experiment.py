"""What is measured on the image tasks, and what the page says of it."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from made_up import fill, played
from spie.paper.beyond import pixels
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.paper.sections import CONTROL, Table, Text
from spie.runs.store import Store


def test_success_counts_the_episodes_that_end_in_the_last_fifth_of_the_steps():
    t = played(100, [[50, 30, 10, 5, 0], [80, 20, 0, 0, 0]], [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    assert_array_equal(
        pixels.late_success(t), [0.5, 0]
    )  # ends 50, 80, 90, 95, and 80, 100: at 80 the last fifth begins


def test_a_run_without_any_episode_has_no_success():
    assert_array_equal(pixels.late_success(played(100, [[0]], [[0]])), [0])


def test_goals_are_counted_up_to_each_step():
    t = played(100, [[50, 30, 10, 5]], [[1, 0, 1, 1]])
    assert_array_equal(pixels.goals(t, np.array([49.0, 50, 89, 90, 100])), [[0, 1, 1, 2, 3]])


def test_the_experiment_compares_five_agents_and_two_controls_on_two_tasks():
    runs = pixels.runs(20)
    agents = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf", "constant", "count")
    assert [(run.env, run.agent) for run in runs] == [
        (env, a) for env in ("four-rooms", "cluster-hard") for a in agents
    ]
    assert {run.env: run.steps for run in runs} == {"four-rooms": 30_000, "cluster-hard": 40_000}
    assert [run.role for run in runs] == [*["paper"] * 5, *["control"] * 2] * 2
    assert len({run.id for run in runs}) == len(runs)
    assert get_experiment("pixels").seeds == 20


def test_the_papers_bonus_shares_its_rivals_with_the_others():
    runs, shared = pixels.printed_runs(20), {run.id for run in pixels.runs(20)}
    own = [run for run in runs if run.id not in shared]
    assert [(run.env, run.agent) for run in own] == [(env, "dqn-sf-pf") for env in ("four-rooms", "cluster-hard")]
    assert all(run.variant == {"bonus": "printed"} for run in own)
    agent = own[0].settings
    assert (agent.bonus, agent.beta, agent.scale, agent.clip) == ("sf-pf", 0.07, "none", True)
    assert [run.env for run in runs] == ["four-rooms"] * 5 + ["cluster-hard"] * 5


def test_a_run_leaves_the_trace_of_its_seeds():
    run = dataclasses.replace(pixels.runs(3)[7], steps=120)
    t = run.execute()
    assert_array_equal(t.seeds, [0, 1, 2])
    assert_array_equal(t.steps, 120)
    assert_array_equal(
        t.visits.sum(axis=1), 121 + (t.episode_steps > 0).sum(axis=1)
    )  # every episode's first state counts
    assert_array_equal(t.first_visit >= 0, t.visits > 0)
    assert_array_equal(t.total_reward, 0)
    assert_array_equal(t.truncated, (t.episode_steps == 50).sum(axis=1))


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


def test_no_bonus_is_the_same_agent_without_it(store):
    fill(store, "pixels", reward=lambda run: 5)
    parts = pixels.section(get_experiment("pixels"), Results(store))
    (lines,) = (part.lines for part in parts if isinstance(part, Text))
    bare = {line.split(":")[0]: line.partition("no bonus (")[2].partition(")")[0] for line in lines}
    tasks = ("four-rooms", "cluster-hard")  # RND has no Monte-Carlo part, and neither has its rival
    assert bare == {f"{task}, {who}": "dqn" if who == "rnd" else "dqn-mmc" for task in tasks for who in pixels.BONUSES}


def test_a_sentence_says_whom_an_agent_beats_and_to_whom_it_loses():
    ours, rivals = np.full(5, 3.0), {"a": np.full(5, 1.0), "b": np.full(5, 3.0), "c": np.full(5, 9.0), "d": np.ones(5)}
    assert pixels.against(ours, rivals) == "above a, d; undecided against b; below c"
