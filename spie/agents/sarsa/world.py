"""How a lane moves through episodes, or along a recording, and what is noted on the way. Compiled into the kernel."""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa.layout import FINISHED, NO_MOVE, RUNNING, STOPPED
from spie.agents.sarsa.options import (
    ACTIONS,
    ALL_ACTIONS,
    CACHED,
    CHOICES,
    ENDS,
    GIVEN,
    GUIDED,
    HABIT,
    HAS_F,
    HAS_M,
    HAS_N,
    LEARNED,
    LIKELIHOOD,
    MASKED,
    OPTIMISM,
    ORDERED,
    Q_WIDTH,
    SPARSE,
    SUCCESSORS,
    TERMS,
)  # fmt: skip
from spie.engine.lanes import mix
from spie.engine.policy import greedy_actions, interval
from spie.engine.sparse_rows import append, clear


@no_type_check
def env_step(lane, s, a, S, mdp, records):
    """s', r, and 1 - done."""
    if GIVEN:
        here = records.moments[lane.at]
        return np.int64(records.moments[lane.at + 1].state), here.reward, here.discount
    if GUIDED:
        return guided_step(lane, s, a, S, mdp)
    K = SUCCESSORS
    i = (s * ACTIONS + a) * K
    if K > 1:
        word = mix(lane.word + lane.stride)
        for k in range(K - 1):
            i += word >= mdp.threshold[(s * ACTIONS + a) * K + k]
    s_next = np.int64(mdp.following[i])
    discount = 1.0
    if ENDS:
        i += np.int64(lane.phase) * S * ACTIONS * K
        discount = 0.0 if mdp.terminal[lane.phase * S + s_next] else 1.0
    return s_next, mdp.rewards[i], discount


@no_type_check
def guided_step(lane, s, a, S, mdp):
    """The same in the maze of this trial."""
    K = SUCCESSORS
    maze, phase, k = np.int64(lane.maze), np.int64(lane.phase), 0
    first = ((maze * S + s) * ACTIONS + a) * K
    if K > 1:
        word = mix(lane.word + lane.stride)
        for j in range(K - 1):
            k += word >= mdp.threshold[first + j]
    s_next = np.int64(mdp.following[first + k])
    table = maze * mdp.n_phases + phase
    r = mdp.rewards[((table * S + s) * ACTIONS + a) * K + k]
    return s_next, r, 0.0 if mdp.terminal[table * S + s_next] else 1.0


@no_type_check
def arrive(lane, first, place, s, t, S, tables, records):
    """Count an arrival in s; a state that is new gets the next row of M, F and N."""
    i = np.uint64(first * S + (place * S + s))  # unsigned, which saves a check for < 0
    records.visits[i] += 1
    if records.visits[i] == 1:
        records.first_visit[i] = t
        if ORDERED:
            tables.rank[place * S + s] = lane.seen
        lane.seen += 1


@no_type_check
def stop(lane, t):
    """A lane whose numbers are no longer finite goes no further."""
    lane.over = STOPPED
    lane.steps = t


@no_type_check
def record(step, s, a, s_next, r, bonus):
    step.state, step.action, step.next_state, step.reward, step.bonus = s, a, s_next, r, bonus


@no_type_check
def end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records):
    """Where an episode ends, by itself or at its cap, the next begins; after the last one the lane is over."""
    lane.steps = t
    if GIVEN or GUIDED:
        end_recorded_step(lane, first, place, t, discount, S, mdp, tables, records)
        return
    lane.length += 1
    if discount == 0.0 or lane.length == cap:
        end_episode(lane, first + place, discount, episodes, mdp, records)
        if lane.over == RUNNING:
            reset(lane, first, place, t, mix(lane.word + np.uint64(3) * lane.stride), S, mdp, tables, records)


@no_type_check
def end_episode(lane, l, discount, episodes, mdp, records):
    if episodes >= 0:
        records.episode_steps[l * episodes + lane.episode] = lane.length
    lane.truncated += discount != 0.0
    lane.episode += 1
    lane.length = 0
    lane.action = ACTIONS  # nothing to carry over
    if mdp.episodes_per_phase > 0:
        lane.phase = lane.episode // mdp.episodes_per_phase % mdp.n_phases
    if lane.episode == episodes:
        lane.over = FINISHED


