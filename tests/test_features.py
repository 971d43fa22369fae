"""Random Fourier features approach a Gaussian kernel; SF and PF on one-hot features are the SR and PR."""

import gymnasium as gym
import numpy as np
import pytest

import spie
from spie.features import convolution_features, fourier_features, td_pf, td_sf

SQUARE = gym.spaces.Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64)


def test_features_have_length_one_and_depend_on_their_seed_alone():
    phi = fourier_features(SQUARE, 128, seed=3)
    x = np.random.default_rng(0).uniform(SQUARE.low, SQUARE.high, (5, 4, 2))
    assert phi(x).shape == (5, 4, 128)
    np.testing.assert_allclose(np.linalg.norm(phi(x), axis=-1), 1, atol=1e-14)
    np.testing.assert_array_equal(phi(x), fourier_features(SQUARE, 128, seed=3)(x))
    assert np.abs(phi(x) - fourier_features(SQUARE, 128, seed=4)(x)).max() > 0.1


def test_inner_products_approach_a_gaussian_kernel_of_the_scaled_distance():
    d, length = 20_000, 0.3
    phi = fourier_features(SQUARE, d, length)
    x, y = [-0.3, 0.0], [-0.12, 0.014]  # 0.1 apart in both directions of the unit box
    kernel = np.exp(-(0.1**2 + 0.1**2) / (2 * length**2))
    assert abs(phi(x) @ phi(y) - kernel) < 4 / np.sqrt(d)  # a product of cosines has a standard deviation below 1


def test_the_box_is_scaled_to_the_unit_box():
    ours, unit = fourier_features(SQUARE), fourier_features(gym.spaces.Box(0.0, 1.0, (2,), np.float64))
    np.testing.assert_allclose(ours([-0.3, 0.0]), unit([0.5, 0.5]), atol=1e-14)


def walk(mdp, steps):
    """Transitions of the uniform random walk: (s, s')."""
    rng = np.random.default_rng(0)
    s = int(mdp.start.argmax())
    P = mdp.transition()
    for _ in range(steps):
        s_next = int(rng.choice(mdp.n_states, p=P[s]))
        yield s, s_next
        s = s_next


def test_on_one_hot_features_the_td_errors_are_those_of_tables():
    mdp = spie.riverswim()
    one, eta, gamma = np.eye(mdp.n_states), 0.3, 0.9
    M, N = np.zeros((2, mdp.n_states, mdp.n_states))
    Psi, Xi = np.zeros((1, mdp.n_states, mdp.n_states)), np.zeros((mdp.n_states, mdp.n_states))
    for s, s_next in walk(mdp, 200):
        discount = float(s_next != 3)
        M[s] += eta * spie.td_sr(M, s, s_next, gamma, discount)
        N[:, s_next] += eta * spie.td_pr(N, s, s_next, gamma)
        Psi[0] += eta * np.outer(td_sf(Psi, one[s], 0, one[s_next], 0, gamma, discount), one[s])
        Xi += eta * np.outer(td_pf(Xi, one[s], one[s_next], gamma), one[s_next])
    np.testing.assert_allclose(Psi[0].T, M, atol=1e-12)  # column s of Psi is psi(s), which is row s of M
    np.testing.assert_allclose(Xi, N, atol=1e-12)
    assert M.max() > 1.5
    assert N.max() > 1.5


