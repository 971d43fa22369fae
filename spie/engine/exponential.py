"""The exponential function by additions and multiplications alone, so that it has the same bits everywhere.

The C library's may differ in the last bit from machine to machine, and then a seed that walks by a softmax would not.

    exp(x), x a double:
        below -708: 0;  above 708: as 708 (what a softmax asks for is never positive)
        k = floor(x * LOG2_E + 0.5)                 the nearest power of two
        r = (x - k * LN2_HIGH) - k * LN2_LOW        |r| <= .3466; k * LN2_HIGH is exact, for LN2_HIGH has 33 bits
        p = 1/13!;  p = p * r + 1/n!  for n = 12, 11, ..., 0
        p * 2^k                                     exact, for 2^k is written down, not computed

Each operation is rounded on its own, never fused with the next (IEEE 754 doubles; a JavaScript number is one).
It is within 1.5 units in the last place of the true value.
"""

import math
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import power_of_two

LOWEST, HIGHEST = -708.0, 708.0
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
EXP_2, EXP_3, EXP_4, EXP_5, EXP_6, EXP_7, EXP_8, EXP_9, EXP_10, EXP_11, EXP_12, EXP_13 = (
    1.0 / math.factorial(n) for n in range(2, 14)
)
CONSTANTS: dict[str, Any] = {
    "LOWEST": LOWEST,
    "HIGHEST": HIGHEST,
    "LOG2_E": LOG2_E,
    "LN2_HIGH": LN2_HIGH,
    "LN2_LOW": LN2_LOW,
    **{f"EXP_{n}": 1.0 / math.factorial(n) for n in range(2, 14)},
}


@no_type_check
def exponential(x):
    """exp(x), as the module's docstring has it."""
    if x < LOWEST:
        return 0.0
    x = min(x, HIGHEST)
    k = np.floor(x * LOG2_E + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = EXP_13 * r + EXP_12
    p = p * r + EXP_11
    p = p * r + EXP_10
    p = p * r + EXP_9
    p = p * r + EXP_8
    p = p * r + EXP_7
    p = p * r + EXP_6
    p = p * r + EXP_5
    p = p * r + EXP_4
    p = p * r + EXP_3
    p = p * r + EXP_2
    p = p * r + 1.0
    p = p * r + 1.0
    return p * power_of_two(np.int64(k))
