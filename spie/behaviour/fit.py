"""Fits of behavioural models to recorded paths, and what is done with them."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.comparison import Selection, select
from spie.behaviour.estimates import ModelFit, estimate
from spie.behaviour.model import ChoiceModel, find_model, shipped_models
from spie.behaviour.optimise import FINALISTS
from spie.behaviour.paths import Paths
from spie.behaviour.rows import Rows
from spie.behaviour.shelf import Shelf
from spie.errors import as_array, check_whole, is_among, is_row, told, unknown
from spie.notebook import progress_below
from spie.numbers import counted

METHODS = ("mle", "map", "hierarchical")
Progress = Callable[[str, float], None]  # what is being done, and the share of it that is


def loglikelihood(model: "str | ChoiceModel | Sarsa", paths: Paths, **parameters: Any) -> NDArray[np.float64]:
    """Log-likelihood of the paths of each subject under a model [subjects].

    parameters: settings of the model by name, a number or one per subject; the others have the model's own values.

    paths: `spie.Paths`. Raises ValueError for parameters that the model does not have.

    >>> maze = spie.grid("S..\\n.#.\\n..G", bumps=False)
    >>> paths = spie.Paths.from_states({"Ada": [[0, 1, 2, 4]]}, maze)
    >>> float(np.exp(spie.loglikelihood("random", paths)[0]).round(6))  # three choices, each of two moves
    0.125
    """
    _check_paths(paths)
    found = find_model(model)
    _refuse(found, paths)
    n = len(paths.subjects)
    names = found.setting_names
    columns = []
    for name, value in parameters.items():
        if name not in names:
            raise unknown(f"parameter of model {found.name}", name, [*found.names, *names])
        column = as_array(name, value, np.float64)
        if column.shape not in ((), (n,)):
            raise ValueError(f"{name} must be a number or one for each of the {n} subjects, not {column.shape}")
        columns.append(np.broadcast_to(column, n))
    given = [{name: float(column[i]) for name, column in zip(parameters, columns, strict=True)} for i in range(n)]
    return found.run([found.with_settings(one) for one in given], paths, np.arange(n))


@dataclass(frozen=True, eq=False)
class Fit:
    """All models, all subjects."""

    paths: Paths
    fits: Mapping[str, ModelFit]
    method: str
    starts: int
    seed: int
    notes: tuple[str, ...] = ()
    shelf: Shelf = dataclasses.field(default_factory=Shelf)
    progress: Progress | None = None

    def __getitem__(self, model: str) -> ModelFit:
        if model not in self.fits:
            raise unknown("fitted model", model, self.fits)
        return self.fits[model]

    @property
    def choices(self) -> NDArray[np.int64]:
        """Choices of each subject: moves that were not forced."""
        return np.array([self.paths.choices(subject) for subject in self.paths.subjects])

    def bic(self, model: str) -> NDArray[np.float64]:
        """Of each subject; n are its choices."""
        fit = self[model]
        return np.asarray(-2 * fit.log_p + fit.k * np.log(self.choices))

    def aic(self, model: str) -> NDArray[np.float64]:
        return np.asarray(-2 * self[model].log_p + 2 * self[model].k)

    def rows(self) -> Rows:
        """A row for each model and subject: log-likelihood against chance, criteria, estimates with 95 % intervals."""
        rows = []
        for name, fit in self.fits.items():
            low, high = fit.interval()
            values, n = fit.values(), self.choices
            for i, subject in enumerate(self.paths.subjects):
                chance = self.paths.chance(subject)
                row: dict[str, Any] = {
                    "model": name,
                    "subject": subject,
                    "choices": int(n[i]),
                    "log_likelihood": float(fit.log_p[i]),
                    "per_choice": float(fit.log_p[i] / n[i]),
                    "chance_per_choice": chance / n[i],
                    "bic": float(self.bic(name)[i]),
                    "aic": float(self.aic(name)[i]),
                    "starts_within_1": int((fit.by_start[i] > fit.by_start[i].max() - 1).sum()),
                    "spread_of_starts": float(np.ptp(np.sort(fit.by_start[i])[-FINALISTS:])),
                    "at_bound": " ".join(fit.at_bound(i)),
                }
                for j, parameter in enumerate(fit.model.names):
                    row |= {parameter: float(values[i, j])}
                    row |= {f"{parameter}_low": float(low[i, j]), f"{parameter}_high": float(high[i, j])}
                rows.append(row)
        return Rows(rows, notes=self.notes)

    def choice_rows(self) -> Rows:
        """A row for every move of every subject under every model: its log-probability, and whether it was forced."""
        rows = []
        for name, fit in self.fits.items():
            each = fit.model.log_p(fit.values(), self.paths, np.arange(len(self.paths.subjects)), each=True)
            for i, subject in enumerate(self.paths.subjects):
                at = 0
                for trial in self.paths.of(subject):
                    forced = self.paths.legal(trial) == 1
                    where = {"model": name, "subject": subject, "session": trial.session, "trial": trial.trial}
                    for step in range(len(trial.actions)):
                        log_p = {"log_p": float(each[i, at + step]), "forced": bool(forced[step])}
                        rows.append(where | {"step": step} | log_p)
                    at += len(trial.actions)
        return Rows(rows)

    def selection(self) -> Selection:
        """Random-effects selection on -BIC / 2."""
        return select(np.stack([-self.bic(name) / 2 for name in self.fits], axis=1), self.seed)

    def compare(self) -> Rows:
        """Models side by side, the best by summed BIC first."""
        chosen = self.selection()
        bic = np.array([self.bic(name) for name in self.fits])
        rows = []
        for i, (name, fit) in enumerate(self.fits.items()):
            bounded = sum(bool(fit.at_bound(j)) for j in range(len(self.paths.subjects)))
            rows.append(
                {
                    "model": name,
                    "parameters": fit.k,
                    "log_likelihood": float(fit.log_p.sum()),
                    "per_choice": float(fit.log_p.sum() / self.choices.sum()),
                    "bic": float(bic[i].sum()),
                    "difference": float(bic[i].sum() - bic.sum(axis=1).min()),
                    "aic": float(self.aic(name).sum()),
                    "best_for": int((bic.argmin(axis=0) == i).sum()),
                    "share": float(chosen.share[i]),
                    "exceedance": float(chosen.exceedance[i]),
                    "protected": float(chosen.protected[i]),
                    "at_bound": bounded,
                }
            )
        rows.sort(key=lambda row: row["bic"])  # type: ignore[arg-type, return-value]
        per_choice = sum(map(self.paths.chance, self.paths.subjects)) / self.choices.sum()
        notes = [
            "Parameters: free ones of each subject. Log-likelihood (natural logarithm), BIC and AIC: sums over "
            "subjects, each with its own estimates, in sample; lower BIC is better. Per choice: the log-likelihood "
            f"divided by the number of choices; a random walk over legal actions has {per_choice:.4f}. Forced moves "
            "are left out. Difference: from the lowest BIC.",
            "Best for: subjects with the lowest BIC. Share: of subjects who follow the model, as random-effects "
            "selection expects, which starts from one subject for each model. Exceedance: the probability that no "
            "model is more common; protected: the same, given that all may be equally common, which has a probability "
            f"(Bayesian omnibus risk) of {chosen.chance:.3g}. At bound: subjects with an estimate at a bound.",
        ]
        title = f"{counted(len(self.paths.subjects), 'subject')}, {counted(int(self.choices.sum()), 'choice')}"
        even = ("log_likelihood", "per_choice", "bic", "difference", "aic", "share", "exceedance", "protected")
        return Rows(rows, title, [*notes, *self.notes], even)

    def crossvalidate(self, by: Literal["session", "subject"] = "session", folds: int = 5) -> Rows:
        """Log-likelihood of choices that the parameters were not fitted to; see `spie.behaviour.heldout`."""
        from spie.behaviour.heldout import crossvalidate

        return crossvalidate(self, by, folds)

    def simulate(self, n: int = 5, models: Sequence[str] | None = None) -> Any:
        """Paths of the fitted models beside those of the subjects; see `spie.behaviour.predictive`."""
        from spie.behaviour.predictive import simulate

        return simulate(self, n, models)

    def recover(self, n: int = 20, model: str | None = None, starts: int | None = None) -> Any:
        """Known parameters, simulated on these mazes and lengths, fitted again; see `spie.behaviour.recovery`.

        starts: None for as many as the fit itself had, so that what is judged is the search that was used.
        """
        from spie.behaviour.recovery import recover

        return recover(self, n, model, self.starts if starts is None else starts)

    def confusion(self, n: int = 10, models: Sequence[str] | None = None, starts: int = 4, drawn: bool = False) -> Any:
        """Which model is found where each model is true; see `spie.behaviour.recovery`.

        drawn: true parameters are drawn evenly over the bounds, where they are not estimates of the subjects.
        """
        from spie.behaviour.recovery import confusion

        return confusion(self, n, models, starts, drawn)


def fit(
    paths: Paths,
    models: "Sequence[str | ChoiceModel | Sarsa] | str | ChoiceModel | Sarsa | None" = None,
    method: Literal["mle", "map", "hierarchical"] = "mle",
    *,
    starts: int = 20,
    seed: int = 0,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    folder: Any = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit models to the paths of each subject.

    models: names ("sr-r", "count+turn-back"), models or agents; None: all that come with spie and fit the data.
    method: "mle"; "map" with a wide normal prior between the bounds; "hierarchical", whose prior is fitted by EM.
    bounds: other bounds of parameters, by name. folder: where finished parts are kept, so that a fit can go on.

    paths: `spie.Paths`. starts: of the search, for each subject. seed: of those. progress: told what is done.
    Returns fits by model, with `compare()`. Raises ValueError for models that do not fit the data.

    >>> maze = spie.grid("S..\\n.#.\\n..G", bumps=False)
    >>> paths = spie.Paths.from_states({"Ada": [[0, 1, 2, 4, 7, 6], [0, 3, 5, 6, 7]]}, maze)
    >>> found = spie.fit(paths, ["random"])
    >>> float(np.exp(found["random"].log_p.sum()).round(9)) == round(0.5**9, 9)  # nine choices of two
    True
    """
    _check_paths(paths)
    if not is_among(method, METHODS):
        raise unknown("method", method, METHODS)
    check_whole("starts", starts)
    check_whole("seed", seed, 0)
    notes = list(paths.notes)
    if models is None:
        models, left_out = shipped_models(paths)
        notes += left_out
    several: Any = models if is_row(models) else [models]
    found = [find_model(model).bounded({} if bounds is None else bounds).identifiable(paths) for model in several]
    if not found:
        raise ValueError("no model is given; see spie.behaviour.models")
    for model in found:
        _refuse(model, paths)
    for subject in paths.subjects:
        if paths.choices(subject) == 0:
            raise ValueError(f"subject {told(subject)} had no choice: every move was forced; leave the subject out")
    notes += _gathered(found)
    if _paid_otherwise(paths):
        notes.append("What was paid is what the recording says; simulated subjects are paid what the maze pays.")
    shelf, fits = Shelf(folder), {}
    for model in found:
        what = f"fitting {model.name}"
        say = progress_below(what) if progress is None else _named(progress, what)
        fits[model.name] = estimate(model, paths, method=method, starts=starts, seed=seed, shelf=shelf, progress=say)
    return Fit(paths, fits, method, starts, seed, tuple(notes), shelf, progress)


