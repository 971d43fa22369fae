"""Intrinsic rewards of the deep agent. Computing a bonus and learning from a batch are apart, so that any loop can use
them. Axes: L lanes (one a seed), B batch or environments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from spie.agents.dqn.networks import Architecture, Encoder, Linear
from spie.agents.dqn.optimisers import Adam

NORMS = {"l1": 1, "l2": 2}
FLOOR = 1e-8  # below any length that a trained psi or xi has; it keeps the bonus finite


def reciprocal_length(x: Tensor, norm: str) -> Tensor:
    """1 / ||x|| over the last axis."""
    reciprocal: Tensor = 1 / torch.linalg.vector_norm(x, NORMS[norm], dim=-1).clamp_min(FLOOR)
    return reciprocal


def sf(psi: Tensor, norm: str) -> Tensor:
    """r_SF = 1 / ||psi(s)||, psi [L, B, D]."""
    return reciprocal_length(psi, norm)


def sf_pf(xi_next: Tensor, psi: Tensor, norm: str) -> Tensor:
    """r_SF-PF = 1 / ||xi(s')|| - 1 / ||psi(s, a)||  (eq. 16 as its text reads; printed is phi(s'), not xi(s'))."""
    return reciprocal_length(xi_next, norm) - reciprocal_length(psi, norm)


class RND:
    """Random network distillation (Burda et al., 2018): how badly a network predicts another one, fixed at random."""

    def __init__(
        self,
        shape: tuple[int, ...],
        a: Architecture,
        seeds: Sequence[int] = (0,),
        *,
        rate: float = 1e-4,
        device: str = "cpu",
        tiled: bool = False,
    ) -> None:
        """shape: of one observation, (n,) or (H, W). tiled: it comes tile by tile, where networks read it so."""
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.shape = shape
        inputs = (1, *shape) if len(shape) == 2 else shape
        narrow = a if len(shape) == 2 else replace(a, convolutions=())
        self.fixed = Encoder(inputs, narrow, generators, tiled).to(device).requires_grad_(False)
        self.predictor = Encoder(inputs, narrow, generators, tiled).to(device)
        self.last = nn.ModuleList(Linear(a.features, a.features, generators) for _ in range(2)).to(device)
        self.parameters = [*self.predictor.parameters(), *self.last.parameters()]
        self.optimiser = Adam(self.parameters, rate)
        self.mean = torch.zeros(len(seeds), 1, *shape, dtype=torch.float64, device=device)
        self.square = torch.ones_like(self.mean)
        self.count = 0

    def _normalised(self, s: Tensor) -> Tensor:
        """Observations [L, B, *shape] less their running mean, over their running deviation, clipped to 5 of them."""
        deviation = (self.square - self.mean**2).clamp_min(0).add(1e-8).sqrt()
        x = ((s.float() - self.mean.float()) / deviation.float()).clamp(-5, 5)
        return x.unsqueeze(2) if len(self.shape) == 2 else x

    def _errors(self, x: Tensor) -> Tensor:
        hidden = self.last[0](F.relu(self.predictor(x)))
        errors: Tensor = (self.last[1](F.relu(hidden)) - self.fixed(x)).square().mean(dim=-1)
        return errors

    def compute(self, s_next: ArrayLike | Tensor) -> NDArray[np.float64]:
        """The bonus [L, B] of arriving at s_next [L, B, *shape]. Learns nothing."""
        with torch.no_grad():
            errors = self._errors(self._normalised(_tensor(s_next, self.mean)))
        return errors.cpu().numpy().astype(np.float64)

    def learn(self, s_next: ArrayLike | Tensor) -> NDArray[np.float64]:
        """One step of the predictor on s_next [L, B, *shape]; the error of each lane before it [L]."""
        s = _tensor(s_next, self.mean)
        self.count += 1
        weight = 1 / self.count
        self.mean.lerp_(s.float().mean(dim=1, keepdim=True).double(), weight)
        self.square.lerp_(s.float().square().mean(dim=1, keepdim=True).double(), weight)
        errors = self._errors(self._normalised(s)).mean(dim=1)
        errors.sum().backward()
        self.optimiser.step()
        return errors.detach().cpu().numpy().astype(np.float64)

    def state(self) -> dict[str, Tensor]:
        """All that changes, or was drawn at random."""
        modules = {"fixed": self.fixed, "predictor": self.predictor, "last": self.last}
        tensors = {f"{name}.{key}": p for name, m in modules.items() for key, p in m.state_dict().items()}
        tensors |= {"mean": self.mean, "square": self.square, "count": torch.tensor(self.count)}
        return tensors | {f"optimiser.{name}": p for name, p in self.optimiser.state().items()}

    def load(self, state: Mapping[str, Tensor | NDArray[Any]]) -> None:
        """The inverse of `state`; arrays will do."""
        tensors = {name: torch.as_tensor(value) for name, value in state.items()}
        modules = {"fixed": self.fixed, "predictor": self.predictor, "last": self.last}
        for name, module in modules.items():
            module.load_state_dict({key: tensors[f"{name}.{key}"] for key in module.state_dict()})
        self.mean.copy_(tensors["mean"])
        self.square.copy_(tensors["square"])
        self.count = int(tensors["count"])
        self.optimiser.load({name.removeprefix("optimiser."): tensor for name, tensor in tensors.items()})


def _tensor(s: ArrayLike | Tensor, like: Tensor) -> Tensor:
    return torch.as_tensor(s if isinstance(s, Tensor) else np.asarray(s), device=like.device)


class Scale:
    """The running size of a bonus, each lane's own, and the bonus measured by it.

    none: as it is; rms: over its root mean square so far; standard: less its mean so far, over its standard deviation
    so far, plus an offset.
    """

    def __init__(self, kind: str, lanes: int = 1, offset: float = 0.0) -> None:
        self.kind, self.offset = kind, offset
        self.count = 0
        self.mean, self.square = np.zeros(lanes), np.zeros(lanes)

    def observe(self, bonus: NDArray[Any]) -> None:
        """Raw bonuses [L, B] that were just collected."""
        self.count += 1
        self.mean += (bonus.mean(axis=1) - self.mean) / self.count
        self.square += (np.square(bonus).mean(axis=1) - self.square) / self.count

    def __call__(self, bonus: NDArray[Any]) -> NDArray[Any]:
        """Raw bonuses [L, B] as they are paid, before beta."""
        if self.kind == "none":
            return bonus
        if self.kind == "rms":
            return bonus / (np.sqrt(self.square) + FLOOR)[:, None]
        deviation = np.sqrt(np.maximum(self.square - self.mean**2, 0)) + FLOOR
        return (bonus - self.mean[:, None]) / deviation[:, None] + self.offset
