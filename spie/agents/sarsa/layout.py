"""The numbers of a lane, and the arrays that the kernel of SARSA reads and writes."""

from typing import Any, NamedTuple

import numpy as np

from spie.engine.simulator import FINISHED as FINISHED
from spie.engine.simulator import RUNNING as RUNNING
from spie.engine.simulator import STEP as STEP
from spie.engine.simulator import STOPPED as STOPPED

NO_MOVE = 2**31 - 1  # no difference of two positions
LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "q0", "m0")]
    + [("tie_tolerance", np.float64), ("total_reward", np.float64), ("total_bonus", np.float64)]
    + [("epsilon", np.uint64), ("word", np.uint64), ("stride", np.uint64), ("steps", np.int64)]
    + [(name, np.uint32) for name in ("state", "action", "seen", "phase", "table", "left")]
    + [("taken", np.uint32), ("state_next", np.uint32), ("reward", np.float64), ("discount", np.float64)]  # of a step
    + [(name, np.int32) for name in ("episode", "length", "truncated")]
    + [("over", np.int32)]  # RUNNING, FINISHED, or STOPPED because its numbers were no longer finite
    # The policy, and what it remembers of this episode
    + [(name, np.float64) for name in ("inverse_temperature", "stickiness", "heading", "turn_back", "lapse")]
    + [(name, np.float64) for name in ("habit", "habit_rate")]
    + [("last_action", np.uint32), ("last_state", np.uint32)]  # A and S at its start; the state is the last other one
    + [("last_move", np.int32), ("maze", np.uint32)]
    # Optimism: its factor; the average of |r|, gamma^t, the largest average so far; and what an untried action gets
    + [(name, np.float64) for name in ("optimism", "average", "forgotten", "largest", "hope")]
    # Of the bonuses so far: how many, their mean, and the sum of squared differences from it
    + [(name, np.float64) for name in ("n_bonuses", "bonus_mean", "bonus_squares")]
    + [("unrenewed", np.int64)]  # steps since the potential was renewed
    + [("walk", np.int64), ("walked", np.int64)]  # the episode whose states are noted, and how many they are
    # A recording: where the lane is in it, and log p of its choices so far, log_p - log(scale)
    + [("at", np.int64), ("end", np.int64), ("log_p", np.float64), ("scale", np.float64)],
    align=True,
)
# A recording, state by state: a trial of n steps has n + 1 of these, the last without an action.
MOMENT = np.dtype(
    [(name, np.uint32) for name in ("state", "action", "maze", "phase")]
    + [("ways", np.uint32)]  # 1 + the row of `Recorded.ways` where several actions may have led on; 0: it is known
    + [("discount", np.float64), ("reward", np.float64)],  # of the step that leaves it
    align=True,
)


class Dynamics(NamedTuple):
    """An MDP as the kernel reads it: flat, and unsigned where an index comes out, which saves a check for < 0.

    Several mazes (X) lie one after the other in each array that has one.
    """

    following: Any  # [X * S * A * K] successors
    threshold: Any  # [X * S * A * K] successor k is drawn by a word from threshold k-1 up to below threshold k
    rewards: Any  # [X * G * S * A * K]
    starts: Any  # states in which episodes begin
    start_threshold: Any  # the same for them, without the last
    terminal: Any  # [X * G * S]
    available: Any  # [X * S] sets of actions
    leads: Any  # [X * S * A] where an action leads most of the time
    position: Any  # [S] of a state on its map, as a number whose differences tell directions
    n_states: int
    n_phases: int
    episodes_per_phase: int


class Tables(NamedTuple):
    """What the lanes of a group learn, one after the other in each array; W is the length of a padded row."""

    Q: Any  # [n * S * Q_WIDTH]
    greedy: Any  # [n * S] argmax Q[s, :], a set of actions
    rank: Any  # [n * S] the row and column of a state in M, F and N, where they are ORDERED
    habit: Any  # [n * S * Q_WIDTH]
    tries: Any  # [n * S * Q_WIDTH] how often each action was taken in each state, or which of `sums` counts it
    preference: Any  # [A + 1] of the actions of the state that is looked at, and the largest of them
    weight: Any  # [A] their probabilities up to a common factor
    M: Any  # [n * S * W], likewise F and N; N is kept transposed, because its columns are what is learned
    F: Any
    N: Any
    sums: Any  # [4, n * W + 8], of which the last 8 stay 0
    moves: Any  # [n * S * A * K] how often each successor followed, ends left out
    worth: Any  # [3, n * S] how often a state was left, what was paid for it, and the potential U
    walk: Any  # [2, n * S] where the rows in F of this episode's states begin, and when each state was last one of them


class Records(NamedTuple):
    """What the lanes of a call leave, one after the other in each array; and what a recording gives them."""

    visits: Any  # [lanes * S]
    first_visit: Any  # [lanes * S]
    episode_steps: Any  # [lanes * episodes]
    path: Any  # [lanes * horizon] of STEP
    log_p: Any  # [lanes * horizon] of the recorded choices
    earned: Any  # [lanes * parts] reward up to the end of each part of the steps, or of the episodes
    refused: Any  # [lanes * 2] step and state of the first replayed action that was not available; 0 for none
    actions: Any  # the actions of a replay, wherever they lead
    moments: Any  # of MOMENT: a replay with its states
    ways: Any  # [n, A] how likely each action leads from a moment's state to the next one
