"""What is made as large as possible: log-likelihoods of models as functions of their parameters, many at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.model import ChoiceModel
from spie.behaviour.paths import Paths

LANES = 256  # evaluated at once where every step is kept


@dataclass(frozen=True, eq=False)
class Prior:
    """A normal prior of each group on u = log(x / (1 - x)), x the share of the way between the bounds."""

    mean: NDArray[np.float64]  # [k]
    sd: NDArray[np.float64]  # [k]

    def log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        z = (logit(x) - self.mean) / self.sd
        return np.asarray((-0.5 * z**2 - np.log(self.sd) - 0.5 * np.log(2 * np.pi)).sum(axis=1))


def logit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    x = np.clip(x, 1e-5, 1 - 1e-5)
    return np.asarray(np.log(x / (1 - x)))


def expit(u: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-u)))


@dataclass(frozen=True, eq=False)
class Objective:
    """Log-likelihood of a model for groups of subjects, as a function of shares between bounds.

    members: the subjects of each group. counted: which steps of a group's one subject count [groups, most steps]; None:
    all. prior: added.
    """

    model: ChoiceModel
    paths: Paths
    members: Sequence[NDArray[np.int64]]
    counted: NDArray[np.bool_] | None = None
    prior: Prior | None = None

    def values(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the parameters at these shares [n, k]."""
        columns = [parameter.value(x[:, i]) for i, parameter in enumerate(self.model.parameters)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(x), 0))

    def __call__(self, x: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
        values = self.values(x)
        lane = np.repeat(np.arange(len(x)), [len(self.members[g]) for g in group])
        rows = np.concatenate([self.members[g] for g in group])
        if self.counted is None:
            log_p = self.model.log_p(values[lane], self.paths, rows)
        else:
            log_p = np.concatenate([self._counted(values, rows, group, i) for i in range(0, len(rows), LANES)])
        total = np.zeros(len(x))
        np.add.at(total, lane, log_p)
        return total if self.prior is None else total + self.prior.log_density(x)

    def _counted(
        self, values: NDArray[np.float64], rows: NDArray[np.int64], group: NDArray[np.int64], i: int
    ) -> NDArray[np.float64]:
        assert self.counted is not None
        part = slice(i, i + LANES)
        each = self.model.log_p(values[part], self.paths, rows[part], each=True)
        return np.asarray(np.where(self.counted[group[part]], each, 0.0).sum(axis=1))
