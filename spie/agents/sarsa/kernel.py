"""SARSA with an intrinsic reward: Algorithm 1 of the paper, as it is compiled.

One run of an agent's settings on one seed is a *lane*. Names in capitals are constants that `specialise` fills in
before it compiles, and `intrinsic_reward` is the reward that the settings name. Everything here is a plain function;
how actions are chosen is in choice.py, what a step teaches in learning.py, how it moves through episodes in world.py.
"""

from typing import no_type_check

import numpy as np

from spie.agents.sarsa import choice, learning, world
from spie.agents.sarsa.choice import choose, look_ahead, note_move, renew_greedy
from spie.agents.sarsa.layout import RUNNING
from spie.agents.sarsa.learning import bonus_of, learn_F, learn_M, learn_N, learn_Q, place_of
from spie.agents.sarsa.options import BONUS_FIRST, CACHED, ENDS, LEARNED, RECORDED, SPARSE, STATES
from spie.agents.sarsa.world import (
    arrive,
    begin,
    end,
    end_step,
    env_step,
    record,
    snapshot,
    stop,
)  # fmt: skip
from spie.engine.exponential import exponential
from spie.engine.lanes import mix
from spie.engine.policy import epsilon_greedy, greedy_actions, interval
from spie.engine.sparse_rows import append, clear, entry, update_sparse_row, with_room


@no_type_check
def sarsa_kernel(lanes, together, horizon, cap, episodes, tolerance, mdp, tables, pool, kept, records):
    """Algorithm 1 on every lane. Those of a group advance in turn, so that the processor overlaps their waiting."""
    S = STATES if STATES > 0 else mdp.n_states
    W = (S + 7) // 8 * 8 if LEARNED else S  # from one row of a matrix to the next
    bonus = 0.0
    for first in range(0, len(lanes), together):
        n = min(together, len(lanes) - first)
        for place in range(n):  # s = env.reset(); M = 0; Q = 0
            begin(lanes[first + place], first, place, S, W, mdp, tables, pool, records)
        running, shot = n, 0
        for t in range(1, horizon + 1):
            for place in range(n):
                lane = lanes[np.uint64(first + place)]
                if lane.over != RUNNING:
                    continue
                s = np.int64(lane.state)

                # theta ~ U(0, 1); a ~ U(A) where theta < epsilon, else a = argmax Q[s, :]
                now = first + place, t, horizon, cap
                a = choose(lane, now, place, s, S, mdp, tables, records)
                # s', r, done = env.step(a); discount = 1 - done
                s_next, r, discount = env_step(lane, s, a, S, mdp, records)
                note_move(lane, place, s, a, s_next, r, S, mdp, tables)
                arrive(lane, first, place, s_next, t, S, tables, records)
                at = place_of(lane, place, s, s_next, S, W, mdp, tables)
                if BONUS_FIRST:
                    bonus = bonus_of(first, at, tables, pool, records)

                # M[s, :] = M[s, :] + eta (1(s) + gamma_SR (1 - done) M[s', :] - M[s, :]), likewise F[s, :] and N[:, s']
                if LEARNED:
                    pool = with_room(pool, s, s_next) if SPARSE else pool
                    learn_M(lane, at, discount, tables, pool, tolerance)
                    learn_F(lane, at, discount, tables, pool, tolerance)
                    learn_N(lane, at, tables, pool, tolerance)
                # r = r + beta r_int
                if not BONUS_FIRST:
                    bonus = bonus_of(first, at, tables, pool, records)
                if RECORDED:
                    record(records.path[(first + place) * horizon + t - 1], s, a, s_next, r, bonus)
                lane.total_reward += r
                # theta' ~ U(0, 1); a' ~ U(A) where theta' < epsilon, else a' = argmax Q[s', :]
                a_next, ahead = look_ahead(lane, now, place, s_next, discount, S, mdp, tables, records)
                # Q[s, a] = Q[s, a] + alpha (r + beta r_int + gamma (1 - done) Q[s', a'] - Q[s, a]); s = s'
                if not learn_Q(lane, place, s, a, r, bonus, discount, s_next, a_next, ahead, S, tables):
                    stop(lane, t)
                    running -= 1
                    continue
                if ENDS:
                    end_step(lane, first, place, t, cap, episodes, discount, S, mdp, tables, records)
                    running -= lane.over != RUNNING
                lane.word += np.uint64(4) * lane.stride
            if CACHED:
                for place in range(n):
                    renew_greedy(lanes[np.uint64(first + place)], place, S, mdp, tables)
            if shot < len(records.snapshot_steps):
                shot = snapshot(shot, t, running, first, n, S, records)
            if running == 0:
                break
        for place in range(n):
            end(lanes[first + place], place, horizon, S, W, kept, tables)


# What calls comes after what is called.
HELPERS = (
    mix, interval, exponential, epsilon_greedy, greedy_actions, append, entry, clear, with_room, update_sparse_row,
    *choice.HELPERS, *learning.HELPERS, *world.HELPERS,
)  # fmt: skip
