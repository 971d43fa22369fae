"""The largest value of many functions at once: every start, and every member of a population, is a lane.

Functions are asked in batches: `score(x, group)` takes points x [lanes, k] of the unit cube and which function each is
for, and gives [lanes]. CMA-ES (package cmaes) finds the neighbourhood of the best, also where a function is piecewise
constant; Newton's method, on differences that are lanes again, goes to the top where it is smooth.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Score = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
STEP = 5e-4  # of differences, as a share of the bounds: rounding and curvature both stay far below what is asked for
EDGE = 1e-3  # this near to a bound an estimate counts as lying at it
AFTER, FINALISTS = 12, 5  # after that many generations only the best starts of a function go on
ENOUGH = 0.02  # a start whose population agrees to this, in log-likelihood, has arrived


@dataclass(frozen=True)
class Optimum:
    """The best point of each function."""

    x: NDArray[np.float64]  # [groups, k]
    value: NDArray[np.float64]  # [groups]
    by_start: NDArray[np.float64]  # [groups, starts] what each start reached before it was given up or had arrived
    hessian: NDArray[np.float64]  # [groups, k, k] second derivatives there; NaN where the function is not smooth


def maximise(
    score: Score,
    k: int,
    groups: int,
    *,
    starts: int = 20,
    seed: int = 0,
    smooth: bool = True,
    first: NDArray[np.float64] | None = None,
    spread: float = 0.3,
    generations: int = 60,
    progress: Callable[[float], None] | None = None,
) -> Optimum:
    """The largest value of each of `groups` functions of k numbers in [0, 1].

    first: a point for each function [groups, k] where the first start begins. spread: how far a population looks.
    """
    if k == 0:
        nothing = np.zeros((groups, 0))
        value = score(nothing, np.arange(groups))
        return Optimum(nothing, value, value[:, None], np.zeros((groups, 0, 0)))
    x, by_start = _search(score, k, groups, starts, seed, first, spread, generations, progress)
    best = by_start.argmax(axis=1)
    x, value = x[np.arange(groups), best], by_start.max(axis=1)
    hessian = np.full((groups, k, k), np.nan)
    if smooth:
        x, value, hessian = climb(score, x, value)
    return Optimum(x, value, by_start, hessian)


def _search(
    score: Score, k: int, groups: int, starts: int, seed: int, first: NDArray[np.float64] | None, spread: float,
    generations: int, progress: Callable[[float], None] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """CMA-ES from each start: where it got to [groups, starts, k], and the value there."""
    from cmaes import CMA

    rng = np.random.default_rng(seed)
    means = rng.uniform(0.1, 0.9, (groups, starts, k))
    means[:, 0] = 0.5 if first is None else np.clip(first, 0.01, 0.99)
    bounds = np.tile([0.0, 1.0], (k, 1))
    searches = [
        (g, i, CMA(means[g, i], spread, bounds, seed=int(rng.integers(2**31)), population_size=4 + k))
        for g in range(groups)
        for i in range(starts)
    ]
    x, best = means.copy(), np.full((groups, starts), -np.inf)
    idle = np.zeros((groups, starts), int)
    for generation in range(generations):
        if not searches:
            break
        asked = [np.array([search.ask() for _ in range(search.population_size)]) for _, _, search in searches]
        of = np.concatenate([np.full(len(points), g) for points, (g, _, _) in zip(asked, searches, strict=True)])
        values = score(np.concatenate(asked), of)
        values = np.where(np.isfinite(values), values, -1e12)
        at, left = 0, []
        for points, (g, i, search) in zip(asked, searches, strict=True):
            own = values[at : at + len(points)]
            at += len(points)
            search.tell([(point, -value) for point, value in zip(points, own, strict=True)])
            gain = own.max() - best[g, i]
            if gain > 0:
                x[g, i], best[g, i] = points[own.argmax()], own.max()
            idle[g, i] = 0 if gain > ENOUGH else idle[g, i] + 1
            if not (search.should_stop() or np.ptp(own) < ENOUGH or idle[g, i] >= 8):
                left.append((g, i, search))
        searches = left
        if generation + 1 == AFTER:
            last = np.sort(best, axis=1)[:, -min(FINALISTS, starts)]
            searches = [(g, i, search) for g, i, search in searches if best[g, i] >= last[g]]
        if progress is not None:
            progress((generation + 1) / generations)
    return x, best


def climb(
    score: Score, x: NDArray[np.float64], value: NDArray[np.float64], rounds: int = 12
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Newton's method on all functions at once, never downwards: points, values, and second derivatives at the end."""
    x, value = x.copy(), value.copy()
    groups, k = x.shape
    hessian = np.zeros((groups, k, k))
    moving = np.arange(groups)
    lengths = np.array([1.0, 0.5, 0.25, 0.1, 0.03])
    for _ in range(rounds):
        gradient, hessian[moving] = derivatives(score, x[moving], moving)
        step = np.stack([_newton(g, h, at) for g, h, at in zip(gradient, hessian[moving], x[moving], strict=True)])
        tried = np.clip(x[moving, None] + lengths[:, None] * step[:, None], 0.0, 1.0)
        values = score(tried.reshape(-1, k), np.repeat(moving, len(lengths))).reshape(len(moving), -1)
        values = np.where(np.isfinite(values), values, -np.inf)
        best = values.argmax(axis=1)
        gain = values.max(axis=1) - value[moving]
        better = gain > 0
        x[moving[better]] = tried[better, best[better]]
        value[moving[better]] = values.max(axis=1)[better]
        moving = moving[gain > 1e-9]
        if len(moving) == 0:
            break
    _, hessian = derivatives(score, x, np.arange(groups))
    return x, value, hessian


