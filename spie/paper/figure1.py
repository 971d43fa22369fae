"""Figure 1: pure exploration of grid worlds, with learned and with fixed representations."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from spie.paper.chains import earns
from spie.paper.claims import Claim, Evidence, Measure, Runs
from spie.paper.contenders import CONTROLS, Contender, of
from spie.paper.experiment import Experiment, coverage_steps
from spie.paper.grid_worlds import (
    COVERAGE_MAPS,
    control_runs,
    coverage_panels,
    coverage_run,
    coverage_tables,
    covers_alike,
    covers_faster,
    settings,
)
from spie.paper.measures import (
    Array,
    area,
    borders,
    compare,
    double_ratio,
    level,
    ratio,
    seen,
    steps_to,
    together,
    visit_share,
)
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.rules import LESS, MORE, MOST_OF, MUCH_LESS, MUCH_MORE, NO_MORE, SIMILAR
from spie.paper.sections import CurvePanels, Maps, SectionPart
from spie.runs.run import Run
from spie.tasks.grids import doors
from spie.tasks.mdp import MDP

LEARNED = ("sarsa-sr", "sarsa-fr", "sarsa-srr")
FIXED = ("sarsa-sr-fixed", "sarsa-fr-fixed", "sarsa-srr-fixed")

STEPS_TO_90 = functools.partial(steps_to, share=0.9)

SARSA, SR, FR, SRR = of("figure1", "sarsa", *LEARNED)
SR_FIXED, FR_FIXED, SRR_FIXED = of("figure1", *FIXED)
CONSTANT, OPTIMISTIC, COUNT, RANDOM = of("figure1", *CONTROLS)


def runs(seeds: int) -> list[Run]:
    """States seen against steps, with learned and with fixed representations."""
    planned = []
    for env in COVERAGE_MAPS:
        run = functools.partial(coverage_run, seeds, env)
        planned += [run(agent, settings(agent)) for agent in ("sarsa", *LEARNED, *FIXED)] + control_runs(run)
    return planned


# Measures


def half_reached(runs: Runs) -> list[Evidence]:
    parts = []
    for env in COVERAGE_MAPS:
        trace = runs(SR, env)
        end = "floor" if env == "of-small" else "ceiling"
        parts.append(level(env, np.asarray(steps_to(trace, 0.5) <= trace.steps), **{end: MOST_OF}))
    return parts


def slowdown(runs: Runs, agent: Contender, env: str) -> tuple[Array, Array]:
    """Steps a state to cover 90 % of a map, and of OF-small."""
    traces = [runs(agent, name) for name in (env, "of-small")]
    a, b = (steps_to(trace, 0.9) / trace.visits.shape[1] for trace in traces)
    return a, b


def consistent(runs: Runs) -> list[Evidence]:
    return [ratio(e, *slowdown(runs, SRR, e), np.median, **NO_MORE) for e in COVERAGE_MAPS[1:]]


def others_degrade(runs: Runs) -> list[Evidence]:
    parts = []
    for env in COVERAGE_MAPS[1:]:
        both = slowdown(runs, SARSA, env) + slowdown(runs, SRR, env)
        parts.append(double_ratio(f"{env} sarsa", *both, statistic=np.median, **MUCH_MORE))
        for agent in (SR, FR):
            shares = seen(runs(agent, env)), seen(runs(agent, "of-small"))
            parts.append(ratio(f"{env} {agent.label}", *shares, **MUCH_LESS))
    return parts


def fixing_costs_little(runs: Runs) -> list[Evidence]:
    ends: dict[str, Any] = {"statistic": np.median, **NO_MORE}
    parts = compare(STEPS_TO_90, SRR_FIXED, [SRR], COVERAGE_MAPS, "sarsa-srr", **ends)(runs)
    for (other, fixed), env in itertools.product(((SR, SR_FIXED), (FR, FR_FIXED)), COVERAGE_MAPS):
        areas = (area(runs(agent, env)) for agent in (SRR_FIXED, SRR, fixed, other))
        parts.append(double_ratio(f"less than {other.label} {env}", *areas, **MUCH_MORE))
    return parts


def occupancy(cells: Callable[[MDP], Array], a: Contender, other: Contender, what: str, **ends: Any) -> Measure:
    """Share of the visits that go to some cells, over the other's."""
    maps = COVERAGE_MAPS if cells is borders else ("cluster-simple", "cluster-hard")
    shares = {env: functools.partial(visit_share, cells=cells, env=env) for env in maps}
    return together(*(compare(share, a, [other], [env], f"{what} {env}", **ends) for env, share in shares.items()))


