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
STEP = 0.004  # of differences, as a share of the bounds
SPREAD = 1 / 12  # variance of a parameter drawn evenly over its bounds


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
    information: NDArray[np.float64]  # [subjects, k, k] Fisher's, at the truth

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Of truth and estimate, on the scale of the bounds [k]."""
        return np.array([np.corrcoef(self.truth[:, j], self.found[:, j])[0, 1] for j in range(self.truth.shape[1])])

    @property
    def expected(self) -> NDArray[np.float64]:
        """The correlation to expect from what the choices say [k], whatever searches for the estimates.

        A parameter that is drawn with variance v and then seen through choices with Fisher information I keeps
        a variance of (I + 1 / v)^-1 (exact for normal distributions); r^2 is the share of v that is gone. I is local:
        where choices are all but certain it is nearly 0, though they still say that a weight is large.
        """
        k = self.truth.shape[1]
        left = np.linalg.inv(self.information + np.eye(k) / SPREAD)
        return np.asarray(np.sqrt(1 - np.diagonal(left, axis1=1, axis2=2).mean(axis=0) / SPREAD))

    @property
    def best_determined(self) -> tuple[NDArray[np.float64], float]:
        """The combination of parameters [k] that the choices say most about, and its correlation with the truth.

        On the scale of the bounds; of logarithmic parameters a sum is a product.
        """
        trace = np.trace(self.information, axis1=1, axis2=2)[:, None, None]
        mean = (self.information / np.maximum(trace, 1e-300)).mean(axis=0)  # every subject counts alike
        axis = np.linalg.eigh(mean)[1][:, -1]
        axis = axis * np.sign(axis[np.abs(axis).argmax()])
        return axis, float(np.corrcoef(self.truth @ axis, self.found @ axis)[0, 1])

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
                    "expected": float(self.expected[j]),
                    "bias": float(error.mean()),
                    "rms_error": float(np.sqrt((error**2).mean())),
                }
            )
        gain = self.log_p_found - self.log_p_truth
        missed = int((gain < -1e-6).sum())
        axis, correlation = self.best_determined
        sum_ = " ".join(f"{part:+.2f} {name}" for part, name in zip(axis, self.model.names, strict=True))
        notes = [
            "Correlation, bias and error on the scale of the bounds, whose width is 1.",
            "expected: the correlation that the Fisher information of these choices lets one expect.",
            f"Best determined, on that scale, is {sum_}: correlation {correlation:.2f}.",
            f"Log-likelihood of the fit less that of the truth: at least {gain.min():.4f}; "
            f"{self.within:.0%} within chi-square.",
        ]
        if missed:
            notes.append(f"The search missed the top in {missed} of {len(gain)} subjects: give it more starts.")
        return Rows(
            rows,
            f"{self.model.name}: {len(self.truth)} simulated subjects, {self.choices:,} choices each",
            notes,
            even=("correlation", "expected", "bias", "rms_error"),
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
    choices = int(np.mean([made.choices(subject) for subject in made.subjects]))
    return Recovery(one, truth, found.x, at_truth, found.log_p, choices, information(one, truth, made))


def information(model: ChoiceModel, x: NDArray[np.float64], paths: Paths) -> NDArray[np.float64]:
    """Fisher information of each subject's choices about x [subjects, k], shares of the way between the bounds.

    The sum over choices of the outer product of the derivative of log p: [subjects, k, k].
    """
    n, k = x.shape
    x, rows, slopes = np.clip(x, STEP, 1 - STEP), np.arange(n), []
    for j in range(k):
        sides = []
        for sign in (1, -1):
            there = x + sign * STEP * np.eye(k)[j]
            values = np.stack([one.value(there[:, i]) for i, one in enumerate(model.parameters)], axis=1)
            sides.append(model.log_p(values, paths, rows, each=True))
        slopes.append((sides[0] - sides[1]) / (2 * STEP))
    slope = np.stack(slopes, axis=2)
    return np.asarray(np.einsum("sti,stj->sij", slope, slope))


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


def confusion(fit: "Fit", n: int, models: Sequence[str] | None, starts: int, drawn: bool) -> Confusion:
    """Simulate n subjects of each model, fit all models to each, choose by BIC.

    drawn: their parameters are drawn evenly over the bounds; else they are estimates of the subjects.
    """
    names = tuple(fit.fits) if models is None else tuple(models)
    if len(names) < 2:
        raise ValueError("a confusion matrix needs at least 2 models")
    rng = np.random.default_rng([fit.seed, 2])
    counts = np.zeros((len(names), len(names)), np.int64)
    for i, true in enumerate(names):
        rows = rng.integers(0, len(fit.paths.subjects), n)
        one = fit[true]
        values = one.values(rng.uniform(0, 1, (n, one.k))) if drawn else one.values()[rows]
        made = simulated(one.model, values, fit.paths, rows, 2_000_000 + 1000 * i + fit.seed)
        size = np.log([max(1, made.choices(subject)) for subject in made.subjects])  # one may meet the goal at once
        bic = []
        for j, candidate in enumerate(names):
            if fit.progress is not None:
                fit.progress(f"telling {true} apart", (i * len(names) + j) / len(names) ** 2)
            found = estimate(fit[candidate].model, made, starts=starts, seed=fit.seed, shelf=fit.shelf)
            bic.append(-2 * found.log_p + found.k * size)
        counts[i] = np.bincount(np.array(bic).argmin(axis=0), minlength=len(names))
    return Confusion(names, counts)
