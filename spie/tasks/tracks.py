"""Mazes that laboratories have, on square cells: T, plus and linear track, and boards with holes."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from spie.errors import check_whole, told
from spie.tasks.grids import grid
from spie.tasks.mdp import MDP, reachable
from spie.tasks.registry import register_task


@register_task("t-maze")
def t_maze(
    stem: int = 5, arm: int = 4, task: str = "trials", bumps: bool = False, rewards: Mapping[str, float] | None = None
) -> MDP:
    """T-maze: from the foot of the stem to the end of an arm, a on the left and b on the right.

    A trial pays `rewards`, by default 1 at a and 0 at b. Task "explore" makes nothing of the ends.

    stem, arm: cells of the stem below the crossing, and of each arm. task: trials or explore. bumps: whether one can
    walk into walls.
    Raises ValueError for lengths below 1 and ends that are not there.

    >>> spie.t_maze(stem=5, arm=4, rewards={"a": 1, "b": 0.2}).n_states  # 5 + 2 x 4 and the crossing
    14
    """
    _check("t-maze", stem=stem, arm=arm)
    side = "#" * arm
    lines = ["a" + "." * (2 * arm - 1) + "b", *[f"{side}.{side}"] * (stem - 1), f"{side}S{side}"]
    return _maze("t-maze", lines, task, bumps, rewards)


@register_task("plus-maze")
def plus_maze(
    arm: int = 4, task: str = "trials", bumps: bool = False, rewards: Mapping[str, float] | None = None
) -> MDP:
    """Plus maze: starts at the end of the southern arm; a, b and c are the ends of the western, northern, eastern one.

    A trial pays `rewards`, by default 1 at a and 0 elsewhere. Task "explore" makes nothing of the ends.

    arm: cells of each arm. task, bumps: as for `t_maze`, whose errors are raised, too.

    >>> spie.plus_maze(arm=4).n_states
    17
    """
    _check("plus-maze", arm=arm)
    side = "#" * arm

    def across(middle: str) -> str:
        return f"{side}{middle}{side}"

    bar = "a" + "." * (2 * arm - 1) + "c"
    lines = [across("b"), *[across(".")] * (arm - 1), bar, *[across(".")] * (arm - 1), across("S")]
    return _maze("plus-maze", lines, task, bumps, rewards)


@register_task("linear-track")
def linear_track(
    length: int = 10, task: str = "trials", bumps: bool = False, rewards: Mapping[str, float] | None = None
) -> MDP:
    """Linear track of that many cells, from the left end to the right one, a, which pays 1 and ends the trial.

    length: cells, at least 2. task, bumps, rewards: as for `t_maze`, whose errors are raised, too.

    >>> spie.linear_track(10).n_states
    10
    """
    check_whole("linear-track: length", length, 2, 1_000_000)
    return _maze("linear-track", ["S" + "." * (length - 2) + "a"], task, bumps, rewards)


@register_task("tartarus")
def tartarus(
    size: int = 10, holes: int = 30, seed: int = 0, goal: str = "3,3", task: str = "goal", bumps: bool = False
) -> MDP:
    """Square board with holes that the seed draws, as in the Tartarus maze; the other cells hang together.

    A goal at the cell "row,column" ends an episode that may start anywhere; a step costs 1.

    size: cells on a side. holes: how many are missing. task, bumps: as for `grid`.
    Raises ValueError where fewer than two cells are left, or the goal is none.

    >>> spie.tartarus(size=10, holes=30, seed=1).n_states
    70
    """
    check_whole("tartarus: size", size, 2, 60)
    check_whole("tartarus: holes", holes, 0)
    check_whole("tartarus: seed", seed, 0)
    if holes > size * size - 2:
        raise ValueError(f"tartarus: {holes} holes in {size} x {size} cells; leave at least two cells")
    try:
        row, column = (int(number) for number in goal.split(","))
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f'tartarus: goal is "{told(goal)}"; give row,column, such as 3,3') from None
    if not (0 <= row < size and 0 <= column < size):
        raise ValueError(f"tartarus: goal {goal} lies outside the board; rows and columns are 0..{size - 1}")
    letters = np.full((size, size), ".")
    letters[row, column] = "G"
    whole = grid("\n".join(map("".join, letters)) + "\n")
    gone = np.zeros(size * size, dtype=np.bool_)
    at_goal = np.arange(size * size) == row * size + column
    for cell in np.random.default_rng(seed).permutation(size * size).tolist():  # each goes if the rest hangs together
        if gone.sum() < holes and not at_goal[cell]:
            gone[cell] = True
            gone[cell] = bool((reachable(whole.next, at_goal, stop=gone) | gone).all())
    if gone.sum() < holes:
        raise ValueError(f"tartarus: {holes} holes would cut the board in parts; {gone.sum()} fit with seed {seed}")
    letters[gone.reshape(size, size)] = "#"
    return _maze("tartarus", list(map("".join, letters)), task, bumps, None)


def _check(name: str, **lengths: int) -> None:
    for what, length in lengths.items():
        check_whole(f"{name}: {what}", length, 1, 2000)


def _maze(name: str, lines: list[str], task: str, bumps: bool, rewards: Mapping[str, float] | None) -> MDP:
    if isinstance(task, str) and task == "trials" and rewards is None:
        rewards = {"a": 1.0}
    mdp = grid("\n".join(lines) + "\n", task=task, bumps=bumps, rewards=rewards)
    return dataclasses.replace(mdp, name=name)
