"""The exponential function of ours: near the true one, and the same in Python and compiled."""

import math
from fractions import Fraction

import numpy as np
import pytest

from reference import exponential as plain


def true_exponential(x):
    """exp(x) to 30 digits, from its series in whole fractions."""
    small, halvings = Fraction(x), 0
    while abs(small) > Fraction(1, 4):
        small, halvings = small / 2, halvings + 1
    total = term = Fraction(1)
    for n in range(1, 40):
        term = term * small / n
        total += term
    for _ in range(halvings):
        total = (total * total).limit_denominator(10**80) if total > 1 else total * total
        total = Fraction(round(total * 10**400), 10**400)
    return total


NUMBERS = [0.0, -0.0, -1e-300, -0.1, -0.3465, -0.3466, -1.0, -7.25, -30.123, -100.7, 0.5, 3.3, 20.0]
NUMBERS += (-np.random.default_rng(0).exponential(10.0, 60)).tolist()


@pytest.mark.parametrize("x", NUMBERS)
def test_it_is_within_one_and_a_half_units_in_the_last_place(x):
    true = true_exponential(x)
    assert abs(Fraction(plain(x)) - true) <= Fraction(3, 2) * Fraction(math.ulp(float(true)))


def test_it_has_its_ends():
    assert plain(0.0) == 1.0
    assert plain(-709.0) == 0.0
    assert plain(-708.0) == pytest.approx(math.exp(-708.0), rel=1e-14)
    assert plain(800.0) == plain(708.0) == pytest.approx(math.exp(708.0), rel=1e-14)


def walk_kernel(x, out):
    for i in range(len(x)):
        out[i] = exponential(x[i]) + intrinsic_reward(0.0)  # noqa: F821


@pytest.mark.slow
def test_compiled_it_has_the_same_bits():
    from spie.engine.exponential import CONSTANTS, exponential
    from spie.engine.specialise import specialise
    from spie.rewards import Reward

    nothing = Reward("nothing", lambda M_next: 0.0, ("M_next",))
    kernel = specialise(
        walk_kernel, [exponential], CONSTANTS, {"spie.engine.simd": ("power_of_two",)}, nothing, ("M_next",)
    )
    x = np.concatenate([NUMBERS, np.linspace(-720, 720, 5001)])
    out = np.empty(len(x))
    kernel(x, out)
    np.testing.assert_array_equal(out, [plain(number) for number in x])
