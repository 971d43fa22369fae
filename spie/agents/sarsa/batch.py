"""SARSA with an intrinsic reward: Algorithm 1 of the paper.

`sarsa_kernel` is the algorithm; `Sarsa` holds the settings; `run_sarsa` runs many settings on many seeds. One run of
one settings and one seed is a *lane*. Names in capitals are constants that `specialise` fills in before it compiles.
"""

import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, no_type_check

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spie import representations
from spie.agents.base import Agent, Keep, Range, Replay, Seeds, Session
from spie.engine import sparse_rows as sparse
from spie.engine.lanes import Progress, aligned_zeros, check_memory, mix, random_streams, run_chunks, seed_array
from spie.engine.sparse_rows import append, clear, entry, update_sparse_row, with_room
from spie.engine.specialise import specialise
from spie.errors import unknown
from spie.rewards import Reward, get_reward
from spie.tasks.base import check_kind
from spie.tasks.mdp import MDP
from spie.trace import Trace, Trajectory

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import COUNT, PICK, at_least, largest, update_row, update_row_and_sums

    def intrinsic_reward(*quantities: float) -> float: ...


DENSE_STATES = 4096  # above this, M is kept row-sparse
UNROLLED_STATES = 16  # up to this, loops over states have a constant length

# What follows are a kernel's constants. A branch on one of them costs nothing where it does not apply.
STATES, ACTIONS, SUCCESSORS = 0, 1, 1  # S (where it is small, else 0), A, K
Q_WIDTH, Q_STEP = 1, np.uint64(1)  # from one row of Q to the next: A, or 8 with -inf in the gap; the same, unsigned
ALL_ACTIONS = np.uint64(1)  # a set of actions is a word, one bit each
LEARNED = True  # M, F and N are learned; else they are given
HAS_M = HAS_M_ROW = HAS_M_COL = HAS_F = HAS_N = HAS_N_COL = False  # what the reward, or the caller, asks for
ORDERED = False  # M, F, N hold states in the order of their discovery, so that a step costs O(states seen)
SPARSE = False
ENDS = False  # episodes can end
RESAMPLE = True  # the next action is drawn anew; else it is a'
FIRST_TIE = False
BONUS_FIRST = False
MASKED = False  # some actions are not available everywhere
RECORDED = REPLAYED = False
HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
M_COL, M_ROW, F_ROW, N_COL = 0, 1, 2, 3  # rows of `sums`: sums over columns of M, rows of M, rows of F, columns of N

LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "q0", "m0")]
    + [("tie_tolerance", np.float64), ("total_reward", np.float64), ("total_bonus", np.float64)]
    + [("epsilon", np.uint64), ("word", np.uint64), ("stride", np.uint64), ("steps", np.int64)]
    + [(name, np.uint32) for name in ("state", "action", "seen", "phase", "table", "left")]
    + [(name, np.int32) for name in ("episode", "length", "truncated")],
    align=True,
)
STEP = np.dtype(
    [(name, np.int32) for name in ("state", "action", "next_state")] + [("reward", np.float64), ("bonus", np.float64)],
    align=True,
)


@no_type_check
def interval(thresholds, word):
    """How many of the rising thresholds a word has reached."""
    low, high = 0, len(thresholds)
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@no_type_check
def epsilon_greedy(word, epsilon, greedy, legal):
    """An action: the upper half of a random word decides whether to explore, the lower half picks from the set."""
    options = np.uint64(greedy) | (legal * np.uint64((word >> HALF) < epsilon))
    if ACTIONS <= 8:
        return np.int64(PICK[options, ((word & LOW_HALF) * np.uint64(COUNT[options])) >> HALF])
    left = np.uint64(0)
    for a in range(ACTIONS):
        left += (options >> np.uint64(a)) & np.uint64(1)
    left = ((word & LOW_HALF) * left) >> HALF
    for a in range(ACTIONS):
        if (options >> np.uint64(a)) & np.uint64(1):
            if left == np.uint64(0):
                return np.int64(a)
            left -= np.uint64(1)
    return np.int64(-1)  # never: the set is not empty


@no_type_check
def greedy_actions(Q, q, legal, tie_tolerance):
    """argmax Q[s, :], stored from Q[q] on, as the set of all actions that reach it up to rounding."""
    if Q_WIDTH == 8:
        best = largest(Q, q)
        greedy = at_least(Q, q, best - tie_tolerance * max(1.0, abs(best)))
    else:
        best = -np.inf
        for a in range(ACTIONS):
            if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
                best = max(best, Q[q + np.uint64(a)])
        best -= tie_tolerance * max(1.0, abs(best))
        greedy = np.uint64(0)
        for a in range(ACTIONS):
            greedy |= np.uint64(Q[q + np.uint64(a)] >= best) << np.uint64(a)
    if MASKED:
        greedy &= legal
    if FIRST_TIE:
        greedy &= ~greedy + np.uint64(1)  # the lowest bit
    return greedy


@no_type_check
def arrive(lane, first, place, s, t, S, visits, first_visit, rank):
    """Count an arrival in s; a state that is new gets the next row of M, F and N."""
    i = np.uint64(first * S + (place * S + s))  # unsigned, which saves a check for < 0
    visits[i] += 1
    if visits[i] == 1:
        first_visit[i] = t
        if ORDERED:
            rank[place * S + s] = lane.seen
        lane.seen += 1


