"""Intrinsic rewards of the deep agent: a bonus is an object that is computed from a transition, and may learn from one.

Axes: L lanes (one per seed), B batch or environments. A user's `@spie.reward` on features is such an object as well,
`FeatureReward`; a bonus that needs more, as a network of its own, inherits from `DeepBonus`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, no_type_check

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from spie.agents.dqn.networks import Architecture, Encoder, Linear, architecture
from spie.agents.dqn.optimisers import Adam
from spie.agents.dqn.settings import BONUSES, DQNSettings, bonus_maker, register_bonus
from spie.engine.specialise import specialise
from spie.rewards import FEATURE_QUANTITIES, Reward, get_reward

__all__ = ["RND", "DeepBonus", "FeatureReward", "Scale", "Surroundings", "Transition", "make_bonus", "register_bonus"]

NORMS = {"l1": 1, "l2": 2}
PRIOR = 1e-4  # steps
FLOOR = 1e-8  # below any length that a trained psi or xi has; it keeps the bonus finite


@dataclass(frozen=True)
class Surroundings:
    """Where a bonus will work."""

    settings: DQNSettings
    shape: tuple[int, int]  # of a frame
    seeds: Sequence[int]  # one per lane, for all that the bonus draws
    device: str
    tiled: bool  # frames come tile by tile (`networks.tiles`) where an `Encoder` of these lanes reads them so


@dataclass(frozen=True)
class Transition:
    """Transitions (s, a, s') of all lanes, as theta^- sees them. What no bonus asked for, by `uses`, is None."""

    action: Tensor  # [L, B]
    frame_next: Tensor | None = None  # [L, B, H, W] the newest frame of s', 0 ... 1
    phi: Tensor | None = None  # [L, B, D] phi(s)
    phi_next: Tensor | None = None  # [L, B, D] phi(s')
    psi: Tensor | None = None  # [L, B, D] psi(s), or psi(s, a) where the settings say so
    xi_next: Tensor | None = None  # [L, B, D] xi(s')
    visits_next: NDArray[np.int64] | None = None  # [L, B] times in the true s' so far, this arrival included
    novelty_next: NDArray[np.float64] | None = None  # [L, B] e of the newest frame of s' (outlook.py), 0 ... 1


class DeepBonus:
    """A bonus of the deep agent: inherit from it, and register the class by `@register_bonus("name")`."""

    uses: tuple[str, ...] = ()  # the fields of a `Transition` that it reads, beside the action
    early: bool = False  # whether it observes and learns from the steps at random before learning starts

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings

    def compute(self, transition: Transition) -> NDArray[Any]:
        """The raw bonus [L, B], before scale and beta. Learns nothing."""
        raise NotImplementedError

    def observe(self, transition: Transition) -> None:
        """Steps that were just taken, after `compute`: for statistics of what comes in."""

    def learn(self, transition: Transition) -> dict[str, NDArray[Any]]:
        """Learn from the batch of an update; losses to report, by name, one number per lane [L]."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """All that changes, or was drawn at random, for a checkpoint."""
        return {}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""


def make_bonus(surroundings: Surroundings) -> DeepBonus | None:
    """The bonus that the settings name; None for "none"."""
    settings = surroundings.settings
    if settings.bonus == "none":
        return None
    if settings.bonus in BONUSES:
        made: DeepBonus = bonus_maker(settings.bonus)(surroundings)
        return made
    printed = settings.bonus == "sf-pf" and settings.sf_pf == "printed"
    return FeatureReward(get_reward("sf-pf-printed" if printed else settings.bonus, "features"), settings.norm)


# -- Rewards of spie/rewards.py, on the features of theta^-

_FIELDS = {"psi_norm": "psi", "xi_norm_next": "xi_next", "phi_norm_next": "phi_next", "visits_next": "visits_next"}


@no_type_check
def reward_of_each(psi_norm, xi_norm_next, phi_norm_next, visits_next, bonus):
    """A reward, which is written for one transition, of many [n]; compiled by `specialise`."""
    for i in range(bonus.size):
        one = intrinsic_reward(psi_norm[i], xi_norm_next[i], phi_norm_next[i], visits_next[i])  # type: ignore  # noqa
        bonus[i] = one


class FeatureReward(DeepBonus):
    """An intrinsic reward on features, on norms of what theta^- computes.

    It is as exact as what it is computed from: norms are float32, and so is then the bonus.
    """

    def __init__(self, reward: Reward, norm: str) -> None:
        self.reward, self.norm = reward, norm
        self.uses = tuple(_FIELDS[need] for need in reward.needs)
        self._function: Callable[..., Any] | None = None  # compiled at the first call

    def compute(self, transition: Transition) -> NDArray[Any]:
        if self._function is None:
            self._function = specialise(reward_of_each, (), {}, {}, self.reward, FEATURE_QUANTITIES)
        found = {need: self._quantity(getattr(transition, _FIELDS[need])) for need in self.reward.needs}
        bonus = np.zeros(transition.action.shape)
        given = {need: np.ravel(values).astype(np.float64) for need, values in found.items()}
        self._function(*(given.get(name, bonus.ravel()) for name in FEATURE_QUANTITIES), bonus.reshape(-1))
        exact = {values.dtype for values in found.values()} == {np.dtype(np.float32)}
        return bonus.astype(np.float32) if exact else bonus

    def _quantity(self, values: Any) -> NDArray[Any]:
        """Norms [L, B] of features [L, B, D]; of counts the counts."""
        if not isinstance(values, Tensor):
            return np.asarray(values)
        lengths = torch.linalg.vector_norm(values.float(), NORMS[self.norm], dim=-1).clamp_min(FLOOR)
        return np.asarray(lengths.cpu().numpy())


# -- Novelty


class Novelty(DeepBonus):
    """How new the newest frame is, an elliptical pseudo-count; known as "novelty", with a potential "sp-novelty"."""

    uses = ("novelty_next",)

    def compute(self, transition: Transition) -> NDArray[np.float64]:
        assert transition.novelty_next is not None
        return transition.novelty_next


# -- Random network distillation


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

    def observe(self, s_next: ArrayLike | Tensor) -> None:
        """Mean and deviation of observations s_next [L, B, *shape] go on with these."""
        s = _tensor(s_next, self.mean)
        self.count += 1
        weight = 1 / self.count
        self.mean.lerp_(s.float().mean(dim=1, keepdim=True).double(), weight)
        self.square.lerp_(s.float().square().mean(dim=1, keepdim=True).double(), weight)

    def learn(self, s_next: ArrayLike | Tensor) -> NDArray[np.float64]:
        """`observe` and `train` on the same observations."""
        self.observe(s_next)
        return self.train(s_next)

    def train(self, s_next: ArrayLike | Tensor) -> NDArray[np.float64]:
        """One step of the predictor on s_next [L, B, *shape]; the error of each lane before it [L]."""
        errors = self._errors(self._normalised(_tensor(s_next, self.mean))).mean(dim=1)
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


class Distilled(DeepBonus):
    """RND of the newest frame; known as "rnd".

    Statistics of the frames, and the predictor, begin with the steps at random; the statistics are of the frames as
    they come, the predictor learns from replay.
    """

    uses = ("frame_next",)
    early = True

    def __init__(self, surroundings: Surroundings) -> None:
        settings = surroundings.settings
        self.rnd = RND(
            surroundings.shape,
            architecture(settings.network),
            surroundings.seeds,
            rate=settings.rnd_rate,
            device=surroundings.device,
            tiled=surroundings.tiled,
        )

    def compute(self, transition: Transition) -> NDArray[np.float64]:
        assert transition.frame_next is not None
        return self.rnd.compute(transition.frame_next)

    def learn(self, transition: Transition) -> dict[str, NDArray[Any]]:
        assert transition.frame_next is not None
        return {"rnd_loss": self.rnd.train(transition.frame_next)}

    def observe(self, transition: Transition) -> None:
        assert transition.frame_next is not None
        self.rnd.observe(transition.frame_next)

    def state(self) -> dict[str, Tensor]:
        return self.rnd.state()

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.rnd.load(state)


# -- The size of a bonus


class Scale:
    """The running size of a bonus, each lane's own, and the bonus measured by it.

    none: as it is; rms: over its root mean square so far; standard: less its mean so far, over its standard deviation
    so far, plus an offset; return: over the standard deviation so far of its discounted sum, which runs on through the
    ends of episodes (Burda et al., 2018).
    """

    def __init__(self, kind: str, lanes: int = 1, offset: float = 0.0, envs: int = 1, gamma: float = 0.99) -> None:
        self.kind, self.offset, self.gamma = kind, offset, gamma
        self.count = 0
        self.mean, self.square = np.zeros(lanes), np.zeros(lanes)
        self.returns = np.zeros((lanes, envs))  # discounted sums of the bonuses up to now

    def observe(self, bonus: NDArray[Any]) -> None:
        """Raw bonuses [L, B] that were just collected; of "return", one an environment."""
        if self.kind == "return":
            self.returns *= self.gamma
            self.returns += bonus
            bonus = self.returns
        self.count += 1
        self.mean += (bonus.mean(axis=1) - self.mean) / self.count
        self.square += (np.square(bonus).mean(axis=1) - self.square) / self.count

    def __call__(self, bonus: NDArray[Any]) -> NDArray[Any]:
        """Raw bonuses [L, B] as they are paid, before beta."""
        if self.kind == "none":
            return bonus
        if self.kind == "rms":
            return bonus / (np.sqrt(self.square) + FLOOR)[:, None]
        variance = np.maximum(self.square - self.mean**2, 0)
        if self.kind == "return":  # a variance of 1 counts as much as 10^-4 steps, so that the first step is finite
            return bonus / np.sqrt(variance + PRIOR / (self.count + PRIOR))[:, None]
        return (bonus - self.mean[:, None]) / (np.sqrt(variance) + FLOOR)[:, None] + self.offset

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What changes beside the count, for a checkpoint."""
        return {"mean": self.mean, "square": self.square, "returns": self.returns}
