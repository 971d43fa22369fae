"""How many claims chance would reproduce under the rules: the claims that compare, with a coin in place of the results.

Claims are many, so some are reproduced by luck. Three coins, each tossed for every claim whose parts all say that one
number is larger than another, restatements left out, with the intervals as wide as they were found:
a coin for every part says which of the two is ahead; one coin says so for all parts of a claim; and the two do not
differ at all, so that only the noise of the seeds is left.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.paper import rules
from spie.paper.claims import Evidence, Judgement

TOSSES = 2000
DIRECTIONS = ("more", "less", "much more", "much less")

Array = NDArray[Any]


class Tossed(NamedTuple):
    """Claims that a coin reproduces: on average, and in all but one of forty tosses at most."""

    coin: str
    mean: float
    most: float


class Luck(NamedTuple):
    """What was found beside what coins find."""

    claims: int
    reproduced: int
    coins: Sequence[Tossed]


def compared(judgements: Sequence[Judgement]) -> list[Judgement]:
    """The claims that our runs decided, and that say which of two numbers is the larger."""
    decided = (rules.REPRODUCED, rules.PARTLY, rules.UNDECIDED, rules.NOT_REPRODUCED)
    return [
        j
        for j in judgements
        if j.verdict in decided and not j.claim.same_as and j.parts and {part.word for part in j.parts} <= {*DIRECTIONS}
    ]


def luck(judgements: Sequence[Judgement], tosses: int = TOSSES, seed: int = 0) -> Luck:
    """The claims that were reproduced, and those that coins reproduce."""
    claims, rng = compared(judgements), np.random.default_rng(seed)
    found = {name: np.zeros(tosses) for name in COINS}
    for claim in claims:
        for name, toss in COINS.items():
            found[name] += _all_hold(claim.parts, toss, rng, tosses)
    coins = [Tossed(name, float(n.mean()), float(np.quantile(n, 0.975))) for name, n in found.items()]
    return Luck(len(claims), sum(claim.verdict == rules.REPRODUCED for claim in claims), coins)


def _all_hold(parts: Sequence[Evidence], toss: "Toss", rng: np.random.Generator, tosses: int) -> Array:
    """In which tosses [tosses] all parts of a claim hold."""
    with np.errstate(all="ignore"):  # a ratio may be 0, infinite or not a number
        low, high = np.log([[part.low for part in parts], [part.high for part in parts]])
        lows, highs = np.exp(toss(low, high, rng, tosses))
        floor, ceiling = np.array([[part.floor for part in parts], [part.ceiling for part in parts]])
        return np.asarray(((floor < lows) & (highs < ceiling)).all(axis=1))


# Each takes the logarithms of the ends of the intervals [parts], and gives others [2, tosses, parts].


def _coin_each(low: Array, high: Array, rng: np.random.Generator, tosses: int) -> Array:
    return _swapped(low, high, rng.random((tosses, len(low))) < 0.5)


def _one_coin(low: Array, high: Array, rng: np.random.Generator, tosses: int) -> Array:
    return _swapped(low, high, np.repeat(rng.random((tosses, 1)) < 0.5, len(low), axis=1))


def _swapped(low: Array, high: Array, tails: Array) -> Array:
    """The two that are compared change places where the coin says so."""
    return np.stack([np.where(tails, -high, low), np.where(tails, -low, high)])


def _no_difference(low: Array, high: Array, rng: np.random.Generator, tosses: int) -> Array:
    """Intervals as wide as those, around numbers that are 1 but for the noise."""
    half = (high - low) / 2
    centre = half / 1.96 * rng.standard_normal((tosses, len(low)))
    return np.stack([centre - half, centre + half])


Toss = Callable[[Array, Array, np.random.Generator, int], Array]
COINS: dict[str, Toss] = {
    "a coin for every part": _coin_each,
    "one coin for all parts of a claim": _one_coin,
    "no difference at all, only the noise of seeds": _no_difference,
}
