"""What a policy makes of a maze, against definitions, identities and NetworkX."""

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import spie
from spie import dr, sr, td_dr
from spie.tasks.grids import doors
from test_representations import Array, chains, episodic_chains

rewards = st.floats(-3, -0.05)
temperatures = st.floats(0.3, 3)


@given(chains(), st.data(), temperatures)
def test_the_default_representation_is_what_its_definition_says(
    P: Array, data: st.DataObject, temperature: float
) -> None:
    r = np.array(data.draw(st.lists(rewards, min_size=len(P), max_size=len(P))))
    Z = dr(P, r, temperature)
    assert_allclose((np.diag(np.exp(-r / temperature)) - P) @ Z, np.eye(len(P)), atol=1e-9)
    # the sum over all walks of their probability times exp(rewards on the way), by powers
    R = np.diag(np.exp(r / temperature))
    total, walk = np.zeros_like(P), R.copy()
    for _ in range(2000):
        total, walk = total + walk, R @ P @ walk
    assert_allclose(Z, total, rtol=1e-6, atol=1e-9)


@given(chains(), st.floats(0.05, 0.95), temperatures)
def test_with_the_same_cost_everywhere_it_is_the_successor_representation(
    P: Array, gamma: float, temperature: float
) -> None:
    assert_allclose(dr(P, temperature * np.log(gamma), temperature), gamma * sr(P, gamma), rtol=1e-9)


@given(chains(), st.data(), temperatures)
def test_the_td_rule_has_the_closed_form_as_fixed_point(P: Array, data: st.DataObject, temperature: float) -> None:
    r = np.array(data.draw(st.lists(rewards, min_size=len(P), max_size=len(P))))
    Z = dr(P, r, temperature)
    for s in range(len(P)):
        drift = sum(P[s, s_next] * td_dr(Z, s, s_next, r[s], temperature) for s_next in range(len(P)))
        assert_allclose(drift, 0, atol=1e-9)


@given(episodic_chains(), st.data(), temperatures)
def test_values_of_linear_rl_come_from_the_default_representation(
    chain: tuple[Array, Array], data: st.DataObject, temperature: float
) -> None:
    P, ends = chain
    r = np.array(data.draw(st.lists(rewards, min_size=len(P), max_size=len(P))))
    Z = dr(P, r, temperature, ends)
    # exp(v) of a walk until its end: v(s) = r(s) + log E exp(v(s')), v(end) = r(end), in units of the temperature
    exp_v = np.where(ends, np.exp(r / temperature), (Z[:, ends]).sum(axis=1))
    expected = np.exp(r / temperature) * np.where(ends, 1, P @ exp_v)
    assert_allclose(exp_v, expected, rtol=1e-8)
    for s in np.flatnonzero(ends):  # nothing follows an end
        assert_allclose(td_dr(Z, s, 0, r[s], temperature, discount=0), 0, atol=1e-12)


def test_rewards_that_let_walks_add_up_to_infinity_are_refused() -> None:
    P = spie.grid("of-small").transition()
    with pytest.raises(ValueError, match=re.escape("the rewards are too high: walks of the default policy add up to")):
        dr(P, np.zeros(100))
    with pytest.raises(ValueError, match="temperature is 0; give a number above 0"):
        dr(P, -np.ones(100), 0)
    with pytest.raises(ValueError, match="the reward of state 3 is not finite"):
        dr(P, np.where(np.arange(100) == 3, np.nan, -1))


def test_all_that_there_is_to_see_is_of_the_policy_and_gamma() -> None:
    mdp = spie.grid("cluster-simple")
    P = mdp.transition()
    found = mdp.representations(gamma=0.9)
    assert_array_equal(found.M, spie.sr(P, 0.9))
    assert_array_equal(found.F, spie.fr(P, 0.9))
    assert_array_equal(found.N, spie.pr(P, 0.9))
    assert_array_equal(found.z, spie.stationary(P))
    assert_array_equal(found.place_field(7), found.M[:, 7])
    assert_array_equal(found.place_field(7, "rows"), found.M[7])
    assert_allclose(found.default(), dr(P, -np.ones(91)))
    assert_allclose(found.default(reward=np.log(0.9)), 0.9 * found.M)


