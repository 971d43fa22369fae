"""How a lane chooses: its policy, the choice terms, and the probability of a recorded choice. Compiled into the kernel.

What an action is worth to the policy, its preference, is

    epsilon-greedy:  x(a) =                       Q[s, a] + terms(a)      the best with chance 1 - epsilon, else any
    softmax:         x(a) = inverse_temperature * Q[s, a] + terms(a)      with chance proportional to exp(x(a))

    terms(a) = stickiness   where a is the last action of this episode
             + heading      where a leads on in the direction of the last move
             + turn_back    where a leads back to the state before the last move
             + habit * H[s, a],   H[s, :] += habit_rate (1(a) - H[s, :]) after each action a taken in s

A move is a step that changes the state; a bump is none, and leaves the last move as it is. Where an action leads is its
most likely successor, the first of several. Directions are those of the map. With chance `lapse` a softmax chooses any
available action, each alike.

With optimism, Q[s, a] is read everywhere, here and in the target, as

    Q[s, a] + optimism * V / (n[s, a] + 1)^2

n being how often a was taken in s (count="visits"), or a pseudo-count of the state s' to which it led last: the sum of
its column |M[:, s']| / eta (count="sr-column") or |N[:, s']| / eta_PR (count="pr-column"), 0 before the first try. For
the former an end teaches that nothing follows it: M[s', :] += eta (1(s') - M[s', :]). V = R / (1 - gamma) is the scale
of the values: R is the largest average of |r| so
far, of averages that forget at the rate 1 - gamma, corrected for their start at 0. While no reward other than 0 was
seen, R is .01.
"""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa.layout import NO_MOVE
from spie.agents.sarsa.options import (
    ACTIONS,
    ALL_ACTIONS,
    BY_PR,
    BY_SR,
    CACHED,
    CHOICES,
    ENDS,
    EXPECTED,
    GIVEN,
    GUIDED,
    HABIT,
    LIKELIHOOD,
    M_COL,
    MASKED,
    MAX,
    MAZES,
    N_COL,
    OPTIMISM,
    ORDERED,
    Q_STEP,
    REPLAYED,
    RESAMPLE,
    SOFTMAX,
    TERMS,
)  # fmt: skip
from spie.engine.exponential import exponential
from spie.engine.lanes import mix
from spie.engine.policy import epsilon_greedy, greedy_actions


@no_type_check
def choose(lane, now, place, S, mdp, tables, records):
    """The action of step t: recorded, carried over from the step before, or drawn."""
    l, t, horizon, _ = now
    s = np.int64(lane.state)
    if GIVEN:
        a = np.int64(records.moments[lane.at].action)
        if LIKELIHOOD and (RESAMPLE or lane.action == ACTIONS):  # else it was chosen when it was looked ahead to
            note_choice(lane, l * horizon + t - 1, place, s, a, lane.at, S, mdp, tables, records)
        return a
    if REPLAYED:
        return replayed_action(lane, l, s, t, mdp, records)
    a = draw_action(mix(lane.word), lane, place, s, S, mdp, tables)
    if not RESAMPLE and lane.action < ACTIONS:
        a = np.int64(lane.action)
    return a


@no_type_check
def replayed_action(lane, l, s, t, mdp, records):
    """The action of a replay; the first that is not available is noted, and leads nowhere."""
    a = np.int64(records.actions[lane.at + t - 1])
    if MASKED and records.refused[2 * l] == 0 and (mdp.available[s] >> np.uint64(a)) & np.uint64(1) == np.uint64(0):
        records.refused[2 * l], records.refused[2 * l + 1] = t, s
    return a


