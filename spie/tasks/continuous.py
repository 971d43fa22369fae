"""Environments with a real-valued state: one step function for the compiled engine and for Gymnasium."""

import functools
import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.tasks.base import Kind


def observe_state(x: Any, observation: Any) -> None:
    """The state is what is observed."""
    for i in range(len(x)):
        observation[i] = x[i]


@dataclass(frozen=True, eq=False)
class ContinuousTask:
    """An environment as data and two plain functions, which the engine compiles and Gymnasium calls.

    step(x, a): change the state x [m] in place; return the reward and whether the episode ends.
    observe(x, observation): write what the agent sees [n]. They may use numbers, `math` and functions of your own.

    Raises ValueError where bounds are no ranges or do not fit together.

    >>> def step(x, a):  # a car on a road: brake or go; the town is at 1
    ...     x[0] += 0.1 * a
    ...     return (1.0, True) if x[0] >= 1 else (0.0, False)
    >>> road = spie.ContinuousTask("road", [0.0], [1.2], ["brake", "go"], [0.0], [0.0], step)
    >>> trace = spie.LinearQ(reward="none", dimension=8).run(road, steps=50, episodes=2)
    >>> trace.episode_steps.shape
    (1, 2)
    """

    kind: ClassVar[Kind] = "continuous"

    name: str
    low: Sequence[float]  # [n] bounds of the observation
    high: Sequence[float]  # [n]
    actions: Sequence[str]  # what each is called
    start_low: Sequence[float]  # [m] every episode starts uniformly within
    start_high: Sequence[float]  # [m]
    step: Callable[[Any, int], tuple[float, bool]]
    observe: Callable[[Any, Any], None] = observe_state
    labels: Sequence[str] = ()  # [2] of the state's first numbers, for drawings
    view: Sequence[tuple[float, float]] = ()  # [2] the part of the state space to draw

    def __post_init__(self) -> None:
        for lows, highs in ((self.low, self.high), (self.start_low, self.start_high)):
            if len(lows) != len(highs) or not len(lows):
                raise ValueError(f"{self.name}: bounds of {len(lows)} and {len(highs)} numbers do not fit together")
        for i, (low, high) in enumerate(zip(self.low, self.high, strict=True)):
            if not -np.inf < low < high < np.inf:
                raise ValueError(
                    f"{self.name}: number {i} of the observation has bounds [{low}, {high}], not a finite range"
                )
        if len(self.start_low) > 7:
            raise ValueError(f"{self.name}: a state of {len(self.start_low)} numbers is too long; at most 7")
        if not 1 <= len(self.actions) <= 64:
            raise ValueError(f"{self.name}: {len(self.actions)} actions; there can be 1 to 64")
        for low, high in zip(self.start_low, self.start_high, strict=True):
            if not -np.inf < low <= high < np.inf:
                raise ValueError(f"{self.name}: episodes cannot start in [{low}, {high}]")

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    @property
    def space(self) -> gym.spaces.Box:
        """What can be observed."""
        return gym.spaces.Box(np.array(self.low, np.float64), np.array(self.high, np.float64), dtype=np.float64)

    def seen_over_view(self, size: int) -> NDArray[np.float64]:
        """What is observed [size, size, n] on a lattice of states over `view`: axis 1 is the state's first number.

        Further numbers of a state are as in the middle of where episodes start.
        """
        rest = (np.array(self.start_low[2:]) + self.start_high[2:]) / 2
        (left, right), (bottom, top) = self.view
        seen = np.empty((size, size, len(self.low)))
        for row, y in enumerate(np.linspace(bottom, top, size)):
            for column, x in enumerate(np.linspace(left, right, size)):
                self.observe(np.array([x, y, *rest]), seen[row, column])
        return seen

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the numbers and of the functions' text: the same environment has the same digest."""
        bounds = [list(map(float, b)) for b in (self.low, self.high, self.start_low, self.start_high)]
        text = repr((bounds, len(self.actions))) + inspect.getsource(self.step) + inspect.getsource(self.observe)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def env(self, render_mode: str | None = None, max_steps: int | None = None) -> gym.Env[Any, Any]:
        """This task as a Gymnasium environment, which draws nothing; episodes are truncated after `max_steps`."""
        if render_mode is not None:
            # the error of an environment without this argument, upon which Stable-Baselines3 makes it without
            raise TypeError(f'{self.name}: no render mode "{render_mode}"; it draws nothing')
        if max_steps is not None and max_steps < 1:
            raise ValueError(f"{self.name}: max_steps is {max_steps}; give 1 or more, or None for no limit")
        return ContinuousEnv(self) if max_steps is None else gym.wrappers.TimeLimit(ContinuousEnv(self), max_steps)


class ContinuousEnv(gym.Env[NDArray[Any], np.int64]):
    """A ContinuousTask as a Gymnasium environment.

    task: what to play; `task.env()` is the same.

    >>> env = spie.ContinuousEnv(spie.mountain_car())
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, int(env.action_space.n)
    ((2,), 3)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's own form)

    def __init__(self, task: ContinuousTask) -> None:
        self.task = task
        self.observation_space = task.space
        self.action_space = gym.spaces.Discrete(task.n_actions)
        self.x = np.array(task.start_low, np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        self.x = self.np_random.uniform(self.task.start_low, self.task.start_high)
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"{self.task.name}: no action {action}; there are 0 ... {self.task.n_actions - 1}")
        reward, terminated = self.task.step(self.x, int(action))
        return self._observation(), float(reward), bool(terminated), False, {}

    def _observation(self) -> NDArray[np.float64]:
        observation = np.empty(len(self.task.low))
        self.task.observe(self.x, observation)
        return observation
