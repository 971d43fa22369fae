"""Mazes that subjects walked through, as MDPs: from maps, from free cells, or from the moves in the data."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.tasks.grids import MOVES, find_map, grid
from spie.tasks.mdp import MDP

COMPASS = ("up", "right", "down", "left")


def read_mazes(maze: Any) -> dict[str, MDP]:
    """Mazes by name: of an MDP, a map (name, text or file), or a mapping from names to these.

    In a map, G is a goal: it pays 1 and ends the trial. Moves go to free neighbours only, so that a subject always has
    a choice among moves, never one of bumping into a wall. Several maps must have one shape: then every cell of it is
    a state, the walls of some mazes included, so that state 17 is the same place in all of them.
    """
    if not isinstance(maze, Mapping):
        maze = {maze.name if isinstance(maze, MDP) else find_map(maze)[0]: maze}
    if not maze:
        raise ValueError("no maze is given; leave maze out to take the graph of the moves in the data")
    if len(maze) > 1 and not any(isinstance(one, MDP) for one in maze.values()):
        return _maps_with_the_same_states({str(name): find_map(one)[1] for name, one in maze.items()})
    return {str(name): one if isinstance(one, MDP) else _map(one) for name, one in maze.items()}


def _map(map: str | Path) -> MDP:
    has_goal = "G" in find_map(map)[1]
    mdp = grid(map, task="goal" if has_goal else "explore", bumps=False)
    pays = mdp.terminal[0][mdp.next] & (mdp.prob > 0)
    return dataclasses.replace(mdp, reward=pays.astype(np.float64))


def _maps_with_the_same_states(texts: Mapping[str, str]) -> dict[str, MDP]:
    letters = {name: [list(line) for line in text.strip("\r\n").splitlines()] for name, text in texts.items()}
    first = next(iter(letters))
    for name, rows in letters.items():
        if [len(row) for row in rows] != [len(row) for row in letters[first]]:
            raise ValueError(f"maps {first} and {name} differ in shape; several mazes need the same cells")
    made = {}
    for name, rows in letters.items():
        cells = np.array(rows)
        goal = np.flatnonzero(cells.reshape(-1) == "G")
        made[name] = cell_maze(name, cells != "#", int(goal[0]) if len(goal) else None)
    return made


def cell_maze(name: str, free: NDArray[np.bool_], goal: int | None = None, starts: Sequence[int] = ()) -> MDP:
    """A grid on which every cell is a state, row by row, and moves go to free neighbours: up, right, down, left.

    free: [rows, columns]. A cell that is not free cannot be entered, though left, as where a tracker lost
    a subject over a hole; the goal pays 1 and ends a trial.
    """
    rows, columns = free.shape
    cells = np.argwhere(np.ones_like(free))
    S = len(cells)
    state = np.full((rows + 2, columns + 2), -1)
    state[1:-1, 1:-1] = np.where(free, np.arange(S).reshape(free.shape), -1)
    following = np.stack([state[tuple((cells + 1 + move).T)] for move in MOVES], axis=1)
    open_ = following >= 0
    closed = ~open_.any(axis=1)  # walled in: nothing to do there but to stay
    open_[closed, 0] = True
    following = np.where(following >= 0, following, np.arange(S)[:, None])
    begins = np.zeros(S)
    begins[list(starts) if len(starts) else (free.reshape(-1) & (np.arange(S) != goal))] = 1
    labels = tuple(f"{row},{column}" for row, column in cells.tolist())
    return _maze(name, following, open_, begins, goal, labels, cells=cells.astype(np.int32), shape=(rows, columns))


def graph_maze(
    name: str, neighbours: Sequence[Sequence[int]], labels: Sequence[str] = (), goal: int | None = None
) -> MDP:
    """A graph as a maze: action k leads to neighbour k of a state."""
    S, A = len(neighbours), max((1, *map(len, neighbours)))
    following = np.repeat(np.arange(S, dtype=np.int32)[:, None], A, axis=1)
    available = np.zeros((S, A), dtype=np.bool_)
    for s, found in enumerate(neighbours):
        following[s, : len(found)] = found
        available[s, : len(found)] = True
    available[~available.any(axis=1), 0] = True  # a last state that was never left
    return _maze(name, following, available, np.arange(S) != goal, goal, labels)


def _maze(
    name: str,
    following: NDArray[Any],
    available: NDArray[np.bool_],
    starts: NDArray[Any],
    goal: int | None,
    labels: Sequence[str],
    **drawn: Any,
) -> MDP:
    """Where each action leads [S, A], for sure; the goal pays 1 and ends a trial; starts [S] are weights."""
    return MDP(
        name,
        following[:, :, None],
        prob=available[:, :, None].astype(np.float64),
        reward=((following == goal) & available)[:, :, None].astype(np.float64) if goal is not None else np.array(0.0),
        start=starts / starts.sum(),
        terminal=np.arange(len(following)) == goal,
        available=available,
        labels=tuple(labels),
        **drawn,
    )


def graph_of_moves(paths: Sequence[Sequence[str]]) -> MDP:
    """The graph of the moves in the data: the states that were seen, each joined to those that followed it."""
    seen = dict.fromkeys(label for path in paths for label in path)
    numbers = all(label.lstrip("-").isdecimal() for label in seen)
    labels = sorted(seen, key=int) if numbers else list(seen)
    index = {label: s for s, label in enumerate(labels)}
    neighbours: list[set[int]] = [set() for _ in labels]
    for path in paths:
        for label, following in itertools.pairwise(path):
            neighbours[index[label]].add(index[following])
    return graph_maze("the moves in the data", [sorted(found) for found in neighbours], labels)


def phase_of(maze: MDP, trial: int) -> int:
    """Which goal it is in a trial, counted from 0, where goals move after a number of trials."""
    return trial // maze.episodes_per_phase % maze.n_phases if maze.episodes_per_phase else 0


def possible(maze: MDP, s: NDArray[Any], s_next: NDArray[Any]) -> NDArray[np.bool_]:
    """The actions that may lead from s to s' [moves, A]."""
    leads = (maze.next[s] == s_next[:, None, None]) & (maze.prob[s] > 0)
    return np.asarray(leads.any(axis=2) & maze.available[s])
