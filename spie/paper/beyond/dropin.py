"""Drop-in use: other people's agents on sparse tasks, bare, with a bonus, with a constant cost, and with counts.

A plain loop of Q-learning and a DQN of Stable-Baselines3, each on an environment wrapped in `IntrinsicReward`. No
agent is tuned on its own: what they share was settled on a few trial runs, and of beta three values are shown.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from spie.agents.base import Agent
from spie.dropin.made_agents import SB3DQN
from spie.dropin.training import PlainQ
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import Row, SectionPart, Table, Text, number, percent
from spie.runs.run import Role, Run
from spie.tasks.base import Kind
from spie.tasks.mdp import MDPEnv
from spie.tasks.pixels import deep_sea
from spie.trace import EpisodeTrace

LAST, ENOUGH = 10, 8  # a seed has solved a task if that many of its last episodes reached the goal
GOAL = 0.5  # an episode that pays more has reached it
BETAS = (0.1, 0.01, 0.001)
STEPS = 20_000
CONTROLS = ("constant", "count")


@dataclass(frozen=True)
class GoalTask:
    """A Gymnasium environment by name, that pays 1 at a goal and (nearly) nothing elsewhere."""

    id: str
    options: tuple[tuple[str, Any], ...] = ()
    depth: int = 0  # of DeepSea
    kind: Kind = field(default="table", repr=False)  # it follows from the id, and is no part of the digest

    @property
    def name(self) -> str:
        return self.id

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self).encode()).hexdigest()[:24]

    def make(self) -> gym.Env[Any, Any]:
        return MDPEnv(deep_sea(self.depth)) if self.depth else gym.make(self.id, **dict(self.options))


TASKS = {
    "frozen-lake": GoalTask("FrozenLake-v1", (("map_name", "8x8"), ("is_slippery", False))),
    "deep-sea": GoalTask("deep-sea", depth=20),
    "mountain-car": GoalTask("spie/SparseMountainCar-v0", kind="continuous"),
    "mountain-car, DQN": GoalTask("spie/SparseMountainCar-v0", kind="continuous"),
}


def found(trace: EpisodeTrace) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Steps until the goal was reached for the first time [seeds]; -1 for never."""
    reached = trace.episode_rewards > GOAL
    steps = np.cumsum(trace.episode_steps, axis=1)
    return np.where(reached.any(axis=1), steps[np.arange(len(steps)), reached.argmax(axis=1)], -1)


def solved(trace: EpisodeTrace) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether most of the last episodes reached the goal [seeds]."""
    played = (trace.episode_steps > 0).sum(axis=1)
    reached = trace.episode_rewards > GOAL
    return np.array([row[max(0, n - LAST) : n].sum() >= ENOUGH for row, n in zip(reached, played, strict=True)])


def runs(seeds: int) -> list[Run]:
    """Q-learning with every scale of every bonus; DQN with one, for it takes longer."""
    planned = []
    for env, bonus, alpha in (("frozen-lake", "sr-r", 0.5), ("deep-sea", "sr-r", 0.5), ("mountain-car", "sf-pf", 0.1)):
        planned.append(_run(env, "bare", PlainQ("none", 0.0, alpha), seeds))
        for reward in (bonus, *CONTROLS):
            planned += [_run(env, reward, PlainQ(reward, beta, alpha), seeds, beta=beta) for beta in BETAS]
    planned.append(_run("mountain-car, DQN", "bare", SB3DQN("none", 0.0), seeds))
    for reward in ("sf-pf", *CONTROLS):
        planned.append(_run("mountain-car, DQN", reward, SB3DQN(reward, 0.01), seeds, beta=0.01))
    return planned


def _run(env: str, agent: str, s: Agent[Any], seeds: int, **variant: Any) -> Run:
    role: Role = "control" if agent in CONTROLS else "paper"
    return Run(env, agent, s, TASKS[env], STEPS, seeds, role=role, variant=variant)


def rewarded(run: Run, trace: Any) -> tuple[str, Any]:
    """For the terminal."""
    return "total reward", trace.episode_rewards.sum(axis=1)


SAID = (
    f"A seed has solved a task if {ENOUGH} of its last {LAST} episodes reached the goal. Beta falls to 0 in the course "
    "of a run, and so does epsilon of Q-learning. At the goal: share of all episodes.",
    "A cost makes an agent try what it has not tried, and it makes the end of an episode worth having: on the frozen "
    "lake, where holes end episodes, agents that pay for every step learn to fall in.",
)


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Seeds that solved each task, and how soon the goal was found."""
    columns = ("agent", "seeds that solved it", "seeds that found the goal", "steps until then, median", "at the goal")
    parts: list[SectionPart] = []
    for env, cells in results.found(experiment.name).items():
        rows = []
        for name, (run, trace) in cells.items():
            first = found(trace)
            soon = number(float(np.median(first[first >= 0])), 0) if (first >= 0).any() else None
            share = percent(float((trace.episode_rewards > GOAL).sum() / (trace.episode_steps > 0).sum()), 1)
            values = (name, f"{solved(trace).sum()} of {run.n_seeds}", int((first >= 0).sum()), soon, share)
            rows.append(Row(values, "control" if run.role == "control" else ""))
        parts.append(Table(f"{env}: {number(run.steps)} steps per seed", columns, rows))
    return [*parts, Text("How to read it", SAID)]


register_experiment(
    Experiment(
        "dropin",
        "Other people's agents with a bonus (not in the paper)",
        section,
        runs,
        seeds=10,
        measure=rewarded,
        long=True,
    )
)
