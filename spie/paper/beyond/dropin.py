"""Drop-in use: other people's agents on sparse tasks, bare, with a bonus, with a constant cost, and with counts.

A plain loop of Q-learning and a DQN of Stable-Baselines3, each on an environment wrapped in `IntrinsicReward`. No
agent is tuned on its own: what they share was settled on a few trial runs, and of beta three values are shown.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np

from spie.agents.base import Agent, Keep, Replay, Seeds, Session, changed, refuse
from spie.dropin.gymnasium import IntrinsicReward
from spie.features import fourier_features
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

    kind: ClassVar[Kind] = "table"

    id: str
    options: tuple[tuple[str, Any], ...] = ()
    depth: int = 0  # of DeepSea

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
    "mountain-car": GoalTask("spie/SparseMountainCar-v0"),
    "mountain-car, DQN": GoalTask("spie/SparseMountainCar-v0"),
}


Episode = tuple[int, float, float, bool]  # steps, reward, bonus, whether it ended by itself


class SeedBySeed(Agent):
    """An agent of other people's, which knows one seed at a time."""

    def episodes_of(self, task: GoalTask, steps: int, seed: int) -> list[Episode]:
        """Every episode that a seed finishes within its steps."""
        raise NotImplementedError

    def run(
        self,
        task: GoalTask,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> EpisodeTrace:
        """One seed after another; `session` reports how many are done, and there is one thread."""
        refuse(type(self).__name__, episodes=episodes, replay=replay, **changed(keep))
        return _trace(self, seeds, session, lambda seed: self.episodes_of(task, steps, seed))


@dataclass(frozen=True)
class PlainQ(SeedBySeed):
    """Q-learning as anyone writes it, on a table or on Fourier features; it knows nothing of the bonus."""

    reward: str
    beta: float
    alpha: float = 0.5
    gamma: float = 0.99
    epsilon: float = 0.1  # falls to 0 in the course of a run, as beta does

    def episodes_of(self, task: GoalTask, steps: int, seed: int) -> list[Episode]:
        env = IntrinsicReward(task.make(), self.reward, self.beta, anneal=steps)
        space, n_actions = env.observation_space, int(env.action_space.n)  # type: ignore[attr-defined]
        phi_of = np.eye(int(space.n)).__getitem__ if isinstance(space, gym.spaces.Discrete) else fourier_features(space)
        rng = np.random.default_rng(seed)
        episodes: list[Episode] = []
        phi = phi_of(env.reset(seed=seed)[0])
        Q = np.zeros((n_actions, len(phi)))
        length, own, added = 0, 0.0, 0.0
        for t in range(steps):
            values = Q @ phi
            best = np.flatnonzero(values >= values.max() - 1e-9)
            a = int(rng.integers(n_actions) if rng.random() < self.epsilon * (1 - t / steps) else rng.choice(best))
            observation, r, terminated, truncated, info = env.step(a)
            phi_next = phi_of(observation)
            target = r + self.gamma * (not terminated) * (Q @ phi_next).max()
            Q[a] += self.alpha * (target - values[a]) * phi
            phi, length = phi_next, length + 1
            own, added = own + info["extrinsic_reward"], added + info["intrinsic_reward"]
            if terminated or truncated:
                episodes.append((length, own, added, terminated))
                phi, length, own, added = phi_of(env.reset()[0]), 0, 0.0, 0.0
        return episodes

    def seconds_per_step(self, task: GoalTask) -> float:
        return 1.2e-4 if "Car" in task.id else 5e-5


@dataclass(frozen=True)
class SB3DQN(SeedBySeed):
    """DQN of Stable-Baselines3, with bonuses computed afresh from replay."""

    reward: str
    beta: float
    learning_rate: float = 1e-3
    gamma: float = 0.99
    train_freq: int = 8
    batch_size: int = 64
    target_update_interval: int = 500
    exploration_final_eps: float = 0.05  # from 1, within a tenth of the steps
    hidden: tuple[int, ...] = (64, 64)

    def episodes_of(self, task: GoalTask, steps: int, seed: int) -> list[Episode]:
        from spie.dropin.sb3 import dqn_with_bonus  # loads torch

        model = dqn_with_bonus(
            task.make,
            self.reward,
            self.beta,
            anneal=steps,
            learning_rate=self.learning_rate,
            learning_starts=1000,
            gamma=self.gamma,
            train_freq=self.train_freq,
            batch_size=self.batch_size,
            buffer_size=steps,
            target_update_interval=self.target_update_interval,
            exploration_final_eps=self.exploration_final_eps,
            policy_kwargs={"net_arch": list(self.hidden)},
            device="cpu",
            seed=seed,
        )
        episodes: list[Episode] = []

        def note(local: dict[str, Any], _: dict[str, Any]) -> bool:
            (info,) = local["infos"]
            if "episode" in info:
                truncated = info.get("TimeLimit.truncated", False)
                episodes.append((info["episode"]["l"], info["episode"]["r"], 0.0, not truncated))
            return True

        model.learn(steps, callback=note)
        return episodes

    def seconds_per_step(self, task: GoalTask) -> float:
        return 6e-4


def _each(seeds: Seeds) -> Sequence[int]:
    return range(seeds) if isinstance(seeds, int) else seeds


def _trace(settings: Agent, seeds: Seeds, session: Session, play: Callable[[int], list[Episode]]) -> EpisodeTrace:
    """Every seed played; episodes that a seed did not play are 0."""
    played = []
    for seed in _each(seeds):
        played.append(np.array(play(seed) or [(0, 0.0, 0.0, False)]))
        if session.progress is not None:
            session.progress(len(played) / len(_each(seeds)))
    whole = np.zeros((len(played), max(map(len, played)), 4))
    for row, episodes in zip(whole, played, strict=True):
        row[: len(episodes)] = episodes
    n_seeds = len(_each(seeds))
    return EpisodeTrace(
        repr(settings),
        np.array(_each(seeds)),
        whole[..., 0].astype(np.int32),
        whole[..., 1],
        whole[..., 2],
        whole[..., 3].astype(np.bool_),
        np.full(n_seeds, -1),
    )


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


def _run(env: str, agent: str, s: Agent, seeds: int, **variant: Any) -> Run:
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
        parts.append(Table(f"{env}: {number(run.steps)} steps a seed", columns, rows))
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
