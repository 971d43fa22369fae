"""Published numbers beside ours, cell by cell."""

from collections import Counter
from typing import NamedTuple

from spie import stats
from spie.paper import published as paper
from spie.paper.claims import FEWEST_SEEDS
from spie.paper.registry import experiment_of, experiments
from spie.paper.results import Results
from spie.paper.sections import Row, Table
from spie.runs.run import Run


class Comparison(NamedTuple):
    """Our estimate of a published cell beside it, and how far they are apart with the printed spread read both ways."""

    run: Run
    ours: stats.Estimate
    published: paper.Cell
    as_sd: stats.Agreement
    as_se: stats.Agreement

    @property
    def verdict(self) -> str:
        if self.ours.n < FEWEST_SEEDS:
            return "too few seeds"
        return "agrees" if self.as_sd.agrees else "differs"


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
    """How many published cells agree, differ, were not run."""
    rows = []
    for e in experiments():
        if e.published and e.counted:
            found = Counter(c.verdict for c in comparisons(results, e.name))
            judged = (found["agrees"], found["differs"])
            title = f"{e.title}, not run at the paper's budget" if e.frames else e.title
            rows.append(Row((title, *judged, len(e.published) - sum(judged))))
    total = [sum(row.values[i] for row in rows) for i in (1, 2, 3)]
    return Table("Table by table", ("table", "agree", "differ", "not run"), [*rows, Row(("all", *total), "total")])
