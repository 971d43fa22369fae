"""SARSA with an intrinsic reward: Algorithm 1 of the paper, as it is compiled.

One run of an agent's settings on one seed is a *lane*. Names in capitals are constants that `specialise` fills in
before it compiles, and `intrinsic_reward` is the reward that the settings name. Everything here is a plain function.
"""

from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from spie.agents.sarsa.layout import FINISHED, RUNNING, STOPPED
from spie.engine import sparse_rows
from spie.engine.lanes import mix
from spie.engine.policy import HALF, LOW_HALF, epsilon_greedy, greedy_actions, interval
from spie.engine.sparse_rows import append, clear, entry, update_sparse_row, with_room

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import update_row, update_row_and_sums

    def intrinsic_reward(**quantities: float) -> float: ...


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
M_COL, M_ROW, F_ROW, N_COL = 0, 1, 2, 3  # rows of `sums`: sums over columns of M, rows of M, rows of F, columns of N

# These are the same in every kernel.
FIXED: dict[str, Any] = {
    "HALF": HALF,
    "LOW_HALF": LOW_HALF,
    "RUNNING": RUNNING,
    "FINISHED": FINISHED,
    "STOPPED": STOPPED,
    "M_COL": M_COL,
    "M_ROW": M_ROW,
    "F_ROW": F_ROW,
    "N_COL": N_COL,
    "NONE": sparse_rows.NONE,
    "FIRST_BLOCK": sparse_rows.FIRST_BLOCK,
}
VECTOR_CODE = {"spie.engine.simd": ("COUNT", "PICK", "largest", "not_below", "update_row", "update_row_and_sums")}


@no_type_check
def sarsa_kernel(lanes, together, horizon, cap, episodes, tolerance, mdp, tables, pool, kept, records):
    """Algorithm 1 on every lane. Those of a group advance in turn, so that the processor overlaps their waiting."""
    S = STATES if STATES > 0 else mdp.n_states
    W = (S + 7) // 8 * 8 if LEARNED else S  # from one row of a matrix to the next
    bonus = 0.0
    for first in range(0, len(lanes), together):
        n = min(together, len(lanes) - first)
        for place in range(n):  # s = env.reset(); M = 0; Q = 0
            begin(lanes[first + place], first, place, S, W, mdp, tables, pool, records)
        running, shot = n, 0
        for t in range(1, horizon + 1):
            for place in range(n):
                lane = lanes[np.uint64(first + place)]
                if lane.over != RUNNING:
                    continue
                s = np.int64(lane.state)

                # theta ~ U(0, 1); a ~ U(A) where theta < epsilon, else a = argmax Q[s, :]
                a = draw_action(mix(lane.word), lane, place, s, S, mdp, tables)
                if not RESAMPLE and lane.action < ACTIONS:
                    a = np.int64(lane.action)
                if REPLAYED:
                    a = replayed_action(first + place, s, t, horizon, mdp, records)

                # s', r, done = env.step(a); discount = 1 - done
                s_next, r, discount = env_step(lane, s, a, S, mdp)
                arrive(lane, first, place, s_next, t, S, tables, records)
                at = place_of(lane, place, s, s_next, S, W, mdp, tables)
                if BONUS_FIRST:
                    bonus = bonus_of(first, at, tables, pool, records)

                # M[s, :] = M[s, :] + eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), likewise F[s, :] and N[:, s']
                if LEARNED:
                    if SPARSE:
                        pool = with_room(pool, s, s_next)
                    learn_M(lane, at, discount, tables, pool, tolerance)
                    learn_F(lane, at, discount, tables, pool, tolerance)
                    learn_N(lane, at, tables, pool, tolerance)
                # r = r + beta r_int
                if not BONUS_FIRST:
                    bonus = bonus_of(first, at, tables, pool, records)
                if RECORDED:
                    record(records.path[(first + place) * horizon + t - 1], s, a, s_next, r, bonus)
                lane.total_reward += r
                # theta' ~ U(0, 1); a' ~ U(A) where theta' < epsilon, else a' = argmax Q[s', :]
                a_next = draw_action(mix(lane.word + np.uint64(2) * lane.stride), lane, place, s_next, S, mdp, tables)

                # Q[s, a] = Q[s, a] + alpha (r + beta r_int + gamma (1 - done) Q[s', a'] - Q[s, a]); s = s'
                if not learn_Q(lane, place, s, a, r, bonus, discount, s_next, a_next, S, tables):
                    stop(lane, t)
                    running -= 1
                    continue
                if ENDS:
                    end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records)
                    running -= lane.over != RUNNING
                lane.word += np.uint64(4) * lane.stride
            for place in range(n):
                renew_greedy(lanes[np.uint64(first + place)], place, S, mdp, tables)
            if shot < len(records.snapshot_steps):
                shot = snapshot(shot, t, running, first, n, S, records)
            if running == 0:
                break
        for place in range(n):
            end(lanes[first + place], place, horizon, S, W, kept, tables)


