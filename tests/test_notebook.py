"""What things look like in a notebook: one line of text, a small table, and frames of whoever is installed."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import spie
from spie.behaviour.rows import Rows
from spie.notebook import CallProgress, html_curve, html_table, progress_below, shown
from spie.search.sweep import SweepTable
from spie.trace import EpisodeTrace, Trace, Trajectory


def trace(n=3):
    visits = np.ones((n, 4), np.int32)
    return Trace(
        np.arange(n), np.arange(n) * 10.0, np.zeros(n), np.full(n, 50), visits, visits, np.full((n, 2), 5, np.int32),
        np.zeros(n, np.int32), np.zeros((n, 0, 4), np.int32), settings="Sarsa()",
        reward_curve=np.arange(2.0 * n).reshape(n, 2).astype(np.float32),
    )  # fmt: skip


def episodes():
    steps = np.array([[4, 6, 0], [5, 5, 5]], np.int32)
    return EpisodeTrace(
        "Q()", np.array([7, 8]), steps, steps * 1.0, steps * 0.5, steps > 4, np.full(2, -1), under_way=np.zeros((2, 2))
    )


THINGS = {
    "mdp": spie.grid("cluster-hard"),
    "chain": spie.riverswim(),
    "trace": trace(),
    "one seed": trace(1),
    "episodes": episodes(),
    "trajectory": Trajectory(*(np.arange(1000) for _ in range(5))),
    "sweep": SweepTable(alpha=np.arange(500), mean=np.ones(500)),
    "rows": Rows([{"a": 1.5, "<b>": None}], "title", ("note",)),
}


@pytest.mark.parametrize("name", [name for name in THINGS if name != "rows"])
def test_a_thing_shows_itself_in_one_short_line(name):
    assert "\n" not in repr(THINGS[name])
    assert 20 < len(repr(THINGS[name])) < 200


@pytest.mark.parametrize("name", THINGS)
def test_a_thing_is_a_small_table_in_a_notebook(name):
    text = THINGS[name]._repr_html_()
    assert text.startswith("<table>")
    assert len(text) < 8000
    assert text.count("<tr>") <= 22
    assert "<b>" not in text.replace("<b>title</b>", "") or name != "rows"


def test_a_trace_shows_its_reward_over_time():
    text = trace()._repr_html_()
    assert "reward per episode in the course of the run, mean of the seeds: from 2 to 3 (least 2, most 3)" in text
    assert "points='0.0,48.0 300.0,2.0'" in text  # from the lower left to the upper right
    assert "svg" not in replace(trace(), reward_curve=None)._repr_html_()  # of older runs
    assert html_curve("", [1.0]) == html_curve("", [1.0, float("nan")]) == ""


def test_what_is_said_is_right():
    assert repr(spie.riverswim()) == "MDP 'riverswim': states 6, actions 2, starts 2, ends 0, rewards 0 to 10000"
    assert repr(trace()) == "Trace: 3 seeds x 50 steps, total reward 10 (se 5.8), 100% of 4 states seen; Sarsa()"
    assert repr(episodes()).startswith(
        "EpisodeTrace: 2 seeds x up to 15 steps, 2 episodes a seed, total reward 12.5 (se"
    )
    assert "@" in spie.grid("S..\n..G")._repr_html_()
    assert "and 480 more rows" in THINGS["sweep"]._repr_html_()
    assert html_table("", ["<x>"], []).count("&lt;x&gt;") == 1
    assert [shown(x) for x in (None, float("nan"), 1234, 0.123456, 12345.6, True)] == [
        "–", "–", "1,234", "0.1235", "12,345.6", "True",
    ]  # fmt: skip


def test_a_frame_has_a_row_a_seed_an_episode_or_a_step():
    pytest.importorskip("pandas")
    frame = trace().to_frame()
    assert list(frame["total_reward"]) == [0, 10, 20]
    assert list(frame["episodes"]) == [2, 2, 2]
    frame = episodes().to_frame()
    assert list(frame["seed"]) == [7, 7, 8, 8, 8]
    assert list(frame["reward"]) == [4, 6, 5, 5, 5]
    assert len(THINGS["trajectory"].to_frame()) == 1000


def test_without_a_library_of_frames_there_are_columns(monkeypatch):
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"to_frame needs pandas or polars: pip install pandas; or take columns\(\)"):
        trace().to_frame()
    assert list(trace().columns()["total_reward"]) == [0, 10, 20]


class Cell:
    """The display of a notebook, which notes what it shows."""

    HTML = staticmethod(str)

    def __init__(self):
        self.shown = []

    def display(self, line, display_id):
        self.shown.append(line)
        return self

    def update(self, line):
        self.shown.append(line)


def test_a_call_of_some_seconds_says_below_its_cell_how_far_it_is():
    cell, clock = Cell(), [0.0]
    tell = CallProgress("compare", cell, lambda: clock[0])
    for now, share in ((1.0, 0.1), (4.0, 0.2), (4.1, 0.3), (10.0, 0.5)):
        clock[0] = now
        tell(share)
    assert cell.shown == [
        "<small>compare: 20% after 4 s, about 16 s left</small>",
        "<small>compare: 50% after 10 s, about 10 s left</small>",
    ]
    tell(3.0, 3.0)
    assert cell.shown[-1] == ""  # done: the result takes its place
    clock[0] = 11.0
    tell(0.5)  # of a second part, which began a second ago
    assert cell.shown[-1] == "<small>compare: 50% after 11 s, about 1 s left</small>"


def test_outside_of_notebooks_and_within_two_seconds_nothing_is_shown():
    assert progress_below("compare") is None
    cell = Cell()
    tell = CallProgress("compare", cell, lambda: 0.0)
    tell(0.5)
    tell(1.0)
    assert cell.shown == []