@no_type_check
def reset(lane, first, place, t, word, S, mdp, tables, records):
    """The first state of an episode: drawn by a random word, or that of the recording."""
    if GIVEN or GUIDED:
        here = records.moments[lane.at]
        s = np.int64(here.state)
        lane.maze, lane.phase = here.maze, here.phase
    else:
        s = np.int64(mdp.starts[interval(mdp.start_threshold, word)])
    lane.state = s
    if TERMS:
        lane.last_action, lane.last_state, lane.last_move = ACTIONS, S, NO_MOVE
    arrive(lane, first, place, s, t, S, tables, records)


@no_type_check
def end_recorded_step(lane, first, place, t, discount, S, mdp, tables, records):
    """Where a trial of the recording is over, the next begins; after the last one the lane is over."""
    if GUIDED and discount == 0.0:  # it may end before the recorded one did
        while records.moments[lane.at + 1].action != ACTIONS:
            lane.at += 1
    lane.at += 1
    if records.moments[lane.at].action == ACTIONS:
        lane.truncated += records.moments[lane.at - 1].discount != 0.0
        lane.at += 1
        lane.episode += 1
        lane.action = ACTIONS
        if lane.at == lane.end:
            lane.over = FINISHED
        else:
            reset(lane, first, place, t, np.uint64(0), S, mdp, tables, records)


@no_type_check
def snapshot(shot, t, running, first, n, S, records):
    """Note the visits at the steps asked for, or the last ones where all lanes are over; how many are noted."""
    steps = records.snapshot_steps
    while shot < len(steps) and (t == steps[shot] or running == 0):
        for l in range(first, first + n):
            for s in range(S):
                records.snapshots[(l * len(steps) + shot) * S + s] = records.visits[l * S + s]
        shot += 1
    return shot


@no_type_check
def begin(lane, first, place, S, W, mdp, tables, pool, records):
    """Q = q0; M, F and N = m0 times the identity; the first state."""
    lane.seen = 0
    lane.action = ACTIONS
    for s in range(S):
        legal = mdp.available[s] if MASKED else ALL_ACTIONS
        q = (place * S + s) * Q_WIDTH
        for a in range(Q_WIDTH):
            taken = Q_WIDTH == ACTIONS or (legal >> np.uint64(a)) & np.uint64(1)
            tables.Q[q + a] = lane.q0 if taken else -np.inf
            if HABIT:
                tables.habit[q + a] = 0.0
            if OPTIMISM:
                tables.tries[q + a] = 0.0
        if CACHED:
            tables.greedy[place * S + s] = greedy_actions(tables.Q, np.uint64(q), legal, lane.tie_tolerance)
    if LEARNED:
        begin_matrices(lane, place, S, W, tables, pool)
    reset(lane, first, place, 0, mix(lane.word - lane.stride), S, mdp, tables, records)


@no_type_check
def begin_matrices(lane, place, S, W, tables, pool):
    """M, F and N = m0 times the identity, and their sums."""
    if SPARSE:
        clear(pool)
    for i in range(place * W, (place + 1) * W):
        for which in range(4):
            tables.sums[which, i] = lane.m0
    if lane.m0 != 0.0:
        for x in range(S):
            if SPARSE:
                for matrix in range(3):
                    append(pool, matrix * S + x, x, lane.m0)
            i = (place * S + x) * W + x
            if HAS_M and not SPARSE:
                tables.M[i] = lane.m0
            if HAS_F and not SPARSE:
                tables.F[i] = lane.m0
            if HAS_N and not SPARSE:
                tables.N[i] = lane.m0


@no_type_check
def end(lane, place, horizon, S, W, kept, tables):
    """Count the steps, and leave M, F and N at zero for the next lane, unless they are kept."""
    if not ENDS and lane.over == RUNNING:
        lane.steps = horizon
    if LIKELIHOOD and not CHOICES:
        lane.log_p -= np.log(lane.scale)
    if LEARNED and not SPARSE and not kept:
        seen = np.int64(lane.seen) if ORDERED and lane.m0 == 0.0 else S
        for x in range(seen):
            row = (place * S + x) * W
            for i in range(row, row + (seen + 7) // 8 * 8):
                if HAS_M:
                    tables.M[i] = 0.0
                if HAS_F:
                    tables.F[i] = 0.0
                if HAS_N:
                    tables.N[i] = 0.0


HELPERS = (
    guided_step, env_step, arrive, stop, record, end_episode, reset, end_recorded_step, end_step, snapshot,
    begin_matrices, begin, end,
)  # fmt: skip