def _newton(gradient: NDArray[np.float64], hessian: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A step upwards, with no part out of the cube, and no longer than a quarter of it."""
    free = ~((x <= STEP) & (gradient < 0) | (x >= 1 - STEP) & (gradient > 0))
    step = np.zeros_like(x)
    if free.any():
        curvature, directions = np.linalg.eigh(hessian[np.ix_(free, free)])
        curvature = -np.maximum(np.abs(curvature), 1e-3 * max(1.0, np.abs(curvature).max()))
        step[free] = -directions @ (directions.T @ gradient[free] / curvature)
    return np.asarray(step * min(1.0, 0.25 / max(1e-12, np.abs(step).max())))


def derivatives(
    score: Score, x: NDArray[np.float64], group: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gradient [n, k] and second derivatives [n, k, k] by differences, taken within the cube, all in one call."""
    n, k = x.shape
    middle = np.clip(x, STEP, 1 - STEP)
    pairs = [(i, j) for i in range(k) for j in range(i)]
    moves = [np.zeros(k)]
    moves += [sign * STEP * np.eye(k)[i] for i in range(k) for sign in (1, -1)]
    moves += [STEP * (a * np.eye(k)[i] + b * np.eye(k)[j]) for i, j in pairs for a, b in _CORNERS]
    points = middle[:, None] + np.array(moves)
    values = score(points.reshape(-1, k), np.repeat(group, len(moves))).reshape(n, -1)
    here, up, down = values[:, 0], values[:, 1 : 2 * k : 2], values[:, 2 : 2 * k + 1 : 2]
    hessian = np.zeros((n, k, k))
    hessian[:, np.arange(k), np.arange(k)] = (up - 2 * here[:, None] + down) / STEP**2
    for (i, j), corners in zip(pairs, np.moveaxis(values[:, 2 * k + 1 :].reshape(n, -1, 4), 1, 0), strict=True):
        hessian[:, i, j] = hessian[:, j, i] = (corners @ [1, -1, -1, 1]) / (4 * STEP**2)
    return (up - down) / (2 * STEP), np.where(np.isfinite(hessian), hessian, 0.0)


_CORNERS: Sequence[tuple[int, int]] = ((1, 1), (1, -1), (-1, 1), (-1, -1))
