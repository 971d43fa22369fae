"""Cross-validation: the likelihood of choices that the parameters were not fitted to.

Whole sessions or whole subjects are held out, never single steps: neighbouring steps of one walk resemble each other,
so a step that is predicted from its neighbours has been seen already. What a model learns on the way it learns from the
whole recording, as the subject did; only the parameters are fitted to one part and judged on the other.

Where sessions are held out, parameters are fitted with the prior of the fit: the wide one of "map", or the distribution
over subjects of "hierarchical", which has seen all sessions. Where a subject is held out, it has the parameters that
make the choices of the others most likely.
"""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.estimates import ModelFit
from spie.behaviour.objective import Objective
from spie.behaviour.optimise import maximise
from spie.behaviour.paths import Paths
from spie.behaviour.rows import Rows
from spie.errors import unknown

if TYPE_CHECKING:
    from spie.behaviour.fit import Fit

WAYS = ("session", "subject")
STARTS, GENERATIONS, SPREAD = 2, 25, 0.2  # one of them from the estimate of the whole


def crossvalidate(fit: "Fit", by: str, folds: int) -> Rows:
    """A row for each model: log-likelihood of held-out choices, the best first."""
    if by not in WAYS:
        raise unknown("way to hold out", by, WAYS)
    paths, n = fit.paths, fit.choices
    if by == "session":
        for subject in paths.subjects:
            if len({trial.session for trial in paths.of(subject)}) < 2:
                raise ValueError(
                    f'subject {subject} has one session only: there is nothing to hold out; use by="subject" '
                    "(--hold-out subject), or name sessions in the data"
                )
        folds = min([folds, *(len({trial.session for trial in paths.of(s)}) for s in paths.subjects)])
        if folds < 2:
            raise ValueError(f"cross-validation needs at least 2 folds, not {folds}")
    elif len(paths.subjects) < 2:
        raise ValueError("there is one subject only: hold out sessions instead, by=\"session\"")  # fmt: skip
    rows, chance = [], np.array([paths.chance(subject) for subject in paths.subjects])
    held = {}
    for name, one in fit.fits.items():
        key = {"what": "heldout", "by": by, "folds": folds, "model": one.model.identity, "paths": paths.digest}
        key |= {"seed": fit.seed, "from": one.x.tolist()}
        key |= {} if fit.method == "mle" else {"method": fit.method}
        say = None if fit.progress is None else _named(fit, f"holding out a {by}: {name}")
        make = functools.partial(_by_session if by == "session" else _by_subject, fit, one, folds, say)
        held[name] = fit.shelf.kept(key, lambda make=make: {"log_p": make()})["log_p"]  # type: ignore[misc]
    best = max(held.values(), key=lambda log_p: log_p.sum())
    for name, log_p in held.items():
        rows.append(
            {
                "model": name,
                "parameters": fit[name].k,
                "held_out": float(log_p.sum()),
                "per_choice": float(log_p.sum() / n.sum()),
                "above_chance": float((log_p - chance).sum() / n.sum()),
                "behind_best": float((best - log_p).sum() / n.sum()),
                "standard_error": None if log_p is best or len(n) < 2 else error_of_ratio(best - log_p, n),
                "best_for": int(sum(log_p[i] >= max(h[i] for h in held.values()) for i in range(len(n)))),
            }
        )
    rows.sort(key=lambda row: -row["held_out"])  # type: ignore[operator]
    what = f"{folds} folds of whole sessions" if by == "session" else "one subject held out at a time"
    notes = [
        "Held out: sum of the log-likelihoods (natural logarithm) of all choices, each under parameters that were "
        "fitted to others; higher is better. Per choice: divided by the number of choices, forced moves left out. "
        "Above chance: that of a random walk over legal actions taken away. Behind best: what the best model has more "
        "per choice, and the standard error of this over subjects. Best for: subjects whose held-out choices the "
        "model predicts best.",
    ]
    even = ("held_out", "per_choice", "above_chance", "behind_best", "standard_error")
    return Rows(rows, f"Held-out log-likelihood, {what}", notes, even)


def error_of_ratio(d: NDArray[np.float64], n: NDArray[np.int64]) -> float:
    """Standard error of sum(d) / sum(n) over subjects, each with a difference d in n choices: to first order."""
    rest = d - d.sum() / n.sum() * n
    return float(np.sqrt((rest**2).sum() / (len(n) * (len(n) - 1))) / n.mean())


def _named(fit: "Fit", what: str) -> Any:
    assert fit.progress is not None
    progress = fit.progress
    return lambda share: progress(what, share)


def fold_of_steps(paths: Paths, subject: str, folds: int) -> NDArray[np.int64]:
    """The fold of each step of a subject: sessions are dealt out in turn."""
    sessions = list(dict.fromkeys(trial.session for trial in paths.of(subject)))
    parts = [np.full(len(trial.actions), sessions.index(trial.session) % folds) for trial in paths.of(subject)]
    return np.concatenate(parts)


def _by_session(fit: "Fit", one: ModelFit, folds: int, progress: Any) -> NDArray[np.float64]:
    """Held-out log-likelihood of each subject."""
    paths, n = fit.paths, len(fit.paths.subjects)
    fold = np.full((n, int(paths.walks.steps.max())), -1)
    for i, subject in enumerate(paths.subjects):
        steps = fold_of_steps(paths, subject, folds)
        fold[i, : len(steps)] = steps
    groups = [(i, f) for i in range(n) for f in range(folds)]
    trained = np.stack([(fold[i] != f) & (fold[i] >= 0) for i, f in groups])
    members = [np.array([i]) for i, _ in groups]
    objective = Objective(one.model, paths, members, counted=trained, prior=one.prior)
    first = np.repeat(one.x, folds, axis=0)
    found = maximise(
        objective, one.k, len(groups), starts=STARTS, seed=fit.seed, smooth=one.model.smooth, first=first,
        spread=SPREAD, generations=GENERATIONS, progress=progress,
    )  # fmt: skip
    tested = Objective(one.model, paths, members, counted=np.stack([fold[i] == f for i, f in groups]))
    return np.asarray(tested(found.x, np.arange(len(groups))).reshape(n, folds).sum(axis=1))


def _by_subject(fit: "Fit", one: ModelFit, folds: int, progress: Any) -> NDArray[np.float64]:
    """Log-likelihood of each subject under the one set of parameters that suits all others best."""
    n = len(fit.paths.subjects)
    members = [np.array([j for j in range(n) if j != i]) for i in range(n)]
    objective = Objective(one.model, fit.paths, members)
    first = np.stack([np.median(one.x[others], axis=0) for others in members])
    found = maximise(
        objective, one.k, n, starts=STARTS, seed=fit.seed, smooth=one.model.smooth, first=first,
        spread=SPREAD, generations=GENERATIONS, progress=progress,
    )  # fmt: skip
    return Objective(one.model, fit.paths, [np.array([i]) for i in range(n)])(found.x, np.arange(n))
