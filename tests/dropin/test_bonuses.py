import numpy as np
import pytest
import torch

from spie.agents.dqn.bonuses import RND, Scale, sf, sf_pf
from spie.agents.dqn.networks import architecture

torch.set_num_threads(1)


def test_sf_is_one_over_the_length_of_psi():
    psi = torch.tensor([[[3.0, -4.0], [0.0, 0.5]]])
    torch.testing.assert_close(sf(psi, "l2"), torch.tensor([[1 / 5, 2.0]]))
    torch.testing.assert_close(sf(psi, "l1"), torch.tensor([[1 / 7, 2.0]]))


def test_sf_pf_is_the_difference_of_the_two():
    xi_next, psi = torch.tensor([[[1.0, -1.0]]]), torch.tensor([[[3.0, -5.0]]])
    assert sf_pf(xi_next, psi, "l1").tolist() == [[1 / 2 - 1 / 8]]


def test_the_bonus_of_a_zero_vector_is_large_but_finite():
    assert torch.isfinite(sf(torch.zeros(1, 1, 4), "l1")).all()


@pytest.mark.parametrize("shape", [(5,), (20, 20)])
def test_rnd_falls_on_repeated_inputs_only(shape):
    rng = np.random.default_rng(0)
    known, new = rng.random((2, 1, 16, *shape))
    known[..., shape[-1] // 2 :], new[..., : shape[-1] // 2] = 0, 0  # one is bright on the left, the other on the right
    rnd = RND(shape, architecture("small"), rate=1e-3)
    rnd.learn(np.concatenate([known, new], axis=1))  # both have been seen by the running mean
    before = rnd.compute(known), rnd.compute(new)
    for _ in range(60):
        rnd.learn(known)
    assert (rnd.compute(known) < before[0] / 4).all()
    assert rnd.compute(new).mean() > before[1].mean() / 2


def test_computing_rnd_learns_nothing_and_its_lanes_do_not_touch():
    rng = np.random.default_rng(0)
    s = rng.random((2, 8, 5))
    both, second = RND((5,), architecture("small"), (3, 4)), RND((5,), architecture("small"), (4,))
    assert np.array_equal(both.compute(s), both.compute(s))
    np.testing.assert_allclose(both.compute(s)[1:], second.compute(s[1:]), rtol=1e-5)
    for _ in range(5):
        both.learn(s)
        second.learn(s[1:])
    np.testing.assert_allclose(both.compute(s)[1:], second.compute(s[1:]), rtol=1e-4)


def test_a_saved_rnd_goes_on_as_if_nothing_had_happened():
    s = np.random.default_rng(0).random((1, 8, 5))
    rnd, other = RND((5,), architecture("small"), (1,)), RND((5,), architecture("small"), (2,))
    rnd.learn(s)
    other.load({name: tensor.clone() for name, tensor in rnd.state().items()})
    rnd.learn(s)
    other.learn(s)
    assert np.array_equal(rnd.compute(s), other.compute(s))


def test_scales_measure_a_bonus_by_its_past():
    bonus = np.array([[3.0, 5.0], [0.0, 2.0]])
    for kind, expected in {
        "none": bonus,
        "rms": bonus / np.sqrt([[17.0], [2.0]]),
        "standard": np.array([[-1.0, 1.0], [-1.0, 1.0]]) + 0.5,
    }.items():
        scale = Scale(kind, 2, offset=0.5)
        scale.observe(bonus[:, :1])
        scale.observe(bonus[:, 1:])
        np.testing.assert_allclose(scale(bonus), expected, rtol=1e-6)
