"""Which exploration works: `spie`, controls and the paper's agents, tuned alike, on tasks that no tuning saw.

Every contender has one setting for all tasks, chosen on the tuning tasks: all settings on 10 seeds, the best five on 60
others. What is reported comes from a third set of seeds. `spie` is the agent of that name, whose settings are frozen:
the search that chose them is part of the experiment, and the page says whether it would choose them again. On
RiverSwim and SixArms the paper's agents and the controls run once more with settings tuned on that very task.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from spie.agents.base import Agent
from spie.agents.planner.settings import Planner
from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.beyond.exploration_page import claims, section
from spie.paper.beyond.exploration_tasks import TASKS, TUNING, Array
from spie.paper.chains import CHAINS, controls, settings
from spie.paper.contests import contest, first_runs, second_runs, winner
from spie.paper.experiment import Experiment
from spie.paper.printed_grid import printed_grid
from spie.paper.registry import register_experiment
from spie.runs.run import Role, Run
from spie.search.grid import SettingsGrid
from spie.search.select import Choice, Load, Round, Search, fresh

HERE = {"tuned": "on this task"}  # the variant of an agent whose settings were chosen on the task itself
APART = {"tuned": "on this task, rates of M and N apart"}
STRONGEST = {  # of the paper's agents on the chains, SARSA-SR-PR, as `spie run tuned` chose it from 97,200 settings
    "riverswim": {"alpha": 0.05, "beta": 10.0, "eta": 0.25, "gamma_sr": 0.5, "eta_pr": 0.05, "gamma_pr": 0.9},
    "sixarms": {"alpha": 0.5, "beta": 1000.0, "eta": 0.05, "gamma_sr": 0.8, "eta_pr": 0.5, "gamma_pr": 0.8},
}
SEEDS, SECOND_SEEDS, FINALISTS = 10, 60, 5

Axes = Mapping[str, Sequence[Any]]
COMMON: Axes = {"gamma": (0.95, 0.99), "epsilon": (0.01, 0.1)}
RATES, BETAS = (0.1, 0.5), (0.001, 0.01, 0.1, 1.0)
CONTROLS = (
    "bare", "constant", "optimistic start", "count as reward", "count as optimism", "column as optimism", "sp-novelty",
    "etd", "random",
)  # fmt: skip
PAPER = ("sarsa-sr", "sarsa-fr", "sarsa-srr", "sarsa-sr-pr")
OURS = ("spie",)


def grids() -> dict[str, tuple[tuple[Agent[Any], Axes], ...]]:
    """The settings that are tried for each contender: what they have in common, and what varies."""
    bonus = {"alpha": RATES, "beta": BETAS, **COMMON}
    optimism = {"alpha": RATES, "optimism": (0.1, 1.0, 10.0, 100.0), **COMMON}
    found: dict[str, tuple[tuple[Agent[Any], Axes], ...]] = {
        "spie": tuple(
            (planner, {"curiosity": (0.5, 0.75, 1.0), "optimism": (3.0, 5.0), "prior": (0.1, 0.25, 0.5)})
            for planner in (Planner(), Planner(cost="sr-column", cost_weight=0.02))
        ),
        "bare": ((Sarsa(reward="none"), {"alpha": (0.05, 0.1, 0.25, 0.5), **COMMON}),),
        "constant": ((Sarsa(reward="constant"), bonus),),
        "optimistic start": ((Sarsa(reward="none"), {"alpha": RATES, "q0": (0.1, 1.0, 10.0, 100.0), **COMMON}),),
        "count as reward": tuple((Sarsa(reward="count", q0=q0), bonus) for q0 in (0.0, 1.0)),
        "count as optimism": ((Sarsa(reward="none", optimism=1.0), optimism),),
        "column as optimism": tuple(
            (Sarsa(reward="none", optimism=1.0, count=count), optimism) for count in ("sr-column", "pr-column")
        ),
        "sp-novelty": ((named("sarsa-sp-novelty"), bonus),),
        "etd": tuple((Sarsa(reward="etd", m0=1.0, q0=q0), bonus) for q0 in (0.0, 1.0)),
        "random": ((Sarsa(reward="none", epsilon=1.0), {}),),
    }
    return found | {agent: ((named(agent), bonus),) for agent in PAPER}


def contests(seeds: int) -> dict[str, Choice]:
    """By contender: one setting for all tasks."""
    found = {}
    for agent, tried in grids().items():
        searches = []
        for name, task in TUNING.items():
            of = tuple(
                SettingsGrid(base, tuple((k, tuple(v)) for k, v in axes.items()), task.scored) for base, axes in tried
            )
            searches.append(Search(name, agent, of, task.mdp, task.steps, task.episodes, scale=task.scale))
        rounds = (Round(min(SEEDS, seeds), FINALISTS), Round(fresh(min(SECOND_SEEDS, seeds)), 1))
        found[agent] = Choice(tuple(searches), rounds, fresh(seeds, 2))
    return found


def chain_contests(seeds: int) -> dict[tuple[str, str], Choice]:
    """By chain and agent: settings for this task alone, from the paper's grid; N learns with the rates of M."""
    found = {}
    for env in CHAINS:
        rivals = {agent: settings(env, agent) for agent in ("sarsa", *PAPER)} | controls(env)
        for agent, s in rivals.items():
            tried = printed_grid(agent, s)
            if agent == "sarsa-sr-pr":
                axes = tuple(axis for axis in tried[0].axes if axis[0] not in ("eta_pr", "gamma_pr"))
                tried = (SettingsGrid(dataclasses.replace(s, eta_pr=None, gamma_pr=None), axes),)
            search = Search(env, agent, tried, TASKS[env].mdp, paper.CHAIN_STEPS)
            found[env, agent] = contest([search], min(SEEDS, seeds), min(50, seeds), seeds)
    return found


def every_contest(seeds: int) -> dict[Any, Choice]:
    """Both kinds."""
    return {**contests(seeds), **chain_contests(seeds)}


def role(agent: str) -> Role:
    return "paper" if agent in (*PAPER, *OURS) else "control"


def confirmation(seeds: int, load: Load) -> list[Run]:
    """The winners on every task, `spie` as it is frozen; on the chains those tuned there, too."""
    planned = []
    for agent, choice in contests(seeds).items():
        best = named("spie") if agent == "spie" else winner(choice, load)
        for name, task in TASKS.items():
            planned.append(task.run(name, agent, best, choice.confirm, role=role(agent)))
    for (env, agent), choice in chain_contests(seeds).items():
        best = winner(choice, load)
        planned.append(TASKS[env].run(env, agent, best, choice.confirm, role=role(agent), variant=HERE))
    for env, found in STRONGEST.items():
        best = named("sarsa-sr-pr", epsilon=0.01, **found)
        seeds_of = chain_contests(seeds)[env, "sarsa-sr-pr"].confirm
        planned.append(TASKS[env].run(env, "sarsa-sr-pr", best, seeds_of, role="paper", variant=APART))
    return planned


def score(run: Run, trace: Any) -> tuple[str, Array]:
    """For the terminal."""
    return "score, % of what could be had", 100 * TASKS[run.env].score(trace)


register_experiment(
    Experiment(
        "exploration",
        "Which exploration works: spie, controls and the paper's agents tuned alike (not in the paper)",
        functools.partial(section, contests=contests, chain_contests=chain_contests),
        first_runs(every_contest),
        seeds=100,
        then=(second_runs(every_contest), confirmation),
        claims=claims(CONTROLS, PAPER, HERE, APART),
        measure=score,
        long=True,
        ships=functools.partial(section, contests=contests, chain_contests=chain_contests),
    )
)
