from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from spie import representations
from spie.representations import fr, pr, reverse, sr, sr_column_sums, sr_row_sums, stationary, td_fr, td_pr, td_sr

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TWO = np.array([[1 / 2, 1 / 2], [1 / 4, 3 / 4]])  # z = (1/3, 2/3)
RING = np.roll(np.eye(3), 1, axis=1)  # 0 -> 1 -> 2 -> 0: period 3, and not reversible
END = np.array([False, False, True])  # with it, RING is an episode 0 -> 1 -> end, over and over again

gammas = st.floats(0, 0.99)


def assert_close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


@st.composite
def chains(draw: st.DrawFn, n_ends: int = 0) -> Array:
    """Irreducible chains, periodic ones among them: a ring through all states, and any links besides.

    The last n_ends states end an episode: each is entered from the last of the others, and starts again in state 0.
    """
    S = draw(st.integers(2, 6)) + n_ends
    link = st.one_of(st.just(0.0), st.floats(0.05, 1))
    W = np.array(draw(st.lists(st.lists(link, min_size=S, max_size=S), min_size=S, max_size=S)))
    W += 0.5 * np.roll(np.eye(S), 1, axis=1)
    if n_ends:
        W[-n_ends - 1, -n_ends:] += 0.5
        W[-n_ends:] = 0.5 * np.eye(S)[0] + np.where(np.arange(S) < S - n_ends, W[0], 0)
    W /= W.sum(axis=1, keepdims=True)
    return W


@st.composite
def episodic_chains(draw: st.DrawFn) -> tuple[Array, Mask]:
    n_ends = draw(st.integers(1, 2))
    P = draw(chains(n_ends))
    return P, np.arange(len(P)) >= len(P) - n_ends


def birth_death(n: int, ratio: float) -> tuple[Array, Array]:
    """A walk on 0 .. n-1 that bumps at both ends, and its z, each entry `ratio` times the one before."""
    up = ratio / (1 + ratio)
    P = np.diag(np.full(n - 1, up), 1) + np.diag(np.full(n - 1, 1 - up), -1)
    P[0, 0], P[-1, -1] = 1 - up, up
    z: Array = np.power(ratio, np.arange(n, dtype=np.float64))
    z /= z.sum()
    return P, z


def two_wells(n: int, ratio: float) -> Array:
    """A walk on 0 .. 2n-1 that is drawn to both ends: z is the same from either side and least in the middle."""
    P, _ = birth_death(n, ratio)
    wells = np.block([[P, np.zeros_like(P)], [np.zeros_like(P), P[::-1, ::-1]]])
    for s, s_next in [(n - 1, n), (n, n - 1)]:  # what bumped in the middle passes
        wells[s, s_next], wells[s, s] = wells[s, s], 0
    return wells


def corridor(n: int) -> Any:
    """A symmetric walk on 0 .. n-1 that bumps at both ends."""
    ends = np.zeros(n)
    ends[[0, -1]] = 0.5
    return sp.csr_array(sp.diags_array([0.5, 0.5], offsets=[-1, 1], shape=(n, n)) + sp.diags_array(ends))


def field(n: int) -> Any:
    """An open n x n grid under the uniform policy; a bump stays in place."""
    return side_by_side(corridor(n), corridor(n))


def side_by_side(A: Any, B: Any) -> Any:
    """Two chains of which one, drawn again at each step, moves: z is the product of theirs."""
    return sp.csr_array(sp.kron(A, sp.eye_array(B.shape[0])) + sp.kron(sp.eye_array(A.shape[0]), B)) / 2


def drift(td: Callable[..., Array], X: Array, P: Array, gamma: float, ends: Mask | None = None) -> Array:
    """Expected change of X at the rate z(s) P[s, s'] of every transition that does not start in an end."""
    ends = np.zeros(len(P), dtype=bool) if ends is None else ends
    rate = stationary(P)[:, None] * P
    change = np.zeros_like(X)
    for s, s_next in np.argwhere((rate > 0) & ~ends[:, None]):
        if td is td_pr:
            change[:, s_next] += rate[s, s_next] * td(X, s, s_next, gamma)
        else:
            change[s] += rate[s, s_next] * td(X, s, s_next, gamma, discount=1.0 - ends[s_next])
    return change


