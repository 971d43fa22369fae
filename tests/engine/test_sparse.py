"""Row-sparse matrices: their book-keeping against dense rows, and the engine's bonus against a replayed dense run.

How far off may the bonus be? An update of row s leaves in each entry an error of at most (1 - eta) e(s) + eta gamma
e(s') plus what is dropped, below the tolerance. So no entry is ever off by more than tolerance / (eta (1 - gamma)), and
always to the low side, since nothing negative is dropped. Sums over a row or column are off by at most S times that;
the sum of a row of M and of a column of N is learned directly and exact.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import own_reward  # noqa: F401  (makes "everything" known)
import spie
from spie.engine import sparse_rows as sparse

ETA, GAMMA = 0.1, 0.95


def goal_maze(size, **options):
    """A maze whose goal is its last free cell. Each step costs 1, so an agent that is paid no bonus explores it too."""
    return spie.grid("G".join(spie.maze(size, size, seed=1, **options).rsplit(".", 1)), "goal")


MAZE = goal_maze(61)
RIGHT = 1


# Book-keeping: the functions that the kernel compiles are plain functions, run here as they are


def rows_of(pool, matrix):
    """Dense [S, S] of one of the matrices in a pool."""
    start, length, _, _, columns, values, ahead = pool
    S = len(ahead)
    dense = np.zeros((S, S))
    for s in range(S):
        row = matrix * S + s
        block = slice(int(start[row]), int(start[row]) + int(length[row]))
        assert len(set(columns[block])) == length[row]  # no column twice
        dense[s, columns[block]] = values[block]
    return dense


def blocks_of(pool):
    """(start, end) of every block, in use or free, in order."""
    start, _, room, free, columns, _, _ = pool
    used = [(int(s), int(s) + 2 ** int(k)) for s, k in zip(start, room, strict=True) if s != sparse.NONE]
    for k in range(1, len(free)):
        block = int(free[k])
        while block != sparse.NONE:
            used.append((block, block + 2**k))
            block = int(columns[block])
    return sorted(used)


S = 12
WALKS = st.lists(st.tuples(st.integers(0, S - 1), st.integers(0, S - 1)), min_size=1, max_size=150)


def learn(walk, tolerance, eta, gamma):
    """M, F and N^T of a walk, dense and in a pool; with the column sums and the row sums of F that were kept."""
    dense = np.zeros((3, S, S))
    pool = sparse.empty_pool(S, 64)
    sparse.clear(pool)
    sums, F_row = np.zeros((1, S)), np.zeros(S)
    for s, s_next in walk:
        dense[0, s] += eta * spie.td_sr(dense[0], s, s_next, gamma)
        dense[1, s] += eta * spie.td_fr(dense[1], s, s_next, gamma)
        dense[2, s_next] += eta * spie.td_pr(dense[2].T, s, s_next, gamma)
        pool = sparse.with_room(pool, s, s_next)
        sparse.update_sparse_row(pool, 0, s, s_next, eta, gamma, tolerance, sums)
        F_row[s] += sparse.update_sparse_row(pool, 1, s, s_next, eta, gamma, tolerance, sums)
        sparse.update_sparse_row(pool, 2, s_next, s, eta, gamma, tolerance, sums)
        assert not pool[-1].any()  # `ahead` is left at zero
    return dense, pool, sums[0], F_row


@pytest.mark.slow
@given(WALKS)
def test_rows_without_loss_are_the_dense_rows(walk):
    dense, pool, M_col, F_row = learn(walk, 1e-300, 0.3, 0.9)
    for matrix in range(3):
        np.testing.assert_allclose(rows_of(pool, matrix), dense[matrix], rtol=0, atol=1e-13)
    np.testing.assert_allclose(M_col, dense[0].sum(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(F_row, dense[1].sum(axis=1), rtol=0, atol=1e-12)


@pytest.mark.slow
@given(WALKS)
def test_rows_lose_at_most_what_the_tolerance_allows_and_sums_stay_those_of_the_rows(walk):
    tolerance, eta, gamma = 0.02, 0.3, 0.9
    dense, pool, M_col, F_row = learn(walk, tolerance, eta, gamma)
    for matrix in range(3):
        rows = rows_of(pool, matrix)
        assert ((rows == 0) | (rows >= tolerance)).all()
        lost = dense[matrix] - rows
        assert lost.min() > -1e-13
        assert lost.max() <= tolerance / (eta * (1 - gamma))
    np.testing.assert_allclose(M_col, rows_of(pool, 0).sum(axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(F_row, rows_of(pool, 1).sum(axis=1), rtol=0, atol=1e-12)


@pytest.mark.slow
@given(WALKS)
def test_blocks_tile_the_used_part_of_the_pool(walk):
    _, pool, _, _ = learn(walk, 0.02, 0.3, 0.9)
    blocks = blocks_of(pool)
    assert [start for start, _ in blocks] == [0, *(end for _, end in blocks[:-1])]
    assert blocks[-1][1] == pool[3][0]  # where the unused part begins
    assert pool[3][0] <= len(pool[4])


def test_an_entry_is_dropped_when_it_falls_below_the_tolerance_and_not_before():
    for tolerance, left in ((0.25, [0.625, 0.25, 0.25]), (0.2501, [0.625, 0.0, 0.0])):
        pool = sparse.empty_pool(3)
        sparse.clear(pool)
        sparse.append(pool, 0, 0, 0.25)
        sparse.append(pool, 0, 1, 0.5)  # halved
        sparse.append(pool, 1, 2, 1.0)  # a quarter of it is handed on
        M_col = np.array([[0.25, 0.5, 1.0]])
        change = sparse.update_sparse_row(pool, 0, 0, 1, 0.5, 0.5, tolerance, M_col)
        np.testing.assert_array_equal(rows_of(pool, 0)[0], left)
        assert M_col[0].tolist() == [left[0], left[1], 1 + left[2]]
        assert change == sum(left) - 0.75


def test_an_entry_is_found_by_its_column_and_a_cleared_pool_holds_none():
    pool = sparse.empty_pool(40)
    sparse.clear(pool)
    for column in range(40):
        sparse.append(pool, 7, column, column / 2)
    assert [sparse.entry(pool, 7, column) for column in range(40)] == [column / 2 for column in range(40)]
    assert sparse.entry(pool, 8, 3) == 0
    sparse.clear(pool)
    assert sparse.entry(pool, 7, 3) == 0
    assert pool[3][0] == 0


# The engine

BOUND = 1 / (ETA * (1 - GAMMA))  # times the tolerance: an entry's error
SUM = MAZE.n_states * BOUND
LARGEST_ERROR = {  # per unit of tolerance, and the side to which the sparse bonus errs
    "sr-r": (SUM, 1),
    "sr-r(c)": (BOUND, 1),
    "fr": (SUM, -1),
    "sr-pr": (BOUND, -1),
    "everything": (0.5 * (0.1 * BOUND + 0.03 * SUM + 0.4 * SUM + 0.25 * SUM + 0.6 * BOUND), 0),
}


def errors(reward, mdp, steps, tolerances, episodes=1, **options):
    """Sparse bonuses minus dense ones on the dense run's own steps, for each tolerance; and the dense run.

    With beta = 0 that run is the same for all rewards.
    """
    settings = {"reward": reward, "eta": ETA, "gamma_sr": GAMMA, "beta": 0.0, **options}
    run = {"task": mdp, "steps": steps, "seeds": [5], "episodes": episodes}
    dense = spie.Sarsa(**settings, sparse=False).run(**run, keep=spie.Keep(tuple("QMFN"), paths=[5]))
    path = dense.paths[5]
    actions = np.zeros(steps * episodes, int)
    actions[: len(path.actions)] = path.actions
    found = []
    for tolerance in tolerances:
        agent = spie.Sarsa(**settings, sparse=True, tolerance=tolerance)
        trace = agent.run(**run, replay=spie.Replay(actions), keep=spie.Keep(paths=[5]))
        np.testing.assert_array_equal(trace.paths[5].next_states, path.next_states)
        np.testing.assert_array_equal(trace.episode_steps, dense.episode_steps)
        found.append(trace.paths[5].bonuses - path.bonuses)
    return found, dense


@pytest.mark.slow
@pytest.mark.parametrize("reward", LARGEST_ERROR)
def test_sparse_bonus_is_the_dense_one_to_the_tolerance(reward):
    allowed, side = LARGEST_ERROR[reward]
    for m0 in (0.0, 1.0):
        (exact, fine, coarse), dense = errors(reward, MAZE, 20_000, (1e-300, 1e-8, 1e-4), m0=m0)
        assert (dense.visits[0] > 0).sum() > 500
        rounding = 1e-12 * np.abs(dense.paths[5].bonuses).max()
        assert np.abs(exact).max() <= rounding
        assert np.abs(fine).max() <= 1e-8 * allowed
        assert np.abs(fine).max() < np.abs(coarse).max() <= 1e-4 * allowed
        if side:
            assert min((side * fine).min(), (side * coarse).min()) >= -rounding

    (exact,), dense = errors(reward, goal_maze(17, loops=0.3), 300, (1e-300,), episodes=12, epsilon=0.2)
    assert 0 < dense.truncated[0] < 12  # some reached the goal, some did not
    assert np.abs(exact).max() <= 1e-12 * np.abs(dense.paths[5].bonuses).max()


@pytest.mark.slow
def test_a_sparse_run_is_the_same_in_any_company():
    replay = spie.Replay(np.random.default_rng(0).integers(4, size=2000))
    run = {"task": MAZE, "steps": 2000, "episodes": 1, "replay": replay}
    agents = [spie.Sarsa(sparse=True, eta=eta, m0=m0) for eta, m0 in ((0.1, 0.0), (0.3, 1.0), (0.3, 0.0))]
    together = spie.run_sarsa(agents, **run, seeds=3, keep=spie.Keep(paths=range(3)), session=spie.Session(threads=2))
    for agent, trace in zip(agents, together, strict=True):
        alone = agent.run(**run, seeds=[1], keep=spie.Keep(paths=[1]))
        np.testing.assert_array_equal(alone.paths[1].bonuses, trace.paths[1].bonuses)


@pytest.mark.slow
def test_large_mdps_are_sparse_unless_told_otherwise_and_keep_no_matrices():
    corridor = spie.grid("S" + 6000 * ".")
    path, also_visits = spie.Keep(paths=[0]), spie.Keep(paths=[0], snapshots=[10, 3000])
    right = {"episodes": 1, "replay": spie.Replay(np.full(5999, RIGHT))}
    trace = spie.Sarsa(m0=1.0).run(corridor, 5999, **right, keep=also_visits)
    assert trace.snapshots.sum(axis=2).tolist() == [[11, 3001]]
    # On the way through, M[s] = 1(s) + eta gamma 1(s'): of s' know s and, from the beginning, s' itself.
    np.testing.assert_allclose(trace.paths[0].bonuses, -1, rtol=0, atol=1e-15)
    with pytest.raises(ValueError, match=r"^row-sparse runs keep no M, N; set sparse=False$"):
        spie.Sarsa().run(corridor, 10, keep=spie.Keep(tuple("QMN")))
    small = spie.Sarsa(sparse=True, m0=1.0).run(
        spie.grid("S" + 99 * "."), 99, episodes=1, replay=spie.Replay(np.full(99, RIGHT)), keep=path
    )
    np.testing.assert_array_equal(small.paths[0].bonuses, trace.paths[0].bonuses[:99])
