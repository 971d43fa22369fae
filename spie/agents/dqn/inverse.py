"""Features of frames by which one can tell what the agent did: what its actions do not move, they need not show.

A picture with noise is new at every step to an untrained encoder. Here the encoder x is learned by inverse dynamics: a
small network tells the action from x(s) and x(s'), by the cross-entropy

    - log p(a | x(s), x(s'))                                      (Pathak et al., 2017)

with weights that decay, so that what does not help to tell it fades. Novelty needs features that stay as they are, so x
is learned in turns: at the end of the steps at random, and whenever the steps have doubled since. After each turn all
that novelty knows is computed again from replay (`Outlook.renew`).

Axes: L lanes, B batch, n numbers of a code x.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from spie.agents.dqn.bonuses import Surroundings
from spie.agents.dqn.networks import Linear, architecture
from spie.agents.dqn.optimisers import Adam
from spie.agents.dqn.outlook import FrameFeatures

UPDATES = 500  # of a turn
RATE, DECAY = 1e-3, 1e-3  # of the weights at each update: Adam's step, and the share that is lost
HIDDEN = 128  # units of the network that tells the action


class LearnedFeatures(FrameFeatures):
    """phi of frames as in `FrameFeatures`, of an encoder that learns to tell actions."""

    updates: ClassVar[int] = UPDATES

    def __init__(self, around: Surroundings, actions: int) -> None:
        a = architecture(around.settings.network)
        super().__init__(around, a.hidden)
        self.encoder.requires_grad_(True)
        # Another draw than the encoder's.
        generators = [torch.Generator().manual_seed(seed + 2) for seed in around.seeds]
        sizes = ((2 * a.features, HIDDEN), (HIDDEN, actions))
        self.predictor = nn.ModuleList(Linear(*size, generators) for size in sizes).to(around.device)
        self.parameters: list[Tensor] = [*self.encoder.parameters(), *self.predictor.parameters()]
        self.optimiser = Adam(self.parameters, RATE)
        self.unit = self.W.clone()  # W over a width of 1

    def loss(self, frames: Tensor, action: Tensor, frames_next: Tensor) -> Tensor:
        """The mean cross-entropy [L] of actions [L, B] that led from frames [L, B, H, W] to the next ones."""
        codes = self.encoder(torch.cat([frames, frames_next], dim=1).unsqueeze(2)).float()
        both = torch.cat(codes.chunk(2, dim=1), dim=-1)
        logits = self.predictor[1](self.predictor[0](both, relu=True))
        return F.cross_entropy(logits.movedim(-1, 1), action, reduction="none").mean(dim=1)

    def learn(self, frames: Tensor, action: Tensor, frames_next: Tensor) -> NDArray[Any]:
        """One step along the gradient of `loss`; the loss before it [L]."""
        loss = self.loss(frames, action, frames_next)
        loss.sum().backward()
        with torch.no_grad():
            torch._foreach_mul_(self.parameters, 1 - DECAY)
        self.optimiser.step()
        return loss.detach().cpu().numpy()

    def set_width(self, first: Tensor) -> None:
        self.W.copy_(self.unit)
        super().set_width(first)

    def state(self) -> dict[str, Tensor]:
        tensors = super().state() | {"unit": self.unit}
        tensors |= {f"predictor.{name}": p for name, p in self.predictor.state_dict().items()}
        return tensors | {f"optimiser.{name}": p for name, p in self.optimiser.state().items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        super().load(state)
        self.unit.copy_(state["unit"])
        self.predictor.load_state_dict({name: state[f"predictor.{name}"] for name in self.predictor.state_dict()})
        self.optimiser.load({n.removeprefix("optimiser."): p for n, p in state.items() if n.startswith("optimiser.")})
