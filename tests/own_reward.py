"""A reward as a user writes it, in a file of their own: a constant, a helper, and a function that wants everything."""

import math

import spie

HALF = 0.5  # the engine has a HALF of its own, which this must not replace


def mix(x, y):
    """The engine has a `mix` too."""
    return HALF * x + (1 - HALF) * y


@spie.reward("everything")
def everything(M_next, M_row, M_col_next, F_row, F_row_next, N_next, N_col_next, visits, visits_next):
    """Each quantity with a weight of its own, so that none can stand in for another."""
    matrices = 0.1 * M_next - 0.2 * M_row + 0.03 * M_col_next - 0.4 * F_row + 0.25 * F_row_next
    return mix(matrices + 0.6 * N_next - 0.07 * N_col_next, math.sqrt(visits) - visits_next / (10 + visits_next))