def _check_paths(paths: Paths) -> None:
    if not isinstance(paths, Paths):
        raise ValueError(f"paths must be spie.Paths, such as Paths.from_csv makes, not {told(paths)}")


def _named(progress: Progress, what: str) -> Callable[[float], None]:
    return lambda share: progress(what, share)


def _gathered(models: Sequence[ChoiceModel]) -> list[str]:
    """What was fixed in the models, and why: a line for all of whom the same is true."""
    whose: dict[str, list[str]] = {}
    for model in models:
        for note in model.notes:
            whose.setdefault(note.removeprefix(f"{model.name}: "), []).append(model.name)
    return [f"{', '.join(names)}: {why}" for why, names in whose.items()]


def _paid_otherwise(paths: Paths) -> bool:
    """Whether a move of the recording paid something else than it does in its maze."""
    for trial in paths.trials:
        if trial.rewards is not None:
            maze, s = paths.mazes[trial.maze], trial.states[:-1]
            there = (maze.next[s] == trial.states[1:, None, None]) & (maze.prob[s] > 0)
            same = there & np.isclose(maze.reward[:, s], trial.rewards[:, None, None])  # in any phase
            if not same.any(axis=(0, 2, 3)).all():
                return True
    return False


def _refuse(model: ChoiceModel, paths: Paths) -> None:
    if why := model.refusal(paths):
        raise ValueError(f"model {model.name} cannot be used: {why}")
