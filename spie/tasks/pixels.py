"""Small image tasks on the tables of an MDP: sparse rewards that a small network learns within a minute.

A goal pays 1 and ends the episode, nothing else pays (DeepSea has its own, small costs). `info["state"]` is the true
state, of `n_states`, for measuring what an agent has seen. Episodes are truncated so early that a uniform random walk
reaches the goal of FourRooms .9 times in 30,000 steps and that of Cluster-hard .7 times in 40,000. With `noise` the
picture holds more than the state (noise.py).
"""

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spie.errors import check_whole
from spie.tasks import vector
from spie.tasks.base import ImageTask, Kind
from spie.tasks.draw import draw
from spie.tasks.grids import MAPS, find_map, grid
from spie.tasks.mdp import MDP, MDPEnv
from spie.tasks.noise import Disturbed, check_noise
from spie.tasks.registry import PATTERNS, Entry, register_task

SIDE = 20  # pixels, or more where a map has more cells
WALL, FREE, GOAL, AGENT = 80, 0, 160, 255
CAPS = {"four-rooms": 200, "cluster-hard": 50}  # the shortest ways take 28 and 18 steps


@dataclass(frozen=True, eq=False)
class PixelTask(ImageTask):
    """Images of the states of an MDP that has a map, in episodes that are truncated after `max_steps`."""

    mdp: MDP
    max_steps: int | None = None
    source: str = ""  # the name under which `spie.task` finds it; a map's name, text or file
    noise: str = "none"  # what disturbs the picture: "patch" or "walker"

    def __post_init__(self) -> None:
        check_noise(self.noise)
        if self.max_steps is not None and not (isinstance(self.max_steps, int) and self.max_steps >= 1):
            raise ValueError(f"{self.name}: max_steps is {self.max_steps}; give a whole number of 1 or more")

    @property
    def name(self) -> str:
        return self.mdp.name if self.noise == "none" else f"{self.mdp.name} with {self.noise}"

    @property
    def digest(self) -> str:
        """Of the tables, of where each state is shown, of the length of an episode, and of the noise."""
        cells = None if self.mdp.cells is None else self.mdp.cells.tolist()
        noise = [] if self.noise == "none" else [self.noise]
        what = json.dumps(["pixels", self.mdp.digest, cells, self.mdp.shape, self.max_steps, *noise])
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    @property
    def frame_skip(self) -> int:
        return 1

    @property
    def shape(self) -> tuple[int, int]:
        return _disturbed(self.mdp, self.noise).shape

    @property
    def recipe(self) -> tuple[str, dict[str, Any]] | None:
        noise = {} if self.noise == "none" else {"noise": self.noise}
        return (self.source, {"max_steps": self.max_steps, **noise}) if self.source else None

    def make(self, n: int, seed: int | Sequence[int] = 0) -> "PixelsVectorEnv":
        return PixelsVectorEnv(self.mdp, self.max_steps, vector.generators(seed, n), self.noise)

    def env(self, render_mode: str | None = None, max_steps: int | None = None) -> "PixelsEnv":
        """A single one as a plain Gymnasium environment."""
        return PixelsEnv(self.mdp, render_mode, max_steps or self.max_steps, self.noise)


def pixels(map: str | Path = "of-small", max_steps: int | None = None, noise: str = "none") -> PixelTask:
    """A map as images, by its name, its text or the file that holds it; a goal G in it pays 1 and ends the episode.

    max_steps: of an episode, by default 200 in four-rooms, 50 in cluster-hard and ten times the rows and columns of
    any other map. noise: "patch" or "walker" for a picture that holds more than the state.
    """
    _, text = find_map(map)
    if "G" not in text:  # nothing to find: episodes are for exploring alone
        mdp = grid(map)
    else:
        mdp = grid(map, task="goal")
        mdp = dataclasses.replace(mdp, reward=mdp.terminal[:, mdp.next].astype(np.float64))
    if max_steps is None:
        max_steps = CAPS.get(mdp.name, 10 * sum(mdp.shape or ()))
    return PixelTask(mdp, max_steps, str(map), noise)


def pixel_sea(depth: int = 10, max_steps: int | None = None, noise: str = "none") -> PixelTask:
    """DeepSea as images: a diver who must go right `depth` times; episodes end by themselves."""
    return PixelTask(deep_sea(depth), max_steps, f"deep-sea-{depth}", noise)


def make_pixels(
    name: str | Path, n: int = 1, seed: int | Sequence[int] = 0, max_steps: int | None = None
) -> "PixelsVectorEnv":
    """n copies of a task: four-rooms, cluster-hard, any other map by name, text or file, or deep-sea-N of depth N."""
    sea = str(name).startswith("deep-sea-")
    depth = str(name).removeprefix("deep-sea-")
    if sea and not depth.isdecimal():
        raise ValueError(f'no task "{name}"; DeepSea of depth N is deep-sea-N, as in deep-sea-10')
    return (pixel_sea(int(depth), max_steps) if sea else pixels(name, max_steps)).make(n, seed)


