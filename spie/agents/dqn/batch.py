"""What an update learns from: batches of all lanes, as tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.replay import FollowingSteps, FrameReplay, SampledBatch


class UpdateBatch:
    """Batches of all lanes, each field [L, B] by its name in `SampledBatch`."""

    def __init__(
        self, batches: Sequence[SampledBatch], frames: Tensor, device: str, replays: Sequence[FrameReplay]
    ) -> None:
        self._batches, self._device, self._replays = batches, device, replays
        self.s, self.s_next = frames[:, :, :-1], frames[:, :, 1:]  # [L, B, stack, H, W]

    def array(self, name: str) -> NDArray[Any]:
        return np.stack([getattr(batch, name) for batch in self._batches])

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.array(name)).to(self._device)

    def following(self, n: int) -> "SeveralSteps":
        """What was done from these transitions on, for up to n steps."""
        pairs = zip(self._replays, self._batches, strict=True)
        return SeveralSteps(self._replays, [replay.following(batch.slots, n) for replay, batch in pairs])

    def set_bonus(self, bonus: NDArray[Any]) -> None:
        """Let the replays, which draw by it, know the raw bonus [L, B] as it is now."""
        for replay, batch, of_lane in zip(self._replays, self._batches, bonus, strict=True):
            replay.set_bonus(batch.slots, of_lane)


class SeveralSteps:
    """The steps that follow transitions of all lanes, up to n of each: arrays [L, B, n]."""

    def __init__(self, replays: Sequence[FrameReplay], of_lanes: Sequence[FollowingSteps]) -> None:
        self._replays, self._of_lanes = replays, of_lanes
        self.counts = np.stack([lane.counts for lane in of_lanes])
        self.after = np.stack([lane.after for lane in of_lanes])  # [L, B, stack, H, W]

    def array(self, name: str) -> NDArray[Any]:
        """A field of `SampledBatch`; where there is no such step, that of some other one."""
        pairs = zip(self._replays, self._of_lanes, strict=True)
        return np.stack([replay.field(name, lane.slots) for replay, lane in pairs])

    def entered(self) -> NDArray[np.uint8]:
        """The newest frames [L, B, n, H, W] after each step."""
        pairs = zip(self._replays, self._of_lanes, strict=True)
        return np.stack([replay.entered(lane.slots) for replay, lane in pairs])

    def discounted(self, paid: NDArray[Any], gamma: float) -> NDArray[np.float32]:
        """The sum [L, B] of what they paid [L, B, n], each step discounted by gamma."""
        weights = self.counts * gamma ** np.arange(paid.shape[2])
        return np.asarray((weights * paid).sum(axis=2), np.float32)

    def discount(self, gamma: float) -> NDArray[np.float32]:
        """That of a value after them [L, B], over gamma, which a TD error adds; 0 where the episode ended."""
        ended = np.stack([lane.ended for lane in self._of_lanes])
        return np.where(ended, 0, gamma ** (self.counts.sum(axis=2) - 1.0)).astype(np.float32)
