"""How a lane moves through episodes, or along a recording, and what is noted on the way. Compiled into the kernel."""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa.choice import hope_of, note_move
from spie.agents.sarsa.layout import FINISHED, NO_MOVE, RUNNING
from spie.agents.sarsa.options import (
    ACTIONS,
    ALL_ACTIONS,
    BY_PR,
    BY_SR,
    CACHED,
    CHOICES,
    ENDS,
    GIVEN,
    GUIDED,
    HABIT,
    HAS_EPISODE,
    HAS_F,
    HAS_M,
    HAS_N,
    LEARNED,
    LIKELIHOOD,
    MASKED,
    OPTIMISM,
    ORDERED,
    POTENTIAL,
    Q_WIDTH,
    SPARSE,
    SUCCESSORS,
    TERMS,
)  # fmt: skip
from spie.engine.lanes import mix
from spie.engine.policy import greedy_actions, interval
from spie.engine.simulator import end_episode, note_episode
from spie.engine.sparse_rows import append, clear


@no_type_check
def env_step(lane, s, a, S, mdp, records):
    """s', r, and 1 - done."""
    if GIVEN:
        here = records.moments[lane.at]
        return np.int64(records.moments[lane.at + 1].state), here.reward, here.discount
    if GUIDED:
        return guided_step(lane, s, a, S, mdp)
    i = (s * ACTIONS + a) * SUCCESSORS
    if SUCCESSORS > 1:
        word = mix(lane.word + lane.stride)
        for k in range(SUCCESSORS - 1):
            i += word >= mdp.threshold[(s * ACTIONS + a) * SUCCESSORS + k]
    s_next = np.int64(mdp.following[i])
    discount = 1.0
    if ENDS:
        i += np.int64(lane.phase) * S * ACTIONS * SUCCESSORS
        discount = 0.0 if mdp.terminal[lane.phase * S + s_next] else 1.0
    return s_next, mdp.rewards[i], discount


@no_type_check
def guided_step(lane, s, a, S, mdp):
    """The same in the maze of this trial."""
    maze, phase, k = np.int64(lane.maze), np.int64(lane.phase), 0
    first = ((maze * S + s) * ACTIONS + a) * SUCCESSORS
    if SUCCESSORS > 1:
        word = mix(lane.word + lane.stride)
        for j in range(SUCCESSORS - 1):
            k += word >= mdp.threshold[first + j]
    s_next = np.int64(mdp.following[first + k])
    table = maze * mdp.n_phases + phase
    r = mdp.rewards[((table * S + s) * ACTIONS + a) * SUCCESSORS + k]
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
def take_step(lane, first, place, t, a, S, mdp, tables, records):
    """Take action a: the lane holds what came of it, and what remembers the step takes note."""
    s = np.int64(lane.state)
    s_next, r, discount = env_step(lane, s, a, S, mdp, records)
    arrive(lane, first, place, s_next, t, S, tables, records)
    note_move(lane, place, s, a, s_next, r, S, mdp, tables)
    lane.taken, lane.state_next, lane.reward = a, s_next, r
    if ENDS:
        lane.discount = discount


@no_type_check
def step_of(lane):
    """s, a, s', r and 1 - done of the step that the lane has taken."""
    s, a, s_next = np.int64(lane.state), np.int64(lane.taken), np.int64(lane.state_next)
    return s, a, s_next, lane.reward, lane.discount if ENDS else 1.0


@no_type_check
def note_step(lane, now, s, a, s_next, r, bonus, records):
    """Count the reward, and keep the step where that is asked for."""
    l, t, horizon, _ = now
    lane.total_reward += r
    if len(records.path) > 0:
        step = records.path[l * horizon + t - 1]
        step.state, step.action, step.next_state, step.reward, step.bonus = s, a, s_next, r, bonus


@no_type_check
def end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records):
    """Where an episode ends, by itself or at its cap, the next begins; after the last one the lane is over."""
    if ENDS and lane.over == RUNNING:
        lane.steps = t
        if GIVEN or GUIDED:
            end_recorded_step(lane, first, place, t, discount, S, mdp, tables, records)
        else:
            lane.length += 1
            if discount == 0.0 or lane.length == cap:
                end_episode(lane, first + place, discount, episodes, mdp, records)
                lane.action = ACTIONS  # nothing to carry over
                if lane.over == RUNNING:
                    reset(lane, first, place, t, mix(lane.word + np.uint64(3) * lane.stride), S, mdp, tables, records)
    lane.word += np.uint64(4) * lane.stride


@no_type_check
def end_of_part(t, horizon, episodes, parts):
    """The last step of the part of the steps in which step t + 1 lies; none where parts are of episodes."""
    return -1 if episodes >= 0 else -(-horizon * (t * parts // horizon + 1) // parts)


@no_type_check
def note_part(lanes, first, n, t, horizon, episodes, parts, records):
    """Step t ends a part of the steps: note the rewards of a group up to it; returns the last step of the next part."""
    for place in range(n):
        records.earned[(first + place) * parts + t * parts // horizon - 1] = lanes[first + place].total_reward
    return end_of_part(t, horizon, episodes, parts)


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
def begin(lanes, first, n, S, W, mdp, tables, pool, records):
    """Of each lane of a group Q = q0; M, F and N = m0 times the identity; the first state."""
    for place in range(n):
        lane = lanes[np.uint64(first + place)]
        lane.seen = 0
        lane.action = ACTIONS
        if OPTIMISM:
            lane.hope = hope_of(lane)
        begin_values(lane, place, S, mdp, tables)
        if LEARNED:
            begin_matrices(lane, place, S, W, tables, pool)
        reset(lane, first, place, 0, mix(lane.word - lane.stride), S, mdp, tables, records)


@no_type_check
def begin_values(lane, place, S, mdp, tables):
    """Q = q0, and what goes with it."""
    for s in range(S):
        legal = mdp.available[s] if MASKED else ALL_ACTIONS
        q = (place * S + s) * Q_WIDTH
        for a in range(Q_WIDTH):
            taken = Q_WIDTH == ACTIONS or (legal >> np.uint64(a)) & np.uint64(1)
            tables.Q[q + a] = lane.q0 if taken else -np.inf
            if HABIT:
                tables.habit[q + a] = 0.0
            if OPTIMISM:
                tables.tries[q + a] = tables.sums.shape[1] - 1 if BY_SR or BY_PR else 0  # a column that is always 0
        if CACHED:
            tables.greedy[place * S + s] = greedy_actions(tables.Q, np.uint64(q), legal, lane.tie_tolerance)
        if POTENTIAL:
            for i in range((place * S + s) * ACTIONS * SUCCESSORS, (place * S + s + 1) * ACTIONS * SUCCESSORS):
                tables.moves[i] = 0.0
            for which in range(3):
                tables.worth[which, place * S + s] = 0.0
        if HAS_EPISODE:
            tables.walk[1, place * S + s] = 0


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
def end(lanes, first, n, horizon, S, W, kept, tables):
    """Count the steps of a group, and leave M, F and N at zero for the next one, unless they are kept."""
    for place in range(n):
        lane = lanes[np.uint64(first + place)]
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
    guided_step, env_step, arrive, take_step, step_of, note_step, end_of_part, note_part, note_episode, end_episode,
    reset, end_recorded_step, end_step, begin_values, begin_matrices, begin, end,
)  # fmt: skip
