"""Every verdict from both sides of its borders, on made-up numbers."""

import math

import numpy as np
import pytest

from spie import stats
from spie.paper import rules
from spie.paper.rules import WORDS, cell_verdict, claim_verdict, outcome, tables, times_apart


def estimate(mean, se, n=100):
    return stats.Estimate(n, mean, se * math.sqrt(n), se, mean, mean, mean - 2 * se, mean + 2 * se)


@pytest.mark.parametrize(
    ("ours", "se", "expected"),
    [
        (100.0, 0.0, "agrees"),
        (139.9, 10.0, "cannot be told apart"),  # 3.99 standard errors, 1.399 times
        (140.1, 10.0, "differs"),  # 4.01
        (124.9, 10.0, "agrees"),  # 2.5 standard errors; 1.249 times
        (125.1, 10.0, "cannot be told apart"),
        (80.1, 10.0, "agrees"),  # 1 / 1.248
        (79.9, 10.0, "cannot be told apart"),  # 1 / 1.252
        (100.5, 0.1, "differs"),  # 5 standard errors, however near
        (-10.0, 100.0, "cannot be told apart"),  # another sign is any number of times off
    ],
)
def test_a_published_mean_agrees_within_errors_and_within_a_factor(ours, se, expected):
    test = stats.agreement(estimate(ours, se), 100.0, 0.0, 100)
    assert cell_verdict(estimate(ours, se), 100.0, test) == expected


def test_a_wide_spread_of_the_paper_is_no_agreement():
    ours = estimate(95_687, 3_000, n=1000)  # SARSA-SRR(c) on SixArms, beside 562,346 ± 1,748,455
    test = stats.agreement(ours, 562_346, 1_748_455, 100)
    assert test.agrees
    assert cell_verdict(ours, 562_346, test) == "cannot be told apart"


def test_the_seeds_must_suffice_for_a_number():
    few = estimate(100.0, 1.0, n=rules.FEWEST_SEEDS - 1)
    assert cell_verdict(few, 100.0, stats.agreement(few, 100.0, 1.0, 100)) == "too few seeds"
    enough = estimate(100.0, 1.0, n=rules.FEWEST_SEEDS)
    assert cell_verdict(enough, 100.0, stats.agreement(enough, 100.0, 1.0, 100)) == "agrees"


def test_times_apart_is_the_same_both_ways_and_1_for_equals():
    assert times_apart(2.0, 8.0) == times_apart(8.0, 2.0) == 4
    assert times_apart(0.0, 0.0) == times_apart(-3.0, -3.0) == 1
    assert times_apart(0.0, 1.0) == times_apart(-1.0, 1.0) == math.inf


@pytest.mark.parametrize(
    ("word", "low", "high", "expected"),
    [
        ("more", 1.101, 1.3, "holds"),
        ("more", 1.099, 1.3, "undecided"),
        ("more", 1.01, 1.099, "too small"),
        ("more", 0.99, 1.099, "fails"),  # whether there is any is not known, but none of that size
        ("more", 0.7, 0.9, "fails"),
        ("less", 0.7, 0.909, "holds"),
        ("less", 0.7, 0.910, "undecided"),
        ("less", 0.910, 0.99, "too small"),
        ("less", 0.97, 0.995, "too small"),  # steps on MountainCar, .988
        ("less", 1.1, 1.2, "fails"),
        ("much more", 1.251, 1.4, "holds"),
        ("much more", 1.249, 1.4, "undecided"),
        ("much more", 1.02, 1.06, "too small"),  # "highly unstable", 1.04
        ("much less", 0.7, 0.799, "holds"),
        ("much less", 0.7, 0.801, "undecided"),
        ("much less", 0.93, 0.98, "too small"),  # "strong and consistent", 4.5 %
        ("similar", 0.801, 1.249, "holds"),
        ("similar", 0.799, 1.1, "undecided"),
        ("similar", 0.9, 1.251, "undecided"),
        ("similar", 0.7, 0.799, "fails"),
        ("similar", 1.251, 1.3, "fails"),
        ("no less", 0.801, 3.0, "holds"),
        ("no less", 0.799, 3.0, "undecided"),
        ("no less", 0.5, 0.799, "fails"),
        ("no more", 0.1, 1.249, "holds"),
        ("no more", 0.1, 1.251, "undecided"),
        ("no more", 1.251, 2.0, "fails"),
        ("more", math.nan, math.nan, "undecided"),
        ("more", 1.0, 1.0, "fails"),  # two agents that both never got there
    ],
)
def test_a_part_holds_where_its_interval_lies_in_the_range_of_the_word(word, low, high, expected):
    assert outcome(low, high, WORDS[word].floor, WORDS[word].ceiling, word) == expected


