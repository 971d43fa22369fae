"""Posterior predictive checks: do subjects that follow the fitted model walk as the real ones did?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.paths import Paths
from spie.behaviour.recovery import simulated
from spie.behaviour.rows import Rows

if TYPE_CHECKING:
    from spie.behaviour.fit import Fit

POINTS = 40  # of the curve of new places
SUBJECTS = "subjects"  # the row of the real ones


@dataclass(frozen=True, eq=False)
class Predictive:
    """Measures of the subjects and of simulated ones, side by side; of these, means over those of one subject."""

    steps: NDArray[np.int64]  # [points]
    places: dict[str, NDArray[np.float64]]  # by model [subjects, points] places seen after that many steps
    measures: dict[str, dict[str, NDArray[np.float64]]]  # by model and measure [subjects]

    def rows(self) -> Rows:
        """Means over subjects, the real ones first."""
        rows = [
            {"who": who} | {name: float(np.nanmean(values)) for name, values in found.items()}
            for who, found in self.measures.items()
        ]
        notes = [
            "Means over subjects; simulated ones have their estimates, starts, mazes and numbers of steps. Places: how "
            "many were seen. Revisit: median number of steps until a place is seen again. Back, on, aside: shares of "
            "choices to go back to the place before, straight on, and neither.",
        ]
        even = ("places", "revisit", "back", "on", "aside")
        return Rows(rows, "The subjects and simulated ones", notes, even)


def simulate(fit: "Fit", n: int, models: Sequence[str] | None) -> Predictive:
    """n simulated subjects for each real one, with its estimates, its starts, its mazes and its lengths."""
    paths = fit.paths
    steps = np.unique(np.geomspace(1, paths.walks.steps.min(), POINTS).astype(np.int64))
    places = {SUBJECTS: new_places(paths, steps)}
    measures = {SUBJECTS: walk_measures(paths)}
    rows = np.repeat(np.arange(len(paths.subjects)), n)
    for i, name in enumerate(models or fit.fits):
        one = fit[name]
        if fit.progress is not None:
            fit.progress(f"simulating {name}", i / len(fit.fits))
        made = simulated(one.model, one.values()[rows], paths, rows, 3_000_000 + fit.seed)
        places[name] = new_places(made, steps).reshape(-1, n, len(steps)).mean(axis=1)
        measures[name] = {what: _means(found.reshape(-1, n)) for what, found in walk_measures(made).items()}
    return Predictive(steps, places, measures)


def _means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the numbers of each row, NaN where there is none."""
    counts = (~np.isnan(values)).sum(axis=1)
    return np.asarray(np.where(counts > 0, np.nansum(values, axis=1) / np.maximum(counts, 1), np.nan))


def new_places(paths: Paths, steps: NDArray[np.int64]) -> NDArray[np.float64]:
    """Places seen after that many steps [subjects, points]; all trials count as one walk."""
    rows = []
    for subject in paths.subjects:
        walked = np.concatenate([trial.states[1:] for trial in paths.of(subject)])
        _, first = np.unique(walked, return_index=True)
        rows.append(np.searchsorted(np.sort(first), steps))
    return np.array(rows, np.float64)


def walk_measures(paths: Paths) -> dict[str, NDArray[np.float64]]:
    """What describes a walk, of each subject."""
    position = paths.walks.position
    found: dict[str, list[float]] = {name: [] for name in ("places", "revisit", "back", "on", "aside")}
    for subject in paths.subjects:
        trials = paths.of(subject)
        walked = np.concatenate([trial.states for trial in trials])
        found["places"].append(float(len(np.unique(walked))))
        intervals, back, on, total = [], 0, 0, 0
        for trial in trials:
            s = trial.states.astype(np.int64)
            order = np.argsort(s, kind="stable")
            same = np.diff(s[order]) == 0
            intervals.append(np.diff(order)[same])
            choice = paths.legal(trial)[1:] > 1
            turned = s[2:] == s[:-2]
            back += int((turned & choice).sum())
            if len(position):
                on += int(((np.diff(position[s])[1:] == np.diff(position[s])[:-1]) & choice).sum())
            total += int(choice.sum())
        again = np.concatenate(intervals)
        found["revisit"].append(float(np.median(again)) if len(again) else np.nan)
        total = max(total, 1)
        found["back"].append(back / total)
        found["on"].append(on / total if len(position) else np.nan)
        found["aside"].append((total - back - on) / total)
    return {name: np.array(values) for name, values in found.items() if not np.isnan(values).all()}
