"""RMSprop and Adam as plain objects: torch.optim loads torch's compiler, three seconds for what a run never uses."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, no_type_check

import numpy as np
import torch
from torch import Tensor
from torch.optim.adam import adam


@no_type_check
def rmsprop(w, g, mean, variance, rate, decay, eps):
    """A step of RMSprop on flat arrays."""
    for i in range(w.size):
        change = g[i] - mean[i]
        mean[i] += (np.float32(1) - decay) * change
        variance[i] = decay * (variance[i] + (np.float32(1) - decay) * change * change)
        w[i] -= rate * g[i] / np.sqrt(variance[i] + eps)


@functools.cache
def _kernel() -> Any:
    from numba import njit

    return njit(rmsprop, error_model="numpy", cache=True)  # Python's check of each division would stop SIMD


class RMSprop:
    """Centred RMSprop with eps inside the root, as DQN has used it.

        w <- w - rate g / sqrt(mean(g^2) - mean(g)^2 + eps)

    The running variance is kept as such: as a difference of two means, rounding can take it below zero, from where
    `torch.optim.RMSprop` gives NaN.
    """

    def __init__(self, parameters: Sequence[Tensor], rate: float, decay: float = 0.95, eps: float = 0.001) -> None:
        self.parameters, self.rate, self.decay, self.eps = list(parameters), rate, decay, eps
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.variance = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients, which are gone afterwards."""
        numbers = np.float32(self.rate), np.float32(self.decay), np.float32(self.eps)
        for p, mean, variance in zip(self.parameters, self.mean, self.variance, strict=True):
            assert p.grad is not None
            if p.device.type == "cpu":  # one trip to memory for all of it, a third of the time
                arrays = (x.detach().view(-1).numpy() for x in (p, p.grad.contiguous(), mean, variance))
                _kernel()(*arrays, *numbers)
            else:
                change = p.grad - mean
                mean.add_(change, alpha=1 - self.decay)
                variance.mul_(self.decay).addcmul_(change, change, value=self.decay * (1 - self.decay))
                p.addcdiv_(p.grad, variance.add(self.eps).sqrt_(), value=-self.rate)
            p.grad = None

    def state(self) -> dict[str, Tensor]:
        """All that changes."""
        kept = {"mean": self.mean, "variance": self.variance}
        return {f"{name}.{i}": tensor for name, tensors in kept.items() for i, tensor in enumerate(tensors)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        for name, tensor in self.state().items():
            tensor.copy_(tensors[name])


class Adam:
    """Adam, by torch's fused kernel."""

    def __init__(self, parameters: Sequence[Tensor], rate: float, eps: float = 1e-8) -> None:
        self.parameters, self.rate, self.eps = list(parameters), rate, eps
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.square = [torch.zeros_like(p) for p in parameters]
        self.steps = [torch.zeros((), device=p.device) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients, which are gone afterwards."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        adam(
            self.parameters,
            gradients,
            self.mean,
            self.square,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.rate,
            weight_decay=0.0,
            eps=self.eps,
            maximize=False,
        )
        for p in self.parameters:
            p.grad = None

    def state(self) -> dict[str, Tensor]:
        """All that changes."""
        kept = {"mean": self.mean, "square": self.square, "steps": self.steps}
        return {f"{name}.{i}": tensor for name, tensors in kept.items() for i, tensor in enumerate(tensors)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        for name, tensor in self.state().items():
            tensor.copy_(tensors[name])
