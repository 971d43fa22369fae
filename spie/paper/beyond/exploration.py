"""Which exploration works: `spie`, controls and the paper's agents, tuned alike, on tasks that no tuning saw.

Every contender has one setting for all tasks, chosen on the tuning tasks: all settings on 5 seeds, the best five on 20
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
SEEDS, SECOND_SEEDS, FINALISTS = 5, 20, 5

Axes = Mapping[str, Sequence[Any]]
COMMON: Axes = {"gamma": (0.95, 0.99), "epsilon": (0.01, 0.1)}
RATES, BETAS = (0.1, 0.5), (0.001, 0.01, 0.1, 1.0)
CONTROLS = ("bare", "constant", "optimistic start", "count as reward", "count as optimism", "random")
PAPER = ("sarsa-sr", "sarsa-fr", "sarsa-srr", "sarsa-sr-pr")
OURS = ("spie",)


def grids() -> dict[str, tuple[tuple[Agent, Axes], ...]]:
    """The settings that are tried for each contender: what they have in common, and what varies."""
    bonus = {"alpha": RATES, "beta": BETAS, **COMMON}
    found: dict[str, tuple[tuple[Agent, Axes], ...]] = {
        "spie": (
            (Planner(), {"curiosity": (0.25, 0.5, 1.0, 2.0), "optimism": (1.0, 3.0), "prior": (0.25, 0.5, 1.0)}),
            *(
                (Planner(cost=cost), {"cost_weight": (0.02, 0.1), "curiosity": (0.5, 1.0)})
                for cost in ("sr-column", "pr-column", "count")
            ),
        ),
        "bare": ((Sarsa(reward="none"), {"alpha": (0.05, 0.1, 0.25, 0.5), **COMMON}),),
        "constant": ((Sarsa(reward="constant"), bonus),),
        "optimistic start": ((Sarsa(reward="none"), {"alpha": RATES, "q0": (0.1, 1.0, 10.0, 100.0), **COMMON}),),
        "count as reward": tuple((Sarsa(reward="count", q0=q0), bonus) for q0 in (0.0, 1.0)),
        "random": ((Sarsa(reward="none", epsilon=1.0), {}),),
    }
    found |= {agent: ((named(agent), bonus),) for agent in PAPER}
    return found | _newer_options(bonus)


def _newer_options(bonus: Axes) -> dict[str, tuple[tuple[Agent, Axes], ...]]:
    """Contenders that need options of Sarsa which came later."""
    known = {field.name for field in dataclasses.fields(Sarsa)}
    found: dict[str, tuple[tuple[Agent, Axes], ...]] = {}
    if {"optimism", "count"} <= known:
        made: Any = functools.partial(Sarsa, reward="none")
        axes = {"alpha": RATES, "optimism": (0.1, 1.0, 10.0, 100.0), **COMMON}
        found["count as optimism"] = ((made(optimism=1.0, count="visits"), axes),)
    return found


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
                axes = tuple(axis for axis in tried[0].axes if not axis[0].endswith("_pr"))
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
        claims=claims(CONTROLS, PAPER, HERE),
        measure=score,
        long=True,
        ships=functools.partial(section, contests=contests, chain_contests=chain_contests),
    )
)
