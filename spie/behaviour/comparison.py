"""Which model do subjects follow? Random-effects selection: each subject may follow another one.

Stephan et al. (2009) estimate the shares of models among subjects from the log evidence of each; Rigoux et al. (2014)
weigh the exceedance probability by the chance that all models are equally common (the protected one).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DRAWS = 100_000  # of model shares, for exceedance probabilities: a standard error below .002


class Selection(NamedTuple):
    """What random-effects selection says of each model [models]."""

    share: NDArray[np.float64]  # expected share of subjects
    exceedance: NDArray[np.float64]  # chance that it is the most common
    protected: NDArray[np.float64]  # the same, given that it may all be chance
    chance: float  # that all models are equally common (Bayesian omnibus risk)
    responsible: NDArray[np.float64]  # [subjects, models] which model a subject follows


def select(evidence: NDArray[np.float64], seed: int = 0) -> Selection:
    """Random-effects selection from the log evidence of each model for each subject [subjects, models]."""
    from scipy.special import digamma, gammaln, logsumexp

    models = evidence.shape[1]
    alpha0 = np.ones(models)
    alpha = alpha0.copy()
    for _ in range(1000):
        log_u = evidence + digamma(alpha) - digamma(alpha.sum())
        responsible = np.exp(log_u - logsumexp(log_u, axis=1, keepdims=True))
        renewed = alpha0 + responsible.sum(axis=0)
        change, alpha = np.abs(renewed - alpha).max(), renewed
        if change < 1e-8:
            break
    draws = np.random.default_rng(seed).dirichlet(alpha, DRAWS)
    exceedance = np.bincount(draws.argmax(axis=1), minlength=models) / DRAWS

    # Free energy of "shares differ" against the evidence of "all alike"
    expected_log = digamma(alpha) - digamma(alpha.sum())
    safe = np.maximum(responsible, 1e-300)
    free_energy = (
        (responsible * (evidence + expected_log - np.log(safe))).sum()
        + gammaln(alpha0.sum()) - gammaln(alpha0).sum() + ((alpha0 - 1) * expected_log).sum()
        - gammaln(alpha.sum()) + gammaln(alpha).sum() - ((alpha - 1) * expected_log).sum()
    )  # fmt: skip
    all_alike = (logsumexp(evidence, axis=1) - np.log(models)).sum()
    chance = float(1 / (1 + np.exp(np.clip(free_energy - all_alike, -700, 700))))
    protected = (1 - chance) * exceedance + chance / models
    return Selection(alpha / alpha.sum(), exceedance, protected, chance, responsible)
