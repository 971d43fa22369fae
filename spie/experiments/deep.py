"""Deep agents on small image tasks, many seeds side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.deep import DQN
from spie.envs.pixels import make_pixels
from spie.mdp import MDP
from spie.run import Run
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.networks import Layer

ATARI_SHAPE = (4, 84, 84)
PIXEL_STEPS = {"four-rooms": 30_000, "cluster-hard": 40_000}
PIXEL_AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")


@dataclass(frozen=True)
class OnPixels:
    """A deep agent on an image task, as the settings of a run."""

    agent: DQN
    task: str
    max_steps: int  # of an episode
    version: int = 1  # raised when the agent gives other numbers for the same run

    def seconds_per_step(self, mdp: MDP) -> float:
        """About how long a step of one seed takes on one core, among 20 of them."""
        return 4e-4

    def run(self, mdp: MDP, steps: int, seeds: int | Sequence[int], **_: Any) -> Trace:
        """All seeds in one process, on one thread: small networks leave a core idle otherwise."""
        from spie.agents.stacked import run_stacked  # loads torch

        n = seeds if isinstance(seeds, int) else len(seeds)
        return run_stacked(self.agent, make_pixels(self.task, n, max_steps=self.max_steps), seeds, steps)


def pixels(seeds: int) -> list[Run]:
    """The paper's five agents and two controls, with the settings for small tasks."""
    agents = {name: DQN.named(name, preset="small") for name in PIXEL_AGENTS}
    agents |= {name: DQN.named(f"dqn-{name}", preset="small") for name in ("constant", "count")}
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


def network() -> "Mapping[str, Layer]":
    """The layers of the paper's network (Figure 2), for Atari."""
    from spie.agents.networks import layers  # loads torch

    return layers("paper", ATARI_SHAPE, actions=18)
