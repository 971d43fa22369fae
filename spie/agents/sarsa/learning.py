"""What a step teaches: M, F and N, the intrinsic reward that is read off them, and Q. Compiled into the kernel."""

from typing import TYPE_CHECKING, no_type_check

import numpy as np

from spie.agents.sarsa import payment
from spie.agents.sarsa.layout import STOPPED
from spie.agents.sarsa.options import (
    BY_SR,
    ENDS,
    F_ROW,
    HAS_EPISODE,
    HAS_F,
    HAS_M,
    HAS_M_COL,
    HAS_M_ROW,
    HAS_N,
    HAS_N_COL,
    LEARNED,
    M_COL,
    M_ROW,
    N_COL,
    ORDERED,
    POTENTIAL,
    Q_STEP,
    RESAMPLE,
    SPARSE,
    STANDARDISED,
)  # fmt: skip
from spie.agents.sarsa.payment import closest_so_far, shaped
from spie.engine.payment import standardised
from spie.engine.sparse_rows import entry, update_sparse_row

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import update_row, update_row_and_sums

    def intrinsic_reward(**quantities: float) -> float: ...


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
def bonus_of(lane, first, at, tables, pool, records):
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
        F_episode_next=closest_so_far(lane, at, tables, pool) if HAS_EPISODE else 0.0,
    )


@no_type_check
def learn_M(lane, at, discount, tables, pool, tolerance):
    """M[s, :] += eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), and the sums of M.

    Where columns of M are counts, an end counts, too: nothing follows it.
    """
    learn_row_of_M(lane, at, discount, tables, pool, tolerance)
    if BY_SR and ENDS and discount == 0.0:
        place, m, _, s_next, _, x_next, S, W = at
        learn_row_of_M(lane, (place, m, s_next, s_next, x_next, x_next, S, W), 0.0, tables, pool, tolerance)


@no_type_check
def learn_row_of_M(lane, at, discount, tables, pool, tolerance):
    """One row, and the sums."""
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
def learn_Q(lane, place, t, s, a, r, bonus, discount, s_next, a_next, ahead, S, mdp, tables):
    """Q[s, a] += alpha (r + beta r_int + gamma (1 - done) Q[s', a'] - Q[s, a]); s = s'.

    In place of r_int stands what is paid for it (payment.py).
    A lane whose numbers are no longer finite goes no further: Q stays as it is, and the bonus is not counted.
    """
    Q = tables.Q
    q = np.uint64(place * S + s) * Q_STEP + np.uint64(a)
    paid = r + lane.beta * (standardised(lane, bonus) if STANDARDISED else bonus)
    error = paid + lane.gamma * discount * ahead - Q[q]
    if POTENTIAL:
        error += shaped(lane, place, s, a, s_next, paid, discount, S, mdp, tables)
    if not np.isfinite(error):
        lane.over = STOPPED
        lane.steps = t
    else:
        Q[q] += lane.alpha * error
        lane.total_bonus += bonus
        lane.left = s
        lane.state = s_next
        if not RESAMPLE:
            lane.action = a_next


HELPERS = (
    *payment.HELPERS, place_of, bonus_of, width_of, update, update_M, learn_row_of_M, learn_M, learn_F, learn_N,
    learn_Q,
)  # fmt: skip
