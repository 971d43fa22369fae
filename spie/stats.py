"""Estimates from per-seed results, and the test of one against a published number.

Everything takes one value per seed, [seeds], and returns numbers. Intervals are 95 % bootstrap intervals from a fixed
seed, so that a page made twice is the same page.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 2000
Better = Literal["more", "less"]
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
    low, high = bootstrap(lambda x: x.mean(axis=-1), x)
    return Estimate(len(x), float(x.mean()), sd, sd / math.sqrt(len(x)), float(np.median(x)), iqm(x), low, high)


def iqm(values: ArrayLike) -> float:
    """Interquartile mean: the mean of what is left when the lowest and the highest quarter of seeds are cut."""
    x = np.sort(np.asarray(values, np.float64))
    cut = int(0.25 * len(x))
    return float(x[cut : len(x) - cut].mean())


def bootstrap(
    statistic: Callable[..., NDArray[np.float64]],
    *samples: ArrayLike,
    seed: int = 0,
    bits: Literal[32, 64] = 64,
) -> tuple[float, float]:
    """95 % percentile interval of a statistic of one or several samples, the entries (seeds) of each resampled apart.

    statistic: of as many arrays as there are samples; it reduces their last axis. bits: of an index; with 32
    the resamples of many seeds take half of the memory, and are other ones.
    """
    xs = [np.asarray(values) for values in samples]
    return interval(statistic(*(x[_picks(len(x), seed + i, bits)] for i, x in enumerate(xs))))


def interval(drawn: NDArray[Any]) -> tuple[float, float]:
    """Between which ends 95 % of the resamples lie."""
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def resampled(statistic: Callable[..., Any], values: ArrayLike, seed: int = 0) -> NDArray[np.float64]:
    """A statistic, `np.median` for example, of every resample of a sample [RESAMPLES]; indices have 32 bits.

    Which ranks a resample has in its middle does not depend on the values: medians are looked up among sorted ones.
    """
    x = np.asarray(values)
    if statistic is np.median and not np.isnan(x).any():
        lower, upper = _middle_ranks(len(x), seed)
        ordered = np.sort(x)
        return np.asarray((ordered[lower] + ordered[upper]) / 2)
    return np.asarray(statistic(x[_picks(len(x), seed, 32)], axis=-1))


@functools.lru_cache(maxsize=8)
def _picks(n: int, seed: int, bits: int = 64) -> NDArray[Any]:
    """Which of n seeds are in each resample [RESAMPLES, n]."""
    return np.random.default_rng(seed).integers(n, size=(RESAMPLES, n), dtype=np.int32 if bits == 32 else np.int64)


@functools.lru_cache(maxsize=32)
def _middle_ranks(n: int, seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rank among n of the lower and of the upper middle of each resample [RESAMPLES]; one where n is odd."""
    middle = [(n - 1) // 2, n // 2]
    lower, upper = np.partition(_picks(n, seed, 32), middle, axis=1)[:, middle].T
    return lower, upper


def mean_curve(values: ArrayLike, seed: int = 0) -> NDArray[np.float64]:
    """Mean of curves [seeds, points] and its 95 % bootstrap interval at each point: mean, low, high [3, points]."""
    x = np.asarray(values, np.float64)
    weights = _weights(len(x), seed)
    return np.vstack([x.mean(axis=0), np.quantile(weights @ x, [0.025, 0.975], axis=0)])


def difference(a: ArrayLike, b: ArrayLike, seed: int = 0) -> tuple[float, float, float]:
    """Mean of a minus mean of b, above 0 where a is larger; and its 95 % interval, the seeds resampled apart."""
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    rng = np.random.default_rng(seed)  # not `bootstrap`, whose samples have streams of their own: other intervals
    means = [v[rng.integers(len(v), size=(RESAMPLES, len(v)))].mean(axis=1) for v in (x, y)]
    return float(x.mean() - y.mean()), *interval(means[0] - means[1])


def probability_of_improvement(a: ArrayLike, b: ArrayLike, better: Better = "more") -> float:
    """Chance that a seed of a beats a seed of b, ties counting half: above .5 where a is better.

    better: whether "more" is better, as of rewards, or "less", as of steps to a goal.
    """
    sign = _sign(better)
    x, y = sign * np.asarray(a, np.float64), np.sort(sign * np.asarray(b, np.float64))
    below, up_to = np.searchsorted(y, x, side="left"), np.searchsorted(y, x, side="right")
    return float((below + up_to).mean() / (2 * len(y)))


def improvement(a: ArrayLike, b: ArrayLike, seed: int = 0, better: Better = "more") -> tuple[float, float, float]:
    """The probability of improvement of a over b, above .5 where a is better, and its 95 % interval.

    The seeds of a and b are resampled apart. better: "more", as of rewards, or "less", as of steps to a goal.
    """
    x, y = (_sign(better) * np.asarray(values, np.float64) for values in (a, b))
    wins = (np.sign(x[:, None] - y) + 1) / 2  # a tie counts half
    of_a, of_b = _weights(len(x), seed), _weights(len(y), seed + 1)
    return probability_of_improvement(x, y), *interval(np.einsum("ri,ij,rj->r", of_a, wins, of_b, optimize=True))


def _sign(better: Better) -> int:
    if better not in ("more", "less"):
        raise ValueError(f'better must be "more" or "less", not "{better}"')
    return 1 if better == "more" else -1


@functools.lru_cache(maxsize=8)
def _weights(n: int, seed: int) -> NDArray[np.float64]:
    """The share of each of n seeds in each resample [RESAMPLES, n]."""
    return np.array([np.bincount(row, minlength=n) for row in _picks(n, seed)]) / n


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
