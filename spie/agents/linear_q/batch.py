"""Q-learning on random Fourier features with an intrinsic reward from successor and predecessor features (Figure 4).

`linear_q_kernel` is the algorithm; `LinearQ` holds the settings; `run_linear_q` runs many settings on many seeds. The
shape is that of sarsa.py: one run of one settings and one seed is a lane, names in capitals are filled in before the
kernel is compiled.

Nearly all work is in the matrices Psi[a] and Xi. Each step needs one product with each, psi(s', a') and xi(s'), and
changes each by a rank-one term. Two things save most of it. What was computed for the target is, up to the step's own
change, what the next step needs: no product is done twice. And a change waits until WAITING of them are made in one
pass over the matrix, together with a product: until then a product adds them as vectors.
"""

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, no_type_check

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Keep, Range, Replay, Seeds, Session, refuse
from spie.agents.sarsa.batch import FIRST_TIE, HALF, LOW_HALF, MASKED, _inside, epsilon_greedy, greedy_actions
from spie.engine.lanes import aligned_zeros, check_memory, mix, random_streams, run_chunks, seed_array
from spie.engine.specialise import specialise
from spie.errors import unknown
from spie.features import FourierFeatures, fourier_features
from spie.rewards import FEATURE_QUANTITIES, get_reward
from spie.tasks.base import Kind, check_kind
from spie.tasks.continuous import ContinuousTask
from spie.trace import EpisodeTrace

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.matrix import WAITING, add_scaled, copy, cosines, dot, norm_1, product, update_product

    def intrinsic_reward(*quantities: float) -> float: ...
    def step(x: Any, a: int) -> tuple[float, bool]: ...
    def observe(x: Any, observation: Any) -> None: ...


# What follows are a kernel's constants.
ACTIONS = 1
ALL_ACTIONS = np.uint64(1)
HAS_PSI = HAS_XI = HAS_PHI_NORM = HAS_VISITS = False  # what the reward, or the caller, asks for
GREEDY = False  # psi looks ahead through the best next action, else through the one that is taken
TO_UNIT = 2.0**-53

EPISODES = 1000  # of a run, unless told otherwise: the paper's

LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta")]
    + [("epsilon", np.uint64), ("word", np.uint64), ("stride", np.uint64), ("steps", np.int64), ("stopped", np.int64)]
    + [("features", np.int64), ("episodes", np.int64)],
    align=True,
)


@no_type_check
def featurise(phi, observation, frequency, phase, D):
    """phi(s), of length 1; what pads it stays zero because its phase is a quarter turn and its frequency zero."""
    for i in range(D):
        phi[i] = phase[i]
    for k in range(len(observation)):
        x = observation[k]
        for i in range(D):
            phi[i] += frequency[k, i] * x
    cosines(phi, 0, D)
    scale = 1.0 / math.sqrt(dot(phi, 0, phi, 0, D))
    for i in range(D):
        phi[i] *= scale


@no_type_check
def times(y, matrix, A, x, u, p, waiting, D):
    """y = A[matrix] x, the changes that wait for that matrix included; once there are enough, they are made."""
    at = matrix * D * D
    first = matrix * WAITING * D
    if waiting[matrix] == WAITING:
        update_product(y, 0, A, at, x, 0, u, first, p, first, D)
        waiting[matrix] = 0
    else:
        product(y, 0, A, at, x, 0, u, first, p, first, D)
        for k in range(first, first + waiting[matrix] * D, D):
            add_scaled(y, 0, dot(p, k, x, 0, D), u, k, D)


@no_type_check
def add_outer(matrix, change, x, A, u, p, waiting, unused, D):
    """A[matrix] += change x^T, as a change that waits."""
    if waiting[matrix] == WAITING:
        times(unused, matrix, A, x, u, p, waiting, D)
    at = (matrix * WAITING + waiting[matrix]) * D
    copy(u, at, change, 0, D)
    copy(p, at, x, 0, D)
    waiting[matrix] += 1


@no_type_check
def begin_episode(x, lane, start_low, start_width):
    """A start, uniform in its box."""
    for i in range(len(x)):
        word = mix(lane.word + np.uint64(i + 1) * lane.stride)
        x[i] = start_low[i] + np.float64(word >> np.uint64(11)) * TO_UNIT * start_width[i]


@no_type_check
def cell_of(observation, low, cells_per_unit, cells):
    """The cell of a grid over the space in which an observation lies; those outside count to the nearest."""
    cell = 0
    for k in range(len(observation)):
        cell = cell * cells + np.int64(min(max((observation[k] - low[k]) * cells_per_unit[k], 0.0), cells - 1.0))
    return cell


