"""Levels of MiniGrid as exact MDPs, against the environment itself at random play."""

import sys

import numpy as np
import pytest

from spie import MDP
from spie.tasks.minigrid import Level

pytest.importorskip("minigrid")

STEPS = 3000  # of random play; 100,000 were played once in each of the three levels
LEVELS = {
    # 36 cells, of which the goal is entered by "forward" alone, facing right or down: 35 x 4 + 2
    "MiniGrid-Empty-8x8-v0": 142,
    "MiniGrid-DoorKey-5x5-v0": 270,
    "MiniGrid-KeyCorridorS3R1-v0": 160,
}


@pytest.mark.parametrize("name", LEVELS)
def test_every_transition_is_that_of_the_environment(name: str) -> None:
    mdp = MDP.from_minigrid(name)
    assert mdp.n_states == LEVELS[name]
    random, level, s = np.random.default_rng(0), Level(name, 0), 0
    known = {0: (False, level.state())}
    for _ in range(STEPS):
        a = int(random.integers(mdp.n_actions))
        _, reward, terminated, truncated, _ = level.raw.step(a)
        s_next = int(mdp.next[s, a, 0])
        assert known.setdefault(s_next, (bool(terminated), level.state())) == (bool(terminated), level.state())
        assert mdp.terminal[0, s_next] == terminated
        assert (mdp.reward[0, s, a, 0] > 0) == (reward > 0)
        s = s_next
        if terminated or truncated:
            level, s = Level(name, 0), 0  # a reset makes new things
    assert len(set(known.values())) == len(known)  # one state for each that was met


def test_success_pays_1_however_long_it_took() -> None:
    mdp = MDP.from_minigrid("MiniGrid-Empty-8x8-v0")
    assert set(np.unique(mdp.reward)) == {0, 1}
    assert mdp.labels[0] == "1,1 right"
    assert (mdp.reward[0] > 0).sum() == 2  # from either side of the goal


def test_a_level_with_too_many_states_is_refused_with_their_number() -> None:
    with pytest.raises(
        ValueError, match=r"MiniGrid-DoorKey-5x5-v0: more than 100 states \(found after \d+ of them were"
    ):
        MDP.from_minigrid("MiniGrid-DoorKey-5x5-v0", limit=100)


def test_a_level_that_moves_by_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="MiniGrid-Dynamic-Obstacles-5x5-v0: a step draws at random"):
        MDP.from_minigrid("MiniGrid-Dynamic-Obstacles-5x5-v0")


def test_an_unknown_level_and_a_missing_package_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='no MiniGrid task "MiniGrid-Nowhere-v0"; ids look like MiniGrid-Empty-8x8-v0'):
        MDP.from_minigrid("MiniGrid-Nowhere-v0")
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(ImportError, match="MiniGrid tasks need minigrid"):
        MDP.from_minigrid("MiniGrid-Empty-8x8-v0")
