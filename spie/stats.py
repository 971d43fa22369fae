"""Estimates from per-seed results, and the test of one against a published number.

Everything takes one value per seed, [seeds], and returns numbers. Intervals are 95 % bootstrap intervals from a fixed
seed, so that a page made twice is the same page.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2000
STANDARD_ERRORS = 4.0  # the most by which a published mean that agrees with ours may differ


@dataclass(frozen=True)
class Estimate:
    """What n seeds say about one quantity."""

    n: int
    mean: float
    sd: float
    se: float
    median: float
    iqm: float
    low: float  # 95 % interval of the mean
    high: float


def estimate(values: ArrayLike) -> Estimate:
    """Mean, standard deviation and error, median, interquartile mean and the mean's 95 % interval."""
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or len(x) == 0:
        raise ValueError(f"an estimate needs one value per seed, not an array of shape {x.shape}")
    sd = float(x.std(ddof=1)) if len(x) > 1 else math.nan
    low, high = bootstrap(x, np.mean)
    return Estimate(len(x), float(x.mean()), sd, sd / math.sqrt(len(x)), float(np.median(x)), iqm(x), low, high)


def iqm(values: ArrayLike) -> float:
    """Interquartile mean: the mean of what is left when the lowest and the highest quarter of seeds are cut."""
    x = np.sort(np.asarray(values, np.float64))
    cut = int(0.25 * len(x))
    return float(x[cut : len(x) - cut].mean())


def bootstrap(values: ArrayLike, statistic: Callable[..., NDArray[np.float64]], seed: int = 0) -> tuple[float, float]:
    """95 % percentile interval of a statistic (called with `axis=1`) over resampled seeds."""
    x = np.asarray(values, np.float64)
    picks = np.random.default_rng(seed).integers(len(x), size=(RESAMPLES, len(x)))
    low, high = np.quantile(statistic(x[picks], axis=1), [0.025, 0.975])
    return float(low), float(high)


def mean_curve(values: ArrayLike, seed: int = 0) -> NDArray[np.float64]:
    """Mean of curves [seeds, points] and its 95 % bootstrap interval at each point: mean, low, high [3, points]."""
    x = np.asarray(values, np.float64)
    weights = _weights(len(x), seed)
    return np.vstack([x.mean(axis=0), np.quantile(weights @ x, [0.025, 0.975], axis=0)])


def difference(a: ArrayLike, b: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Mean of a minus mean of b, and its 95 % interval, the seeds of a and b resampled apart."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    rng = np.random.default_rng(seed)
    means = [v[rng.integers(len(v), size=(RESAMPLES, len(v)))].mean(axis=1) for v in (x, y)]
    low, high = np.quantile(means[0] - means[1], [0.025, 0.975])
    return float(x.mean() - y.mean()), float(low), float(high)


def probability_of_improvement(a: ArrayLike, b: ArrayLike) -> float:
    """Chance that a seed of a beats a seed of b, ties counting half."""
    x, y = np.asarray(a, np.float64), np.sort(np.asarray(b, np.float64))
    below, up_to = np.searchsorted(y, x, side="left"), np.searchsorted(y, x, side="right")
    return float((below + up_to).mean() / (2 * len(y)))


def improvement(a: ArrayLike, b: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """The probability of improvement of a over b, and its 95 % interval, the seeds of a and b resampled apart."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    wins = (np.sign(x[:, None] - y) + 1) / 2  # a tie counts half
    of_a, of_b = _weights(len(x), seed), _weights(len(y), seed + 1)
    low, high = np.quantile(np.einsum("ri,ij,rj->r", of_a, wins, of_b, optimize=True), [0.025, 0.975])
    return probability_of_improvement(x, y), float(low), float(high)


@functools.lru_cache(maxsize=8)
def _weights(n: int, seed: int) -> NDArray[np.float64]:
    """The share of each of n seeds in each resample [RESAMPLES, n]."""
    picks = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    return np.array([np.bincount(row, minlength=n) for row in picks]) / n


@dataclass(frozen=True)
class Agreement:
    """Our mean against a published one."""

    z: float  # distance in combined standard errors
    reading: Literal["sd", "se"]  # how the printed spread was read
    agrees: bool


def agreement(ours: Estimate, mean: float, spread: float, n: int, reading: Literal["sd", "se"] = "sd") -> Agreement:
    """Whether |ours - published| is below 4 combined standard errors.

    The published standard error is spread / sqrt(n) where the printed spread is a standard deviation, else the spread.
    """
    published_se = spread / math.sqrt(n) if reading == "sd" else spread
    both = math.hypot(ours.se, published_se)
    z = abs(ours.mean - mean) / both if both > 0 else (0.0 if ours.mean == mean else math.inf)
    return Agreement(z, reading, z < STANDARD_ERRORS)
