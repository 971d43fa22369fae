"""How actions are drawn: epsilon-greedy among values that are equal up to rounding, by one random word.

A set of actions is a word, one bit each. These functions are compiled into the kernels that use them, which fill in the
names in capitals.
"""

from typing import TYPE_CHECKING, no_type_check

import numpy as np

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import COUNT, PICK, largest, not_below

ACTIONS = 1
Q_WIDTH = 1  # room for a row of Q: one number an action, or 8 with -inf in the gap
MASKED = False  # some actions are not available everywhere
FIRST_TIE = False  # among equals, the first; else one at random
HALF, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)


@no_type_check
def interval(thresholds, word):
    """How many of the rising thresholds a word has reached."""
    low, high = 0, len(thresholds)
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] <= word:
            low = middle + 1
        else:
            high = middle
    return low


@no_type_check
def epsilon_greedy(word, epsilon, greedy, legal):
    """An action: the upper half of a random word decides whether to explore, the lower half picks from the set."""
    options = np.uint64(greedy) | (legal * np.uint64((word >> HALF) < epsilon))
    if ACTIONS <= 8:
        return np.int64(PICK[options, ((word & LOW_HALF) * np.uint64(COUNT[options])) >> HALF])
    left = np.uint64(0)
    for a in range(ACTIONS):
        left += (options >> np.uint64(a)) & np.uint64(1)
    left = ((word & LOW_HALF) * left) >> HALF
    for a in range(ACTIONS):
        if (options >> np.uint64(a)) & np.uint64(1):
            if left == np.uint64(0):
                return np.int64(a)
            left -= np.uint64(1)
    return np.int64(0)  # never: the set is not empty


@no_type_check
def greedy_actions(Q, q, legal, tie_tolerance):
    """argmax Q[s, :], stored from Q[q] on, as the set of all actions that reach it up to rounding.

    It is never empty and never more than legal, whatever the numbers: what is not below the bound is in.
    """
    if Q_WIDTH == 8:
        best = largest(Q, q)
        greedy = not_below(Q, q, best - tie_tolerance * max(1.0, abs(best)))
    else:
        best = -np.inf
        for a in range(ACTIONS):
            if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
                best = max(best, Q[q + np.uint64(a)])
        best -= tie_tolerance * max(1.0, abs(best))
        greedy = np.uint64(0)
        for a in range(ACTIONS):
            greedy |= np.uint64(not Q[q + np.uint64(a)] < best) << np.uint64(a)
    if MASKED or Q_WIDTH > ACTIONS:
        greedy &= legal
    if FIRST_TIE:
        greedy &= ~greedy + np.uint64(1)  # the lowest bit
    return greedy
