"""What the runs of agents on tables have in common: the lanes of one call, and the traces that they leave."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Keep, Request, Session
from spie.engine import simulator
from spie.engine.lanes import check_memory, random_streams, seed_array
from spie.engine.simulator import STEP, STOPPED
from spie.errors import unknown
from spie.tasks.mdp import MDP
from spie.trace import Trace, Trajectory, part_sizes

Settings = TypeVar("Settings", bound=Agent[Trace])


class TableBatch(Generic[Settings]):
    """The lanes of one call, settings x seeds on one MDP, and what they leave. Each agent says how they run."""

    LANE: ClassVar[np.dtype[Any]]  # the numbers of a lane
    MATRICES: ClassVar[tuple[str, ...]]  # whose final values can be kept

    def __init__(
        self,
        settings: Sequence[Settings],
        mdp: MDP,
        steps: int,
        seeds: NDArray[np.int64],
        episodes: int | None,
        keep: Keep,
        recorded: bool,
        numbers_per_step: int = 0,  # that an agent keeps of each lane beside these
    ) -> None:
        if mdp.n_actions > 64:
            raise ValueError(f"{mdp.name} has {mdp.n_actions} actions; the engine takes at most 64")
        for name in keep.matrices:
            if name not in self.MATRICES:
                raise unknown("matrix to keep", name, self.MATRICES)
        self.settings, self.mdp, self.seeds, self.keep, self.recorded = settings, mdp, seeds, keep.matrices, recorded
        self.horizon, self.cap, self.episodes = simulator.run_length(steps, episodes)
        self.snapshot_steps = simulator.snapshot_array(keep.snapshots, self.horizon)
        self.part_sizes = part_sizes(self.horizon if self.episodes < 0 else self.episodes)
        self._allocate(numbers_per_step)

    def _allocate(self, numbers_per_step: int) -> None:
        """What the lanes leave, and their numbers."""
        S, A, n = self.mdp.n_states, self.mdp.n_actions, len(self.settings) * len(self.seeds)
        T, shots = self.horizon if self.recorded else 0, len(self.snapshot_steps)
        sizes = {name: (S * A if name == "Q" else S * S) * (name in self.keep) for name in self.MATRICES}
        numbers = sum(sizes.values()) + numbers_per_step * self.horizon
        parts = len(self.part_sizes)
        needed = n * (self.LANE.itemsize + 8 * S + 4 * S * shots + STEP.itemsize * T + 8 * (numbers + parts))
        check_memory(needed, f"{n:,} runs on {S:,} states", "ask for fewer seeds at once, or for less of each")
        self.visits = np.zeros((n, S), np.int32)
        self.first_visit = np.full((n, S), -1, np.int32)
        self.episode_steps = np.zeros((n, max(0, self.episodes)), np.int32)
        self.snapshots = np.zeros((n, shots, S), np.int32)
        self.finals = {name: np.zeros((n, size)) for name, size in sizes.items()}
        self.steps = np.zeros((n, T), STEP)
        self.earned = np.full((n, parts), np.nan)  # reward up to the end of each part; none where a lane ended before
        self.refused = np.zeros((n, 2), np.int32)
        self.lanes = np.zeros(n, self.LANE)
        key, stride = random_streams(self.seeds)
        for i, s in enumerate(self.settings):
            lanes = self.lanes[i * len(self.seeds) : (i + 1) * len(self.seeds)]
            self.fill(lanes, s)
            # Step t, from 1, uses words 4t for a, 4t + 1 for s', 4t + 2 for a', 4t + 3 for the start of a new episode
            lanes["word"] = key + np.uint64(4) * stride
            lanes["stride"] = stride

    def fill(self, lanes: NDArray[Any], s: Settings) -> None:
        """Write settings into their lanes."""
        raise NotImplementedError

    def run_lanes(self, session: Session) -> None:
        """Run all lanes."""
        raise NotImplementedError

    def replayed(self, lane: int, step: int) -> int:
        """The action that a lane was to take at a step."""
        raise NotImplementedError

    def kept(self, i: int, rows: slice) -> dict[str, Any]:
        """The final values of settings i, by name."""
        n, S = len(self.seeds), self.mdp.n_states
        return {name: self.finals[name][rows].reshape(n, S, -1) for name in self.keep}

    def execute(self, session: Session) -> list[Trace]:
        """Run all lanes: a trace for each set of settings."""
        self.run_lanes(session)
        self.check()
        return [self._trace(i) for i in range(len(self.settings))]

    def check(self) -> None:
        """Refuse a replay that took what is not available; mark lanes whose sums are no longer finite."""
        for lane in np.flatnonzero(self.refused[:, 0])[:1]:
            step, s = self.refused[lane]
            offer = ", ".join(map(str, np.flatnonzero(self.mdp.available[s])))
            raise ValueError(
                f"replay: action {self.replayed(lane, step)} at step {step} of seed "
                f"{self.seeds[lane % len(self.seeds)]} is not available in state {s}; available: {offer}"
            )
        finite = np.isfinite(self.lanes["total_reward"]) & np.isfinite(self.lanes["total_bonus"])
        self.lanes["over"][~finite] = STOPPED  # each number was finite, their sum is not

    def _trace(self, i: int) -> Trace:
        rows = slice(i * len(self.seeds), (i + 1) * len(self.seeds))
        lanes = self.lanes[rows]
        return Trace(
            seeds=self.seeds,
            total_reward=lanes["total_reward"].copy(),
            total_bonus=lanes["total_bonus"].copy(),
            steps=lanes["steps"].copy(),
            visits=self.visits[rows],
            first_visit=self.first_visit[rows],
            episode_steps=self.episode_steps[rows],
            truncated=lanes["truncated"].copy(),
            snapshots=self.snapshots[rows],
            reward_curve=self._curve(rows),
            settings=repr(self.settings[i]),
            stopped=np.where(lanes["over"] == STOPPED, lanes["steps"], -1),
            **self.kept(i, rows),
        )

    def _curve(self, rows: slice) -> NDArray[np.float32]:
        """The reward per step, or per episode, of each part of them [seeds, parts]."""
        earned = self.earned[rows]
        earned = np.where(np.isnan(earned), self.lanes["total_reward"][rows, None], earned)
        with np.errstate(over="ignore", invalid="ignore"):  # of lanes that stopped
            return np.asarray(np.diff(earned, axis=1, prepend=0.0) / self.part_sizes, np.float32)

    def paths(self, i: int) -> dict[int, Trajectory]:
        """The recorded steps of settings i, by seed."""
        paths = {}
        for row, seed in enumerate(self.seeds, start=i * len(self.seeds)):
            steps = self.steps[row, : self.lanes["steps"][row]]
            columns = (np.ascontiguousarray(steps[name]) for name in STEP.names or ())
            paths[int(seed)] = Trajectory(*columns)
        return paths


def run_recorded(
    request: Request, make: Callable[[NDArray[np.int64], Keep, bool], TableBatch[Settings]]
) -> list[Trace]:
    """Run all seeds of a request, and record the steps of those whose paths it keeps: a trace for each set of settings.

    make: the batch of some of the seeds, given by their numbers, with what it keeps and whether it records every step.
    """
    seeds, keep = request.seed_array, request.keep
    chosen = seed_numbers(seeds, keep.paths)
    whole = len(chosen) == len(seeds)
    batch = make(np.arange(len(seeds)), keep, whole)
    traces = batch.execute(request.session)
    if len(chosen) == 0:
        return traces
    if not whole:  # run the chosen seeds once more: a seed repeats itself, and the others need not be recorded
        batch = make(chosen, Keep(), True)
        batch.run_lanes(Session(request.session.threads))
    return [dataclasses.replace(trace, paths=batch.paths(i)) for i, trace in enumerate(traces)]


def seed_numbers(seeds: NDArray[np.int64], paths: Sequence[int]) -> NDArray[np.int64]:
    """Which of the seeds those of the paths are."""
    if not paths:
        return np.empty(0, np.int64)
    number = {int(seed): i for i, seed in enumerate(seeds)}
    chosen = seed_array(paths)
    for seed in chosen.tolist():
        if seed not in number:
            raise ValueError(f"Keep: seed {seed} of paths is not among the seeds of the run")
    return np.array([number[seed] for seed in chosen.tolist()])