@no_type_check
def linear_q_kernel(lanes, cap, episodes, tie_tolerance, task, features, scratch, matrices, results, kept):
    """Q-learning with an intrinsic reward on one lane; w, A, waiting and visits start at zero."""
    start_low, start_width, low, cells_per_unit, cells = task
    frequency, phase = features
    x, observation, q, q_next, phi, phi_next, psi, psi_next, xi, xi_next, change, w, visits = scratch
    A, u, p, waiting = matrices  # A is Psi[0] ... Psi[ACTIONS - 1] and Xi
    lengths, rewards, bonuses, terminated = results
    lane = lanes[0]
    D, XI = len(phi), ACTIONS
    psi_norm = xi_norm_next = phi_norm_next = visits_next = 0.0

    for episode in range(episodes):
        # s = env.reset(); a ~ epsilon-greedy
        begin_episode(x, lane, start_low, start_width)
        observe(x, observation)
        featurise(phi, observation, frequency, phase, D)
        if HAS_VISITS:
            visits[cell_of(observation, low, cells_per_unit, cells)] += 1
        for b in range(ACTIONS):
            q[b] = dot(w, b * D, phi, 0, D)
        greedy = greedy_actions(q, np.uint64(0), ALL_ACTIONS, tie_tolerance)
        a = epsilon_greedy(mix(lane.word), lane.epsilon, greedy, ALL_ACTIONS)
        if HAS_PSI:
            times(psi, a, A, phi, u, p, waiting, D)
        if HAS_XI:
            times(xi, XI, A, phi, u, p, waiting, D)
        length, total_reward, total_bonus, done = 0, 0.0, 0.0, False

        while not done and length < cap:
            # s', r, done = env.step(a)
            r, done = step(x, a)
            observe(x, observation)
            featurise(phi_next, observation, frequency, phase, D)
            length += 1
            lane.steps += 1
            lane.word += np.uint64(8) * lane.stride
            discount = 0.0 if done else 1.0

            # a' ~ epsilon-greedy on Q(s', .)
            best = -np.inf
            for b in range(ACTIONS):
                q_next[b] = dot(w, b * D, phi_next, 0, D)
                best = max(best, q_next[b])
            greedy = greedy_actions(q_next, np.uint64(0), ALL_ACTIONS, tie_tolerance)
            word = mix(lane.word)
            a_next = epsilon_greedy(word, lane.epsilon, greedy, ALL_ACTIONS)
            overlap = dot(phi, 0, phi_next, 0, D)

            # Xi = Xi + eta_PF (phi(s') + gamma_PF xi(s) - xi(s')) phi(s')^T; as |phi| = 1, xi(s') changes alike
            if HAS_XI:
                times(xi_next, XI, A, phi_next, u, p, waiting, D)
                for i in range(D):
                    change[i] = lane.eta_pr * (phi_next[i] + lane.gamma_pr * xi[i] - xi_next[i])
                    xi[i] = xi_next[i] + change[i]
                add_outer(XI, change, phi_next, A, u, p, waiting, xi_next, D)
                xi_norm_next = norm_1(xi, 0, D)

            # Psi[a] = Psi[a] + eta (phi(s) + gamma_SF (1 - done) psi(s', a') - psi(s, a)) phi(s)^T
            if HAS_PSI:
                ahead = epsilon_greedy(word, np.uint64(0), greedy, ALL_ACTIONS) if GREEDY else a_next
                times(psi_next, ahead, A, phi_next, u, p, waiting, D)
                for i in range(D):
                    change[i] = lane.eta * (phi[i] + lane.gamma_sr * discount * psi_next[i] - psi[i])
                    psi[i] += change[i]
                psi_norm = norm_1(psi, 0, D)
                add_outer(a, change, phi, A, u, p, waiting, psi, D)
                if ahead != a_next:
                    times(psi, a_next, A, phi_next, u, p, waiting, D)
                else:  # psi(s', a') is known, but for the change just made
                    copy(psi, 0, psi_next, 0, D)
                    if a_next == a:
                        add_scaled(psi, 0, overlap, change, 0, D)

            # r = r + beta r_int
            if HAS_PHI_NORM:
                phi_norm_next = norm_1(phi_next, 0, D)
            if HAS_VISITS:
                cell = cell_of(observation, low, cells_per_unit, cells)
                visits[cell] += 1
                visits_next = np.float64(visits[cell])
            bonus = intrinsic_reward(psi_norm, xi_norm_next, phi_norm_next, visits_next)

            # w[a] = w[a] + alpha (r + gamma (1 - done) max Q(s', .) - Q(s, a)) phi(s)
            error = r + lane.beta * bonus + lane.gamma * discount * best - q[a]
            if not np.isfinite(error):
                lane.stopped = lane.steps
                break
            add_scaled(w, a * D, lane.alpha * error, phi, 0, D)
            q_next[a] += lane.alpha * error * overlap
            total_reward += r
            total_bonus += bonus

            # s = s'; a = a'
            copy(phi, 0, phi_next, 0, D)
            for b in range(ACTIONS):
                q[b] = q_next[b]
            a = a_next

        if lane.stopped >= 0:
            break
        lengths[episode] = length
        rewards[episode] = total_reward
        bonuses[episode] = total_bonus
        terminated[episode] = done
        lane.word += np.uint64(8) * lane.stride

    if kept:
        for i in range(D):
            change[i] = 0.0
        for matrix in range(ACTIONS + 1):
            while waiting[matrix] < WAITING:  # changes by nothing, so that all are made
                add_outer(matrix, change, phi, A, u, p, waiting, psi, D)
            times(psi, matrix, A, phi, u, p, waiting, D)


