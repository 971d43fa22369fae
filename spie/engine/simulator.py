"""An MDP as kernels step through it: dynamics, episodes, and what the lanes of a call leave.

The functions are compiled into a kernel, which fills in the names in capitals. Step t of a lane, from 1, uses words 4t
of its random stream for a, 4t + 1 for s', 4t + 3 for the start of a new episode; word 3 is for the first one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, no_type_check

import numpy as np
from numpy.typing import NDArray

from spie.engine.lanes import mix
from spie.engine.policy import interval
from spie.errors import ABSURD, check_whole, told
from spie.tasks.mdp import MDP

ACTIONS = 1  # A

RUNNING, FINISHED, STOPPED = 0, 1, 2
CODES = {"RUNNING": RUNNING, "FINISHED": FINISHED, "STOPPED": STOPPED}
LANE_FIELDS = (  # of every lane, beside those of its agent
    [("total_reward", np.float64), ("total_bonus", np.float64)]
    + [("word", np.uint64), ("stride", np.uint64), ("steps", np.int64)]
    + [(name, np.int32) for name in ("state", "phase", "episode", "length", "truncated")]
    + [("over", np.int32)]  # RUNNING, FINISHED, or STOPPED because its numbers were no longer finite
)
STEP = np.dtype(
    [(name, np.int32) for name in ("state", "action", "next_state")] + [("reward", np.float64), ("bonus", np.float64)],
    align=True,
)


class FlatMDP(NamedTuple):
    """An MDP as a kernel reads it: flat."""

    following: Any  # [S * A * K] successors
    threshold: Any  # [S * A * K] successor k is drawn by a word from threshold k-1 up to below threshold k
    rewards: Any  # [G * S * A * K]
    starts: Any  # states in which episodes begin
    start_threshold: Any  # the same for them, without the last
    terminal: Any  # [G * S]
    available: Any  # [S] sets of actions, one bit each
    n_states: int
    n_successors: int
    n_phases: int
    episodes_per_phase: int


class LaneRecords(NamedTuple):
    """What the lanes of a call leave, one after the other in each array."""

    visits: Any  # [lanes * S]
    first_visit: Any  # [lanes * S]
    episode_steps: Any  # [lanes * episodes]
    snapshots: Any  # [lanes * asked steps * S]
    path: Any  # [lanes * horizon] of STEP
    earned: Any  # [lanes * parts] reward up to the end of each part of the steps, or of the episodes
    replay: Any  # [lanes * horizon]
    refused: Any  # [lanes * 2] step and state of the first replayed action that was not available; 0 for none
    snapshot_steps: Any


def dynamics(mdp: MDP) -> FlatMDP:
    """The tables of an MDP, flat."""
    (starts,) = np.nonzero(mdp.start)
    return FlatMDP(
        mdp.next.astype(np.uint32).reshape(-1),
        thresholds(mdp.prob).reshape(-1),
        mdp.reward.reshape(-1),
        starts.astype(np.uint32),
        thresholds(mdp.start[starts])[:-1],
        mdp.terminal.reshape(-1),
        action_sets(mdp.available),
        mdp.n_states,
        mdp.n_successors,
        mdp.n_phases,
        mdp.episodes_per_phase,
    )


def thresholds(prob: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Cumulative probabilities as 64-bit words: k is drawn by a word from threshold k-1 up to below threshold k."""
    return np.minimum(np.cumsum(prob, axis=-1) * 2.0**64, 2.0**64 - 2048).astype(np.uint64)


