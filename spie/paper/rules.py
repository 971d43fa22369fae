"""The rules by which published numbers and claims are judged: every threshold, stated once, and the words for the page.

The thresholds were fixed after the results of a first rule were known, on the grounds that stand beside them, for all
claims alike; none was moved to reach a verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spie import stats
from spie.paper.sections import Row, Table, number

RULES = 2  # raised when the same results give another verdict: what ships is then judged again
FEWEST_SEEDS = 10  # an interval from fewer decides nothing

# --- Published numbers ---

AGREES, NOT_TOLD_APART, DIFFERS = "agrees", "cannot be told apart", "differs"
TOO_FEW_SEEDS = "too few seeds"
CELL_VERDICTS = (AGREES, NOT_TOLD_APART, DIFFERS)
FACTOR = 1.25  # a mean that agrees is at most that many times the other

CELL_RULES = {
    AGREES: f"within {stats.STANDARD_ERRORS:g} combined standard errors, and neither mean above {FACTOR:g} times the "
    "other",
    NOT_TOLD_APART: f"within {stats.STANDARD_ERRORS:g} combined standard errors, but further apart than that: the "
    "spread is too large to say more",
    DIFFERS: f"{stats.STANDARD_ERRORS:g} combined standard errors apart, or more",
}


def times_apart(a: float, b: float) -> float:
    """How many times the larger of two means is the smaller; infinite where they differ in sign or one is 0."""
    if a == b:
        return 1.0
    return max(a / b, b / a) if a * b > 0 else math.inf


def cell_verdict(ours: stats.Estimate, published: float, test: stats.Agreement) -> str:
    """Whether our mean agrees with a published one."""
    if ours.n < FEWEST_SEEDS:
        return TOO_FEW_SEEDS
    if not test.agrees:
        return DIFFERS
    return AGREES if times_apart(ours.mean, published) <= FACTOR else NOT_TOLD_APART


# --- Parts of claims ---

HOLDS, TOO_SMALL, FAILS, UNDECIDED = "holds", "too small", "fails", "undecided"
OUTCOMES = {
    HOLDS: "the 95 % interval lies in the range of the claim's word",
    TOO_SMALL: "the interval lies outside, though on the side that the claim says: a difference below the least",
    FAILS: "the interval lies outside the range",
    UNDECIDED: "the interval crosses an end of the range",
}
NONE = 1.0  # the ratio of two that do not differ


@dataclass(frozen=True)
class Word:
    """What the paper says of one number over another, and the range in which a reader would say so, too."""

    says: str  # the paper's own words
    why: str
    floor: float = -math.inf
    ceiling: float = math.inf
    plain: str = ""  # the weaker word, where this is a strong one


LEAST, LEAST_MUCH = 1.1, 1.25
_PLAIN = f"below a tenth a reader would call two numbers about equal: at least {LEAST:g} times"
_STRONG = f"a strong word needs more than what passes as similar: at least {LEAST_MUCH:g} times"
WORDS = {
    "more": Word("more, faster, better, outperforms, improves", _PLAIN, floor=LEAST),
    "less": Word("less, fewer, worse, drops, suboptimal", _PLAIN, ceiling=1 / LEAST),
    "much more": Word("significantly, strong, highly, greatly", _STRONG, floor=LEAST_MUCH, plain="more"),
    "much less": Word("significantly less, poorly, hard to reach", _STRONG, ceiling=1 / LEAST_MUCH, plain="less"),
    "similar": Word(
        "similar, comparable, equivalent",
        "0.8 to 1.25, the range of bioequivalence in medicine",
        floor=1 / LEAST_MUCH,
        ceiling=LEAST_MUCH,
    ),
    "no less": Word("does not degrade, keeps, near- or supra-optimal", "similar or more", floor=1 / LEAST_MUCH),
    "no more": Word("consistently, minimal decrease", "similar or less", ceiling=LEAST_MUCH),
}


def _ends(word: str) -> dict[str, Any]:
    ends = {"floor": WORDS[word].floor, "ceiling": WORDS[word].ceiling}
    return {"word": word} | {name: end for name, end in ends.items() if math.isfinite(end)}


# What a measure is given: the ends of the range, and the word they come from.
MORE, LESS, MUCH_MORE, MUCH_LESS, SIMILAR, NO_LESS, NO_MORE = map(_ends, WORDS)
MOST_OF = 0.5  # "most", "the majority": a share above
SMALL_PART = 0.25  # "minimal", "a small proportion": a share below


def outcome(low: float, high: float, floor: float, ceiling: float, word: str = "") -> str:
    """What an interval says about a range; one that is not a number decides nothing."""
    if floor < low and high < ceiling:
        return HOLDS
    if not (high < floor or low > ceiling):
        return UNDECIDED
    right_side = (floor > NONE and low > NONE) or (ceiling < NONE and high < NONE)
    return TOO_SMALL if word and right_side else FAILS


# --- Claims ---

REPRODUCED, PARTLY, NOT_REPRODUCED = "reproduced", "partly", "not reproduced"
CONTRADICTED = "contradicted by the paper's own numbers"
NOT_RUN, OVER_BUDGET = "not run", "not run at the paper's budget"
CLAIM_RULES = {
    REPRODUCED: "all parts hold",
    PARTLY: "some parts hold, and no more fail, or are too small, than hold",
    UNDECIDED: "no part fails, and more are undecided than hold",
    NOT_REPRODUCED: "more parts fail, or are too small, than hold",
    CONTRADICTED: "the paper's tables say otherwise; what our runs say stands in the reason",
    NOT_RUN: f"no results, or fewer than {FEWEST_SEEDS} seeds",
    OVER_BUDGET: "it takes more computing than we have",
}
VERDICTS = tuple(CLAIM_RULES)


def claim_verdict(outcomes: Sequence[str]) -> str:
    """The verdict that the outcomes of the parts make."""
    holding, undecided = outcomes.count(HOLDS), outcomes.count(UNDECIDED)
    failing = len(outcomes) - holding - undecided
    if holding == len(outcomes):
        return REPRODUCED
    if failing > holding:
        return NOT_REPRODUCED
    return UNDECIDED if failing == 0 and undecided > holding else PARTLY


# --- For the page ---


def tables() -> list[Table]:
    """The rules in words and numbers."""
    ranges = []
    for name, word in WORDS.items():
        ends = [f"above {number(word.floor)}"] * math.isfinite(word.floor)
        ends += [f"below {number(word.ceiling)}"] * math.isfinite(word.ceiling)
        ranges.append(Row((name, word.says, " and ".join(ends), word.why)))
    ranges.append(Row(("most", "the majority, half", f"a share above {number(MOST_OF)}", "what the word means")))
    ranges.append(Row(("a small part", "minimal", f"a share below {number(SMALL_PART)}", "a quarter of what there is")))
    return [
        Table("A published mean", ("verdict", "when"), [Row(rule) for rule in CELL_RULES.items()], texts=2),
        Table("A claim, from its parts", ("verdict", "when"), [Row(rule) for rule in CLAIM_RULES.items()], texts=2),
        Table("A part of a claim", ("outcome", "when"), [Row(rule) for rule in OUTCOMES.items()], texts=2),
        Table(
            "The least that a reader would call by the paper's word: one number over another",
            ("word here", "in the paper", "range", "why"),
            ranges,
            texts=4,
        ),
    ]
