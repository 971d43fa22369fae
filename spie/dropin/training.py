"""Other people's agents, trained seed by seed on an environment with a bonus: Q-learning as anyone writes it.

Those of Stable-Baselines3, and a user's own, are in `spie.dropin.made_agents`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spie.agents.base import Agent, Request
from spie.dropin.distillation import require_torch
from spie.dropin.gymnasium import IntrinsicReward
from spie.dropin.observations import reader
from spie.dropin.scale import Account
from spie.dropin.settings import Ends, Settings
from spie.dropin.spaces import numbering
from spie.dropin.teacher import NAMES as TEACHERS
from spie.features import fourier_features
from spie.rewards import REWARDS
from spie.trace import ACCOUNT, EpisodeTrace

BARE = "none"
NEARLY = 1e-9  # actions within it of the best are equally good


class PlayedEpisode(NamedTuple):
    """An episode that was played to its end."""

    steps: int
    reward: float  # of the environment
    bonus: float  # before beta
    terminated: bool


class Played(NamedTuple):
    """What a seed left."""

    episodes: list[PlayedEpisode]
    under_way: tuple[int, float] = (0, 0.0)  # steps and reward of the one that the end of the run broke off
    account: Account | None = None


class SeedBySeed(Agent[EpisodeTrace]):
    """An agent of other people's, which knows one seed at a time."""

    def train(self, task: Any, steps: int, seed: int) -> Played:
        """All that a seed plays within its steps."""
        raise NotImplementedError

    def execute(self, request: Request) -> EpisodeTrace:
        """One seed after another; `session` reports how many are done, and there is one thread."""
        request.refuse(type(self).__name__, "episodes", "replay", "keep.matrices", "keep.snapshots", "keep.paths")
        seeds, progress, played = request.seed_array, request.session.progress, []
        for seed in seeds.tolist():
            played.append(self.train(request.task, request.steps, seed))
            if progress is not None:
                progress(len(played) / len(seeds))
        n = max(1, *(len(one.episodes) for one in played))  # episodes that a seed did not play are 0
        whole = np.zeros((len(played), n, 4))
        for row, one in zip(whole, played, strict=True):
            row[: len(one.episodes)] = np.array(one.episodes).reshape(-1, 4)
        return EpisodeTrace(
            repr(self),
            seeds,
            whole[..., 0].astype(np.int32),
            whole[..., 1],
            whole[..., 2],
            whole[..., 3].astype(np.bool_),
            np.full(len(seeds), -1),
            under_way=np.array([one.under_way for one in played], np.float64),
            account=np.array([[0.0] * len(ACCOUNT) if one.account is None else one.account.numbers for one in played]),
        )