# Hand-sized numbers


def test_two_states_by_hand() -> None:
    assert_close(stationary(TWO), [1 / 3, 2 / 3])
    assert_close(sr(TWO, 0.5), [[10 / 7, 4 / 7], [2 / 7, 12 / 7]])
    assert_close(fr(TWO, 0.5), [[1, 1 / 3], [1 / 5, 1]])
    assert_close(reverse(TWO), [[1 / 2, 1 / 4], [1 / 2, 3 / 4]])
    assert_close(pr(TWO, 0.5), [[10 / 7, 2 / 7], [4 / 7, 12 / 7]])
    assert_close(sr_row_sums(TWO, 0.5), [2, 2])
    assert_close(sr_column_sums(TWO, 0.5), [12 / 7, 16 / 7])


def test_a_one_way_ring_by_hand() -> None:
    powers = np.array([[1, 1 / 2, 1 / 4], [1 / 4, 1, 1 / 2], [1 / 2, 1 / 4, 1]])
    assert_close(stationary(RING), [1 / 3, 1 / 3, 1 / 3])
    assert_close(sr(RING, 0.5), powers * 8 / 7)
    assert_close(fr(RING, 0.5), powers)
    assert_close(reverse(RING), RING)
    assert_close(pr(RING, 0.5), powers * 8 / 7)


