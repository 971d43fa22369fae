"""What coins reproduce: the expected number of claims is known for parts that are wide of every border."""

import math

import pytest

from spie.paper import rules
from spie.paper.claims import Claim, Evidence, Judgement
from spie.paper.coin import TOSSES, compared, luck

CLAIM = Claim("x", "Section 1", "", "text", "measured")


def four_errors(claims):
    """4 standard errors of the mean number of claims: each has a standard deviation of at most a half."""
    return 4 * math.sqrt(claims / 4) / math.sqrt(TOSSES)


def judged(*parts, claim=CLAIM, verdict="reproduced"):
    return Judgement(claim, "", verdict, "", parts)


def part(word="more", low=1.9, high=2.1):
    ends = {"more": rules.MORE, "less": rules.LESS, "similar": rules.SIMILAR}[word]
    return Evidence("a part", (low + high) / 2, low, high, **ends)


def test_coins_reproduce_what_chance_says():
    claims = [judged(*[part()] * n) for n in (1, 2, 3)] + [judged(part("less", 0.45, 0.55))]
    found = luck(claims)
    each, one, none = (coin.mean for coin in found.coins)
    assert (found.claims, found.reproduced) == (4, 4)
    assert each == pytest.approx(1 / 2 + 1 / 4 + 1 / 8 + 1 / 2, abs=four_errors(4))
    assert one == pytest.approx(4 / 2, abs=four_errors(4))
    assert none < 0.01  # 1.1 is more than three widths away


def test_without_a_least_effect_noise_alone_reproduces_one_claim_in_forty():
    wide = Evidence("a part", 1.0, 0.5, 2.0, floor=1.0, word="more")
    (*_, none) = luck([judged(wide)] * 20).coins
    assert none.mean == pytest.approx(20 * 0.025, abs=four_errors(20))


def test_only_claims_that_compare_and_were_decided_by_runs_are_tossed():
    kept = judged(part(), verdict="partly")
    others = [
        judged(part(), part("similar", 0.9, 1.1)),
        judged(part(), verdict="contradicted by the paper's own numbers"),
        judged(part(), verdict="not run"),
        judged(part(), claim=Claim("y", "Abstract", "", "text", "measured", same_as=("x",))),
        judged(Evidence("a share", 0.6, 0.55, 0.65, floor=0.5)),
    ]
    assert compared([kept, *others]) == [kept]
    assert luck([]).claims == 0


def test_numbers_that_are_none_hold_in_no_toss():
    odd = [Evidence("", math.nan, math.nan, math.nan, **rules.MORE), Evidence("", 0, 0, 0, **rules.MORE)]
    assert [coin.mean for coin in luck([judged(p) for p in odd[:1]]).coins] == [0, 0, 0]
    assert luck([judged(odd[1])]).coins[2].mean == 0
