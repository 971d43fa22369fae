"""Vector code against NumPy, for lengths that fill its blocks and that do not."""

import numpy as np
import pytest

from spie.engine.lanes import aligned_zeros


@pytest.fixture(scope="module")
def compiled():
    from numba import njit

    from spie.engine.matrix import WAITING, add_scaled, copy, cosines, dot, norm_1, product, update_product

    @njit
    def run(x, y, A, u, p, D):
        """All operations once, each vector at place 8 of its array."""
        cosines(x, 8, D)
        sums = dot(x, 8, y, 8, D), norm_1(y, 8, D)
        copy(x, 8 + D, y, 8, D)
        add_scaled(x, 8 + D, 0.5, x, 8, D)
        product(y, 8 + D, A, 8, x, 8, u, 8, p, 8, D)
        update_product(y, 8 + 2 * D, A, 8, x, 8, u, 8, p, 8, D)
        return sums

    return run, WAITING


@pytest.mark.slow
@pytest.mark.parametrize("D", [8, 24, 32, 128])
def test_vector_code_equals_numpy(compiled, D):
    run, waiting = compiled
    rng = np.random.default_rng(D)
    x, y, A = rng.normal(size=8 + 2 * D), rng.normal(size=8 + 3 * D), rng.normal(size=8 + D * D)
    u, p = rng.normal(size=(2, 8 + waiting * D))
    turns, old_y, old_A = x[8 : 8 + D] * 10, y[8 : 8 + D].copy(), A[8:].reshape(D, D).copy()
    x[8 : 8 + D] = turns
    sums = run(x, y, A, u, p, D)
    cosines = np.cos(2 * np.pi * turns)
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(x[8 : 8 + D], cosines, rtol=0, atol=3e-14)  # 2 pi x itself is rounded: 30 * 60 eps
    np.testing.assert_allclose(sums, [cosines @ old_y, np.abs(old_y).sum()], **close)
    np.testing.assert_allclose(x[8 + D :], old_y + 0.5 * cosines, **close)
    np.testing.assert_allclose(y[8 + D : 8 + 2 * D], old_A @ cosines, **close)
    new_A = old_A + u[8:].reshape(waiting, D).T @ p[8:].reshape(waiting, D)
    np.testing.assert_allclose(A[8:].reshape(D, D), new_A, **close)
    np.testing.assert_allclose(y[8 + 2 * D :], new_A @ cosines, atol=1e-11)


@pytest.mark.slow
def test_cosines_are_exact_where_they_pad_features_and_good_everywhere(compiled):
    run, waiting = compiled
    x, D = np.zeros(8 + 16), 8
    x[8:16] = [0.25, 0.75, 0.0, 0.5, 1.0, -0.25, 0.125, 1000.25]
    run(x, np.zeros(8 + 3 * D), np.zeros(8 + D * D), np.zeros(8 + waiting * D), np.zeros(8 + waiting * D), D)
    np.testing.assert_array_equal(x[[8, 9, 13, 15]], 0)
    np.testing.assert_allclose(x[[10, 11, 12, 14]], [1, -1, 1, np.sqrt(0.5)], rtol=0, atol=3e-16)


def test_aligned_zeros_begin_on_a_cache_line():
    assert all(aligned_zeros(n).ctypes.data % 64 == 0 for n in (8, 128, 1000))
