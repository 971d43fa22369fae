"""How new a state is, and what new or rewarding states can still be reached from it: a pseudo-count on features, and
successor features in closed form that look ahead to what was paid.

Over all that was seen so far, with features phi of length 1 that never change:

    Lambda = ridge I + sum over frames of phi phi^T             [D, D]
    X      = sum over steps of phi(s) phi(s')^T                 [D, D], nothing where an episode ended
    K      = (Lambda - g X)^-1
    psi(s)^T = phi(s)^T K Lambda        successor features,
    xi(s)^T  = phi(s)^T K^T Lambda      predecessor features: the same matrix transposed, as eq. 13 has it for tables
    e(s)   = sqrt(ridge phi(s)^T Lambda^-1 phi(s))              about 1 / sqrt(1 + n / ridge) after n visits
    U(s)   = phi(s)^T K sum over steps of phi(s_i) paid_i       the value of what is paid, discounted by g

Lambda^-1 is updated at every frame by the formula of Sherman and Morrison, which loses some digits each time, and is
computed again from Lambda every RENEWED frames, so that the loss never grows. Lambda's least eigenvalue is at least
`ridge` and its largest at most ridge + n, so after n frames the relative error of e is at most some
RENEWED * 2^-53 * (1 + n / ridge): 1e-7 for a million frames (tests/test_novelty.py measures it).
"""

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.errors import check_number, check_whole

Array: TypeAlias = NDArray[np.float64]

RENEWED = 1024  # frames after which Lambda^-1 is computed again
LOOKED_AHEAD = 64  # steps after which U is computed again
MOST_FEATURES, MOST_STATES = 10_000, 10_000_000  # whose matrices take 2.4 GB, whose counts 80 MB
PIECE = 8192  # numbers of a matrix that BLAS takes at once: it starts no threads for so few, which would cost more