@no_type_check
def bonus_of(first, place, m, s, s_next, x, x_next, S, W, visits, M, N, sums, pool):
    """r_int of the step from s to s', which are rows x and x' of the matrices at place m."""
    M_next = N_next = 0.0
    if HAS_M:
        M_next = entry(pool, s, s_next) if SPARSE else M[(m * S + x) * W + x_next]
    if HAS_N:  # N is kept transposed, because its columns are what is learned
        N_next = entry(pool, 2 * S + s_next, s) if SPARSE else N[(m * S + x_next) * W + x]
    return intrinsic_reward(
        M_next,
        sums[M_ROW, m * W + s] if HAS_M_ROW else 0.0,
        sums[M_COL, m * W + x_next] if HAS_M_COL else 0.0,
        sums[F_ROW, m * W + s] if HAS_F else 0.0,
        sums[F_ROW, m * W + s_next] if HAS_F else 0.0,
        N_next,
        sums[N_COL, m * W + s_next] if HAS_N_COL else 0.0,
        visits[np.uint64(first * S + (place * S + s))],
        visits[np.uint64(first * S + (place * S + s_next))],
    )


@no_type_check
def sarsa_kernel(lanes, together, horizon, cap, episodes, tolerance, mdp, scratch, matrices, kept, pool, results):
    """Algorithm 1 on every lane. Those of a group advance in turn, so that the processor overlaps their waiting."""
    following, threshold, rewards, starts, start_threshold, terminal, available, S, phases, phase_episodes = mdp
    Q, greedy, rank = scratch
    M, F, N, sums = matrices
    visits, first_visit, episode_steps, snapshots, path, replay, snapshot_steps = results
    A, K = ACTIONS, SUCCESSORS
    if STATES > 0:
        S = STATES
    W = (S + 7) // 8 * 8 if LEARNED else S  # from one row of a matrix to the next
    legal = ALL_ACTIONS
    discount = 1.0
    bonus = 0.0

    for first in range(0, len(lanes), together):
        n = min(together, len(lanes) - first)

        # s = env.reset(); M = 0; Q = 0
        t = 0
        for place in range(n):
            l = first + place
            lane = lanes[np.uint64(l)]
            begin(lane, place, S, W, available, Q, greedy, M, F, N, sums, pool)
            s = np.int64(starts[interval(start_threshold, mix(lane.word - lane.stride))])
            lane.state = s
            arrive(lane, first, place, s, t, S, visits, first_visit, rank)
        running = n
        shot = 0

        for t in range(1, horizon + 1):
            for place in range(n):
                l = first + place
                lane = lanes[np.uint64(l)]
                if ENDS and lane.episode == episodes:
                    continue
                s = np.int64(lane.state)
                here = np.uint64(place * S + s)  # unsigned, which saves a check for < 0

                # theta ~ U(0, 1); a ~ U(A) where theta < epsilon, else a = argmax Q[s, :]
                if MASKED:
                    legal = available[s]
                a = epsilon_greedy(mix(lane.word), lane.epsilon, greedy[here], legal)
                if not RESAMPLE and lane.action < A:
                    a = np.int64(lane.action)
                if REPLAYED:
                    a = np.int64(replay[l * horizon + t - 1])

                # s', r, done = env.step(a)
                i = (s * A + a) * K
                if K > 1:
                    word = mix(lane.word + lane.stride)
                    for k in range(K - 1):
                        i += word >= threshold[(s * A + a) * K + k]
                s_next = np.int64(following[i])
                there = np.uint64(place * S + s_next)
                if ENDS:
                    i += np.int64(lane.phase) * S * A * K
                    discount = 0.0 if terminal[lane.phase * S + s_next] else 1.0
                r = rewards[i]
                lane.total_reward += r
                arrive(lane, first, place, s_next, t, S, visits, first_visit, rank)

                x, x_next, m = s, s_next, place
                if ORDERED:
                    x, x_next = np.int64(rank[here]), np.int64(rank[there])
                if not LEARNED:
                    m = np.int64(lane.table * phases + lane.phase)
                if BONUS_FIRST:
                    bonus = bonus_of(first, place, m, s, s_next, x, x_next, S, W, visits, M, N, sums, pool)

                # M[s, :] = M[s, :] + eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), likewise F[s, :] and N[:, s']
                if LEARNED:
                    eta = lane.eta
                    gamma_sr = lane.gamma_sr * discount
                    row, next_row = (place * S + x) * W, (place * S + x_next) * W
                    width = (np.int64(lane.seen) + 7) // 8 * 8 if ORDERED else W  # the columns beyond hold zeros
                    at, at_next = place * W + s, place * W + s_next
                    if HAS_M_ROW:  # the sum of the row update: no matrix needed
                        sums[M_ROW, at] += eta * (1.0 + gamma_sr * sums[M_ROW, at_next] - sums[M_ROW, at])
                    if HAS_N_COL:
                        change = 1.0 + lane.gamma_pr * sums[N_COL, at] - sums[N_COL, at_next]
                        sums[N_COL, at_next] += lane.eta_pr * change
                    if SPARSE:
                        pool = with_room(pool, s, s_next)
                        if HAS_M:
                            update_sparse_row(pool, 0, s, s_next, eta, gamma_sr, tolerance, sums)
                        if HAS_F:
                            sums[F_ROW, s] += update_sparse_row(pool, 1, s, s_next, eta, gamma_sr, tolerance, sums)
                        if HAS_N:
                            update_sparse_row(pool, 2, s_next, s, lane.eta_pr, lane.gamma_pr, tolerance, sums)
                    else:
                        if HAS_F:  # F counts s once, now, and not again later
                            later = sums[F_ROW, at_next] - F[next_row + x]
                            sums[F_ROW, at] += eta * (1.0 + gamma_sr * later - sums[F_ROW, at])
                        # 1(s) concerns one entry, set apart, so that the pass over the row need not look for it
                        M_s = M_change = M_sum = F_s = N_s = 0.0
                        if HAS_M:
                            M_change = eta * (1.0 + gamma_sr * M[next_row + x] - M[row + x])
                            M_s = M[row + x] + M_change
                        if HAS_M_COL:
                            M_sum = sums[M_COL, place * W + x] + M_change
                        if HAS_F:
                            F_s = F[row + x] + eta * (1.0 - F[row + x])
                        if HAS_N:
                            N_s = N[next_row + x_next]
                            N_s += lane.eta_pr * (1.0 + lane.gamma_pr * N[row + x_next] - N_s)
                        for j in range(0, width, 8):
                            if HAS_M and HAS_M_COL:
                                update_row_and_sums(M, row + j, next_row + j, eta, gamma_sr, sums, place * W + j)
                            elif HAS_M:
                                update_row(M, row + j, next_row + j, eta, gamma_sr)
                            if HAS_F:
                                update_row(F, row + j, next_row + j, eta, gamma_sr)
                            if HAS_N:
                                update_row(N, next_row + j, row + j, lane.eta_pr, lane.gamma_pr)
                        if HAS_M:
                            M[row + x] = M_s
                        if HAS_M_COL:
                            sums[M_COL, place * W + x] = M_sum
                        if HAS_F:
                            F[row + x] = F_s
                        if HAS_N:
                            N[next_row + x_next] = N_s

                # r = r + beta r_int
                if not BONUS_FIRST:
                    bonus = bonus_of(first, place, m, s, s_next, x, x_next, S, W, visits, M, N, sums, pool)
                lane.total_bonus += bonus
                if RECORDED:
                    step = path[l * horizon + t - 1]
                    step.state, step.action, step.next_state, step.reward, step.bonus = s, a, s_next, r, bonus
                r += lane.beta * bonus

                # theta' ~ U(0, 1); a' ~ U(A) where theta' < epsilon, else a' = argmax Q[s', :]
                if MASKED:
                    legal = available[s_next]
                word = mix(lane.word + np.uint64(2) * lane.stride)
                a_next = epsilon_greedy(word, lane.epsilon, greedy[there], legal)

                # Q[s, a] = Q[s, a] + alpha (r + gamma (1 - done) Q[s', a'] - Q[s, a])
                q, q_next = here * Q_STEP + np.uint64(a), there * Q_STEP + np.uint64(a_next)
                Q[q] += lane.alpha * (r + lane.gamma * discount * Q[q_next] - Q[q])
                lane.left = s

                # s = s'
                lane.state = s_next
                if not RESAMPLE:
                    lane.action = a_next
                if ENDS:
                    lane.steps = t
                    lane.length += 1
                    if discount == 0.0 or lane.length == cap:
                        if episodes >= 0:
                            episode_steps[l * episodes + lane.episode] = lane.length
                        lane.truncated += discount != 0.0
                        lane.episode += 1
                        lane.length = 0
                        lane.action = A  # nothing to carry over
                        if phase_episodes > 0:
                            lane.phase = lane.episode // phase_episodes % phases
                        if lane.episode == episodes:
                            running -= 1
                        else:
                            word = mix(lane.word + np.uint64(3) * lane.stride)
                            s = np.int64(starts[interval(start_threshold, word)])
                            lane.state = s
                            arrive(lane, first, place, s, t, S, visits, first_visit, rank)
                lane.word += np.uint64(4) * lane.stride

            # argmax Q[s, :] in a loop of its own: it waits for the new Q, and the lanes' waits overlap
            for place in range(n):
                lane = lanes[np.uint64(first + place)]
                s = np.int64(lane.left)
                if MASKED:
                    legal = available[s]
                here = np.uint64(place * S + s)
                greedy[here] = greedy_actions(Q, here * Q_STEP, legal, lane.tie_tolerance)

            while shot < len(snapshot_steps) and (t == snapshot_steps[shot] or running == 0):
                for l in range(first, first + n):
                    for s in range(S):
                        snapshots[(l * len(snapshot_steps) + shot) * S + s] = visits[l * S + s]
                shot += 1
            if running == 0:
                break
        for place in range(n):
            lane = lanes[first + place]
            if not ENDS:
                lane.steps = horizon
            if LEARNED and not SPARSE and not kept:
                forget(lane, place, S, W, M, F, N)


