"""Published numbers beside ours, cell by cell."""

import math
from collections import Counter
from typing import NamedTuple

from spie import stats
from spie.paper import published as paper
from spie.paper.registry import experiment_of, experiments
from spie.paper.results import Results
from spie.paper.rules import CELL_VERDICTS, cell_verdict
from spie.paper.sections import Row, Table
from spie.runs.run import Run

TALLIED = ("agree", "cannot be told apart", "differ")  # the verdicts, of several numbers


class Comparison(NamedTuple):
    """Our estimate of a published cell beside it, and how far they are apart with the printed spread read both ways."""

    run: Run
    ours: stats.Estimate
    published: paper.Cell
    as_sd: stats.Agreement
    as_se: stats.Agreement

    @property
    def verdict(self) -> str:
        return cell_verdict(self.ours, self.published.mean, self.as_sd)

    @property
    def times(self) -> float:
        """Our mean over the published one."""
        return self.ours.mean / self.published.mean if self.published.mean else math.nan


def comparisons(results: Results, key: str) -> list[Comparison]:
    """The published cells of an experiment beside ours; none unless it is finished, and with the paper's budget."""
    return results.once(_comparisons, key)


def _comparisons(results: Results, key: str) -> list[Comparison]:
    experiment, found = experiment_of(key), []
    if experiment.frames or not results.finished(key):
        return []
    for cells in results.found(key).values():
        for run, trace in cells.values():
            if (cell := experiment.published.get((run.env, run.agent))) is not None:
                ours, n = stats.estimate(experiment.measure(run, trace)[1]), paper.SEEDS_OF_TABLES_1_AND_3
                as_sd, as_se = stats.agreement(ours, *cell, n), stats.agreement(ours, *cell, n, "se")
                found.append(Comparison(run, ours, cell, as_sd, as_se))
    return found


def tally(results: Results) -> Table:
    """How many published cells there are of each verdict, and how many were not run."""
    rows = []
    for e in experiments():
        if e.published and e.counted:
            found = Counter(c.verdict for c in comparisons(results, e.name))
            judged = [found[verdict] for verdict in CELL_VERDICTS]
            title = f"{e.title}, not run at the paper's budget" if e.frames else e.title
            rows.append(Row((title, *judged, len(e.published) - sum(judged))))
    columns = ("table", *TALLIED, "not run")
    total = [sum(row.values[i] for row in rows) for i in range(1, len(columns))]
    return Table("Table by table", columns, [*rows, Row(("all", *total), "total")])
