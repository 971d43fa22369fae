"""The settings of the deep agent, with their presets and checks; importable without torch.

To add a bonus of a new kind, register what makes it, in a file that may import torch:

    from spie.agents.dqn.bonuses import DeepBonus, register_bonus

    @register_bonus("my-bonus")
    class MyBonus(DeepBonus): ...
"""

import dataclasses
import hashlib
import importlib
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from spie.errors import check_number, check_whole, is_among, is_name, is_number, is_whole, told, unknown
from spie.registry import Registry
from spie.rewards import reward_names

# 3: sf-pf in double precision. 4: equation 15 on phi(s'; theta), no bonus for random steps, RND's statistics, no ReLU
# between deconvolutions.
VERSION = 4  # of the agent: raised when the same settings give other numbers

LOSSES = ("q", "sf", "pf", "recon")  # those of eq. 18
_PRESET: Any = None  # a setting left out is the preset's

_PAPER: dict[str, Any] = {
    "network": "paper",
    "stack": 4,
    "beta": 0.07,
    "scale": "none",
    "clip": True,
    "loss": "squared",
    "optimiser": "rmsprop",
    "rate": 2.5e-4,
    "eps": 1e-3,
    "rnd_rate": 1e-4,
    "target": "periodic",
    "batch": 32,
    "train_every": 4,
    "learning_starts": 50_000,
    "replay": 1_000_000,
    "epsilon": 0.1,
    "epsilon_fraction": 0.0,
    "w_sf": 1500.0,
    "w_pf": 1500.0,
    "w_recon": 1e-3,
}
PRESETS: dict[str, dict[str, Any]] = {
    "paper": _PAPER,
    "nature": _PAPER | {"network": "nature"},
    # For small tasks; not the paper's, and not tuned.
    "small": {
        "network": "small",
        "stack": 1,
        "beta": 0.01,
        "scale": "rms",
        "clip": False,
        "loss": "huber",
        "optimiser": "adam",
        "rate": 5e-4,
        "eps": 1e-6,
        "rnd_rate": 5e-4,
        "target": "polyak",
        "batch": 64,
        "train_every": 8,
        "learning_starts": 500,
        "replay": 100_000,
        "epsilon": 0.05,
        "epsilon_fraction": 0.05,
        "w_sf": 1.0,
        "w_pf": 1.0,
        "w_recon": 1e-3,
    },
}
# What follows from the bonus. DQN and RND have no Monte-Carlo part. RND is as its own paper has it: over the deviation
# of its return, and half as much worth as rewards.
OF_OTHER_BONUSES = {"mmc": 0.1}
NOVELTY = {"mmc": 0.1, "scale": "standard", "offset": -1.0, "bonus_at": "sampling", "draws": 8}
OF_BONUS: dict[str, dict[str, Any]] = {
    "none": {"mmc": 0.0},
    "sf": {"mmc": 0.1, "norm": "l2"},
    "sf-pf": {"mmc": 0.1, "norm": "l1"},
    "rnd": {"mmc": 0.0, "scale": "return", "beta": 0.5},
    "constant": {"mmc": 0.1, "scale": "none"},
    "count": {"mmc": 0.1, "scale": "none"},
    "novelty": NOVELTY,
    "sp-novelty": NOVELTY | {"potential": True},
}
# What no preset and few bonuses have.
OF_FEW: dict[str, Any] = {"norm": "l1", "bonus_at": "collection", "offset": 0.0, "potential": False, "draws": 1}

Make = TypeVar("Make", bound=Callable[..., Any])


def _add_own() -> None:
    BONUSES.add("rnd", "spie.agents.dqn.bonuses:Distilled")
    for name in ("novelty", "sp-novelty"):
        BONUSES.add(name, "spie.agents.dqn.bonuses:Novelty")


BONUSES: Registry[Any] = Registry("bonus of DQN", _add_own)  # what makes it; of ours, which need torch, where that is


def register_bonus(name: str) -> Callable[[Make], Make]:
    """Decorator that makes a class known as the bonus `name`: `DQN(bonus=name)` builds it from a `Surroundings`."""

    def register(make: Make) -> Make:
        if name in OF_BONUS or name in reward_names():
            raise ValueError(f'"{name}" is a bonus of DQN already; give yours another name')
        BONUSES.add(name, make, again=True)
        return make

    return register


def bonus_maker(name: str) -> Callable[..., Any]:
    """What makes the bonus `name` of `register_bonus`."""
    make = BONUSES.get(name)
    if isinstance(make, str):
        module, _, attribute = make.partition(":")
        make = getattr(importlib.import_module(module), attribute)
    return make  # type: ignore[no-any-return]


