"""The numbers of a lane, and the arrays that the kernel of SARSA reads and writes."""

from typing import Any, NamedTuple

import numpy as np

RUNNING, FINISHED, STOPPED = 0, 1, 2
LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "q0", "m0")]
    + [("tie_tolerance", np.float64), ("total_reward", np.float64), ("total_bonus", np.float64)]
    + [("epsilon", np.uint64), ("word", np.uint64), ("stride", np.uint64), ("steps", np.int64)]
    + [(name, np.uint32) for name in ("state", "action", "seen", "phase", "table", "left")]
    + [(name, np.int32) for name in ("episode", "length", "truncated")]
    + [("over", np.int32)],  # RUNNING, FINISHED, or STOPPED because its numbers were no longer finite
    align=True,
)
STEP = np.dtype(
    [(name, np.int32) for name in ("state", "action", "next_state")] + [("reward", np.float64), ("bonus", np.float64)],
    align=True,
)


class Dynamics(NamedTuple):
    """An MDP as the kernel reads it: flat, and unsigned where an index comes out, which saves a check for < 0."""

    following: Any  # [S * A * K] successors
    threshold: Any  # [S * A * K] successor k is drawn by a word from threshold k-1 up to below threshold k
    rewards: Any  # [G * S * A * K]
    starts: Any  # states in which episodes begin
    start_threshold: Any  # the same for them, without the last
    terminal: Any  # [G * S]
    available: Any  # [S] sets of actions
    n_states: int
    n_phases: int
    episodes_per_phase: int


class Tables(NamedTuple):
    """What the lanes of a group learn, one after the other in each array; W is the length of a padded row."""

    Q: Any  # [n * S * Q_WIDTH]
    greedy: Any  # [n * S] argmax Q[s, :], a set of actions
    rank: Any  # [n * S] the row and column of a state in M, F and N, where they are ORDERED
    M: Any  # [n * S * W], likewise F and N; N is kept transposed, because its columns are what is learned
    F: Any
    N: Any
    sums: Any  # [4, n * W]


class Records(NamedTuple):
    """What the lanes of a call leave, one after the other in each array."""

    visits: Any  # [lanes * S]
    first_visit: Any  # [lanes * S]
    episode_steps: Any  # [lanes * episodes]
    snapshots: Any  # [lanes * asked steps * S]
    path: Any  # [lanes * horizon] of STEP
    replay: Any  # [lanes * horizon]
    refused: Any  # [lanes * 2] step and state of the first replayed action that was not available; 0 for none
    snapshot_steps: Any
