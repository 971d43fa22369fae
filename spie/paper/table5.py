"""Table 5: the settings of Tables 1 and 3."""

from spie.paper import published as paper
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import Row, SectionPart, Table


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The paper's settings, those of the grid worlds among them."""
    names = ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "epsilon")
    cells = paper.TABLE_5 | {("grid worlds", "all"): paper.GRID_SETTINGS}
    rows = [Row((*key, *(f"{row[name]:g}" if name in row else None for name in names))) for key, row in cells.items()]
    return [Table("The paper's settings, as used here", ("environment", "agent", *names), rows, texts=2)]


register_experiment(Experiment("table5", "Table 5: the settings", section))
