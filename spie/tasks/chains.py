"""RiverSwim and SixArms (Figure 5)."""

import numpy as np

from spie.tasks.mdp import MDP
from spie.tasks.registry import register_task


@register_task("riverswim", gymnasium="RiverSwim")
def riverswim() -> MDP:
    """RiverSwim: 6 states, actions 0 = right, against the current, and 1 = left, with it.

    Staying at the right end pays 10000, at the left end 5. Starts in state 1 or 2, never ends.

    >>> river = spie.riverswim()
    >>> river.n_states, river.n_actions, float(river.reward.max())
    (6, 2, 10000.0)
    """
    s = np.arange(6)
    back, ahead = np.maximum(s - 1, 0), np.minimum(s + 1, 5)
    successors, prob, reward = np.zeros((6, 2, 3), dtype=np.int32), np.zeros((6, 2, 3)), np.zeros((6, 2, 3))
    successors[:, 0] = np.stack([back, s, ahead], axis=1)
    prob[:, 0] = [0.1, 0.6, 0.3]
    prob[0, 0] = [0, 0.7, 0.3]
    prob[5, 0] = [0.7, 0.3, 0]
    reward[5, 0, 1] = 10_000  # for staying at the end
    successors[:, 1, 0] = back
    prob[:, 1, 0] = 1
    reward[0, 1, 0] = 5
    return MDP("riverswim", successors, prob, reward, start=np.array([0, 0.5, 0.5, 0, 0, 0]))


@register_task("sixarms", gymnasium="SixArms")
def sixarms() -> MDP:
    """SixArms: hub 0 and rooms 1..6, 6 actions; the harder a room is to enter, the more staying there pays.

    Starts in the hub, never ends.

    >>> arms = spie.sixarms()
    >>> arms.n_states, arms.n_actions
    (7, 6)
    """
    enters = [1, 0.15, 0.10, 0.05, 0.03, 0.01]  # hub action a reaches room a + 1
    pays = [50, 133, 300, 800, 1666, 6000]  # each stay in room a + 1
    successors, prob, reward = np.zeros((7, 6, 2), dtype=np.int32), np.zeros((7, 6, 2)), np.zeros((7, 6, 2))
    successors[0, :, 0] = np.arange(1, 7)
    prob[0, :, 0] = enters
    prob[0, :, 1] = 1 - prob[0, :, 0]
    prob[1:, :, 0] = 1  # rooms are deterministic: back to the hub, except
    stays = np.eye(6, dtype=bool)  # room k keeps action k - 1,
    stays[0] = np.arange(6) != 4  # room 1 all but action 4
    rooms, actions = np.nonzero(stays)
    successors[rooms + 1, actions, 0] = rooms + 1
    reward[rooms + 1, actions, 0] = np.array(pays)[rooms]
    return MDP("sixarms", successors, prob, reward, start=np.eye(7)[0])
