"""Intrinsic rewards in other people's code: a wrapper for any Gymnasium environment, single or vector.

    env = spie.IntrinsicReward(gym.make("FrozenLake-v1"), "sr-r", beta=0.1)

What can be counted (a Discrete observation) gets tables, what cannot (a Box, or whatever `features` can read) gets
features. A `Bonus` is all of it but the environment: `IntrinsicReward` here and in spie.sb3 feed it with steps.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.features import ConvolutionFeatures, FourierFeatures, convolution_features, fourier_features
from spie.representations import td_fr, td_pr, td_sr
from spie.rewards import Reward, get_reward

Array = NDArray[Any]
TABLE_BYTES = 2e9  # tables above are refused
CELLS = 10  # of the grid on which a count bonus counts, along each number of an observation
GROWING = ("cell", "rnd.optimiser")  # arrays of a state that begin empty
HASH_BITS = 16  # and where there is no grid: cells are the signs of so many projections of phi


@dataclass(frozen=True)
class Settings:
    """What an IntrinsicReward may be told; M, F and N learn as those of `Sarsa` do."""

    reward: str
    beta: float = 1.0  # scale of the intrinsic reward
    eta: float = 0.1  # learning rate of M, F and psi
    gamma_sr: float = 0.95  # discount of M, F and psi
    eta_pr: float | None = None  # learning rate of N and xi; None: eta
    gamma_pr: float | None = None  # discount of N and xi; None: gamma_sr
    replace: bool = False  # pure exploration: the environment's reward is left out
    normalise: bool = False  # divide the intrinsic reward by its root mean square so far
    anneal: int | None = None  # beta falls to 0 in so many steps, counted over all environments

    def __post_init__(self) -> None:
        if not math.isfinite(self.beta):
            raise ValueError(f"IntrinsicReward: beta must be a finite number, not {self.beta}")
        for name in ("eta", "eta_pr"):
            if (value := getattr(self, name)) is not None and not 0 < value <= 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in (0, 1], not {value}")
        for name in ("gamma_sr", "gamma_pr"):
            if (value := getattr(self, name)) is not None and not 0 <= value < 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in [0, 1), not {value}")
        if self.anneal is not None and self.anneal < 1:
            raise ValueError(f"IntrinsicReward: anneal must be a number of steps, 1 or more, not {self.anneal}")


class Tables:
    """M, F, N and visits of states that can be counted; only what a reward asks for is kept."""

    def __init__(self, space: gym.spaces.Discrete, needs: Sequence[str], settings: Settings) -> None:
        S = self.n_states = int(space.n)
        self.first = int(space.start)
        self.eta, self.gamma_sr = settings.eta, settings.gamma_sr
        self.eta_pr = settings.eta if settings.eta_pr is None else settings.eta_pr
        self.gamma_pr = settings.gamma_sr if settings.gamma_pr is None else settings.gamma_pr
        self.has_M, self.has_F, self.has_N = (
            any(need in needs for need in names)
            for names in (("M_next", "M_col_next"), ("F_row", "F_row_next"), ("N_next",))
        )
        self.has_M_col = "M_col_next" in needs
        self.has_sums = "M_row" in needs or "N_col_next" in needs
        squares = [name for name, has in (("M", self.has_M), ("F", self.has_F), ("N", self.has_N)) if has]
        if 8 * S * S * len(squares) > TABLE_BYTES:
            raise ValueError(
                f"{' and '.join(squares)} of {S:,} states would need {8e-9 * S * S * len(squares):,.1f} GB; "
                "use a reward that needs no matrix (sr, count), or sf-pf with features=, a function of the observation"
            )
        self.arrays: dict[str, Array] = {name: np.zeros((S, S)) for name in squares}
        self.arrays |= {name: np.zeros(S) for name in ("M_row", "M_col", "F_row", "N_col")}
        self.arrays["visits"] = np.zeros(S, np.int64)
        self.M, self.F, self.N = (self.arrays.get(name, np.zeros((0, 0))) for name in "MFN")
        self.M_row, self.M_col, self.F_row, self.N_col = (
            self.arrays[name] for name in ("M_row", "M_col", "F_row", "N_col")
        )
        self.visits = self.arrays["visits"]
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
        self.floors = [least.get(need, 1 if need.startswith("visits") else -math.inf) for need in needs]

    def encode(self, observation: Any) -> int:
        return int(observation) - self.first

    def encode_all(self, observations: Array, n: int) -> list[int]:
        states: list[int] = (np.asarray(observations).reshape(n) - self.first).tolist()
        return states

    def begin(self, s: int) -> None:
        """An episode begins in s."""
        self.visits[s] += 1

    def step(self, s: int, a: int, s_next: int, discount: float) -> list[float]:
        """Learn from a step; then the quantities that the reward asks for."""
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
        return [quantity(s, s_next) for quantity in self.quantities]

    def learn(self, steps: Sequence[tuple[int, int, int, float]]) -> None:
        for step in sorted(steps):
            self.step(*step)

    def read(self, s: int, a: int, s_next: int) -> list[float]:
        """The quantities of a step that was learned from."""
        return [quantity(s, s_next) for quantity in self.quantities]

    def look(self, s: int, a: int, s_next: int) -> list[float]:
        """The quantities of any step; a row that was never learned reads as after its first step."""
        return [max(quantity(s, s_next), floor) for quantity, floor in zip(self.quantities, self.floors, strict=True)]

    def look_all(self, observations: Any, a: Sequence[int], next_observations: Any) -> list[list[float]]:
        """The quantities of many steps, from anywhere."""
        return list(
            map(self.look, self.encode_all(observations, len(a)), a, self.encode_all(next_observations, len(a)))
        )

    @property
    def coverage(self) -> float:
        """Share of the states that were visited."""
        return float((self.visits > 0).mean())

    def pack(self, states: Sequence[int | None]) -> dict[str, Array]:
        """Where the environments are, as arrays; -1 where no episode is under way."""
        return {"s": np.array([-1 if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[int | None]:
        return [None if s < 0 else s for s in arrays["s"].tolist()]

    def state(self) -> dict[str, Array]:
        return self.arrays

    def load(self, arrays: dict[str, Array]) -> None:
        for name, array in self.arrays.items():
            array[:] = arrays[name]


class State(NamedTuple):
    """An observation as features see it."""

    phi: NDArray[np.float64]  # [d], of length 1
    cell: int  # where a count bonus counts it


def length(x: NDArray[np.float64]) -> float:
    """|x|_1"""
    return float(np.add.reduce(np.abs(x)))


class Features:
    """Successor features psi(s, a) = Psi[a] phi(s) and predecessor features xi(s) = Xi phi(s); visits by cell.

    Where actions cannot be counted, psi is of the state alone. A wrapper does not know the next action: in its place
    stands the mean over all of them.
    """

    def __init__(self, space: gym.Space[Any], n_actions: int, needs: Sequence[str], settings: Settings, phi: Any):
        from scipy.linalg.blas import dger

        self.dger = dger
        self.phi, self.needs = phi, needs
        self.given = not isinstance(phi, FourierFeatures | ConvolutionFeatures)
        d = phi.dimension if not self.given else np.size(phi(space.sample()))
        self.eta, self.gamma_sr = settings.eta, settings.gamma_sr
        self.eta_pr = settings.eta if settings.eta_pr is None else settings.eta_pr
        self.gamma_pr = settings.gamma_sr if settings.gamma_pr is None else settings.gamma_pr
        self.mean = np.full(n_actions, settings.gamma_sr / n_actions)  # over the next action, discounted
        self.Psi = np.zeros((n_actions, d, d) if "psi_norm" in needs else (0, d, d))
        self.Xi = np.zeros((d, d) if "xi_norm_next" in needs else (0, d))
        # In pieces so small that BLAS starts no threads for them, which would cost far more than they gain
        pieces = [slice(i, i + max(1, 8192 // d)) for i in range(0, d, max(1, 8192 // d))]
        self.Psi_rows = [[(rows, A[rows].T) for rows in pieces] for A in self.Psi]
        self.Xi_rows = [(rows, self.Xi[rows].T) for rows in pieces]
        self.counts: dict[int, int] = {}
        self.has_cells = "visits_next" in needs
        self.on_grid = isinstance(phi, FourierFeatures) and CELLS ** len(phi.low) < 2**63
        self.has_phi = any(need != "visits_next" for need in needs) or (self.has_cells and not self.on_grid)
        rng = np.random.default_rng(0)
        self.line = rng.normal(size=d)
        self.directions = rng.normal(size=(d, HASH_BITS))

    def encode(self, observation: Any) -> State:
        if not self.has_phi:
            phi = self.line  # any will do
        elif isinstance(self.phi, FourierFeatures):
            phi = self.phi(np.asarray(observation).reshape(-1))
        elif isinstance(self.phi, ConvolutionFeatures):
            phi = self.phi(observation)
        else:
            numbers = np.asarray(self.phi(observation), np.float64).reshape(-1)
            if not 0 < (length := float(np.linalg.norm(numbers))) < math.inf:
                raise ValueError(f"features: the given function returns {numbers[:8]}, which has no direction")
            phi = numbers / length
        return State(phi, self._cell(observation, phi) if self.has_cells else 0)

    def encode_all(self, observations: Any, n: int) -> list[State]:
        return [self.encode(observation) for observation in _singles(observations, n)]

    def _cell(self, observation: Any, phi: NDArray[np.float64]) -> int:
        """The cell on a grid over the space; where there is none, the signs of random projections of phi."""
        if self.on_grid:
            low, high = self.phi.low, self.phi.high
            place = (np.asarray(observation, np.float64).reshape(-1) - low) / (high - low)
            cells = np.clip(np.floor(CELLS * place), 0, CELLS - 1).astype(np.int64)
            return int(cells @ CELLS ** np.arange(len(cells)))
        return int((phi @ self.directions > 0) @ 2 ** np.arange(HASH_BITS))

    def begin(self, s: State) -> None:
        """An episode begins in s."""
        if self.has_cells:
            self.counts[s.cell] = self.counts.get(s.cell, 0) + 1

    def step(self, s: State, a: int, s_next: State, discount: float) -> list[float]:
        """Learn from a step; then the quantities that the reward asks for."""
        self.begin(s_next)  # counts it
        phi, phi_next = s.phi, s_next.phi
        of: dict[str, float] = {}
        if len(self.Psi):  # as td_sf, with the mean over a'
            psi = self.Psi[a] @ phi
            change = (discount * self.mean) @ (self.Psi @ phi_next)
            change += phi
            change -= psi
            self._add_product(self.Psi_rows[a], self.eta, change, phi)
            psi += self.eta * change  # what Psi[a] phi is now, for phi has length 1
            of["psi_norm"] = length(psi)
        if len(self.Xi):
            xi = self.Xi @ phi_next  # as td_pf, but xi(s') is wanted again
            change = phi_next + self.gamma_pr * (self.Xi @ phi) - xi
            self._add_product(self.Xi_rows, self.eta_pr, change, phi_next)
            xi += self.eta_pr * change
            of["xi_norm_next"] = length(xi)
        return self._ordered(of, s_next)

    def learn(self, steps: Sequence[tuple[State, int, State, float]]) -> None:
        for step in sorted(steps, key=lambda step: (self.line @ step[0].phi, step[1], self.line @ step[2].phi)):
            self.step(*step)

    def _add_product(self, rows: list[tuple[slice, Array]], eta: float, x: Array, y: Array) -> None:
        """A += eta x y^T, in place, by some rows of A at a time."""
        for some, block in rows:
            self.dger(eta, y, x[some], a=block, overwrite_a=1)

    def read(self, s: State, a: int, s_next: State) -> list[float]:
        """The quantities of a step that was learned from."""
        of: dict[str, float] = {}
        if len(self.Psi):
            of["psi_norm"] = length(self.Psi[a] @ s.phi)
        if len(self.Xi):
            of["xi_norm_next"] = length(self.Xi @ s_next.phi)
        return self._ordered(of, s_next)

    def _ordered(self, of: dict[str, float], s_next: State) -> list[float]:
        if "phi_norm_next" in self.needs:
            of["phi_norm_next"] = length(s_next.phi)
        if self.has_cells:
            of["visits_next"] = self.counts.get(s_next.cell, 0)
        return [of[need] for need in self.needs]

    def look(self, s: State, a: int, s_next: State) -> list[float]:
        """The quantities of any step; what was never learned reads as after a first step."""
        least = {"psi_norm": self.eta * length(s.phi), "visits_next": 1}
        least["xi_norm_next"] = self.eta_pr * length(s_next.phi)
        values = zip(self.needs, self.read(s, a, s_next), strict=True)
        return [max(value, least.get(need, 0)) for need, value in values]

    def look_all(self, observations: Any, a: Sequence[int], next_observations: Any) -> list[list[float]]:
        """The quantities of many steps, from anywhere; at once, which is faster and rounds a little differently."""
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
            cells = map(self._cell, _singles(next_observations, len(a)), phi_next)
            of["visits_next"] = np.array([max(1, self.counts.get(cell, 0)) for cell in cells])
        return np.array([of[need] for need in self.needs]).reshape(len(self.needs), len(a)).T.tolist()

    def _phi_all(self, observations: Any, n: int) -> NDArray[np.float64]:
        if self.given:
            return np.array([self.encode(observation).phi for observation in _singles(observations, n)])
        is_vector = isinstance(self.phi, FourierFeatures)
        return np.asarray(self.phi(np.reshape(observations, (n, -1)) if is_vector else observations))

    coverage = math.nan  # of a continuous space there is none

    def pack(self, states: Sequence[State | None]) -> dict[str, Array]:
        """Where the environments are, as arrays; a phi of 0 where no episode is under way."""
        nowhere = State(np.zeros(len(self.line)), 0)
        found = [nowhere if s is None else s for s in states]
        return {"s": np.array([s.phi for s in found]), "s_cell": np.array([s.cell for s in found])}

    def unpack(self, arrays: dict[str, Array]) -> list[State | None]:
        states = map(State, arrays["s"], arrays["s_cell"].tolist())
        return [s if s.phi.any() else None for s in states]

    def state(self) -> dict[str, Array]:
        fixed = {} if self.given else {f"phi_{f.name}": getattr(self.phi, f.name) for f in dataclasses.fields(self.phi)}
        return {name: np.asarray(array) for name, array in fixed.items()} | {
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
        if not self.given:
            fixed = {f.name: arrays[f"phi_{f.name}"].copy() for f in dataclasses.fields(self.phi)}
            self.phi = dataclasses.replace(self.phi, **fixed)


RND = Reward("rnd", lambda prediction_error: prediction_error, ("prediction_error",))


class Distillation:
    """Random network distillation: how badly a network predicts another, fixed one, of the state entered.

    States that can be counted are seen one-hot, images in grey, all else as a row of numbers.
    """

    coverage = math.nan

    def __init__(self, space: gym.Space[Any], features: Callable[[Any], Any] | None) -> None:
        self.space, self.features = space, features
        if features is None and not isinstance(space, gym.spaces.Discrete | gym.spaces.Box):
            raise ValueError(f'"rnd" needs observations of Discrete or Box, not {type(space).__name__}, or features=')
        self.shape = self.encode(space.sample()).shape
        self.rnd = self._build()

    def _build(self) -> Any:
        try:
            from spie.agents.dqn import bonuses, networks
        except ImportError as error:
            raise ImportError('the reward "rnd" needs torch: pip install "spie-rl[deep]"') from error
        return bonuses.RND(self.shape, networks.architecture("small"))

    def encode(self, observation: Any) -> Array:
        if self.features is not None:
            return np.asarray(self.features(observation), np.float32).reshape(-1)
        if isinstance(self.space, gym.spaces.Discrete):
            one_hot: Array = np.zeros(int(self.space.n), np.float32)
            one_hot[int(observation) - int(self.space.start)] = 1
            return one_hot
        image = np.asarray(observation, np.float32)
        if image.ndim == 3:
            return np.asarray(image.mean(axis=0 if image.shape[0] < image.shape[2] else 2))
        is_grey = image.ndim == 2 and self.space.dtype == np.uint8
        return np.asarray(image if is_grey else image.reshape(-1))

    def encode_all(self, observations: Any, n: int) -> list[Array]:
        return [self.encode(observation) for observation in _singles(observations, n)]

    def begin(self, s: Array) -> None:
        """A first state is not entered by a step."""

    def step(self, s: Array, a: int, s_next: Array, discount: float) -> list[float]:
        self.learn([(s, a, s_next, discount)])
        return self.read(s, a, s_next)

    def learn(self, steps: Sequence[tuple[Array, int, Array, float]]) -> None:
        self.rnd.learn(np.stack([s_next for _, _, s_next, _ in steps])[None])

    def read(self, s: Array, a: int, s_next: Array) -> list[float]:
        return [float(self.rnd.compute(s_next[None, None])[0, 0])]

    look = read

    def look_all(self, observations: Any, a: Sequence[int], next_observations: Any) -> list[list[float]]:
        errors = self.rnd.compute(np.stack(self.encode_all(next_observations, len(a)))[None])[0]
        return [[error] for error in errors.tolist()]

    def pack(self, states: Sequence[Array | None]) -> dict[str, Array]:
        nowhere = np.full(self.shape, np.nan, np.float32)
        return {"s": np.stack([nowhere if s is None else s for s in states])}

    def unpack(self, arrays: dict[str, Array]) -> list[Array | None]:
        return [None if np.isnan(s).any() else s for s in arrays["s"]]

    def state(self) -> dict[str, Array]:
        return {f"rnd.{name}": tensor.detach().numpy() for name, tensor in self.rnd.state().items()}

    def load(self, arrays: dict[str, Array]) -> None:
        own = {name.removeprefix("rnd."): array for name, array in arrays.items() if name.startswith("rnd.")}
        self.rnd = self._build()
        self.rnd.load(own)


class Bonus:
    """An intrinsic reward that learns from the steps of `n` environments, which may run in any order.

    settings: see `Settings`.
    features: a function of an observation that returns numbers; default: random Fourier features of a low-dimensional
        Box, a fixed random convolution of an image.
    learn: False leaves everything as it is; what a step pays is then the same whenever it is taken.
    """

    def __init__(
        self,
        env: str,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        n: int,
        settings: Settings,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
    ) -> None:
        self.env, self.settings, self.learn = env, settings, learn
        self.discrete_actions = isinstance(action_space, gym.spaces.Discrete)
        self.first_action = int(action_space.start) if isinstance(action_space, gym.spaces.Discrete) else 0
        n_actions = int(action_space.n) if isinstance(action_space, gym.spaces.Discrete) else 1
        self.learner: Any
        if settings.reward == RND.name:
            self.reward, self.learner = RND, Distillation(observation_space, features)
        elif features is None and isinstance(observation_space, gym.spaces.Discrete):
            self.reward = get_reward(settings.reward, on="tables")
            self.learner = Tables(observation_space, self.reward.needs, settings)
        else:
            phi = features or default_features(env, observation_space)
            self.reward = get_reward(settings.reward, on="features")
            self.learner = Features(observation_space, n_actions, self.reward.needs, settings, phi)
        self.states: list[Any] = [None] * n
        self.steps = 0  # of all environments, that were learned from
        self.sum_of_squares = 0.0  # of their intrinsic rewards
        self.beta = settings.beta  # at the last step
        self.raw = [0.0] * n  # the reward's own numbers at the last step, before they are scaled

    def encode(self, observation: Any) -> Any:
        try:
            return self.learner.encode(observation)
        except ValueError as error:
            raise ValueError(f"{self.env}, after step {self.steps}: {error}") from error

    def encode_all(self, observations: Any, n: int) -> list[Any]:
        try:
            states: list[Any] = self.learner.encode_all(observations, n)
        except ValueError as error:
            raise ValueError(f"{self.env}, after step {self.steps}: {error}") from error
        return states

    def begin(self, i: int, s: Any) -> None:
        """Environment i begins an episode in s."""
        self.states[i] = s
        if self.learn:
            self.learner.begin(s)

    def step(self, i: int, action: Any, s_next: Any, terminated: bool) -> float:
        """r_int of a step of environment i, as it is multiplied with beta."""
        self._anneal()
        raw = self._step(i, self.states[i], self.action(action), s_next, terminated)
        if not self.settings.normalise:
            return raw
        if self.learn:
            self.sum_of_squares += raw**2
        return raw / self.rms

    def steps_of(
        self, envs: Sequence[int], actions: Sequence[Any], next_states: Sequence[Any], terminated: Sequence[bool]
    ) -> list[float]:
        """The same for a step of each of some environments.

        All are learned from before any is paid, in an order that depends on the steps and not on their numbers.
        """
        if not envs:
            return []
        if len(envs) == 1:
            return [self.step(envs[0], actions[0], next_states[0], terminated[0])]
        self._anneal()
        steps = [
            (self.states[i], self.action(action), s_next, 0.0 if ends else 1.0)
            for i, action, s_next, ends in zip(envs, actions, next_states, terminated, strict=True)
        ]
        if self.learn:
            self.learner.learn(steps)
            self.steps += len(steps)
        read = self.learner.read if self.learn else self.learner.look
        raw = [self._pay(i, s_next, read(s, a, s_next)) for i, (s, a, s_next, _) in zip(envs, steps, strict=True)]
        if not self.settings.normalise:
            return raw
        if self.learn:
            self.sum_of_squares += math.fsum(number**2 for number in raw)
        return [number / self.rms for number in raw]

    def _step(self, i: int, s: Any, a: int, s_next: Any, ends: bool) -> float:
        if s is None:
            raise ValueError(f"{self.env}: no episode is under way; call reset() first")
        if self.learn:
            values = self.learner.step(s, a, s_next, 0.0 if ends else 1.0)
            self.steps += 1
        else:
            values = self.learner.look(s, a, s_next)
        return self._pay(i, s_next, values)

    def _pay(self, i: int, s_next: Any, values: Sequence[float]) -> float:
        """r_int from the quantities of a step of environment i, which is now in s_next."""
        self.states[i] = s_next
        try:
            raw = float(self.reward.function(*values))
        except ZeroDivisionError:
            raw = math.nan
        if not math.isfinite(raw):
            self._refuse(i, raw, values)
        self.raw[i] = raw
        return raw

    def action(self, action: Any) -> int:
        """The number of an action; 0 where they cannot be counted."""
        return int(action) - self.first_action if self.discrete_actions else 0

    def _anneal(self) -> None:
        if self.settings.anneal is not None:
            self.beta = self.settings.beta * max(0.0, 1 - self.steps / self.settings.anneal)

    @property
    def rms(self) -> float:
        """Root mean square of the intrinsic rewards so far; 1 while all are 0."""
        return math.sqrt(self.sum_of_squares / self.steps) if self.sum_of_squares > 0 else 1.0

    def total(self, r: float, r_int: float) -> float:
        """What the agent is paid."""
        if not math.isfinite(r):
            raise ValueError(f"{self.env}: the environment's own reward is {r} at step {self.steps}")
        return self.beta * r_int if self.settings.replace else r + self.beta * r_int

    def look(self, observations: Any, actions: Any, next_observations: Any) -> NDArray[np.float64]:
        """beta r_int of n steps from anywhere, as of now and without learning [n]."""
        values = self.learner.look_all(observations, [self.action(action) for action in actions], next_observations)
        raw = np.array([self.reward.function(*value) for value in values], np.float64)
        if not np.isfinite(raw).all():
            i = int(np.argmin(np.isfinite(raw)))
            self._refuse(None, raw[i], values[i])
        return self.beta * (raw / self.rms if self.settings.normalise else raw)

    def _refuse(self, i: int | None, raw: float, values: Sequence[float]) -> NoReturn:
        where = "" if i is None or len(self.states) == 1 else f", environment {i}"
        of = ", ".join(f"{need} = {value:g}" for need, value in zip(self.reward.needs, values, strict=True))
        raise ValueError(f'reward "{self.reward.name}" is {raw} at step {self.steps} of {self.env}{where}: {of}')

    def state_dict(self) -> dict[str, Any]:
        """All that it needs to go on from here: plain settings and copies of arrays."""
        arrays = self.learner.state() | self.learner.pack(self.states)
        arrays |= {"steps": np.array(self.steps), "sum_of_squares": np.array(self.sum_of_squares)}
        settings = dataclasses.asdict(self.settings) | {"learner": type(self.learner).__name__}
        return {"settings": settings, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, by an equal Bonus."""
        mine = self.state_dict()
        for name, value in mine["settings"].items():
            if state["settings"].get(name) != value:
                raise ValueError(
                    f"{self.env}: the state was saved with {name} = {state['settings'].get(name)}, "
                    f"but this wrapper has {name} = {value}; build it as the saved one"
                )
        arrays: dict[str, Array] = state["arrays"]
        for name, array in mine["arrays"].items():
            if name.startswith(GROWING):
                continue
            if name not in arrays or array.shape != arrays[name].shape:
                found = list(arrays[name].shape) if name in arrays else "missing"
                raise ValueError(
                    f"{self.env}: {name} of the saved state is {found}, not {list(array.shape)}; "
                    "it belongs to another environment, or to another number of them"
                )
        self.learner.load(arrays)
        self.states = self.learner.unpack(arrays)
        self.steps, self.sum_of_squares = int(arrays["steps"]), float(arrays["sum_of_squares"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file: safetensors, the settings as JSON in its header. Whole, or not at all."""
        import safetensors.numpy

        state = self.state_dict()
        data = safetensors.numpy.save(state["arrays"], {"spie": json.dumps(state["settings"])})
        unfinished = Path(f"{os.fspath(path)}.{os.getpid()}.tmp")
        try:
            with unfinished.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote."""
        import safetensors

        try:
            with safetensors.safe_open(path, "np") as file:
                settings = json.loads((file.metadata() or {})["spie"])
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        except (safetensors.SafetensorError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"{os.fspath(path)} was not written by IntrinsicReward.save, or is damaged") from error
        self.load_state_dict({"settings": settings, "arrays": arrays})


def default_features(env: str, space: gym.Space[Any]) -> FourierFeatures | ConvolutionFeatures:
    """Random Fourier features of a vector, a fixed random convolution of an image."""
    if not isinstance(space, gym.spaces.Box):
        raise ValueError(
            f"{env}: observations of {type(space).__name__} have no default features; give features=, a function of an "
            "observation that returns numbers, or make them one Box with gymnasium.wrappers.FlattenObservation"
        )
    if len(space.shape) == 3 or (len(space.shape) == 2 and space.dtype == np.uint8):
        return convolution_features(space)
    try:
        return fourier_features(space)
    except ValueError as error:
        raise ValueError(f"{env}: {error}, as features=spie.fourier_features(space, low=..., high=...)") from error


def _singles(observations: Any, n: int) -> Iterable[Any]:
    """The n observations of a batch, one by one."""
    if isinstance(observations, dict):
        parts = {key: list(_singles(part, n)) for key, part in observations.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(n)]
    if isinstance(observations, tuple):
        return list(zip(*(_singles(part, n) for part in observations), strict=True))
    return list(observations)


def env_name(env: Any) -> str:
    """What to call an environment in a message."""
    first = getattr(env.unwrapped, "envs", [env])[0]  # of a vector in this process
    return first.spec.id if getattr(first, "spec", None) else type(first.unwrapped).__name__


class Kept:
    """What every wrapper with a bonus can be asked: to keep its state."""

    bonus: Bonus

    def state_dict(self) -> dict[str, Any]:
        """All that the bonus needs to go on from here: settings and copies of arrays."""
        return self.bonus.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, by an equal wrapper."""
        self.bonus.load_state_dict(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the bonus to a file: safetensors with JSON, no pickle."""
        self.bonus.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote."""
        self.bonus.load(path)


class IntrinsicReward(Kept, gym.Wrapper[Any, Any, Any, Any]):
    """Adds beta times an intrinsic reward to the reward of an environment; of a vector environment likewise.

    info["extrinsic_reward"] is the environment's own reward, info["intrinsic_reward"] what was added before beta.
    The bonus of a step is read after the step was learned from. Termination ends the future that M, F and psi look
    into, truncation does not, and no step leads from one episode into the next. `env.bonus` is the learner.

    reward: a name of `spie list`, of your own `@spie.reward`, or "rnd" (random network distillation, needs torch).
    beta: its scale.
    options: see `spie.dropin.bonus.Settings`.
    features, learn: see `spie.dropin.bonus.Bonus`.
    """

    def __new__(cls, env: Any = None, *arguments: Any, **options: Any) -> Any:
        if isinstance(env, gym.vector.VectorEnv):
            return VectorIntrinsicReward(env, *arguments, **options)
        return super().__new__(cls)

    def __init__(
        self,
        env: gym.Env[Any, Any],
        reward: str,
        beta: float = 1.0,
        *,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(env)
        settings = Settings(reward, beta, **options)
        self.features = features
        self.bonus = Bonus(env_name(env), env.observation_space, env.action_space, 1, settings, features, learn)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self.bonus.begin(0, self.bonus.encode(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, r, terminated, truncated, info = self.env.step(action)
        bonus, r = self.bonus, float(r)
        r_int = bonus.step(0, action, bonus.encode(observation), terminated)
        info = {**info, "extrinsic_reward": r, "intrinsic_reward": r_int}
        return observation, bonus.total(r, r_int), terminated, truncated, info


class VectorIntrinsicReward(Kept, gym.vector.VectorWrapper):
    """What IntrinsicReward makes of a vector environment, in any of its autoreset modes.

    All environments share one representation. In the step that only resets an environment there is no bonus, and
    infos["_intrinsic_reward"] is False.
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv,
        reward: str,
        beta: float = 1.0,
        *,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(env)
        settings = Settings(reward, beta, **options)
        spaces = env.single_observation_space, env.single_action_space
        self.bonus = Bonus(env_name(env), *spaces, env.num_envs, settings, features, learn)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        everyone = np.ones(self.num_envs, np.bool_)
        chosen = (options or {}).get("reset_mask", everyone)
        observations, infos = self.env.reset(seed=seed, options=options)
        states = self.bonus.encode_all(observations, self.num_envs)
        for i in np.flatnonzero(chosen).tolist():
            self.bonus.begin(i, states[i])
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        bonus, n = self.bonus, self.num_envs
        now = bonus.encode_all(observations, n)
        only_reset = np.array([s is None for s in bonus.states])
        ended = infos.get("_final_obs", np.zeros(n, np.bool_))  # and began anew, within this step
        stepped = np.flatnonzero(~only_reset).tolist()
        next_states = [bonus.encode(infos["final_obs"][i]) if ended[i] else now[i] for i in stepped]
        r_int = np.zeros(n)
        r_int[stepped] = bonus.steps_of(stepped, [actions[i] for i in stepped], next_states, terminated[stepped])
        for i in np.flatnonzero(only_reset | ended).tolist():
            bonus.begin(i, now[i])
        for i in np.flatnonzero((terminated | truncated) & ~ended).tolist():
            bonus.states[i] = None  # its next step, or the user, resets it
        added = {"extrinsic_reward": rewards, "intrinsic_reward": r_int}
        infos = {**infos, **added, **{f"_{name}": ~only_reset for name in added}}
        totals = np.array([bonus.total(*pair) for pair in zip(rewards.tolist(), r_int.tolist(), strict=True)])
        return observations, totals, terminated, truncated, infos
