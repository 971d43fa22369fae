"""Tasks with a goal to find: FrozenLake, CliffWalking and Taxi as tables, random mazes, one-way mazes."""

import dataclasses

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.errors import unknown
from spie.tasks.grids import grid, maze
from spie.tasks.mdp import MDP, reachable
from spie.tasks.registry import register_task

LAKES = ("4x4", "8x8")


@register_task("frozen-lake", max_steps=200)
def frozen_lake(size: str = "8x8", slippery: bool = False) -> MDP:
    """FrozenLake of Gymnasium, 4x4 or 8x8: the goal pays 1, holes end an episode, slippery ice goes astray."""
    if size not in LAKES:
        raise unknown("size of frozen-lake", size, LAKES)
    mdp = MDP.from_gymnasium(gym.make("FrozenLake-v1", map_name=size, is_slippery=slippery))
    return dataclasses.replace(mdp, name=f"frozen-lake-{size}{'-slippery' if slippery else ''}")


@register_task("cliff-walking")
def cliff_walking() -> MDP:
    """CliffWalking of Gymnasium: a step pays -1, one over the cliff -100 and leads back to the start."""
    return dataclasses.replace(MDP.from_gymnasium(gym.make("CliffWalking-v1")), name="cliff-walking")


@register_task("taxi", max_steps=200)
def taxi() -> MDP:
    """Taxi of Gymnasium: 500 states; a step pays -1, a wrong stop -10, the passenger at the destination 20."""
    return dataclasses.replace(MDP.from_gymnasium(gym.make("Taxi-v4")), name="taxi")


@register_task("random-maze")
def random_maze(size: int = 15, seed: int = 0, one_way: float = 0.0, rewarded: bool = True) -> MDP:
    """A random maze of size x size characters; the cell that is farthest from the start pays 1 and ends an episode.

    one_way: the share of passages, of those for which there is another way back, that lead one way only. rewarded:
    False pays nothing and never ends, for exploration alone.
    """
    if not 0 <= one_way <= 1:
        raise ValueError(f"random-maze: one_way is {one_way}; give a share between 0 and 1")
    mdp = grid(maze(size, size, seed, loops=0.3))
    successors = _one_way(mdp.next, one_way, np.random.default_rng(seed))
    steps = distances(successors, int(mdp.start.argmax()))
    goal = int(steps.argmax())
    entered = (successors == goal) & (np.arange(mdp.n_states) != goal)[:, None, None]
    return dataclasses.replace(
        mdp,
        name=f"{'one-way' if one_way else 'random'}-maze",
        next=successors,
        reward=(entered & rewarded).astype(np.float64),
        terminal=(np.arange(mdp.n_states) == goal) & rewarded,
    )


@register_task("one-way-maze")
def one_way_maze(size: int = 15, seed: int = 0, one_way: float = 1.0, rewarded: bool = True) -> MDP:
    """A random maze in which most passages with another way back lead one way only."""
    return random_maze(size, seed, one_way, rewarded)


def distances(successors: NDArray[np.int32], source: int) -> NDArray[np.int64]:
    """Steps of the shortest way from a state to each [S], where every successor can be chosen; -1 where there is none.

    successors: [S, A, K].
    """
    found = np.full(len(successors), -1)
    found[source] = 0
    frontier = np.array([source])
    while len(frontier):
        reached = np.unique(successors[frontier])
        frontier = reached[found[reached] < 0]
        found[frontier] = found.max() + 1
    return found


def _one_way(successors: NDArray[np.int32], share: float, rng: np.random.Generator) -> NDArray[np.int32]:
    """Close that share of passages in one direction; a closed move stays in place, and all stay within reach."""
    successors = successors.copy()
    passages = [(s, a) for s, a, _ in np.argwhere(successors != np.arange(len(successors))[:, None, None])]
    for i in rng.permutation(len(passages)):
        s, a = passages[i]
        s_next = successors[s, a, 0]
        if s_next == s or s not in successors[s_next] or rng.random() >= share:
            continue
        successors[s, a, 0] = s
        if not reachable(successors, np.arange(len(successors)) == s)[s_next]:
            successors[s, a, 0] = s_next
    return successors
