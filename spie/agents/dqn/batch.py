"""What an update learns from: batches of all lanes, as tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.replay import FrameReplay, SampledBatch


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

    def set_bonus(self, bonus: NDArray[Any]) -> None:
        """Let the replays, which draw by it, know the raw bonus [L, B] as it is now."""
        for replay, batch, of_lane in zip(self._replays, self._batches, bonus, strict=True):
            replay.set_bonus(batch.slots, of_lane)
