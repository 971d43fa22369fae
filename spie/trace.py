"""What a run leaves behind."""

import dataclasses
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spie.notebook import html_curve, html_table

PARTS = 20  # of a run, in a curve of its reward; fewer where it has fewer steps or episodes


def part_sizes(n: int) -> NDArray[np.int64]:
    """How many of n steps or episodes each part of a run has: number i, from 0, is of part i * parts // n [parts]."""
    parts = min(PARTS, n)
    return np.diff(-(-n * np.arange(parts + 1) // parts))


@dataclass(frozen=True)
class Trajectory:
    """Every step of one seed.

    >>> from spie import Keep
    >>> trace = spie.Sarsa().run(spie.grid("cluster-simple"), steps=300, seeds=2, keep=Keep(paths=(1,)))
    >>> path = trace.paths[1]
    >>> bool((path.next_states[:-1] == path.states[1:]).all())
    True
    """

    states: NDArray[np.int32]  # [steps] where each step began
    actions: NDArray[np.int32]  # [steps]
    next_states: NDArray[np.int32]  # [steps] where it ended
    rewards: NDArray[np.float64]  # [steps] extrinsic
    bonuses: NDArray[np.float64]  # [steps] intrinsic, before beta

    def __repr__(self) -> str:
        n = len(self.states)
        return f"Trajectory: {n:,} steps, {len(np.unique(self.states)):,} states, reward {self.rewards.sum():g}"

    def _repr_html_(self) -> str:
        return html_table(repr(self), list(self.columns()), _rows(self.columns(), MOST_SHOWN))

    def columns(self) -> dict[str, NDArray[Any]]:
        """By name, one value per step."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def to_frame(self) -> Any:
        """One row per step, as a DataFrame of pandas, or of polars where that is what is installed."""
        return _frame({"step": np.arange(len(self.states)), **self.columns()})


@dataclass(frozen=True)
class Trace:
    """One agent, many seeds: axis 0 is the seed throughout.

    What `run` of a tabular or deep agent returns.

    >>> trace = spie.Sarsa().run(spie.grid("cluster-simple"), steps=300, seeds=5)
    >>> trace.visits.sum(axis=1).tolist()  # every step enters a state, and the first one counts
    [301, 301, 301, 301, 301]
    >>> trace.coverage(np.array([0, 300])).shape
    (5, 2)
    """

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
    reward_curve: NDArray[np.float32] | None = None  # [seeds, 20] reward per step in each twentieth of the run, or per
    # episode where a number of those was asked for; deep agents: of episodes that ended in it; None: older runs
    stopped: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # [seeds] the step at which numbers became infinite or NaN, its bonus not counted, and the run ended; -1 for never

    def __post_init__(self) -> None:
        if len(self.stopped) == 0:
            object.__setattr__(self, "stopped", np.full(len(self.seeds), -1))

    def __repr__(self) -> str:
        reward = _mean(self.total_reward)
        seen = by = ""
        if self.visits.size:
            seen = f", {(self.first_visit >= 0).mean():.0%} of {self.visits.shape[1]:,} states seen"
        if self.settings:
            by = f"; {_short(self.settings)}"
        return f"Trace: {_shape(self.seeds, self.steps)}, total reward {reward}{seen}{by}"

    def _repr_html_(self) -> str:
        return _summary(repr(self), self.columns()) + self._html_curve()

    def _html_curve(self) -> str:
        if self.reward_curve is None:
            return ""
        listed = self.episode_steps.shape[1] > 0 and self.episode_rewards is None
        what = f"reward {'per episode' if listed else 'per step'} in the course of the run, mean of the seeds"
        return html_curve(what, self.reward_curve.mean(axis=0).tolist())

    def columns(self) -> dict[str, NDArray[Any]]:
        """By name, one value per seed."""
        found: dict[str, NDArray[Any]] = {"seed": self.seeds, "steps": self.steps, "total_reward": self.total_reward}
        found |= {"total_bonus": self.total_bonus, "truncated": self.truncated}
        if self.first_visit.size:
            found["states_seen"] = (self.first_visit >= 0).sum(axis=1)
        if self.episode_steps.size:
            found |= {"episodes": (self.episode_steps > 0).sum(axis=1), "steps_of_episodes": _of_played(self)}
        return found

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All that it holds for each seed, by name, paths left out."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}

    def to_frame(self) -> Any:
        """One row per seed, as a DataFrame of pandas, or of polars where that is what is installed."""
        return _frame(self.columns())

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

    def joined_with(self, more: "Sequence[Trace]") -> "Trace":
        """One trace of the seeds of all."""
        return joined([self, *more])

    def steps_to(self, share: float) -> NDArray[np.float64]:
        """Steps until a share of the states was visited, [seeds]; a seed that never got there counts one step more."""
        first = np.sort(np.where(self.first_visit < 0, self.steps[:, None] + 1, self.first_visit), axis=1)
        return np.asarray(first[:, math.ceil(share * first.shape[1] - 1e-9) - 1], np.float64)


PER_EPISODE = ("episode_steps", "episode_rewards", "episode_bonuses", "terminated")  # [seeds, episodes]


def _of_all(arrays: Sequence[NDArray[Any]], episodes: int) -> NDArray[Any]:
    """Arrays of some seeds each as one, with as many episodes."""
    return np.concatenate([np.pad(array, [(0, 0), (0, episodes - array.shape[1])]) for array in arrays])


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of some seeds each as one of all; where one has fewer episodes than another, the rest have 0 steps."""
    first, episodes = traces[0], max(trace.episode_steps.shape[1] for trace in traces)
    if len(traces) == 1:
        return first

    def field_of_all(name: str) -> NDArray[Any]:
        arrays = [trace.arrays[name] for trace in traces]
        return _of_all(arrays, episodes) if name in PER_EPISODE else np.concatenate(arrays)

    names = [name for name in first.arrays if all(name in trace.arrays for trace in traces)]
    paths = {seed: path for trace in traces for seed, path in trace.paths.items()}
    found: dict[str, Any] = {name: field_of_all(name) for name in names}
    return Trace(**found, paths=paths, settings=first.settings)


def joined_episodes(traces: "Sequence[EpisodeTrace]") -> "EpisodeTrace":
    """The same of traces of episodes."""
    first, episodes = traces[0], max(trace.episode_steps.shape[1] for trace in traces)
    found: dict[str, Any] = {}
    for name, value in vars(first).items():
        arrays = [vars(trace)[name] for trace in traces]
        if name != "settings" and value is not None:
            found[name] = _of_all(arrays, episodes) if name in PER_EPISODE else np.concatenate(arrays)
    return EpisodeTrace(first.settings, **found)


def curve_of_episodes(
    ends: ArrayLike, rewards: ArrayLike, steps: int, total_reward: float | None = None
) -> NDArray[np.float32]:
    """The reward per step of the episodes that ended in each part of a run, given the steps at which they did [parts].

    total_reward: of the run; what no episode that ended has of it counts in the last part.
    """
    sizes = part_sizes(steps)
    parts = len(sizes)
    part = (np.asarray(ends, np.int64) - 1) * parts // steps
    paid = np.bincount(np.clip(part, 0, parts - 1), np.asarray(rewards, np.float64), parts)
    if total_reward is not None:
        paid[-1] += total_reward - paid.sum()
    return np.asarray(paid / sizes, np.float32)


ACCOUNT = ("steps", "positive", "negative", "outweighed", "total", "squares")  # of what a bonus paid, beta in it


@dataclass(frozen=True)
class EpisodeTrace:
    """One agent, many seeds, in a task of episodes: axis 0 is the seed throughout.

    What `run` of a linear agent returns.

    >>> trace = spie.LinearQ(reward="none", dimension=8).run(spie.mountain_car(), steps=50, episodes=2, seeds=3)
    >>> trace.episode_steps.shape, trace.terminated.any()
    ((3, 2), np.False_)
    """

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
    under_way: NDArray[np.float64] | None = None  # [seeds, 2] steps and reward of the episode broken off at the end
    account: NDArray[np.float64] | None = None  # [seeds, 6] of a bonus in somebody else's agent, see `ACCOUNT`

    def __repr__(self) -> str:
        reward = _mean(self.episode_rewards.sum(axis=1))
        episodes = f"{(self.episode_steps > 0).sum(axis=1).mean():,.0f} episodes a seed"
        shape = _shape(self.seeds, self.run_steps)
        return f"EpisodeTrace: {shape}, {episodes}, total reward {reward}; {_short(self.settings)}"

    def _repr_html_(self) -> str:
        return _summary(repr(self), self.columns())

    def columns(self) -> dict[str, NDArray[Any]]:
        """By name, one value per seed."""
        played = self.episode_steps > 0
        totals = {"seed": self.seeds, "steps": self.run_steps, "total_reward": self.episode_rewards.sum(axis=1)}
        totals |= {"total_bonus": self.episode_bonuses.sum(axis=1), "late_reward": self.late_reward()}
        return totals | {"episodes": played.sum(axis=1), "terminated": self.terminated.sum(axis=1)}

    def to_frame(self) -> Any:
        """One row an episode, as a DataFrame of pandas, or of polars where that is what is installed."""
        seed, episode = np.nonzero(self.episode_steps > 0)
        at = seed, episode
        rows: dict[str, NDArray[Any]] = {"seed": self.seeds[seed], "episode": episode, "steps": self.episode_steps[at]}
        rows |= {"reward": self.episode_rewards[at], "bonus": self.episode_bonuses[at]}
        return _frame(rows | {"terminated": self.terminated[at]})

    @property
    def failures(self) -> list[str]:
        """A line for each seed that stopped early because its numbers were no longer finite."""
        return _failures(self)

    def joined_with(self, more: "Sequence[EpisodeTrace]") -> "EpisodeTrace":
        """One trace of the seeds of all."""
        return joined_episodes([self, *more])

    @property
    def first_success(self) -> NDArray[np.int64]:
        """The first episode, from 0, that ended by itself [seeds]; -1 for none."""
        return np.where(self.terminated.any(axis=1), self.terminated.argmax(axis=1), -1)

    @property
    def run_steps(self) -> NDArray[np.float64]:
        """All steps of each seed [seeds], those of an episode that was broken off included."""
        return np.asarray(self.episode_steps.sum(axis=1) + (0 if self.under_way is None else self.under_way[:, 0]))

    def reward_by_steps(self, edges: ArrayLike) -> NDArray[np.float64]:
        """Mean reward of the episodes that ended between each two of the steps `edges` [seeds, len(edges) - 1].

        Where none ended it is that of the last one before; before the first, that of the first; where no episode ended
        at all, of the one under way.
        """
        steps = np.asarray(edges, np.float64)
        curves = np.zeros((len(self.seeds), len(steps) - 1))
        for i, (lengths, rewards) in enumerate(zip(self.episode_steps, self.episode_rewards, strict=True)):
            played = lengths > 0
            if not played.any():
                curves[i] = 0.0 if self.under_way is None else self.under_way[i, 1]
                continue
            ends, paid = np.cumsum(lengths[played]), rewards[played]
            between = np.clip(np.searchsorted(steps, ends) - 1, 0, len(steps) - 2)
            n = np.bincount(between, minlength=len(steps) - 1)
            means = np.bincount(between, paid, len(steps) - 1) / np.maximum(n, 1)
            last = np.maximum.accumulate(np.where(n > 0, np.arange(len(n)), -1))
            curves[i] = means[np.where(last < 0, np.argmax(n > 0), last)]
        return curves

    def late_reward(self, share: float = 1 / 3) -> NDArray[np.float64]:
        """Mean reward of the episodes that ended in the last third of the steps, or another share of them [seeds].

        Where none did, of the one that was under way, which is then long; without any, of all before.
        """
        found = np.zeros(len(self.seeds))
        for i, (lengths, rewards) in enumerate(zip(self.episode_steps, self.episode_rewards, strict=True)):
            late = (lengths > 0) & (np.cumsum(lengths) > (1 - share) * self.run_steps[i])
            broken = None if self.under_way is None or self.under_way[i, 0] == 0 else self.under_way[i, 1]
            if late.any():
                found[i] = rewards[late].mean()
            else:
                found[i] = broken if broken is not None else rewards[lengths > 0].mean() if (lengths > 0).any() else 0
        return found


@dataclass(frozen=True)
class Scores:
    """Many settings, many seeds, one number each: what a sweep keeps.

    >>> spie.Scores(np.arange(3), np.zeros((2, 3))).values.shape
    (2, 3)
    """

    kind: ClassVar[str] = "scores"

    seeds: NDArray[np.int64]  # [seeds]
    values: NDArray[np.float64]  # [settings, seeds]
    stopped: NDArray[np.int64] | None = None  # [settings, seeds] as of a Trace; None: no seed stopped early


MOST_SHOWN = 10  # rows in a notebook


def _mean(values: NDArray[Any]) -> str:
    """A mean with its standard error."""
    se = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{values.mean():,.4g}" + ("" if math.isnan(se) else f" (se {se:,.2g})")


def _short(settings: str, most: int = 60) -> str:
    return settings if len(settings) <= most else f"{settings[: most - 3]}..."


def _shape(seeds: NDArray[Any], steps: NDArray[Any]) -> str:
    length = f"{steps.max():,.0f}" if len(steps) and steps.min() == steps.max() else f"up to {steps.max():,.0f}"
    return f"{len(seeds):,} seed{'s' * (len(seeds) != 1)} x {length} steps"


def _of_played(trace: "Trace") -> NDArray[np.float64]:
    """Mean steps of the episodes that each seed played."""
    n = (trace.episode_steps > 0).sum(axis=1)
    return np.asarray(trace.episode_steps.sum(axis=1) / np.maximum(n, 1))


def _summary(title: str, columns: dict[str, NDArray[Any]]) -> str:
    """Mean, deviation, least and most over seeds, as HTML."""
    rows = []
    for name, values in columns.items():
        if name != "seed" and len(values):
            spread = float(values.std(ddof=1)) if len(values) > 1 else None
            numbers = {"mean": float(values.mean()), "sd": spread, "least": values.min(), "most": values.max()}
            rows.append({"a seed": name.replace("_", " "), **numbers})
    return html_table(title, ["a seed", "mean", "sd", "least", "most"], rows)


def _rows(columns: dict[str, NDArray[Any]], most: int) -> list[dict[str, Any]]:
    return [
        dict(zip(columns, row, strict=True)) for row in zip(*(c[:most].tolist() for c in columns.values()), strict=True)
    ]


def _frame(columns: dict[str, NDArray[Any]]) -> Any:
    for library in ("pandas", "polars"):
        try:
            return importlib.import_module(library).DataFrame(columns)
        except ModuleNotFoundError:
            continue
    raise ImportError("to_frame needs pandas or polars: pip install pandas; or take columns(), which are NumPy arrays")


Result: TypeAlias = Trace | EpisodeTrace | Scores


def _failures(trace: Trace | EpisodeTrace) -> list[str]:
    return [
        f"{trace.settings}, seed {seed}: infinite or NaN at step {step:,}"
        for seed, step in zip(trace.seeds, trace.stopped, strict=True)
        if step >= 0
    ]