@pytest.mark.parametrize("name", ["cluster-hard", "t-maze", "tree"])
def test_eigenvectors_are_those_of_the_chain_and_of_M(name: str) -> None:
    mdp = spie.task(name, **({"task": "explore"} if name != "tree" else {}))
    found = mdp.representations(gamma=0.9)
    values, vectors = found.eigenvectors
    assert (np.diff(values) <= 1e-12).all()
    assert_allclose(found.P @ vectors, vectors * values, atol=1e-9)
    assert_allclose(found.M @ vectors, vectors / (1 - 0.9 * values), atol=1e-7)
    assert_allclose(found.eigenvector(0), found.eigenvector(0)[0])  # constant


@pytest.mark.parametrize("graph", [nx.barbell_graph(5, 2), nx.path_graph(7), nx.grid_2d_graph(4, 5), nx.cycle_graph(8)])
def test_betweenness_is_that_of_the_graph_of_moves(graph: nx.Graph) -> None:
    found = spie.graph(graph).representations()
    assert_allclose(found.betweenness, list(nx.betweenness_centrality(graph).values()), atol=1e-12)


def test_betweenness_follows_one_way_moves() -> None:
    G = nx.DiGraph([(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)])
    assert_allclose(spie.graph(G).representations().betweenness, list(nx.betweenness_centrality(G).values()))


def test_the_fiedler_vector_cuts_two_rooms_apart() -> None:
    mdp = spie.grid("cluster-simple")
    found = mdp.representations()
    assert mdp.cells is not None
    left = mdp.cells[:, 1] < 5
    inside = ~doors(mdp)
    assert len(set(np.sign(found.fiedler[left & inside]))) == len(set(np.sign(found.fiedler[~left & inside]))) == 1
    assert np.sign(found.fiedler[0]) != np.sign(found.fiedler[-1])
    P = found.P  # symmetric: the Laplacian is (I - P) / S
    values = np.linalg.eigvalsh(np.eye(len(P)) - P)
    assert_allclose((np.eye(len(P)) - P) @ found.fiedler, values[1] * found.fiedler, atol=1e-9)
    assert mdp.labels[np.argmax(found.betweenness)] in ("5,4", "5,5", "5,6")  # the door and its two sides


def test_a_policy_is_probabilities_or_the_best_of_values() -> None:
    mdp = spie.grid("S..", bumps=False)
    right = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1.0]])
    assert_array_equal(mdp.representations(right).P, [[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    assert_array_equal(mdp.representations(10 * right).P, [[0, 1, 0], [0, 0, 1], [0, 1, 0]])
    assert_allclose(mdp.representations(10 * right, epsilon=0.5).P[1], [0.25, 0, 0.75])
    assert_array_equal(mdp.representations(np.zeros((3, 4))).P, mdp.transition())  # all are equally good


def test_paths_give_the_chain_that_was_walked() -> None:
    mdp = spie.grid("S..", bumps=False)
    assert_array_equal(mdp.representations([[0, 1, 0, 1, 2]]).P, [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    assert_array_equal(mdp.representations(np.array([0, 1, 2])).P, [[0, 1, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("best", 'map: no policy "best"; give "random", pi [S, A], Q [S, A] or a list of paths'),
        (np.ones((2, 4)), "map: the policy has shape [2, 4], not [3, 4]"),
        (np.full((3, 4), np.nan), "map: the values of state 0 are not numbers"),
        ([[0, 2]], "map: step 0 of path 0, from 0,0 to 0,2, is no move of this maze"),
        ([[0, 7]], "map: path 0 must be numbers of states, 0..2"),
    ],
)
def test_a_policy_that_is_none_is_one_line(policy: object, message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        spie.grid("S..").representations(policy)


def test_a_large_maze_has_no_whole_matrices() -> None:
    with pytest.raises(ValueError, match="5,041 states are too many for whole matrices"):
        spie.grid("\n".join(["." * 71] * 71)).representations()
