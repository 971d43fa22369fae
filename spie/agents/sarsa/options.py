"""The constants of a kernel of SARSA, in capitals. `specialise` fills them in before it compiles.

A branch on one of them costs nothing where it does not apply. What stands here are values that the kernel's own text
is read with; `batch.py` chooses those of a run.
"""

from typing import Any

import numpy as np

from spie.agents.sarsa.layout import FINISHED, NO_MOVE, RUNNING, STOPPED
from spie.engine import exponential, sparse_rows
from spie.engine.policy import HALF, LOW_HALF

STATES, ACTIONS, SUCCESSORS = 0, 1, 1  # S (where it is small, else 0), A, K
Q_WIDTH, Q_STEP = 1, np.uint64(1)  # from one row of Q to the next: A, or 8 with -inf in the gap; the same, unsigned
ALL_ACTIONS = np.uint64(1)  # a set of actions is a word, one bit each
LEARNED = True  # M, F and N are learned; else they are given
HAS_M = HAS_M_ROW = HAS_M_COL = HAS_F = HAS_N = HAS_N_COL = False  # what the reward, or the caller, asks for
HAS_EPISODE = False  # the states of this episode are noted
ORDERED = False  # M, F, N hold states in the order of their discovery, so that a step costs O(states seen)
SPARSE = False
ENDS = False  # episodes can end
RESAMPLE = True  # the next action is drawn again; else it is a'
FIRST_TIE = False
BONUS_FIRST = False
MASKED = False  # some actions are not available everywhere
MAZES = False  # there are several mazes
REPLAYED = False  # actions come from a recording
GIVEN = False  # and so do states and rewards: the world of the lane is what happened
GUIDED = False  # starts, mazes and lengths of trials come from a recording, and choices do not
LIKELIHOOD = False  # log p of the recorded choices is summed
CHOICES = False  # and kept for each of them
SOFTMAX = False  # else epsilon-greedy
TERMS = False  # the last action, the last move or the lapse have a say
HABIT = False
OPTIMISM = False  # actions seldom tried are worth more
BY_SR = BY_PR = False  # how seldom is read off the sums of columns of M or N; else tries are counted
STANDARDISED = False  # a bonus is paid in deviations from its mean
POTENTIAL = False  # what is paid is moved backwards
EXPECTED = MAX = False  # the target looks ahead to the mean or the maximum of Q[s', :]; else to Q[s', a']
CACHED = True  # argmax Q[s, :] is kept for each state; else the policy is worked out when it is asked for
LEFT, PAID, U = 0, 1, 2  # rows of `worth`: how often states were left, what was paid then, the potential
RENEWED = 64  # steps from one renewal of the potential to the next
M_COL, M_ROW, F_ROW, N_COL = 0, 1, 2, 3  # rows of `sums`: sums over columns of M, rows of M, rows of F, columns of N

# These are the same in every kernel.
FIXED: dict[str, Any] = {
    "HALF": HALF,
    "LOW_HALF": LOW_HALF,
    "RUNNING": RUNNING,
    "FINISHED": FINISHED,
    "STOPPED": STOPPED,
    "NO_MOVE": NO_MOVE,
    "M_COL": M_COL,
    "M_ROW": M_ROW,
    "F_ROW": F_ROW,
    "N_COL": N_COL,
    "LEFT": LEFT,
    "PAID": PAID,
    "U": U,
    "RENEWED": RENEWED,
    "NONE": sparse_rows.NONE,
    "FIRST_BLOCK": sparse_rows.FIRST_BLOCK,
    **exponential.CONSTANTS,
}
VECTOR_CODE = {
    "spie.engine.simd": ("COUNT", "PICK", "largest", "not_below", "power_of_two", "update_row", "update_row_and_sums")
}
