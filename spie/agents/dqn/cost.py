"""What a run of the deep agent takes: memory, which is checked before it begins, and time, which is said."""

from typing import NamedTuple

from spie.agents.dqn.replay import SLOT, FrameReplay
from spie.agents.dqn.settings import DQNSettings
from spie.engine.lanes import check_memory

PARAMETERS = {"paper": 26.4e6, "nature": 6.6e6, "small": 0.2e6, "minatar": 0.5e6}


class StepCost(NamedTuple):
    """Seconds on an idle core."""

    acting: float  # a step, of all seeds that run side by side
    paying: float  # more of a step, where a network is asked what to pay for it
    update: float  # of all seeds that run side by side, whatever the batch
    image: float  # an image of a batch, of one seed


COSTS = {
    "paper": StepCost(4e-3, 3.5e-3, 0.0, 7.2e-3),
    "nature": StepCost(1.4e-3, 1e-3, 0.0, 1.1e-3),
    "small": StepCost(4e-4, 4.5e-4, 2.2e-3, 1.5e-5),
    "minatar": StepCost(4e-4, 4.5e-4, 1.4e-3, 5.2e-5),
}
LEARNED_BONUS = 1.4  # times as long takes an update where what pays is learned, too
WITHOUT_NETWORKS = ("none", "constant", "count")  # bonuses


def seconds_for(settings: DQNSettings, steps: int, seeds: int) -> float:
    """About how long seeds take on one core; those of small networks side by side."""
    cost, together = COSTS[settings.network], seeds if settings.network == "small" else 1
    learns = settings.bonus not in WITHOUT_NETWORKS
    acting = steps / settings.envs * (cost.acting + learns * cost.paying) / together
    updates = max(0, steps - settings.learning_starts) / settings.train_every
    update = cost.update / together + settings.batch * cost.image
    return float(seeds * (acting + updates * update * (LEARNED_BONUS if learns else 1.0)))


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
