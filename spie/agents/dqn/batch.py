"""What an update learns from: batches of all lanes, as tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.replay import SampledBatch


class UpdateBatch:
    """Batches of all lanes, each field [L, B] by its name in `SampledBatch`."""

    def __init__(self, batches: Sequence[SampledBatch], frames: Tensor, device: str) -> None:
        self._batches, self._device = batches, device
        self.s, self.s_next = frames[:, :, :-1], frames[:, :, 1:]  # [L, B, stack, H, W]

    def array(self, name: str) -> NDArray[Any]:
        return np.stack([getattr(batch, name) for batch in self._batches])

    def __getitem__(self, name: str) -> Tensor:
        return torch.from_numpy(self.array(name)).to(self._device)
