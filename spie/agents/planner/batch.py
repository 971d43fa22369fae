"""Runs of the planner: many settings on many seeds, each pair of them a lane of the kernel."""

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep, Request, Session, pr_rates
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
from spie.agents.tables import TableBatch, run_recorded
from spie.engine import simulator
from spie.engine.lanes import aligned_zeros, check_memory, run_chunks
from spie.engine.simulator import LaneRecords
from spie.engine.specialise import Kernel, specialise
from spie.rewards import get_reward
from spie.tasks.base import check_kind
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.planner.settings import Planner

COSTS = {"none": NO_COST, "sr-column": SR_COLUMN, "pr-column": PR_COLUMN, "count": COUNT_COLUMN}


def run_batch(settings: "Sequence[Planner]", request: Request) -> list[Trace]:
    """Run each of `settings` on each seed: one Trace for each set of settings, in their order."""
    task, replay = request.task, request.replay
    check_kind(task, "table", "Planner")
    seeds = request.seed_array

    def make(rows: NDArray[np.int64], keep: Keep, recorded: bool) -> PlannerBatch:
        batch = PlannerBatch(settings, task, request.steps, seeds[rows], request.episodes, keep, recorded)
        if replay is not None:
            batch.replay = simulator.replay_array(replay.actions, seeds, batch.horizon, task.n_actions)[rows]
        return batch

    return run_recorded(request, make)


OF_OUTCOMES = (
    "next_outcome", "next_entry", "outcome_pair", "outcome_state", "outcome_count", "outcome_reward",
)  # fmt: skip


def new_model(available: NDArray[np.uint64], A: int, pool: int, cost: int) -> Model:
    """Room for what a planner learns of a world; pool: the most outcomes in all."""
    S = len(available)
    W = -(-S // 8) * 8
    whole, real, no_yes = np.int64, np.float64, np.bool_
    shapes: dict[str, Any] = {
        **dict.fromkeys(("tries", "known", "first_outcome"), (S * A, whole)),
        **dict.fromkeys(("left", "first_entry", "queue"), (S, whole)),
        **dict.fromkeys(("ends", "queued"), (S, no_yes)),
        **dict.fromkeys(OF_OUTCOMES, (pool, whole)),
        "outcome_reward": (pool, real),
        **dict.fromkeys(("new_by_action", "sum_by_action"), (A * KINDS, real)),
        **dict.fromkeys(("new_by_state", "sum_by_state"), (S * KINDS, real)),
        "own_sum": (S * A, real),
        "V": (S, real),
    }
    arrays = {name: np.zeros(*shape) for name, shape in shapes.items()}
    has_M = cost == SR_COLUMN
    vectors = {"Q": aligned_zeros(S * A), "column": aligned_zeros(W), "M": aligned_zeros(S * W * has_M)}
    return Model(available=available, **arrays, **vectors)


def compiled(kernel: Callable[..., Any], helpers: Sequence[Callable[..., Any]], A: int, **more: Any) -> Kernel:
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


class PlannerBatch(TableBatch["Planner"]):
    """The lanes of one call of the planner."""

    LANE, MATRICES = LANE, ("Q",)
    replay: NDArray[np.int32] | None = None  # the actions to take [seeds, steps]

    def fill(self, lanes: NDArray[Any], s: "Planner") -> None:
        lane_numbers(lanes, s)

    @functools.cached_property
    def dynamics(self) -> simulator.FlatMDP:
        return simulator.dynamics(self.mdp)

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
            finals = self.finals["Q"][part].reshape(-1)
            kernel(self.lanes[part], *length, self.dynamics, own.model, self._records(part), finals)

        return run

    def _records(self, part: slice) -> LaneRecords:
        """What a slice of lanes leaves, as the kernel writes it."""
        arrays = (self.visits, self.first_visit, self.episode_steps, self.snapshots, self.steps, self.earned)
        replay = np.zeros(0, np.int32)
        if self.replay is not None:
            replay = self.replay[np.arange(part.start, part.stop) % len(self.seeds)]
        flat = [array[part].reshape(-1) for array in arrays]
        return LaneRecords._make([*flat, replay.reshape(-1), self.refused[part].reshape(-1), self.snapshot_steps])

    def replayed(self, lane: int, step: int) -> int:
        assert self.replay is not None
        return int(self.replay[lane % len(self.seeds), step - 1])