_HELPERS = (
    mix, epsilon_greedy, greedy_actions, featurise, times, add_outer, begin_episode, cell_of,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LinearQ(Agent):
    """Settings of a Q-learning agent on random Fourier features. The defaults are the paper's for MountainCar.

    A negative `beta` pays the intrinsic reward with the other sign.
    """

    kind: ClassVar[Kind] = "continuous"

    reward: str = "sf-pf"
    alpha: float = 0.1  # learning rate of Q
    eta: float = 0.2  # learning rate of the SF
    eta_pr: float = 0.2  # learning rate of the PF
    gamma: float = 0.99  # discount of Q
    gamma_sr: float = 0.95  # discount of the SF
    gamma_pr: float = 0.95  # discount of the PF
    beta: float = 1000.0  # scale of the intrinsic reward
    epsilon: float = 0.3  # chance of an action at random
    dimension: int = 128  # of the features
    length_scale: float = 0.2  # of the features, as a fraction of the space's width
    features_seed: int | None = None  # None: every seed draws features of its own
    sf_target: Literal["sarsa", "greedy"] = "sarsa"  # psi looks ahead through the action taken next or the best one
    cells: int = 20  # along each axis, in which visits are counted
    tie_tolerance: float = 1e-9  # relative difference below which values count as equal

    def __post_init__(self) -> None:
        get_reward(self.reward, on="features")
        rate, unit, real = "[0, inf)", "[0, 1]", "(-inf, inf)"
        for name, interval in {
            "alpha": rate,
            "eta": rate,
            "eta_pr": rate,
            "gamma": unit,
            "gamma_sr": "[0, 1)",
            "gamma_pr": "[0, 1)",
            "beta": real,
            "epsilon": unit,
            "length_scale": "(0, inf)",
            "dimension": "[1, 10000]",
            "cells": "[1, 10000]",
            "tie_tolerance": "[0, 1)",
        }.items():
            if not _inside(getattr(self, name), interval):
                raise ValueError(f"LinearQ: {name} must lie in {interval}, not {getattr(self, name)}")
        for name in ("dimension", "cells"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise ValueError(f"LinearQ: {name} must be a whole number, not {getattr(self, name)}")
        if self.sf_target not in ("sarsa", "greedy"):
            raise unknown("sf_target for LinearQ", self.sf_target, ("sarsa", "greedy"))

    def features(self, task: ContinuousTask, seed: int) -> FourierFeatures:
        """The features that a seed of this agent sees."""
        own = seed if self.features_seed is None else self.features_seed
        return fourier_features(task.space, self.dimension, self.length_scale, own)

    @classmethod
    def run_many(
        cls,
        settings: Sequence["LinearQ"],
        task: ContinuousTask,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        session: Session = Session(),
    ) -> list[EpisodeTrace]:
        """All settings side by side."""
        return run_linear_q(settings, task, steps, seeds, episodes=episodes, session=session)

    def tuning_ranges(self, task: ContinuousTask) -> dict[str, Range]:
        ranges = {"alpha": Range(0.001, 0.5, log=True), "epsilon": Range(0.01, 0.5, log=True)}
        ranges["length_scale"] = Range(0.05, 0.5, log=True)
        if self.reward != "none":
            ranges["beta"] = Range(1e-5, 1e3, log=True)
        for need, eta, gamma in (("psi_norm", "eta", "gamma_sr"), ("xi_norm_next", "eta_pr", "gamma_pr")):
            if need in get_reward(self.reward).needs:
                ranges |= {eta: Range(0.01, 1.0, log=True), gamma: Range(0.5, 0.99, log=False)}
        return ranges

    def seconds_per_step(self, task: ContinuousTask) -> float:
        """About how long a step takes on one core, compiled."""
        matrices = len({"psi_norm", "xi_norm_next"} & set(get_reward(self.reward).needs))
        return 3e-9 * self.dimension + 1.3e-10 * matrices * self.dimension**2

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,)

    def run(
        self,
        task: ContinuousTask,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> EpisodeTrace:
        """Run this agent on a continuous task, once per seed; arguments as for `run_linear_q`."""
        options: dict[str, Any] = {"episodes": episodes, "keep": keep, "replay": replay, "session": session}
        return run_linear_q([self], task, steps, seeds, **options)[0]


AGENTS: dict[str, dict[str, Any]] = {
    "linear-q": {"reward": "none"},
    "linear-q-sf": {"reward": "sf"},
    "linear-q-sf-pf": {"reward": "sf-pf"},
    "linear-q-constant": {"reward": "constant"},
    "linear-q-count": {"reward": "count"},
}


def run_linear_q(
    settings: Sequence[LinearQ],
    task: ContinuousTask,
    steps: int,
    seeds: Seeds = 1,
    *,
    episodes: int | None = None,
    keep: Keep = Keep(),
    replay: Replay | None = None,
    session: Session = Session(),
) -> list[EpisodeTrace]:
    """Run each of `settings` on each seed: one EpisodeTrace per settings, in their order.

    steps: the cap of each episode; where it is truncated, Q still bootstraps.
    seeds: a count n, meaning 0 ... n-1, or the seeds themselves. A seed gives the same run in any company.
    episodes: how many, by default 1000.
    keep: final values of "Q", "Psi", "Xi". Q is the weights w [A, d].
    session: threads (None: one per processor) and progress. Results do not depend on it.

    A lane whose numbers overflow stops there; `failures` of its trace names it, and the other lanes go on.
    """
    check_kind(task, "continuous", "LinearQ")
    refuse("LinearQ", replay=replay is not None, snapshots=keep.snapshots, paths=keep.paths)
    episodes = EPISODES if episodes is None else episodes
    for name, value in (("steps", steps), ("episodes", episodes)):
        if not (isinstance(value, int | np.integer) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1, not {value}")
    kept, all_seeds = set(keep.matrices), seed_array(seeds)
    for name in kept - {"Q", "Psi", "Xi"}:
        raise unknown("matrix to keep", name, ("Q", "Psi", "Xi"))
    order = sorted(range(len(settings)), key=lambda i: repr(_kind(settings[i])))
    groups = [
        _Group([settings[i] for i in members], task, steps, all_seeds, episodes, kept)
        for members in (list(group) for _, group in itertools.groupby(order, lambda i: _kind(settings[i])))
    ]
    run_chunks([chunk for group in groups for chunk in group.chunks()], session.threads, session.progress)
    traces = [trace for group in groups for trace in group.traces()]
    return [traces[order.index(i)] for i in range(len(settings))]


def _kind(s: LinearQ) -> tuple[Any, ...]:
    """What settings must share to run in one call of a kernel; the rest are numbers of the lane."""
    return s.reward, s.sf_target, s.dimension, s.cells, s.tie_tolerance


class _Group:
    """The lanes of settings of one kind, and what they leave."""

    def __init__(
        self,
        settings: Sequence[LinearQ],
        task: ContinuousTask,
        cap: int,
        seeds: NDArray[np.int64],
        episodes: int,
        keep: set[str],
    ) -> None:
        self.settings, self.task, self.cap, self.seeds, self.keep = settings, task, cap, seeds, keep
        n, A, d = len(settings) * len(seeds), task.n_actions, settings[0].dimension
        self.D = D = -(-d // 8) * 8
        self.has_matrices = bool(keep & {"Psi", "Xi"})
        sizes = {"Q": A * D if "Q" in keep else 0, "A": (A + 1) * D * D if self.has_matrices else 0}
        needed = 8.0 * (n * (4 * episodes + sum(sizes.values())) + (A + 1) * D * D)
        cells = settings[0].cells ** len(task.low) if "visits_next" in get_reward(settings[0].reward).needs else 0
        cure = "ask for fewer seeds or features at once, or for less of each"
        check_memory(needed + 8.0 * cells, f"{n:,} runs on {d:,} features", cure)
        self.n_cells = cells
        self.lengths = np.zeros((n, episodes), np.int32)
        self.rewards, self.bonuses = np.zeros((2, n, episodes))
        self.terminated = np.zeros((n, episodes), np.bool_)
        self.finals = [np.zeros((n if size else 0, size)) for size in sizes.values()]
        self.lanes = np.zeros(n, LANE)
        self.lanes["stopped"] = -1
        key, stride = random_streams(seeds)
        self.frequencies: list[NDArray[np.float64]] = []
        self.phases: list[NDArray[np.float64]] = []
        known: dict[Any, int] = {}
        for i, s in enumerate(settings):
            lanes = self.lanes[i * len(seeds) : (i + 1) * len(seeds)]
            for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta"):
                lanes[name] = getattr(s, name)
            lanes["epsilon"] = round(s.epsilon * 2**32)
            # Of step t, from 1, counted over all episodes and with one more between two of them, word 8t draws the
            # next action; before the first step and in between, 8t + 1 + i draws number i of the start
            lanes["word"], lanes["stride"] = key, stride
            for lane, seed in zip(lanes, seeds, strict=True):
                own = seed if s.features_seed is None else s.features_seed
                lane["features"] = known.setdefault((s.length_scale, int(own)), len(known))
                if len(known) > len(self.phases):
                    self._add_features(s.features(task, int(seed)))

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
        s, task, D, A = self.settings[0], self.task, self.D, self.task.n_actions
        reward = get_reward(s.reward)
        constants = {
            "ACTIONS": A,
            "Q_WIDTH": A,
            "ALL_ACTIONS": np.uint64(2**A - 1),
            "HAS_PSI": "psi_norm" in reward.needs or "Psi" in self.keep,
            "HAS_XI": "xi_norm_next" in reward.needs or "Xi" in self.keep,
            "HAS_PHI_NORM": "phi_norm_next" in reward.needs,
            "HAS_VISITS": "visits_next" in reward.needs,
            "GREEDY": s.sf_target == "greedy",
            **{"MASKED": MASKED, "FIRST_TIE": FIRST_TIE, "HALF": HALF, "LOW_HALF": LOW_HALF, "TO_UNIT": TO_UNIT},
        }
        imports = {
            "spie.engine.matrix": (
                "WAITING",
                "add_scaled",
                "copy",
                "cosines",
                "dot",
                "norm_1",
                "product",
                "update_product",
            ),
            "spie.engine.simd": ("COUNT", "PICK"),
        }
        functions: dict[str, Callable[..., Any]] = {"step": task.step, "observe": task.observe}
        kernel = specialise(linear_q_kernel, _HELPERS, constants, imports, reward, FEATURE_QUANTITIES, functions)
        from spie.engine.matrix import WAITING

        low, high, start_low, start_high = (
            np.array(b, np.float64) for b in (task.low, task.high, task.start_low, task.start_high)
        )
        tables = (start_low, start_high - start_low, low, s.cells / (high - low), s.cells)
        own = threading.local()

        def run(part: slice) -> None:
            if not hasattr(own, "scratch"):  # once per thread
                own.scratch = (
                    *(np.zeros(n) for n in (len(start_low), len(low), A, A)),
                    *(aligned_zeros(D) for _ in range(7)),
                    aligned_zeros(A * D),
                    np.zeros(self.n_cells, np.int64),
                )
                size = (A + 1) * WAITING * D
                own.matrices = (
                    aligned_zeros((A + 1) * D * D), aligned_zeros(size), aligned_zeros(size), np.zeros(A + 1, np.int64)
                )  # fmt: skip
            (*_, w, visits), (matrices, _, _, waiting) = own.scratch, own.matrices
            for array in (w, visits, matrices, waiting):
                array.fill(0)
            lane = part.start
            features = self.lanes["features"][lane]
            kernel(
                self.lanes[part],
                self.cap,
                self.lengths.shape[1],
                s.tie_tolerance,
                tables,
                (self.frequencies[features], self.phases[features]),
                own.scratch,
                own.matrices,
                tuple(array[lane] for array in (self.lengths, self.rewards, self.bonuses, self.terminated)),
                self.has_matrices,
            )
            for final, array in zip(self.finals, (w, matrices), strict=True):
                final[lane : lane + 1] = array[: final.shape[1]]

        return [(run, slice(i, i + 1)) for i in range(len(self.lanes))]

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
