"""Figure 4: Q-learning on random Fourier features, with the paper's settings and with those that keep the flag."""

import dataclasses
from typing import Any

from spie.agents.linear_q.settings import LinearQ
from spie.agents.registry import agent as named
from spie.paper import published as paper
from spie.runs.run import Run
from spie.tasks import mountain_car, pendulum

TASKS = {"mountain-car": mountain_car, "pendulum": pendulum}
CAP = {"mountain-car": 1000, "pendulum": 200}  # steps of an episode
AGENTS = ("linear-q", "linear-q-sf", "linear-q-sf-pf")

# The paper's beta of 1000 drowns the reward at the flag, which is 1: agents find the flag and lose it again. Each agent
# gets the same search over smaller ones, on seeds that are used for nothing else; the best is shown on the usual seeds.
SMALL_BETAS = (0.01, 0.001, 0.0001)
TUNED = ("linear-q-sf", "linear-q-sf-pf", "constant", "count")
TUNING, TUNING_SEEDS, TUNING_EPISODES = "mountain-car/tuning", tuple(range(10**6, 10**6 + 5)), 300
PENDULUM_EPISODES = 300


def settings(agent: str, **changes: Any) -> LinearQ:
    """An agent, or a control, with the paper's settings for MountainCar."""
    if agent in AGENTS:
        s: LinearQ = named(agent, **paper.MOUNTAIN_CAR | changes)
        return s
    control = {"reward": "none", "epsilon": 1.0} if agent == "random" else {"reward": agent}
    return LinearQ(**paper.MOUNTAIN_CAR | control | changes)


def readings() -> dict[str, LinearQ]:
    """SF-PF under the other readings: eq. 16 as printed, its other sign, norms in place of reciprocals."""
    name = "linear-q-sf-pf"
    return {
        f"{name} printed": dataclasses.replace(settings(name), reward="sf-pf-printed"),
        f"{name} sign": settings(name, beta=-paper.MOUNTAIN_CAR["beta"]),
        f"{name} norms": dataclasses.replace(settings(name), reward="sf-pf-norms"),
    }


def small_betas() -> dict[str, LinearQ]:
    """By "agent beta=value"."""
    return {f"{agent} beta={beta:g}": settings(agent, beta=beta) for agent in TUNED for beta in SMALL_BETAS}


def figure_4(seeds: int) -> list[Run]:
    """MountainCar for 1000 episodes, the search over beta, and a pendulum to show that it is not one task."""
    controls = {name: settings(name) for name in ("constant", "count", "random")}
    agents = {name: settings(name) for name in AGENTS} | readings() | controls | small_betas()
    swings = {name: agents[name] for name in (*AGENTS, *controls)}
    swings |= {f"{name} beta=0.01": agents[f"{name} beta=0.01"] for name in TUNED}
    return [
        *(_run("mountain-car", agent, s, seeds, paper.MOUNTAIN_CAR_EPISODES) for agent, s in agents.items()),
        *(_run(TUNING, agent, s, TUNING_SEEDS, TUNING_EPISODES) for agent, s in small_betas().items()),
        *(_run("pendulum", agent, s, seeds, PENDULUM_EPISODES) for agent, s in swings.items()),
    ]


def _run(env: str, agent: str, s: LinearQ, seeds: Any, episodes: int) -> Run:
    task = env.partition("/")[0]
    return Run(env, agent, s, TASKS[task](), CAP[task], seeds, episodes=episodes)
