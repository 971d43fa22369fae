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
@pytest.mark.parametrize("D", [16, 48, 128])
def test_vector_code_on_float32_equals_numpy_to_its_rounding(D):
    from numba import njit

    from spie.engine.matrix import WAITING, add_scaled, copy, dot, norm_1, product, update_product

    @njit
    def run(x, y, A, u, p, D):
        sums = dot(x, 16, y, 16, D), norm_1(y, 16, D)
        copy(x, 16 + D, y, 16, D)
        add_scaled(x, 16 + D, 0.5, x, 16, D)
        product(y, 16 + D, A, 16, x, 16, u, 16, p, 16, D)
        update_product(y, 16 + 2 * D, A, 16, x, 16, u, 16, p, 16, D)
        return sums

    rng = np.random.default_rng(D)
    sizes = (16 + 2 * D, 16 + 3 * D, 16 + D * D, 16 + WAITING * D, 16 + WAITING * D)
    x, y, A, u, p = (rng.normal(size=n).astype(np.float32) for n in sizes)
    x0, y0, A0 = x[16 : 16 + D].astype(float), y[16 : 16 + D].astype(float), A[16:].reshape(D, D).astype(float)
    sums = run(x, y, A, u, p, D)
    unit = 2.0**-24
    assert abs(sums[0] - x0 @ y0) <= D * unit * np.abs(x0 * y0).sum()
    assert abs(sums[1] - np.abs(y0).sum()) <= D * unit * np.abs(y0).sum()
    np.testing.assert_allclose(x[16 + D :], y0 + 0.5 * x0, rtol=0, atol=2 * unit * 8)
    new_A = A0 + u[16:].reshape(WAITING, D).T.astype(float) @ p[16:].reshape(WAITING, D)
    size = np.abs(A0) + np.abs(u[16:]).reshape(WAITING, D).T.astype(float) @ np.abs(p[16:]).reshape(WAITING, D)
    assert (np.abs(A[16:].reshape(D, D) - new_A) <= 5 * unit * size).all()
    assert (np.abs(y[16 + D : 16 + 2 * D] - A0 @ x0) <= (D + 1) * unit * np.abs(A0) @ np.abs(x0)).all()
    assert (np.abs(y[16 + 2 * D :] - new_A @ x0) <= (D + 6) * unit * size @ np.abs(x0)).all()


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
