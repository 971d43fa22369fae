"""The network of the deep agent (Figure 2): encoder, heads, decoder.

Everything has an axis of *lanes* in front: a lane is one seed with weights of its own, and lanes that run side by side
share each call. One lane is an ordinary network and takes the fast paths (oneDNN's convolutions, channels last);
several become batched matrix products. Shapes in brackets: L lanes, B batch, D features.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from spie.agents.dqn import products
from spie.errors import unknown

Generators = Sequence[torch.Generator]  # one per lane, so that a lane's first weights do not depend on its company


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network."""

    convolutions: tuple[tuple[int, int, int, int], ...]  # filters, kernel, stride, padding
    hidden: tuple[int, ...]  # layers between the convolutions and phi
    features: int  # of phi, psi and xi
    head: int  # units inside the SF and PF heads and of the action's embedding
    decoder: int  # units of the decoder's first layer


ARCHITECTURES = {
    # Appendix, "Atari experiments": all but one of the printed tuples are input shapes, not kernels.
    "paper": Architecture(((64, 6, 2, 0), (64, 6, 2, 2), (64, 6, 2, 2)), (), 1024, 2048, 1024),
    "nature": Architecture(((32, 8, 4, 0), (64, 4, 2, 0), (64, 3, 1, 0)), (), 512, 1024, 512),
    "small": Architecture(((16, 4, 4, 0),), (128,), 64, 128, 128),
    "minatar": Architecture(((16, 3, 1, 0),), (), 128, 128, 128),  # of Young and Tian (2019)
}


def architecture(name: str) -> Architecture:
    """The architecture known as `name`."""
    if name not in ARCHITECTURES:
        raise unknown("network", name, ARCHITECTURES)
    return ARCHITECTURES[name]


def _uniform(shape: tuple[int, ...], fan_in: float, generators: Generators) -> nn.Parameter:
    bound = 1 / math.sqrt(fan_in)
    lanes = [torch.empty(shape).uniform_(-bound, bound, generator=g) for g in generators]
    return nn.Parameter(torch.stack(lanes))


def _activated(y: Tensor, relu: bool) -> Tensor:
    """In place, on what a product has just given: later it is a view, and autograd would copy it."""
    return F.relu(y, inplace=True) if relu else y


class Linear(nn.Module):
    """x [L, B, n_in] to [L, B, n_out]."""

    kind = "FC"

    def __init__(self, n_in: int, n_out: int, generators: Generators) -> None:
        super().__init__()
        self.weight = _uniform((n_in, n_out), n_in, generators)  # the other way round, its gradient would be copied
        self.bias = _uniform((n_out,), n_in, generators)
        self.onednn = False  # also where that gives other last bits

    def forward(self, x: Tensor, relu: bool = False) -> Tensor:
        if len(self.weight) == 1:  # squeeze, not [0]: its gradient is a view
            y = products.linear(x.squeeze(0), self.weight.squeeze(0), self.bias.squeeze(0), self.onednn)
            return _activated(y, relu).unsqueeze(0)
        return _activated(torch.baddbmm(self.bias.unsqueeze(1), x, self.weight), relu)


