"""Deep agents: small image tasks, many seeds side by side; Atari (Table 2, Appendix D) within a budget of frames."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Seeds, Session
from spie.agents.dqn.session import memory_for
from spie.agents.dqn.settings import DQN
from spie.agents.registry import agent as named
from spie.paper import published as paper
from spie.runs.run import Run
from spie.tasks.atari import make_atari
from spie.tasks.base import Kind
from spie.tasks.mdp import MDP
from spie.tasks.pixels import make_pixels
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.dqn.networks import Layer

ATARI_SHAPE: tuple[int, int, int] = (4, 84, 84)
PAPER_FRAMES = 10**8
SMALL_TIER, LEAST_FRAMES = 20_000, 1_000
RECON_GAME = "montezuma-revenge"
PIXEL_STEPS = {"four-rooms": 30_000, "cluster-hard": 40_000}
Progress: TypeAlias = Callable[[float], None]
PAPER_BONUS = "dqn-sf-pf paper's bonus"  # its beta, not scaled, clipped
PIXEL_AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")


class _Deep:
    """What deep agents say to `spie.runs.run`: they report, go on from a folder, and may ask for a GPU."""

    agent: DQN
    takes_long: ClassVar[bool] = True

    @property
    def num_gpus(self) -> int:
        return self.agent.num_gpus


@dataclass(frozen=True)
class OnPixels(_Deep):
    """A deep agent on an image task, as the settings of a run."""

    agent: DQN
    task: str
    max_steps: int  # of an episode
    version: ClassVar[int] = 2  # raised when the agent gives other numbers for the same run

    def seconds_per_step(self, task: MDP) -> float:
        """About how long a step of one seed takes on one core, among 20 of them."""
        return 4.6e-4

    def run(self, task: MDP, steps: int, seeds: Seeds = 1, *, session: Session = Session(), **_: Any) -> Trace:
        """All seeds in one process, on one thread: small networks leave a core idle otherwise."""
        from spie.agents.dqn.many_seeds import run_stacked  # loads torch

        n = seeds if isinstance(seeds, int) else len(seeds)
        return run_stacked(
            self.agent, make_pixels(self.task, n, max_steps=self.max_steps), seeds, steps, session.progress
        )


def pixels(seeds: int) -> list[Run]:
    """The paper's five agents and two controls, with the settings for small tasks."""
    agents = {name: named(name, preset="small") for name in PIXEL_AGENTS}
    agents |= {name: named(f"dqn-{name}", preset="small") for name in ("constant", "count")}
    return on_pixels(agents, seeds)


def paper_bonus(seeds: int) -> list[Run]:
    """SF-PF with the bonus as the paper pays it, beside some agents of `pixels`, whose runs these are."""
    paid = {PAPER_BONUS: named("dqn-sf-pf", preset="small", beta=0.07, scale="none", clip=True)}
    shared = [run for run in pixels(seeds) if run.agent in ("dqn-mmc", "dqn-sf-pf", "constant", "count")]
    return sorted(shared + on_pixels(paid, seeds), key=lambda run: list(PIXEL_STEPS).index(run.env))


def on_pixels(agents: Mapping[str, DQN], seeds: int) -> list[Run]:
    tasks = {task: make_pixels(task) for task in PIXEL_STEPS}
    return [
        Run(task, name, OnPixels(agent, task, env.max_steps or 0), env.mdp, PIXEL_STEPS[task], seeds)
        for task, env in tasks.items()
        for name, agent in agents.items()
    ]


def late_success(trace: Trace) -> NDArray[np.float64]:
    """Of the episodes that end in the last fifth of the steps, the share that reach the goal [seeds]."""
    assert trace.episode_rewards is not None
    ends = np.cumsum(trace.episode_steps, axis=1)
    late = (trace.episode_steps > 0) & (ends > 0.8 * trace.steps[:, None])
    return np.asarray((late & (trace.episode_rewards > 0)).sum(axis=1) / np.maximum(late.sum(axis=1), 1))