@pytest.mark.parametrize(
    ("low", "high", "floor", "ceiling", "expected"),
    [
        (0.501, 0.9, rules.MOST_OF, math.inf, "holds"),
        (0.499, 0.9, rules.MOST_OF, math.inf, "undecided"),
        (0.1, 0.501, rules.MOST_OF, math.inf, "undecided"),
        (0.1, 0.499, rules.MOST_OF, math.inf, "fails"),
        (0.1, 0.249, -math.inf, rules.SMALL_PART, "holds"),
        (0.1, 0.251, -math.inf, rules.SMALL_PART, "undecided"),
        (0.249, 0.4, -math.inf, rules.SMALL_PART, "undecided"),
        (0.251, 0.4, -math.inf, rules.SMALL_PART, "fails"),
    ],
)
def test_a_share_holds_on_one_side_of_its_border(low, high, floor, ceiling, expected):
    assert outcome(low, high, floor, ceiling) == expected


def test_a_share_below_its_end_is_never_too_small():
    assert outcome(0.3, 0.4, 0.5, math.inf) == outcome(1.1, 1.5, 2, math.inf) == "fails"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("h", "reproduced"),
        ("hhhh", "reproduced"),
        ("hhhf", "partly"),
        ("hhhs", "partly"),
        ("hhu", "partly"),
        ("hu", "partly"),  # as many hold as are undecided
        ("huu", "undecided"),
        ("u", "undecided"),
        ("uuuu", "undecided"),
        ("hfuuu", "partly"),  # what fails is decided
        ("hhff", "partly"),
        ("hhfff", "not reproduced"),
        ("hsf", "not reproduced"),
        ("s", "not reproduced"),
        ("f", "not reproduced"),
        ("fuuuu", "not reproduced"),
    ],
)
def test_the_verdict_follows_from_the_parts(parts, expected):
    names = {"h": "holds", "s": "too small", "f": "fails", "u": "undecided"}
    assert claim_verdict([names[part] for part in parts]) == expected


def test_opposite_words_mirror_each_other_and_a_strong_one_asks_for_more():
    for more, less in (("more", "less"), ("much more", "much less"), ("no less", "no more")):
        assert WORDS[more].floor * WORDS[less].ceiling == pytest.approx(1)
    for word in filter(lambda word: word.plain, WORDS.values()):
        plain = WORDS[word.plain]
        assert word.floor > plain.floor or word.ceiling < plain.ceiling


def test_the_page_states_every_verdict_every_word_and_every_threshold():
    text = " ".join(str(value) for table in tables() for row in table.rows for value in row.values)
    for name in (*rules.CELL_VERDICTS, *rules.VERDICTS, *rules.OUTCOMES, *WORDS):
        assert name in text
    for threshold in (stats.STANDARD_ERRORS, rules.FACTOR, rules.LEAST, rules.LEAST_MUCH, rules.FEWEST_SEEDS):
        assert f"{threshold:g}" in text
    assert np.isfinite([rules.MOST_OF, rules.SMALL_PART]).all()