@no_type_check
def look_ahead(lane, now, place, s_next, discount, S, mdp, tables, records):
    """a' and Q[s', a']: the action drawn, or the one that was recorded next.

    Where the recording does not go on, a' is A, and the value is what the policy expects of s'.
    """
    l, t, horizon, cap = now
    a_next = np.int64(ACTIONS)
    if GIVEN:
        a_next = np.int64(records.moments[lane.at + 1].action)
        if LIKELIHOOD and not RESAMPLE and a_next < ACTIONS:  # it is chosen now, before Q[s, a] changes
            note_choice(lane, l * horizon + t, place, s_next, a_next, lane.at + 1, S, mdp, tables, records)
    elif REPLAYED:
        if t < horizon and not (ENDS and (discount == 0.0 or lane.length + 1 == cap)):
            a_next = np.int64(records.actions[lane.at + t])
    elif not (EXPECTED or MAX) and (not GUIDED or records.moments[lane.at + 1].action != ACTIONS):
        a_next = draw_action(mix(lane.word + np.uint64(2) * lane.stride), lane, place, s_next, S, mdp, tables)
    if MAX:
        return a_next, largest_value(lane, place, s_next, S, mdp, tables)
    if EXPECTED or ((REPLAYED or GUIDED) and a_next == ACTIONS):
        return a_next, expected_value(lane, place, s_next, S, mdp, tables)
    if OPTIMISM and not (REPLAYED or SOFTMAX or TERMS or HABIT):
        return a_next, tables.preference[a_next]  # which a' was drawn by
    q = np.uint64(place * S + s_next) * Q_STEP + np.uint64(a_next)
    return a_next, value_of(lane.hope, one_try(lane), q, tables)


@no_type_check
def legal_actions(lane, s, S, mdp):
    if MAZES:
        return mdp.available[np.int64(lane.maze) * S + s]
    return mdp.available[s] if MASKED else ALL_ACTIONS


@no_type_check
def draw_action(word, lane, place, s, S, mdp, tables):
    """An action for state s, by a random word."""
    legal = legal_actions(lane, s, S, mdp)
    if not SOFTMAX:
        return epsilon_greedy(word, lane.epsilon, greedy_set(lane, place, s, legal, S, mdp, tables), legal)
    left = np.float64(word >> np.uint64(11)) * 2.0**-53 * softmax_weights(lane, place, s, legal, S, mdp, tables)
    chosen, total = 0, 0.0
    for a in range(ACTIONS):
        if left >= total:
            chosen = a
        total += tables.weight[a]
    return np.int64(chosen)


@no_type_check
def hope_of(lane):
    """What optimism adds to an action never tried; with pseudo-counts times eta^2: divided by (column + eta)^2."""
    scale = lane.largest if lane.largest > 0.0 else 0.01
    hope = lane.optimism * scale / (1.0 - lane.gamma)
    if BY_SR:
        return hope * (lane.eta * lane.eta)
    if BY_PR:
        return hope * (lane.eta_pr * lane.eta_pr)
    return hope


@no_type_check
def one_try(lane):
    """What is added to what `tries_of` reads, so that an action never tried counts as tried once."""
    if BY_SR:
        return lane.eta
    return lane.eta_pr if BY_PR else 1.0


@no_type_check
def value_of(hope, once, q, tables):
    """Q[s, a], stored at q, with the optimism for what was seldom tried."""
    if not OPTIMISM:
        return tables.Q[q]
    tries = once
    if BY_SR:  # the sum of the column of the state to which the action led last
        tries += tables.sums[M_COL, tables.tries[q]]
    elif BY_PR:
        tries += tables.sums[N_COL, tables.tries[q]]
    else:
        tries += tables.tries[q]
    return tables.Q[q] + hope / (tries * tries)


@no_type_check
def largest_value(lane, place, s, S, mdp, tables):
    """max Q[s, :]"""
    legal = legal_actions(lane, s, S, mdp)
    best, hope, once, here = -np.inf, lane.hope, one_try(lane), np.uint64(place * S + s) * Q_STEP
    for a in range(ACTIONS):
        if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
            best = max(best, value_of(hope, once, here + np.uint64(a), tables))
    return best


