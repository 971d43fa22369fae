"""Films of agents in mazes."""

import gc
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from PIL import Image

from spie import Keep, Sarsa, grid
from spie.agents.registry import agent as find_agent
from spie.cli.film import representation_of
from spie.page import plots
from spie.page.plots.frames import phases


def squares(n):
    for i in range(n):
        frame = np.full((20, 31, 3), 255, np.uint8)
        frame[:, i] = (200, 0, 0)
        yield frame


def test_a_gif_holds_every_frame(tmp_path):
    assert plots.write_film(squares(5), tmp_path / "a.gif") == 5
    with Image.open(tmp_path / "a.gif") as film:
        assert (film.n_frames, film.size) == (5, (31, 20))
        film.seek(3)
        assert_array_equal(np.asarray(film.convert("RGB"))[4, 2:5], [[255, 255, 255], [200, 0, 0], [255, 255, 255]])
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # imageio-ffmpeg leaves its pipes to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_mp4_holds_every_frame(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg")
    assert plots.write_film(squares(5), tmp_path / "a.mp4") == 5
    reader = ffmpeg.read_frames(str(tmp_path / "a.mp4"))
    assert next(reader)["size"] == (30, 20)
    assert len(list(reader)) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]
    del reader
    gc.collect()  # here, where the warning is expected


def test_a_film_that_fails_leaves_what_was_there(tmp_path):
    def broken():
        yield from squares(2)
        raise ValueError("no more")

    (tmp_path / "a.gif").write_text("old")
    with pytest.raises(ValueError, match="no more"):
        plots.write_film(broken(), tmp_path / "a.gif")
    assert (tmp_path / "a.gif").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["of-small", "-o", "a.avi"], "a.avi: a film is a .gif or an .mp4; choose such a name with -o"),
        (["of-small", "-o", "no/a.gif"], "no/a.gif: there is no folder no; make it, or choose another name with -o"),
        (["of-small", "--agents", "sarsa,nobody"], 'no agent "nobody"'),
        (["of-small", "--agents", ","], "--agents names nobody; give sarsa-srr, for example"),
        (["of-small", "--frames", "0"], "--frames must lie between 1 and 2,000, not 0"),
        (["riverswim", "--task", "goal"], "riverswim has no task; leave it out"),
        (["mountain-car"], 'no task of kind table "mountain-car"'),
    ],
)
def test_a_film_that_cannot_be_made_is_one_line(spie, tmp_path, words, message):
    code, _, err = spie("film", *words)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_without_ffmpeg_an_mp4_is_refused_before_the_work(spie, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    code, _, err = spie("film", "of-small", "-o", "a.mp4")
    message = 'spie: films as .mp4 need imageio-ffmpeg: pip install "spie-rl[film]"; .gif needs nothing\n'
    assert (code, err) == (2, message)


def test_phases_follow_the_goals_that_were_reached():
    mdp = grid("S.G\n..1", task="moving-goal", episodes_per_goal=1)
    phase, ended = phases(mdp, np.array([1, 2, 1, 2, 5, 1]))
    assert phase.tolist() == [0, 0, 1, 1, 1, 0, 0]  # in phase 1, G is a cell like others
    assert ended.tolist() == [0, 0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("name", "matrix"),
    [
        ("sarsa-fr", "F"),
        ("sarsa-srr", "M"),
        ("sarsa-sr-fixed", "M"),
        ("sarsa-sr-pr", "M"),
        ("count", ""),
        ("sarsa", ""),
    ],
)
def test_a_film_shows_the_representation_that_the_bonus_is_made_of(name, matrix):
    assert representation_of(find_agent(name)) == matrix


@pytest.mark.slow
def test_a_run_that_ends_early_is_the_beginning_of_a_longer_one():
    mdp, agent = grid("cluster-simple"), Sarsa()
    long, short = (agent.run(mdp, n, (3,), keep=Keep(paths=(3,))).paths[3] for n in (300, 100))
    assert_array_equal(long.states[:100], short.states)
    assert_array_equal(long.bonuses[:100], short.bonuses)


@pytest.mark.slow
def test_agents_are_filmed_side_by_side_also_where_goals_move(spie, tmp_path):
    words = ["--agents", "sarsa-srr,constant", "--steps", "200", "--frames", "4"]
    code, out, _ = spie("film", "cluster-simple", "--task", "moving-goal", *words, "-o", "f.gif")
    assert (code, out) == (0, "wrote f.gif: 5 frames of 2 agents\n")
    with Image.open(tmp_path / "f.gif") as film:
        assert film.n_frames == 5


MAZE_WITH_ENDS = "+---+---+---+\n| S >   | a |\n+   +-v-+   +\n|         b |\n+---+---+---+\n"


@pytest.mark.parametrize("command", ["show", "film"])
@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ("c=1", 'rewards name an end "c", but the map has a, b'),
        ("a", '"a" is not a setting; settings are key=value, such as a=1,b=0.2'),
        ("a=much", 'the reward of end "a" is much; give a finite number'),
        ("", "needs the rewards of its ends"),
    ],
)
def test_ends_that_are_not_there_or_pay_no_number_are_one_line(spie, tmp_path, command, ends, message):
    (tmp_path / "maze.txt").write_text(MAZE_WITH_ENDS)
    code, _, err = spie(command, "maze.txt", "--ends", ends)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err


def test_a_map_with_ends_is_drawn_as_trials(spie, tmp_path):
    (tmp_path / "maze.txt").write_text(MAZE_WITH_ENDS)
    assert "ends a b of the map are ignored in this task; --ends says what ends pay" in spie("show", "maze.txt")[1]
    code, out, _ = spie("show", "maze.txt", "--ends", "a=1,b=0.2", "--of", "0,0")
    assert code == 0
    assert "2 goals (0,2 1,2)" in out
    assert "| @ >   | a |" in out
