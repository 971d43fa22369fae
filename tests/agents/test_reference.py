"""The reference against numbers worked out by hand: it must be right before the engine is held to it."""

import numpy as np
import pytest

import spie
from reference import reference, sample

RIGHT, LEFT = 0, 1


def word(upper, lower):
    """The word whose halves are these shares of their range."""
    return int(upper * 2**32) << 32 | int(lower * 2**32)


def test_first_steps_of_sarsa_srr_on_riverswim_are_those_worked_out_by_hand():
    agent = spie.Sarsa(reward="sr-r", alpha=0.1, eta=0.25, gamma=0.95, gamma_sr=0.95, beta=10, epsilon=0.01)
    explore, exploit, first, second = 0.0, 0.5, 0.25, 0.75
    words = {
        3: word(0.75, 0),  # starts in 2, for 1 and 2 share the range by halves
        4: word(exploit, second), 5: word(0.5, 0), 6: word(exploit, first),  # left, to 1
        8: word(explore, first), 9: word(0.85, 0), 10: word(exploit, first),  # right: .1 back, .6 stay, .3 ahead, to 2
        12: word(exploit, first), 13: word(0.5, 0), 14: word(exploit, first),  # right, stays in 2
        16: word(exploit, first), 17: word(0.5, 0), 18: word(explore, first),  # left, now the better of the two, to 1
    }  # fmt: skip
    run = reference(agent, spie.riverswim(), 4, seed=None, words=lambda seed: words.__getitem__)

    np.testing.assert_array_equal(run.states, [2, 1, 2, 2])
    np.testing.assert_array_equal(run.actions, [LEFT, RIGHT, RIGHT, LEFT])
    np.testing.assert_array_equal(run.next_states, [1, 2, 2, 1])
    np.testing.assert_array_equal(run.rewards, 0)
    np.testing.assert_array_equal(run.visits, [0, 2, 3, 0, 0, 0])
    # step 1: M[2] = .25 1(2); nothing else leads to 1: bonus 0
    # step 2: M[1] = .25 (1(1) + .95 M[2]): M[1,1] = .25, M[1,2] = .059375; bonus -M[2,2] = -.25
    #         Q[1,right] = .1 (10 * -.25) = -.25
    # step 3: M[2,2] = .25 + .25 (1 + .95 * .25 - .25) = .496875; bonus -M[1,2] = -.059375
    #         Q[2,right] = .1 (10 * -.059375) = -.059375
    # step 4: M[2,1] = .25 * .95 * M[1,1] = .059375, M[2,2] = .496875 + .25 (1 + .95 * .059375 - .496875) = .6367578125
    #         bonus -M[1,1] = -.25; a' explores: right; Q[2,left] = .1 (10 * -.25 + .95 * -.25) = -.27375
    M, Q = np.zeros((6, 6)), np.zeros((6, 2))
    M[1, 1], M[1, 2], M[2, 1], M[2, 2] = 0.25, 0.059375, 0.059375, 0.6367578125
    Q[1, RIGHT], Q[2, RIGHT], Q[2, LEFT] = -0.25, -0.059375, -0.27375
    np.testing.assert_allclose(run.bonuses, [0, -0.25, -0.059375, -0.25], rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.M, M, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.Q, Q, rtol=0, atol=1e-15)


def test_reference_learns_by_the_td_rules_of_the_library():
    mdp = spie.grid("S.\n.G", "goal")
    run = reference(spie.Sarsa(eta=0.3, eta_pr=0.2, gamma_sr=0.8, gamma_pr=0.7), mdp, 200, seed=0)
    M, F, N = np.zeros((3, 4, 4))
    for s, s_next in zip(run.states, run.next_states, strict=True):
        discount = float(not mdp.terminal[0, s_next])
        M[s] += 0.3 * spie.td_sr(M, s, s_next, 0.8, discount)
        F[s] += 0.3 * spie.td_fr(F, s, s_next, 0.8, discount)
        N[:, s_next] += 0.2 * spie.td_pr(N, s, s_next, 0.7)
    for ours, expected in ((run.M, M), (run.F, F), (run.N, N)):
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13)


def test_reference_ends_episodes_at_the_goal_or_the_cap_and_moves_the_goal():
    mdp = spie.grid("S.1\n..G", "moving-goal", episodes_per_goal=2)
    run = reference(spie.Sarsa(epsilon=1), mdp, 8, seed=1, episodes=40)
    ends = np.cumsum(run.lengths) - 1
    goal = np.tile([5, 5, 2, 2], 10)  # G and 1, two episodes each
    reached = run.next_states[ends] == goal
    np.testing.assert_array_equal(run.rewards, -1 + np.isin(np.arange(len(run.rewards)), ends[reached]))
    np.testing.assert_array_equal(np.array(run.lengths)[~reached], 8)
    assert {2, 5} == set(goal[reached]) == set(goal[~reached])  # both ways to end, with both goals
    np.testing.assert_array_equal(run.states[ends[:-1] + 1], 0)


@pytest.mark.parametrize(("share", "index"), [(0, 0), (0.0999, 0), (0.1001, 1), (0.6999, 1), (0.7001, 2), (0.9999, 2)])
def test_a_draw_falls_to_the_index_whose_share_holds_it(share, index):
    assert sample([0.1, 0.6, 0.3], int(share * 2**64)) == index
