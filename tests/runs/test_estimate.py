"""How long runs take is said before they begin: kernels to compile, then steps, on this machine as it is."""

import dataclasses
import time
import types

import numpy as np
import pytest

import spie
from spie.agents.base import Request
from spie.engine.specialise import Kernel
from spie.runs import estimate as estimates
from spie.runs.estimate import NeededTime, can_be_tried, estimate
from spie.runs.run import Run
from spie.search.grid import SettingsGrid
from spie.search.select import Search


@dataclasses.dataclass(frozen=True)
class Slow(spie.Agent):
    """Takes 1 ms a step, and says so."""

    def seconds_per_step(self, task):
        return 1e-3

    def run(self, task, steps, seeds=1, *, episodes=None, **_):
        until = time.process_time() + 1e-3 * steps * len(seeds) / 4  # its episodes end after a quarter of the steps
        while time.process_time() < until:
            pass


@pytest.mark.slow
def test_the_time_is_told_by_the_speed_of_the_machine_now(monkeypatch):
    monkeypatch.setattr(estimates, "slowness", lambda busy_only=False: 3.0)
    monkeypatch.setattr(estimates, "cores", lambda: 2)
    run = Run("riverswim", "slow", Slow(), spie.riverswim(), 100, 20)
    alone = 3.0 * 100 * 20 * 1e-3
    assert estimate([run, run]) == NeededTime(0, 0.0, pytest.approx(alone), False)  # one run, which compiles nothing
    assert str(estimate([run])) == "about 6 s"
    other = dataclasses.replace(run, steps=200)
    assert estimate([run, other]).running == pytest.approx(3 * alone)  # one after the other
    assert estimate([run, other], "processes").running == pytest.approx(3 * alone / 2)


def test_a_tenth_of_the_seeds_says_how_soon_episodes_end(monkeypatch):
    monkeypatch.setattr(estimates, "slowness", lambda busy_only=False: 1.0)
    monkeypatch.setattr(estimates, "cores", lambda: 1)
    run = Run("riverswim", "slow", Slow(), spie.riverswim(), 40, 30, episodes=1)
    assert can_be_tried(run)
    assert not can_be_tried(dataclasses.replace(run, seeds=10))
    assert str(estimate([run])) == "at most 1 s"
    assert estimate([run]).running == pytest.approx(1.2)
    assert not estimate([run], tried=True).at_most
    assert 0.3 <= estimate([run], tried=True).running < 0.6


def test_kernels_in_words():
    assert str(NeededTime(1, 1.4, 0.1)) == "about 1 s to compile 1 kernel, then about 1 s"
    assert str(NeededTime(14, 130.0, 7200.0, True)) == "about 2 minutes to compile 14 kernels, then at most 2 hours"


@pytest.mark.slow
def test_settings_that_share_a_kernel_count_it_once(monkeypatch):
    request = Request(spie.riverswim(), 10, 2)
    grid = SettingsGrid(spie.Sarsa(), (("reward", ("sr-r", "count")), ("alpha", (0.1, 0.5))))
    assert len({kernel.name for kernel in SettingsGrid.kernels([grid], request)}) == 2
    run = Run("riverswim", "sarsa", spie.Sarsa(reward="sr-r"), spie.riverswim(), 10, 2)
    run.execute()
    assert estimate([run]).kernels == 0
    monkeypatch.setattr(estimates, "slowness", lambda busy_only=False: 3.0)
    monkeypatch.setattr(estimates, "cores", lambda: 2)
    assert estimate([run]).running == pytest.approx(3.0 * run.seconds / 2)  # its seeds run on both cores


def test_a_kernel_is_compiled_once_numba_has_left_it_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SPIE_CACHE", str(tmp_path))
    compiled = types.SimpleNamespace(overloads={}, py_func=types.SimpleNamespace(__module__="spie_kernel_0"))
    kernel = Kernel(compiled, lambda: 3, "a test")
    assert (kernel(), kernel.name, kernel.is_compiled) == (3, "spie_kernel_0", False)
    folder = tmp_path / "kernels" / "__pycache__"
    folder.mkdir(parents=True)
    (folder / "spie_kernel_0.walk-26.py311.nbi").touch()
    assert kernel.is_compiled


def test_pieces_of_a_search_stay_as_they_were_cut():
    """12 s of 3e-8 + 3e-10 S seconds a step: what is stored of a search is found again by the ids of its pieces."""
    grid = SettingsGrid(spie.Sarsa(), (("alpha", tuple(np.linspace(0.01, 1, 100))), ("beta", (0.1, 1, 10))))
    search = Search("riverswim", "sarsa", (grid,), spie.riverswim(), 5_000)
    each = 5_000 * 1000 * (3e-8 + 3e-10 * 6)
    most = int(12 / each)
    assert next(len(piece) for piece in search.pieces(1000)) == most // 3 * 3


def test_a_deep_agent_counts_its_updates_and_shares_them_among_seeds_side_by_side():
    task = spie.task("four-rooms", kind="images")

    def seconds(steps=10_000, seeds=1, **settings):
        return Run("four-rooms", "dqn", spie.DQN(preset="small", **settings), task, steps, seeds).seconds

    bare = {"bonus": "none", "learning_starts": 10_000}
    acting, acting_of_bonus = seconds(**bare), seconds(learning_starts=10_000)
    assert acting < acting_of_bonus
    assert seconds(20_000, **bare, train_every=8) - 2 * acting == pytest.approx(
        2 * (seconds(20_000, **bare, train_every=16) - 2 * acting)
    )  # twice the updates
    assert seconds(seeds=8) < 0.5 * 8 * seconds()
    nature = {"preset": "nature", "learning_starts": 0}
    one = spie.DQN(**nature).seconds(task, 1000, 1)
    assert spie.DQN(**nature).seconds(task, 1000, 3) == pytest.approx(3 * one)  # one after the other
    assert spie.DQN(**nature, batch=64).seconds(task, 1000, 1) > 1.5 * one
    grid = SettingsGrid(spie.DQN(**nature), (("beta", (0.1, 1.0)),))
    assert grid.seconds(task, 1000, 3) == pytest.approx(6 * one)
