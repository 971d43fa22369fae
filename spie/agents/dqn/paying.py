"""The half of a learner that pays: the bonus of the steps it takes and learns from, scaled, and the potential."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.batch import UpdateBatch
from spie.agents.dqn.bonuses import DeepBonus, Transition
from spie.agents.dqn.parts import Parts
from spie.agents.dqn.settings import DQNSettings

OF_TARGET = {"phi", "phi_next", "psi", "xi_next"}  # what theta^- computes of a transition


class Paying:
    """Bonus, scale and potential of a learner, and the transitions as they are seen by the bonus."""

    step: int  # of each lane; one of every environment of a lane at a time
    visits: NDArray[np.int64]  # [L, states] of true states
    phi: Tensor | None  # phi(s; theta^-) of the current states, where the bonus needs it

    def __init__(self, settings: DQNSettings, parts: Parts) -> None:
        self.settings, self.target, self.device = settings, parts.target, parts.device
        self.bonus, self.scale, self.outlook = parts.bonus, parts.scale, parts.outlook
        self.uses = frozenset(() if self.bonus is None else self.bonus.uses)
        if settings.n_step > 1 and settings.bonus_at == "sampling" and self.uses & OF_TARGET:
            needs = "n_step above 1 needs bonus_at=collection"
            raise ValueError(f"DQN: with bonus {settings.bonus}, which the network computes, {needs}")
        if settings.novelty_encoder != "untrained" and self.outlook is None:
            raise ValueError(f"DQN: bonus {settings.bonus} asks for no novelty; leave novelty_encoder out")
        self.bonus_learns = self.bonus is not None and type(self.bonus).learn is not DeepBonus.learn

    def precision(self) -> AbstractContextManager[Any]:
        """What the networks compute in."""
        enabled = self.settings.precision == "bf16"
        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=enabled)

    def images(self, frames: NDArray[np.uint8]) -> Tensor:
        """Frames in 0 ... 1."""
        return torch.from_numpy(frames).to(self.device).float().mul_(1 / 255)

    def look(self, stacks: NDArray[np.uint8]) -> Tensor:
        """phi(s; theta^-) of stacks [L, n, stack, H, W]."""
        with torch.no_grad(), self.precision():
            return self.target.phi(self.images(stacks)).float()

    # -- steps that are taken

    @property
    def pays(self) -> bool:
        """Whether a step that is taken now is paid a bonus: not while actions are drawn at random, by default."""
        s = self.settings
        return self.bonus is not None and (s.bonus_from == "start" or self.step >= s.learning_starts)

    @property
    def observes(self) -> bool:
        """Whether the bonuses that are collected are those that are paid, and so measured by the scale."""
        s = self.settings
        return self.bonus is not None and (s.bonus_at == "collection" or s.mmc > 0 or s.scale == "return")

    def collected_bonus(
        self, a: NDArray[np.int64], next_stacks: NDArray[np.uint8], states: NDArray[np.int64]
    ) -> NDArray[Any]:
        """The raw bonus [L, n] of a step from the current states; 0 where there is none. Learns nothing."""
        if self.bonus is None:
            return np.zeros(a.shape)
        novelty = None
        if "novelty_next" in self.uses and self.outlook is not None:
            novelty = self.outlook.novelty(self.outlook.of(self.images(next_stacks[:, :, -1])))
        return self.bonus.compute(self._arrival(a, next_stacks, states, novelty))

    def bonus_of_step(
        self, paid: bool, a: NDArray[np.int64], next_stacks: NDArray[np.uint8], states: NDArray[np.int64]
    ) -> NDArray[Any]:
        """The same of a step that is learned from. What is not paid is 0, unless replay goes by it."""
        novelty = None if self.outlook is None else self.outlook.enter(self.images(next_stacks[:, :, -1]))
        wanted = paid or self.settings.draws > 1
        if self.bonus is None or not (wanted or self.bonus.early):
            return np.zeros(a.shape)
        seen = self._arrival(a, next_stacks, states, novelty)
        bonus = self.bonus.compute(seen) if wanted else np.zeros(a.shape)
        self.bonus.observe(seen)
        return bonus

    def _arrival(
        self,
        a: NDArray[np.int64],
        next_stacks: NDArray[np.uint8],
        states: NDArray[np.int64],
        novelty: Tensor | None,
    ) -> Transition:
        """What the bonus uses of a step from the current states; phi(s') is kept for the next one."""
        phi_next = self.look(next_stacks) if self.uses & OF_TARGET else None
        frame_next = self.images(next_stacks[:, :, -1]) if "frame_next" in self.uses else None
        action = torch.from_numpy(a).to(self.device)
        seen = self.transition(action, self.phi, phi_next, frame_next, states, novelty)
        self.phi = phi_next
        return seen

    def pay(self, reward: NDArray[Any], bonus: NDArray[Any] | None) -> NDArray[np.float32]:
        """What the agent learns from [L, B]: reward + beta bonus, clipped before and after the sum."""
        limit = 1 if self.settings.clip else np.inf
        total = np.clip(reward, -limit, limit)
        if bonus is not None and self.bonus is not None and self.settings.value_heads == "one":
            total = np.clip(total + self.settings.beta * self.scale(bonus), -limit, limit)
        return np.asarray(total, np.float32)

    def leave(self, total: NDArray[np.float32], terminal: NDArray[np.bool_]) -> None:
        """What the steps just taken paid [L, n], to the potential."""
        if self.outlook is None:
            return
        if not np.isfinite(total).all():
            paid = total[~np.isfinite(total)][0]
            raise ValueError(f"step {self.step}: a step paid {paid}; novelty and its potential need finite rewards")
        self.outlook.leave(torch.from_numpy(total).to(self.device), torch.from_numpy(~terminal).to(self.device))

    def potential_now(self) -> NDArray[np.float64] | float:
        """U of the current states [L, n]; 0 where nothing is shaped."""
        if self.outlook is None or not self.settings.potential:
            return 0.0
        return self.outlook.potential(self.outlook.phi).cpu().numpy()

    # -- steps that are learned from

    def transition(
        self,
        a: Tensor,
        phi: Tensor | None,
        phi_next: Tensor | None,
        frame_next: Tensor | None,
        states: NDArray[np.int64],
        novelty: Tensor | None = None,
    ) -> Transition:
        """What the bonus uses of transitions [L, B]; states: the true ones that they lead to."""
        psi = xi_next = visits = None
        with torch.no_grad(), self.precision():
            if "psi" in self.uses and self.target.psi is not None:
                psi = self.target.psi(phi, a).float()
            if "xi_next" in self.uses and self.target.xi is not None:
                xi_next = self.target.xi(phi_next).float()
        if "visits_next" in self.uses:
            visits = np.maximum(np.take_along_axis(self.visits, states, axis=1), 1)
        new = None if novelty is None or "novelty_next" not in self.uses else novelty.double().cpu().numpy()
        return Transition(a, frame_next, phi, phi_next, psi, xi_next, visits, new)

    def looked_at(self, batch: UpdateBatch) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Of a batch [L, B]: e of s', U(s) and U(s'), as far as they are needed."""
        if self.outlook is None:
            return None, None, None
        if not self.settings.potential:
            return self.outlook.novelty(self.outlook.of(batch.s_next[:, :, -1])), None, None
        both = self.outlook.of(torch.cat([batch.s[:, :, -1], batch.s_next[:, :, -1]], dim=1))
        u, u_next = self.outlook.potential(both).chunk(2, dim=1)
        novelty = self.outlook.novelty(both[:, u.shape[1] :]) if "novelty_next" in self.uses else None
        return novelty, u, u_next

    def paid_now(self, batch: UpdateBatch, seen: Transition) -> Tensor:
        """Rewards of a batch with the bonus as it is now, not as it was when they were collected."""
        assert self.bonus is not None
        bonus = self.bonus.compute(seen)
        if not self.observes:
            self.scale.observe(bonus)
        if self.settings.draws > 1:
            batch.set_bonus(bonus)
        return torch.from_numpy(self.pay(batch.array("reward"), bonus)).to(self.device)

    def paid_ahead(self, batch: UpdateBatch) -> tuple[Tensor, Tensor, Tensor]:
        """Of n steps from each transition on: what they pay [L, B], the state after them, and its discount [L, B]."""
        cfg, steps = self.settings, batch.following(self.settings.n_step)
        paid = steps.array("total")
        if self.bonus is not None and cfg.bonus_at == "sampling":
            lanes, flat = paid.shape[0], (paid.shape[0], -1)
            states, frames = steps.array("state").reshape(flat), None
            if self.outlook is not None or "frame_next" in self.uses:
                frames = self.images(steps.entered().reshape(lanes, -1, *steps.after.shape[-2:]))
            novelty = None
            if self.outlook is not None and "novelty_next" in self.uses and frames is not None:
                novelty = self.outlook.novelty(self.outlook.of(frames))
            action = torch.from_numpy(steps.array("action").reshape(flat)).to(self.device)
            bonus = self.bonus.compute(self.transition(action, None, None, frames, states, novelty))
            paid = self.pay(steps.array("reward").reshape(flat), bonus).reshape(paid.shape)
        arrays = steps.discounted(paid, cfg.gamma), steps.discount(cfg.gamma)
        r, discount = (torch.from_numpy(array).to(self.device) for array in arrays)
        return r, self.images(steps.after), discount
