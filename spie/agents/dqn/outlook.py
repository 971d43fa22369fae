"""How new a frame is, and what can be reached from it: spie/novelty.py on frames, for lanes side by side.

    x   = what an untrained encoder says of the newest frame
    phi = cos(W x + b), scaled to length 1; W normal over a width, which is half the median distance of the distinct
          frames among the first FIRST steps of the lane. Nothing of it is learned; those steps count for nothing else.

With novelty_encoder="inverse-dynamics" the encoder is learned in turns, and all else begins again after each
(inverse.py). What is learned in any case are the matrices Lambda, X, K and the potential U of spie/novelty.py, of every
lane its own. A frame's share of Lambda^-1 is a vector z z^T (Sherman and Morrison); BLOCK such vectors wait, and are
then subtracted at once.

Axes: L lanes, B batch or environments, D features.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.bonuses import Surroundings
from spie.agents.dqn.networks import Encoder, architecture
from spie.agents.dqn.replay import FrameReplay
from spie.novelty import LOOKED_AHEAD, RENEWED

FIRST = 64  # steps whose frames give the width
BLOCK = LOOKED_AHEAD  # vectors that wait until they are subtracted at once
WIDTH = 0.5  # of the kernel, in median distances
CHUNK = 256  # frames of a lane that are looked at together when all is computed again


class LaneMatrices:
    """`spie.novelty.SuccessorNovelty` of lanes side by side, with one stream of pay."""

    def __init__(self, lanes: int, dimension: int, g: float, device: str = "cpu", ridge: float = 1.0) -> None:
        self.g, self.ridge = g, ridge

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(lanes, *shape, dtype=torch.float64, device=device)

        self.Lambda, self.inverse, self.X = (zeros(dimension, dimension) for _ in range(3))
        self.Lambda.diagonal(dim1=1, dim2=2).fill_(ridge)
        self.inverse.diagonal(dim1=1, dim2=2).fill_(1 / ridge)
        self.rounded = self.inverse.float()  # for batches of replay, where single precision will do
        self.paid, self.u = zeros(dimension), zeros(dimension)
        self.seen, self.shares = zeros(BLOCK, dimension), zeros(BLOCK, dimension)  # frames that wait, and their z
        self.left, self.entered = zeros(BLOCK, dimension), zeros(BLOCK, dimension)  # both ends of steps that wait
        self.waiting, self.steps, self.blocks = 0, 0, 0

    def novelty(self, phi: Tensor) -> Tensor:
        """e [L, B] of features [L, B, D]."""
        waiting = torch.bmm(phi, self.shares[:, : self.waiting].mT.to(phi)).square().sum(dim=-1)
        length: Tensor = torch.linalg.vecdot(torch.bmm(phi, self.rounded.to(phi)), phi) - waiting
        return (self.ridge * length.clamp_min(0)).sqrt()

    def see(self, phi: Tensor, which: Tensor | None = None) -> Tensor:
        """Count frames phi [L, D], of the lanes that are marked [L]; their e afterwards [L]."""
        if self.waiting == BLOCK:
            self._absorb()
        k = self.waiting
        phi = phi if which is None else phi * which[:, None]
        row, before = phi.unsqueeze(1), self.shares[:, :k]
        share = (torch.bmm(row, self.inverse) - torch.bmm(torch.bmm(row, before.mT), before)).squeeze(1)
        length: Tensor = torch.linalg.vecdot(share, phi).clamp_min(0)
        self.seen[:, k], self.shares[:, k] = phi, share / (1 + length).sqrt().unsqueeze(1)
        self.waiting += 1
        return (self.ridge * length / (1 + length)).sqrt()

    def step(self, phi: Tensor, phi_next: Tensor, paid: Tensor, discount: Tensor) -> None:
        """Learn from a step of every lane between frames that count already; discount is 0 where the episode ended."""
        k = self.steps % BLOCK
        self.left[:, k], self.entered[:, k] = phi, phi_next * discount.unsqueeze(1)
        self.paid.addcmul_(phi, paid.unsqueeze(1))
        self.steps += 1
        if self.steps % BLOCK == 0:
            self._absorb()
            self.X.baddbmm_(self.left.mT, self.entered)
            self._look_ahead()

    def start_from(self, seen: Tensor, X: Tensor, paid: Tensor) -> None:
        """Begin again with these sums over frames phi phi^T, over steps phi(s) phi(s')^T, and over phi(s) paid."""
        self.Lambda, self.X, self.paid = seen.clone(), X, paid
        self.Lambda.diagonal(dim1=1, dim2=2).add_(self.ridge)
        self.inverse = torch.cholesky_inverse(torch.linalg.cholesky(self.Lambda))
        self.rounded = self.inverse.float()
        self.waiting, self.steps, self.blocks = 0, 0, 0
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Compute U again."""
        # One by one: on two threads oneMKL's LU of a batch of matrices fails (pivots of 0; torch 2.13, AMD EPYC).
        lanes = zip(self.Lambda - self.g * self.X, self.paid, strict=True)
        self.u = torch.stack([torch.linalg.solve(A, paid) for A, paid in lanes])

    def _absorb(self) -> None:
        """Take the frames that wait into Lambda and its inverse."""
        k, self.waiting = self.waiting, 0
        self.Lambda.baddbmm_(self.seen[:, :k].mT, self.seen[:, :k])
        self.blocks += 1
        if self.blocks % (RENEWED // BLOCK):
            self.inverse.baddbmm_(self.shares[:, :k].mT, self.shares[:, :k], alpha=-1)
        else:
            self.inverse = torch.cholesky_inverse(torch.linalg.cholesky(self.Lambda))
        self.rounded = self.inverse.float()

    def potential(self, phi: Tensor) -> Tensor:
        """U [L, B] of features [L, B, D]."""
        return torch.bmm(self.u.to(phi).unsqueeze(1), phi.mT).squeeze(1)

    def state(self) -> dict[str, Tensor]:
        """All that changes."""
        names = ("Lambda", "inverse", "X", "paid", "u", "seen", "shares", "left", "entered")
        counts = torch.tensor([self.waiting, self.steps, self.blocks])
        return {name: vars(self)[name] for name in names} | {"counts": counts}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        for name, own in self.state().items():
            own.copy_(state[name])
        self.waiting, self.steps, self.blocks = map(int, state["counts"])
        self.rounded = self.inverse.float()


class FrameFeatures:
    """phi of frames: random Fourier features of what an untrained encoder says; each lane's own."""

    updates: ClassVar[int] = 0  # of the encoder, each time that it learns

    def __init__(self, around: Surroundings, hidden: tuple[int, ...] = ()) -> None:
        """hidden: layers of the encoder between its convolutions and x."""
        generators = [torch.Generator().manual_seed(seed) for seed in around.seeds]
        a, dimension = replace(architecture(around.settings.network), hidden=hidden), around.settings.novelty_features
        self.encoder = Encoder((1, *around.shape), a, generators, around.tiled).to(around.device).requires_grad_(False)
        W = [torch.randn(a.features, dimension, generator=g) for g in generators]
        b = [2 * math.pi * torch.rand(1, dimension, generator=g) for g in generators]
        self.W, self.b = torch.stack(W).to(around.device), torch.stack(b).to(around.device)

    def codes(self, frames: Tensor) -> Tensor:
        """x [L, B, n] of frames [L, B, H, W]."""
        with torch.no_grad():
            return self.encoder(frames.unsqueeze(2)).float()  # type: ignore[no-any-return]

    def set_width(self, first: Tensor) -> None:
        """Take the width from the codes of the first frames [L, n, ...]."""
        widths = torch.tensor([median_distance(codes) for codes in first.double().cpu().numpy()])
        if not widths.isfinite().all():
            raise ValueError("novelty: the first frames have features that are not finite; does the image hold NaN?")
        if not widths.all():
            same = f"the first {first.shape[1]} frames are all equal"
            raise ValueError(f"novelty: {same}, so nothing tells how far apart frames are; is this the right image?")
        self.W.div_((WIDTH * widths).to(self.W)[:, None, None])

    def __call__(self, codes: Tensor) -> Tensor:
        """phi [L, B, D] of codes [L, B, n]."""
        return F.normalize(torch.baddbmm(self.b, codes, self.W).cos_(), dim=-1)

    def learn(self, frames: Tensor, action: Tensor, frames_next: Tensor) -> NDArray[Any]:
        """One update of the encoder, of those that learn."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """All that changes, or was drawn at random."""
        return {f"encoder.{name}": p for name, p in self.encoder.state_dict().items()} | {"W": self.W, "b": self.b}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        self.encoder.load_state_dict({name: state[f"encoder.{name}"] for name in self.encoder.state_dict()})
        self.W.copy_(state["W"])
        self.b.copy_(state["b"])


def median_distance(codes: np.ndarray) -> float:
    """The median distance of distinct rows [n, d]; 0 where all are equal, NaN where one is not finite."""
    if not np.isfinite(codes).all():
        return math.nan
    distinct = np.unique(codes.round(5), axis=0)  # equal frames may differ by rounding
    if len(distinct) == 1:
        return 0.0
    squares = (distinct**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * distinct @ distinct.T
    return float(np.sqrt(np.median(distances[np.triu_indices(len(distinct), 1)])))


class Outlook:
    """The novelty of frames and the potential of what is paid, as learned from the steps of all lanes so far."""

    def __init__(self, features: FrameFeatures, matrices: LaneMatrices, envs: int) -> None:
        self.features, self.matrices = features, matrices
        lanes, n, D = features.W.shape
        of_width = (lanes, FIRST, n)
        self.first = torch.zeros(of_width, device=features.W.device)  # codes of the frames that give the width
        self.collected = 0
        self.phi = torch.zeros(lanes, envs, D, dtype=torch.float64, device=features.W.device)  # of the current frames
        self._next = self.phi  # of the frames just entered

    @property
    def ready(self) -> bool:
        """Whether features and width are known; until then every frame is as new as any other."""
        return self.collected == FIRST

    def begin(self, frames: Tensor, fresh: Tensor) -> None:
        """Episodes begin with frames [L, n, H, W] in the environments that are marked [L, n]."""
        if not self.ready:
            return
        phi = self.of(frames).double()
        self.phi = torch.where(fresh.unsqueeze(2), phi, self.phi)
        for env in torch.nonzero(fresh.any(dim=0)).ravel().tolist():
            self.matrices.see(phi[:, env], fresh[:, env])

    def enter(self, frames: Tensor) -> Tensor:
        """Count frames [L, n, H, W] that a step of every environment led to; their e [L, n]."""
        if not self.ready and self.features.updates:
            return torch.ones(frames.shape[:2], dtype=torch.float64)
        codes = self.features.codes(frames)
        if not self.ready:
            some = codes[:, : FIRST - self.collected]
            self.first[:, self.collected : self.collected + some.shape[1]] = some
            self.collected += some.shape[1]
            if not self.ready:
                return torch.ones(codes.shape[:2], dtype=torch.float64)
            self.features.set_width(self.first)
        self._next = self.features(codes).double()
        return torch.stack([self.matrices.see(phi) for phi in self._next.unbind(1)], dim=1)

    def leave(self, paid: Tensor, discount: Tensor) -> None:
        """The same steps, after `enter`: what they paid [L, n], and 0 where they ended an episode."""
        if self.ready:
            for env in range(paid.shape[1]):
                ends = self.phi[:, env], self._next[:, env]
                self.matrices.step(*ends, paid[:, env].double(), discount[:, env].double())
            self.phi = self._next

    def renew(self, logs: Sequence[FrameReplay], images: Callable[[NDArray[np.uint8]], Tensor], now: Tensor) -> None:
        """Compute all again from what the logs of the lanes hold and the current frames [L, n, H, W].

        images: frames as networks read them. Of what the logs no longer hold nothing is known afterwards.
        """
        some = [log.gather(np.linspace(log.oldest, log.head - 1, FIRST).astype(np.int64)) for log in logs]
        self.features.set_width(self.features.codes(images(np.stack(some))))
        self.collected = FIRST
        self.phi = self._next = self.of(now).double()
        lanes, envs, D = self.phi.shape
        seen = torch.bmm(self.phi.mT, self.phi)
        X, paid = torch.zeros_like(seen), torch.zeros(lanes, D).to(seen)
        for first in range(0, max(log.head - log.oldest for log in logs), CHUNK):
            steps = _Steps(logs, first)
            phi = self.of(images(steps.frames)).double() * steps.alive.to(seen)
            seen.baddbmm_(phi.mT, phi)
            X.baddbmm_(phi.mT, self.of(images(steps.entered)).double() * steps.go_on.to(seen))
            paid += torch.bmm(steps.total.to(seen).mT, phi).squeeze(1)
        for env in range(envs):  # steps to the current frames, which the logs do not hold yet
            newest = [log.newest(env) for log in logs]
            frames = [log.gather(np.array([max(slot, log.oldest)])) for slot, log in zip(newest, logs, strict=True)]
            phi = self.of(images(np.stack(frames))).double() * (torch.tensor(newest) >= 0).to(seen)[:, None, None]
            X.baddbmm_(phi.mT, self.phi[:, env : env + 1])
        self.matrices.start_from(seen, X, paid)

    def of(self, frames: Tensor) -> Tensor:
        """phi of frames [L, B, H, W]."""
        return self.features(self.features.codes(frames))

    def novelty(self, phi: Tensor) -> Tensor:
        """e [L, B] of what `of` gave."""
        return self.matrices.novelty(phi) if self.ready else torch.ones(phi.shape[:2], dtype=torch.float64)

    def potential(self, phi: Tensor) -> Tensor:
        """U [L, B] of what `of` gave."""
        return self.matrices.potential(phi)

    def state(self) -> dict[str, Tensor]:
        """All that changes, or was drawn at random, for a checkpoint."""
        tensors = self.features.state()
        tensors |= {"first": self.first, "collected": torch.tensor(self.collected), "phi": self.phi}
        return tensors | {f"matrices.{name}": p for name, p in self.matrices.state().items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""
        self.features.load(state)
        self.first.copy_(state["first"])
        self.phi = state["phi"].to(self.phi)
        self.collected = int(state["collected"])
        of_matrices = {n.removeprefix("matrices."): p for n, p in state.items() if n.startswith("matrices.")}
        self.matrices.load(of_matrices)


class _Steps:
    """CHUNK slots of the log of every lane, of those that it holds beginning with number `first`; arrays [L, CHUNK]."""

    def __init__(self, logs: Sequence[FrameReplay], first: int) -> None:
        slots = [np.minimum(log.oldest + first + np.arange(CHUNK), log.head - 1) for log in logs]
        pairs = list(zip(logs, slots, strict=True))
        self.frames = np.stack([log.gather(at) for log, at in pairs])
        self.entered = np.stack([log.entered(at) for log, at in pairs])
        self.alive = torch.tensor([log.oldest + first + i < log.head for log in logs for i in range(CHUNK)])
        self.alive = self.alive.view(len(logs), CHUNK, 1)
        goes_on = [(log.field("next", at) > 0) & ~log.field("terminal", at) for log, at in pairs]
        self.go_on = torch.from_numpy(np.stack(goes_on)).unsqueeze(2)
        self.total = torch.from_numpy(np.stack([log.field("total", at) for log, at in pairs])).unsqueeze(2)