@register_task("deep-sea")
def deep_sea(depth: int = 10, seed: int = 0) -> MDP:
    """DeepSea (Osband et al.): each step sinks one row, to the left or the right; treasure at the lower right pays 1.

    A step to the right costs .01 / depth, so all but one of the 2^depth ways pay nothing or less. Which action goes
    right differs from cell to cell, drawn from the seed, so that no constant action is the answer. States are the
    cells within reach, row by row; reaching the last row, after `depth` steps, ends the episode.
    """
    check_whole("deep-sea: depth", depth, 1, 2000)  # at which there are two million states
    check_whole("deep-sea: seed", seed, 0)
    row, column = np.tril_indices(depth + 1)
    state = np.cumsum(np.arange(depth + 1))[:, None] + np.arange(depth + 1)  # of the cells [row, column]
    bottom = row == depth
    below = np.minimum(row + 1, depth)
    left, right = state[below, np.maximum(column - 1, 0)], state[below, column + 1 - bottom]
    swapped = np.random.default_rng(seed).random(len(row)) < 0.5
    successors = np.where(swapped[:, None], np.stack([right, left], 1), np.stack([left, right], 1))
    treasure = state[depth, depth]
    reward = (successors == treasure) - (successors == right[:, None]) * 0.01 / depth
    return MDP(
        f"deep-sea-{depth}",
        successors[:, :, None],
        prob=np.ones((len(row), 2, 1)),
        reward=np.where(bottom[:, None], 0.0, reward)[:, :, None],
        start=np.eye(len(row))[0],
        terminal=bottom,
        cells=np.stack([row, column], 1).astype(np.int32),
        shape=(depth + 1, depth + 1),
    )