@dataclass(frozen=True)
class PlainQ(SeedBySeed):
    """Q-learning as anyone writes it, on a table or on Fourier features; it knows nothing of the bonus."""

    reward: str
    beta: float
    alpha: float = 0.5
    gamma: float = 0.99
    epsilon: float = 0.1  # falls to 0 in the course of a run, as beta does
    ends: Ends = Settings.ends
    start: float = 0.0  # of Q, in tables

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,) if self.reward in REWARDS else ()

    def require(self) -> None:
        if self.reward == "rnd":
            require_torch()

    def train(self, task: Any, steps: int, seed: int) -> Played:
        env, account = with_bonus(task.make(), self, steps)
        if not isinstance(env.action_space, gym.spaces.Discrete):
            raise ValueError(f"q-learning needs actions that can be counted, not {env.action_space}; take --agent ppo")
        states = numbering(env.observation_space)
        if states is not None:
            return self._on_a_table(env, states.n, states.number, account, steps, seed)
        return self._on_features(env, account, steps, seed)

    def _on_a_table(self, env: Any, n: int, number: Any, account: Account | None, steps: int, seed: int) -> Played:
        n_actions, first = int(env.action_space.n), int(env.action_space.start)
        rng = np.random.default_rng(seed)
        draw, pick = rng.random, rng.integers
        Q = [[self.start] * n_actions for _ in range(n)]
        log = Log()
        s = number(env.reset(seed=seed)[0])
        for t in range(steps):
            values = Q[s]
            if draw() < self.epsilon * (1 - t / steps):
                a = int(pick(n_actions))
            else:
                least = max(values) - NEARLY
                best = [b for b, value in enumerate(values) if value >= least]
                a = best[pick(len(best))]
            observation, r, terminated, truncated, info = env.step(first + a)
            s_next = number(observation)
            target = r if terminated else r + self.gamma * max(Q[s_next])
            values[a] += self.alpha * (target - values[a])
            s = s_next
            if log.step(r, terminated, truncated, info):
                s = number(env.reset()[0])
        return Played(log.episodes, log.under_way, account)

    def _on_features(self, env: Any, account: Account | None, steps: int, seed: int) -> Played:
        n_actions, first, space = int(env.action_space.n), int(env.action_space.start), env.observation_space
        is_box = isinstance(space, gym.spaces.Box) and len(space.shape) == 1
        phi_of = fourier_features(space) if is_box else reader("q-learning", space, None).read
        rng = np.random.default_rng(seed)
        log = Log()
        phi = phi_of(env.reset(seed=seed)[0])
        Q = np.zeros((n_actions, len(phi)))
        for t in range(steps):
            values = Q @ phi
            best = np.flatnonzero(values >= values.max() - NEARLY)
            a = int(rng.integers(n_actions) if rng.random() < self.epsilon * (1 - t / steps) else rng.choice(best))
            observation, r, terminated, truncated, info = env.step(first + a)
            phi_next = phi_of(observation)
            target = r + self.gamma * (not terminated) * (Q @ phi_next).max()
            Q[a] += self.alpha * (target - values[a]) * phi
            phi = phi_next
            if log.step(r, terminated, truncated, info):
                phi = phi_of(env.reset()[0])
        return Played(log.episodes, log.under_way, account)

    def seconds_per_step(self, task: Any) -> float:
        return 1e-5 if task.kind == "table" else 4e-5

    def size_of_step(self, task: Any) -> float:
        return 2e-5 if task.kind == "table" else 1.2e-4


class Log:
    """The episodes of a loop, by what the environment itself paid."""

    def __init__(self) -> None:
        self.episodes: list[PlayedEpisode] = []
        self.length, self.own, self.added = 0, 0.0, 0.0

    def step(self, r: float, terminated: bool, truncated: bool, info: dict[str, Any]) -> bool:
        """Note a step; whether it was the last of an episode."""
        self.length += 1
        self.own += info.get("extrinsic_reward", r)
        self.added += info.get("intrinsic_reward", 0.0)
        if not (terminated or truncated):
            return False
        self.episodes.append(PlayedEpisode(self.length, self.own, self.added, bool(terminated)))
        self.length, self.own, self.added = 0, 0.0, 0.0
        return True

    @property
    def under_way(self) -> tuple[int, float]:
        return self.length, self.own


def options_of(agent: Any, steps: int) -> dict[str, Any]:
    """The arguments of a wrapper for an agent: a beta that falls to 0 within its steps, but for a teacher's pay."""
    neutral = {"ends": agent.ends, "gamma": agent.gamma} if agent.ends == "neutral" else {}
    return {
        "reward": agent.reward,
        "beta": agent.beta,
        "anneal": None if agent.reward in TEACHERS else steps,
        **neutral,
    }


def with_bonus(env: gym.Env[Any, Any], agent: Any, steps: int) -> tuple[gym.Env[Any, Any], Account | None]:
    """The environment with an agent's bonus, and the account of what that pays; as it is where there is no bonus."""
    if agent.reward == BARE:
        return env, None
    wrapped = IntrinsicReward(env, **options_of(agent, steps))
    wrapped.bonus.account = Account()
    return wrapped, wrapped.bonus.account
