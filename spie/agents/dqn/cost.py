"""What a run of the deep agent takes: memory, which is checked before it begins, and time, which is measured."""

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

from spie.agents.dqn.replay import FrameReplay
from spie.agents.dqn.settings import DQNSettings
from spie.engine.lanes import check_memory
from spie.tasks.base import ImageTask
from spie.tasks.gymnasium import image_shape

PARAMETERS = {"paper": 26.4e6, "nature": 6.6e6, "small": 0.2e6, "minatar": 0.5e6}


def memory_for(settings: DQNSettings, shape: tuple[int, int], steps: int) -> int:
    """The bytes that one seed needs in memory, on images of a shape."""
    replay = 0 if settings.replay_on_disk else FrameReplay.bytes_for(min(settings.replay, steps), shape)
    networks = PARAMETERS[settings.network] * 4 * 5  # two, gradient, optimiser
    return int(replay + networks)


def check_fits(settings: DQNSettings, shape: tuple[int, int], steps: int, seeds: int = 1) -> int:
    """The bytes that seeds side by side need in memory; ValueError where there are fewer."""
    needed = seeds * memory_for(settings, shape, steps)
    slots = f"{min(settings.replay, steps):,} steps"
    what = f"a replay of {slots}" if seeds == 1 else f"{seeds} replays of {slots} each"
    check_memory(needed, what, "set replay_on_disk=true (memory-mapped), or a smaller replay=N")
    return needed


@dataclass(frozen=True)
class Cost:
    """What a run will take."""

    bytes: int  # of memory
    seconds: float


def measured_cost(settings: DQNSettings, task: ImageTask, steps: int, threads: int) -> Cost:
    """Measured on a few steps and updates that are then forgotten: some seconds with the paper's network."""
    from spie.agents.dqn.build import build  # loads torch
    from spie.agents.dqn.hardware import on_threads

    quick: dict[str, Any] = {
        "replay": 100 * settings.envs,
        "learning_starts": 0,
        "train_every": 10**9,
        "epsilon_fraction": 1e-9,
    }
    env = task.make(settings.envs)
    try:
        needed = check_fits(settings, image_shape(env), steps)
        with on_threads(threads):
            learner = build(dataclasses.replace(settings, replay_on_disk=False, **quick), env, [0], 10**9)
            times = [_seconds(learner.advance) for _ in range(20)]
            learner.end_episodes()
            updates = [_seconds(learner.update) for _ in range(3)]
    finally:
        env.close()
    n_updates = max(0, steps - settings.learning_starts) / settings.train_every
    return Cost(needed, steps / settings.envs * sorted(times)[len(times) // 2] + n_updates * min(updates))


def _seconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
