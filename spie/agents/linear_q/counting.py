"""Counts on features: how often a state was seen, an action tried, and what can be reached from there.

Over all features phi that were seen, of length 1, with as many first states of episodes as there were:

    Lambda = I + sum of phi phi^T             phi^T Lambda^-1 phi = 1 / (1 + n): an elliptical pseudo-count n
    G      = Lambda - gamma_SF sum over steps of phi(s) phi(s')^T       steps that ended an episode left out
    U(s)   = phi(s)^T G^-1 sum over steps of phi(s) (r + beta b)        the value of what was paid, looked ahead

Lambda^-1 is changed by the formula of Sherman and Morrison and computed again after RENEWED frames, so that its
relative error stays below RENEWED 2^-53 (1 + n). U is solved again every LOOKED_AHEAD steps, by elimination without
pivots: the symmetric parts of Lambda and G are positive definite. For optimism every action a has a Lambda of the
states in which it was tried; these are never computed again.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, no_type_check

from spie.engine.payment import standardised

if TYPE_CHECKING:  # compiled into the kernel
    from spie.agents.linear_q.kernel import add_outer, times
    from spie.engine.matrix import add_scaled, copy, dot

ACTIONS = 1  # of the kernel's constants
HAS_POTENTIAL = False
RENEWED = 4096  # frames
LOOKED_AHEAD = 64  # steps


class Counted(NamedTuple):
    """What a lane counts, with D numbers unless noted; Lambda and G start at the identity, the others at zero."""

    Lambda: Any  # [D * D]
    G: Any  # [D * D]
    work: Any  # [D * D]
    paid: Any  # sum of phi(s) paid
    u: Any  # U(s) = phi(s) . u
    z: Any
    scaled: Any
    unused: Any
    hope: Any  # [A] Q(s', .) with what actions rarely tried may be worth


@no_type_check
def see(matrix, phi, counted, matrices, D):
    """phi^T Lambda^-1 phi before phi counts; then it counts in that Lambda^-1."""
    z, scaled = counted.z, counted.scaled
    times(z, matrix, phi, matrices, D)
    length = dot(z, 0, phi, 0, D)
    for i in range(D):
        scaled[i] = -z[i] / (1.0 + length)
    add_outer(matrix, scaled, z, matrices, counted.unused, D)
    return length


@no_type_check
def count_frame(lane, phi, counted, matrices, D):
    """The same of a frame, which counts in Lambda as well."""
    length = see(ACTIONS + 1, phi, counted, matrices, D)
    for i in range(D):
        add_scaled(counted.Lambda, i * D, phi[i], phi, 0, D)
    lane.frames += 1
    if lane.frames % RENEWED == 0:
        matrices.waiting[ACTIONS + 1] = 0
        invert(matrices.A, (ACTIONS + 1) * D * D, counted.Lambda, counted.work, D)
    return length


@no_type_check
def invert(inverse, at, matrix, work, D):
    """The inverse of a positive definite matrix, by Gauss and Jordan."""
    copy(work, 0, matrix, 0, D * D)
    for i in range(D * D):
        inverse[at + i] = 0.0
    for i in range(D):
        inverse[at + i * D + i] = 1.0
    for k in range(D):
        over = 1.0 / work[k * D + k]
        for i in range(D):
            work[k * D + i] *= over
            inverse[at + k * D + i] *= over
        for j in range(D):
            if j != k:
                factor = -work[j * D + k]
                add_scaled(work, j * D, factor, work, k * D, D)
                add_scaled(inverse, at + j * D, factor, inverse, at + k * D, D)


@no_type_check
def moved_back(lane, phi, phi_next, paid, discount, counted, D):
    """gamma U(s') - U(s) of a step, of which the potential then takes note."""
    gain = lane.gamma * discount * dot(counted.u, 0, phi_next, 0, D) - dot(counted.u, 0, phi, 0, D)
    for i in range(D):
        add_scaled(counted.G, i * D, phi_next[i] - lane.gamma_sr * discount * phi[i], phi_next, 0, D)
    add_scaled(counted.paid, 0, paid, phi, 0, D)
    if lane.steps % LOOKED_AHEAD == 0:
        look_ahead(counted, D)
    return gain


@no_type_check
def look_ahead(counted, D):
    """G u = paid, by elimination."""
    work, u = counted.work, counted.u
    copy(work, 0, counted.G, 0, D * D)
    copy(u, 0, counted.paid, 0, D)
    for k in range(D):
        first = k // 8 * 8  # eight numbers at a time; those left of the diagonal are not read again
        for j in range(k + 1, D):
            factor = -work[j * D + k] / work[k * D + k]
            add_scaled(work, j * D + first, factor, work, k * D + first, D - first)
            u[j] += factor * u[k]
    for i in range(D):
        k = D - 1 - i
        total = u[k]
        for j in range(k + 1, D):
            total -= work[k * D + j] * u[j]
        u[k] = total / work[k * D + k]


@no_type_check
def hopeful(lane, q, phi, counted, matrices, D):
    """Q(s, .) + C / (1 + n(s, .))^2 in `hope`, and the largest of them."""
    best = -1e308
    for b in range(ACTIONS):
        times(counted.z, ACTIONS + 2 + b, phi, matrices, D)
        rare = dot(counted.z, 0, phi, 0, D)
        counted.hope[b] = q[b] + lane.optimism * rare * rare
        best = max(best, counted.hope[b])
    return best


HELPERS = (standardised, see, invert, count_frame, look_ahead, moved_back, hopeful)
