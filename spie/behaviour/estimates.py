"""Estimates of a model's parameters for each subject."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.model import ChoiceModel
from spie.behaviour.objective import Objective, Prior, logit
from spie.behaviour.optimise import EDGE, Optimum, climb, maximise
from spie.behaviour.paths import Paths
from spie.behaviour.shelf import Shelf

WIDE = 1.5  # standard deviation of the prior of "map", which is nearly flat between the bounds


@dataclass(frozen=True, eq=False)
class ModelFit:
    """Estimates of one model for each subject."""

    model: ChoiceModel
    x: NDArray[np.float64]  # [subjects, k] estimates as shares of the way between the bounds
    log_p: NDArray[np.float64]  # [subjects] log-likelihood there, without any prior
    by_start: NDArray[np.float64]  # [subjects, starts] what each start reached
    deviation: NDArray[np.float64]  # [subjects, k] standard error of x; NaN where there is none
    prior: Prior | None = None  # what was added to the log-likelihood: of "hierarchical" the distribution over subjects

    @property
    def k(self) -> int:
        return len(self.model.parameters)

    def values(self, x: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Estimates [subjects, k], or the values at other shares."""
        x = self.x if x is None else x
        columns = [parameter.value(x[:, i]) for i, parameter in enumerate(self.model.parameters)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(x), 0))

    def interval(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """95 % of the normal approximation, on the parameter's scale and within its bounds; NaN where there is none."""
        low, high = (np.clip(self.x + sign * 1.96 * self.deviation, 0, 1) for sign in (-1, 1))
        return self.values(low), self.values(high)

    def at_bound(self, i: int) -> list[str]:
        """The parameters of subject i whose estimate lies at a bound: there the data ask for more than it allows."""
        return [name for name, x in zip(self.model.names, self.x[i], strict=True) if not EDGE < x < 1 - EDGE]


def estimate(
    model: ChoiceModel,
    paths: Paths,
    *,
    method: str = "mle",
    starts: int = 20,
    seed: int = 0,
    shelf: Shelf | None = None,
    progress: Callable[[float], None] | None = None,
) -> ModelFit:
    """Fit one model to each subject; what is on the shelf is not fitted again."""
    key = {
        "what": "fit",
        "model": model.identity,
        "paths": paths.digest,
        "method": method,
        "starts": starts,
        "seed": seed,
    }
    arrays = (shelf or Shelf()).kept(key, lambda: _fit_one(model, paths, method, starts, seed, progress))
    return _unpack(model, arrays, method)


def _fit_one(
    model: ChoiceModel, paths: Paths, method: str, starts: int, seed: int, progress: Callable[[float], None] | None
) -> dict[str, NDArray[np.float64]]:
    """The estimates of a model, as arrays."""
    n, k = len(paths.subjects), len(model.parameters)
    members = [np.array([i]) for i in range(n)]
    prior = None if method == "mle" else wide_prior(k)
    objective = Objective(model, paths, members, prior=prior)
    found = maximise(objective, k, n, starts=starts, seed=seed, smooth=model.smooth, progress=progress)
    if method == "hierarchical" and k:
        found, prior = _expect_and_maximise(objective, found)
    plain = Objective(model, paths, members)
    arrays = {
        "x": found.x,
        "log_p": plain(found.x, np.arange(n)),
        "by_start": found.by_start,
        "deviation": deviations(found),
    }
    if method == "hierarchical" and k:
        assert prior is not None
        arrays |= {"mean": prior.mean, "sd": prior.sd}
    return arrays


def wide_prior(k: int) -> Prior:
    """The prior of "map", with which EM starts."""
    return Prior(np.zeros(k), np.full(k, WIDE))


def deviations(found: Optimum) -> NDArray[np.float64]:
    """Standard errors from the curvature at the top; NaN at a bound and where there is no top."""
    groups, k = found.x.shape
    out = np.full((groups, k), np.nan)
    for g in range(groups):
        inside = (found.x[g] > EDGE) & (found.x[g] < 1 - EDGE)
        curvature = -found.hessian[g][np.ix_(inside, inside)]
        if inside.any() and np.isfinite(curvature).all() and np.linalg.eigvalsh(curvature).min() > 0:
            out[g, inside] = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return out


def _expect_and_maximise(objective: Objective, found: Optimum, rounds: int = 30) -> tuple[Optimum, Prior]:
    """EM with a Laplace approximation: the prior is the distribution over subjects."""
    assert objective.prior is not None
    prior = objective.prior
    for _ in range(rounds):
        asked = dataclasses.replace(objective, prior=prior)
        n = len(found.x)
        x, value, hessian = climb(asked, found.x, asked(found.x, np.arange(n)), rounds=4)
        found = dataclasses.replace(found, x=x, value=value, hessian=hessian)
        u = logit(x)
        slope = x * (1 - x)  # dx / du
        sd = np.nan_to_num(deviations(found) / np.maximum(slope, 1e-9), nan=0.0)
        mean = u.mean(axis=0)
        spread = np.sqrt(np.maximum((u**2 + np.minimum(sd, 10) ** 2).mean(axis=0) - mean**2, 0.01**2))
        change = max(np.abs(mean - prior.mean).max(), np.abs(spread - prior.sd).max())
        prior = Prior(mean, spread)
        if change < 1e-3:
            break
    return found, prior


def _unpack(model: ChoiceModel, arrays: Mapping[str, NDArray[np.float64]], method: str) -> ModelFit:
    prior = None if method == "mle" else wide_prior(len(model.parameters))
    if "mean" in arrays:
        prior = Prior(arrays["mean"], arrays["sd"])
    return ModelFit(model, arrays["x"], arrays["log_p"], arrays["by_start"], arrays["deviation"], prior)
