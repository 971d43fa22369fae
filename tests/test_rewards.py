"""Every intrinsic reward on numbers small enough to check by eye, and the rules for a reward of one's own."""

import numpy as np
import pytest

import spie
from spie import rewards
from spie.rewards import get_reward, quantities, reward_names

# A step from state 0 to state 1
M = np.array([[2.0, 1.0, 0.5], [0.25, 4.0, 0.75], [1.0, 3.0, 5.0]])
F = np.array([[1.0, 0.5, 0.25], [0.25, 1.0, 0.5], [0.0, 0.5, 1.0]])
N = np.array([[2.0, 0.5, 0.0], [0.0, 1.5, 1.0], [0.25, 1.0, 3.0]])
QUANTITIES = {
    "M_next": M[0, 1], "M_row": M[0].sum(), "M_col_next": M[:, 1].sum(), "F_row": F[0].sum(), "F_row_next": F[1].sum(),
    "N_next": N[0, 1], "N_col_next": N[:, 1].sum(), "visits": 4, "visits_next": 16,
    "F_episode_next": 0.5, "psi_norm": 8.0, "xi_norm_next": 2.0, "phi_norm_next": 4.0,
}  # fmt: skip
EXPECTED = {
    "none": 0,
    "sr": 1 / 3.5,
    "fr": 1.75,
    "fr-next": 1.75,
    "sr-r": -(4.0 + 3.0),  # minus what the other states know of s'
    "sr-r(a)": 1.0,
    "sr-r(b)": -8.0,
    "sr-r(c)": 2.0 + 0.5,  # what s knows of the other states
    "sr-pr": 1.0 - 3.0,
    "sf": 0.125,
    "sf-pf": 0.5 - 0.125,
    "sf-pf-printed": 0.25 - 0.125,
    "sf-pf-norms": 8.0 - 2.0,
    "constant": -1,
    "count": 0.25,
    "etd": np.log(2.0),  # the nearest state of this episode is half a discount away
}


@pytest.mark.parametrize("name", EXPECTED)
def test_reward_is_the_papers_formula(name):
    reward = get_reward(name)
    assert reward.function(*(QUANTITIES[need] for need in reward.needs)) == EXPECTED[name]


def test_the_quantities_of_a_step_are_read_off_the_matrices():
    found = quantities(M, F, N, np.array([4, 16, 1]), 0, 1)
    assert tuple(found) == rewards.QUANTITIES
    assert found == {name: QUANTITIES[name] for name in found}


def test_the_quantities_of_many_steps_are_those_of_each():
    s, s_next, visits = np.array([0, 2, 1]), np.array([1, 0, 1]), np.array([4, 16, 1])
    many = quantities(M, F, N, visits, s, s_next)
    for i in range(3):
        one = quantities(M, F, N, visits, s[i], s_next[i])
        assert {name: values[i] for name, values in many.items()} == one


def test_what_is_not_kept_has_no_quantities():
    assert set(quantities(M, None, None, None, 0, 1)) == {"M_next", "M_row", "M_col_next"}


@pytest.mark.parametrize("name", EXPECTED)
def test_reward_takes_arrays_as_it_takes_numbers(name):
    reward = get_reward(name)
    needed = [QUANTITIES[need] for need in reward.needs]
    many = reward.function(*(np.array([number, number]) for number in needed))
    np.testing.assert_array_equal(np.broadcast_to(many, 2), reward.function(*needed))


def test_all_rewards_of_the_library_are_checked_above_and_say_what_they_are():
    built_in = [name for name in reward_names() if get_reward(name).function.__module__ == "spie.rewards"]
    assert built_in == list(EXPECTED)
    assert all(get_reward(name).summary for name in built_in)


def test_a_reward_of_ones_own_is_known_by_its_name_and_stays_a_function():
    @spie.reward("bottleneck")
    def bottleneck(M_next, N_next):
        return N_next - M_next

    assert get_reward("bottleneck").function is bottleneck
    assert get_reward("bottleneck").needs == ("M_next", "N_next")
    assert reward_names()[-1] == "bottleneck"
    assert spie.Sarsa(reward="bottleneck").reward == "bottleneck"


def test_a_reward_of_ones_own_may_be_defined_again():
    spie.reward("mine")(lambda M_next: M_next)
    spie.reward("mine")(lambda N_next: N_next)
    assert get_reward("mine").needs == ("N_next",)


def test_a_built_in_name_is_refused():
    with pytest.raises(ValueError, match=r'^"sr-r" is a built-in intrinsic reward; give yours another name$'):
        spie.reward("sr-r")(lambda M_next: M_next)
    assert get_reward("sr-r").function is rewards.sr_r


def test_a_quantity_no_learner_has_is_refused_with_a_list_of_those_it_has():
    with pytest.raises(
        ValueError, match=r'^reward "mine" asks for "M_diag", which no learner has. It may ask for: M_next, '
    ):
        spie.reward("mine")(lambda M_next, M_diag: M_next)
    with pytest.raises(ValueError, match=r'^no intrinsic reward "mine"'):
        get_reward("mine")


def test_an_unknown_name_is_refused_with_the_nearest_known_one():
    with pytest.raises(
        ValueError, match=r'^no intrinsic reward "SR-R\(d\)"; did you mean "sr-r\(.\)"\? Known: constant, '
    ):
        get_reward("SR-R(d)")


def test_a_learner_takes_the_rewards_it_can_compute():
    assert set(reward_names("tables")) & set(reward_names("features")) == {"none", "constant", "count"}
    with pytest.raises(ValueError, match='"sf" needs psi_norm, which a learner on tables does not have'):
        spie.Sarsa(reward="sf")
    with pytest.raises(ValueError, match='"sr-r" needs M_next, M_col_next, which a learner on features does not have'):
        get_reward("sr-r", on="features")
    with pytest.raises(ValueError, match='"etd" needs F_episode_next: only an agent knows its episode'):
        get_reward("etd", on="tables")
    with pytest.raises(ValueError, match="no learner has tables and features at once"):

        @spie.reward("both")
        def both(M_next, psi_norm):
            return M_next - psi_norm
