"""The planner, as it is compiled: `choose` an action, `learn` from a step.

These two are all of the agent, whoever takes the steps: `planner_kernel` in an MDP, a wrapper in somebody else's
environment, a likelihood along a recorded path. Names in capitals are constants that `specialise` fills in.

A pair is s * A + a. What was seen to follow a pair are its outcomes; those of all pairs lie in one pool, linked from
their pair and from the state that they lead to, newest first.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, no_type_check

import numpy as np

from spie.engine.lanes import mix
from spie.engine.policy import HALF, LOW_HALF, epsilon_greedy, greedy_actions
from spie.engine.simulator import (
    CODES,
    FUNCTIONS,
    LANE_FIELDS,
    STOPPED,
    arrive,
    end_step,
    env_step,
    record,
    replayed_action,
    reset,
    snapshot,
)

if TYPE_CHECKING:  # compiled into the kernel
    from spie.engine.simd import update_row_and_sums

ACTIONS = 1
NO_COST, SR_COLUMN, PR_COLUMN, COUNT_COLUMN = 0, 1, 2, 3  # what a state costs
KINDS = 8  # chances of a new outcome are learned apart for pairs with 1, 2, ..., 8 or more outcomes

FIXED: dict[str, Any] = {
    "HALF": HALF,
    "LOW_HALF": LOW_HALF,
    "FIRST_TIE": False,
    "MASKED": True,
    **CODES,
    "KINDS": KINDS,
    "NO_COST": NO_COST,
    "SR_COLUMN": SR_COLUMN,
    "PR_COLUMN": PR_COLUMN,
    "COUNT_COLUMN": COUNT_COLUMN,
}
VECTOR_CODE = {"spie.engine.simd": ("COUNT", "PICK", "largest", "not_below", "update_row_and_sums")}
NUMBERS = ("gamma", "optimism", "curiosity", "unit", "prior", "tolerance", "tie_tolerance")  # of the settings
COST_NUMBERS = ("cost_weight", "eta", "gamma_sr", "eta_pr", "gamma_pr")
LANE = np.dtype(
    [(name, np.float64) for name in (*NUMBERS, *COST_NUMBERS)]
    + [(name, np.float64) for name in ("r_mean", "size_mean", "weight", "r_best", "r_most", "size_best")]
    + [(name, np.float64) for name in ("top", "cost_most")]
    + [("epsilon", np.uint64)]
    + [(name, np.int64) for name in ("backups", "cost", "outcomes", "first", "waiting")]
    + [("last", np.int64)]  # the action that just moved the agent; ACTIONS for none
    + list(LANE_FIELDS),
    align=True,
)


class Model(NamedTuple):
    """What the planner has learned of its world, and what follows from it."""

    available: Any  # [S] sets of actions
    tries: Any  # [S * A]
    known: Any  # [S * A] how many outcomes
    first_outcome: Any  # [S * A] -1 for none
    left: Any  # [S] how often the state was left: 0 for one of which nothing is known
    ends: Any  # [S] whether an episode ended when the state was last entered
    first_entry: Any  # [S] the newest outcome that leads here, -1 for none
    next_outcome: Any  # [pool] the outcome of the same pair before this one
    next_entry: Any  # [pool] the outcome that leads to the same state before this one
    outcome_pair: Any  # [pool]
    outcome_state: Any  # [pool] s'
    outcome_count: Any  # [pool]
    outcome_reward: Any  # [pool] of the last time
    new_by_action: Any  # [A * KINDS] repeated tries that were discoveries
    sum_by_action: Any  # [A * KINDS] sum of 1 / n over repeated tries
    new_by_state: Any  # [S * KINDS]
    sum_by_state: Any  # [S * KINDS]
    own_sum: Any  # [S * A] what a pair itself has added to these sums since it had as many outcomes as now
    Q: Any  # [S * A] Q+ at the last backup
    V: Any  # [S]
    queue: Any  # [S] states to back up, a ring
    queued: Any  # [S] whether a state is in it
    column: Any  # [S] what a state costs, before it is scaled; of M also the matrix, padded to W = 8, 16, ... columns
    M: Any  # [S * W]


@no_type_check
def planner_kernel(lanes, horizon, cap, episodes, mdp, model, records, final_Q):
    """Every lane, one after the other; final_Q: where Q+ is kept, [lanes * S * A] or empty."""
    S, parts = mdp.n_states, len(records.earned) // len(lanes)
    for l in range(len(lanes)):
        lane = lanes[l]
        forget(lane, model)
        reset(lane, l, 0, mix(lane.word - lane.stride), mdp, records)
        shot = 0
        for t in range(1, horizon + 1):
            s = np.int64(lane.state)
            a = choose(mix(lane.word), lane, s, model)
            if len(records.replay):
                a = replayed_action(l, s, t, horizon, mdp, records)
            bonus = unseen(lane, s, a, model)
            s_next, r, discount = env_step(lane, s, a, mdp)
            arrive(l, s_next, t, S, records)
            lane.total_reward += r
            lane.steps = t
            if episodes < 0:
                records.earned[l * parts + (t - 1) * parts // horizon] = lane.total_reward
            if len(records.path):
                record(records.path[l * horizon + t - 1], s, a, s_next, r, bonus)
            lane.state = s_next
            if not learn(lane, s, a, r, s_next, discount, model):
                lane.over = STOPPED
            else:
                lane.total_bonus += bonus
                if end_step(lane, l, t, cap, episodes, discount, mdp, records):
                    lane.last = ACTIONS
            lane.word += np.uint64(4) * lane.stride
            if shot < len(records.snapshot_steps):
                shot = snapshot(shot, l, t, lane.over != 0, S, records)
            if lane.over != 0:
                break
        if len(final_Q):
            for i in range(S * ACTIONS):
                known = model.left[i // ACTIONS] > 0 and model.Q[i] > -np.inf
                final_Q[l * S * ACTIONS + i] = model.Q[i] if known else lane.top


@no_type_check
def choose(word, lane, s, model):
    """An action in s: backed up first, then the greedy one; of equals the one that just moved the agent."""
    back_up(lane, s, model)
    legal = model.available[s]
    greedy = greedy_actions(model.Q, np.uint64(s * ACTIONS), legal, lane.tie_tolerance)
    if lane.last < ACTIONS and (greedy >> np.uint64(lane.last)) & np.uint64(1):
        greedy = np.uint64(1) << np.uint64(lane.last)
    return epsilon_greedy(word, lane.epsilon, greedy, legal)


@no_type_check
def learn(lane, s, a, r, s_next, discount, model):
    """Learn from a step: what is rewarded, what follows, then backups. Returns whether all is finite.

    The state that was left is backed up, then as many others as `backups` says, those first that wait longest.
    """
    see_reward(lane, r)
    if not np.isfinite(lane.top):
        return False
    lane.last = a if s_next != s else ACTIONS
    if model.left[s] == 0:
        model.V[s] = lane.top
    see_outcome(lane, s, a, r, s_next, discount, model)
    if lane.cost != NO_COST:
        see_column(lane, s, s_next, discount, model)
    back_up(lane, s, model)
    for _ in range(lane.backups):
        if lane.waiting == 0:
            break
        waited = np.int64(model.queue[lane.first])
        lane.first = lane.first + 1 if lane.first + 1 < len(model.queue) else 0
        lane.waiting -= 1
        model.queued[waited] = False
        back_up(lane, waited, model)
    return True


@no_type_check
def see_reward(lane, r):
    """Averages of r and |r| over the last 1 / (1 - gamma) steps or so; the largest of each says what to hope for."""
    lane.r_mean = lane.gamma * lane.r_mean + (1.0 - lane.gamma) * r
    lane.size_mean = lane.gamma * lane.size_mean + (1.0 - lane.gamma) * abs(r)
    lane.weight = lane.gamma * lane.weight + (1.0 - lane.gamma)
    lane.r_best = max(lane.r_best, lane.r_mean / lane.weight)
    lane.size_best = max(lane.size_best, lane.size_mean / lane.weight)
    lane.top = most(lane)


@no_type_check
def most(lane):
    """What an outcome that was never seen is worth."""
    return (lane.optimism * lane.r_best + lane.curiosity * unit_of(lane)) / (1.0 - lane.gamma)


@no_type_check
def unit_of(lane):
    """The size of a reward: of those that were seen, or a small one as long as all were 0."""
    return lane.size_best if lane.size_best > 0.0 else lane.unit


@no_type_check
def see_outcome(lane, s, a, r, s_next, discount, model):
    """Count what followed, its reward, and whether it was a discovery.

    A discovery is a new outcome that enters a state never seen before, or pays more than anything did: a new way to
    what is known is not worth hoping for.
    """
    pair = s * ACTIONS + a
    is_discovery = r > lane.r_most or (model.first_entry[s_next] < 0 and model.left[s_next] == 0)
    lane.r_most = max(lane.r_most, r)
    ended = discount == 0.0
    if model.ends[s_next] != ended:
        before = value(lane, s_next, model)
        model.ends[s_next] = ended
        if before != value(lane, s_next, model):
            queue_predecessors(lane, s_next, model)
    i = model.first_outcome[pair]
    while i >= 0 and model.outcome_state[i] != s_next:
        i = model.next_outcome[i]
    n = model.tries[pair]
    if n > 0:
        kind = min(model.known[pair], KINDS) - 1
        model.sum_by_action[a * KINDS + kind] += 1.0 / n
        model.sum_by_state[s * KINDS + kind] += 1.0 / n
        model.own_sum[pair] += 1.0 / n
        if i < 0 and is_discovery:
            model.new_by_action[a * KINDS + kind] += 1.0
            model.new_by_state[s * KINDS + kind] += 1.0
    if i < 0:
        i = lane.outcomes
        lane.outcomes += 1
        model.outcome_pair[i], model.outcome_state[i], model.outcome_count[i] = pair, s_next, 0
        model.next_outcome[i], model.first_outcome[pair] = model.first_outcome[pair], i
        model.next_entry[i], model.first_entry[s_next] = model.first_entry[s_next], i
        model.known[pair] += 1
        if model.known[pair] <= KINDS:
            model.own_sum[pair] = 0.0
    model.outcome_count[i] += 1
    model.outcome_reward[i] = r
    model.tries[pair] = n + 1
    model.left[s] += 1


@no_type_check
def see_column(lane, s, s_next, discount, model):
    """What costs s': the sum of its column of M, or of N, or how often it was entered."""
    column = model.column
    if lane.cost == COUNT_COLUMN:
        column[s_next] += 1.0
        lane.cost_most = max(lane.cost_most, column[s_next])
    if lane.cost == PR_COLUMN:
        column[s_next] += lane.eta_pr * (1.0 + lane.gamma_pr * column[s] - column[s_next])
        lane.cost_most = max(lane.cost_most, column[s_next])
    if lane.cost == SR_COLUMN:
        M, W = model.M, len(model.M) // len(model.V)
        row, next_row, gamma = s * W, s_next * W, lane.gamma_sr * discount
        change = lane.eta * (1.0 + gamma * M[next_row + s] - M[row + s])
        M_s, column_s = M[row + s] + change, column[s] + change
        for j in range(0, W, 8):
            update_row_and_sums(M, row + j, next_row + j, lane.eta, gamma, column, j)
        M[row + s], column[s] = M_s, column_s
        lane.cost_most = max(lane.cost_most, column[s])


