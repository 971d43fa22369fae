"""Successor (M), first-occupancy (F) and predecessor (N) representation of a Markov chain, closed form beside TD rule.

P [S, S] is the chain under a policy, dense or SciPy sparse; every row sums to 1. `terminal`, a bool mask [S], marks the
states where an episode ends; the row of such a state is the distribution of the next start, so that P is stochastic.
A TD rule maps one transition to the error of the row (M, F) or column (N) that it changes and leaves its input alone;
the caller adds `eta` times that error. `discount` is 0 where the episode ended.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.errors import as_array, is_number, told

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Chain: TypeAlias = Any  # P [S, S], dense or SciPy sparse

DENSE_STATES = 5000  # where the answer is a dense matrix, a sparse P is taken up to this number of states
FILL = 50_000_000  # entries that eliminating the states of a sparse chain may create: 0.6 GB


def sr(P: Chain, gamma: float, terminal: Mask | None = None) -> Array:
    """Successor representation M of the chain P, shape [S, S].

        M = (I - gamma P D)^-1,  D = diag(1 - terminal)          (eqs 3, 19)

    Row s holds the discounted visits to every state from s on. Nothing follows the end of an episode: M[s, end] = 0
    for every other s, and the row of the end is its own unit vector.

    P: the chain [S, S] under a policy, dense or SciPy sparse. gamma: discount, below 1. terminal: mask of ends [S].
    Raises ValueError where rows of P do not sum to 1 or gamma is not in [0, 1).

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])  # to the other state, and back
    >>> spie.sr(swap, gamma=0.5).round(3).tolist()  # 1 + 1/4 + 1/16 + ... = 4/3 visits to itself
    [[1.333, 0.667], [0.667, 1.333]]
    """
    return np.ascontiguousarray(_inverse(gamma * _dense(_continuing(P, gamma, terminal)).T).T)


def td_sr(M: Array, s: int, s_next: int, gamma: float, discount: float = 1.0) -> Array:
    """TD error of row s of M, shape [S].

    1(s) + gamma discount M[s', :] - M[s, :]                     (eq. 4)

    M: what is known so far [S, S]. s, s_next: a step. gamma: discount. discount: 0 where the step ended the episode.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> td_error = spie.td_sr(spie.sr(swap, 0.5), s=0, s_next=1, gamma=0.5)
    >>> bool(np.allclose(td_error, 0))  # M in closed form is where learning ends
    True
    """
    error: Array = gamma * discount * M[s_next] - M[s]
    error[s] += 1
    return error


def fr(P: Chain, gamma: float, terminal: Mask | None = None) -> Array:
    """First-occupancy representation F of the chain P, shape [S, S].

        F[s, s'] = M[s, s'] / M[s', s']                          (eq. 5)

    F[s, s'] is the mean of gamma^t, t the time of the first visit to s' from s.

    Arguments and errors are those of `sr`.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> spie.fr(swap, gamma=0.5).round(3).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    M = sr(P, gamma, terminal)
    return M / M.diagonal()


def td_fr(F: Array, s: int, s_next: int, gamma: float, discount: float = 1.0) -> Array:
    """TD error of row s of F, shape [S].

    1(s) + gamma discount (1 - 1(s)) F[s', :] - F[s, :]          (eq. 6)

    Arguments are those of `td_sr`.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> bool(np.allclose(spie.td_fr(spie.fr(swap, 0.5), s=0, s_next=1, gamma=0.5), 0))
    True
    """
    error: Array = gamma * discount * F[s_next] - F[s]
    error[s] = 1 - F[s, s]
    return error


def stationary(P: Chain) -> Array:
    """Stationary distribution z of the chain P, shape [S].

        z P = z,  sum z = 1

    Also for periodic chains; a state that is left for good gets 0. A chain with two closed classes has no unique z and
    is refused. States are eliminated without a subtraction (Grassmann, Taksar and Heyman), so the smallest entry is as
    accurate as the largest. 10^5 states take below a second in a maze, some 15 in an open field.

    P: the chain [S, S], dense or SciPy sparse. Raises ValueError where there is no unique z.

    >>> spie.stationary(np.array([[0.9, 0.1], [0.3, 0.7]])).round(3).tolist()
    [0.75, 0.25]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    P = csr_array(_chain(P))
    n_classes, label = connected_components(P, connection="strong")
    s, s_next = P.nonzero()
    closed = np.ones(n_classes, dtype=bool)
    closed[label[s[label[s] != label[s_next]]]] = False
    recurrent = np.flatnonzero(closed[label])
    if closed.sum() > 1:
        first = recurrent[0]
        second = recurrent[label[recurrent] != label[first]][0]
        raise ValueError(
            f"P has no unique stationary distribution: states {first} and {second} are in two closed classes; "
            "pass the chain of one of them"
        )
    z = np.zeros(len(label))
    z[recurrent] = _stationary_irreducible(P[recurrent][:, recurrent])
    return z


def reverse(P: Chain, terminal: Mask | None = None) -> Chain:
    """Retrospective transitions P~ of the chain P, shape [S, S], sparse for a sparse P.

        P~[s, s'] = P[s, s'] z(s) / z(s')                        (eq. 20)

    P~[s, s'] is the probability that s came just before s': columns sum to 1. With `terminal`, a new start is no
    transition: rows of ends are 0, and z(s') is replaced by the flow into s' from the other states. A state that is
    entered by starts alone has no predecessor: its column is 0.

    P, terminal: as for `sr`. Raises ValueError where some state has stationary probability 0.

    >>> spie.reverse(np.array([[0.9, 0.1], [0.3, 0.7]])).round(3).tolist()
    [[0.9, 0.3], [0.1, 0.7]]
    """
    P = _chain(P)
    z = _positive_stationary(P)
    flow = z * _going_on(terminal, len(z))
    inflow = flow @ P
    return _scaled(P, flow, np.divide(1, inflow, out=np.zeros_like(z), where=inflow > 0))


def pr(P: Chain, gamma: float, terminal: Mask | None = None) -> Array:
    """Predecessor representation N of the chain P, shape [S, S].

        N = (I - gamma P~)^-1                                    (eqs 11, 19)
          = diag(z) M diag(z)^-1  without `terminal`             (eq. 13)

    Column s' holds the discounted visits to every state up to s'. Needs a chain whose stationary z is positive.

    P, gamma, terminal: as for `sr`. Raises ValueError where some state has stationary probability 0.

    >>> P = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> N, M, z = spie.pr(P, 0.5), spie.sr(P, 0.5), spie.stationary(P)
    >>> bool(np.allclose(N * z, z[:, None] * M))
    True
    """
    if terminal is None:
        M = sr(P, gamma)
        z = _positive_stationary(P)
        return z[:, None] * M / z
    _check_gamma(gamma)
    return _inverse(gamma * reverse(_dense(_chain(P)), terminal))


def td_pr(N: Array, s: int, s_next: int, gamma: float) -> Array:
    """TD error of column s' of N, shape [S]; no discount, for seen from the end of an episode its past is real.

    1(s') + gamma N[:, s] - N[:, s']                             (eq. 12)

    N: what is known so far [S, S]. s, s_next: a step. gamma: discount.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> bool(np.allclose(spie.td_pr(spie.pr(swap, 0.5), s=0, s_next=1, gamma=0.5), 0))
    True
    """
    error: Array = gamma * N[:, s] - N[:, s_next]
    error[s_next] += 1
    return error


def dr(P: Chain, reward: Array, temperature: float = 1.0, terminal: Mask | None = None) -> Array:
    """Default representation Z of the chain P of a default policy, shape [S, S] (Piray and Daw 2021).

        Z = (diag(exp(-r / temperature)) - P D)^-1,  D = diag(1 - terminal) on the rows

    Z[s, s'] sums, over all walks from s to s', their probability times exp(the rewards r [S] of the states on it, over
    the temperature): states behind a cost are far. Where r is the same everywhere and exp(r / temperature) = gamma, it
    is gamma M. The rows of a terminal state lead nowhere. Needs rewards for which these sums are finite: below 0, or
    not far above where the walk ends soon.

    P, terminal: as for `sr`. Raises ValueError where the sums are not finite.

    >>> swap = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> Z = spie.dr(swap, reward=np.full(2, np.log(0.5)))
    >>> bool(np.allclose(Z, 0.5 * spie.sr(swap, gamma=0.5)))
    True
    """
    P = _dense(_chain(P))
    reward = np.broadcast_to(np.asarray(reward, dtype=np.float64), len(P))
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature:g}; give a number above 0")
    if not np.isfinite(reward).all():
        raise ValueError(f"the reward of state {int(np.argmin(np.isfinite(reward)))} is not finite")
    weight = np.exp(reward / temperature)
    walk = weight[:, None] * P * _going_on(terminal, len(P))[:, None]  # Z = R (I + P D Z), R = diag(weight)
    radius = np.abs(np.linalg.eigvals(walk)).max()
    if not radius < 1 - 1e-12:
        raise ValueError(
            f"the rewards are too high: walks of the default policy add up to infinity (spectral radius {radius:.4g}, "
            "not below 1); give every state a cost"
        )
    Z: Array = np.linalg.solve(np.eye(len(P)) - walk, np.diag(weight))
    return Z


def td_dr(Z: Array, s: int, s_next: int, reward: float, temperature: float = 1.0, discount: float = 1.0) -> Array:
    """TD error of row s of Z, shape [S]; `reward` is that of state s, discount 0 where s ends the episode.

    exp(r(s) / temperature) (1(s) + discount Z[s', :]) - Z[s, :]          (Tse et al. 2025)

    Z: what is known so far [S, S]. s, s_next: a step.

    >>> swap, r = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([-1.0, -2.0])
    >>> bool(np.allclose(spie.td_dr(spie.dr(swap, r), s=0, s_next=1, reward=-1.0), 0))
    True
    """
    target: Array = discount * Z[s_next]
    target[s] += 1
    error: Array = np.exp(reward / temperature) * target - Z[s]
    return error


def sr_row_sums(P: Chain, gamma: float, terminal: Mask | None = None) -> Array:
    """Row sums w of M, shape [S], without M: a sparse P stays sparse.

        w = 1 + gamma P D w

    Relative accuracy about 1e-15 / (1 - gamma).

    Arguments and errors are those of `sr`.

    >>> spie.sr_row_sums(np.array([[0.9, 0.1], [0.3, 0.7]]), gamma=0.5).round(3).tolist()  # 1 / (1 - gamma) each
    [2.0, 2.0]
    """
    return _sum_of_powers(gamma * _continuing(P, gamma, terminal))


def sr_column_sums(P: Chain, gamma: float, terminal: Mask | None = None) -> Array:
    """Column sums c of M, shape [S], without M: a sparse P stays sparse.

        c = 1 + gamma D P^T c

    Relative accuracy about 1e-15 / (1 - gamma).

    Arguments and errors are those of `sr`.

    >>> P = np.array([[0.9, 0.1], [0.3, 0.7]])
    >>> bool(np.allclose(spie.sr_column_sums(P, gamma=0.5), spie.sr(P, gamma=0.5).sum(axis=0)))
    True
    """
    return _sum_of_powers(gamma * _continuing(P, gamma, terminal).T)


def _inverse(A: Array) -> Array:
    """(I - A)^-1 for A >= 0 with column sums below 1: no pivot moves and nothing cancels, so no entry is negative."""
    identity = np.eye(len(A))
    return np.linalg.solve(identity - A, identity).astype(np.float64, copy=False)


def _sum_of_powers(A: Chain) -> Array:
    """(I - A)^-1 1 for A >= 0, the sum of all A^t 1."""
    ones = np.ones(A.shape[0])
    if isinstance(A, np.ndarray):
        return np.linalg.solve(np.diag(ones) - A, ones)
    # Some 35 / (1 - gamma) products on any graph; factors of I - A are faster on mazes, but fill up on tangled chains.
    # The loop ends: rounding preserves order, so w never falls, and it is bounded.
    A, w, before = A.tocsr(), ones, 0 * ones
    while (w != before).any():
        w, before = 1 + A @ w, w
    return w


def _stationary_irreducible(P: Chain) -> Array:
    """Stationary distribution of an irreducible csr P: unlinked states go together, cheapest first, the last dense."""
    random = np.random.default_rng(0)
    eliminated = []
    with np.errstate(all="ignore"):
        while (S := P.shape[0]) > 500 and P.nnz < S * S / 8:
            fill = np.diff(P.indptr) * np.bincount(P.indices, minlength=S)
            rank = np.empty(S, dtype=np.int64)
            rank[np.lexsort((random.random(S), fill))] = np.arange(S)
            out = rank <= np.minimum.reduceat(rank[P.indices], P.indptr[:-1])  # below all their successors
            i, s_next = P[out].nonzero()
            out[s_next[np.flatnonzero(out)[i] != s_next]] = False  # and successors of none that goes
            into, onwards = P[~out][:, out], P[out][:, ~out]
            into = (into * (1 / onwards.sum(axis=1))).tocsr()
            P = P[~out][:, ~out] + into @ onwards
            eliminated.append((out, into))
            if P.nnz > FILL:
                raise ValueError(f"P is too tangled to eliminate its states ({P.nnz} links); iterate z = z @ P instead")
        z = _stationary_dense(P.toarray())
        for out, into in reversed(eliminated):
            remaining, z = z, np.empty(len(out))
            z[~out], z[out] = remaining, remaining @ into
        z /= z.sum()
    if not z.min() > np.finfo(z.dtype).tiny:  # what underflowed may have led to common states
        raise ValueError("stationary probabilities of P differ by more than floats hold (1e308); sr and fr need none")
    return z


def _stationary_dense(P: Array) -> Array:
    """The same for a dense P, which is overwritten; in blocks, to spend the time in matrix products."""
    S, block = len(P), 64
    for stop in range(S, 1, -block):
        start = max(stop - block, 1)
        for k in range(stop - 1, start - 1, -1):
            P[:k, k] /= P[k, :k].sum()
            P[start:k, :k] += np.outer(P[start:k, k], P[k, :k])
            P[:start, start:k] += np.outer(P[:start, k], P[k, start:k])
        P[:start, :start] += P[:start, start:stop] @ P[start:stop, :start]
    z = np.ones(S)
    for k in range(1, S):
        z[k] = z[:k] @ P[:k, k]
    return z


def _positive_stationary(P: Chain) -> Array:
    z = stationary(P)
    if not z.all():
        raise ValueError(
            f"state {np.argmin(z)} has stationary probability 0, so nothing can be said of what came before it; "
            "pass the chain of the states with stationary(P) > 0"
        )
    return z


def _continuing(P: Chain, gamma: float, terminal: Mask | None) -> Chain:
    """The checked P without transitions out of and into the end of an episode."""
    _check_gamma(gamma)
    P = _chain(P)
    going_on = _going_on(terminal, P.shape[0])
    return _scaled(P, going_on, going_on)


def _scaled(P: Chain, rows: Array, columns: Array) -> Chain:
    """diag(rows) P diag(columns)."""
    scaled = P * rows[:, None] * columns
    return scaled if isinstance(P, np.ndarray) else scaled.tocsr()


def _dense(P: Chain) -> Array:
    if isinstance(P, np.ndarray):
        return P
    if (S := P.shape[0]) > DENSE_STATES:
        raise ValueError(
            f"a dense [{S}, {S}] matrix needs {8e-9 * S * S:.1f} GB; "
            "use sr_row_sums and sr_column_sums, or pass a dense P"
        )
    dense: Array = P.toarray()
    return dense


def _chain(P: Chain) -> Chain:
    """P as a float64 array or csr_array, checked."""
    if hasattr(P, "tocsr"):
        from scipy.sparse import csr_array

        P = csr_array(P, dtype=np.float64, copy=True)
        P.eliminate_zeros()  # to csgraph a stored 0 is a link
    else:
        P = as_array("P", P, np.float64)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or not P.shape[0]:
        raise ValueError(f"P has shape {list(P.shape)}, not [S, S]")
    for s, s_next in np.transpose((P < 0).nonzero())[:1]:
        raise ValueError(f"P[{s}, {s_next}] is {P[s, s_next]:g}, which is no probability")
    total = P.sum(axis=1)
    for s in np.flatnonzero(~(np.abs(total - 1) <= 1e-9))[:1]:
        raise ValueError(
            f"P[{s}] sums to {total[s]:.12g}, not 1 (state {s}; where an episode ends, the row is the next start)"
        )
    return P


def _going_on(terminal: Mask | None, S: int) -> Array:
    """1 - terminal, shape [S]."""
    if terminal is None:
        return np.ones(S)
    terminal = np.asarray(terminal)
    if terminal.shape != (S,) or terminal.dtype != bool:
        raise ValueError(f"terminal must be a bool mask [{S}], not {terminal.dtype} {list(terminal.shape)}")
    return np.where(terminal, 0.0, 1.0)


def _check_gamma(gamma: float) -> None:
    if not is_number(gamma) or not 0 <= gamma < 1:
        raise ValueError(f"gamma is {told(gamma)}, not in [0, 1); at 1 the visits add up to infinity")