def larger_gain_exploring(runs: Runs) -> list[Evidence]:
    cells = itertools.product(("cluster-hard", "of-small"), (SARSA, SRR))
    times = [steps_to(runs(agent, env), 0.9) for env, agent in cells]
    return [double_ratio("sarsa", *times, statistic=np.median, **MORE)]


# fmt: off
CLAIMS = (
    Claim("sarsa-is-random-walk", "Section 3", "Figure 1", "Without reward, plain SARSA is a random walk.",
          "area under the coverage curve over the random walk's: similar",
          compare(area, SARSA, [RANDOM], COVERAGE_MAPS, **SIMILAR)),
    Claim("coverage-fastest", "Section 3", "Figure 1b",
          "SARSA-SRR covers every map faster than the other three agents.",
          "median steps to 50, 90, 99 % of the states, fastest other agent over SARSA-SRR: more",
          covers_faster(SRR, SARSA, SR, FR)),
    Claim("coverage-fastest-of-controls", "Section 3", "Figure 1b",
          "SARSA-SRR covers faster than agents that have no representation but an optimistic start.",
          "as coverage-fastest, against the controls",
          covers_faster(SRR, CONSTANT, OPTIMISTIC, COUNT, RANDOM), ours=True, controls=True),
    Claim("coverage-faster-than-constant", "Section 3", "Figure 1b",
          "SARSA-SRR covers faster than an agent that pays a constant 1 a step, and so starts optimistic as well.",
          "as coverage-fastest, against the constant cost", covers_faster(SRR, CONSTANT), ours=True, controls=True),
    Claim("fr-like-sarsa", "Section 3", "Figure 1b", "SARSA-FR covers about as fast as SARSA.",
          "median steps to 50, 90, 99 % of the states over SARSA's: similar", covers_alike(FR, SARSA)),
    Claim("sr-poor", "Section 3", "Figure 1b", "SARSA-SR explores all four maps poorly.",
          "area under the coverage curve over SARSA's: much less",
          compare(area, SR, [SARSA], COVERAGE_MAPS, **MUCH_LESS)),
    Claim("sr-below-half", "Section 3", "Figure 1b",
          "SARSA-SR does not see half of the states in 8000 steps, but on OF-small.",
          "share of seeds that see half: below 1/2, above 1/2 on OF-small", half_reached),
    Claim("srr-consistent", "Section 3", "Figure 1b", "SARSA-SRR does equally well on the four maps.",
          "median steps a state to 90 % over those of OF-small: no more", consistent),
    Claim("others-degrade", "Section 3", "Figure 1b",
          "The other agents become significantly worse on larger and harder maps.",
          "SARSA: that ratio over SARSA-SRR's, much more; SARSA-SR, -FR: states seen over those of OF-small, much less",
          others_degrade),
    Claim("fixed-srr-fastest", "Section 3", "Figure 1c",
          "With fixed representations, too, SARSA-SRR covers every map faster than the other agents.",
          "as coverage-fastest, with fixed SR and FR", covers_faster(SRR_FIXED, SARSA, SR_FIXED, FR_FIXED)),
    Claim("fixing-costs-all", "Section 3", "Figure 1c", "Fixing SR or FR slows exploration by all three bonuses.",
          "area under the coverage curve, fixed over learned: less",
          together(*(compare(area, fixed, [learned], COVERAGE_MAPS, learned.label, **LESS)
                     for fixed, learned in ((SR_FIXED, SR), (FR_FIXED, FR), (SRR_FIXED, SRR))))),
    Claim("fixing-costs-srr-steps", "Section 3", "Figure 1c",
          "Fixing the SR slows SARSA-SRR, if its steps are counted: the area hardly changes where all is seen early.",
          "median steps to 90 % of the states, fixed over learned: more",
          compare(STEPS_TO_90, SRR_FIXED, [SRR], COVERAGE_MAPS, statistic=np.median, **MORE), ours=True),
    Claim("fixing-costs-srr-little", "Section 3", "Figure 1c",
          "Fixing costs SARSA-SRR little, and SARSA-SR and SARSA-FR much.",
          "SARSA-SRR's median steps to 90 %, fixed over learned, no more; area under the coverage curve, fixed over "
          "learned, SARSA-SRR's over that of the others, much more", fixing_costs_little),
    Claim("not-only-learning", "Section 3", "Figure 1c, Table 3",
          "Efficient exploration does not need an SR that is being learned.",
          "SARSA's median steps to 50, 90, 99 % over those of fixed SARSA-SRR, and fixed SARSA-SRR's reward on the "
          "chains over SARSA's: more",
          together(covers_faster(SRR_FIXED, SARSA),
                   earns(Contender("table3", "sarsa-srr-fixed"), Contender("table1", "sarsa"), **MORE))),
    Claim("sr-fixed-is-random", "Section 3", "", "With a known SR, SARSA-SR explores like a random walk.",
          "area under the coverage curve of fixed SARSA-SR over SARSA's: similar",
          compare(area, SR_FIXED, [SARSA], COVERAGE_MAPS, **SIMILAR)),
    Claim("border-and-doors", "Section 3", "eq. 8", "SARSA-SRR is drawn to border cells and to doors.",
          "share of visits there over the random walk's: more",
          together(occupancy(borders, SRR, RANDOM, "border", **MORE),
                   occupancy(doors, SRR, RANDOM, "doors", **MORE))),
    Claim("border-and-doors-of-controls", "Section 3", "eq. 8", "It is so more than an agent with a constant cost.",
          "as border-and-doors, against the constant cost",
          together(occupancy(borders, SRR, CONSTANT, "border", **MORE),
                   occupancy(doors, SRR, CONSTANT, "doors", **MORE)), ours=True, controls=True),
    Claim("sr-avoids-doors", "Section 3", "Figure 1a", "Exploring by the norm of the SR keeps an agent from doors.",
          "SARSA-SR's share of visits to doors over the random walk's: less",
          occupancy(doors, SR, RANDOM, "doors", **LESS)),
    Claim("counts-avoid-doors", "Section 1", "Figure 1a", "Exploring by visit counts keeps an agent from doors.",
          "as sr-avoids-doors, for our count bonus", occupancy(doors, COUNT, RANDOM, "doors", **LESS)),
    Claim("larger-gain-in-rooms", "Section 4", "Figure 1b", "In pure exploration SARSA-SRR gains more in Cluster-hard.",
          "SARSA's median steps to 90 % over SARSA-SRR's, on Cluster-hard over OF-small: more",
          larger_gain_exploring),
    Claim("optimism-explores", "Appendix C", "Figure 7", "An optimistic start by itself makes an agent explore.",
          "random walk's median steps to 50, 90, 99 % over those of SARSA with optimistic Q and no bonus: more",
          covers_faster(OPTIMISTIC, RANDOM)),
)
# fmt: on


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The maps, the curves with learned and with fixed representations, and tables."""
    name = experiment.name
    maps = {run.env: run.task for run in results.runs(name)}
    return [
        Maps(f"(a) The maps {', '.join(maps)}", maps),
        CurvePanels(
            "(b) Representations learned on the way; mean and 95 % interval", coverage_panels(results, name, FIXED)
        ),
        CurvePanels("(c) Fixed representations, those of the random walk", coverage_panels(results, name, LEARNED)),
        *coverage_tables(results, name),
    ]


register_experiment(
    Experiment(
        "figure1",
        "Figure 1: coverage of grid worlds without reward",
        section,
        runs,
        seeds=1000,
        claims=CLAIMS,
        measure=coverage_steps,
    )
)