def action_sets(available: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Actions on offer [..., S, A] as a word for each state, one bit each [..., S]."""
    bits = np.uint64(1) << np.arange(available.shape[-1], dtype=np.uint64)
    return np.asarray((available * bits).sum(axis=-1, dtype=np.uint64))


def run_length(steps: int, episodes: int | None) -> tuple[int, int, int]:
    """Steps in all, the cap of an episode and the number of episodes, -1 for none; checked."""
    check_whole("steps", steps)
    if episodes is not None:
        check_whole("episodes", episodes)
    horizon = steps if episodes is None else steps * episodes
    if horizon >= 2**31:
        shown = f"{horizon:,}" if horizon < ABSURD else told(horizon)
        raise ValueError(f"a run of {shown} steps is too long: at most {2**31 - 1:,}")
    return (horizon, -1, -1) if episodes is None else (horizon, steps, episodes)


def snapshot_array(snapshots: Sequence[int], horizon: int) -> NDArray[np.int64]:
    """The steps at which visits are noted, checked."""
    steps = np.array([min(step, 2**62) for step in snapshots], np.int64)
    if len(steps) and not (steps[0] >= 1 and (np.diff(steps) > 0).all() and steps[-1] <= horizon):
        raise ValueError(f"snapshots must be rising steps between 1 and {horizon}, not {told(list(snapshots))}")
    return steps


def replay_array(actions: NDArray[Any], seeds: NDArray[np.int64], horizon: int, A: int) -> NDArray[np.int32]:
    """The actions to take [seeds, steps], each one of the MDP's."""
    n = len(seeds)
    if actions.shape not in ((horizon,), (n, horizon)):
        raise ValueError(f"replay must have shape [{horizon}] or [{n}, {horizon}]")
    actions = np.broadcast_to(actions, (n, horizon))
    for i, t in np.argwhere((actions < 0) | (actions >= A))[:1]:
        raise ValueError(f"replay: action {actions[i, t]} at step {t + 1} of seed {seeds[i]} is none of 0 ... {A - 1}")
    return actions.astype(np.int32)


# What follows is compiled. `l` is the number of a lane within the call.


@no_type_check
def replayed_action(l, s, t, horizon, mdp, records):
    """The action of a replay; the first that is not available is noted, and leads nowhere."""
    a = np.int64(records.replay[l * horizon + t - 1])
    if records.refused[2 * l] == 0 and (mdp.available[s] >> np.uint64(a)) & np.uint64(1) == np.uint64(0):
        records.refused[2 * l], records.refused[2 * l + 1] = t, s
    return a


@no_type_check
def env_step(lane, s, a, mdp):
    """s', r, and 1 - done."""
    S, K, phase = mdp.n_states, mdp.n_successors, np.int64(lane.phase)
    i = (s * ACTIONS + a) * K
    word = mix(lane.word + lane.stride)
    for k in range(K - 1):
        i += word >= mdp.threshold[(s * ACTIONS + a) * K + k]
    s_next = np.int64(mdp.following[i])
    discount = 0.0 if mdp.terminal[phase * S + s_next] else 1.0
    return s_next, mdp.rewards[phase * S * ACTIONS * K + i], discount


@no_type_check
def arrive(l, s, t, S, records):
    """Count an arrival in s."""
    records.visits[l * S + s] += 1
    if records.visits[l * S + s] == 1:
        records.first_visit[l * S + s] = t


@no_type_check
def reset(lane, l, t, word, mdp, records):
    """The first state of an episode, drawn by a random word."""
    lane.state = np.int64(mdp.starts[interval(mdp.start_threshold, word)])
    arrive(l, np.int64(lane.state), t, mdp.n_states, records)


@no_type_check
def note_episode(lane, l, episodes, records):
    """The reward up to the end of this episode, for the part of the episodes that it belongs to."""
    parts = len(records.earned) // (len(records.episode_steps) // episodes)
    records.earned[l * parts + lane.episode * parts // episodes] = lane.total_reward


@no_type_check
def end_episode(lane, l, discount, episodes, mdp, records):
    """Count an episode that has ended: its steps, whether it was truncated. After the last one the lane is over."""
    if episodes >= 0:
        records.episode_steps[l * episodes + lane.episode] = lane.length
        note_episode(lane, l, episodes, records)
    lane.truncated += discount != 0.0
    lane.episode += 1
    lane.length = 0
    if mdp.episodes_per_phase > 0:
        lane.phase = lane.episode // mdp.episodes_per_phase % mdp.n_phases
    if lane.episode == episodes:
        lane.over = FINISHED


@no_type_check
def end_step(lane, l, t, cap, episodes, discount, mdp, records):
    """Where an episode ends, by itself or at its cap, the next begins; after the last one the lane is over.

    Returns whether an episode ended.
    """
    lane.steps = t
    lane.length += 1
    if discount != 0.0 and lane.length != cap:
        return False
    end_episode(lane, l, discount, episodes, mdp, records)
    if lane.over == RUNNING:
        reset(lane, l, t, mix(lane.word + np.uint64(3) * lane.stride), mdp, records)
    return True


@no_type_check
def record(step, s, a, s_next, r, bonus):
    step.state, step.action, step.next_state, step.reward, step.bonus = s, a, s_next, r, bonus


@no_type_check
def snapshot(shot, l, t, over, S, records):
    """Note the visits at the steps asked for, or the last ones where the lane is over; how many are noted."""
    steps = records.snapshot_steps
    while shot < len(steps) and (t == steps[shot] or over):
        for s in range(S):
            records.snapshots[(l * len(steps) + shot) * S + s] = records.visits[l * S + s]
        shot += 1
    return shot


FUNCTIONS = (
    mix,
    interval,
    replayed_action,
    env_step,
    arrive,
    reset,
    note_episode,
    end_episode,
    end_step,
    record,
    snapshot,
)
