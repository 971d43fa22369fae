"""The memory that a run of the deep agent takes: it is checked before the run begins."""

from spie.agents.dqn.replay import SLOT, FrameReplay
from spie.agents.dqn.settings import DQNSettings
from spie.engine.lanes import check_memory

PARAMETERS = {"paper": 26.4e6, "nature": 6.6e6, "small": 0.2e6, "minatar": 0.5e6}


def memory_for(settings: DQNSettings, shape: tuple[int, int], steps: int) -> int:
    """The bytes that one seed needs in memory, on images of a shape."""
    replay = 0 if settings.replay_on_disk else FrameReplay.bytes_for(min(settings.replay, steps), shape)
    networks = PARAMETERS[settings.network] * 4 * 5  # two, gradient, optimiser
    return int(replay + networks)


def check_fits(settings: DQNSettings, shape: tuple[int, int], steps: int, seeds: int = 1) -> int:
    """The bytes that seeds side by side need in memory; ValueError where there are fewer."""
    check_memory(seeds * settings.replay * SLOT.itemsize, f"a replay of {settings.replay:,} steps", "set replay=N")
    images = 4.0 * settings.batch * settings.stack * shape[0] * shape[1]
    check_memory(seeds * images, f"a batch of {settings.batch:,} x {settings.stack:,} images", "set batch=N or stack=N")
    needed = seeds * memory_for(settings, shape, steps)
    slots = f"{min(settings.replay, steps):,} steps"
    what = f"a replay of {slots}" if seeds == 1 else f"{seeds} replays of {slots} each"
    check_memory(needed, what, "set replay_on_disk=true (memory-mapped), or a smaller replay=N")
    return needed
