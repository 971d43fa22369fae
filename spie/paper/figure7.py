"""Figure 7: Figure 1 with optimistic starts for SARSA-SR and SARSA-FR."""

import dataclasses
import functools

from spie.agents.sarsa.settings import Sarsa
from spie.paper.claims import Claim
from spie.paper.contenders import Contender, of
from spie.paper.experiment import Experiment, coverage_steps
from spie.paper.grid_worlds import (
    COVERAGE_MAPS,
    control_runs,
    coverage_panels,
    coverage_run,
    coverage_tables,
    covers_faster,
    settings,
)
from spie.paper.measures import area, compare, together
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.rules import MORE, MUCH_MORE
from spie.paper.sections import CurvePanels, SectionPart, number
from spie.runs.run import Run

BONUSES = ("sarsa-sr", "sarsa-fr")  # whose bonuses are positive, so that Q = 0 is no optimistic start
OPTIMISTIC, BOUND = {"q0": "optimistic"}, {"q0": "bound"}  # as in the paper; the most that the bonus can add up to

SRR = Contender("figure7", "sarsa-srr")


def optimistic(agent: str, bound: float | None = None) -> Sarsa:
    """Q starts at 1 / (1 - gamma), as in the paper, or at the most that a bonus of up to `bound` can add up to."""
    s = settings(agent)
    return dataclasses.replace(s, q0=(1.0 if bound is None else s.beta * bound) / (1 - s.gamma))


def bonus_bound(agent: str) -> float:
    """The most r_SR or r_FR can pay: a first visit pays 1 / eta; |F[s, :]| <= |M[s, :]| <= 1 / (1 - gamma_FR)."""
    s = settings(agent)
    return 1 / s.eta if s.reward == "sr" else 1 / (1 - s.gamma_sr)


def runs(seeds: int) -> list[Run]:
    """SARSA and SARSA-SRR as in Figure 1, the two others with either start."""
    planned = []
    for env in COVERAGE_MAPS:
        run = functools.partial(coverage_run, seeds, env)
        planned += [run(agent, settings(agent)) for agent in ("sarsa", "sarsa-srr")]
        for agent in BONUSES:
            planned.append(run(agent, optimistic(agent), **OPTIMISTIC))
            planned.append(run(agent, optimistic(agent, bonus_bound(agent)), **BOUND))
        planned += control_runs(run)
    return planned


# fmt: off
CLAIMS = (
    Claim("optimism-helps", "Appendix C", "Figure 7", "An optimistic start improves SARSA-SR and SARSA-FR.",
          "area under the coverage curve over that from Q = 0: more",
          together(*(compare(area, Contender("figure7", name, OPTIMISTIC), of("figure1", name), COVERAGE_MAPS, name,
                             **MORE) for name in BONUSES))),
    Claim("srr-ahead-of-optimism", "Appendix C", "Figure 7", "SARSA-SRR still covers significantly faster than these.",
          "as coverage-fastest, against both with the paper's optimistic start: much more",
          covers_faster(SRR, *of("figure7", *BONUSES, **OPTIMISTIC), word=MUCH_MORE)),
    Claim("srr-ahead-of-true-optimism", "Appendix C", "Figure 7",
          "So it does where their start bounds what can be had.",
          "as coverage-fastest, against both with Q from the largest bonus: much more",
          covers_faster(SRR, *of("figure7", *BONUSES, **BOUND), word=MUCH_MORE), ours=True),
)
# fmt: on


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Coverage with both starts."""
    bounds = {agent: optimistic(agent, bonus_bound(agent)).q0 for agent in BONUSES}
    start = number(optimistic("sarsa-sr").q0, 0)
    most = ", ".join(f"{number(q0, 0)} for {agent}" for agent, q0 in bounds.items())
    caption = f"Q starts at {start} (q0=optimistic), as in the paper, or at the most that the bonus can add up to "
    caption += f"(q0=bound): {most}"
    name = experiment.name
    return [CurvePanels(caption, coverage_panels(results, name)), *coverage_tables(results, name)]


register_experiment(
    Experiment(
        "figure7",
        "Figure 7: optimistic starts",
        section,
        runs,
        seeds=1000,
        claims=CLAIMS,
        measure=coverage_steps,
    )
)
