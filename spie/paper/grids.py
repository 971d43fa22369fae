"""Figures 1, 3, 6 and 7: exploration and goal tasks in grid worlds."""

import dataclasses

from spie.agents.base import Keep
from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.runs.run import Run
from spie.tasks import grid

COVERAGE_MAPS = ("of-small", "cluster-simple", "cluster-hard", "of-large")
GOAL_MAPS = ("of-small", "cluster-hard")
TRANSIENT_MAP = "cluster-simple-large"
EPISODES = {"goal": 100, "moving-goal": 180}
EPISODE_CAP = 5_000
RECORDED = tuple(range(20))  # seeds of Figure 6 whose every step is kept, for room switches and the animation


def settings(agent: str) -> Sarsa:
    """An agent with the paper's one setting for all grid worlds."""
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


def optimistic(agent: str, bound: float | None = None) -> Sarsa:
    """Q starts at 1 / (1 - gamma), as in the paper, or at the most that a bonus of up to `bound` can add up to."""
    s = settings(agent)
    return dataclasses.replace(s, q0=(1.0 if bound is None else s.beta * bound) / (1 - s.gamma))


def bonus_bound(agent: str) -> float:
    """The most r_SR or r_FR can pay: a first visit pays 1 / eta; |F[s, :]| <= |M[s, :]| <= 1 / (1 - gamma_FR)."""
    s = settings(agent)
    return 1 / s.eta if s.reward == "sr" else 1 / (1 - s.gamma_sr)


def figure_1(seeds: int) -> list[Run]:
    """Pure exploration: states seen against steps, with learned and with fixed representations."""
    learned = ("sarsa", "sarsa-sr", "sarsa-fr", "sarsa-srr")
    agents = {name: settings(name) for name in (*learned, *(f"{name}-fixed" for name in learned[1:]))} | controls()
    return [
        Run(name, agent, s, grid(name), paper.COVERAGE_STEPS, seeds)
        for name in COVERAGE_MAPS
        for agent, s in agents.items()
    ]


def figure_3(seeds: int) -> list[Run]:
    """Goal tasks, with the goal in one place and with the goal moving; `env` is map/task."""
    agents = {name: settings(name) for name in ("sarsa", "sarsa-sr", "sarsa-srr")} | controls()
    del agents["optimistic"]  # no reward is above 0 here, so plain SARSA's Q = 0 is optimistic already
    return [
        Run(f"{name}/{task}", agent, s, grid(name, task=task), EPISODE_CAP, seeds, episodes=EPISODES[task])
        for name in GOAL_MAPS
        for task in ("goal", "moving-goal")
        for agent, s in agents.items()
    ]


def figure_6(seeds: int) -> list[Run]:
    """Where the agents are, and how they move between the two rooms."""
    learned = ("sarsa-sr", "sarsa-fr", "sarsa-srr")
    agents = {name: settings(name) for name in (*learned, *(f"{name}-fixed" for name in learned))} | controls()
    return [
        Run(
            TRANSIENT_MAP,
            agent,
            s,
            grid(TRANSIENT_MAP),
            paper.FIGURE_6_STEPS[-1],
            seeds,
            keep=Keep(snapshots=paper.FIGURE_6_STEPS, paths=tuple(seed for seed in RECORDED if seed < seeds)),
        )
        for agent, s in agents.items()
    ]


def figure_7(seeds: int) -> list[Run]:
    """Figure 1 with optimistic starts for SARSA-SR and SARSA-FR."""
    agents = {name: settings(name) for name in ("sarsa", "sarsa-srr")}
    for name in ("sarsa-sr", "sarsa-fr"):
        agents[f"{name}-optimistic"] = optimistic(name)
        agents[f"{name}-optimistic-bound"] = optimistic(name, bonus_bound(name))
    agents |= controls()
    return [
        Run(name, agent, s, grid(name), paper.COVERAGE_STEPS, seeds)
        for name in COVERAGE_MAPS
        for agent, s in agents.items()
    ]