@no_type_check
def greedy_set(lane, place, s, legal, S, mdp, tables):
    """The actions of state s that an epsilon-greedy policy prefers."""
    if CACHED:
        return np.uint64(tables.greedy[np.uint64(place * S + s)])
    if TERMS or HABIT or OPTIMISM:
        preferences(lane, place, s, legal, S, mdp, tables)
        return greedy_actions(tables.preference, np.uint64(0), legal, lane.tie_tolerance)
    return greedy_actions(tables.Q, np.uint64(place * S + s) * Q_STEP, legal, lane.tie_tolerance)


@no_type_check
def preferences(lane, place, s, legal, S, mdp, tables):
    """x(a) of each available action, in `tables.preference`, and after them the largest."""
    here = np.uint64(place * S + s) * Q_STEP
    first = (np.int64(lane.maze) * S + s) * ACTIONS if MAZES else s * ACTIONS
    best, hope, once = -np.inf, lane.hope, one_try(lane)
    for a in range(ACTIONS):
        x = value_of(hope, once, here + np.uint64(a), tables)
        if SOFTMAX:
            x *= lane.inverse_temperature
        if TERMS:
            leads = np.int64(mdp.leads[first + a])
            x += lane.stickiness * (a == lane.last_action)
            if len(mdp.position) > 0:
                x += lane.heading * (mdp.position[leads] - mdp.position[s] == lane.last_move)
            x += lane.turn_back * (leads == lane.last_state)
        if HABIT:
            x += lane.habit * tables.habit[here + np.uint64(a)]
        tables.preference[a] = x
        if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
            best = max(best, x)
    tables.preference[ACTIONS] = best


@no_type_check
def softmax_weights(lane, place, s, legal, S, mdp, tables):
    """The probability of each action up to a common factor, in `tables.weight`; returns their sum."""
    preferences(lane, place, s, legal, S, mdp, tables)
    best = tables.preference[ACTIONS]
    total, n = 0.0, 0
    for a in range(ACTIONS):
        is_legal = not MASKED or (legal >> np.uint64(a)) & np.uint64(1) != np.uint64(0)
        weight = exponential(tables.preference[a] - best) if is_legal else 0.0
        tables.weight[a] = weight
        total += weight
        n += is_legal
    if TERMS and lane.lapse > 0.0:
        share = lane.lapse * total / n
        total = 0.0
        for a in range(ACTIONS):
            if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
                tables.weight[a] = (1.0 - lane.lapse) * tables.weight[a] + share
            total += tables.weight[a]
    return total


@no_type_check
def policy_weights(lane, place, s, legal, S, mdp, tables):
    """The probabilities of an epsilon-greedy policy, in `tables.weight`."""
    greedy = greedy_set(lane, place, s, legal, S, mdp, tables)
    n, n_greedy = 0, 0
    for a in range(ACTIONS):
        n += np.int64((legal >> np.uint64(a)) & np.uint64(1))
        n_greedy += np.int64((greedy >> np.uint64(a)) & np.uint64(1))
    epsilon = np.float64(lane.epsilon) * 2.0**-32
    for a in range(ACTIONS):
        weight = 0.0
        if (legal >> np.uint64(a)) & np.uint64(1):
            weight = epsilon / n
        if (greedy >> np.uint64(a)) & np.uint64(1):
            weight += (1.0 - epsilon) / n_greedy
        tables.weight[a] = weight


@no_type_check
def expected_value(lane, place, s, S, mdp, tables):
    """The mean of Q[s, :] under the policy."""
    legal = legal_actions(lane, s, S, mdp)
    if SOFTMAX:
        total = softmax_weights(lane, place, s, legal, S, mdp, tables)
    else:
        policy_weights(lane, place, s, legal, S, mdp, tables)
        total = 1.0
    value, hope, once = 0.0, lane.hope, one_try(lane)
    for a in range(ACTIONS):
        if not MASKED or (legal >> np.uint64(a)) & np.uint64(1):
            q = np.uint64(place * S + s) * Q_STEP + np.uint64(a)
            value += tables.weight[a] * value_of(hope, once, q, tables)
    return value / total


