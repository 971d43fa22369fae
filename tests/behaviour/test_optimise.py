"""Many functions at once: the top is found, on the bound where it lies there, and the curvature is right."""

import numpy as np
import pytest

from spie.behaviour.optimise import climb, derivatives, maximise

TOPS = np.array([[0.2, 0.7], [0.9, 0.4], [0.5, 0.5]])
CURVES = np.array([[[40.0, 6], [6, 20]], [[300, 0], [0, 5]], [[80, -10], [-10, 60]]])


def bowls(x, group):
    d = x - TOPS[group]
    return -0.5 * np.einsum("ni,nij,nj->n", d, CURVES[group], d)


def test_the_tops_of_several_functions_are_found_at_once():
    found = maximise(bowls, 2, 3, starts=4)
    np.testing.assert_allclose(found.x, TOPS, atol=1e-6)
    np.testing.assert_allclose(found.hessian, -CURVES, rtol=1e-4, atol=1e-4)
    assert found.by_start.shape == (3, 4)


def test_a_top_outside_of_the_cube_is_found_on_its_side():
    def slope(x, group):
        return 5 * x[:, 0] - (x[:, 1] - 0.3) ** 2

    found = maximise(slope, 2, 1, starts=3)
    np.testing.assert_allclose(found.x, [[1, 0.3]], atol=1e-3)


def test_a_staircase_is_climbed_without_derivatives():
    def stairs(x, group):
        return -np.floor(20 * np.abs(x - 0.6).sum(axis=1))

    found = maximise(stairs, 2, 1, starts=5, smooth=False)
    assert found.value[0] == 0
    assert np.isnan(found.hessian).all()


def test_of_two_tops_the_higher_one_is_found():
    def two(x, group):
        return np.maximum(10 - 400 * (x[:, 0] - 0.1) ** 2, 12 - 400 * (x[:, 0] - 0.85) ** 2)

    assert maximise(two, 1, 1, starts=8).x[0, 0] == pytest.approx(0.85, abs=1e-4)


def test_the_way_is_never_downwards():
    start = np.array([[0.01, 0.99], [0.1, 0.1], [0.99, 0.01]])
    x, value, _ = climb(bowls, start, bowls(start, np.arange(3)), rounds=1)
    assert (value >= bowls(start, np.arange(3))).all()
    np.testing.assert_allclose(value, bowls(x, np.arange(3)))


def test_derivatives_are_those_of_the_function():
    x = np.array([[0.3, 0.3]])
    gradient, hessian = derivatives(bowls, x, np.array([0]))
    np.testing.assert_allclose(gradient[0], -CURVES[0] @ (x[0] - TOPS[0]), rtol=1e-6)
    np.testing.assert_allclose(hessian[0], -CURVES[0], rtol=1e-4)


def test_nothing_to_fit_is_nothing_to_search():
    found = maximise(lambda x, group: np.full(len(x), -3.0), 0, 2)
    assert found.value.tolist() == [-3, -3]
