"""Levels of MiniGrid as exact MDPs, against the environment itself: every action is played in every state."""

import dataclasses
import sys

import numpy as np
import pytest

from spie import MDP
from spie.tasks.minigrid import Level

pytest.importorskip("minigrid")

LEVELS = {
    # 36 cells, of which the goal is entered by "forward" alone, facing right or down: 35 x 4 + 2
    "MiniGrid-Empty-8x8-v0": 142,
    "MiniGrid-DoorKey-5x5-v0": 270,
    "MiniGrid-KeyCorridorS3R1-v0": 160,
}


def way_to_untried(mdp: MDP, s: int, untried: np.ndarray) -> list[int]:
    """The fewest actions from s to a state and an action that has not been played there; none where all have."""
    ways: dict[int, list[int]] = {s: []}
    queue = [s]
    for here in queue:  # grows as it is walked
        if untried[here].any():
            return [*ways[here], int(untried[here].argmax())]
        for a, (there,) in enumerate(mdp.next[here].tolist()):
            if there not in ways:
                ways[there] = [*ways[here], a]
                queue.append(there)
    return []


def play_everything(mdp: MDP, name: str) -> int:
    """Play every action in every state of the real environment by shortest ways; returns how many steps it took."""
    level, s, over, steps = Level(name, 0), 0, False, 0
    known = {0: (False, level.state())}
    untried = np.tile(~mdp.terminal[0][:, None], mdp.n_actions)
    while untried.any():
        way = [] if over else way_to_untried(mdp, s, untried)
        if not way:  # the episode is over, or what is left cannot be reached from here: a door once unlocked stays so
            level, s, over = Level(name, 0), 0, False  # a reset makes new things
            way = way_to_untried(mdp, s, untried)
            assert way, "no way from the start to some state"
        for a in way:
            _, reward, terminated, truncated, _ = level.raw.step(a)
            before, s, steps = s, int(mdp.next[s, a, 0]), steps + 1
            untried[before, a] = False
            found = (bool(terminated), level.state())
            assert known.setdefault(s, found) == found
            assert mdp.terminal[0, s] == terminated
            assert (mdp.reward[0, before, a, 0] > 0) == (reward > 0)
            over = bool(terminated or truncated)
            if over:
                break
    assert len(set(known.values())) == len(known) == mdp.n_states  # a state for each that was met, and no other
    return steps


@pytest.mark.parametrize("name", LEVELS)
def test_every_transition_is_that_of_the_environment(name: str) -> None:
    mdp = MDP.from_minigrid(name)
    assert mdp.n_states == LEVELS[name]
    assert play_everything(mdp, name) >= (~mdp.terminal).sum() * mdp.n_actions


@pytest.mark.parametrize("s", [0, 100, 141])
def test_one_wrong_transition_is_found(s: int) -> None:
    name = "MiniGrid-Empty-8x8-v0"
    mdp = MDP.from_minigrid(name)
    s = next(k for k in range(s, -1, -1) if not mdp.terminal[0, k])
    wrong = mdp.next.copy()
    wrong[s, 0] = wrong[s, 1]  # a turn to the left that turns right
    with pytest.raises(AssertionError):
        play_everything(dataclasses.replace(mdp, next=wrong), name)


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


@pytest.mark.parametrize("options", [{"seed": -1}, {"limit": 0}])
def test_a_seed_or_a_limit_that_makes_no_sense_is_one_line(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="give a seed from 0 on and a limit from 1 on"):
        MDP.from_minigrid("MiniGrid-Empty-8x8-v0", **options)


def test_a_level_that_moves_by_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="MiniGrid-Dynamic-Obstacles-5x5-v0: a step draws at random"):
        MDP.from_minigrid("MiniGrid-Dynamic-Obstacles-5x5-v0")


def test_an_unknown_level_and_a_missing_package_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match='no MiniGrid task "MiniGrid-Nowhere-v0"; ids look like MiniGrid-Empty-8x8-v0'):
        MDP.from_minigrid("MiniGrid-Nowhere-v0")
    monkeypatch.setitem(sys.modules, "minigrid", None)
    with pytest.raises(ImportError, match="MiniGrid tasks need minigrid"):
        MDP.from_minigrid("MiniGrid-Empty-8x8-v0")