class SuccessorNovelty:
    """The matrices above, for D features, and what they say of a state."""

    def __init__(self, dimension: int, ridge: float = 1.0, g: float = 0.95, streams: int = 1) -> None:
        """streams: how many kinds of pay are looked ahead to, each with a U of its own."""
        _check(dimension, ridge, g, streams, MOST_FEATURES)
        from scipy.linalg.blas import dger

        D = int(dimension)
        self.ridge, self.g = float(ridge), float(g)
        self.Lambda = ridge * np.eye(D)
        self.X = np.zeros((D, D))
        self.inverse = np.eye(D) / ridge  # of Lambda
        self.paid = np.zeros((D, streams))  # sum of phi(s_i) paid_i
        self.u = np.zeros((D, streams))  # K times that: U(s) = phi(s) u
        self.frames, self.steps = 0, 0
        rows = max(1, PIECE // D)
        self._pieces = [(slice(i, i + rows), self.inverse[i : i + rows]) for i in range(0, D, rows)]
        self._dger = dger

    def novelty(self, phi: Array) -> Array:
        """e of features [..., D]: 1 for what is like nothing seen, near 0 for what was seen often."""
        return np.asarray(np.sqrt(self.ridge * np.maximum(np.vecdot(phi @ self.inverse, phi), 0.0)))

    def novelty_and_see(self, phi: Array) -> float:
        """e of one frame [D] before it counts; then it counts."""
        direction = np.concatenate([block @ phi for _, block in self._pieces])
        length = float(direction @ phi)
        scale = -1.0 / (1.0 + length)
        for rows, block in self._pieces:
            self._dger(scale, direction, direction[rows], a=block.T, overwrite_a=1)
        self._add(self.Lambda, phi, phi)
        self.frames += 1
        if self.frames % RENEWED == 0:
            self._renew()
        return math.sqrt(max(self.ridge * length, 0.0))

    def step(self, phi: Array, phi_next: Array, paid: Sequence[float], discount: float) -> None:
        """Learn from a step between frames that count already; discount is 0 where the episode ended."""
        if discount:
            self._add(self.X, phi, phi_next)
        for stream, number in enumerate(paid):
            self.paid[:, stream] += number * phi
        self.steps += 1
        if self.steps % LOOKED_AHEAD == 0:
            self.look_ahead()

    def look_ahead(self) -> None:
        """Compute U again."""
        from scipy.linalg import solve

        with _blas().limit(limits=1):
            self.u[:] = solve(self.Lambda - self.g * self.X, self.paid, check_finite=False)

    def potential(self, phi: Array) -> Array:
        """U [..., streams] of features [..., D], as of when it was last computed."""
        return np.asarray(phi @ self.u)

    def successor_features(self, phi: Array) -> Array:
        """psi of features [..., D]."""
        return np.asarray(phi @ np.linalg.solve(self.Lambda - self.g * self.X, self.Lambda))

    def predecessor_features(self, phi: Array) -> Array:
        """xi of features [..., D]."""
        return np.asarray(phi @ np.linalg.solve(self.Lambda - self.g * self.X.T, self.Lambda))

    def forget(self) -> None:
        """Start over, as if nothing had been seen."""
        for matrix, diagonal in ((self.Lambda, self.ridge), (self.inverse, 1 / self.ridge), (self.X, 0.0)):
            matrix[:] = 0
            np.fill_diagonal(matrix, diagonal)
        self.paid[:] = self.u[:] = 0
        self.frames, self.steps = 0, 0

    def state(self) -> dict[str, Array]:
        """All that changes by learning, as arrays."""
        counts = np.array([self.frames, self.steps], np.float64)
        matrices = {"Lambda": self.Lambda, "X": self.X, "inverse": self.inverse}
        return matrices | {"paid": self.paid, "u": self.u, "counts": counts}

    def load(self, arrays: dict[str, Array]) -> None:
        """Take over what `state` gave."""
        for name, own in self.state().items():
            if name != "counts":
                own[:] = arrays[name]
        self.frames, self.steps = map(int, arrays["counts"])

    def _renew(self) -> None:
        from scipy.linalg import cho_factor, cho_solve

        with _blas().limit(limits=1):
            self.inverse[:] = cho_solve(cho_factor(self.Lambda, check_finite=False), np.eye(len(self.u)))

    def _add(self, matrix: Array, x: Array, y: Array) -> None:
        """matrix += x y^T, in place."""
        for rows, _ in self._pieces:
            self._dger(1.0, y, x[rows], a=matrix[rows].T, overwrite_a=1)


class CountedNovelty:
    """The same where states can be counted, phi being one-hot: Lambda is a diagonal, and X has few entries."""

    def __init__(self, n_states: int, ridge: float = 1.0, g: float = 0.95, streams: int = 1) -> None:
        _check(n_states, ridge, g, streams, MOST_STATES)
        self.ridge, self.g = float(ridge), float(g)
        self.visits = np.zeros(n_states, np.int64)
        self.paid = np.zeros((n_states, streams))
        self.u = np.zeros((n_states, streams))
        self.moves: dict[tuple[int, int], int] = {}  # entries of X
        self.steps = 0
        self.every = max(LOOKED_AHEAD, n_states // 8)  # a sparse system of S equations takes some S steps' time

    def novelty(self, s: NDArray[np.int64] | int) -> Array:
        """e of states."""
        return np.asarray(np.sqrt(self.ridge / (self.ridge + self.visits[s])))

    def novelty_and_see(self, s: int) -> float:
        """e of a state before this visit counts; then it counts."""
        e = math.sqrt(self.ridge / (self.ridge + self.visits.item(s)))
        self.visits[s] += 1
        return e

    def step(self, s: int, s_next: int, paid: Sequence[float], discount: float) -> None:
        """Learn from a step between visits that count already; discount is 0 where the episode ended."""
        if discount:
            self.moves[s, s_next] = self.moves.get((s, s_next), 0) + 1
        self.paid[s] += paid
        self.steps += 1
        if self.steps % self.every == 0:
            self.look_ahead()

    def look_ahead(self) -> None:
        """Compute U again."""
        from scipy.sparse import coo_array, diags_array
        from scipy.sparse.linalg import splu

        S, moves = len(self.visits), self._moves()
        X = coo_array((moves[:, 2].astype(np.float64), (moves[:, 0], moves[:, 1])), shape=(S, S))
        self.u[:] = splu((diags_array(self.ridge + self.visits) - self.g * X).tocsc()).solve(self.paid)

    def potential(self, s: NDArray[np.int64] | int) -> Array:
        """U [..., streams] of states, as of when it was last computed."""
        return np.asarray(self.u[s])

    def forget(self) -> None:
        """Start over, as if nothing had been seen."""
        self.visits[:] = 0
        self.paid[:] = self.u[:] = 0
        self.moves.clear()
        self.steps = 0

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes by learning, as arrays."""
        arrays = {"visits": self.visits, "moves": self._moves(), "paid": self.paid, "u": self.u}
        return arrays | {"counts": np.array([self.steps], np.float64)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.visits[:], self.paid[:], self.u[:] = (arrays[name] for name in ("visits", "paid", "u"))
        self.moves = {(s, s_next): n for s, s_next, n in arrays["moves"].tolist()}
        self.steps = int(arrays["counts"][0])

    def _moves(self) -> NDArray[np.int64]:
        """s, s', how often [entries, 3], in an order that does not depend on that of the steps."""
        return np.array(sorted((*pair, n) for pair, n in self.moves.items()), np.int64).reshape(-1, 3)


def _check(dimension: int, ridge: float, g: float, streams: int, most: int) -> None:
    check_whole("novelty: the number of features", dimension, 1, most)
    check_number("novelty: ridge", ridge, "(0, inf)")
    check_number("novelty: g", g, "[0, 1)")
    check_whole("novelty: streams", streams, 0, 1000)


@functools.cache
def _blas() -> Any:
    """The libraries of linear algebra that are loaded, whose threads cost a matrix of this size more than they gain."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
