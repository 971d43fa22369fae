"""Which observations can be counted, and how they are numbered."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

MOST_COUNTED = 4096  # a space that is made of several and has more states is read by features


class Numbering(NamedTuple):
    """Numbers 0 ... n - 1 for the observations of a space."""

    n: int
    number: Callable[[Any], int]
    number_all: Callable[[Any, int], list[int]]  # of each of a batch of that many


def numbering(space: gym.Space[Any]) -> Numbering | None:
    """How to number the observations of a space; None where they cannot be counted, or are too many.

    A Discrete space is always counted; MultiDiscrete, MultiBinary, Dict and Tuple of such up to MOST_COUNTED states.
    """
    if isinstance(space, gym.spaces.Discrete):
        first = int(space.start)

        def all_numbers(observations: Any, n: int) -> list[int]:
            numbers: list[int] = (np.asarray(observations).reshape(n) - first).tolist()
            return numbers

        return Numbering(int(space.n), lambda observation: int(observation) - first, all_numbers)
    parts = list(leaves(space))
    sizes: list[int] = []
    firsts: list[int] = []
    for _, part in parts:
        if (of := categories(part)) is None:
            return None
        sizes += of[0]
        firsts += of[1]
    n = math.prod(sizes)
    if n > MOST_COUNTED:
        return None
    weights = np.array([1, *itertools.accumulate(sizes[:-1], int.__mul__)], np.int64)
    first_numbers, paths = np.array(firsts, np.int64), [path for path, _ in parts]

    def number(observation: Any) -> int:
        values = np.concatenate([np.asarray(at(observation, path), np.int64).reshape(-1) for path in paths])
        return int((values - first_numbers) @ weights)

    return Numbering(n, number, lambda observations, many: [number(one) for one in singles(observations, many)])


def categories(space: gym.Space[Any]) -> tuple[list[int], list[int]] | None:
    """Of each number of an observation how many values it has, and the first of them; None where it is no category."""
    if isinstance(space, gym.spaces.Discrete):
        return [int(space.n)], [int(space.start)]
    if isinstance(space, gym.spaces.MultiDiscrete):
        return space.nvec.reshape(-1).tolist(), np.asarray(space.start).reshape(-1).tolist()
    if isinstance(space, gym.spaces.MultiBinary):
        return [2] * math.prod(space.shape), [0] * math.prod(space.shape)
    return None


def leaves(space: gym.Space[Any], path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], gym.Space[Any]]]:
    """The spaces that a Dict or Tuple is made of, and the way to each; of any other space itself."""
    if isinstance(space, gym.spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, gym.spaces.Tuple):
        for i, part in enumerate(space.spaces):
            yield from leaves(part, (*path, i))
    else:
        yield path, space


def at(observation: Any, path: tuple[Any, ...]) -> Any:
    """The part of an observation that a path leads to."""
    for key in path:
        observation = observation[key]
    return observation


def singles(observations: Any, n: int) -> list[Any]:
    """The n observations of a batch, one by one."""
    if isinstance(observations, dict):
        parts = {key: singles(part, n) for key, part in observations.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(n)]
    if isinstance(observations, tuple) and not all(isinstance(part, str) for part in observations):
        return list(zip(*(singles(part, n) for part in observations), strict=True))
    return list(observations)
