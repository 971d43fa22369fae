"""Paths as datasets of Minari, and back."""

import sys

import numpy as np
import pytest

import spie
from spie.behaviour.minari import read_minari, write_minari

MAZE = spie.grid("S..\n.#.\n..a", rewards={"a": 1}, bumps=False)
PATHS = spie.Paths.from_states({"Ada": [[0, 1, 2, 4, 7], [0, 3, 5, 6]], "Bo": [[0, 1, 0]]}, MAZE)


def test_what_is_written_is_read_again(tmp_path, monkeypatch):
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = write_minari(PATHS, "maze/walks-v0")
    assert dataset.total_episodes == 3
    assert dataset.total_steps == 4 + 3 + 2
    back = read_minari("maze/walks-v0", MAZE)
    for ours, theirs in zip(PATHS.trials, back.trials, strict=True):
        np.testing.assert_array_equal(ours.states, theirs.states)
        np.testing.assert_array_equal(ours.actions, theirs.actions)
    assert [trial.rewards.sum() for trial in back.trials] == [1, 0, 0]  # only the first reached the end
    ends = [(bool(e.terminations[-1]), bool(e.truncations[-1])) for e in dataset.iterate_episodes()]
    assert ends == [(True, False), (False, True), (False, True)]
    with pytest.raises(ValueError, match="no state 2; states are 0"):
        read_minari("maze/walks-v0", spie.grid("S."))


def test_without_minari_it_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match="datasets of Minari need minari: pip install"):
        write_minari(PATHS, "maze/walks-v0")
