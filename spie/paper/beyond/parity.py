"""Parity: our DQN against that of Stable-Baselines3 with the same layers and settings, both against a random player.

Equal means that the 95 % interval of the ratio of mean returns over the last tenth of the steps lies in [.8, 1.25].
Every seed is a run of its own, so that what is finished counts, ships, and grows over several machines; where agents
have unlike many seeds all of them count. A run of ours goes on from its checkpoints, one of theirs begins again.
What is not equal: it draws its own random numbers, and halves the square of small errors (Adam hardly sees a factor).
"""

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.agents.base import Agent, Request
from spie.agents.registry import agent as named
from spie.files import replacing
from spie.paper.experiment import Experiment
from spie.paper.measures import ratio
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.rules import SIMILAR
from spie.paper.sections import (
    CurvePanels,
    Look,
    Panel,
    SectionPart,
    Table,
    Text,
    agent_row,
    between,
    mean_curve,
    number,
)
from spie.runs.run import Role, Run
from spie.tasks.base import Kind, check_kind
from spie.tasks.registry import task as known_task
from spie.trace import Trace, curve_of_episodes

FEW_SEEDS = 5  # from here on a verdict stands alone: of three values a bootstrap knows little more than their range
FRAMES = 500_000  # of a game of MinAtar; others have their share of it


class Game(NamedTuple):
    """How a game is played."""

    share: float = 1.0  # of the frames
    seeds: int = 5  # at most
    network: str = "minatar"
    settings: Mapping[str, Any] = {}  # of both agents, beside `SHARED`
    task: Mapping[str, Any] = {}  # options


GAMES = {
    # Without a bonus an agent must meet the goal by chance before it can learn: in episodes of 200 steps, with as few
    # random actions as elsewhere, neither agent ever learned.
    "four-rooms": Game(0.12, 5, "small", {"epsilon_fraction": 0.5}, {"max_steps": 500}),
    "minatar/breakout": Game(),
    "minatar/freeway": Game(),
    "minatar/asterix": Game(),
    "freeway": Game(0.6, 2, "nature", {"stack": 4}),
}
SHARED: dict[str, Any] = {  # what both agents are given
    "rate": 2.5e-4, "eps": 1e-6, "gamma": 0.99, "batch": 32, "train_every": 4, "target_every": 1000, "epsilon": 0.05,
    "epsilon_fraction": 0.1, "replay": 100_000, "stack": 1,
}  # fmt: skip


@dataclass(frozen=True)
class SB3Images(Agent[Trace]):
    """DQN of Stable-Baselines3 on an image task."""

    kind: ClassVar[Kind] = "images"
    resumable: ClassVar[bool] = True

    network: str
    stack: int
    learning_starts: int
    rate: float
    eps: float
    gamma: float
    batch: int
    train_every: int
    target_every: int
    epsilon: float
    epsilon_fraction: float
    replay: int

    def require(self) -> None:
        from spie.dropin import sb3_agents  # noqa: F401  # says what is to be installed

    def execute(self, request: Request) -> Trace:
        """Seed after seed on one thread; with a folder in the session, a seed that is done is kept there."""
        check_kind(request.task, "images", "SB3Images")
        request.refuse("SB3Images", "episodes", "replay", "keep.matrices", "keep.snapshots", "keep.paths")
        session, lanes, found = request.session, request.seed_array.tolist(), []
        for i, seed in enumerate(lanes):
            found.append(self._kept(request.task, request.steps, seed, session.folder))
            if session.progress is not None:
                session.progress((i + 1) / len(lanes))
        return _trace(lanes, request.steps, found)

    def _kept(self, task: Any, steps: int, seed: int, folder: Path | None) -> NDArray[np.float64]:
        """Episodes [n, 3] of one seed: steps, reward, whether it was truncated."""
        done = None if folder is None else Path(folder) / f"seed-{seed}.npy"
        if done is not None and done.exists():
            return np.asarray(np.load(done, allow_pickle=False))
        played = self._episodes(task, steps, seed)
        if done is not None:
            done.parent.mkdir(parents=True, exist_ok=True)
            with replacing(done) as file:
                np.save(file, played, allow_pickle=False)
        return played

    def _episodes(self, task: Any, steps: int, seed: int) -> NDArray[np.float64]:
        from spie.agents.dqn.hardware import on_threads  # loads torch
        from spie.dropin.sb3_agents import image_dqn

        model = image_dqn(
            lambda: StackedImages(task, self.stack),
            self.network,
            seed,
            eps=self.eps,
            learning_rate=self.rate,
            gamma=self.gamma,
            batch_size=self.batch,
            train_freq=self.train_every,
            target_update_interval=self.target_every,
            exploration_final_eps=self.epsilon,
            exploration_fraction=self.epsilon_fraction,
            buffer_size=min(self.replay, steps),
            learning_starts=self.learning_starts,
            max_grad_norm=1e9,  # ours has no limit
        )
        episodes: list[tuple[float, float, float]] = []
        now = [0, 0.0]

        def note(local: dict[str, Any], _: dict[str, Any]) -> bool:
            now[0] += 1
            now[1] += float(local["rewards"][0])
            if local["dones"][0]:
                episodes.append((now[0], now[1], float(local["infos"][0].get("TimeLimit.truncated", False))))
                now[:] = 0, 0.0
            return True

        with on_threads(1):
            model.learn(steps, callback=note)
        return np.array(episodes, np.float64).reshape(-1, 3)

    def seconds_per_step(self, task: Any) -> float:
        return {"nature": 0.02, "small": 1.2e-3, "minatar": 1.2e-3}[self.network]

    def memory(self, task: Any, steps: int, seeds: int) -> int:
        """Two stacks of frames for every step."""
        height, width = task.shape
        return int(2 * self.stack * height * width * min(self.replay, steps))


