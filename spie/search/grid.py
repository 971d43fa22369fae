"""Many settings of one agent as a single value, and what they are compared by: a search is runs of these."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Request, Resources, changed, identity
from spie.engine.specialise import Kernel
from spie.errors import unknown
from spie.tasks.base import Task
from spie.trace import EpisodeTrace, Result, Scores, Trace

Score = Callable[[Any], NDArray[np.float64]]  # of what a run left, one number per seed


class Measure(NamedTuple):
    """What settings are compared by: a number that is read off a run, by the kind of result that the run leaves."""

    title: str
    of: Mapping[str, Score]
    sign: int = 1  # 1: more is better; -1: less is

    def read(self, result: Result) -> NDArray[np.float64]:
        """One number per seed."""
        if result.kind not in self.of:
            raise ValueError(f"{self.title} cannot be computed from what this agent records; choose another measure")
        return np.asarray(self.of[result.kind](result), np.float64)


TRACE, EPISODES = Trace.kind, EpisodeTrace.kind
MEASURES = {
    "reward": Measure(
        "total reward", {TRACE: lambda t: t.total_reward, EPISODES: lambda t: t.episode_rewards.sum(axis=1)}
    ),
    "episode reward": Measure("reward per episode", {EPISODES: lambda t: t.episode_rewards.mean(axis=1)}),
    "late reward": Measure("reward per episode, last third of the steps", {EPISODES: lambda t: t.late_reward()}),
    "success": Measure("share of episodes that end by themselves", {EPISODES: lambda t: t.terminated.mean(axis=1)}),
    "coverage": Measure("steps to see 99 % of the states", {TRACE: lambda t: t.steps_to(0.99)}, -1),
    "episodes": Measure(
        "steps per episode", dict.fromkeys((TRACE, EPISODES), lambda t: t.episode_steps.mean(axis=1)), -1
    ),
    # More is better, so that tasks of all kinds can count together
    "tour": Measure("states over steps to see 99 % of them", {TRACE: lambda t: t.visits.shape[1] / t.steps_to(0.99)}),
    "speed": Measure("episodes a step", dict.fromkeys((TRACE, EPISODES), lambda t: 1 / t.episode_steps.mean(axis=1))),
}


def usual_measure(task: Any, episodes: int | None) -> str:
    """What agents on a task are compared by, unless told otherwise."""
    if task.kind == "continuous":
        return "episode reward"
    if episodes:
        return "episodes"
    return "coverage" if task.kind == "table" and not task.reward.any() else "reward"


@dataclass(frozen=True)
class SettingsGrid(Agent[Scores]):
    """Every combination of some values of an agent's settings, run side by side where the agent can do so."""

    base: Any  # an Agent: what all have in common
    axes: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # settings and their values; the last varies fastest
    measure: str = "reward"
    only: tuple[int, ...] | None = None  # of the combinations, by number; None for all

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise unknown("measure", self.measure, MEASURES)
        known = [field.name for field in dataclasses.fields(self.base)]
        for name, values in self.axes:
            if name not in known:
                raise unknown(f"setting of {type(self.base).__name__}", name, known)
            if len(values) == 0:
                raise ValueError(f"{name} has no values; give some, as in {name}=0.1,0.5")
            for value in values[::-1]:  # each must be one that the agent takes
                base = _settings(self.base, name, value)
            object.__setattr__(self, "base", base)  # one and the same grid, whatever the base says about its axes

    def __len__(self) -> int:
        return math.prod(len(values) for _, values in self.axes) if self.only is None else len(self.only)

    @property
    def n_settings(self) -> int:
        return len(self)

    @property
    def rewards(self) -> tuple[str, ...]:
        """The intrinsic rewards in use."""
        return tuple(dict.fromkeys(reward for s in self.variants() for reward in s.rewards))

    def variants(self) -> list[Any]:
        """The base, and each value of each axis in it alone: all kinds of settings there are, without all of them."""
        return [self.base, *(_settings(self.base, name, value) for name, values in self.axes for value in values)]

    def changed_settings(self) -> dict[str, Any]:
        return changed(self) | {"base": identity(self.base)}

    def combinations(self) -> list[tuple[Any, ...]]:
        """The values of the axes, a tuple for each combination."""
        found = list(itertools.product(*(values for _, values in self.axes)))
        return found if self.only is None else [found[i] for i in self.only]

    def settings(self) -> list[Any]:
        names = [name for name, _ in self.axes]
        return [dataclasses.replace(self.base, **dict(zip(names, c, strict=True))) for c in self.combinations()]

    def split(self, most: int) -> Iterator["SettingsGrid"]:
        """The same grid as smaller ones of at most `most` settings, in order; they depend on no axis outside them."""
        if len(self) <= max(1, most):
            yield self
            return
        i = next(i for i, (_, values) in enumerate(self.axes) if len(values) > 1)
        name, values = self.axes[i]
        each = max(1, most * len(values) // len(self))
        for k in range(0, len(values), each):
            axes = (*self.axes[:i], (name, values[k : k + each]), *self.axes[i + 1 :])
            yield from dataclasses.replace(self, axes=axes).split(most)

    def seconds_per_step(self, task: Task) -> float:
        """About how long a step of all settings takes on one core, compiled."""
        return float(len(self) * self.base.seconds_per_step(task))

    def seconds(self, task: Task, steps: int, seeds: int) -> float:
        """About how long seeds of all settings take on one core, compiled."""
        return float(len(self) * self.base.seconds(task, steps, seeds))

    @classmethod
    def kernels(cls, settings: "Sequence[SettingsGrid]", request: Request) -> list[Kernel]:
        return [kernel for grid in settings for kernel in grid.base.kernels(grid.variants(), request)]

    def require(self) -> None:
        self.base.require()

    def memory(self, task: Task, steps: int, seeds: int) -> int:
        return int(self.base.memory(task, steps, seeds))

    def resources(self) -> Resources:
        found: Resources = self.base.resources()
        return found

    def execute(self, request: Request) -> Scores:
        """Run every combination on every seed, and keep one number of each."""
        request.refuse("a grid of settings", "keep.matrices", "keep.snapshots", "keep.paths", "replay")
        results = self.base.execute_many(self.settings(), request)
        read = MEASURES[self.measure].read
        stopped = np.array([result.stopped for result in results])
        values = np.array([read(result) for result in results], np.float64)
        return Scores(results[0].seeds, values, stopped if (stopped >= 0).any() else None)


def _settings(base: Any, name: str, value: Any) -> Any:
    try:
        return dataclasses.replace(base, **{name: value})
    except TypeError:  # a word where a number belongs
        raise ValueError(f"{name} cannot be {value!r}") from None