def test_an_episode_by_hand() -> None:
    assert_close(sr(RING, 0.5, END), [[1, 1 / 2, 0], [0, 1, 0], [0, 0, 1]])
    assert_close(fr(RING, 0.5, END), [[1, 1 / 2, 0], [0, 1, 0], [0, 0, 1]])
    assert_close(reverse(RING, END), [[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    assert_close(pr(RING, 0.5, END), [[1, 1 / 2, 1 / 4], [0, 1, 1 / 2], [0, 0, 1]])
    assert_close(sr_row_sums(RING, 0.5, END), [3 / 2, 1, 1])
    assert_close(sr_column_sums(RING, 0.5, END), [1, 3 / 2, 1])


def test_td_errors_by_hand() -> None:
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_close(td_sr(X, 0, 1, 0.5), [1.5, 0])
    assert_close(td_sr(X, 0, 1, 0.5, discount=0), [0, -2])
    assert_close(td_sr(X, 1, 1, 0.5), [-1.5, -1])
    assert_close(td_fr(X, 0, 1, 0.5), [0, 0])
    assert_close(td_fr(X, 1, 0, 0.5), [-2.5, -3])
    assert_close(td_fr(X, 0, 1, 0.5, discount=0), [0, -2])
    assert_close(td_pr(X, 0, 1, 0.5), [-1.5, -1.5])
    assert_close(td_pr(X, 1, 0, 0.5), [1, -1])
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])


def test_gamma_zero_sees_the_present_only() -> None:
    for representation in (sr, fr, pr):
        assert_close(representation(TWO, 0), np.eye(2))


# Identities


@pytest.mark.slow
@given(chains(), gammas)
def test_sr_solves_its_recursion_and_its_rows_sum_to_the_horizon(P: Array, gamma: float) -> None:
    M = sr(P, gamma)
    assert_close(M, np.eye(len(P)) + gamma * P @ M)
    assert_close(M.sum(axis=1) * (1 - gamma), 1)


@given(episodic_chains(), gammas)
def test_sr_with_ends_solves_the_recursion_that_stops_there(episodic: tuple[Array, Mask], gamma: float) -> None:
    P, ends = episodic
    M = sr(P, gamma, ends)
    assert_close(M[~ends], (np.eye(len(P)) + gamma * P @ (M * ~ends[:, None]))[~ends])
    assert_close(M[ends], np.eye(len(P))[ends])
    assert (M[~ends][:, ends] == 0).all()


@given(chains())
def test_sr_is_never_negative_and_exactly_zero_where_nothing_leads(P: Array) -> None:
    P = np.triu(P) + np.diag(np.tril(P, -1).sum(axis=1))  # no way back
    M = sr(P, 0.95)
    assert (M >= 0).all()
    assert (np.tril(M, -1) == 0).all()


@given(episodic_chains(), gammas, st.booleans())
def test_fr_is_the_discount_at_the_first_visit(episodic: tuple[Array, Mask], gamma: float, endless: bool) -> None:
    P, ends = episodic
    F = fr(P, gamma, None if endless else ends)
    step = gamma * (P if endless else P * ~ends * ~ends[:, None])
    for goal in range(len(P)):
        others = np.arange(len(P)) != goal
        before = np.eye(len(P) - 1) - step[np.ix_(others, others)]
        assert_close(F[others, goal], np.linalg.solve(before, step[others, goal]))
        assert F[goal, goal] == 1


@given(chains(), gammas)
def test_fr_lies_between_zero_and_one_and_below_sr(P: Array, gamma: float) -> None:
    M, F = sr(P, gamma), fr(P, gamma)
    assert_close(F * M.diagonal(), M)
    assert (F >= 0).all()
    assert (np.minimum(1, M) * (1 + 1e-12) >= F).all()


@given(chains())
def test_stationary_is_a_distribution_that_a_step_leaves_alone(P: Array) -> None:
    z = stationary(P)
    assert (z > 0).all()
    assert_close(z.sum(), 1)
    np.testing.assert_allclose(z @ P, z, rtol=1e-13)


@given(chains())
def test_reversing_twice_gives_the_chain_back(P: Array) -> None:
    backwards = reverse(P)
    assert_close(backwards.sum(axis=0), 1)
    assert_close(stationary(backwards.T), stationary(P))
    assert_close(reverse(backwards.T).T, P)


@given(episodic_chains())
def test_with_ends_columns_of_the_reversed_chain_sum_to_one_or_are_empty(episodic: tuple[Array, Mask]) -> None:
    P, ends = episodic
    backwards = reverse(P, ends)
    assert (backwards[ends] == 0).all()
    assert_close(backwards.sum(axis=0), P[~ends].any(axis=0))


@given(chains(), gammas)
def test_sr_and_pr_are_reciprocal(P: Array, gamma: float) -> None:
    M, N, z = sr(P, gamma), pr(P, gamma), stationary(P)
    assert_close(N * z, z[:, None] * M)
    assert_close(N, np.eye(len(P)) + gamma * N @ reverse(P))
    assert_close(N.sum(axis=0) * (1 - gamma), 1)


@given(episodic_chains(), gammas)
def test_pr_with_ends_solves_its_recursion(episodic: tuple[Array, Mask], gamma: float) -> None:
    P, ends = episodic
    N = pr(P, gamma, ends)
    assert_close(N, np.eye(len(P)) + gamma * N @ reverse(P, ends))
    assert (N >= 0).all()


@given(chains(), gammas)
def test_a_mask_without_ends_changes_nothing(P: Array, gamma: float) -> None:
    nowhere = np.zeros(len(P), dtype=bool)
    for representation in (sr, fr, pr):
        assert_close(representation(P, gamma, nowhere), representation(P, gamma))


@given(episodic_chains(), gammas, st.booleans(), st.sampled_from([np.asarray, sp.csr_array]))
def test_row_and_column_sums_are_those_of_sr(
    episodic: tuple[Array, Mask], gamma: float, endless: bool, form: Callable[[Array], Any]
) -> None:
    P, ends = episodic
    terminal = None if endless else ends
    M = sr(P, gamma, terminal)
    assert_close(sr_row_sums(form(P), gamma, terminal), M.sum(axis=1))
    assert_close(sr_column_sums(form(P), gamma, terminal), M.sum(axis=0))


def test_a_grid_with_bumps_is_the_same_in_both_directions_of_time() -> None:
    P = field(4).toarray()
    M = sr(P, 0.95)
    assert_close(stationary(P), 1 / 16)
    assert_close(M.sum(axis=0), 20)
    assert_close(pr(P, 0.95), M)


# Fixed points of the TD rules


RULES = [(td_sr, sr), (td_fr, fr), (td_pr, pr)]


@pytest.mark.parametrize(("td", "closed_form"), RULES)
@given(P=chains(), gamma=gammas)
def test_td_rests_at_the_closed_form_and_nowhere_above(
    td: Callable[..., Array], closed_form: Callable[..., Array], P: Array, gamma: float
) -> None:
    X = closed_form(P, gamma)
    assert_close(drift(td, X, P, gamma), 0)
    # 0.1 too much everywhere is corrected downwards everywhere, by 0.1 (1 - gamma) a transition or more
    pull = -0.1 * (1 - gamma) * stationary(P)
    assert (drift(td, X + 0.1, P, gamma) < 0.99 * (pull if td is td_pr else pull[:, None])).all()


@pytest.mark.parametrize(("td", "closed_form"), RULES)
@given(episodic=episodic_chains(), gamma=gammas)
def test_td_with_ends_rests_at_the_closed_form_and_nowhere_above(
    td: Callable[..., Array], closed_form: Callable[..., Array], episodic: tuple[Array, Mask], gamma: float
) -> None:
    P, ends = episodic
    X = closed_form(P, gamma, ends)
    assert_close(drift(td, X, P, gamma, ends), 0)
    change = drift(td, X + 0.1, P, gamma, ends)
    inflow = (stationary(P) * ~ends) @ P
    learnt = change[:, inflow > 0] if td is td_pr else change[~ends]
    rate = inflow[inflow > 0] if td is td_pr else stationary(P)[~ends, None]
    assert (learnt < 0.99 * -0.1 * (1 - gamma) * rate).all()


def test_td_learns_a_certain_episode_but_not_what_it_never_sees() -> None:
    M, F, N = np.zeros((3, 3, 3))
    for _ in range(100):
        for s, s_next in [(0, 1), (1, 2)]:
            discount = 1.0 - END[s_next]
            M[s] += 0.5 * td_sr(M, s, s_next, 0.9, discount)
            F[s] += 0.5 * td_fr(F, s, s_next, 0.9, discount)
            N[:, s_next] += 0.5 * td_pr(N, s, s_next, 0.9)
    seen = ~END[:, None]  # nothing is learnt in the end itself, nor of what came before the start
    assert_close(M, sr(RING, 0.9, END) * seen)
    assert_close(F, fr(RING, 0.9, END) * seen)
    assert_close(N, [[0, 0, 0], [0, 1, 0.9], [0, 0, 1]])


# Stationary distributions that are hard to compute


def test_transient_states_have_stationary_probability_zero() -> None:
    P = np.zeros((4, 4))
    P[0, [0, 2]], P[1, 2], P[2, 3], P[3, 2] = 0.5, 1, 1, 1
    assert_close(stationary(P), [0, 0, 1 / 2, 1 / 2])


def test_one_state_is_a_chain() -> None:
    assert_close(stationary([[1.0]]), [1])
    assert_close(pr([[1.0]], 0.75), [[4]])


@pytest.mark.parametrize("ratio", [1e-3, 1e3])
def test_the_rarest_state_is_as_accurate_as_the_commonest(ratio: float) -> None:
    P, z = birth_death(100, ratio)
    assert z.min() < 1e-296
    np.testing.assert_allclose(stationary(P), z, rtol=1e-10)
    # Walks along a line are reversible.
    np.testing.assert_allclose(pr(P, 0.9), sr(P, 0.9).T, rtol=1e-10)


def test_two_wells_weigh_the_same_across_states_of_weight_1e_177() -> None:
    assert_close(stationary(two_wells(60, 1e-3))[[0, 1, -2, -1]], [0.4995, 0.0004995, 0.0004995, 0.4995])


@pytest.mark.parametrize(("n", "ratio"), [(60, 1e-6), (400, 0.1)])
@pytest.mark.parametrize("shift", [0, 0.5, 1])  # the states may come in any order
def test_states_too_far_apart_to_be_weighed_are_refused(n: int, ratio: float, shift: float) -> None:
    order = np.roll(np.arange(2 * n), int(n * shift))
    with pytest.raises(ValueError, match=r"differ by more than floats hold \(1e308\); sr and fr need none"):
        stationary(two_wells(n, ratio)[np.ix_(order, order)])


@pytest.mark.parametrize("sparse", [False, True])
def test_stationary_eliminates_the_states_of_a_large_one_way_field(sparse: bool) -> None:
    around = np.roll(np.eye(40), 1, axis=1)
    along, z = birth_death(40, 0.2)
    P = side_by_side(sp.csr_array(around), sp.csr_array(along))
    np.testing.assert_allclose(stationary(P if sparse else P.toarray()), np.tile(z / 40, 40), rtol=1e-11)


def test_stationary_takes_a_large_dense_chain() -> None:
    W = np.random.default_rng(0).random((700, 700))
    W += W.T  # weights without a direction: z is proportional to their row sums
    np.testing.assert_allclose(stationary(W / W.sum(axis=1)[:, None]), W.sum(axis=1) / W.sum(), rtol=1e-12)


# Sparse chains


@pytest.mark.slow
@given(episodic_chains())
def test_a_sparse_chain_gives_what_the_dense_one_gives(episodic: tuple[Array, Mask]) -> None:
    P, ends = episodic
    s, s_next = np.indices(P.shape).reshape(2, -1)  # zeros are stored, and every entry in two halves
    halves = sp.coo_array((np.tile(P.ravel() / 2, 2), (np.tile(s, 2), np.tile(s_next, 2))))
    assert_close(stationary(halves), stationary(P))
    assert_close(reverse(halves).toarray(), reverse(P))
    assert_close(reverse(halves, ends).toarray(), reverse(P, ends))
    for representation in (sr, fr, pr):
        assert_close(representation(halves, 0.9, ends), representation(P, 0.9, ends))
        assert_close(representation(sp.csr_matrix(P), 0.9), representation(P, 0.9))


@pytest.mark.slow
def test_sums_of_a_hundred_thousand_states_need_no_dense_matrix() -> None:
    P = field(316)
    assert P.shape[0] == 99_856
    np.testing.assert_allclose(sr_row_sums(P, 0.95), 20, rtol=1e-12)
    np.testing.assert_allclose(sr_column_sums(P, 0.95), 20, rtol=1e-12)  # P is symmetric
    goal = np.arange(99_856) == 99_855
    w, c = sr_row_sums(P, 0.95, goal), sr_column_sums(P, 0.95, goal)
    np.testing.assert_allclose(w[~goal], (1 + 0.95 * P @ (w * ~goal))[~goal], rtol=1e-13)
    np.testing.assert_allclose(c, w, rtol=1e-12)  # and stays so without the end
    assert w[goal] == 1
    assert w[-2] < 19 < w[0]


def test_stationary_takes_a_hundred_thousand_states() -> None:
    np.testing.assert_allclose(stationary(corridor(100_000)), 1e-5, rtol=1e-12)


def test_a_matrix_past_memory_is_refused_with_its_size() -> None:
    P = corridor(100_000)
    for representation in (sr, fr, pr):
        for terminal in (None, np.arange(100_000) == 7):
            with pytest.raises(ValueError, match=r"\[100000, 100000\] matrix needs 80.0 GB; use sr_row_sums"):
                representation(P, 0.9, terminal)


def test_stationary_gives_up_before_memory_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(representations, "FILL", 1000)
    with pytest.raises(ValueError, match="too tangled"):
        stationary(field(30))


# Refusals


EVERYTHING = [sr, fr, pr, sr_row_sums, sr_column_sums]


@pytest.mark.parametrize("function", EVERYTHING)
@pytest.mark.parametrize("gamma", [1, 1.5, -0.1, np.nan])
@pytest.mark.parametrize("terminal", [None, END])
def test_gamma_outside_its_range_is_refused(function: Callable[..., Array], gamma: float, terminal: Mask) -> None:
    with pytest.raises(ValueError, match=rf"gamma is {gamma:g}, not in \[0, 1\); at 1 the visits add up to infinity"):
        function(RING, gamma, terminal)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([[0.5, 0.5], [0.3, 0.6]], r"P\[1\] sums to 0.9, not 1 \(state 1; "),
        ([[0.5, 0.5], [0.3, 0.7 + 1e-8]], r"P\[1\] sums to 1.00000001, not 1"),
        ([[1.5, -0.5], [0, 1]], r"P\[0, 1\] is -0.5, which is no probability"),
        ([[1, 0], [np.nan, 1]], r"P\[1\] sums to nan, not 1"),
        ([[1, 0], [np.inf, 1]], r"P\[1\] sums to inf, not 1"),
        ([[0.5, 0.5]], r"P has shape \[1, 2\], not \[S, S\]"),
    ],
)
def test_what_is_no_chain_is_refused(P: list[list[float]], message: str, sparse: bool) -> None:
    chain = sp.csr_array(np.array(P)) if sparse else np.array(P)
    for function in EVERYTHING:
        with pytest.raises(ValueError, match=message):
            function(chain, 0.9)
    for state_function in (stationary, reverse):
        with pytest.raises(ValueError, match=message):
            state_function(chain)