def goals(trace: Trace, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Goals reached by each of the given steps [seeds, len(steps)]."""
    assert trace.episode_rewards is not None
    ends = np.where(trace.episode_rewards > 0, np.cumsum(trace.episode_steps, axis=1), np.inf)
    return np.array([np.searchsorted(np.sort(row), steps, side="right") for row in ends], np.float64)


@dataclass(frozen=True)
class Game:
    """An Atari game, as the task of a run, under the protocol of Machado et al. (2018)."""

    kind: ClassVar[Kind] = "images"

    name: str
    frame_skip: int = 5
    max_frames: int = 18_000
    sticky: float = 0.25

    @property
    def digest(self) -> str:
        return repr(self)


@dataclass(frozen=True)
class OnAtari(_Deep):
    """A deep agent on a game, as the settings of a run."""

    agent: DQN
    version: ClassVar[int] = 2  # raised when the agent gives other numbers for the same run

    def memory(self, task: Game, steps: int, seeds: int) -> int:
        return memory_for(self.agent, ATARI_SHAPE[1:], steps)

    def seconds_per_step(self, task: Game) -> float:
        """About how long a step takes on one core."""
        return 0.13 if self.agent.network == "paper" else 0.02

    def run(self, task: Game, steps: int, seeds: Seeds = 1, *, session: Session = Session(), **_: Any) -> Trace:
        """One seed after the other: these networks fill a core. One that was killed goes on in its folder."""
        from spie.agents.dqn.many_seeds import run_stacked  # loads torch

        game, folder, progress = task, session.folder, session.progress
        lanes = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        found = []
        for i, seed in enumerate(lanes):

            def report(share: float, i: int = i) -> None:
                if progress is not None:
                    progress((i + share) / len(lanes))

            if folder is not None:
                found.append(self._resumable(game, steps, seed, folder, report))
                continue
            env = make_atari(game.name, self.agent.envs, 0, game.frame_skip, game.max_frames, game.sticky)
            found.append(run_stacked(self.agent, env, [seed], steps, report))
            env.close()
        return joined(found)

    def _resumable(self, game: Game, steps: int, seed: int, folder: Path, progress: Progress) -> Trace:
        """One seed, from its last checkpoint on where it has one; its trace is kept, gigabytes of frames are not."""
        done, own = folder / f"seed-{seed}.npz", folder / f"seed-{seed}"
        if not done.exists():
            trace = self._train(game, steps, seed, own, progress)
            with open(aside := done.with_suffix(".new"), "wb") as file:
                np.savez(file, **_arrays(trace))  # of plain numbers; object arrays would not load
                file.flush()
                os.fsync(file.fileno())
            aside.replace(done)
        shutil.rmtree(own, ignore_errors=True)
        with np.load(done) as arrays:
            return Trace(**arrays)

    def _train(self, game: Game, steps: int, seed: int, folder: Path, progress: Progress) -> Trace:
        from spie.agents.dqn import session as training

        def report(state: training.Report) -> None:
            progress(min(1.0, state.step / state.steps))

        if (folder / "run.json").exists():
            return training.resume(folder, progress=report)
        shutil.rmtree(folder, ignore_errors=True)  # killed before it began
        options = {"frame_skip": game.frame_skip, "max_frames": game.max_frames, "sticky": game.sticky}
        return training.train(self.agent, game.name, steps, seed, folder, options=options, threads=1, progress=report)


def _arrays(trace: Trace) -> dict[str, Any]:
    return {f.name: value for f in fields(trace) if isinstance(value := getattr(trace, f.name), np.ndarray)}


def joined(traces: Sequence[Trace]) -> Trace:
    """Traces of one seed each as one of all; where one has fewer episodes, the others have 0 steps."""
    episodes = max(trace.episode_steps.shape[1] for trace in traces)

    def field(name: str) -> NDArray[Any]:
        arrays = [getattr(trace, name) for trace in traces]
        if name.startswith("episode_"):
            arrays = [np.pad(array, [(0, 0), (0, episodes - array.shape[1])]) for array in arrays]
        return np.concatenate(arrays)

    arrays: dict[str, Any] = {name: field(name) for name in _arrays(traces[0])}
    return Trace(**arrays)


def atari_settings(agent: str, frames: int, **changes: Any) -> DQN:
    """The paper's settings for its 10^8 frames; for less, a smaller network and schedules that fit into the budget."""
    if frames >= PAPER_FRAMES:
        at_paper: DQN = named(agent, preset="paper", **changes)
        return at_paper
    steps = frames // Game.frame_skip
    schedule = {
        "learning_starts": min(50_000, steps // 20),
        "target_every": min(40_000, steps // 20),
        "epsilon_frames": min(10**6, frames // 10),
        "replay": min(10**6, 2 * steps),
    }
    s: DQN = named(agent, preset="nature", **schedule | changes)
    return s


def table_2(seeds: int, frames: int = SMALL_TIER) -> list[Run]:
    """Six games, five agents."""
    return [
        Run(game, agent, OnAtari(atari_settings(agent, frames)), Game(game), frames // Game.frame_skip, seeds)
        for game, agent in paper.TABLE_2
    ]


def reconstruction(seeds: int, frames: int = SMALL_TIER) -> list[Run]:
    """The ablation of Appendix D: with and without the auxiliary task."""
    agents = {"dqn-sf-pf": atari_settings("dqn-sf-pf", frames)}
    for agent in ("dqn-sf-pf", "dqn-sr"):
        agents[f"{agent} reconstruction=False"] = atari_settings(agent, frames, reconstruction=False)
    steps = frames // Game.frame_skip
    return [Run(RECON_GAME, name, OnAtari(agent), Game(RECON_GAME), steps, seeds) for name, agent in agents.items()]


def score(trace: Trace) -> NDArray[np.float64]:
    """Mean reward of the last 100 episodes that ended [seeds]; not a number where none did."""
    assert trace.episode_rewards is not None
    found = []
    for steps, rewards in zip(trace.episode_steps, trace.episode_rewards, strict=True):
        ended = rewards[steps > 0][-100:]
        found.append(ended.mean() if len(ended) else np.nan)
    return np.array(found)


def network() -> "Mapping[str, Layer]":
    """The layers of the paper's network (Figure 2), for Atari."""
    from spie.agents.dqn.networks import layers  # loads torch

    return layers("paper", ATARI_SHAPE, actions=18)
