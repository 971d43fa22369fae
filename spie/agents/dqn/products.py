"""Products of a layer's weights with a batch, by torch or by oneDNN.

Torch leaves float32 products to MKL, which on an AMD processor stays with vectors of 256 bits and half the rate;
oneDNN, which computes the convolutions anyway, uses all 512. It sums in another order, so the last bits differ, except
in the gradient of the weights: there both sum over the batch, from its first state to its last.
"""

import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FEWEST = 2**20  # multiplications from which on oneDNN's longer call pays
IN_ORDER = 64  # states of a batch up to which neither splits the sum over them


@functools.cache
def is_amd() -> bool:
    """Whether the processor is one that MKL does not use fully."""
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux
        return False


@functools.cache
def has_onednn() -> bool:
    """Whether torch was built with the call that is used here."""
    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def check_onednn(device: str, precision: str) -> None:
    """Refuse products by oneDNN where it has none."""
    if device != "cpu" or precision != "fp32" or not has_onednn():
        here = f"device {device} and {precision}" if has_onednn() else "this torch, which lacks it"
        raise ValueError(f"products=onednn is for cpu and fp32, not for {here}; leave it out")


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x [B, n_in] times weight [n_out, n_in], plus bias."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


class _Linear(torch.autograd.Function):
    """x weight + bias, weight [n_in, n_out]; fully: the products for which oneDNN has other bits as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, fully: bool) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.fully = fully
        return _onednn(x, weight.t(), bias) if fully else _torch(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x = _onednn(g, weight, None) if ctx.fully else g @ weight.t()
        of_bias = g.sum(dim=0) if ctx.needs_input_grad[2] else None
        return of_x, _onednn(x.t(), g.t(), None), of_bias, None


def _torch(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return x @ weight if bias is None else torch.addmm(bias, x, weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, fully: bool) -> Tensor:
    """x [B, n_in] times weight [n_in, n_out], plus bias. fully: by oneDNN also where that gives other last bits."""
    large = min(len(x), *weight.shape) > 1 and len(x) * weight.numel() >= FEWEST
    plain = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    if large and plain and has_onednn() and (fully or (is_amd() and len(x) <= IN_ORDER)):
        y: Tensor = _Linear.apply(x, weight, bias, fully)  # type: ignore[no-untyped-call]
        return y
    return _torch(x, weight, bias)
