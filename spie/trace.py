"""What a run leaves behind."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Trajectory:
    """Every step of one seed."""

    states: NDArray[np.int32]  # [steps] where each step began
    actions: NDArray[np.int32]  # [steps]
    next_states: NDArray[np.int32]  # [steps] where it ended
    rewards: NDArray[np.float64]  # [steps] extrinsic
    bonuses: NDArray[np.float64]  # [steps] intrinsic, before beta


@dataclass(frozen=True)
class Trace:
    """One agent, many seeds: axis 0 is the seed throughout."""

    kind: ClassVar[str] = "trace"  # its name in a store

    seeds: NDArray[np.int64]  # [seeds]
    total_reward: NDArray[np.float64]  # [seeds] extrinsic, undiscounted
    total_bonus: NDArray[np.float64]  # [seeds] intrinsic, before beta
    steps: NDArray[np.int64]  # [seeds] steps taken
    visits: NDArray[np.int32]  # [seeds, S] the first state of every episode counts
    first_visit: NDArray[np.int32]  # [seeds, S] step of the first visit: 0 for the first state, -1 for never
    episode_steps: NDArray[np.int32]  # [seeds, episodes] where a number of episodes was asked for; deep agents: all
    truncated: NDArray[np.int32]  # [seeds] how many episodes a time limit ended
    snapshots: NDArray[np.int32]  # [seeds, asked steps, S] visits up to then
    Q: NDArray[np.float64] | None = None  # [seeds, S, A] final values, where asked for; so for the others
    M: NDArray[np.float64] | None = None  # [seeds, S, S]
    F: NDArray[np.float64] | None = None  # [seeds, S, S]
    N: NDArray[np.float64] | None = None  # [seeds, S, S]
    episode_rewards: NDArray[np.float64] | None = None  # [seeds, episodes] of deep agents; 0 steps: no such episode
    first_reward: NDArray[np.int64] | None = None  # [seeds] of deep agents: step of the first reward; -1 for none
    losses: NDArray[np.float64] | None = None  # [seeds, 10, 4] of deep agents: q, SF, PF, reconstruction, each tenth
    paths: dict[int, Trajectory] = field(default_factory=dict)  # by seed, where asked for
    settings: str = ""  # as Python writes them
    stopped: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # [seeds] the step at which numbers became infinite or NaN, its bonus not counted, and the run ended; -1 for never

    def __post_init__(self) -> None:
        if len(self.stopped) == 0:
            object.__setattr__(self, "stopped", np.full(len(self.seeds), -1))

    @property
    def failures(self) -> list[str]:
        """A line for each seed that stopped early because its numbers were no longer finite."""
        return _failures(self)

    def coverage(self, steps: ArrayLike) -> NDArray[np.float64]:
        """Fraction of the states visited by each of the given steps, [seeds, len(steps)]."""
        never = np.iinfo(np.int32).max
        first = np.sort(np.where(self.first_visit < 0, never, self.first_visit), axis=1)
        seen = np.array([np.searchsorted(row, np.asarray(steps), side="right") for row in first])
        return np.asarray(seen / first.shape[1])

    def steps_to(self, share: float) -> NDArray[np.float64]:
        """Steps until a share of the states was visited, [seeds]; a seed that never got there counts one step more."""
        first = np.sort(np.where(self.first_visit < 0, self.steps[:, None] + 1, self.first_visit), axis=1)
        return np.asarray(first[:, math.ceil(share * first.shape[1] - 1e-9) - 1], np.float64)


@dataclass(frozen=True)
class EpisodeTrace:
    """One agent, many seeds, in a task of episodes: axis 0 is the seed throughout."""

    kind: ClassVar[str] = "episodes"

    settings: str  # as Python writes them
    seeds: NDArray[np.int64]  # [seeds]
    episode_steps: NDArray[np.int32]  # [seeds, episodes]
    episode_rewards: NDArray[np.float64]  # [seeds, episodes] extrinsic, undiscounted
    episode_bonuses: NDArray[np.float64]  # [seeds, episodes] sum of the intrinsic reward, before beta
    terminated: NDArray[np.bool_]  # [seeds, episodes] False: truncated, or never begun
    stopped: NDArray[np.int64]  # [seeds] the step at which numbers became infinite or NaN, -1 for never
    Q: NDArray[np.float64] | None = None  # [seeds, A, d] final weights, where asked for; so for the others
    Psi: NDArray[np.float64] | None = None  # [seeds, A, d, d]
    Xi: NDArray[np.float64] | None = None  # [seeds, d, d]

    @property
    def failures(self) -> list[str]:
        """A line for each seed that stopped early because its numbers were no longer finite."""
        return _failures(self)

    @property
    def first_success(self) -> NDArray[np.int64]:
        """The first episode, from 0, that ended by itself [seeds]; -1 for none."""
        return np.where(self.terminated.any(axis=1), self.terminated.argmax(axis=1), -1)


@dataclass(frozen=True)
class Scores:
    """Many settings, many seeds, one number each: what a sweep keeps."""

    kind: ClassVar[str] = "scores"

    seeds: NDArray[np.int64]  # [seeds]
    values: NDArray[np.float64]  # [settings, seeds]


Result: TypeAlias = Trace | EpisodeTrace | Scores


def _failures(trace: Trace | EpisodeTrace) -> list[str]:
    return [
        f"{trace.settings}, seed {seed}: infinite or NaN at step {step:,}"
        for seed, step in zip(trace.seeds, trace.stopped, strict=True)
        if step >= 0
    ]