def images(mdp: MDP) -> NDArray[np.uint8]:
    """A picture of every state of a map, uint8 [S, 20, 20]: cells as large as fit, in the middle of a wall.

    A map of more than 20 rows or columns has one pixel per cell and a larger picture.
    """
    if mdp.cells is None or mdp.shape is None:
        raise ValueError(f"{mdp.name}: no map, so no picture; use a grid or deep-sea")
    cell = max(1, SIDE // max(mdp.shape))
    letters = np.full(mdp.shape, WALL, np.uint8)
    letters[tuple(mdp.cells.T)] = FREE
    letters[tuple(mdp.cells[mdp.next[mdp.reward[0] > 0]].T)] = GOAL  # where a reward is paid
    maps = np.repeat(letters[None], mdp.n_states, axis=0)
    maps[np.arange(mdp.n_states), *mdp.cells.T] = AGENT
    maps = maps.repeat(cell, axis=1).repeat(cell, axis=2)
    margins = [(max(0, SIDE - side) // 2, (max(0, SIDE - side) + 1) // 2) for side in maps.shape[1:]]
    return np.pad(maps, [(0, 0), *margins], constant_values=WALL)


def _disturbed(mdp: MDP, noise: str) -> Disturbed:
    return Disturbed(noise, mdp, images(mdp), AGENT)


class PixelsEnv(MDPEnv):
    """One task; the observation is the picture of the state, uint8 [20, 20]."""

    def __init__(
        self, mdp: MDP, render_mode: str | None = None, max_steps: int | None = None, noise: str = "none"
    ) -> None:
        super().__init__(mdp, render_mode, max_steps)
        self.n_states, self._seen, self._walker = mdp.n_states, _disturbed(mdp, noise), 0
        self.observation_space = gym.spaces.Box(0, 255, self._seen.shape, np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        s, info = super().reset(seed=seed, options=options)
        self._walker = self._seen.begin(self.np_random)
        return self._picture(s), info | {"state": s}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        s, reward, terminated, truncated, info = super().step(action)
        self._walker = self._seen.move(self._walker, self.np_random)
        return self._picture(s), reward, terminated, truncated, info | {"state": s}

    def _picture(self, s: int) -> NDArray[np.uint8]:
        seen = self._seen.pictures(np.array([s]), np.array([self._walker]), [self.np_random])
        return np.asarray(seen[0])


class PixelsVectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Many copies of one task, by table lookups: what Gymnasium's SyncVectorEnv makes of `PixelsEnv`, faster."""

    def __init__(self, mdp: MDP, max_steps: int | None, rngs: list[np.random.Generator], noise: str = "none") -> None:
        self.mdp, self.max_steps, self._rngs = mdp, max_steps, rngs
        self.n_states, self._seen = mdp.n_states, _disturbed(mdp, noise)
        self.num_envs = n = len(rngs)
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED, "render_modes": ["rgb_array"]}
        self.render_mode = "rgb_array"
        self.single_observation_space = gym.spaces.Box(0, 255, self._seen.shape, np.uint8)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.single_action_space = gym.spaces.Discrete(mdp.n_actions)
        self.action_space = batch_space(self.single_action_space, n)
        self._cumulative, self._starts = mdp.prob.cumsum(axis=2), mdp.start.cumsum()
        self._states, self._steps, self._walkers = np.zeros((3, n), np.int64)
        self._pictures = np.zeros((n, *self._seen.shape), np.uint8)  # as they were last shown
        self._over = np.ones(n, np.bool_)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        mask = vector.reset_mask(self.num_envs, options)
        vector.reseed(self._rngs, seed, mask)
        which = np.flatnonzero(mask)
        rngs = [self._rngs[i] for i in which]
        self._states[which] = _draw(self._starts, rngs)
        self._steps[which], self._over[which] = 0, False
        self._walkers[which] = [self._seen.begin(rng) for rng in rngs]
        self._pictures[which] = self._seen.pictures(self._states[which], self._walkers[which], rngs)
        return self._pictures.copy(), {"state": self._states.copy()}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        s, a = self._states, np.asarray(actions)
        vector.check_step(self.mdp.name, a, self.mdp.n_actions, self._over)
        k = _draw(self._cumulative[s, a], self._rngs)
        self._states = self.mdp.next[s, a, k].astype(np.int64)
        self._steps += 1
        terminated = self.mdp.terminal[0, self._states]
        truncated = ~terminated & (self._steps == self.max_steps)
        self._over = terminated | truncated
        rewards = self.mdp.reward[0, s, a, k]
        self._walkers[:] = [self._seen.move(w, rng) for w, rng in zip(self._walkers, self._rngs, strict=True)]
        self._pictures = self._seen.pictures(self._states, self._walkers, self._rngs)
        return self._pictures.copy(), rewards, terminated, truncated, {"state": self._states.copy()}

    def render(self) -> tuple[NDArray[np.uint8], ...]:
        return tuple(draw(self.mdp, s) for s in self._states.tolist())

    def get_state(self) -> vector.State:
        """Everything that decides how the episodes go on."""
        state = {
            "states": self._states.copy(),
            "steps": self._steps.copy(),
            "over": self._over.copy(),
            "random": vector.save_generators(self._rngs),
        }
        if self._seen.noise == "none":
            return state
        return state | {"walkers": self._walkers.copy(), "pictures": self._pictures.copy()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state of `get_state`."""
        vector.check_state(self.mdp.name, state, self.get_state())
        if state["states"].min() < 0 or state["states"].max() >= self.n_states:
            raise ValueError(f"{self.mdp.name}: the saved state is not of its {self.n_states} states; other run?")
        self._states, self._steps, self._over = (state[key].copy() for key in ("states", "steps", "over"))
        vector.load_generators(self._rngs, state["random"])
        if self._seen.noise == "none":
            self._pictures = self._seen.images[self._states]
        else:
            self._walkers, self._pictures = state["walkers"] % self.n_states, state["pictures"].copy()


def _draw(cumulative: NDArray[np.float64], rngs: Sequence[np.random.Generator]) -> NDArray[np.int64]:
    """A draw from cumulative probabilities [K] or [n, K] for each generator, [n]; the same number as `MDPEnv` draws."""
    u = np.array([rng.random() for rng in rngs])
    at = (u * cumulative[..., -1])[:, None]
    return np.asarray((cumulative <= at).sum(axis=1))


def _deep_sea_entry(kind: Kind, make: Callable[..., Any], name: str) -> Entry | None:
    """deep-sea-N, as a table or as images."""
    depth = name.removeprefix("deep-sea-")
    is_depth = depth != name and depth.isdecimal()
    return Entry(name, kind, functools.partial(make, int(depth))) if is_depth else None


def _map_entry(name: str) -> Entry | None:
    """A map in a file, or the text of one, as images."""
    is_map = "\n" in name or os.path.isfile(name)
    return Entry(name, "images", functools.partial(pixels, name)) if is_map else None


register_task("grid", "images", gymnasium="Pixels-Grid")(pixels)
register_task("deep-sea", "images", gymnasium="Pixels-DeepSea")(pixel_sea)
_IDS = {"four-rooms": "Pixels-FourRooms", "cluster-hard": "Pixels-ClusterHard"}
for _name in MAPS:
    register_task(_name, "images", gymnasium=_IDS.get(_name, ""))(functools.partial(pixels, _name))
PATTERNS["table"].append(functools.partial(_deep_sea_entry, "table", deep_sea))
PATTERNS["images"] += [functools.partial(_deep_sea_entry, "images", pixel_sea), _map_entry]
