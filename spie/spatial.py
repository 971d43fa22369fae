"""What a policy makes of a maze, state by state: what papers about place and grid cells draw."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from spie.representations import DENSE_STATES, Array, Chain, Mask, dr, fr, pr, sr, stationary

MOST_PATHS = 2000  # states up to which all shortest paths are counted


class Representations:
    """M, F, N and more of one chain, each computed when it is first asked for.

    P: the chain [S, S] under the policy. gamma: discount of M, F and N. terminal: mask of ends [S], or None. reward: of
    each state under the policy [S], for the default representation.
    """

    def __init__(self, P: Chain, gamma: float, terminal: Mask | None, reward: Array) -> None:
        if not isinstance(P, np.ndarray):
            raise ValueError(
                f"{P.shape[0]:,} states are too many for whole matrices (at most {DENSE_STATES:,}); "
                "spie.sr_row_sums and spie.sr_column_sums take the sparse chain of mdp.transition()"
            )
        self.P, self.gamma, self.terminal, self.reward = P, gamma, terminal, reward

    @cached_property
    def M(self) -> Array:
        """Successor representation [S, S]."""
        return sr(self.P, self.gamma, self.terminal)

    @cached_property
    def F(self) -> Array:
        """First-occupancy representation [S, S]."""
        return fr(self.P, self.gamma, self.terminal)

    @cached_property
    def N(self) -> Array:
        """Predecessor representation [S, S]."""
        return pr(self.P, self.gamma, self.terminal)

    @cached_property
    def z(self) -> Array:
        """Stationary distribution [S]; after an end the next episode starts."""
        return stationary(self.P)

    def place_field(self, s: int, of: str = "columns") -> Array:
        """Where a cell that stands for state s is active [S].

        columns: M[:, s], how much each state leads to s. rows: M[s, :], where the walk goes from s.
        """
        if of not in ("rows", "columns"):
            raise ValueError(f'place fields are of "rows" or "columns", not "{of}"')
        return self.M[:, s] if of == "columns" else self.M[s]

    @cached_property
    def flow(self) -> Array:
        """W [S, S]: how much of the walk passes between two states, both directions averaged; restarts left out.

        W[s, s'] = (z(s) P[s, s'] + z(s') P[s', s]) / 2
        """
        flow = self.z[:, None] * self.P
        if self.terminal is not None:
            flow[self.terminal] = 0
        return (flow + flow.T) / 2

    @cached_property
    def eigenvectors(self) -> tuple[Array, Array]:
        """Eigenvalues [n], falling, and eigenvectors [S, n] of the chain, or of its reversible part.

        P v = lambda v where the chain is reversible, as every random walk on a map is; these are then the eigenvectors
        of M, too, with eigenvalues 1 / (1 - gamma lambda). The largest entry of each is positive.
        """
        z = self._positive_z()
        root = np.sqrt(z)
        values, vectors = np.linalg.eigh(self.flow / root[:, None] / root)
        vectors = vectors[:, ::-1] / root[:, None]
        vectors /= np.linalg.norm(vectors, axis=0)
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(len(z))]
        return values[::-1], vectors * np.sign(largest)

    def eigenvector(self, k: int) -> Array:
        """The k-th eigenvector [S], from 0, which is constant where nothing ends."""
        if not 0 <= k < len(self.P):
            raise ValueError(f"no eigenvector {k}; {len(self.P)} states have eigenvectors 0..{len(self.P) - 1}")
        return np.asarray(self.eigenvectors[1][:, k])

    @cached_property
    def fiedler(self) -> Array:
        """Fiedler vector [S]: its sign cuts the states in two parts that the walk seldom passes between.

        The eigenvector of the second smallest eigenvalue of the Laplacian diag(W 1) - W.
        """
        if len(self.P) < 2:
            raise ValueError("a single state has no Fiedler vector")
        self._positive_z()
        _, vectors = np.linalg.eigh(np.diag(self.flow.sum(axis=1)) - self.flow)
        vector = vectors[:, 1]
        return np.asarray(vector * np.sign(vector[np.abs(vector).argmax()]))

    @cached_property
    def betweenness(self) -> Array:
        """Share of the shortest paths between two other states that pass through each state [S]: doors stand out."""
        links = (self.P > 0).astype(np.float64)
        np.fill_diagonal(links, 0)
        if self.terminal is not None:
            links[self.terminal] = 0  # a new start is no move
        if len(links) > MOST_PATHS:
            raise ValueError(f"{len(links):,} states are too many to count shortest paths (at most {MOST_PATHS:,})")
        return _betweenness(links)

    def default(self, reward: Any = None, temperature: float = 1.0) -> Array:
        """Default representation Z [S, S] (Piray and Daw 2021): see `spie.dr`.

        reward: of each state, one number or [S]; by default what the task pays there under the policy, and -1 in every
        state where the task pays nothing at all.
        """
        if reward is None:
            reward = self.reward if self.reward.any() else -1.0
        return dr(self.P, np.asarray(reward, np.float64), temperature, self.terminal)

    def _positive_z(self) -> Array:
        if not (self.z > 0).all():
            s = int(np.argmin(self.z))
            raise ValueError(
                f"the walk leaves state {s} for good, so that nothing flows there; use a policy that returns"
            )
        return self.z


def _betweenness(links: Array) -> Array:
    """Brandes' sums, for all sources at once, one distance after the other."""
    from scipy.sparse import csr_array

    S = len(links)
    graph = csr_array(links)
    distance = np.where(np.eye(S, dtype=bool), 0, -1)
    paths, front, layers = np.eye(S), np.eye(S), []
    while front.any():
        layers.append(front)
        onward = np.asarray(front @ graph)  # ways [source, s'] that are one step longer
        front = np.where(distance < 0, onward, 0.0)
        distance[front > 0] = len(layers)
        paths += front
    passed = np.zeros((S, S))  # of each source: the share of its paths that goes on through a state
    for layer, following in zip(reversed(layers[:-1]), reversed(layers[1:]), strict=True):
        reached = following > 0
        back = np.where(reached, (1 + passed) / np.where(reached, paths, 1), 0.0)
        passed += layer * (back @ graph.T)
    np.fill_diagonal(passed, 0)
    return np.asarray(passed.sum(axis=0) / max(1, (S - 1) * (S - 2)))


