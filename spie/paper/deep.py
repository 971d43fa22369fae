"""Deep agents: small image tasks, many seeds side by side; Atari (Table 2, Appendix D) within a budget of frames."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Seeds, Session
from spie.agents.dqn.session import memory_for
from spie.agents.dqn.settings import DQN
from spie.tasks.atari import make_atari
from spie.tasks.base import Kind
from spie.tasks.mdp import MDP
from spie.tasks.pixels import make_pixels
from spie.trace import Trace

ATARI_SHAPE: tuple[int, int, int] = (4, 84, 84)
Progress: TypeAlias = Callable[[float], None]


class _Deep(Agent):
    """What deep agents say to `spie.runs.run`: they report, go on from a folder, and may ask for a GPU."""

    agent: DQN
    kind: ClassVar[Kind] = "images"
    resumable: ClassVar[bool] = True

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
