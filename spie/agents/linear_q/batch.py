"""Runs of linear Q-learning: many settings on many seeds, each pair of them a lane of the kernel."""

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Request
from spie.agents.linear_q.counting import Counted
from spie.agents.linear_q.kernel import (
    FIXED,
    HELPERS,
    LANE,
    VECTOR_CODE,
    Deferred,
    Episodes,
    Vectors,
    World,
    linear_q_kernel,
)  # fmt: skip
from spie.engine.lanes import aligned_zeros, check_memory, random_streams, run_chunks
from spie.engine.specialise import Kernel, specialise
from spie.errors import unknown
from spie.features import FourierFeatures
from spie.rewards import FEATURE_QUANTITIES, get_reward
from spie.tasks.base import check_kind
from spie.tasks.continuous import ContinuousTask
from spie.trace import EpisodeTrace

if TYPE_CHECKING:
    from spie.agents.linear_q.settings import LinearQ

EPISODES = 1000  # of a run, unless told otherwise: the paper's


def run_batch(settings: "Sequence[LinearQ]", request: Request) -> list[EpisodeTrace]:
    """Run each of `settings` on each seed: one EpisodeTrace for each set of settings, in their order."""
    task, steps, session = request.task, request.steps, request.session
    check_kind(task, "continuous", "LinearQ")
    request.refuse("LinearQ", "replay", "keep.snapshots", "keep.paths")
    episodes = EPISODES if request.episodes is None else request.episodes
    for name, value in (("steps", steps), ("episodes", episodes)):
        if not (isinstance(value, int | np.integer) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1, not {value}")
    kept, all_seeds = set(request.keep.matrices), request.seed_array
    for name in kept - {"Q", "Psi", "Xi"}:
        raise unknown("matrix to keep", name, ("Q", "Psi", "Xi"))
    order = sorted(range(len(settings)), key=lambda i: repr(_kind(settings[i])))
    groups = [
        LinearBatch([settings[i] for i in members], task, steps, all_seeds, episodes, kept)
        for members in (list(group) for _, group in itertools.groupby(order, lambda i: _kind(settings[i])))
    ]
    run_chunks([chunk for group in groups for chunk in group.chunks()], session.threads, session.progress)
    traces = [trace for group in groups for trace in group.traces()]
    return [traces[order.index(i)] for i in range(len(settings))]


def kernels(settings: "Sequence[LinearQ]", request: Request) -> list[Kernel]:
    """What has to be compiled before these settings run."""
    seeds, kept = request.seed_array[:1], set(request.keep.matrices)
    kinds = {_kind(s): s for s in settings}.values()
    return [LinearBatch([s], request.task, request.steps, seeds, 1, kept).kernel() for s in kinds]


def _kind(s: "LinearQ") -> tuple[Any, ...]:
    """What settings must share to run in one call of a kernel; the rest are numbers of the lane."""
    ways = s.count, s.standardised, s.potential, s.optimism > 0, s.episodic
    return s.reward, s.sf_target, s.dimension, s.cells, s.tie_tolerance, s.precision, *ways


class LinearBatch:
    """The lanes of settings of one kind, and what they leave."""

    def __init__(
        self,
        settings: "Sequence[LinearQ]",
        task: ContinuousTask,
        cap: int,
        seeds: NDArray[np.int64],
        episodes: int,
        keep: set[str],
    ) -> None:
        self.settings, self.task, self.cap, self.seeds, self.keep = settings, task, cap, seeds, keep
        n, A, d = len(settings) * len(seeds), task.n_actions, settings[0].dimension
        self.dtype = np.dtype(settings[0].precision)
        vector = 64 // self.dtype.itemsize
        self.D = D = -(-d // vector) * vector
        self.has_matrices = bool(keep & {"Psi", "Xi"})
        sizes = {"Q": A * D if "Q" in keep else 0, "A": (A + 1) * D * D if self.has_matrices else 0}
        needed = 8.0 * (n * (4 * episodes + sum(sizes.values())) + (A + 1) * D * D)
        in_cells = settings[0].count == "cells" and "visits_next" in get_reward(settings[0].reward).needs
        cells = settings[0].cells ** len(task.low) if in_cells else 0
        cure = "ask for fewer seeds or features at once, or for less of each"
        check_memory(needed + 8.0 * cells, f"{n:,} runs on {d:,} features", cure)
        self.n_cells = cells
        self.lengths = np.zeros((n, episodes), np.int32)
        self.rewards, self.bonuses = np.zeros((2, n, episodes))
        self.terminated = np.zeros((n, episodes), np.bool_)
        self.finals = [np.zeros((n if size else 0, size)) for size in sizes.values()]
        self.lanes = np.zeros(n, LANE)
        self.lanes["stopped"] = -1
        self.frequencies: list[NDArray[np.float64]] = []
        self.phases: list[NDArray[np.float64]] = []
        self._fill_lanes()

    def _fill_lanes(self) -> None:
        """Settings, random stream and features of each lane; lanes of the same features share them."""
        key, stride = random_streams(self.seeds)
        known: dict[Any, int] = {}
        for i, s in enumerate(self.settings):
            lanes = self.lanes[i * len(self.seeds) : (i + 1) * len(self.seeds)]
            for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "optimism"):
                lanes[name] = getattr(s, name)
            lanes["epsilon"] = round(s.epsilon * 2**32)
            # Of step t, from 1, counted over all episodes and with one more between two of them, word 8t draws the
            # next action; before the first step and in between, 8t + 1 + i draws number i of the start
            lanes["word"], lanes["stride"] = key, stride
            for lane, seed in zip(lanes, self.seeds, strict=True):
                own = seed if s.features_seed is None else s.features_seed
                lane["features"] = known.setdefault((s.length_scale, int(own)), len(known))
                if len(known) > len(self.phases):
                    self._add_features(s.features(self.task, int(seed)))

    def _add_features(self, features: FourierFeatures) -> None:
        """Frequencies and phases in turns, of the observation as it comes; padded by what gives zeros."""
        frequency, phase = np.zeros((len(features.low), self.D)), np.full(self.D, 0.25)
        turns = features.W / (2 * np.pi * (features.high - features.low))
        frequency[:, : features.dimension] = turns.T
        phase[: features.dimension] = features.b / (2 * np.pi) - turns @ features.low
        self.frequencies.append(frequency)
        self.phases.append(phase)

    def chunks(self) -> list[tuple[Callable[[slice], None], slice]]:
        """A call of the kernel for each lane."""
        kernel, own = self.kernel(), threading.local()

        def run(part: slice) -> None:
            if not hasattr(own, "vectors"):  # once per thread
                own.vectors, own.matrices, own.counted = self._room()
            vectors, matrices, counted = own.vectors, own.matrices, own.counted
            for array in (vectors.w, vectors.visits, matrices.A, matrices.waiting, *counted):
                array.fill(0)
            for start in (counted.Lambda, counted.G, *matrices.A.reshape(-1, self.D**2)[self.task.n_actions + 1 :]):
                start[:: self.D + 1] = 1  # the identity
            lane = part.start
            kernel(
                self.lanes[part],
                self.cap,
                self.lengths.shape[1],
                self.settings[0].tie_tolerance,
                self._world(lane),
                vectors,
                matrices,
                counted,
                Episodes(*(array[lane] for array in (self.lengths, self.rewards, self.bonuses, self.terminated))),
                self.has_matrices,
            )
            for final, array in zip(self.finals, (vectors.w, matrices.A), strict=True):
                final[lane : lane + 1] = array[: final.shape[1]]

        return [(run, slice(i, i + 1)) for i in range(len(self.lanes))]

    def kernel(self) -> Kernel:
        """The code that the lanes run."""
        s, task, A = self.settings[0], self.task, self.task.n_actions
        reward = get_reward(s.reward)
        constants = {
            "ACTIONS": A,
            "Q_WIDTH": A,
            "ALL_ACTIONS": np.uint64(2**A - 1),
            "HAS_PSI": "psi_norm" in reward.needs or "Psi" in self.keep,
            "HAS_XI": "xi_norm_next" in reward.needs or "Xi" in self.keep,
            "HAS_PHI_NORM": "phi_norm_next" in reward.needs,
            "HAS_VISITS": "visits_next" in reward.needs and s.count == "cells",
            "HAS_ELLIPSE": s.count == "features",
            "STANDARDISED": s.standardised,
            "HAS_POTENTIAL": s.potential,
            "OPTIMISTIC": s.optimism > 0,
            "EPISODIC": s.episodic,
            "SINGLE": s.precision == "float32",
            "GREEDY": s.sf_target == "greedy",
            **FIXED,
        }
        functions: dict[str, Callable[..., Any]] = {"step": task.step, "observe": task.observe}
        return specialise(linear_q_kernel, HELPERS, constants, VECTOR_CODE, reward, FEATURE_QUANTITIES, functions)

    def _room(self) -> tuple[Vectors, Deferred, Counted]:
        """Room for what a lane has in hand."""
        from spie.engine.matrix import WAITING  # imports Numba

        task, D, A, s = self.task, self.D, self.task.n_actions, self.settings[0]
        x, observation, q, q_next = map(np.zeros, (len(task.start_low), len(task.low), A, A))
        turns = aligned_zeros(D)
        large = [aligned_zeros(n, dtype=self.dtype) for n in (D, D, D, D, D, D, D, A * D)]
        vectors = Vectors._make([x, observation, turns, q, q_next, *large, np.zeros(self.n_cells, np.int64)])
        counts, potential, optimistic = s.count == "features", s.potential, s.optimism > 0
        n = A + 1 + (1 + A if optimistic else int(counts))
        square, u, p = (aligned_zeros(n * size, dtype=self.dtype) for size in (D * D, WAITING * D, WAITING * D))
        squares = (counts, potential, counts or potential)
        of_counts = [aligned_zeros(D * D if is_needed else 0) for is_needed in squares]
        counted = Counted._make([*of_counts, *map(aligned_zeros, (D, D, D, D, D)), np.zeros(A)])
        return vectors, Deferred(square, u, p, np.zeros(n, np.int64)), counted

    def _world(self, lane: int) -> World:
        task, cells, features = self.task, self.settings[0].cells, self.lanes["features"][lane]
        low, high, start_low, start_high = (
            np.array(b, np.float64) for b in (task.low, task.high, task.start_low, task.start_high)
        )
        width = start_high - start_low
        return World(
            start_low, width, low, cells / (high - low), cells, self.frequencies[features], self.phases[features]
        )

    def traces(self) -> list[EpisodeTrace]:
        A, d, D, n = self.task.n_actions, self.settings[0].dimension, self.D, len(self.seeds)
        traces = []
        for i, s in enumerate(self.settings):
            rows = slice(i * n, (i + 1) * n)
            kept: dict[str, Any] = {}
            if "Q" in self.keep:
                kept["Q"] = self.finals[0][rows].reshape(n, A, D)[:, :, :d].copy()
            if self.has_matrices:
                matrices = self.finals[1][rows].reshape(n, A + 1, D, D)[:, :, :d, :d]
                every = {"Psi": matrices[:, :A], "Xi": matrices[:, A]}
                kept |= {name: every[name].copy() for name in self.keep - {"Q"}}
            traces.append(
                EpisodeTrace(
                    settings=repr(s),
                    seeds=self.seeds,
                    episode_steps=self.lengths[rows],
                    episode_rewards=self.rewards[rows],
                    episode_bonuses=self.bonuses[rows],
                    terminated=self.terminated[rows],
                    stopped=self.lanes["stopped"][rows].copy(),
                    **kept,
                )
            )
        return traces