@no_type_check
def draw_action(word, lane, place, s, S, mdp, tables):
    """An action for state s, by a random word."""
    legal = mdp.available[s] if MASKED else ALL_ACTIONS
    return epsilon_greedy(word, lane.epsilon, tables.greedy[np.uint64(place * S + s)], legal)


@no_type_check
def replayed_action(l, s, t, horizon, mdp, records):
    """The action of a replay; the first that is not available is noted, and leads nowhere."""
    a = np.int64(records.replay[l * horizon + t - 1])
    if MASKED and records.refused[2 * l] == 0 and (mdp.available[s] >> np.uint64(a)) & np.uint64(1) == np.uint64(0):
        records.refused[2 * l], records.refused[2 * l + 1] = t, s
    return a


@no_type_check
def env_step(lane, s, a, S, mdp):
    """s', r, and 1 - done."""
    K = SUCCESSORS
    i = (s * ACTIONS + a) * K
    if K > 1:
        word = mix(lane.word + lane.stride)
        for k in range(K - 1):
            i += word >= mdp.threshold[(s * ACTIONS + a) * K + k]
    s_next = np.int64(mdp.following[i])
    discount = 1.0
    if ENDS:
        i += np.int64(lane.phase) * S * ACTIONS * K
        discount = 0.0 if mdp.terminal[lane.phase * S + s_next] else 1.0
    return s_next, mdp.rewards[i], discount


@no_type_check
def arrive(lane, first, place, s, t, S, tables, records):
    """Count an arrival in s; a state that is new gets the next row of M, F and N."""
    i = np.uint64(first * S + (place * S + s))  # unsigned, which saves a check for < 0
    records.visits[i] += 1
    if records.visits[i] == 1:
        records.first_visit[i] = t
        if ORDERED:
            tables.rank[place * S + s] = lane.seen
        lane.seen += 1


@no_type_check
def place_of(lane, place, s, s_next, S, W, mdp, tables):
    """Where a step's numbers lie: the place m among the matrices, s, s', and their rows x, x' of M, F and N."""
    m, x, x_next = place, s, s_next
    if ORDERED:
        x = np.int64(tables.rank[np.uint64(place * S + s)])
        x_next = np.int64(tables.rank[np.uint64(place * S + s_next)])
    if not LEARNED:
        m = np.int64(lane.table * mdp.n_phases + lane.phase)
    return place, m, s, s_next, x, x_next, S, W


@no_type_check
def bonus_of(first, at, tables, pool, records):
    """r_int of the step from s to s'."""
    place, m, s, s_next, x, x_next, S, W = at
    sums = tables.sums
    M_next = N_next = 0.0
    if HAS_M:
        M_next = entry(pool, s, s_next) if SPARSE else tables.M[(m * S + x) * W + x_next]
    if HAS_N:
        N_next = entry(pool, 2 * S + s_next, s) if SPARSE else tables.N[(m * S + x_next) * W + x]
    return intrinsic_reward(
        M_next=M_next,
        M_row=sums[M_ROW, m * W + s] if HAS_M_ROW else 0.0,
        M_col_next=sums[M_COL, m * W + x_next] if HAS_M_COL else 0.0,
        F_row=sums[F_ROW, m * W + s] if HAS_F else 0.0,
        F_row_next=sums[F_ROW, m * W + s_next] if HAS_F else 0.0,
        N_next=N_next,
        N_col_next=sums[N_COL, m * W + s_next] if HAS_N_COL else 0.0,
        visits=records.visits[np.uint64(first * S + (place * S + s))],
        visits_next=records.visits[np.uint64(first * S + (place * S + s_next))],
    )


@no_type_check
def learn_M(lane, at, discount, tables, pool, tolerance):
    """M[s, :] += eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), and the sums of M."""
    place, _, s, s_next, x, x_next, S, W = at
    M, sums = tables.M, tables.sums
    eta, gamma = lane.eta, lane.gamma_sr * discount
    if HAS_M_ROW:  # obeys the rule of its entries: no matrix needed
        i = place * W + s
        sums[M_ROW, i] += eta * (1.0 + gamma * sums[M_ROW, place * W + s_next] - sums[M_ROW, i])
    if HAS_M and SPARSE:
        update_sparse_row(pool, 0, s, s_next, eta, gamma, tolerance, sums)
    if HAS_M and not SPARSE:
        # 1(s) concerns one entry, set apart, so that the pass over the row need not look for it
        row, next_row, sum_ = (place * S + x) * W, (place * S + x_next) * W, place * W + x
        change = eta * (1.0 + gamma * M[next_row + x] - M[row + x])
        M_s, M_sum = M[row + x] + change, sums[M_COL, sum_] + change
        update_M(M, row, next_row, eta, gamma, sums, place * W, width_of(lane, W))
        M[row + x] = M_s
        if HAS_M_COL:
            sums[M_COL, sum_] = M_sum