def test_psi_of_an_action_looks_ahead_through_the_action_taken_next():
    rng = np.random.default_rng(1)
    Psi, phi, phi_next = rng.normal(size=(3, 2, 2)), np.array([0.6, 0.8]), np.array([1.0, 0.0])
    expected = phi + 0.5 * Psi[2][:, 0] - (0.6 * Psi[1][:, 0] + 0.8 * Psi[1][:, 1])
    np.testing.assert_allclose(td_sf(Psi, phi, 1, phi_next, 2, gamma=0.5), expected, atol=1e-14)
    at_the_end = phi - (0.6 * Psi[1][:, 0] + 0.8 * Psi[1][:, 1])
    np.testing.assert_allclose(td_sf(Psi, phi, 1, phi_next, 2, gamma=0.5, discount=0.0), at_the_end, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((gym.spaces.Discrete(5),), "Box space, not Discrete; states that can be counted need no features"),
        ((gym.spaces.Dict(),), "Box space, not Dict"),
        ((gym.spaces.Box(-np.inf, np.inf, (2,)),), r"number 0 of the observation lies in \[-inf, inf\].*give low="),
        ((gym.make("CartPole-v1").observation_space,), "number 1 of the observation.*without bounds"),
        ((SQUARE, 0), "dimension must be a whole number of at least 1 and at most 1,000,000, not 0"),
        ((SQUARE, 2.5), "dimension must be a whole number of at least 1 and at most 1,000,000, not 2.5"),
        ((SQUARE, 8, 0.0), r"length_scale must lie in \[1e-100, inf\), not 0.0"),
        ((SQUARE, 8, -1.0), r"length_scale must lie in \[1e-100, inf\), not -1.0"),
        ((SQUARE, 8, float("nan")), r"length_scale must lie in \[1e-100, inf\), not nan"),
        ((SQUARE, 8, 0.2, 0, [0.0, 0.1], [1.0, 0.1]), r"low 0.1 is not below high 0.1 \(number 1\)"),
    ],
)
def test_bad_input_is_answered_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        fourier_features(*arguments)
    assert "\n" not in str(error.value)


def test_a_space_without_bounds_takes_those_that_are_given():
    space = gym.make("CartPole-v1").observation_space
    phi = fourier_features(space, 16, low=[-4.8, -3, -0.4, -3], high=[4.8, 3, 0.4, 3])
    np.testing.assert_allclose(np.linalg.norm(phi(space.sample())), 1, atol=1e-14)


def test_observations_that_are_not_finite_or_of_another_size_are_refused():
    phi = fourier_features(SQUARE, 8)
    with pytest.raises(ValueError, match=r"observation \[ nan 0.01\] is not finite"):
        phi([[0.0, 0.0], [np.nan, 0.01]])
    with pytest.raises(ValueError, match=r"have \[3\] numbers, not \[..., 2\]"):
        phi([0.0, 0.0, 0.0])


def test_features_of_an_image_have_length_1_and_tell_images_apart():
    images = np.zeros((4, 12, 16, 3), np.uint8)  # dark, grey, and a dot in two places
    images[1] = 100
    images[2, 3, 4] = images[3, 8, 11] = 255
    last = convolution_features(gym.spaces.Box(0, 255, (12, 16, 3), np.uint8), dimension=32)
    phi = last(images)
    np.testing.assert_allclose(np.linalg.norm(phi, axis=1), 1)
    np.testing.assert_allclose(phi[0], phi[1], atol=1e-3)  # filters answer to edges, not to brightness
    assert phi[2] @ phi[3] < 0.9
    np.testing.assert_allclose(last(images[2]), phi[2], atol=1e-5)  # alone as in a batch
    first = convolution_features(gym.spaces.Box(0, 255, (3, 12, 16), np.uint8), dimension=32)
    np.testing.assert_allclose(first(np.moveaxis(images, -1, 1)), phi, atol=1e-5)
    grey = convolution_features(gym.spaces.Box(0, 255, (12, 16), np.uint8), dimension=32)
    assert grey(images[..., 0]).shape == (4, 32)


def test_features_of_an_image_need_an_image_with_bounds():
    with pytest.raises(ValueError, match="need a Box space with two or three axes"):
        convolution_features(gym.spaces.Box(0, 1, (4,)))
    with pytest.raises(ValueError, match="give a space with bounds"):
        convolution_features(gym.spaces.Box(-np.inf, np.inf, (8, 8, 1)))
    with pytest.raises(ValueError, match="pixels that are not finite"):
        convolution_features(gym.spaces.Box(0, 1, (8, 8, 1)))(np.full((8, 8, 1), np.nan))
