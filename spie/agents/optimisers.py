"""RMSprop and Adam as plain objects: torch.optim loads torch's compiler, three seconds for what a run never uses."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam


class RMSprop:
    """Centred RMSprop with eps inside the root, as DQN has used it.

        w <- w - rate g / sqrt(mean(g^2) - mean(g)^2 + eps)

    The running variance is kept as such: as a difference of two means, rounding can take it below zero, from where
    `torch.optim.RMSprop` gives NaN.
    """

    CHUNK = 1 << 16  # elements whose five arrays fit a core's cache: one trip to memory in place of seven

    def __init__(self, parameters: Sequence[Tensor], rate: float, decay: float = 0.95, eps: float = 0.001) -> None:
        self.parameters, self.rate, self.decay, self.eps = list(parameters), rate, decay, eps
        self.mean = [torch.zeros_like(p) for p in parameters]
        self.variance = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradients, which are gone afterwards."""
        decay = self.decay
        for p, means, variances in zip(self.parameters, self.mean, self.variance, strict=True):
            assert p.grad is not None
            scratch = torch.empty(min(self.CHUNK, p.numel()), device=p.device)
            arrays = (x.view(-1).split(self.CHUNK) for x in (p, p.grad.contiguous(), means, variances))
            for w, g, mean, variance in zip(*arrays, strict=True):
                room = scratch[: len(w)]
                change = torch.sub(g, mean, out=room)
                mean.add_(change, alpha=1 - decay)
                variance.mul_(decay).addcmul_(change, change, value=decay * (1 - decay))
                w.addcmul_(g, torch.add(variance, self.eps, out=room).rsqrt_(), value=-self.rate)
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
