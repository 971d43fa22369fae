"""Would we find it if it were so? Known parameters and models, simulated on these mazes and lengths, and fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.estimates import estimate
from spie.behaviour.model import ChoiceModel
from spie.behaviour.paths import Paths
from spie.behaviour.reading import Trial
from spie.behaviour.rows import Rows

if TYPE_CHECKING:
    from spie.behaviour.fit import Fit

LEVEL = 0.99  # of chi-square: beyond it the truth lies too far below the top


def simulated(
    model: ChoiceModel, values: NDArray[np.float64], paths: Paths, rows: NDArray[np.int64], seed: int
) -> Paths:
    """Subjects that follow a model: values[i] on the trials of subject rows[i]."""
    walked = model.simulate(values, paths, rows, seed + np.arange(len(rows)))
    trials = []
    for i, (row, walks) in enumerate(zip(rows, walked, strict=True)):
        for trial, states in zip(paths.of(paths.subjects[row]), walks, strict=True):
            unknown = np.full(len(states) - 1, -1, np.int32)
            trials.append(Trial(str(i + 1), trial.session, trial.trial, trial.maze, states.astype(np.int32), unknown))
    return Paths(paths.mazes, tuple(trials), paths.maze_names, paths.goal, paths.start_matrix)


@dataclass(frozen=True, eq=False)
class Recovery:
    """True and estimated parameters of simulated subjects."""

    model: ChoiceModel
    truth: NDArray[np.float64]  # [subjects, k] as shares of the way between the bounds
    found: NDArray[np.float64]  # [subjects, k]
    log_p_truth: NDArray[np.float64]  # [subjects]
    log_p_found: NDArray[np.float64]  # [subjects]
    choices: int  # of a subject, on average

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Of truth and estimate, on the scale of the bounds [k]."""
        return np.array([np.corrcoef(self.truth[:, j], self.found[:, j])[0, 1] for j in range(self.truth.shape[1])])

    @property
    def within(self) -> float:
        """Share of subjects for whom twice the gain over the truth is within the 99 % point of chi-square."""
        from scipy.stats import chi2

        gain = 2 * (self.log_p_found - self.log_p_truth)
        return float((gain <= chi2.ppf(LEVEL, self.truth.shape[1])).mean())

    def rows(self) -> Rows:
        """A row for each parameter."""
        rows = []
        for j, parameter in enumerate(self.model.parameters):
            error = self.found[:, j] - self.truth[:, j]
            rows.append(
                {
                    "parameter": parameter.name,
                    "from": parameter.low,
                    "to": parameter.high,
                    "correlation": float(self.correlation[j]),
                    "bias": float(error.mean()),
                    "rms_error": float(np.sqrt((error**2).mean())),
                }
            )
        below = float((self.log_p_found - self.log_p_truth).min())
        notes = [
            "Correlation, bias and error on the scale of the bounds, whose width is 1.",
            f"The fit's log-likelihood less the truth's: at least {below:.4f}; {self.within:.0%} within chi-square.",
        ]
        return Rows(
            rows, f"{self.model.name}: {len(self.truth)} simulated subjects, {self.choices:,} choices each", notes
        )


def recover(fit: "Fit", n: int, model: str | None, starts: int) -> Recovery:
    """Draw parameters evenly over the bounds, on their scale; simulate; fit again."""
    name = model or next((name for name, one in fit.fits.items() if one.k), next(iter(fit.fits)))
    one = fit[name].model
    if not one.parameters:
        raise ValueError(f"model {name} has no free parameters: there is nothing to recover")
    if n < 3:
        raise ValueError(f"a recovery study needs at least 3 subjects, not {n}")
    rng = np.random.default_rng([fit.seed, 1])
    truth = rng.uniform(0, 1, (n, len(one.parameters)))
    rows = np.arange(n) % len(fit.paths.subjects)
    values = np.stack([parameter.value(truth[:, j]) for j, parameter in enumerate(one.parameters)], axis=1)
    made = simulated(one, values, fit.paths, rows, 1_000_000 + fit.seed)
    say = None if fit.progress is None else (lambda share: fit.progress(f"recovering {name}", share))  # type: ignore[misc]
    found = estimate(one, made, starts=starts, seed=fit.seed, shelf=fit.shelf, progress=say)
    at_truth = one.log_p(values, made, np.arange(n))
    return Recovery(one, truth, found.x, at_truth, found.log_p, int(np.mean([made.choices(s) for s in made.subjects])))


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each model is the best by BIC [true, found], where each is true."""

    models: tuple[str, ...]
    counts: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    def rows(self) -> Rows:
        """A row for each true model, a column for each that was found."""
        rows = [
            {"true": name} | dict(zip(self.models, map(float, row), strict=True))
            for name, row in zip(self.models, self.shares, strict=True)
        ]
        n = int(self.counts.sum(axis=1)[0])
        return Rows(rows, f"Share of {n} simulated subjects of each model for whom a model has the lowest BIC")


def confusion(fit: "Fit", n: int, models: Sequence[str] | None, starts: int) -> Confusion:
    """Simulate n subjects of each model with estimates of the subjects, fit all models to each, choose by BIC."""
    names = tuple(fit.fits) if models is None else tuple(models)
    if len(names) < 2:
        raise ValueError("a confusion matrix needs at least 2 models")
    rng = np.random.default_rng([fit.seed, 2])
    counts = np.zeros((len(names), len(names)), np.int64)
    for i, true in enumerate(names):
        rows = rng.integers(0, len(fit.paths.subjects), n)
        one = fit[true]
        made = simulated(one.model, one.values()[rows], fit.paths, rows, 2_000_000 + 1000 * i + fit.seed)
        size = np.log([made.choices(subject) for subject in made.subjects])
        bic = []
        for j, candidate in enumerate(names):
            if fit.progress is not None:
                fit.progress(f"telling {true} apart", (i * len(names) + j) / len(names) ** 2)
            found = estimate(fit[candidate].model, made, starts=starts, seed=fit.seed, shelf=fit.shelf)
            bic.append(-2 * found.log_p + found.k * size)
        counts[i] = np.bincount(np.array(bic).argmin(axis=0), minlength=len(names))
    return Confusion(names, counts)
