"""Random Fourier features of a continuous state, and successor (psi) and predecessor (xi) features on them.

    psi(s, a) = Psi[a] phi(s),   Psi [A, d, d]          what follows s and a, in features
    xi(s)     = Xi phi(s),       Xi [d, d]              what came before s

A TD rule maps one transition to the error of psi(s, a) or xi(s') and leaves its input alone; the caller adds `eta`
times the outer product of that error with phi(s) or phi(s'). phi has length 1, so `eta` is the fraction of the error
that a step mends. `discount` is 0 where the episode ended.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spie.errors import as_array, check_number, check_whole, told

Array: TypeAlias = NDArray[np.float64]

MOST_FEATURES = 1_000_000
MOST_NUMBERS = 10**9  # of a random matrix


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """phi(x) = cos(W x + b), scaled to length 1; x is first scaled from [low, high] to the unit box.

    For W normal and b uniform, inner products of such features approach a Gaussian kernel (Rahimi and Recht, 2007).

    Calling it with observations [..., n] gives features [..., d]; `fourier_features` makes one for a space.

    >>> phi = spie.fourier_features(gym.spaces.Box(-1, 1, (2,)), dimension=8)
    >>> phi(np.zeros((5, 2))).shape, phi.dimension
    ((5, 8), 8)
    """

    W: Array  # [d, n]
    b: Array  # [d]
    low: Array  # [n]
    high: Array  # [n]

    @property
    def dimension(self) -> int:
        return len(self.b)

    def __call__(self, x: ArrayLike) -> Array:
        """phi [..., d] of observations x [..., n]."""
        x = np.asarray(x, np.float64)
        if x.shape[-1:] != self.low.shape:
            raise ValueError(f"features: observations have {list(x.shape)} numbers, not [..., {len(self.low)}]")
        if not math.isfinite(np.add.reduce(x, axis=None)):
            raise ValueError(f"features: observation {x[~np.isfinite(x).all(axis=-1)].reshape(-1)[:8]} is not finite")
        slope, offset = self._of_the_box
        phi = np.cos(x @ slope + offset)
        return np.asarray(phi / np.sqrt(np.vecdot(phi, phi))[..., None])

    @functools.cached_property
    def _of_the_box(self) -> tuple[Array, Array]:
        """W and b with the scaling to the unit box in them: W x + b of the scaled x."""
        slope = self.W / (self.high - self.low)
        return np.ascontiguousarray(slope.T), self.b - slope @ self.low


def fourier_features(
    space: Any,
    dimension: int = 128,
    length_scale: float = 0.2,
    seed: int = 0,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> FourierFeatures:
    """Random Fourier features of a Box space.

    length_scale: how far apart two states are told apart, as a fraction of the space's width.
    low, high: bounds to scale by, for a space that has none of its own; observations may lie outside.

    space: a Box of few numbers. dimension: how many features. seed: of W and b.
    Returns a function of observations. Raises ValueError where the space has no bounds and none are given.

    >>> phi = spie.fourier_features(gym.spaces.Box(-1, 1, (2,)), dimension=16, seed=1)
    >>> float(np.linalg.norm(phi(np.array([0.3, -0.2]))).round(6))
    1.0
    """
    if not isinstance(space, gym.spaces.Box):
        cure = "; states that can be counted need no features, use a tabular reward" if _is_countable(space) else ""
        raise ValueError(f"features need a Box space, not {type(space).__name__}{cure}")
    check_whole("features: dimension", dimension, 1, MOST_FEATURES)
    check_number("features: length_scale", length_scale, "[1e-100, inf)")  # 1 / 1e-310 is no number
    check_whole("features: seed", seed, 0)
    n = int(np.prod(space.shape))
    _check_size(dimension * n)
    box = [_bound(*bound, space.shape) for bound in (("low", low, space.low), ("high", high, space.high))]
    # float32's largest number is how Gymnasium's classic tasks say "no bound"
    for i in np.flatnonzero(~(np.abs(box).max(axis=0) < np.finfo(np.float32).max)):
        raise ValueError(
            f"features: number {i} of the observation lies in [{box[0][i]:g}, {box[1][i]:g}], without bounds; "
            "give low= and high= that it usually stays in"
        )
    for i in np.flatnonzero(box[0] >= box[1]):
        raise ValueError(f"features: low {box[0][i]:g} is not below high {box[1][i]:g} (number {i})")
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(dimension, n)) / length_scale
    return FourierFeatures(W, rng.uniform(0, 2 * np.pi, dimension), *box)


def _check_size(n_numbers: int) -> None:
    if n_numbers > MOST_NUMBERS:
        raise ValueError(f"features: a matrix of {n_numbers:,} random numbers is too large; give a smaller dimension")


def _bound(name: str, given: Any, own: Array, shape: tuple[int, ...]) -> Array:
    """A bound of every number of an observation [n]: the one that was given, or the space's own."""
    bound = own if given is None else as_array(f"features: {name}", given, np.float64)
    if bound.shape not in ((), shape):
        raise ValueError(f"features: {name} must be a number or have shape {list(shape)}, not {list(bound.shape)}")
    return np.broadcast_to(bound, shape).reshape(-1).astype(np.float64)


def _is_countable(space: Any) -> bool:
    return isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary)


