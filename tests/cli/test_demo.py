"""The first minute: `spie demo` on a terminal, in a pipe, on a narrow screen and where nothing can be written."""

import io

import numpy as np
import pytest
from rich.console import Console

import spie as library
from spie.cli import demo


def made_up(first_visits):
    """A run of which only the steps of the first visits matter."""
    n, S = np.shape(first_visits)
    path = library.Trajectory(*(np.zeros(demo.STEPS, np.int32) for _ in range(3)), *(np.zeros(demo.STEPS),) * 2)
    return library.Trace(
        seeds=np.arange(n), total_reward=np.zeros(n), total_bonus=np.zeros(n), steps=np.full(n, demo.STEPS),
        visits=np.ones((n, S), np.int32), first_visit=np.asarray(first_visits, np.int32), truncated=np.zeros(n),
        episode_steps=np.zeros((n, 0), np.int32), snapshots=np.zeros((n, 0, S), np.int32), paths={0: path},
    )  # fmt: skip


def test_what_happened_is_computed():
    soon, late, never = [[0, 1, 100]], [[0, 1, 200]], [[0, 1, -1]]
    there = demo.steps_to_most({"constant cost": made_up(late), "SARSA-SRR": made_up(soon)})
    assert there == {"constant cost": 200, "SARSA-SRR": 100}
    assert "0.50 times" in "\n".join(demo.what_happened(there))
    there = demo.steps_to_most({"constant cost": made_up(never), "SARSA-SRR": made_up(soon)})
    assert there == {"SARSA-SRR": 100}
    assert "times the steps" not in "\n".join(demo.what_happened(there))


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_frame_of_the_race_is_wider_than_the_screen(width):
    mdp = library.grid(demo.MAZE)
    traces = {label: made_up([np.arange(mdp.n_states)]) for label in demo.RUNNERS.values()}
    console = Console(file=io.StringIO(), width=width, force_terminal=True, no_color=True)
    frame = demo._frame(console, mdp, traces, 50)
    console.print(frame)
    lines = console.file.getvalue().splitlines()
    assert "step 50 of 2,000" in lines[0]
    assert any("@" in line for line in lines) == (width >= 60)
    for label in demo.RUNNERS.values():  # 51 of 91 cells by step 50
        (line,) = (line for line in lines if line.startswith(f"{label:>14} "))
        assert line.rstrip().endswith("56%")
        assert len(line) <= width


@pytest.mark.slow
def test_the_demo_runs_without_options_and_writes_its_page(spie, tmp_path):
    code, out, _ = spie("demo")
    assert code == 0
    page = (tmp_path / "demo.html").read_text()
    assert str(tmp_path / "demo.html") in out
    for label in demo.RUNNERS.values():
        assert label in out
        assert label in page
    assert [line.split("  ")[1] for line in out.splitlines()[-3:]] == [command for command, _ in demo.NEXT]


def test_where_nothing_can_be_written_the_page_goes_elsewhere_or_the_mistake_is_one_line(spie, tmp_path, monkeypatch):
    code, _, errors = spie("demo", "--out", tmp_path / "none" / "page.html")
    assert (code, len(errors.splitlines())) == (2, 1)
    assert "name another page with --out" in errors
    code, _, errors = spie("demo", "--out", tmp_path)
    assert (code, len(errors.splitlines())) == (2, 1)

    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(demo.tempfile, "TemporaryFile", refuse)
    elsewhere = demo._writable(demo.Path("demo.html"))
    assert elsewhere.parent != tmp_path
    assert elsewhere.parent.is_dir()
