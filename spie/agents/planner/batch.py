"""Runs of the planner: many settings on many seeds, each pair of them a lane of the kernel."""

import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep, Replay, Seeds, Session, pr_rates
from spie.agents.planner.kernel import (
    COST_NUMBERS,
    COUNT_COLUMN,
    FIXED,
    HELPERS,
    KINDS,
    LANE,
    NO_COST,
    NUMBERS,
    PR_COLUMN,
    SR_COLUMN,
    VECTOR_CODE,
    Model,
    planner_kernel,
)
from spie.engine import simulator
from spie.engine.lanes import aligned_zeros, check_memory, random_streams, run_chunks, seed_array
from spie.engine.simulator import STEP, STOPPED, LaneRecords
from spie.engine.specialise import specialise
from spie.errors import unknown
from spie.rewards import get_reward
from spie.tasks.base import check_kind
from spie.tasks.mdp import MDP
from spie.trace import Trace, Trajectory

if TYPE_CHECKING:
    from spie.agents.planner.settings import Planner

COSTS = {"none": NO_COST, "sr-column": SR_COLUMN, "pr-column": PR_COLUMN, "count": COUNT_COLUMN}
MATRICES = ("Q",)


def run_planner(
    settings: "Sequence[Planner]",
    task: MDP,
    steps: int,
    seeds: Seeds = 1,
    *,
    episodes: int | None = None,
    keep: Keep = Keep(),
    replay: Replay | None = None,
    session: Session = Session(),
) -> list[Trace]:
    """Run each of `settings` on each seed: one Trace per settings, in their order; arguments as for `run_sarsa`.

    The bonus of a step is the chance, as the planner saw it, that its outcome was one not seen before. Of matrices it
    keeps "Q", its optimistic values; a state that was never left has the most that it hopes for.
    """
    check_kind(task, "table", "Planner")
    all_seeds = seed_array(seeds)
    chosen = seed_array(keep.paths) if keep.paths else np.empty(0, np.int64)
    for seed in chosen[~np.isin(chosen, all_seeds)]:
        raise ValueError(f"Keep: seed {seed} of paths is not among the seeds of the run")
    actions = None if replay is None else replay.actions
    whole = len(chosen) == len(all_seeds)
    batch = PlannerBatch(settings, task, (steps, episodes), all_seeds, keep, actions, recorded=whole)
    traces = batch.execute(session)
    if len(chosen):
        if not whole:  # run the chosen seeds once more: a seed repeats itself, and the others need not be recorded
            if actions is not None and actions.ndim == 2:
                actions = actions[[list(all_seeds).index(seed) for seed in chosen]]
            batch = PlannerBatch(settings, task, (steps, episodes), chosen, Keep(), actions, recorded=True)
            batch.run_lanes(Session(session.threads))
        traces = [dataclasses.replace(trace, paths=batch.paths(i)) for i, trace in enumerate(traces)]
    return traces


