"""What Figures 1, 3, 6 and 7 share: the maps, their settings, controls, and what is seen of a map."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from spie import stats
from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.claims import Evidence, Measure, Runs
from spie.paper.contenders import Contender
from spie.paper.measures import compare, ratio, steps_to, together
from spie.paper.results import Results
from spie.paper.rules import MORE, SIMILAR
from spie.paper.sections import Panel, SectionPart, Table, agent_row, between, mean_curve, number, percent
from spie.runs.run import Run
from spie.tasks import grid

COVERAGE_MAPS = ("of-small", "cluster-simple", "cluster-hard", "of-large")
SHARES = (0.5, 0.9, 0.99)  # of the states to cover


def settings(agent: str) -> Sarsa:
    """An agent with the paper's settings, which are the same for all grid worlds."""
    s: Sarsa = named(agent, **paper.GRID_SETTINGS)
    return s


def controls() -> dict[str, Sarsa]:
    """Agents with no representation, else with the same settings; not in the paper."""
    s = settings("sarsa")
    most = 1 / (1 - s.gamma)
    return {
        "constant": dataclasses.replace(s, reward="constant"),
        "optimistic": dataclasses.replace(s, q0=most),
        "count": dataclasses.replace(s, reward="count", q0=most),
        "random": dataclasses.replace(s, epsilon=1.0),
    }


def control_runs(make: Callable[[str, Sarsa], Run]) -> list[Run]:
    """A run of every control."""
    return [dataclasses.replace(make(agent, s), role="control") for agent, s in controls().items()]


def coverage_run(seeds: int, env: str, agent: str, s: Sarsa, **variant: Any) -> Run:
    """Pure exploration of a map."""
    return Run(env, agent, s, grid(env), paper.COVERAGE_STEPS, seeds, variant=variant)


# What is claimed about coverage


def covers_faster(agent: Contender, *rivals: Contender, word: dict[str, Any] = MORE) -> Measure:
    """Median steps of the fastest rival over the agent's, on each map, for each share of the states."""

    def measure(runs: Runs) -> list[Evidence]:
        parts = []
        for env, share in itertools.product(COVERAGE_MAPS, SHARES):
            times = {rival: steps_to(runs(rival, env), share) for rival in rivals}
            best = min(times, key=lambda rival: float(np.median(times[rival])))
            label = f"{env} {share:.0%}" + (f" {best.label}" if len(rivals) > 1 else "")
            parts.append(ratio(label, times[best], steps_to(runs(agent, env), share), np.median, **word))
        return parts

    return measure


def covers_alike(agent: Contender, other: Contender) -> Measure:
    """Median steps of one over the other's."""
    times = [(share, functools.partial(steps_to, share=share)) for share in SHARES]
    ends: dict[str, Any] = {"statistic": np.median, **SIMILAR}
    return together(*(compare(f, agent, [other], COVERAGE_MAPS, f"{share:.0%}", **ends) for share, f in times))


# What the page shows of coverage


def coverage_panels(results: Results, experiment: str, left_out: Collection[str] = ()) -> list[Panel]:
    """States seen against steps, a panel for each map."""
    x = np.unique(np.geomspace(10, paper.COVERAGE_STEPS, 120).round())  # where the curves differ is early
    panels = []
    for env, cells in results.found(experiment).items():
        curves = {
            label: mean_curve(x, 100 * stored.trace.coverage(x), stored.look)
            for label, stored in cells.items()
            if stored.run.agent not in left_out
        }
        panels.append(Panel(env, curves, "steps", "states seen, %", log="x"))
    return panels


def coverage_tables(results: Results, experiment: str) -> list[SectionPart]:
    """States seen at the end, and the steps it took to see a share of them."""
    columns = ["agent", "seen at the end", "95 % interval", "sd"]
    columns += [column for share in SHARES for column in (f"steps to {percent(share)}", "seeds there")]
    parts: list[SectionPart] = []
    for env, cells in results.found(experiment).items():
        rows = []
        for label, (run, trace) in cells.items():
            e = stats.estimate(100 * trace.coverage([run.steps])[:, 0])
            values = [label, percent(e.mean / 100, 1), between(e.low, e.high, 1), number(e.sd, 1)]
            for share in SHARES:
                steps = steps_to(trace, share)
                median = float(np.median(steps))
                values.append(number(median, 0) if median <= run.steps else f"> {number(run.steps)}")
                values.append(percent(float((steps <= run.steps).mean())))
            rows.append(agent_row(values, run.role == "control"))
        parts.append(Table(f"{env}: coverage; steps are medians over all seeds", columns, rows))
    return parts
