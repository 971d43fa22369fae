"""The losses of the deep agent, in the order of the paper.

Axes: L lanes (one per seed), B batch, D features. `discount` is 0 where s' ended its episode, else 1. A loss is the
mean over its batch, one number per lane [L]: lanes never touch.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor


def sf_loss(phi: Tensor, psi: Tensor, psi_next: Tensor, gamma: float, discount: Tensor) -> Tensor:
    """E[(phi(s) + gamma discount psi(s'; theta^-) - psi(s; theta))^2], mean over features  (eq. 10)."""
    return (phi + gamma * discount.unsqueeze(-1) * psi_next - psi).square().mean(dim=(1, 2))


def pf_loss(phi_next: Tensor, xi: Tensor, xi_next: Tensor, gamma: float) -> Tensor:
    """E[(phi(s') + gamma xi(s; theta^-) - xi(s'; theta))^2], mean over features  (eq. 15). An end changes no past."""
    return (phi_next + gamma * xi - xi_next).square().mean(dim=(1, 2))


def td_error(q: Tensor, r: Tensor, q_next: Tensor, gamma: float, discount: Tensor) -> Tensor:
    """r + gamma discount max_a q(s', a; theta^-) - q(s, a; theta), q [L, B], q_next [L, B, A]  (eq. 2)."""
    return r + gamma * discount * q_next.amax(dim=-1) - q


def shaped(r: Tensor, u: Tensor, u_next: Tensor, gamma: float, discount: Tensor) -> Tensor:
    """r + gamma discount U(s') - U(s): no optimal policy changes (Ng et al., 1999)."""
    return r + gamma * discount * u_next - u


def two_head_errors(
    q: Tensor,
    r: Tensor,
    bonus: Tensor,
    ahead: Tensor,
    at_start: Tensor,
    gammas: tuple[float, float],
    discount: Tensor,
) -> tuple[Tensor, Tensor]:
    """TD errors of rewards and of bonuses, where each has values of its own (Burda et al., 2018).

    Rewards end with an episode; bonuses go on with the next one. q, ahead [L, B, 2]: values of (s, a) and of the best
    action in s'; at_start [L, n, 2]: of the best action in states where episodes begin.
    """
    next_episode = at_start[..., 1].mean(dim=1, keepdim=True).expand_as(discount)
    after = torch.where(discount == 0, next_episode, ahead[..., 1])
    return r + gammas[0] * discount * ahead[..., 0] - q[..., 0], bonus + gammas[1] * after - q[..., 1]


def q_loss(delta_td: Tensor, delta_mc: Tensor, mmc: float, huber: bool = False) -> Tensor:
    """E[((1 - mmc) delta_TD + mmc delta_MC)^2]  (eq. 17). Huber: the square turns into a line at an error of 1."""
    delta = (1 - mmc) * delta_td + mmc * delta_mc if mmc else delta_td
    if huber:
        size = delta.abs()
        return torch.where(size < 1, size.square(), 2 * size - 1).mean(dim=1)
    return delta.square().mean(dim=1)


def reconstruction_loss(frame: Tensor, predicted: Tensor) -> Tensor:
    """E[(s' - predicted s')^2] of the newest frame [L, B, H, W] in grey levels 0 ... 255, mean over pixels."""
    errors = F.mse_loss(predicted, frame, reduction="none")  # one pass forward, one back
    return 255**2 * errors.mean(dim=(1, 2, 3))


def total_loss(losses: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """w_q L_q + w_SF delta_SF + w_PF delta_PF + w_recon L_recon: those that an agent has  (eq. 18)."""
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum(dim=0)