# Policies


def is_table(policy: Any) -> bool:
    """Whether something is a table [S, A] rather than paths."""
    return isinstance(policy, np.ndarray) and policy.ndim == 2 and policy.dtype.kind in "fb"


def as_policy(table: Array, available: Mask, epsilon: float, name: str) -> Array:
    """Probabilities of actions [S, A] of a policy, or of values: the best available actions, now and then any."""
    table = np.asarray(table, np.float64)
    if table.shape != available.shape:
        raise ValueError(f"{name}: the policy has shape {list(table.shape)}, not {list(available.shape)}")
    if not 0 <= epsilon <= 1:
        raise ValueError(f"{name}: epsilon is {epsilon:g}; give 0 to 1")
    if (table >= 0).all() and np.allclose(table.sum(axis=1), 1, atol=1e-9):
        return table
    if np.isnan(table).any():
        raise ValueError(f"{name}: the values of state {int(np.isnan(table).any(axis=1).argmax())} are not numbers")
    values = np.where(available, table, -np.inf)
    best = values >= values.max(axis=1, keepdims=True) - 1e-12
    uniform = available / available.sum(axis=1, keepdims=True)
    return np.asarray(epsilon * uniform + (1 - epsilon) * best / best.sum(axis=1, keepdims=True))


def follow_paths(P: Chain, paths: Any, labels: Sequence[str], terminal: Mask, name: str) -> Chain:
    """The chain of recorded paths: how often each state followed another; others go on at random, as in P."""
    if not isinstance(P, np.ndarray):
        raise ValueError(f"{name}: {P.shape[0]:,} states are too many for the chain of paths")
    first = paths[0] if len(paths) else ()
    paths = paths if np.ndim(first) else [paths]
    possible = P > 0
    counts = np.zeros(P.shape)
    for i, path in enumerate(paths):
        states = np.asarray(path)
        if states.dtype.kind not in "iu" or states.ndim != 1 or ((states < 0) | (states >= len(P))).any():
            raise ValueError(f"{name}: path {i} must be numbers of states, 0..{len(P) - 1}")
        here, there = states[:-1], states[1:]
        for t in np.flatnonzero(~(possible[here, there] | (here == there)))[:1]:
            step = f"{labels[here[t]]} to {labels[there[t]]}"
            raise ValueError(f"{name}: step {t} of path {i}, from {step}, is no move of this maze")
        np.add.at(counts, (here, there), 1)
    counts[terminal] = 0
    left = counts.sum(axis=1)
    return np.where(left[:, None] > 0, counts / np.maximum(left, 1)[:, None], P)