@no_type_check
def begin(lane, place, S, W, available, Q, greedy, M, F, N, sums, pool):
    """Q = q0; M, F and N = m0 times the identity."""
    lane.seen = 0
    lane.action = ACTIONS
    for s in range(S):
        legal = available[s] if MASKED else ALL_ACTIONS
        q = (place * S + s) * Q_WIDTH
        for a in range(Q_WIDTH):
            taken = Q_WIDTH == ACTIONS or (legal >> np.uint64(a)) & np.uint64(1)
            Q[q + a] = lane.q0 if taken else -np.inf
        greedy[place * S + s] = greedy_actions(Q, np.uint64(q), legal, lane.tie_tolerance)
    if LEARNED:
        if SPARSE:
            clear(pool)
        for i in range(place * W, (place + 1) * W):
            for which in range(4):
                sums[which, i] = lane.m0
        if lane.m0 != 0.0:
            for x in range(S):
                if SPARSE:
                    for matrix in range(3):
                        append(pool, matrix * S + x, x, lane.m0)
                i = (place * S + x) * W + x
                if HAS_M and not SPARSE:
                    M[i] = lane.m0
                if HAS_F and not SPARSE:
                    F[i] = lane.m0
                if HAS_N and not SPARSE:
                    N[i] = lane.m0