@no_type_check
def learn_F(lane, at, discount, tables, pool, tolerance):
    """F[s, :] += eta (1(s) + gamma_SR (1 - done) (1 - 1(s)) F[s', :] - F[s, :]), and the sum of the row."""
    place, _, s, s_next, x, x_next, S, W = at
    F, sums = tables.F, tables.sums
    eta, gamma = lane.eta, lane.gamma_sr * discount
    if HAS_F and SPARSE:
        sums[F_ROW, s] += update_sparse_row(pool, 1, s, s_next, eta, gamma, tolerance, sums)
    if HAS_F and not SPARSE:
        row, next_row, i = (place * S + x) * W, (place * S + x_next) * W, place * W + s
        later = sums[F_ROW, place * W + s_next] - F[next_row + x]  # F counts s once, now, and not again later
        sums[F_ROW, i] += eta * (1.0 + gamma * later - sums[F_ROW, i])
        F_s = F[row + x] + eta * (1.0 - F[row + x])
        update(F, row, next_row, eta, gamma, width_of(lane, W))
        F[row + x] = F_s


@no_type_check
def learn_N(lane, at, tables, pool, tolerance):
    """N[:, s'] += eta_PR (1(s') + gamma_PR N[:, s] - N[:, s']), and the sum of the column."""
    place, _, s, s_next, x, x_next, S, W = at
    N, sums = tables.N, tables.sums
    eta, gamma = lane.eta_pr, lane.gamma_pr
    if HAS_N_COL:  # obeys the rule of its entries: no matrix needed
        i = place * W + s_next
        sums[N_COL, i] += eta * (1.0 + gamma * sums[N_COL, place * W + s] - sums[N_COL, i])
    if HAS_N and SPARSE:
        update_sparse_row(pool, 2, s_next, s, eta, gamma, tolerance, sums)
    if HAS_N and not SPARSE:
        row, next_row = (place * S + x) * W, (place * S + x_next) * W
        N_s = N[next_row + x_next]
        N_s += eta * (1.0 + gamma * N[row + x_next] - N_s)
        update(N, next_row, row, eta, gamma, width_of(lane, W))
        N[next_row + x_next] = N_s


@no_type_check
def width_of(lane, W):
    """How much of a row is not zero, in eights."""
    return (np.int64(lane.seen) + 7) // 8 * 8 if ORDERED else W


@no_type_check
def update(matrix, row, next_row, eta, gamma, width):
    """matrix[row:] += eta (gamma matrix[next_row:] - matrix[row:]), that many entries."""
    for j in range(0, width, 8):
        update_row(matrix, row + j, next_row + j, eta, gamma)


@no_type_check
def update_M(M, row, next_row, eta, gamma, sums, first_sum, width):
    """The same, where asked for with the change added to the sums of the columns."""
    for j in range(0, width, 8):
        if HAS_M_COL:
            update_row_and_sums(M, row + j, next_row + j, eta, gamma, sums, first_sum + j)
        else:
            update_row(M, row + j, next_row + j, eta, gamma)


@no_type_check
def learn_Q(lane, place, s, a, r, bonus, discount, s_next, a_next, S, tables):
    """Q[s, a] += alpha (r + beta r_int + gamma (1 - done) Q[s', a'] - Q[s, a]); s = s'.

    Returns whether all is finite; if not, Q stays as it is, and the bonus is not counted.
    """
    Q = tables.Q
    q = np.uint64(place * S + s) * Q_STEP + np.uint64(a)
    q_next = np.uint64(place * S + s_next) * Q_STEP + np.uint64(a_next)
    error = r + lane.beta * bonus + lane.gamma * discount * Q[q_next] - Q[q]
    if not np.isfinite(error):
        return False
    Q[q] += lane.alpha * error
    lane.total_bonus += bonus
    lane.left = s
    lane.state = s_next
    if not RESAMPLE:
        lane.action = a_next
    return True


@no_type_check
def stop(lane, t):
    """A lane whose numbers are no longer finite goes no further."""
    lane.over = STOPPED
    lane.steps = t


@no_type_check
def renew_greedy(lane, place, S, mdp, tables):
    """argmax Q[s, :] of the state left. The new Q is waited for, so the lanes do it together, after their steps."""
    s = np.int64(lane.left)
    legal = mdp.available[s] if MASKED else ALL_ACTIONS
    here = np.uint64(place * S + s)
    tables.greedy[here] = greedy_actions(tables.Q, here * Q_STEP, legal, lane.tie_tolerance)