@no_type_check
def unseen(lane, s, a, model):
    """The chance that the next try of a pair is a discovery: theta / (theta + n).

    theta is learned from repeated tries of other pairs with as many known outcomes: those of the same action, and those
    in the same state.
    """
    pair = s * ACTIONS + a
    n = model.tries[pair]
    if n == 0:
        return 1.0
    kind = min(model.known[pair], KINDS) - 1
    new = model.new_by_action[a * KINDS + kind] + model.new_by_state[s * KINDS + kind]
    by_action = model.sum_by_action[a * KINDS + kind] - model.own_sum[pair]
    by_state = model.sum_by_state[s * KINDS + kind] - model.own_sum[pair]
    theta = (lane.prior + new) / (1.0 + (by_action + by_state))
    return theta / (theta + n)


@no_type_check
def value(lane, s, model):
    """What it is worth to be in s: nothing where episodes end, the most where nothing is known."""
    if model.ends[s]:
        return 0.0
    return model.V[s] if model.left[s] > 0 else lane.top


@no_type_check
def back_up(lane, s, model):
    """Q+[s, a] = x top + (1 - x) mean over outcomes of (r + gamma V[s']), V[s] = max Q+[s, :].

    Where V moves, what leads to s waits to be backed up.
    """
    before = value(lane, s, model)
    legal = model.available[s]
    best = -np.inf
    for a in range(ACTIONS):
        pair = s * ACTIONS + a
        q = lane.top
        if (legal >> np.uint64(a)) & np.uint64(1) == np.uint64(0):
            q = -np.inf
        elif model.tries[pair] > 0:
            x = unseen(lane, s, a, model)
            q = x * lane.top + (1.0 - x) * mean_of_outcomes(lane, pair, model)
        model.Q[pair] = q
        best = max(best, q)
    model.V[s] = best
    if abs(value(lane, s, model) - before) > lane.tolerance * lane.top:
        queue_predecessors(lane, s, model)