@pytest.mark.parametrize("P", [np.empty((0, 0)), np.ones(1), np.ones((1, 1, 1))])
def test_a_chain_without_states_or_of_other_dimension_is_refused(P: Array) -> None:
    with pytest.raises(ValueError, match=r"P has shape .*, not \[S, S\]"):
        sr(P, 0.9)


def test_rounding_in_the_rows_is_forgiven() -> None:
    assert_close(stationary([[0.5, 0.5 + 1e-10], [0.5, 0.5]]), [1 / 2, 1 / 2])


@pytest.mark.parametrize(
    ("terminal", "what"),
    [([True, False], r"bool \[2\]"), ([2], r"int64 \[1\]"), ([0, 0, 1], r"int64 \[3\]")],
)
def test_ends_must_be_a_mask(terminal: list[Any], what: str) -> None:
    for function in EVERYTHING:
        with pytest.raises(ValueError, match=r"terminal must be a bool mask \[3\], not " + what):
            function(RING, 0.9, np.array(terminal))


def test_two_closed_classes_are_refused_by_name() -> None:
    P = np.array([[0, 0.5, 0.5, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    stored_zero = sp.csr_array((P.ravel(), np.tile(np.arange(4), 4), np.arange(0, 17, 4)))
    assert stored_zero.nnz == 16
    for chain in (P, stored_zero):
        for function in (stationary, reverse, lambda P: pr(P, 0.9)):
            with pytest.raises(ValueError, match="P has no unique stationary distribution: states 1 and 2 are in two"):
                function(chain)
    assert_close(sr(P, 0.5)[1], [0, 2, 0, 0])  # looking forward is no problem


def test_a_state_that_is_left_for_good_has_no_past() -> None:
    P = np.array([[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 1, 0]])
    assert_close(sr(P, 0)[0], [1, 0, 0])
    for function in (reverse, lambda P: pr(P, 0.9), lambda P: pr(P, 0.9, END)):
        with pytest.raises(ValueError, match=r"state 0 has stationary probability 0.* stationary\(P\) > 0"):
            function(P)
