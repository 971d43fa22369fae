"""What a bonus learns from steps: tables of what can be counted, features of what cannot, or a network's error.

A learner turns an observation into a state of its own kind (`encode`), learns from steps between such states, and
gives the quantities that a reward asks for, in the reward's order.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from spie.dropin.observations import CELLS, Reader
from spie.dropin.spaces import Numbering, singles
from spie.representations import td_fr, td_pr, td_sr

Array = NDArray[Any]
Vector = NDArray[np.float64]
Encoded = TypeVar("Encoded")  # an observation as a learner sees it
TABLE_BYTES = 2e9  # tables above are refused
HASH_BITS = 16  # where there is no grid to count on, a cell is the signs of this many projections of phi


class Rates(NamedTuple):
    """How fast and how far a learner looks."""

    eta: float  # learning rate of M, F and psi
    gamma_sr: float  # their discount
    eta_pr: float  # learning rate of N and xi
    gamma_pr: float  # their discount


class BonusLearner(Protocol[Encoded]):
    """What learns from the steps of some environments.

    a is an action's number, discount 0 where an episode ended, r the environment's own reward, which few look at.
    """

    @property
    def name(self) -> str:
        """What a saved state calls it."""

    @property
    def growing(self) -> tuple[str, ...]:
        """How the names of arrays begin whose size changes with learning."""

    @property
    def coverage(self) -> float:
        """Share of the states that were visited; NaN where they cannot be counted."""

    def encode(self, observation: Any) -> Encoded:
        """An observation as this learner sees it."""

    def encode_all(self, observations: Any, n: int) -> list[Encoded]:
        """The same for each of a batch of n."""

    def begin(self, s: Encoded) -> None:
        """Take note that an episode begins in s."""

    def forget(self) -> None:
        """Start over, as if nothing had been learned; what was drawn at random stays."""

    def step(self, s: Encoded, a: int, s_next: Encoded, discount: float, r: float = 0.0) -> list[float]:
        """Learn from a step; then the quantities that the reward asks for."""

    def learn(self, steps: Sequence[tuple[Encoded, int, Encoded, float, float]]) -> None:
        """Learn from steps (s, a, s', discount, r) that were taken side by side: their order makes no difference."""

    def query_learned(self, s: Encoded, a: int, s_next: Encoded, discount: float = 1.0) -> list[float]:
        """The quantities of a step that was learned from with others; what is of one copy's episode learns here."""

    def query(self, s: Encoded, a: int, s_next: Encoded, discount: float = 1.0) -> list[float]:
        """The quantities of any step; what was never learned reads as after its first step."""

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        """`query` for many steps, given as batches of observations; may round a little differently."""

    def pack(self, states: Sequence[Encoded | None]) -> dict[str, Array]:
        """Where the environments are, as arrays; None where no episode is under way."""

    def unpack(self, arrays: dict[str, Array]) -> list[Encoded | None]:
        """The inverse of `pack`."""

    def state(self) -> dict[str, Array]:
        """All that changes by learning, or was drawn at random; the arrays themselves, not copies."""

    def load(self, arrays: dict[str, Array]) -> None:
        """Take over what `state` gave."""


class CountedStates:
    """What learners of states that can be counted have in common: visits, and where the environments are."""

    def __init__(self, states: Numbering) -> None:
        self.n_states, self.encode, self.encode_all = states
        self.visits = np.zeros(self.n_states, np.int64)

    @property
    def coverage(self) -> float:
        return float((self.visits > 0).mean())

    def begin(self, s: int) -> None:
        self.visits[s] += 1

    def step(self, s: int, a: int, s_next: int, discount: float, r: float = 0.0) -> list[float]:
        raise NotImplementedError

    def learn(self, steps: Sequence[tuple[int, int, int, float, float]]) -> None:
        for step in sorted(steps):
            self.step(*step)

    def pack(self, states: Sequence[int | None]) -> dict[str, Array]:
        return {"s": np.array([-1 if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[int | None]:
        return [None if s < 0 else s for s in arrays["s"].tolist()]


class TableLearner(CountedStates):
    """M, F, N and visits of states that can be counted; only what a reward asks for is kept."""

    name: ClassVar[str] = "Tables"
    growing: ClassVar[tuple[str, ...]] = ()

    def __init__(self, states: Numbering, needs: Sequence[str], rates: Rates, copies: int = 1) -> None:
        """copies: how many learners of this kind there will be."""
        super().__init__(states)
        self.copies = copies
        self.eta, self.gamma_sr, self.eta_pr, self.gamma_pr = rates
        self.has_M, self.has_F, self.has_N = (
            any(need in needs for need in names)
            for names in (("M_next", "M_col_next"), ("F_row", "F_row_next"), ("N_next",))
        )
        self.has_M_col = "M_col_next" in needs
        self.has_sums = "M_row" in needs or "N_col_next" in needs
        squares = {"M": self.has_M, "F": self.has_F, "N": self.has_N}
        self.arrays = self._allocate([name for name, has in squares.items() if has])
        self.M, self.F, self.N = (self.arrays.get(name, np.zeros((0, 0))) for name in "MFN")
        self.M_row, self.M_col, self.F_row, self.N_col = (
            self.arrays[name] for name in ("M_row", "M_col", "F_row", "N_col")
        )
        # As the engine does, by running sums: `rewards.quantities` would add up whole matrices at every step
        of: dict[str, Callable[[int, int], float]] = {
            "M_next": lambda s, s_next: self.M.item(s, s_next),
            "M_row": lambda s, s_next: self.M_row.item(s),
            "M_col_next": lambda s, s_next: self.M_col.item(s_next),
            "F_row": lambda s, s_next: self.F_row.item(s),
            "F_row_next": lambda s, s_next: self.F_row.item(s_next),
            "N_next": lambda s, s_next: self.N.item(s, s_next),
            "N_col_next": lambda s, s_next: self.N_col.item(s_next),
            "visits": lambda s, s_next: self.visits.item(s),
            "visits_next": lambda s, s_next: self.visits.item(s_next),
        }
        self.quantities = [of[need] for need in needs]
        least = {"M_row": self.eta, "F_row": self.eta, "F_row_next": self.eta, "N_col_next": self.eta_pr}
        least |= {"visits": 1, "visits_next": 1}
        self.floors = [least.get(need, -math.inf) for need in needs]

    def forget(self) -> None:
        been = np.flatnonzero(self.visits)  # all else is as it was
        for name, array in self.arrays.items():
            array[(slice(None), been) if name == "N" else been] = 0

    def _allocate(self, squares: Sequence[str]) -> dict[str, Array]:
        S = self.n_states
        if (size := 8 * S * S * len(squares) * self.copies) > TABLE_BYTES:
            each = f", one for each of {self.copies} environments," if self.copies > 1 else ""
            raise ValueError(
                f"{' and '.join(squares)} of {S:,} states{each} would need {1e-9 * size:,.1f} GB; "
                "use a reward that needs no matrix (sr, count), or sf-pf with features=, a function of the observation"
            )
        arrays: dict[str, Array] = {name: np.zeros((S, S)) for name in squares}
        arrays |= {name: np.zeros(S) for name in ("M_row", "M_col", "F_row", "N_col")}
        return arrays | {"visits": self.visits}

    def step(self, s: int, a: int, s_next: int, discount: float, r: float = 0.0) -> list[float]:
        self._update(s, s_next, discount)
        return [quantity(s, s_next) for quantity in self.quantities]

    def learn(self, steps: Sequence[tuple[int, int, int, float, float]]) -> None:
        for s, _, s_next, discount, _ in sorted(steps):
            self._update(s, s_next, discount)

    def _update(self, s: int, s_next: int, discount: float) -> None:
        self.visits[s_next] += 1
        if self.has_M:
            change = self.eta * td_sr(self.M, s, s_next, self.gamma_sr, discount)
            self.M[s] += change
            if self.has_M_col:
                self.M_col += change
        if self.has_sums:  # those of a row of M and a column of N follow from other such sums: no matrix needed
            M_row, N_col = self.M_row, self.N_col
            M_row[s] += self.eta * (1 + self.gamma_sr * discount * M_row.item(s_next) - M_row.item(s))
            N_col[s_next] += self.eta_pr * (1 + self.gamma_pr * N_col.item(s) - N_col.item(s_next))
        if self.has_F:
            F_row, later = self.F_row, self.F_row.item(s_next) - self.F.item(s_next, s)
            self.F[s] += self.eta * td_fr(self.F, s, s_next, self.gamma_sr, discount)
            F_row[s] += self.eta * (1 + self.gamma_sr * discount * later - F_row.item(s))
        if self.has_N:
            self.N[:, s_next] += self.eta_pr * td_pr(self.N, s, s_next, self.gamma_pr)

    def query_learned(self, s: int, a: int, s_next: int, discount: float = 1.0) -> list[float]:
        return [quantity(s, s_next) for quantity in self.quantities]

    def query(self, s: int, a: int, s_next: int, discount: float = 1.0) -> list[float]:
        return [max(quantity(s, s_next), floor) for quantity, floor in zip(self.quantities, self.floors, strict=True)]

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        n = len(a)
        return list(map(self.query, self.encode_all(observations, n), a, self.encode_all(next_observations, n)))

    def state(self) -> dict[str, Array]:
        return self.arrays

    def load(self, arrays: dict[str, Array]) -> None:
        for name, array in self.arrays.items():
            array[:] = arrays[name]


class FeatureState(NamedTuple):
    """An observation as features see it."""

    phi: Vector  # [d], of length 1
    cell: int  # where a count bonus counts it
    a_next: Vector | None = None  # chances of each action there, discounted; None: nobody steps into it any more


def norm(x: Vector) -> float:
    """|x|_1"""
    return float(np.add.reduce(np.abs(x)))


class FeatureLearner:
    """Successor features psi(s, a) = Psi[a] phi(s) and predecessor features xi(s) = Xi phi(s); visits by cell.

    Where actions cannot be counted, psi is of the state alone. A wrapper does not know the next action: in its place
    stands the mean over all of them, weighted by the agent's `policy` where that is known.
    """

    name: ClassVar[str] = "Features"
    growing: ClassVar[tuple[str, ...]] = ("cell",)
    coverage = math.nan  # of a continuous space there is none

    def __init__(self, observations: Reader, n_actions: int, needs: Sequence[str], rates: Rates) -> None:
        from scipy.linalg.blas import dger

        self.dger = dger
        self.reader, self.needs = observations, needs
        d = observations.dimension
        self.eta, self.gamma_sr, self.eta_pr, self.gamma_pr = rates
        self.mean = np.full(n_actions, self.gamma_sr / n_actions)  # over the next action, discounted
        self.policy: Callable[[Any], Any] | None = None  # chances of each action, given an observation
        self.Psi = np.zeros((n_actions, d, d) if "psi_norm" in needs else (0, d, d))
        self.Xi = np.zeros((d, d) if "xi_norm_next" in needs else (0, d))
        # In pieces so small that BLAS starts no threads for them, which would cost far more than they gain
        pieces = [slice(i, i + max(1, 8192 // d)) for i in range(0, d, max(1, 8192 // d))]
        self.Psi_rows = [[(rows, A[rows].T) for rows in pieces] for A in self.Psi]
        self.Xi_rows = [(rows, self.Xi[rows].T) for rows in pieces]
        self.counts: dict[int, int] = {}
        self.has_cells = "visits_next" in needs
        self.has_phi = any(need != "visits_next" for need in needs) or (self.has_cells and observations.bounds is None)
        rng = np.random.default_rng(0)
        self.line = rng.normal(size=d)
        self.directions = rng.normal(size=(d, HASH_BITS))

    def encode(self, observation: Any) -> FeatureState:
        phi = self.reader.read(observation) if self.has_phi else self.line  # without need of phi, any will do
        return FeatureState(phi, self._cell(observation, phi) if self.has_cells else 0, self._a_next(observation))

    def _a_next(self, observation: Any) -> Vector:
        if self.policy is None or not len(self.Psi):
            return self.mean
        chances = np.asarray(self.policy(observation), np.float64)
        if chances.shape != self.mean.shape or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-4:
            asked = f"it must give the chances of {len(self.mean)} actions, which sum to 1"
            raise ValueError(f"policy gave {chances.tolist()}; {asked}")
        return self.gamma_sr * chances

    def encode_all(self, observations: Any, n: int) -> list[FeatureState]:
        return [self.encode(observation) for observation in singles(observations, n)]

    def _cell(self, observation: Any, phi: Vector) -> int:
        """The cell on a grid over the space; where there is none, the signs of random projections of phi."""
        if (bounds := self.reader.bounds) is None:
            return int((phi @ self.directions > 0) @ 2 ** np.arange(HASH_BITS))
        low, high = bounds
        place = (np.asarray(observation, np.float64).reshape(-1) - low) / (high - low)
        cells = np.clip(np.floor(CELLS * place), 0, CELLS - 1).astype(np.int64)
        return int(cells @ CELLS ** np.arange(len(cells)))

    def begin(self, s: FeatureState) -> None:
        if self.has_cells:
            self.counts[s.cell] = self.counts.get(s.cell, 0) + 1

    def forget(self) -> None:
        self.Psi[:] = 0
        self.Xi[:] = 0
        self.counts.clear()

    def step(self, s: FeatureState, a: int, s_next: FeatureState, discount: float, r: float = 0.0) -> list[float]:
        self.begin(s_next)  # counts it
        phi, phi_next = s.phi, s_next.phi
        of: dict[str, float] = {}
        if len(self.Psi):  # as td_sf, with the mean over a'
            psi = self.Psi[a] @ phi
            assert s_next.a_next is not None
            change = (discount * s_next.a_next) @ (self.Psi @ phi_next)
            change += phi
            change -= psi
            self._add_product(self.Psi_rows[a], self.eta, change, phi)
            psi += self.eta * change  # what Psi[a] phi is now, for phi has length 1
            of["psi_norm"] = norm(psi)
        if len(self.Xi):
            xi = self.Xi @ phi_next  # as td_pf, but xi(s') is wanted again
            change = phi_next + self.gamma_pr * (self.Xi @ phi) - xi
            self._add_product(self.Xi_rows, self.eta_pr, change, phi_next)
            xi += self.eta_pr * change
            of["xi_norm_next"] = norm(xi)
        return self._ordered(of, s_next)

    def learn(self, steps: Sequence[tuple[FeatureState, int, FeatureState, float, float]]) -> None:
        for step in sorted(steps, key=lambda step: (self.line @ step[0].phi, step[1], self.line @ step[2].phi)):
            self.step(*step)

    def _add_product(self, rows: list[tuple[slice, Array]], eta: float, x: Array, y: Array) -> None:
        """A += eta x y^T, in place, by some rows of A at a time."""
        for some, block in rows:
            self.dger(eta, y, x[some], a=block, overwrite_a=1)

    def query_learned(self, s: FeatureState, a: int, s_next: FeatureState, discount: float = 1.0) -> list[float]:
        of: dict[str, float] = {}
        if len(self.Psi):
            of["psi_norm"] = norm(self.Psi[a] @ s.phi)
        if len(self.Xi):
            of["xi_norm_next"] = norm(self.Xi @ s_next.phi)
        return self._ordered(of, s_next)

    def _ordered(self, of: dict[str, float], s_next: FeatureState) -> list[float]:
        if "phi_norm_next" in self.needs:
            of["phi_norm_next"] = norm(s_next.phi)
        if self.has_cells:
            of["visits_next"] = self.counts.get(s_next.cell, 0)
        return [of[need] for need in self.needs]

    def query(self, s: FeatureState, a: int, s_next: FeatureState, discount: float = 1.0) -> list[float]:
        least = {"psi_norm": self.eta * norm(s.phi), "visits_next": 1}
        least["xi_norm_next"] = self.eta_pr * norm(s_next.phi)
        values = zip(self.needs, self.query_learned(s, a, s_next), strict=True)
        return [max(value, least.get(need, 0)) for need, value in values]

    def query_all(
        self, observations: Any, a: Sequence[int], next_observations: Any, discounts: Sequence[float] | None = None
    ) -> list[list[float]]:
        phi, phi_next = (self._phi_all(seen, len(a)) for seen in (observations, next_observations))
        of: dict[str, Array] = {"phi_norm_next": np.abs(phi_next).sum(axis=1)}
        if len(self.Psi):
            psi = np.empty_like(phi)
            for action in set(a):
                taken = np.asarray(a) == action
                psi[taken] = phi[taken] @ self.Psi[action].T
            of["psi_norm"] = np.maximum(np.abs(psi).sum(axis=1), self.eta * np.abs(phi).sum(axis=1))
        if len(self.Xi):
            xi = phi_next @ self.Xi.T
            of["xi_norm_next"] = np.maximum(np.abs(xi).sum(axis=1), self.eta_pr * of["phi_norm_next"])
        if self.has_cells:
            cells = map(self._cell, singles(next_observations, len(a)), phi_next)
            of["visits_next"] = np.array([max(1, self.counts.get(cell, 0)) for cell in cells])
        return np.array([of[need] for need in self.needs]).reshape(len(self.needs), len(a)).T.tolist()

    def _phi_all(self, observations: Any, n: int) -> Vector:
        return self.reader.read_all(observations, n) if self.has_phi else np.tile(self.line, (n, 1))

    def pack(self, states: Sequence[FeatureState | None]) -> dict[str, Array]:
        nowhere = FeatureState(np.zeros(len(self.line)), 0)  # a phi of 0, which no observation has
        found = [nowhere if s is None else s for s in states]
        return {"s": np.array([s.phi for s in found]), "s_cell": np.array([s.cell for s in found])}

    def unpack(self, arrays: dict[str, Array]) -> list[FeatureState | None]:
        states = map(FeatureState, arrays["s"], arrays["s_cell"].tolist())
        return [s if s.phi.any() else None for s in states]

    def state(self) -> dict[str, Array]:
        return self.reader.state() | {
            "Psi": self.Psi,
            "Xi": self.Xi,
            "cells": np.array(list(self.counts), np.int64),
            "cell_visits": np.array(list(self.counts.values()), np.int64),
            "line": self.line,
            "directions": self.directions,
        }

    def load(self, arrays: dict[str, Array]) -> None:
        for own, name in ((self.Psi, "Psi"), (self.Xi, "Xi"), (self.line, "line"), (self.directions, "directions")):
            own[:] = arrays[name]
        self.counts = dict(zip(arrays["cells"].tolist(), arrays["cell_visits"].tolist(), strict=True))
        self.reader.load(arrays)