class Conv(nn.Module):
    """x [L, B, n_in, H, W] to [L, B, n_out, H', W'], through a ReLU."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, padding: int, generators: Generators) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = kernel, stride, padding
        self.tiled = False  # whether x comes tile by tile (`tiles`)
        self.weight = _uniform((n_out, kernel, kernel, n_in), n_in * kernel**2, generators)  # channels last: no copies
        self.bias = _uniform((n_out,), n_in * kernel**2, generators)

    @property
    def kind(self) -> str:
        return f"conv {self.kernel}×{self.kernel} / {self.stride}"

    def size(self, n: int) -> int:
        return (n + 2 * self.padding - self.kernel) // self.stride + 1

    def forward(self, x: Tensor) -> Tensor:
        lanes, batch, _, height, width = x.shape
        if lanes == 1:
            weight, bias = self.weight.squeeze(0).movedim(-1, 1), self.bias.squeeze(0)
            y = F.conv2d(x.squeeze(0), weight, bias, self.stride, self.padding)
            return _activated(y, True).unsqueeze(0)
        if self.tiled:
            patches = x.reshape(*x.shape[:3], -1, self.kernel**2).movedim(2, -1).flatten(3).flatten(1, 2)
        else:
            x = F.pad(x, [self.padding] * 4) if self.padding else x
            patches = x.unfold(3, self.kernel, self.stride).unfold(4, self.kernel, self.stride)
            patches = patches.movedim(2, -1).flatten(4).flatten(1, 3)  # [L, B places, k k n_in]
        y = torch.baddbmm(self.bias.unsqueeze(1), patches, self.weight.flatten(2).transpose(1, 2))
        return _activated(y, True).view(lanes, batch, self.size(height), self.size(width), -1).movedim(-1, 2)


class _Deconvolution(torch.autograd.Function):
    """F.conv_transpose2d, with the gradient of the weight as a convolution has it: oneDNN's own takes twice as long."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, padding: int, extra: list[int]) -> Any:
        ctx.save_for_backward(x, weight)
        ctx.shape = stride, padding
        return F.conv_transpose2d(x, weight, bias, stride, padding, extra)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        stride, padding = ctx.shape
        rest = None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, [False, True, False]
        weight_gradient = torch.ops.aten.convolution_backward(x, g, weight, *rest)[1]
        return F.conv2d(g, weight, None, stride, padding), weight_gradient, g.sum(dim=(0, 2, 3)), None, None, None


class Deconv(nn.Module):
    """x [L, B, n_in, h, w] to [L, B, n_out, H, W]: the mirror of a convolution from (H, W) to (h, w)."""

    def __init__(self, n_in: int, n_out: int, mirrored: Conv, size: tuple[int, int], generators: Generators) -> None:
        super().__init__()
        self.kernel, self.stride, self.padding = mirrored.kernel, mirrored.stride, mirrored.padding
        self.tiled = mirrored.tiled  # whether to give the image tile by tile
        self.size = size
        self.onednn = False  # for the product with one output channel
        fan_in = n_in * (self.kernel / self.stride) ** 2  # inputs that meet in one pixel
        self.weight = _uniform((n_in, self.kernel, self.kernel, n_out), fan_in, generators)  # channels last
        self.bias = _uniform((n_out,), fan_in, generators)

    @property
    def kind(self) -> str:
        return f"deconv {self.kernel}×{self.kernel} / {self.stride}"

    def forward(self, x: Tensor, relu: bool = False) -> Tensor:
        lanes, batch, n_in, height, width = x.shape
        n_out = self.weight.shape[-1]
        if lanes == 1 and n_out > 1:
            extra = [
                full - ((n - 1) * self.stride - 2 * self.padding + self.kernel)
                for full, n in zip(self.size, (height, width), strict=True)
            ]
            weight, bias = self.weight.squeeze(0).movedim(-1, 1).to(x.dtype), self.bias.squeeze(0).to(x.dtype)
            y: Tensor = _Deconvolution.apply(x.squeeze(0), weight, bias, self.stride, self.padding, extra)  # type: ignore[no-untyped-call]
            return _activated(y, relu).unsqueeze(0)
        # One output channel: oneDNN runs at a twentieth of the speed of a matrix product and a fold.
        flat, weights = x.movedim(2, -1).reshape(lanes, batch * height * width, n_in), self.weight.flatten(2)
        if self.onednn and lanes == 1:
            patches = products.linear(flat.squeeze(0), weights.squeeze(0), None, True)
        else:
            patches = torch.bmm(flat, weights)
        patches = patches.view(lanes, batch, height, width, self.kernel, self.kernel, n_out)
        if self.tiled:
            y = patches.flatten(2, 5).movedim(-1, 2).reshape(lanes, batch, n_out, *self.size)
        elif self.kernel == self.stride and self.padding == 0:  # patches that only touch: no sums
            y = patches.permute(0, 1, 6, 2, 4, 3, 5).reshape(lanes, batch, n_out, *self.size)
        else:
            columns = patches.permute(0, 1, 6, 4, 5, 2, 3).reshape(lanes * batch, -1, height * width)
            y = F.fold(columns, self.size, self.kernel, padding=self.padding, stride=self.stride)
            y = y.view(lanes, batch, n_out, *self.size)
        return _activated(y + self.bias[:, None, :, None, None], relu)