def new_model(available: NDArray[np.uint64], A: int, pool: int, cost: int) -> Model:
    """Room for what a planner learns of a world; pool: the most outcomes in all."""
    S = len(available)
    W = -(-S // 8) * 8
    whole, real, no_yes = np.int64, np.float64, np.bool_
    shapes: dict[str, Any] = {
        **dict.fromkeys(("tries", "known", "first_outcome"), (S * A, whole)),
        **dict.fromkeys(("left", "first_entry", "queue"), (S, whole)),
        **dict.fromkeys(("ends", "queued"), (S, no_yes)),
        **dict.fromkeys(
            ("next_outcome", "next_entry", "outcome_pair", "outcome_state", "outcome_count"), (pool, whole)
        ),
        "outcome_reward": (pool, real),
        **dict.fromkeys(("new_by_action", "sum_by_action"), (A * KINDS, real)),
        **dict.fromkeys(("new_by_state", "sum_by_state"), (S * KINDS, real)),
        "V": (S, real),
    }
    arrays = {name: np.zeros(*shape) for name, shape in shapes.items()}
    has_M = cost == SR_COLUMN
    vectors = {"Q": aligned_zeros(S * A), "column": aligned_zeros(W), "M": aligned_zeros(S * W * has_M)}
    return Model(available=available, **arrays, **vectors)


def compiled(
    kernel: Callable[..., Any], helpers: Sequence[Callable[..., Any]], A: int, **more: Any
) -> Callable[..., Any]:
    """A kernel around `choose` and `learn`; it depends on nothing but the number of actions, and `more` constants."""
    constants = {"ACTIONS": A, "Q_WIDTH": A, **FIXED, **more}
    return specialise(kernel, helpers, constants, VECTOR_CODE, get_reward("none"))


def lane_numbers(lanes: NDArray[Any], s: "Planner") -> None:
    """Write the settings into lanes."""
    for name in (*NUMBERS, *COST_NUMBERS[:3], "backups"):
        lanes[name] = vars(s)[name]
    lanes["eta_pr"], lanes["gamma_pr"] = pr_rates(s)
    lanes["epsilon"] = round(s.epsilon * 2**32)
    lanes["cost"] = COSTS[s.cost]


class PlannerBatch:
    """The lanes of one call, settings x seeds on one MDP, and what they leave."""

    def __init__(
        self,
        settings: "Sequence[Planner]",
        mdp: MDP,
        length: tuple[int, int | None],
        seeds: NDArray[np.int64],
        keep: Keep,
        replay: NDArray[Any] | None,
        recorded: bool,
    ) -> None:
        if mdp.n_actions > 64:
            raise ValueError(f"{mdp.name} has {mdp.n_actions} actions; the engine takes at most 64")
        for name in keep.matrices:
            if name not in MATRICES:
                raise unknown("matrix of Planner to keep", name, MATRICES)
        self.settings, self.mdp, self.seeds, self.recorded = settings, mdp, seeds, recorded
        self.horizon, self.cap, self.episodes = simulator.run_length(*length)
        self.snapshot_steps = simulator.snapshot_array(keep.snapshots, self.horizon)
        self.replay = None if replay is None else simulator.replay_array(replay, seeds, self.horizon, mdp.n_actions)
        self.dynamics = simulator.dynamics(mdp)
        self.kept = "Q" in keep.matrices
        self._allocate()

    def _allocate(self) -> None:
        """What the lanes leave, and their numbers."""
        S, A, n = self.mdp.n_states, self.mdp.n_actions, len(self.settings) * len(self.seeds)
        T, shots = self.horizon if self.recorded else 0, len(self.snapshot_steps)
        needed = n * (LANE.itemsize + 8 * S + 4 * S * shots + STEP.itemsize * T + 8 * S * A * self.kept)
        check_memory(needed, f"{n:,} runs on {S:,} states", "ask for fewer seeds at once, or for less of each")
        self.visits = np.zeros((n, S), np.int32)
        self.first_visit = np.full((n, S), -1, np.int32)
        self.episode_steps = np.zeros((n, max(0, self.episodes)), np.int32)
        self.snapshots = np.zeros((n, shots, S), np.int32)
        self.finals = np.zeros((n, S * A if self.kept else 0))
        self.steps = np.zeros((n, T), STEP)
        self.refused = np.zeros((n, 2), np.int32)
        self.lanes = np.zeros(n, LANE)
        key, stride = random_streams(self.seeds)
        for i, s in enumerate(self.settings):
            lanes = self.lanes[i * len(self.seeds) : (i + 1) * len(self.seeds)]
            lane_numbers(lanes, s)
            lanes["word"] = key + np.uint64(4) * stride
            lanes["stride"] = stride

    def execute(self, session: Session) -> list[Trace]:
        """Run all lanes: a trace for each settings."""
        self.run_lanes(session)
        self._check_replay()
        finite = np.isfinite(self.lanes["total_reward"])
        self.lanes["over"][~finite] = STOPPED  # each number was finite, their sum is not
        n = len(self.seeds)
        return [self._trace(s, slice(i * n, (i + 1) * n)) for i, s in enumerate(self.settings)]

    def run_lanes(self, session: Session) -> None:
        n = len(self.seeds)
        chunks: list[tuple[Callable[[slice], None], slice]] = []
        for i, s in enumerate(self.settings):
            run = self._prepare(COSTS[s.cost])
            seconds = self.horizon * s.seconds_per_step(self.mdp)  # of a lane, at most
            size = max(1, min(int(0.2 / seconds), n // 4))  # often enough for progress and Ctrl-C
            chunks += [(run, slice(j, min(j + size, (i + 1) * n))) for j in range(i * n, (i + 1) * n, size)]
        run_chunks(chunks, session.threads, session.progress)

    @functools.cache  # noqa: B019 (a batch lives as long as its call)
    def _prepare(self, cost: int) -> Callable[[slice], None]:
        """A function that runs a slice of lanes with one kind of cost."""
        mdp = self.mdp
        S, A = mdp.n_states, mdp.n_actions
        check_memory(8.0 * S * S * (cost == SR_COLUMN), f"{mdp.name}: M of {S:,} states", 'use cost="pr-column"')
        kernel = compiled(planner_kernel, HELPERS, A)
        pool = S * A * mdp.n_successors  # a replayed action that is not available leads nowhere, which is an outcome
        own = threading.local()

        def run(part: slice) -> None:
            if not hasattr(own, "model"):  # once per thread
                own.model = new_model(self.dynamics.available, A, pool, cost)
            length = (self.horizon, self.cap, self.episodes)
            finals = self.finals[part].reshape(-1)
            kernel(self.lanes[part], *length, self.dynamics, own.model, self._records(part), finals)

        return run

    def _records(self, part: slice) -> LaneRecords:
        """What a slice of lanes leaves, as the kernel writes it."""
        arrays = (self.visits, self.first_visit, self.episode_steps, self.snapshots, self.steps)
        replay = np.zeros(0, np.int32)
        if self.replay is not None:
            replay = self.replay[np.arange(part.start, part.stop) % len(self.seeds)]
        flat = [array[part].reshape(-1) for array in arrays]
        return LaneRecords._make([*flat, replay.reshape(-1), self.refused[part].reshape(-1), self.snapshot_steps])

    def _check_replay(self) -> None:
        for lane in np.flatnonzero(self.refused[:, 0])[:1]:
            assert self.replay is not None
            seed, (step, s) = lane % len(self.seeds), self.refused[lane]
            offer = ", ".join(map(str, np.flatnonzero(self.mdp.available[s])))
            raise ValueError(
                f"replay: action {self.replay[seed, step - 1]} at step {step} of seed {self.seeds[seed]} is not "
                f"available in state {s}; available: {offer}"
            )

    def _trace(self, s: "Planner", rows: slice) -> Trace:
        lanes = self.lanes[rows]
        shape = (len(self.seeds), self.mdp.n_states, self.mdp.n_actions)
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
            Q=self.finals[rows].reshape(shape) if self.kept else None,
            settings=repr(s),
            stopped=np.where(lanes["over"] == STOPPED, lanes["steps"], -1),
        )

    def paths(self, i: int) -> dict[int, Trajectory]:
        """The recorded steps of settings i, by seed."""
        paths = {}
        for row, seed in enumerate(self.seeds, start=i * len(self.seeds)):
            steps = self.steps[row, : self.lanes["steps"][row]]
            columns = (np.ascontiguousarray(steps[name]) for name in STEP.names or ())
            paths[int(seed)] = Trajectory(*columns)
        return paths
