"""Q-learning on random Fourier features with an intrinsic reward from successor and predecessor features (Figure 4).

The shape is that of sarsa/kernel.py: one run of an agent's settings on one seed is a lane, and names in capitals are
filled in before the kernel is compiled.

Nearly all work is in the matrices Psi[a] and Xi. Each step needs one product with each, psi(s', a') and xi(s'), and
changes each by a rank-one term. Two things save most of it. What was computed for the target is, up to the step's own
change, what the next step needs: no product is done twice. And a change waits until WAITING of them are made in one
pass over the matrix, together with a product. `times`, `add_outer` and `flush` hide that: to all others, a change is
made at once.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, no_type_check

import numpy as np

from spie.agents.linear_q import counting
from spie.agents.linear_q.counting import count_frame, hopeful, moved_back, see
from spie.engine.lanes import mix
from spie.engine.payment import standardised
from spie.engine.policy import FIRST_TIE, HALF, LOW_HALF, MASKED, epsilon_greedy, greedy_actions

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.matrix import WAITING, add_scaled, copy, cosines, dot, norm_1, product, update_product

    def intrinsic_reward(**quantities: float) -> float: ...
    def step(x: Any, a: int) -> tuple[float, bool]: ...
    def observe(x: Any, observation: Any) -> None: ...


# What follows are a kernel's constants.
ACTIONS = 1
ALL_ACTIONS = np.uint64(1)
HAS_PSI = HAS_XI = HAS_PHI_NORM = HAS_VISITS = False  # what the reward, or the caller, asks for
SINGLE = False  # features, weights and matrices are float32
STANDARDISED = HAS_POTENTIAL = OPTIMISTIC = False  # how the bonus is paid, and what the policy sees (counting.py)
HAS_ELLIPSE = False  # visits are counted on the features, not in cells
EPISODIC = False  # all that a bonus is computed from is forgotten when an episode begins
GREEDY = False  # psi looks ahead through the best next action, else through the one that is taken
TO_UNIT = 2.0**-53

# These are the same in every kernel.
FIXED: dict[str, Any] = {
    "MASKED": MASKED,
    "FIRST_TIE": FIRST_TIE,
    "HALF": HALF,
    "LOW_HALF": LOW_HALF,
    "TO_UNIT": TO_UNIT,
    "RENEWED": counting.RENEWED,
    "LOOKED_AHEAD": counting.LOOKED_AHEAD,
}
VECTOR_CODE = {
    "spie.engine.matrix": (
        "WAITING", "add_scaled", "copy", "cosines", "dot", "norm_1", "product", "update_product",
    ),
    "spie.engine.simd": ("COUNT", "PICK"),
}  # fmt: skip

LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta")]
    + [("epsilon", np.uint64), ("word", np.uint64), ("stride", np.uint64), ("steps", np.int64), ("stopped", np.int64)]
    + [("features", np.int64), ("episodes", np.int64), ("frames", np.int64), ("optimism", np.float64)]
    + [(name, np.float64) for name in ("n_bonuses", "bonus_mean", "bonus_squares")],
    align=True,
)


class World(NamedTuple):
    """Numbers of a continuous task, and the features of a lane."""

    start_low: Any
    start_width: Any
    low: Any
    cells_per_unit: Any
    cells: int
    frequency: Any  # [n, D] of the features
    phase: Any  # [D]


class Vectors(NamedTuple):
    """What a lane has in hand, with D numbers unless noted; w and visits start at zero.

    From phi to w they are float32 where that is asked for.
    """

    x: Any  # the state
    observation: Any
    turns: Any  # float64, on the way to phi
    q: Any  # [A] Q(s, .)
    q_next: Any  # [A] Q(s', .)
    phi: Any
    phi_next: Any
    psi: Any  # psi(s, a)
    psi_next: Any
    xi: Any  # xi(s)
    xi_next: Any
    change: Any
    w: Any  # [A * D]
    visits: Any  # [cells]


class Deferred(NamedTuple):
    """Square matrices, Psi[0] ... Psi[A - 1] and Xi, and changes u p^T of them that wait. All start at zero.

    Then, where features are counted, Lambda^-1 of frames, and with optimism those of the tries of each action; these
    start at the identity.
    """

    A: Any  # [matrices * D * D]
    u: Any  # [matrices * WAITING * D]
    p: Any
    waiting: Any  # [matrices] how many


class Episodes(NamedTuple):
    """What a lane leaves of each episode."""

    lengths: Any
    rewards: Any
    bonuses: Any
    terminated: Any


@no_type_check
def linear_q_kernel(lanes, cap, episodes, tie_tolerance, task, vectors, matrices, counted, results, kept):
    """Q-learning with an intrinsic reward on one lane."""
    lane = lanes[0]
    phi, phi_next, q, q_next, w = vectors.phi, vectors.phi_next, vectors.q, vectors.q_next, vectors.w
    D = len(phi)
    for episode in range(episodes):
        # s = env.reset(); a ~ epsilon-greedy
        a = begin_episode(lane, tie_tolerance, task, vectors, matrices, counted, D)
        length, total_reward, total_bonus, done = 0, 0.0, 0.0, False
        while not done and length < cap:
            # s', r, done = env.step(a)
            r, done = step(vectors.x, a)
            observe(vectors.x, vectors.observation)
            featurise(phi_next, vectors, task.frequency, task.phase, D)
            length += 1
            lane.steps += 1
            lane.word += np.uint64(8) * lane.stride
            discount = 0.0 if done else 1.0

            # a' ~ epsilon-greedy on Q(s', .)
            best = values(q_next, phi_next, w, D)
            if OPTIMISTIC:
                see(ACTIONS + 2 + a, phi, counted, matrices, D)
                best = hopeful(lane, q_next, phi_next, counted, matrices, D)
            greedy = greedy_actions(counted.hope if OPTIMISTIC else q_next, np.uint64(0), ALL_ACTIONS, tie_tolerance)
            word = mix(lane.word)
            a_next = epsilon_greedy(word, lane.epsilon, greedy, ALL_ACTIONS)
            ahead = epsilon_greedy(word, np.uint64(0), greedy, ALL_ACTIONS) if GREEDY else a_next
            overlap = dot(phi, 0, phi_next, 0, D)

            # r = r + beta r_int, with Xi and Psi as they are after this step
            xi_norm_next = learn_Xi(lane, vectors, matrices, D)
            psi_norm = learn_Psi(lane, a, ahead, a_next, discount, overlap, vectors, matrices, D)
            bonus = bonus_of(lane, psi_norm, xi_norm_next, task, vectors, matrices, counted, D)
            paid = r + lane.beta * bonus
            if HAS_POTENTIAL:
                paid += moved_back(lane, phi, phi_next, paid, discount, counted, D)

            # w[a] = w[a] + alpha (r + gamma (1 - done) max Q(s', .) - Q(s, a)) phi(s)
            error = paid + lane.gamma * discount * best - q[a]
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
        results.lengths[episode], results.terminated[episode] = length, done
        results.rewards[episode], results.bonuses[episode] = total_reward, total_bonus
        lane.word += np.uint64(8) * lane.stride
    if kept:
        flush(matrices, vectors, D)


@no_type_check
def begin_episode(lane, tie_tolerance, task, vectors, matrices, counted, D):
    """A start, uniform in its box, and the first action."""
    if EPISODIC:
        start_over(lane, vectors, matrices, counted, D)
    x = vectors.x
    for i in range(len(x)):
        word = mix(lane.word + np.uint64(i + 1) * lane.stride)
        x[i] = task.start_low[i] + np.float64(word >> np.uint64(11)) * TO_UNIT * task.start_width[i]
    observe(x, vectors.observation)
    featurise(vectors.phi, vectors, task.frequency, task.phase, D)
    if HAS_ELLIPSE:
        count_frame(lane, vectors.phi, counted, matrices, D)
    elif HAS_VISITS:
        vectors.visits[cell_of(vectors.observation, task)] += 1
    if HAS_POTENTIAL:
        for i in range(D):
            add_scaled(counted.G, i * D, vectors.phi[i], vectors.phi, 0, D)
    values(vectors.q, vectors.phi, vectors.w, D)
    if OPTIMISTIC:
        hopeful(lane, vectors.q, vectors.phi, counted, matrices, D)
    greedy = greedy_actions(counted.hope if OPTIMISTIC else vectors.q, np.uint64(0), ALL_ACTIONS, tie_tolerance)
    a = epsilon_greedy(mix(lane.word), lane.epsilon, greedy, ALL_ACTIONS)
    if HAS_PSI:
        times(vectors.psi, a, vectors.phi, matrices, D)
    if HAS_XI:
        times(vectors.xi, ACTIONS, vectors.phi, matrices, D)
    return a


@no_type_check
def start_over(lane, vectors, matrices, counted, D):
    """Forget Psi, Xi, all counts and U; Q stays, and so does the scale of a standardised bonus."""
    for i in range(len(matrices.waiting)):
        matrices.waiting[i] = 0
    for i in range(len(matrices.A)):
        matrices.A[i] = 0.0
    for first in range((ACTIONS + 1) * D * D, len(matrices.A), D * D):  # inverses of what counts, at the identity
        for i in range(first, first + D * D, D + 1):
            matrices.A[i] = 1.0
    for square in (counted.Lambda, counted.G):
        for i in range(len(square)):
            square[i] = 1.0 if i % (D + 1) == 0 else 0.0
    for i in range(D):
        counted.paid[i] = counted.u[i] = 0.0
    for i in range(len(vectors.visits)):
        vectors.visits[i] = 0
    lane.frames = 0


@no_type_check
def featurise(phi, vectors, frequency, phase, D):
    """phi(s), of length 1; what pads it stays zero because its phase is a quarter turn and its frequency zero."""
    observation = vectors.observation
    turns = vectors.turns if SINGLE else phi
    for i in range(D):
        turns[i] = phase[i]
    for k in range(len(observation)):
        x = observation[k]
        for i in range(D):
            turns[i] += frequency[k, i] * x
    cosines(turns, 0, D)
    scale = 1.0 / math.sqrt(dot(turns, 0, turns, 0, D))
    for i in range(D):
        phi[i] = turns[i] * scale


@no_type_check
def values(q, phi, w, D):
    """Q(s, .) = w phi(s), and the largest of them."""
    best = -np.inf
    for b in range(ACTIONS):
        q[b] = dot(w, b * D, phi, 0, D)
        best = max(best, q[b])
    return best


@no_type_check
def cell_of(observation, task):
    """The cell of a grid over the space in which an observation lies; those outside count to the nearest."""
    cell = 0
    for k in range(len(observation)):
        along = (observation[k] - task.low[k]) * task.cells_per_unit[k]
        cell *= task.cells
        if along > 0.0:  # not where it is NaN, either
            cell += np.int64(min(along, task.cells - 1.0))
    return cell


@no_type_check
def learn_Xi(lane, vectors, matrices, D):
    """Xi = Xi + eta_PF (phi(s') + gamma_PF xi(s) - xi(s')) phi(s')^T; returns |xi(s')|."""
    xi, xi_next, phi_next, change = vectors.xi, vectors.xi_next, vectors.phi_next, vectors.change
    if not HAS_XI:
        return 0.0
    times(xi_next, ACTIONS, phi_next, matrices, D)
    for i in range(D):
        change[i] = lane.eta_pr * (phi_next[i] + lane.gamma_pr * xi[i] - xi_next[i])
        xi[i] = xi_next[i] + change[i]  # as |phi| = 1, xi(s') changes alike
    add_outer(ACTIONS, change, phi_next, matrices, xi_next, D)
    return norm_1(xi, 0, D)


@no_type_check
def learn_Psi(lane, a, ahead, a_next, discount, overlap, vectors, matrices, D):
    """Psi[a] = Psi[a] + eta (phi(s) + gamma_SF (1 - done) psi(s', a') - psi(s, a)) phi(s)^T; returns |psi(s, a)|."""
    phi, psi, psi_next, change = vectors.phi, vectors.psi, vectors.psi_next, vectors.change
    if not HAS_PSI:
        return 0.0
    times(psi_next, ahead, vectors.phi_next, matrices, D)
    for i in range(D):
        change[i] = lane.eta * (phi[i] + lane.gamma_sr * discount * psi_next[i] - psi[i])
        psi[i] += change[i]
    psi_norm = norm_1(psi, 0, D)
    add_outer(a, change, phi, matrices, psi, D)
    if ahead != a_next:
        times(psi, a_next, vectors.phi_next, matrices, D)
    else:  # psi(s', a') is known, but for the change just made
        copy(psi, 0, psi_next, 0, D)
        if a_next == a:
            add_scaled(psi, 0, overlap, change, 0, D)
    return psi_norm


@no_type_check
def bonus_of(lane, psi_norm, xi_norm_next, task, vectors, matrices, counted, D):
    """r_int of the step from s to s'; counts the arrival."""
    visits_next = 0.0
    if HAS_ELLIPSE:
        visits_next = 1.0 / count_frame(lane, vectors.phi_next, counted, matrices, D)
    elif HAS_VISITS:
        cell = cell_of(vectors.observation, task)
        vectors.visits[cell] += 1
        visits_next = np.float64(vectors.visits[cell])
    bonus = intrinsic_reward(
        psi_norm=psi_norm,
        xi_norm_next=xi_norm_next,
        phi_norm_next=norm_1(vectors.phi_next, 0, D) if HAS_PHI_NORM else 0.0,
        visits_next=visits_next,
    )
    return standardised(lane, bonus) if STANDARDISED else bonus


