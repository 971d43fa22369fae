"""Figure 5: the two chains."""

from spie.paper.chains import CHAINS
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import Diagrams, SectionPart


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    return [Diagrams(env, {env: make()}) for env, make in CHAINS.items()]


register_experiment(Experiment("figure5", "Figure 5: the two MDPs", section))