class StackedImages(gym.Env[NDArray[np.uint8], Any]):
    """One copy of an image task as agents of other libraries want it: images uint8 [stack * planes, H, W]."""

    def __init__(self, task: Any, stack: int) -> None:
        self.env, self.stack, self.planes = task.make(1), stack, task.planes
        height, width = task.shape
        self.observation_space = gym.spaces.Box(0, 255, (stack * self.planes, height // self.planes, width), np.uint8)
        self.action_space = gym.spaces.Discrete(int(self.env.single_action_space.n))
        self._frames: deque[NDArray[np.uint8]] = deque(maxlen=stack)

    def _observation(self) -> NDArray[np.uint8]:
        return np.stack(self._frames).reshape(self.observation_space.shape or ())

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        super().reset(seed=seed)
        frames, _ = self.env.reset(seed=None if seed is None else [seed])
        self._frames.extend([frames[0]] * self.stack)
        return self._observation(), {}

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        frames, rewards, terminated, truncated, _ = self.env.step(np.array([int(action)]))
        self._frames.append(frames[0])
        return self._observation(), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), {}


def _trace(seeds: list[int], steps: int, found: list[NDArray[np.float64]]) -> Trace:
    n, most = len(seeds), max(1, *map(len, found))
    whole = np.zeros((n, most, 3))
    for row, played in zip(whole, found, strict=True):
        row[: len(played)] = played
    none = np.zeros((n, 0), np.int32)
    return Trace(
        seeds=np.array(seeds, np.int64),
        total_reward=whole[..., 1].sum(axis=1),
        total_bonus=np.zeros(n),
        steps=np.full(n, steps),
        visits=none,
        first_visit=none,
        episode_steps=whole[..., 0].astype(np.int32),
        truncated=whole[..., 2].sum(axis=1).astype(np.int32),
        snapshots=np.zeros((n, 0, 0), np.int32),
        episode_rewards=whole[..., 1],
        reward_curve=np.array([curve_of_episodes(np.cumsum(one[:, 0]), one[:, 1], steps) for one in found]),
    )


# The runs


def runs(seeds: int, frames: int = FRAMES) -> list[Run]:
    """On every game, seed by seed, our agent, theirs, and a random player; games that take long have fewer seeds."""
    planned = []
    for env, game in GAMES.items():
        task = known_task(env, "images", **game.task)
        steps = max(200, int(game.share * frames) // task.frame_skip)
        settings = SHARED | {"network": game.network, "learning_starts": min(1000, steps // 10)} | dict(game.settings)
        same: dict[str, Any] = {"preset": "small", "reconstruction": False, "target": "periodic"}
        ours = named("dqn", **same | settings)
        idle = named("dqn", **same | settings | {"learning_starts": steps + 1})
        agents: dict[str, Agent[Any]] = {"dqn": ours, "dqn of SB3": SB3Images(**settings), "random": idle}
        for seed in range(min(seeds, game.seeds)):
            for name, agent in agents.items():
                role: Role = "control" if agent is idle else "paper"
                planned.append(Run(env, name, agent, task, steps, (seed,), role=role))
    return planned


def late_return(trace: Trace) -> NDArray[np.float64]:
    """Mean reward of the episodes that end in the last tenth of the steps [seeds]; 0 where none does."""
    assert trace.episode_rewards is not None
    ends = np.cumsum(trace.episode_steps, axis=1)
    late = (trace.episode_steps > 0) & (ends > 0.9 * trace.steps[:, None])
    return np.asarray((late * trace.episode_rewards).sum(axis=1) / np.maximum(late.sum(axis=1), 1))


def return_curve(trace: Trace, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean reward of the last 20 episodes that ended by each of the given steps [seeds, len(steps)]."""
    assert trace.episode_rewards is not None
    curves = np.zeros((len(trace.seeds), len(steps)))
    for curve, lengths, rewards in zip(curves, trace.episode_steps, trace.episode_rewards, strict=True):
        total = np.concatenate([[0.0], np.cumsum(rewards[lengths > 0])])
        n = np.searchsorted(np.cumsum(lengths[lengths > 0]), steps, side="right")
        first = np.maximum(n - 20, 0)
        curve[:] = (total[n] - total[first]) / np.maximum(n - first, 1)
    return curves


def verdict(ours: NDArray[np.float64], theirs: NDArray[np.float64], random: NDArray[np.float64]) -> tuple[str, str]:
    """The ratio with its interval, and what follows from it."""
    found = ratio("", ours, theirs, **SIMILAR)
    if not theirs.any():
        shown = "no ratio, theirs is 0"
    elif math.isnan(found.low):  # among the seeds that a bootstrap draws theirs may all be 0
        shown = f"{found.value:.2f}, without an interval"
    else:
        shown = f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    if len(ours) < 2 or len(theirs) < 2:
        return shown, "one seed decides nothing"
    if min(stats.difference(x, random)[1] for x in (ours, theirs)) <= 0:
        return shown, "not clearly above a random player"
    if found.outcome == "undecided":
        return shown, "undecided: the interval crosses .8 or 1.25"
    n = min(len(ours), len(theirs))
    few = f" by {n} seeds, whose interval is too narrow" * (n < FEW_SEEDS)
    return shown, {"holds": "equal", "fails": "not equal"}[found.outcome] + few


# The page


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Whether the two are equal, curves of all games, and the numbers."""
    columns = ("agent", "game", "return in the last tenth", "95 % interval", "steps", "n")
    panels, rows, lines = [], [], []
    for env, cells in results.found(experiment.key).items():
        panels.append(_panel(env, cells))
        values = {name: late_return(one.trace) for name, one in cells.items()}
        three = [values[name] for name in ("dqn", "dqn of SB3", "random") if name in values]
        lines.append(f"{env}: {', '.join(verdict(*three)) if len(three) == 3 else 'unfinished'}.")  # what ships may be
        for name, (run, _) in cells.items():
            e = stats.estimate(values[name])
            cell = (name, env, number(e.mean, 2), between(e.low, e.high, 2), number(run.steps), e.n)
            rows.append(agent_row(cell, run.role == "control"))
    says = Text("Our return over that of Stable-Baselines3, last tenth of the steps, 95 % interval", lines)
    caption = "Same layers and settings; mean reward of the last 20 episodes, mean over seeds and 95 % interval"
    return [says, CurvePanels(caption, panels), Table("Parity with Stable-Baselines3", columns, rows, texts=2)]


LOOKS = {"dqn of SB3": Look("dqn", "of SB3")}


def _panel(env: str, cells: Mapping[str, Stored]) -> Panel:
    x = np.linspace(0, next(iter(cells.values())).run.steps, 101)
    curves = {name: mean_curve(x, return_curve(one.trace, x), LOOKS.get(name)) for name, one in cells.items()}
    return Panel(env, curves, "steps", "return")


def measured(run: Run, trace: Any) -> tuple[str, NDArray[np.float64]]:
    return "mean return of the episodes in the last tenth", late_return(trace)


register_experiment(
    Experiment(
        "parity",
        "Our DQN against Stable-Baselines3's (not in the paper)",
        section,
        runs,
        seeds=5,
        measure=measured,
        long=True,
        on="processes",
        frames=FRAMES,
        ships=section,
        grows=True,
    )
)