@no_type_check
def mean_of_outcomes(lane, pair, model):
    """Of what was seen to follow a pair, by how often it did: r + gamma V[s'], less what s' costs."""
    total = 0.0
    i = model.first_outcome[pair]
    while i >= 0:
        s_next = model.outcome_state[i]
        worth = model.outcome_reward[i] + lane.gamma * value(lane, s_next, model)
        if lane.cost != NO_COST:
            worth -= lane.cost_weight * unit_of(lane) * (model.column[s_next] / lane.cost_most)
        total += model.outcome_count[i] * worth
        i = model.next_outcome[i]
    return total / model.tries[pair]


@no_type_check
def queue_predecessors(lane, s, model):
    """All states that were seen to lead to s wait to be backed up."""
    size = len(model.queue)
    i = model.first_entry[s]
    while i >= 0:
        before = model.outcome_pair[i] // ACTIONS
        if not model.queued[before]:
            model.queued[before] = True
            at = lane.first + lane.waiting
            model.queue[at if at < size else at - size] = before
            lane.waiting += 1
        i = model.next_entry[i]


@no_type_check
def forget(lane, model):
    """Nothing is known."""
    model.tries[:], model.known[:], model.first_outcome[:] = 0, 0, -1
    model.left[:], model.ends[:], model.first_entry[:] = 0, False, -1
    model.new_by_action[:], model.sum_by_action[:] = 0.0, 0.0
    model.new_by_state[:], model.sum_by_state[:], model.own_sum[:] = 0.0, 0.0, 0.0
    model.queued[:], model.column[:], model.M[:] = False, 0.0, 0.0
    lane.outcomes = lane.first = lane.waiting = 0
    lane.r_mean = lane.size_mean = lane.weight = lane.r_best = lane.size_best = 0.0
    lane.cost_most = 1.0 if lane.cost == COUNT_COLUMN else lane.eta if lane.cost == SR_COLUMN else lane.eta_pr
    lane.r_most = -np.inf
    lane.last = ACTIONS
    lane.top = most(lane)


AGENT = (
    epsilon_greedy, greedy_actions, most, unit_of, value, queue_predecessors, unseen, mean_of_outcomes, back_up,
    see_reward, see_outcome, see_column, forget, choose, learn,
)  # fmt: skip
HELPERS = (*FUNCTIONS, *AGENT)