@no_type_check
def forget(lane, place, S, W, M, F, N):
    """Leave M, F and N at zero for the next lane."""
    seen = np.int64(lane.seen) if ORDERED and lane.m0 == 0.0 else S
    for x in range(seen):
        row = (place * S + x) * W
        for i in range(row, row + (seen + 7) // 8 * 8):
            if HAS_M:
                M[i] = 0.0
            if HAS_F:
                F[i] = 0.0
            if HAS_N:
                N[i] = 0.0


_HELPERS = (
    mix, interval, epsilon_greedy, greedy_actions, append, entry, clear, with_room, update_sparse_row,
    arrive, bonus_of, begin, forget,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sarsa(Agent):
    """Settings of a SARSA agent with an intrinsic reward. The defaults are the paper's for grid worlds.

    Each open point of the paper is an option, its default the reading that docs/paper.md gives.
    """

    reward: str = "sr-r"
    alpha: float = 0.1  # learning rate of Q; 0 leaves Q as it is
    eta: float = 0.1  # learning rate of M and F
    gamma: float = 0.95  # discount of Q
    gamma_sr: float = 0.95  # discount of M and F
    eta_pr: float | None = None  # learning rate of N; None: eta
    gamma_pr: float | None = None  # discount of N; None: gamma_sr
    beta: float = 1.0  # scale of the intrinsic reward
    epsilon: float = 0.1  # chance of an action at random
    learned: bool = True  # False: M, F and N in closed form under the uniform random policy, never updated
    q0: float = 0.0  # Q starts at this value
    m0: float = 0.0  # M, F and N start at m0 times the identity
    next_action: Literal["resample", "carry"] = "resample"  # whether the action after a' is drawn anew
    ties: Literal["random", "first"] = "random"  # among actions of equal value
    tie_tolerance: float = 1e-9  # relative difference below which values count as equal
    bonus_from: Literal["updated", "previous"] = "updated"  # the matrices after or before this step's update
    sparse: bool | None = None  # whether M is kept row-sparse; None: above 4096 states
    tolerance: float = 1e-8  # entries below it are dropped from row-sparse matrices

    def __post_init__(self) -> None:
        get_reward(self.reward, on="tables")
        unit, positive, below_one = "[0, 1]", "(0, 1]", "[0, 1)"
        for name, interval in {
            "alpha": unit,
            "eta": positive,
            "gamma": unit,
            "gamma_sr": below_one,
            "eta_pr": positive,
            "gamma_pr": below_one,
            "beta": "(-inf, inf)",
            "epsilon": unit,
            "q0": "(-inf, inf)",
            "m0": "[0, inf)",
            "tie_tolerance": below_one,
            "tolerance": "(0, 1)",
        }.items():
            value = getattr(self, name)
            if value is not None and not _inside(value, interval):
                raise ValueError(f"Sarsa: {name} must lie in {interval}, not {value}")
        for name, choices in {
            "next_action": ("resample", "carry"),
            "ties": ("random", "first"),
            "bonus_from": ("updated", "previous"),
        }.items():
            if getattr(self, name) not in choices:
                raise unknown(f"{name} for Sarsa", getattr(self, name), choices)

    @classmethod
    def run_many(
        cls,
        settings: Sequence["Sarsa"],
        task: MDP,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        session: Session = Session(),
    ) -> list[Trace]:
        """All settings side by side."""
        return run_sarsa(settings, task, steps, seeds, episodes=episodes, session=session)

    def tuning_ranges(self, task: MDP | None) -> dict[str, Range]:
        """The settings of the paper's sweep, from its least value to its largest."""
        kept = {need[:2] for need in get_reward(self.reward).needs}
        rate = Range(0.005, 0.5, log=True)
        discount = Range(0.5, 0.99, log=False)
        ranges = {
            "alpha": (True, rate),
            "eta": (self.learned and bool(kept & {"M_", "F_"}), rate),
            "gamma_sr": (bool(kept & {"M_", "F_"}), discount),
            "eta_pr": (self.learned and "N_" in kept, rate),
            "gamma_pr": ("N_" in kept, discount),
            "beta": (self.reward != "none", Range(1.0, 10_000.0, log=True)),
            "epsilon": (True, Range(0.01, 0.1, log=True)),
        }
        return {name: where for name, (is_used, where) in ranges.items() if is_used}

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step takes on one core, compiled."""
        return 3e-8 + 3e-10 * task.n_states

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,)

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
    ) -> Trace:
        """Run this agent on an MDP, once per seed; arguments as for `run_sarsa`."""
        options: dict[str, Any] = {"episodes": episodes, "keep": keep, "replay": replay, "session": session}
        return run_sarsa([self], task, steps, seeds, **options)[0]


_LEARNED: dict[str, dict[str, Any]] = {
    "sarsa": {"reward": "none"},
    "sarsa-sr": {"reward": "sr"},
    "sarsa-fr": {"reward": "fr"},
    "sarsa-srr": {"reward": "sr-r"},
    "sarsa-srr-a": {"reward": "sr-r(a)"},
    "sarsa-srr-b": {"reward": "sr-r(b)"},
    "sarsa-srr-c": {"reward": "sr-r(c)"},
    "sarsa-sr-pr": {"reward": "sr-pr"},
}
_FIXED = {f"{name}-fixed": s | {"learned": False} for name, s in _LEARNED.items() if name != "sarsa"}
_CONTROLS: dict[str, dict[str, Any]] = {  # ours, not in the paper: no representation at all
    "constant": {"reward": "constant"},
    "optimistic": {"reward": "none", "q0": 20.0},  # 1 / (1 - gamma)
    "count": {"reward": "count", "q0": 20.0},
    "random": {"reward": "none", "epsilon": 1.0},
}
AGENTS = _LEARNED | _FIXED | _CONTROLS


def _inside(value: float, interval: str) -> bool:
    low, high = map(float, interval[1:-1].split(", "))
    return (low <= value if interval[0] == "[" else low < value) and (
        value <= high if interval[-1] == "]" else value < high
    )


def run_sarsa(
    settings: Sequence[Sarsa],
    task: MDP,
    steps: int,
    seeds: Seeds = 1,
    *,
    episodes: int | None = None,
    keep: Keep = Keep(),
    replay: Replay | None = None,
    session: Session = Session(),
) -> list[Trace]:
    """Run each of `settings` on each seed: one Trace per settings, in their order.

    steps: the length of a run; with `episodes`, the cap of each episode (where it is truncated, Q still bootstraps).
    seeds: a count n, meaning 0 ... n-1, or the seeds themselves. A seed gives the same run in any company.
    episodes: stop after that many episodes.
    keep: final values of "Q", "M", "F", "N", snapshots of the visits, trajectories of some seeds.
    replay: actions to take in place of the agent's own; it learns all the same.
    session: threads (None: one per processor) and progress. Results do not depend on it.
    """
    check_kind(task, "table", "Sarsa")
    order = sorted(range(len(settings)), key=lambda i: repr(_kind(settings[i])))  # those of one kernel side by side
    settings = [settings[i] for i in order]
    all_seeds = seed_array(seeds)
    chosen = seed_array(keep.paths) if keep.paths else np.empty(0, np.int64)
    for seed in chosen[~np.isin(chosen, all_seeds)]:
        raise ValueError(f"Keep: seed {seed} of paths is not among the seeds of the run")
    actions = None if replay is None else replay.actions
    whole = len(chosen) == len(all_seeds)
    run = _Run(settings, task, steps, all_seeds, episodes, keep.matrices, keep.snapshots, actions, recorded=whole)
    traces = run.execute(session.threads, session.progress)
    if len(chosen):
        if not whole:  # run the chosen seeds once more: a seed repeats itself, and the others need not be recorded
            if actions is not None and actions.ndim == 2:
                actions = actions[[list(all_seeds).index(seed) for seed in chosen]]
            run = _Run(settings, task, steps, chosen, episodes, (), (), actions, recorded=True)
            run.execute(session.threads, None)
        traces = [dataclasses.replace(trace, paths=run.paths(i)) for i, trace in enumerate(traces)]
    return [trace for _, trace in sorted(zip(order, traces, strict=True), key=lambda pair: pair[0])]


def _kind(s: Sarsa) -> tuple[Any, ...]:
    """What settings must share to run in one call of a kernel; the rest are numbers of the lane."""
    return s.reward, s.learned, s.next_action, s.ties, s.bonus_from, s.sparse, s.tolerance


def _compiled(reward: Reward, constants: tuple[tuple[str, Any], ...]) -> Callable[..., None]:
    names = ("COUNT", "PICK", "at_least", "largest", "update_row", "update_row_and_sums")
    return specialise(sarsa_kernel, _HELPERS, dict(constants), {"spie.engine.simd": names}, reward)


def _thresholds(prob: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Cumulative probabilities as 64-bit words: k is drawn by a word from threshold k-1 up to below threshold k."""
    return np.minimum(np.cumsum(prob, axis=-1) * 2.0**64, 2.0**64 - 2048).astype(np.uint64)


class _Run:
    """The lanes of one call, settings x seeds on one MDP, and what they leave."""

    def __init__(
        self,
        settings: Sequence[Sarsa],
        mdp: MDP,
        steps: int,
        seeds: NDArray[np.int64],
        episodes: int | None,
        keep: tuple[str, ...],
        snapshots: Sequence[int],
        replay: ArrayLike | None,
        recorded: bool,
    ) -> None:
        S, A, n = mdp.n_states, mdp.n_actions, len(settings) * len(seeds)
        for name, value in (("steps", steps), ("episodes", episodes)):
            if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
                raise ValueError(f"{name} must be a whole number of at least 1, not {value}")
        if A > 64:
            raise ValueError(f"{mdp.name} has {A} actions; the engine takes at most 64")
        for name in keep:
            if name not in ("Q", "M", "F", "N"):
                raise unknown("matrix to keep", name, ("Q", "M", "F", "N"))
        self.settings, self.mdp, self.seeds, self.keep, self.recorded = settings, mdp, seeds, keep, recorded
        self.episodes, self.cap = (-1, -1) if episodes is None else (episodes, steps)
        self.horizon = steps if episodes is None else steps * episodes
        if self.horizon >= 2**31:
            raise ValueError(f"a run of {self.horizon:,} steps is too long: at most {2**31 - 1:,}")
        self.snapshot_steps = np.array(snapshots, np.int64)
        if len(snapshots) and not (
            self.snapshot_steps[0] >= 1
            and (np.diff(self.snapshot_steps) > 0).all()
            and self.snapshot_steps[-1] <= self.horizon
        ):
            raise ValueError(f"snapshots must be rising steps between 1 and {self.horizon}, not {list(snapshots)}")
        self.replay = None if replay is None else np.asarray(replay)
        if self.replay is not None:
            if self.replay.shape not in ((self.horizon,), (len(seeds), self.horizon)):
                raise ValueError(f"replay must have shape [{self.horizon}] or [{len(seeds)}, {self.horizon}]")
            if self.replay.min() < 0 or self.replay.max() >= A:
                raise ValueError(f"replay holds actions outside 0 ... {A - 1}")
            self.replay = np.broadcast_to(self.replay, (len(seeds), self.horizon)).astype(np.int32)

        T = self.horizon if recorded else 0
        sizes = {name: (S * A if name == "Q" else S * S) * (name in keep) for name in ("Q", "M", "F", "N")}
        needed = n * (LANE.itemsize + 8 * S + 4 * S * len(snapshots) + STEP.itemsize * T + 8 * sum(sizes.values()))
        check_memory(needed, f"{n:,} runs on {S:,} states", "ask for fewer seeds at once, or for less of each")
        self.visits = np.zeros((n, S), np.int32)
        self.first_visit = np.full((n, S), -1, np.int32)
        self.episode_steps = np.zeros((n, max(0, self.episodes)), np.int32)
        self.snapshots = np.zeros((n, len(snapshots), S), np.int32)
        self.finals = {name: np.zeros((n, size)) for name, size in sizes.items()}
        self.steps = np.zeros((n, T), STEP)
        self.lanes = np.zeros(n, LANE)
        key, stride = random_streams(seeds)
        for i, s in enumerate(settings):
            lanes = self.lanes[i * len(seeds) : (i + 1) * len(seeds)]
            for name in ("alpha", "eta", "gamma", "gamma_sr", "beta", "q0", "m0"):
                lanes[name] = getattr(s, name)
            lanes["eta_pr"] = s.eta if s.eta_pr is None else s.eta_pr
            lanes["gamma_pr"] = s.gamma_sr if s.gamma_pr is None else s.gamma_pr
            lanes["tie_tolerance"] = s.tie_tolerance if s.ties == "random" else 0.0
            lanes["epsilon"] = round(s.epsilon * 2**32)
            # Step t, from 1, uses words 4t for a, 4t + 1 for s', 4t + 2 for a', 4t + 3 for the start of a new episode
            lanes["word"] = key + np.uint64(4) * stride
            lanes["stride"] = stride

    def execute(self, threads: int | None, progress: Progress | None) -> list[Trace]:
        """Run all lanes; neighbours of one kind share the calls of their kernel."""
        n = len(self.seeds)
        chunks: list[tuple[Callable[[slice], None], slice]] = []
        for _, group in itertools.groupby(range(len(self.settings)), lambda i: _kind(self.settings[i])):
            members = list(group)
            lanes = slice(members[0] * n, (members[-1] + 1) * n)
            run, size = self._prepare(self.settings[members[0]], lanes)
            chunks += [(run, slice(i, min(i + size, lanes.stop))) for i in range(lanes.start, lanes.stop, size)]
        run_chunks(chunks, threads, progress)
        for lane in map(int, np.flatnonzero(~np.isfinite(self.lanes["total_bonus"]))):
            raise ValueError(
                f'reward "{self.settings[lane // n].reward}" became infinite or NaN on {self.mdp.name} '
                f"(seed {self.seeds[lane % n]}): does it divide by what starts at 0?"
            )
        return [self._trace(i) for i in range(len(self.settings))]

    def _prepare(self, s: Sarsa, lanes: slice) -> tuple[Callable[[slice], None], int]:
        """A function that runs a slice of lanes of one kind, and how many lanes to give it at a time."""
        mdp, S, A = self.mdp, self.mdp.n_states, self.mdp.n_actions
        reward = get_reward(s.reward)
        needs = {*reward.needs, *(self.keep if s.learned else ())}
        has = {
            "M": bool(needs & {"M", "M_next"} or (s.learned and "M_col_next" in needs)),
            "M_ROW": "M_row" in needs,
            "M_COL": "M_col_next" in needs,
            "F": bool(needs & {"F", "F_row", "F_row_next"}),
            "N": bool(needs & {"N", "N_next"}),
            "N_COL": "N_col_next" in needs,
        }
        matrices = has["M"] + has["F"] + has["N"] if s.learned else 0
        is_sparse = matrices > 0 and (S > DENSE_STATES if s.sparse is None else s.sparse)
        if is_sparse and set(self.keep) - {"Q"}:
            raise ValueError(f"row-sparse runs keep no {', '.join(sorted(set(self.keep) - {'Q'}))}; set sparse=False")
        small = S <= UNROLLED_STATES
        q_width = 8 if 4 < A <= 8 else A  # a row of 5 to 8 actions is one vector
        constants = {
            "STATES": S if small else 0,
            "ACTIONS": A,
            "Q_WIDTH": q_width,
            "Q_STEP": np.uint64(q_width),
            "SUCCESSORS": mdp.n_successors,
            "ALL_ACTIONS": np.uint64(2**A - 1),
            "LEARNED": s.learned,
            **{f"HAS_{name}": flag for name, flag in has.items()},
            "ORDERED": matrices > 0 and not small and not is_sparse,
            "SPARSE": is_sparse,
            "ENDS": self.cap > 0 or bool(mdp.terminal.any()),
            "RESAMPLE": s.next_action == "resample",
            "FIRST_TIE": s.ties == "first",
            "BONUS_FIRST": s.bonus_from == "previous",
            "MASKED": not mdp.available.all(),
            "RECORDED": self.recorded,
            "REPLAYED": self.replay is not None,
            **{name: globals()[name] for name in ("HALF", "LOW_HALF", "M_COL", "M_ROW", "F_ROW", "N_COL")},
            "NONE": sparse.NONE,
            "FIRST_BLOCK": sparse.FIRST_BLOCK,
        }
        kernel = _compiled(reward, tuple(constants.items()))
        width = -(-S // 8) * 8
        together = 8 if small else 4 if S <= 128 else 1  # so that the matrices of a group stay near the processor
        square = 0 if is_sparse else together * S * width
        check_memory(8.0 * matrices * square, f"{mdp.name}: learning on {S:,} states", "set sparse=True")
        given = None if s.learned else self._closed_forms(lanes, has)
        kept = s.learned and not is_sparse and len(self.keep) > 0
        own = threading.local()

        def run(part: slice) -> None:
            if not hasattr(own, "matrices"):  # once per thread: lanes leave the matrices at zero
                own.matrices = given or (
                    *(aligned_zeros(square if has[name] else 0) for name in ("M", "F", "N")),
                    aligned_zeros(4, together * width),
                )
                own.pool = sparse.empty_pool(S) if is_sparse else ()
                own.scratch = (
                    aligned_zeros(together * S * q_width),
                    np.empty(together * S, np.uint8 if A <= 8 else np.uint64),
                    np.empty(together * S if constants["ORDERED"] else 0, np.uint32),
                )
            replay = np.zeros(0, np.int32)
            if self.replay is not None:
                replay = self.replay[np.arange(part.start, part.stop) % len(self.seeds)]
            arrays = (self.visits, self.first_visit, self.episode_steps, self.snapshots, self.steps)
            kernel(
                self.lanes[part],
                together,
                self.horizon,
                self.cap,
                self.episodes,
                s.tolerance,
                self._tables,
                own.scratch,
                own.matrices,
                kept,
                own.pool,
                (*(array[part].reshape(-1) for array in arrays), replay.reshape(-1), self.snapshot_steps),
            )
            if self.keep:
                self._keep(part, own.scratch, own.matrices[:3] if kept else ())

        seconds = self.horizon * (2e-8 + 3e-10 * S * matrices)  # of a lane, roughly
        size = max(1, min(int(0.2 / seconds), (lanes.stop - lanes.start) // 4))  # often enough for progress and Ctrl-C
        if self.keep:
            size = together  # the next group takes the place of this one
        return run, -(-size // together) * together

    @functools.cached_property
    def _tables(self) -> tuple[Any, ...]:
        """The MDP as the kernel reads it: flat, and unsigned where an index comes out, which saves a check for < 0."""
        mdp = self.mdp
        (starts,) = np.nonzero(mdp.start)
        bits = np.uint64(1) << np.arange(mdp.n_actions, dtype=np.uint64)
        return (
            mdp.next.astype(np.uint32).reshape(-1),
            _thresholds(mdp.prob).reshape(-1),
            mdp.reward.reshape(-1),
            starts.astype(np.uint32),
            _thresholds(mdp.start[starts])[:-1],
            mdp.terminal.reshape(-1),
            (mdp.available * bits).sum(axis=1, dtype=np.uint64),
            mdp.n_states,
            mdp.n_phases,
            mdp.episodes_per_phase,
        )

    def _closed_forms(self, lanes: slice, has: dict[str, bool]) -> tuple[NDArray[np.float64], ...]:
        """M, N^T and the sums under the uniform random policy, for each pair of discounts and each phase."""
        mdp, S = self.mdp, self.mdp.n_states
        pairs = np.stack([self.lanes["gamma_sr"][lanes], self.lanes["gamma_pr"][lanes]], axis=1)
        distinct, self.lanes["table"][lanes] = np.unique(pairs, axis=0, return_inverse=True)
        n = len(distinct) * mdp.n_phases
        dense = has["M"] + has["F"] + has["N"] + has["N_COL"]
        check_memory(8.0 * n * S * S * dense, f"{mdp.name}: closed forms of {S:,} states", "use learned=True")
        M, N = np.zeros((n if has["M"] else 0, S, S)), np.zeros((n if has["N"] else 0, S, S))
        sums = np.zeros((4, n, S))
        for i, ((gamma_sr, gamma_pr), phase) in enumerate(itertools.product(distinct, range(mdp.n_phases))):
            P, terminal = mdp.transition(phase=phase), mdp.terminal[phase]
            if has["M"]:
                M[i] = representations.sr(P, gamma_sr, terminal)
            if has["M_ROW"]:
                sums[M_ROW, i] = representations.sr_row_sums(P, gamma_sr, terminal)
            if has["M_COL"]:
                sums[M_COL, i] = representations.sr_column_sums(P, gamma_sr, terminal)
            if has["F"]:
                sums[F_ROW, i] = representations.fr(P, gamma_sr, terminal).sum(axis=1)
            if has["N"] or has["N_COL"]:
                predecessors = representations.pr(P, gamma_pr, terminal)
                sums[N_COL, i] = predecessors.sum(axis=0)
                if has["N"]:
                    N[i] = predecessors.T
        return M.reshape(-1), np.zeros(0), N.reshape(-1), sums.reshape(4, -1)

    def _keep(self, lanes: slice, scratch: tuple[Any, ...], matrices: tuple[NDArray[np.float64], ...]) -> None:
        """Copy the final values that were asked for from where a group of lanes left them, then set M, F, N to 0."""
        S = self.mdp.n_states
        Q, greedy, rank = scratch
        for place, lane in enumerate(range(lanes.start, lanes.stop)):
            if "Q" in self.keep:
                values = Q.reshape(len(greedy) // S, S, -1)[place, :, : self.mdp.n_actions]
                self.finals["Q"][lane] = np.where(values > -np.inf, values, self.lanes["q0"][lane]).reshape(-1)
            (seen,) = np.nonzero(self.visits[lane])
            x = rank[place * S + seen] if len(rank) else seen
            for name, matrix in zip("MFN", matrices, strict=False):
                if name in self.keep:
                    final = self.finals[name][lane].reshape(S, S)
                    np.fill_diagonal(final, self.lanes["m0"][lane])  # for those never seen
                    values = matrix.reshape(len(greedy) // S, S, -1)[place][np.ix_(x, x)]
                    final[np.ix_(seen, seen)] = values.T if name == "N" else values
        for matrix in matrices:
            matrix[:] = 0.0

    def _trace(self, i: int) -> Trace:
        n, S = len(self.seeds), self.mdp.n_states
        rows = slice(i * n, (i + 1) * n)
        lanes = self.lanes[rows]
        kept: dict[str, Any] = {name: self.finals[name][rows].reshape(n, S, -1) for name in self.keep}
        if not self.settings[i].learned:
            kept.update(self._given(self.settings[i]))
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
            **kept,
        )

    def _given(self, s: Sarsa) -> dict[str, NDArray[np.float64]]:
        """The fixed matrices that were asked for, of the first phase; the same for every seed."""
        P, terminal = self.mdp.transition(), self.mdp.terminal[0]
        gamma_pr = s.gamma_sr if s.gamma_pr is None else s.gamma_pr
        matrices = {
            "M": lambda: representations.sr(P, s.gamma_sr, terminal),
            "F": lambda: representations.fr(P, s.gamma_sr, terminal),
            "N": lambda: representations.pr(P, gamma_pr, terminal),
        }
        return {name: np.broadcast_to(matrices[name](), (len(self.seeds), *P.shape)) for name in set(self.keep) - {"Q"}}

    def paths(self, i: int) -> dict[int, Trajectory]:
        """The recorded steps of settings i, by seed."""
        paths = {}
        for row, seed in enumerate(self.seeds, start=i * len(self.seeds)):
            steps = self.steps[row, : self.lanes["steps"][row]]
            columns = (np.ascontiguousarray(steps[name]) for name in STEP.names or ())
            paths[int(seed)] = Trajectory(*columns)
        return paths
