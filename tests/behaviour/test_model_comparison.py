"""Random-effects selection, against cases whose answer is known."""

import numpy as np
import pytest

from spie.behaviour.comparison import select


def test_without_evidence_all_models_are_alike():
    found = select(np.zeros((12, 3)))
    np.testing.assert_allclose(found.share, 1 / 3)
    np.testing.assert_allclose(found.exceedance, 1 / 3, atol=0.01)
    assert found.chance > 0.5
    np.testing.assert_allclose(found.protected, 1 / 3, atol=0.01)


def test_strong_evidence_in_every_subject_leaves_no_doubt():
    evidence = np.zeros((20, 2))
    evidence[:, 1] = 50
    found = select(evidence)
    assert found.share[1] == pytest.approx(21 / 22)  # a Dirichlet of 1 + 20 and 1 + 0
    assert found.protected[1] > 0.99
    assert found.chance < 0.01


def test_one_outlier_decides_summed_evidence_but_not_the_selection():
    evidence = np.zeros((10, 2))
    evidence[:9, 0] = 5
    evidence[9, 1] = 500
    assert evidence[:, 1].sum() > evidence[:, 0].sum()
    found = select(evidence)
    assert found.share[0] > 0.7
    assert found.protected[0] > found.protected[1]


def test_a_constant_of_a_subject_changes_nothing():
    rng = np.random.default_rng(1)
    evidence = rng.normal(0, 3, (9, 4))
    one, other = select(evidence), select(evidence + rng.normal(0, 100, (9, 1)))
    np.testing.assert_allclose(one.share, other.share, atol=1e-6)
    assert one.chance == pytest.approx(other.chance, abs=1e-6)
    np.testing.assert_allclose(one.responsible.sum(axis=1), 1)