@no_type_check
def times(y, matrix, x, matrices, D):
    """y = A[matrix] x, the changes that wait for that matrix included; once there are enough, they are made."""
    A, u, p, waiting = matrices
    at, first = matrix * D * D, matrix * WAITING * D
    if waiting[matrix] == WAITING:
        update_product(y, 0, A, at, x, 0, u, first, p, first, D)
        waiting[matrix] = 0
    else:
        product(y, 0, A, at, x, 0, u, first, p, first, D)
        for k in range(first, first + waiting[matrix] * D, D):
            add_scaled(y, 0, dot(p, k, x, 0, D), u, k, D)


@no_type_check
def add_outer(matrix, change, x, matrices, unused, D):
    """A[matrix] += change x^T, as a change that waits."""
    u, p, waiting = matrices.u, matrices.p, matrices.waiting
    if waiting[matrix] == WAITING:
        times(unused, matrix, x, matrices, D)
    at = (matrix * WAITING + waiting[matrix]) * D
    copy(u, at, change, 0, D)
    copy(p, at, x, 0, D)
    waiting[matrix] += 1


@no_type_check
def flush(matrices, vectors, D):
    """Make all changes that wait."""
    nothing, unused = vectors.change, vectors.psi
    for i in range(D):
        nothing[i] = 0.0
    for matrix in range(ACTIONS + 1):
        while matrices.waiting[matrix] < WAITING:
            add_outer(matrix, nothing, vectors.phi, matrices, unused, D)
        times(unused, matrix, vectors.phi, matrices, D)


HELPERS = (
    mix, epsilon_greedy, greedy_actions, times, add_outer, flush, *counting.HELPERS, featurise, values, cell_of,
    start_over, begin_episode, learn_Xi, learn_Psi, bonus_of,
)  # fmt: skip
