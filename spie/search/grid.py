"""Many settings of one agent as a single value: a sweep is runs of these."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Keep, Replay, Seeds, Session, refuse
from spie.agents.sarsa.batch import run_sarsa
from spie.agents.sarsa.settings import Sarsa
from spie.errors import unknown
from spie.rewards import get_reward
from spie.tasks.mdp import MDP
from spie.trace import Scores, Trace


class Measure(NamedTuple):
    """What a sweep compares settings by."""

    title: str
    of: Callable[[Trace], NDArray[np.float64]]  # [seeds]
    sign: int  # 1: more is better


MEASURES = {
    "reward": Measure("total reward", lambda trace: trace.total_reward, 1),
    "coverage": Measure("steps to see 99 % of the states", lambda trace: trace.steps_to(0.99), -1),
    "episodes": Measure("steps an episode", lambda trace: trace.episode_steps.mean(axis=1), -1),
}


@dataclass(frozen=True)
class SettingsGrid(Agent):
    """Every combination of some values of an agent's settings, run side by side as lanes of the engine."""

    base: Sarsa  # what all have in common
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
        return next((values for name, values in self.axes if name == "reward"), (self.base.reward,))

    def combinations(self) -> list[tuple[Any, ...]]:
        """The values of the axes, one tuple a settings."""
        found = list(itertools.product(*(values for _, values in self.axes)))
        return found if self.only is None else [found[i] for i in self.only]

    def settings(self) -> list[Sarsa]:
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

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step of all settings takes on one core, compiled."""
        return len(self) * self.base.seconds_per_step(task)

    def run(
        self,
        task: MDP,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> Scores:
        """Run every combination on every seed, and keep one number of each."""
        refuse("a grid of settings", keep=keep != Keep(), replay=replay is not None)
        traces = run_sarsa(self.settings(), task, steps, seeds, episodes=episodes, session=session)
        of = MEASURES[self.measure].of
        return Scores(traces[0].seeds, np.array([of(trace) for trace in traces], np.float64))


def _settings(base: Sarsa, name: str, value: Any) -> Sarsa:
    try:
        return dataclasses.replace(base, **{name: value})
    except TypeError:  # a word where a number belongs
        raise ValueError(f"{name} cannot be {value!r}") from None


def used(s: Sarsa) -> tuple[str, ...]:
    """The settings in the paper's sweep that make a difference to an agent, those of its representation included."""
    kept = {need[:2] for need in get_reward(s.reward).needs}
    uses = {
        "alpha": True,
        "eta": s.learned and bool(kept & {"M_", "F_"}),
        "gamma_sr": bool(kept & {"M_", "F_"}),
        "eta_pr": s.learned and "N_" in kept,
        "gamma_pr": "N_" in kept,
        "beta": s.reward != "none",
        "epsilon": True,
    }
    return tuple(name for name, is_used in uses.items() if is_used)