def td_sf(Psi: Array, phi: Array, a: int, phi_next: Array, a_next: int, gamma: float, discount: float = 1.0) -> Array:
    """TD error of psi(s, a), shape [d].

        phi(s) + gamma discount psi(s', a') - psi(s, a)          (eqs 9, 10)

    a' is the action taken next (as in SARSA) or the best one there (as in Q-learning). Where actions cannot be
    counted, psi is of the state alone: Psi [1, d, d] and a = a' = 0.

    Psi: weights [A, d, d], psi(s, a) = Psi[a] phi(s). phi, phi_next: features [d] of s and s'. a, a_next: actions.
    discount: 0 where the step ended the episode.

    >>> phi, phi_next = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> spie.td_sf(np.zeros((2, 2, 2)), phi, 0, phi_next, 1, gamma=0.9).tolist()  # nothing is known: all of phi(s)
    [1.0, 0.0]
    """
    return np.asarray(phi + gamma * discount * (Psi[a_next] @ phi_next) - Psi[a] @ phi)


def td_pf(Xi: Array, phi: Array, phi_next: Array, gamma: float) -> Array:
    """TD error of xi(s'), shape [d]; no discount, for seen from the end of an episode its past is real.

    phi(s') + gamma xi(s) - xi(s')                               (eqs 14, 15)

    Xi: weights [d, d], xi(s) = Xi phi(s). phi, phi_next: features [d] of s and s'.

    >>> phi, phi_next = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> spie.td_pf(np.zeros((2, 2)), phi, phi_next, gamma=0.9).tolist()
    [0.0, 1.0]
    """
    return np.asarray(phi_next + gamma * (Xi @ phi) - Xi @ phi_next)


@dataclass(frozen=True, eq=False)
class ConvolutionFeatures:
    """phi of an image: a fixed random convolution, rectified, and a random projection of it, scaled to length 1.

    Each filter sums to 0, so that it answers to edges and not to brightness. Nothing is learned.
    """

    filters: NDArray[np.float32]  # [C, k, k, filters]
    projection: NDArray[np.float32]  # [rows * columns * filters, d]
    bias: NDArray[np.float32]  # [d], the phi of an image without edges
    bounds: Array  # the least and the largest value of a pixel
    channels: int  # the axis of the channels: -3 first, -1 last, 0 none

    @property
    def dimension(self) -> int:
        return len(self.bias)

    def __call__(self, x: ArrayLike) -> Array:
        """phi [..., d] of images x [..., H, W, C], [..., C, H, W] or [..., H, W]."""
        x = (np.asarray(x, np.float32) - np.float32(self.bounds[0])) / np.float32(self.bounds[1] - self.bounds[0])
        if not np.isfinite(x).all():
            raise ValueError("features: the image has pixels that are not finite")
        images = np.moveaxis(x, int(self.channels), -1) if self.channels else x[..., None]
        k = self.filters.shape[1]
        windows = np.lib.stride_tricks.sliding_window_view(images, (k, k), axis=(-3, -2))
        every = slice(None, None, (k + 1) // 2)
        answers = np.maximum(np.tensordot(windows[..., every, every, :, :, :], self.filters, 3), 0)
        phi = answers.reshape(*images.shape[:-3], -1) @ self.projection + self.bias
        return np.asarray(phi / np.linalg.norm(phi, axis=-1, keepdims=True), np.float64)


def convolution_features(space: Any, dimension: int = 128, filters: int = 16, seed: int = 0) -> ConvolutionFeatures:
    """Random convolutional features of a Box space of images; channels are the shorter of the first and last axis.

    dimension: how many features. filters: of each convolution. seed: of the weights.
    Returns a function of images. Raises ValueError where the space holds no images.

    >>> phi = spie.convolution_features(gym.spaces.Box(0, 255, (40, 40, 3), np.uint8), dimension=32)
    >>> phi(np.zeros((40, 40, 3), np.uint8)).shape
    (32,)
    """
    if not isinstance(space, gym.spaces.Box) or len(space.shape) not in (2, 3):
        raise ValueError(f"features of images need a Box space with two or three axes, not {told(space)}")
    for name, count in (("dimension", dimension), ("filters", filters)):
        check_whole(f"features: {name}", count, 1, MOST_FEATURES)
    check_whole("features: seed", seed, 0)
    channels = 0 if len(space.shape) == 2 else -3 if space.shape[0] < space.shape[2] else -1
    C, H, W = {0: (1, *space.shape), -3: space.shape, -1: (space.shape[-1], *space.shape[:2])}[channels]
    k = min(8, max(1, min(H, W) // 3))  # a small image has small filters
    positions = [len(range(0, length - k + 1, (k + 1) // 2)) for length in (H, W)]
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=(C, k, k, filters))
    kernel -= kernel.mean(axis=(0, 1, 2)) if kernel[..., 0].size > 1 else 0
    kernel /= np.sqrt((kernel**2).sum(axis=(0, 1, 2)))
    n = positions[0] * positions[1] * filters
    _check_size(n * dimension)
    projection = rng.normal(size=(n, dimension)) / np.sqrt(n)
    bias = 0.01 * rng.normal(size=dimension)
    bounds = np.array([space.low.min(), space.high.max()], np.float64)
    if not bounds[0] < bounds[1] < np.finfo(np.float32).max:
        raise ValueError(f"features: pixels lie in [{bounds[0]:g}, {bounds[1]:g}]; give a space with bounds")
    single = np.float32
    return ConvolutionFeatures(kernel.astype(single), projection.astype(single), bias.astype(single), bounds, channels)
