import math
from functools import partial

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from spie.stats import (
    agreement,
    bootstrap,
    difference,
    estimate,
    improvement,
    iqm,
    mean_curve,
    probability_of_improvement,
    resampled,
)

MEAN = partial(np.mean, axis=-1)
VALUES = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40)


def test_an_estimate_of_four_seeds_by_hand():
    e = estimate([1.0, 2.0, 3.0, 10.0])
    assert (e.n, e.mean, e.median, e.iqm) == (4, 4.0, 2.5, 2.5)
    assert e.sd == pytest.approx(math.sqrt((9 + 4 + 1 + 36) / 3))
    assert e.se == pytest.approx(e.sd / 2)


def test_a_single_seed_has_no_spread():
    e = estimate([7.0])
    assert e.mean == e.low == e.high == 7.0
    assert math.isnan(e.sd)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]]])
def test_an_estimate_refuses_what_is_not_one_value_per_seed(values):
    with pytest.raises(ValueError, match="one value per seed"):
        estimate(values)


@given(VALUES)
def test_the_interquartile_mean_is_scipys_trimmed_mean(values):
    assert iqm(values) == pytest.approx(scipy.stats.trim_mean(values, 0.25), rel=1e-12, abs=1e-6)


def test_the_interval_is_scipys_percentile_bootstrap():
    x = np.random.default_rng(1).lognormal(size=100)
    expected = scipy.stats.bootstrap((x,), np.mean, n_resamples=20_000, method="percentile", rng=2).confidence_interval
    # A quantile q of B resamples has a standard error of sqrt(q (1 - q) / B) / density, about 0.06 sd at B = 2000.
    wiggle = 5 * 0.06 * x.std() / math.sqrt(len(x))
    assert bootstrap(MEAN, x) == pytest.approx(tuple(expected), abs=wiggle)


@pytest.mark.parametrize("n", [1, 2, 20, 21])
def test_medians_of_resamples_are_those_of_the_sorted_sample(n):
    x = np.random.default_rng(n).integers(9, size=n).astype(float)  # some are equal
    ordered = np.sort(x)
    expected = resampled(lambda drawn, axis: np.median(drawn, axis=axis), ordered, 3)
    np.testing.assert_array_equal(resampled(np.median, x, 3), expected)
    assert np.isnan(resampled(np.median, np.append(x, np.nan)[::-1])).any()


def test_the_interval_covers_the_true_mean_about_95_times_in_100():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        low, high = bootstrap(MEAN, rng.normal(size=60))
        covered += low < 0 < high
    assert abs(covered / 300 - 0.94) < 4 * math.sqrt(0.95 * 0.05 / 300)  # the percentile interval is a little short


def test_a_curve_has_at_each_point_the_interval_of_that_point():
    values = np.random.default_rng(5).normal(size=(30, 4))
    mean, low, high = mean_curve(values)
    for k in range(4):
        assert (mean[k], low[k], high[k]) == pytest.approx((values[:, k].mean(), *bootstrap(MEAN, values[:, k])))


def test_the_difference_of_means_has_the_interval_of_two_independent_samples():
    rng = np.random.default_rng(4)
    a, b = rng.normal(1, 1, 400), rng.normal(0, 2, 400)
    mean, low, high = difference(a, b)
    assert mean == pytest.approx(a.mean() - b.mean())
    se = math.hypot(a.std() / 20, b.std() / 20)
    assert (high - low) == pytest.approx(2 * 1.96 * se, rel=0.1)


@given(VALUES, VALUES)
def test_the_probability_of_improvement_is_the_mann_whitney_statistic(a, b):
    expected = scipy.stats.mannwhitneyu(a, b, method="asymptotic").statistic / (len(a) * len(b))
    assert probability_of_improvement(a, b) == pytest.approx(expected)


def test_an_agent_that_always_wins_has_no_interval_and_one_against_itself_is_even():
    assert improvement([3.0, 4.0], [1.0, 2.0]) == (1, 1, 1)
    p, low, high = improvement([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (p, low + high) == (0.5, pytest.approx(1, abs=0.05))


def test_the_interval_of_an_improvement_has_the_width_of_its_standard_error():
    rng = np.random.default_rng(5)
    a, b = rng.normal(0.3, 1, 200), rng.normal(0, 1, 200)
    p, low, high = improvement(a, b)
    below = [np.mean(b < x) for x in a]  # the chance of each seed of a, and of each of b
    above = [np.mean(a > y) for y in b]
    se = math.sqrt(np.var(below) / 200 + np.var(above) / 200)
    assert high - low == pytest.approx(2 * 1.96 * se, rel=0.1)
    assert low < p < high


def test_agreement_divides_a_standard_deviation_but_not_a_standard_error_by_the_root_of_n():
    ours = estimate([90.0, 110.0, 90.0, 110.0])  # mean 100, se 5.77
    as_sd = agreement(ours, 150.0, 80.0, 100)
    assert as_sd.z == pytest.approx(50 / math.hypot(ours.se, 8.0))
    assert not as_sd.agrees
    as_se = agreement(ours, 150.0, 80.0, 100, "se")
    assert as_se.z == pytest.approx(50 / math.hypot(ours.se, 80.0))
    assert as_se.agrees


def test_numbers_without_any_spread_agree_only_when_equal():
    zero = estimate([0.0, 0.0, 0.0])
    assert agreement(zero, 0.0, 0.0, 10).agrees
    assert not agreement(zero, 1.0, 0.0, 10).agrees


def test_a_comparison_says_which_way_is_better():
    rewards, steps = ([3, 4, 5], [1, 2, 3]), ([10, 12], [20, 30])
    assert probability_of_improvement(*rewards) == pytest.approx(8.5 / 9)
    assert probability_of_improvement(*steps, better="less") == 1
    assert improvement(*steps, better="less") == (1, 1, 1)
    assert improvement(*steps)[0] == 0
    assert difference([3, 4], [1, 2])[0] == 2
    with pytest.raises(ValueError, match='better must be "more" or "less", not "higher"'):
        improvement([1], [2], better="higher")