@no_type_check
def note_choice(lane, i, place, s, a, at, S, mdp, tables, records):
    """Add log p of the recorded action in s, or of the recorded move where several actions may have made it.

    Where that is enough, exp(x(a) - max x) is not divided by its sum; the sums are multiplied, and one logarithm takes
    care of many of them.
    """
    legal = legal_actions(lane, s, S, mdp)
    ways = np.int64(records.moments[at].ways)
    if not SOFTMAX:
        policy_weights(lane, place, s, legal, S, mdp, tables)
        log_p, total = np.log(weight_of(a, ways, tables, records)), 1.0
    else:
        total = softmax_weights(lane, place, s, legal, S, mdp, tables)
        if ways > 0 or (TERMS and lane.lapse > 0.0):
            log_p, total = np.log(weight_of(a, ways, tables, records) / total), 1.0
        else:
            log_p = tables.preference[a] - tables.preference[ACTIONS]
    if CHOICES:
        records.log_p[i] = log_p - np.log(total)
    else:
        lane.log_p += log_p
        lane.scale *= total
        if lane.scale > 1e250:
            lane.log_p -= np.log(lane.scale)
            lane.scale = 1.0


@no_type_check
def weight_of(a, ways, tables, records):
    """The weight of an action, or of all that may have led from a state to the next, each by its chance to do so."""
    if ways == 0:
        return tables.weight[a]
    weight = 0.0
    for b in range(ACTIONS):
        weight += tables.weight[b] * records.ways[ways - 1, b]
    return weight


@no_type_check
def note_move(lane, place, s, a, s_next, r, S, mdp, tables):
    """What the choice terms and the optimism remember."""
    if OPTIMISM:
        q = np.uint64(place * S + s) * Q_STEP + np.uint64(a)
        if BY_SR or BY_PR:
            x_next = np.int64(tables.rank[np.uint64(place * S + s_next)]) if BY_SR and ORDERED else s_next
            tables.tries[q] = place * ((S + 7) // 8 * 8) + x_next
        else:
            tables.tries[q] += 1.0
        lane.average += (1.0 - lane.gamma) * (abs(r) - lane.average)
        lane.forgotten *= lane.gamma
        lane.largest = max(lane.largest, lane.average / (1.0 - lane.forgotten))
        lane.hope = hope_of(lane)
    if TERMS:
        lane.last_action = a
        if s_next != s:
            lane.last_state = s
            lane.last_move = mdp.position[s_next] - mdp.position[s] if len(mdp.position) > 0 else NO_MOVE
    if HABIT:
        here = np.uint64(place * S + s) * Q_STEP
        for b in range(ACTIONS):
            h = tables.habit[here + np.uint64(b)]
            tables.habit[here + np.uint64(b)] = h + lane.habit_rate * (np.float64(a == b) - h)


@no_type_check
def renew_greedy(lanes, first, n, S, mdp, tables):
    """argmax Q[s, :] of the state left. The new Q is waited for, so the lanes do it together, after their steps."""
    if CACHED:
        for place in range(n):
            lane = lanes[np.uint64(first + place)]
            s = np.int64(lane.left)
            legal = mdp.available[s] if MASKED else ALL_ACTIONS
            here = np.uint64(place * S + s)
            tables.greedy[here] = greedy_actions(tables.Q, here * Q_STEP, legal, lane.tie_tolerance)


HELPERS = (
    legal_actions, hope_of, one_try, value_of, largest_value,
    preferences, softmax_weights, greedy_set, draw_action, policy_weights, expected_value, weight_of,
    note_choice, replayed_action, choose, look_ahead, note_move, renew_greedy,
)  # fmt: skip
