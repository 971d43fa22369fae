"""Which exploration works on linear features: sparse MountainCar, pendulum, Acrobot; every contender tuned alike.

Each has one setting for all tasks, chosen on seeds of its own: all settings on 5 seeds, the best three on 10 others.
What is reported comes from a third set of seeds. `spie` is `linear-q-sp-novelty` with its usual beta; the search over
that contender's betas is part of the experiment, and the page says what it would choose.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.agents.linear_q.settings import LinearQ
from spie.agents.registry import agent as named
from spie.paper.claims import Claim, Evidence, Measure, Runs
from spie.paper.contenders import Contender
from spie.paper.contests import contest_experiment, winner
from spie.paper.experiment import Experiment
from spie.paper.measures import combined
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import CurvePanels, Panel, Row, SectionPart, Table, Text, mean_curve, number
from spie.runs.run import Role, Run, load
from spie.search.grid import SettingsGrid
from spie.search.select import Choice, Load, Round, Search, fresh
from spie.tasks import acrobot, mountain_car, pendulum

NAME = "exploration-linear"
TASKS = {"mountain-car": mountain_car(), "pendulum": pendulum(), "acrobot": acrobot()}
CAP, EPISODES = 200, 100
SEEDS, SECOND_SEEDS, FINALISTS = 5, 10, 3
BETAS = (0.001, 0.01, 0.1, 1.0)
CONTROLS = ("bare", "constant", "count", "optimism")
PAPER = ("linear-q-sf", "linear-q-sf-pf")
EPSILON = 0.1

Array = NDArray[np.float64]


def grids() -> dict[str, tuple[LinearQ, Mapping[str, Sequence[Any]]]]:
    """The settings that are tried for each contender: what they have in common, and what varies."""
    names = {"spie": "linear-q-sp-novelty", "novelty": "linear-q-novelty", "constant": "linear-q-constant"}
    names |= {"count": "linear-q-count"} | {name: name for name in PAPER}
    found: dict[str, tuple[LinearQ, Mapping[str, Sequence[Any]]]] = {
        name: (named(agent, epsilon=EPSILON), {"beta": BETAS}) for name, agent in names.items()
    }
    found["optimism"] = (LinearQ(reward="none", epsilon=EPSILON, optimism=1.0), {"optimism": (0.1, 1.0, 10.0)})
    found["bare"] = (LinearQ(reward="none", epsilon=EPSILON), {"alpha": (0.1, 0.5)})
    return found


def contests(seeds: int) -> dict[str, Choice]:
    """By contender: one setting for all tasks."""
    found = {}
    for agent, (base, axes) in grids().items():
        tried = SettingsGrid(base, tuple((name, tuple(values)) for name, values in axes.items()), "success")
        searches = tuple(Search(env, agent, (tried,), task, CAP, EPISODES) for env, task in TASKS.items())
        rounds = (Round(min(SEEDS, seeds), FINALISTS), Round(fresh(min(SECOND_SEEDS, seeds)), 1))
        found[agent] = Choice(searches, rounds, fresh(seeds, 2))
    return found


def confirmation(seeds: int, stored: Load) -> list[Run]:
    """The winners on fresh seeds, `spie` as it is frozen."""
    planned = []
    for agent, choice in contests(seeds).items():
        best: Any = named("linear-q-sp-novelty", epsilon=EPSILON) if agent == "spie" else winner(choice, stored)
        role: Role = "control" if agent in CONTROLS else "paper"
        planned += [
            Run(env, agent, best, task, CAP, choice.confirm, EPISODES, role=role) for env, task in TASKS.items()
        ]
    return planned


def success(trace: Any) -> Array:
    """The share of all episodes that reach the goal [seeds]."""
    return np.asarray(trace.terminated.mean(axis=1))


def late_success(trace: Any) -> Array:
    """The same of the last fifth of the episodes [seeds]."""
    return np.asarray(trace.terminated[:, -EPISODES // 5 :].mean(axis=1))


def measure(run: Run, trace: Any) -> tuple[str, Array]:
    """For the terminal."""
    return "episodes that reach the goal, % (more is better)", 100 * success(trace)


def more_success(rivals: Sequence[str]) -> Measure:
    """Success of spie less that of the best rival, on each task."""

    def parts(runs: Runs) -> list[Evidence]:
        found = []
        for env in TASKS:
            theirs = {who: success(runs(Contender(NAME, who), env)) for who in rivals}
            best = max(rivals, key=lambda who: float(theirs[who].mean()))
            ours = success(runs(Contender(NAME, "spie"), env))
            found.append(combined(f"{env} {best}", np.subtract, ours, theirs[best], floor=0.0))
        return found

    return parts


# fmt: off
CLAIMS = (
    Claim("spie-linear-beats-all-controls", "Beyond the paper", "",
          "On linear features spie beats no bonus, the constant, counts in cells and optimism.",
          "episodes that reach the goal, less those of the best of them, tuned alike, fresh seeds: above 0",
          more_success(CONTROLS), ours=True),
    Claim("spie-linear-beats-the-papers-agents", "Beyond the paper", "",
          "On linear features spie beats SF and SF-PF.",
          "episodes that reach the goal, less those of the best of them, tuned alike, fresh seeds: above 0",
          more_success(PAPER), ours=True),
    Claim("spie-linear-adds-to-novelty", "Beyond the paper", "", "On linear features the potential adds to novelty.",
          "episodes that reach the goal, less those of novelty without it, fresh seeds: above 0",
          more_success(("novelty",)), ours=True),
)
# fmt: on


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Success over episodes, a table for each task, and what was tried."""
    found, chosen = results.found(experiment.key), contests(results.seeds[experiment.key])
    stored = functools.partial(load, results.store)
    panels, tables = [], []
    for env, cells in found.items():
        x = np.arange(5, EPISODES + 1, 5)
        curves = {
            name: mean_curve(x, 100 * one.trace.terminated.reshape(len(one.trace.seeds), -1, 5).mean(axis=2), one.look)
            for name, one in cells.items()
        }
        panels.append(Panel(env, curves, "episode", "reach the goal, %"))
        rows = []
        for name, (run, trace) in cells.items():
            both = [stats.estimate(100 * value(trace)) for value in (success, late_success)]
            shown = [f"{e.mean:.1f} [{e.low:.1f}, {e.high:.1f}]" for e in both]
            varied = ", ".join(f"{key} {vars(run.settings)[key]:g}" for key in chosen[name].searches[0].columns)
            kind = "control" if run.role == "control" else "total" if name == "spie" else ""
            rows.append(Row((name, *shown, f"{trace.terminated.any(axis=1).sum()} of {run.n_seeds}", varied), kind))
        columns = ("agent", "reach the goal, %", "last fifth, %", "seeds that ever did", "chosen")
        tables.append(Table(f"{env}: {EPISODES} episodes of at most {CAP} steps", columns, rows))
    tried = sum(map(len, chosen.values()))
    ours = vars(winner(chosen["spie"], stored))["beta"]
    said = (
        f"{number(tried)} settings of {len(chosen)} contenders; the best of each on others; reported: a third set.",
        f"spie has beta {named('linear-q-sp-novelty').beta:g}, which was frozen; the search would choose {ours:g}.",
        "Means over seeds and their 95 % intervals. count counts visits in cells, spie and novelty on the features.",
    )
    return [Text("How it was done", said), CurvePanels("Mean and 95 % interval", panels), *tables]


register_experiment(
    contest_experiment(
        NAME,
        "Which exploration works on linear features (not in the paper)",
        section,
        contests,
        confirmation,
        seeds=40,
        claims=CLAIMS,
        measure=measure,
    )
)
