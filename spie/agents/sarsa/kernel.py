"""SARSA with an intrinsic reward: Algorithm 1 of the paper, as it is compiled.

One run of an agent's settings on one seed is a *lane*. Names in capitals are constants that `specialise` fills in
before it compiles, and `intrinsic_reward` is the reward that the settings name. Everything here is a plain function;
how actions are chosen is in choice.py, what a step teaches in learning.py, how it moves through episodes in world.py.
"""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa import choice, learning, world
from spie.agents.sarsa.choice import choose, look_ahead, renew_greedy
from spie.agents.sarsa.layout import RUNNING
from spie.agents.sarsa.learning import bonus_of, learn_F, learn_M, learn_N, learn_Q, place_of
from spie.agents.sarsa.options import BONUS_FIRST, LEARNED, SPARSE, STATES
from spie.agents.sarsa.world import begin, end, end_of_part, end_step, note_part, note_step, step_of, take_step
from spie.engine.exponential import exponential
from spie.engine.lanes import mix
from spie.engine.policy import epsilon_greedy, greedy_actions, interval
from spie.engine.sparse_rows import append, clear, entry, update_sparse_row, with_room


@no_type_check
def sarsa_kernel(lanes, together, after, until, horizon, cap, episodes, tolerance, mdp, tables, pool, kept, records):
    """Algorithm 1 on every lane, from step after + 1 to step `until`; returns the pool, which may have grown.

    A step is a chain of things that wait for each other. So the lanes of a group act one after the other, then learn
    one after the other, and the processor works on one while another waits.
    """
    S = STATES if STATES > 0 else mdp.n_states
    W = (S + 7) // 8 * 8 if LEARNED else S  # from one row of a matrix to the next
    parts, bonus = len(records.earned) // len(lanes), 0.0
    for first in range(0, len(lanes), together):
        n = min(together, len(lanes) - first)
        if after == 0:
            begin(lanes, first, n, S, W, mdp, tables, pool, records)  # s = env.reset(); M = 0; Q = 0
        part_ends = end_of_part(after, horizon, episodes, parts)
        for t in range(after + 1, until + 1):
            for place in range(n):
                lane = lanes[np.uint64(first + place)]
                if lane.over == RUNNING:
                    # theta ~ U(0, 1); a ~ U(A) where theta < epsilon, else a = argmax Q[s, :]
                    a = choose(lane, (first + place, t, horizon, cap), place, S, mdp, tables, records)
                    # s', r, done = env.step(a); discount = 1 - done
                    take_step(lane, first, place, t, a, S, mdp, tables, records)
            running = 0
            for place in range(n):
                lane = lanes[np.uint64(first + place)]
                if lane.over != RUNNING:
                    continue
                s, a, s_next, r, discount = step_of(lane)
                at = place_of(lane, place, s, s_next, S, W, mdp, tables)
                if BONUS_FIRST:
                    bonus = bonus_of(lane, first, at, tables, pool, records)

                # M[s, :] = M[s, :] + eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), likewise F[s, :] and N[:, s']
                if LEARNED:
                    pool = with_room(pool, s, s_next) if SPARSE else pool
                    learn_M(lane, at, discount, tables, pool, tolerance)
                    learn_F(lane, at, discount, tables, pool, tolerance)
                    learn_N(lane, at, tables, pool, tolerance)
                # r = r + beta r_int
                if not BONUS_FIRST:
                    bonus = bonus_of(lane, first, at, tables, pool, records)
                now = first + place, t, horizon, cap
                note_step(lane, now, s, a, s_next, r, bonus, records)

                # theta' ~ U(0, 1); a' ~ U(A) where theta' < epsilon, else a' = argmax Q[s', :]
                a_next, ahead = look_ahead(lane, now, place, s_next, discount, S, mdp, tables, records)
                # Q[s, a] = Q[s, a] + alpha (r + beta r_int + gamma (1 - done) Q[s', a'] - Q[s, a]); s = s'
                learn_Q(lane, place, t, s, a, r, bonus, discount, s_next, a_next, ahead, S, mdp, tables)
                end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records)
                running += lane.over == RUNNING
            renew_greedy(lanes, first, n, S, mdp, tables)
            if t == part_ends:
                part_ends = note_part(lanes, first, n, t, horizon, episodes, parts, records)
            if running == 0:
                break
        if until == horizon:
            end(lanes, first, n, horizon, S, W, kept, tables)
    return pool


# What calls comes after what is called.
HELPERS = (
    mix, interval, exponential, epsilon_greedy, greedy_actions, append, entry, clear, with_room, update_sparse_row,
    *choice.HELPERS, *learning.HELPERS, *world.HELPERS,
)  # fmt: skip
