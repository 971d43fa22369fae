"""How a bonus is paid: in deviations from its mean, moved backwards by a potential. And what the episode knows of s'.

Standardised, a bonus b is paid as

    (b - mean) / deviation - 1          mean and deviation of all bonuses so far, this one among them; 0 - 1 at first

With a potential, a step from s to s' is paid, beside r and beta b,

    gamma U[s'] - U[s],   U[s'] = 0 where the episode ends

which changes no optimal policy of what is paid. U is the successor value of what was paid so far, r + beta b: with
n[s] how often s was left, X[s, s'] how often s' followed without an end, and p[s] the sum of what was paid on leaving,

    (1 + n[s]) U[s] = p[s] + gamma sum over s' of X[s, s'] U[s']

so U = K p with K = (I + diag(n) - gamma X)^-1, the empirical successor representation. It is solved by going over the
states forwards and backwards, every 64 steps, from where it was.
"""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa.options import ACTIONS, LEFT, PAID, RENEWED, SPARSE, SUCCESSORS, U
from spie.engine.payment import standardised
from spie.engine.sparse_rows import entry


@no_type_check
def shaped(lane, place, s, a, s_next, paid, discount, S, mdp, tables):
    """gamma U[s'] - U[s] of a step, of which the potential then takes note."""
    worth, here = tables.worth, place * S
    gain = lane.gamma * discount * worth[U, here + s_next] - worth[U, here + s]
    worth[LEFT, here + s] += 1.0
    worth[PAID, here + s] += paid
    i, k = (s * ACTIONS + a) * SUCCESSORS, 0
    for j in range(SUCCESSORS):
        k = j if mdp.following[i + j] == s_next else k
    tables.moves[here * ACTIONS * SUCCESSORS + i + k] += discount
    lane.unrenewed += 1
    if lane.unrenewed == RENEWED:
        lane.unrenewed = 0
        for i in range(S):
            renew(lane, place, i, S, mdp, tables)
        for i in range(S):
            renew(lane, place, S - 1 - i, S, mdp, tables)
    return gain


@no_type_check
def renew(lane, place, s, S, mdp, tables):
    """U[s] from what was paid on leaving s, and from U of what followed."""
    worth, here = tables.worth, place * S
    if worth[LEFT, here + s] > 0.0:
        first, total = s * ACTIONS * SUCCESSORS, 0.0
        for i in range(first, first + ACTIONS * SUCCESSORS):
            total += tables.moves[here * ACTIONS * SUCCESSORS + i] * worth[U, here + np.int64(mdp.following[i])]
        worth[U, here + s] = (worth[PAID, here + s] + lane.gamma * total) / (1.0 + worth[LEFT, here + s])


@no_type_check
def closest_so_far(lane, at, tables, pool):
    """The largest F[x, s'] of the states x left in this episode; s is now one of them.

    Where s' is one of them, it is F[s', s']: from m0 <= 1 that only rises, to 1 at most, and any other F[x, s'] moves
    towards gamma_SR times an entry of that column. With gamma_SR a little below 1 no rounding can make up for it.
    """
    place, _, _, s_next, x, x_next, S, W = at
    walk, here = tables.walk, place * S
    if lane.walk != lane.episode + 1:
        lane.walk, lane.walked = lane.episode + 1, 0
    if walk[1, here + x] != lane.walk:
        walk[1, here + x] = lane.walk
        walk[0, here + lane.walked] = S + x if SPARSE else (here + x) * W
        lane.walked += 1
    if walk[1, here + x_next] == lane.walk and lane.m0 <= 1.0 and lane.gamma_sr < 0.999999:
        return entry(pool, S + s_next, s_next) if SPARSE else tables.F[(here + x_next) * W + x_next]
    closest = 0.0
    for i in range(here, here + lane.walked):
        y = walk[0, i]
        closest = max(closest, entry(pool, y, s_next) if SPARSE else tables.F[y + x_next])
    return closest


HELPERS = (standardised, renew, shaped, closest_so_far)
