"""What the confirmed seeds say, in plain sentences that are computed from them and say no more."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.comparison.arms import CONSTANT, Arm

LEVEL = 0.05  # of a two-sided Mann-Whitney test, by Holm over all arms that are compared with the bare one
EXACT = 60  # seeds of two arms, up to which all ways to part them are counted
SOLVES = 0.9  # a share of seeds from which on an arm is said to solve a task
Scores = Mapping[str, NDArray[np.float64]]  # by arm, one number per seed; more is better


def p_value(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Of a two-sided Mann-Whitney test: how easily chance alone would set a and b so far apart.

    Exact up to EXACT values in all, ties included; beyond, by a normal distribution with as much variance.
    """
    values = np.concatenate([a, b])
    n, m = len(a), len(b)
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(times) - times + 1)[place]  # twice the mean rank of equal values: a whole number
    got, mean = int(ranks[:n].sum()), n * (n + m + 1)  # on average, twice n (N + 1) / 2
    if n + m <= EXACT:
        ways = _ways(ranks, n)
        either = min(ways[: got + 1].sum(), ways[got:].sum()) / ways.sum()
        return float(min(1.0, 2 * either))
    variance = n * m / (n + m - 1) * float(np.mean((ranks - ranks.mean()) ** 2))
    away = max(0.0, abs(got - mean) - 1)  # continuity: half of a rank
    return math.erfc(away / math.sqrt(2 * variance)) if variance else 1.0


def _ways(ranks: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """How many of the choices of n of these numbers have each sum [0 ... sum of all]."""
    ways = np.zeros((n + 1, int(ranks.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    return np.asarray(ways[n])


def holm(values: Mapping[str, float]) -> dict[str, float]:
    """p-values, corrected for that there are several of them (Holm)."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    for rank, (name, p) in enumerate(sorted(values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, (len(values) - rank) * p))
        adjusted[name] = largest
    return adjusted


def against(scores: Scores, other: str) -> dict[str, float]:
    """The corrected p-value of every arm against another; positive where the arm has the higher mean, else negative."""
    found = holm({name: p_value(values, scores[other]) for name, values in scores.items() if name != other})
    return {name: p if scores[name].mean() > scores[other].mean() else -p for name, p in found.items()}


def solved(scores: Scores, random_reward: float) -> tuple[float, dict[str, int]] | None:
    """A reward halfway between a random policy's and the best seed's, and the seeds of each arm that reach it.

    None where no seed is better than a random policy.
    """
    best = max(float(values.max()) for values in scores.values())
    if best <= random_reward + 1e-12:
        return None
    bar = (best + random_reward) / 2
    return bar, {name: int((values >= bar).sum()) for name, values in scores.items()}


def verdict(arms: Sequence[Arm], scores: Scores, random_reward: float, seen_reward: bool) -> list[str]:
    """The answer first, then what else the seeds say."""
    n = len(scores["bare"])
    if not seen_reward:
        return ["Nobody found a reward: nothing can be said. Give more --steps, or a task that pays on the way."]
    if all(np.ptp(np.concatenate([scores["bare"], values])) == 0 for values in scores.values()):
        return ["Every seed of every arm got the same reward: nothing was learned that could be compared."]
    signed = against(scores, "bare")
    better = [name for name, p in signed.items() if 0 < p < LEVEL]
    worse = [name for name, p in signed.items() if -LEVEL < p <= 0]
    reach = solved(scores, random_reward)
    lines = [_answer(arms, scores, better, reach[1] if reach else None, n)]
    if better:
        best = max(better, key=lambda name: float(scores[name].mean()))
        others = [name for name in better if name != best]
        if others:
            lines.append(f"Better than bare, too: {', '.join(others)}.")
    if worse:
        lines.append(f"Worse than bare: {', '.join(worse)}.")
    if n < 5:
        lines.append(f"{n} seed{'s' * (n > 1)} cannot tell more than the largest differences; give --seeds 10.")
    return lines


def _answer(arms: Sequence[Arm], scores: Scores, better: Sequence[str], reach: Mapping[str, int] | None, n: int) -> str:
    if reach is None:
        return "No seed of any arm did better than a random policy: nothing can be said. Give more --steps."
    if not better:
        if reach["bare"] >= SOLVES * n:
            return f"No bonus helps here: the bare agent solves it ({reach['bare']} of {n} seeds)."
        top = max((arm.name for arm in arms if arm.role != "bare"), key=lambda name: float(scores[name].mean()))
        count = f"{reach[top]} of {n} seeds of {top} get halfway to the best, {reach['bare']} of bare"
        return f"No bonus can be told to do better than the bare agent: {count}."
    best = max(better, key=lambda name: float(scores[name].mean()))
    seeds = f"{reach[best]} of {n} seeds against {reach['bare']}"
    if best == CONSTANT or CONSTANT not in scores:
        return f"{_subject(best)} beats bare ({seeds})" + (
            ": no bonus does better." if best == CONSTANT else "; no constant cost was compared."
        )
    p = p_value(scores[best], scores[CONSTANT])
    than = f"{reach[CONSTANT]} of {n}"
    if p < LEVEL and scores[best].mean() > scores[CONSTANT].mean():
        return f"{_subject(best)} beats bare ({seeds}), and a constant cost, too ({than})."
    return f"{_subject(best)} beats bare ({seeds}), but not a constant cost ({than})."


def _subject(name: str) -> str:
    return {CONSTANT: "A constant cost", "optimistic": "An optimistic start"}.get(name, name)