@no_type_check
def record(step, s, a, s_next, r, bonus):
    step.state, step.action, step.next_state, step.reward, step.bonus = s, a, s_next, r, bonus


@no_type_check
def end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records):
    """Where an episode ends, by itself or at its cap, the next begins; after the last one the lane is over."""
    lane.steps = t
    lane.length += 1
    if discount == 0.0 or lane.length == cap:
        end_episode(lane, first + place, discount, episodes, mdp, records)
        if lane.over == RUNNING:
            reset(lane, first, place, t, mix(lane.word + np.uint64(3) * lane.stride), S, mdp, tables, records)


@no_type_check
def end_episode(lane, l, discount, episodes, mdp, records):
    if episodes >= 0:
        records.episode_steps[l * episodes + lane.episode] = lane.length
    lane.truncated += discount != 0.0
    lane.episode += 1
    lane.length = 0
    lane.action = ACTIONS  # nothing to carry over
    if mdp.episodes_per_phase > 0:
        lane.phase = lane.episode // mdp.episodes_per_phase % mdp.n_phases
    if lane.episode == episodes:
        lane.over = FINISHED


@no_type_check
def reset(lane, first, place, t, word, S, mdp, tables, records):
    """The first state of an episode, drawn by a random word."""
    s = np.int64(mdp.starts[interval(mdp.start_threshold, word)])
    lane.state = s
    arrive(lane, first, place, s, t, S, tables, records)


@no_type_check
def snapshot(shot, t, running, first, n, S, records):
    """Note the visits at the steps asked for, or the last ones where all lanes are over; how many are noted."""
    steps = records.snapshot_steps
    while shot < len(steps) and (t == steps[shot] or running == 0):
        for l in range(first, first + n):
            for s in range(S):
                records.snapshots[(l * len(steps) + shot) * S + s] = records.visits[l * S + s]
        shot += 1
    return shot


@no_type_check
def begin(lane, first, place, S, W, mdp, tables, pool, records):
    """Q = q0; M, F and N = m0 times the identity; the first state."""
    lane.seen = 0
    lane.action = ACTIONS
    for s in range(S):
        legal = mdp.available[s] if MASKED else ALL_ACTIONS
        q = (place * S + s) * Q_WIDTH
        for a in range(Q_WIDTH):
            taken = Q_WIDTH == ACTIONS or (legal >> np.uint64(a)) & np.uint64(1)
            tables.Q[q + a] = lane.q0 if taken else -np.inf
        tables.greedy[place * S + s] = greedy_actions(tables.Q, np.uint64(q), legal, lane.tie_tolerance)
    if LEARNED:
        begin_matrices(lane, place, S, W, tables, pool)
    reset(lane, first, place, 0, mix(lane.word - lane.stride), S, mdp, tables, records)


@no_type_check
def begin_matrices(lane, place, S, W, tables, pool):
    """M, F and N = m0 times the identity, and their sums."""
    if SPARSE:
        clear(pool)
    for i in range(place * W, (place + 1) * W):
        for which in range(4):
            tables.sums[which, i] = lane.m0
    if lane.m0 != 0.0:
        for x in range(S):
            if SPARSE:
                for matrix in range(3):
                    append(pool, matrix * S + x, x, lane.m0)
            i = (place * S + x) * W + x
            if HAS_M and not SPARSE:
                tables.M[i] = lane.m0
            if HAS_F and not SPARSE:
                tables.F[i] = lane.m0
            if HAS_N and not SPARSE:
                tables.N[i] = lane.m0


@no_type_check
def end(lane, place, horizon, S, W, kept, tables):
    """Count the steps, and leave M, F and N at zero for the next lane, unless they are kept."""
    if not ENDS and lane.over == RUNNING:
        lane.steps = horizon
    if LEARNED and not SPARSE and not kept:
        seen = np.int64(lane.seen) if ORDERED and lane.m0 == 0.0 else S
        for x in range(seen):
            row = (place * S + x) * W
            for i in range(row, row + (seen + 7) // 8 * 8):
                if HAS_M:
                    tables.M[i] = 0.0
                if HAS_F:
                    tables.F[i] = 0.0
                if HAS_N:
                    tables.N[i] = 0.0


HELPERS = (
    mix, interval, epsilon_greedy, greedy_actions, append, entry, clear, with_room, update_sparse_row,
    draw_action, replayed_action, env_step, arrive, place_of, bonus_of, width_of, update, update_M,
    learn_M, learn_F, learn_N, learn_Q, stop, renew_greedy, record, end_episode, reset, end_step, snapshot,
    begin_matrices, begin, end,
)  # fmt: skip