def tiles(frames: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Images [..., H, W] with their pixels tile by tile, in the same shape; side 0: as they are.

    What a convolution whose patches only touch reads one after another: to gather them in every update takes long.
    """
    if side == 0:
        return frames
    *first, height, width = frames.shape
    split = frames.reshape(*first, height // side, side, width // side, side)
    return np.ascontiguousarray(split.swapaxes(-3, -2)).reshape(frames.shape)


class Encoder(nn.Module):
    """Frames, or plain vectors, to features before they are normalised."""

    def __init__(
        self, shape: tuple[int, ...], a: Architecture, generators: Generators, tiled: bool = False, planes: int = 1
    ) -> None:
        """shape: (channels, height, width) of an image, which is padded until the first kernel fits; or (n,).

        tiled: read images tile by tile, where that is possible. planes: that each image is made of, one below the
        other; they are channels here.
        """
        super().__init__()
        self.planes = planes
        if planes > 1:
            shape, tiled = (shape[0] * planes, shape[1] // planes, shape[2]), False
        self.convolutions = nn.ModuleList()
        self.sizes: list[tuple[int, int]] = []  # what each convolution reads
        channels, *size = shape
        self.pad = (0, 0)
        self.tile = 0  # side of the tiles that it reads; 0: whole images
        for i, (filters, kernel, stride, padding) in enumerate(a.convolutions):
            conv = Conv(channels, filters, kernel, stride, padding, generators)
            if i == 0:
                self.pad = tuple(max(kernel - n, (kernel - n - 2 * padding) % stride) for n in size)  # type: ignore[assignment]
                size = [n + pad for n, pad in zip(size, self.pad, strict=True)]
            if min(size) + 2 * padding < kernel:
                raise ValueError(f"an image of {shape[1]} x {shape[2]} is too small for this network; try preset small")
            self.sizes.append((size[0], size[1]))
            self.convolutions.append(conv)
            if i == 0 and tiled and len(generators) > 1 and (stride, padding, self.pad) == (kernel, 0, (0, 0)):
                conv.tiled, self.tile = True, kernel
            channels, size = filters, [conv.size(n) for n in size]
        self.out = (channels, *size)
        widths = [math.prod(self.out), *a.hidden, a.features]
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(Linear(n_in, n_out, generators) for n_in, n_out in pairs)

    def forward(self, x: Tensor) -> Tensor:
        """x [L, B, *shape] to [L, B, D]."""
        if self.convolutions:
            if self.planes > 1:  # rows of one plane after those of another
                x = x.reshape(*x.shape[:2], x.shape[2] * self.planes, x.shape[3] // self.planes, x.shape[4])
            x = F.pad(x, (0, self.pad[1], 0, self.pad[0])) if any(self.pad) else x
            if len(x) == 1:
                x = x.squeeze(0).contiguous(memory_format=torch.channels_last).unsqueeze(0)
            for conv in self.convolutions:
                x = conv(x)
            x = x.movedim(2, -1).flatten(2)  # channels last: no copy
        for layer in self.layers[:-1]:
            x = layer(x, relu=True)
        features: Tensor = self.layers[-1](x)
        return features


class Head(nn.Module):
    """psi or xi of phi; with actions, of (phi, a)."""

    def __init__(self, a: Architecture, actions: int, generators: Generators, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu  # whether what it gives is never negative
        self.first = Linear(a.features, a.head, generators)
        self.second = Linear(a.head, a.features, generators)
        self.embed = _uniform((actions, a.head), a.features, generators) if actions else None

    def forward(self, phi: Tensor, action: Tensor | None = None) -> Tensor:
        """phi [L, B, D], action [L, B] to [L, B, D]. The encoder learns nothing from it: phi's gradient stops here."""
        if self.embed is None or action is None:
            hidden = self.first(phi.detach(), relu=True)
        else:
            hidden = F.relu(self.first(phi.detach()) + _rows(self.embed, action))
        features: Tensor = self.second(hidden, relu=self.relu)
        return features


def _rows(table: Tensor, index: Tensor) -> Tensor:
    """table [L, n, D] at index [L, B]: [L, B, D]."""
    return table.gather(1, index.unsqueeze(-1).expand(-1, -1, table.shape[-1]))


class Decoder(nn.Module):
    """The next frame from phi and the action."""

    def __init__(
        self, encoder: Encoder, a: Architecture, actions: int, generators: Generators, relu: bool = False
    ) -> None:
        """relu: one between every two deconvolutions."""
        super().__init__()
        self.relu = relu
        self.features = Linear(a.features, a.head, generators)
        self.embed = Linear(actions, a.head, generators)
        self.first = Linear(a.head, a.decoder, generators)
        self.second = Linear(a.decoder, math.prod(encoder.out), generators)
        self.start, self.actions = encoder.out, actions
        self.crop = tuple(n - pad for n, pad in zip(encoder.sizes[0], encoder.pad, strict=True))
        down = [(conv, size) for conv, size in zip(encoder.convolutions, encoder.sizes, strict=True)]
        self.deconvolutions = nn.ModuleList()
        for i, (conv, size) in reversed(list(enumerate(down))):
            assert isinstance(conv, Conv)
            n_out = conv.weight.shape[-1] if i else encoder.planes
            self.deconvolutions.append(Deconv(conv.weight.shape[1], n_out, conv, size, generators))

    def forward(self, phi: Tensor, action: Tensor) -> Tensor:
        """phi [L, B, D], action [L, B] to the frame that follows [L, B, H, W]."""
        lanes, batch = action.shape
        chosen = F.one_hot(action, self.actions).to(phi.dtype)
        x = self.second(self.first(self.features(phi, relu=True) * self.embed(chosen), relu=True))
        channels, height, width = self.start
        x = x.view(lanes, batch, height, width, channels).movedim(-1, 2)
        for deconv in self.deconvolutions[:-1]:
            x = deconv(x, relu=self.relu)
        frame: Tensor = self.deconvolutions[-1](x)[..., : self.crop[0], : self.crop[1]]
        return frame.flatten(2, 3)  # planes one below the other


@dataclass(frozen=True)
class NetworkOptions:
    """Points of a network that the paper leaves open, or that an agent of another paper has."""

    relu_features: bool = False  # no entry of phi, psi and xi is negative
    deconv_relu: bool = False  # a ReLU between every two deconvolutions
    bonus_values: bool = False  # a second head of values, of the bonuses alone
    planes: int = 1  # that a frame is made of, one below the other
    onednn: bool = False  # products by oneDNN (products.py)


class Network(nn.Module):
    """phi, and from it q, psi, xi and the next frame: as many of these as an agent uses."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        actions: int,
        a: Architecture,
        generators: Generators,
        *,
        heads: Sequence[str] = ("psi", "xi"),
        decoder: bool = True,
        psi_actions: bool = False,
        tiled: bool = False,
        options: "NetworkOptions | None" = None,
    ) -> None:
        super().__init__()
        options = options or NetworkOptions()
        self.relu = options.relu_features
        self.encoder = Encoder(shape, a, generators, tiled, options.planes)
        self.q = Linear(a.features, actions, generators)
        self.psi = Head(a, actions if psi_actions else 0, generators, self.relu) if "psi" in heads else None
        self.xi = Head(a, 0, generators, self.relu) if "xi" in heads else None
        self.decoder = Decoder(self.encoder, a, actions, generators, options.deconv_relu) if decoder else None
        self.q_bonus = Linear(a.features, actions, generators) if options.bonus_values else None
        for layer in self.modules():
            if isinstance(layer, Linear | Deconv):
                layer.onednn = options.onednn

    def phi(self, stacks: Tensor) -> Tensor:
        """Stacks of frames in 0 ... 1 [L, B, stack, H, W] to features of unit length [L, B, D]."""
        features = self.encoder(stacks)
        return F.normalize(F.relu(features) if self.relu else features, dim=-1)

    def values(self, phi: Tensor) -> Tensor:
        """Values of the actions [L, B, A, heads]: of rewards, and of bonuses where these have a head of their own."""
        heads = [self.q] if self.q_bonus is None else [self.q, self.q_bonus]
        return torch.stack([head(phi).float() for head in heads], dim=-1)


def concatenated(rows: list[Tensor]) -> Tensor:
    """Rows of features side by side [n, d]."""
    return torch.cat(rows, dim=1)


class LoneEncoder(nn.Module):
    """The layers up to phi for one seed, as agents of other libraries read images: x [B, channels, H, W] to [B, D]."""

    def __init__(self, shape: tuple[int, ...], name: str, seed: int) -> None:
        super().__init__()
        self.features = architecture(name).features
        self.encoder = Encoder(shape, architecture(name), [torch.Generator().manual_seed(seed)])

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(self.encoder(x.unsqueeze(0)).squeeze(0), dim=-1)


class NetworkLayer(NamedTuple):
    """A layer as it is, for Figure 2."""

    kind: str  # "conv 6×6 / 2", "FC"
    shape: tuple[int, ...]  # of what it gives for one state


class NetworkLayers(NamedTuple):
    """The layers of a network, part by part, in the order that a state passes through them."""

    encoder: list[NetworkLayer]  # up to phi
    q: list[NetworkLayer]
    psi: list[NetworkLayer]
    xi: list[NetworkLayer]
    decoder: list[NetworkLayer]  # from phi on; the action's embedding multiplies what the first gives
    parameters: int  # of all parts


def layers(name: str, shape: tuple[int, int, int], actions: int) -> NetworkLayers:
    """The layers of a network, with the shapes that a state passes through."""
    network = Network(shape, actions, architecture(name), [torch.Generator()])
    encoder, psi, xi, decoder = network.encoder, network.psi, network.xi, network.decoder
    assert psi is not None
    assert xi is not None
    assert decoder is not None
    shapes: dict[nn.Module, tuple[int, ...]] = {}

    def record_shape(module: nn.Module, _: Any, out: Tensor) -> None:
        shapes[module] = tuple(out.shape[2:])

    for module in network.modules():
        module.register_forward_hook(record_shape)
    with torch.no_grad():
        phi = network.phi(torch.zeros(1, 1, *shape))
        for head in (network.q, psi, xi):
            head(phi)
        decoder(phi, torch.zeros(1, 1, dtype=torch.long))

    def described(*modules: nn.Module) -> list[NetworkLayer]:
        return [NetworkLayer(str(module.kind), shapes[module]) for module in modules]

    return NetworkLayers(
        encoder=described(*encoder.convolutions, *encoder.layers),
        q=described(network.q),
        psi=described(psi.first, psi.second),
        xi=described(xi.first, xi.second),
        decoder=described(decoder.features, decoder.first, decoder.second, *decoder.deconvolutions),
        parameters=sum(p.numel() for p in network.parameters()),
    )