def check_bonus(name: str) -> None:
    """Refuse a bonus that there is not."""
    if not is_name(name) or (name not in OF_BONUS and name not in reward_names("features") and name not in BONUSES):
        raise unknown("bonus of DQN", name, {*OF_BONUS, *reward_names("features"), *BONUSES.names()})


def own_bonus(name: str) -> str:
    """A hash of the text of a bonus that is not ours, for the id of a run; empty for ours and for rewards."""
    if name in OF_BONUS or name in reward_names("features"):
        return ""
    try:
        text = inspect.getsource(bonus_maker(name))
    except (OSError, TypeError):  # typed at a prompt
        text = name
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True, kw_only=True)
class DQNSettings:
    """What the deep agent learns, as values; `spie.DQN` is these and the means to run.

    bonus: "none", "rnd", any intrinsic reward on features ("sf", "sf-pf", "constant", "count", your own), or a bonus
    of `register_bonus`.
    preset: "paper" as the paper; "nature" the same with a smaller network; "small" for small images. It says what the
    settings are that are left out. Each open point of the paper is an option; docs/paper.md has them all.
    """

    bonus: str = "sf-pf"
    preset: Literal["paper", "nature", "small"] = "paper"
    beta: float = _PRESET  # scale of the bonus
    mmc: float = _PRESET  # tau of eq. 17: weight of the Monte-Carlo error
    reconstruction: bool = True  # predict the next frame as well
    gamma: float = 0.99  # discounts of q, psi and xi
    gamma_sr: float = 0.99
    gamma_pr: float = 0.99
    norm: Literal["l1", "l2"] = _PRESET  # of psi and xi in the bonus
    sf_pf: Literal["prose", "printed"] = "prose"  # eq. 16 with xi(s'), or with phi(s') as it is printed
    psi: Literal["state", "state-action"] = "state"  # what psi is a function of
    sf_start: Literal["s", "s_next"] = "s"  # where the sum of the SF begins: eq. 10, or the right side of eq. 9
    pf_reads: Literal["online", "target"] = "online"  # whose phi(s') the PF head learns on in eq. 15
    relu_features: bool = False  # a ReLU on phi, psi and xi
    deconv_relu: bool = False  # a ReLU between deconvolutions
    loss: Literal["squared", "huber"] = _PRESET  # of the error in eq. 17
    clip: bool = _PRESET  # rewards to [-1, 1], before and after the bonus is added
    bonus_at: Literal["collection", "sampling"] = _PRESET  # when the bonus of the TD error is computed
    bonus_from: Literal["learning", "start"] = "learning"  # whether the steps at random before it are paid one, too
    value_heads: Literal["one", "two"] = "one"  # two: rewards and bonuses apart, the latter through ends of episodes
    gamma_bonus: float = 0.99  # discount of the bonuses' own values, and of the return that measures them
    scale: Literal["none", "rms", "standard", "return"] = _PRESET  # of the bonus; see `Scale` in bonuses.py
    offset: float = _PRESET  # what a standardised bonus is shifted by
    potential: bool = _PRESET  # pay gamma U(s') - U(s) as well: the value of what was paid, looked ahead (outlook.py)
    potential_gamma: float = 0.95  # g, the discount of U
    novelty_features: int = 256  # D: random features of a frame, for novelty and potential
    novelty_encoder: Literal["untrained", "inverse-dynamics"] = "untrained"  # of those frames (inverse.py)
    n_step: int = 1  # steps whose pay a TD error adds up before it looks at a value
    draws: int = _PRESET  # transitions drawn for each that is learned from: one of them, by the square of its bonus
    network: Literal["paper", "nature", "small", "minatar"] = _PRESET
    stack: int = _PRESET  # frames that make a state
    envs: int = 1  # environments stepped together
    optimiser: Literal["rmsprop", "adam"] = _PRESET
    rate: float = _PRESET
    eps: float = _PRESET
    decay: float = 0.95  # of RMSprop
    rnd_rate: float = _PRESET
    target: Literal["periodic", "polyak"] = _PRESET
    target_every: int = 40_000  # steps between two copies
    polyak: float = 0.01
    batch: int = _PRESET
    train_every: int = _PRESET  # steps between two updates
    learning_starts: int = _PRESET  # steps at random first
    replay: int = _PRESET  # steps kept
    replay_on_disk: bool = False  # its frames memory-mapped in the run's folder
    epsilon: float = _PRESET  # where the chance of an action at random ends; it begins at 1
    epsilon_frames: int = 1_000_000  # after that many frames
    epsilon_fraction: float = _PRESET  # or, unless 0, after this part of the run
    w_q: float = 1.0  # weights of eq. 18
    w_sf: float = _PRESET
    w_pf: float = _PRESET
    w_recon: float = _PRESET
    precision: Literal["fp32", "bf16"] = "fp32"
    products: Literal["torch", "onednn"] = "torch"  # who multiplies by a layer's weights; other last bits (products.py)
    device: str = "auto"  # cuda where there is one, else cpu

    def __post_init__(self) -> None:
        if not is_name(self.preset) or self.preset not in PRESETS:
            raise unknown("preset of DQN", self.preset, PRESETS)
        check_bonus(self.bonus)
        defaults = OF_FEW | PRESETS[self.preset] | OF_BONUS.get(self.bonus, OF_OTHER_BONUSES)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):
                object.__setattr__(self, field.name, value.item())
            if value is None and field.name in defaults:
                object.__setattr__(self, field.name, defaults[field.name])
        self._check_choices()
        self._check_numbers()
        self._check_company()

    def _check_choices(self) -> None:
        choices = {
            "norm": ("l1", "l2"),
            "sf_pf": ("prose", "printed"),
            "psi": ("state", "state-action"),
            "loss": ("squared", "huber"),
            "bonus_at": ("collection", "sampling"),
            "sf_start": ("s", "s_next"),
            "pf_reads": ("online", "target"),
            "bonus_from": ("learning", "start"),
            "value_heads": ("one", "two"),
            "scale": ("none", "rms", "standard", "return"),
            "network": ("paper", "nature", "small", "minatar"),
            "optimiser": ("rmsprop", "adam"),
            "target": ("periodic", "polyak"),
            "precision": ("fp32", "bf16"),
            "products": ("torch", "onednn"),
            "reconstruction": (False, True),
            "relu_features": (False, True),
            "deconv_relu": (False, True),
            "clip": (False, True),
            "replay_on_disk": (False, True),
            "potential": (False, True),
            "novelty_encoder": ("untrained", "inverse-dynamics"),
        }
        for name, known in choices.items():
            if not is_among(getattr(self, name), known):
                raise unknown(f"{name} of DQN", getattr(self, name), map(str, known))
        if not isinstance(self.device, str):
            raise ValueError(f"DQN: device must be auto, cpu or cuda, not {told(self.device)}")

    def _check_company(self) -> None:
        """Settings that are right by themselves and do not go together."""
        if self.value_heads == "two" and (self.bonus == "none" or self.mmc or self.bonus_at == "sampling"):
            raise ValueError("DQN: value_heads=two needs a bonus, mmc=0 and bonus_at=collection")
        if self.value_heads == "two" and self.potential:
            raise ValueError("DQN: potential needs value_heads=one")
        if self.n_step != 1 and (self.value_heads == "two" or self.psi == "state-action"):
            raise ValueError("DQN: n_step above 1 needs value_heads=one and psi=state")

    def _check_numbers(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is float and not is_number(value):
                raise ValueError(f"DQN: {field.name} must be a number, not {told(value)}")
        most = {
            "stack": 256,
            "envs": 4096,
            "batch": 1_000_000,
            "novelty_features": 16_384,
            "draws": 1024,
            "n_step": 1000,
        }
        for name in (*most, "train_every", "target_every", "replay", "epsilon_frames"):
            check_whole(f"DQN: {name}", getattr(self, name), 1, most.get(name, 2**62))
        check_whole("DQN: learning_starts", self.learning_starts, 0, 2**62)
        for name in (
            "mmc",
            "gamma",
            "gamma_sr",
            "gamma_pr",
            "gamma_bonus",
            "decay",
            "polyak",
            "epsilon",
            "epsilon_fraction",
        ):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"DQN: {name} must lie in [0, 1], not {getattr(self, name)}")
        check_number("DQN: potential_gamma", self.potential_gamma, "[0, 1)")
        if self.draws > 1 and self.bonus == "none":
            raise ValueError("DQN: draws above 1 favours transitions with a large bonus; with bonus=none give draws=1")
        for name in ("rate", "eps", "rnd_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"DQN: {name} must be above 0, not {getattr(self, name)}")
        for name in ("beta", "offset", "w_q", "w_sf", "w_pf", "w_recon"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"DQN: {name} must be a finite number, not {getattr(self, name)}")


def steps_of(steps: int | None, frames: int | None, frame_skip: int) -> int:
    """The steps of a run that was asked for in steps, or in frames of which a step takes `frame_skip`."""
    if (steps is None) == (frames is None):
        raise ValueError("how long? give either steps or frames, such as frames=1000000")
    if steps is not None:
        check_steps(steps)
        return steps
    if not is_whole(frames, frame_skip):
        least = f"at least {frame_skip}, which make one step" if frame_skip > 1 else "at least 1"
        raise ValueError(f"frames must be a whole number of {least}, not {told(frames)}")
    return int(frames or 0) // frame_skip


def check_steps(steps: Any) -> None:
    check_whole("steps", steps)
