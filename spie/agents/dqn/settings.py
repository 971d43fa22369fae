"""`spie.DQN`: settings of the deep agent, importable without torch; what they do is in dqn.py."""

import dataclasses
import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from spie.agents.base import Agent
from spie.errors import unknown
from spie.tasks.base import Kind
from spie.trace import Trace

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
# What follows from the bonus: RND is always divided by its RMS, DQN and RND have no Monte-Carlo part.
_BONUSES: dict[str, dict[str, Any]] = {
    "none": {"mmc": 0.0},
    "sf": {"mmc": 0.1, "norm": "l2"},
    "sf-pf": {"mmc": 0.1, "norm": "l1"},
    "rnd": {"mmc": 0.0, "scale": "rms"},
    "constant": {"mmc": 0.1, "scale": "none"},
    "count": {"mmc": 0.1, "scale": "none"},
}
AGENTS: dict[str, dict[str, Any]] = {
    "dqn": {"bonus": "none"},
    "dqn-mmc": {"bonus": "none", "mmc": 0.1},
    "rnd": {"bonus": "rnd"},
    "dqn-sr": {"bonus": "sf"},
    "dqn-sf-pf": {"bonus": "sf-pf"},
    "dqn-constant": {"bonus": "constant"},
    "dqn-count": {"bonus": "count"},
}


@dataclass(frozen=True, kw_only=True)
class DQN(Agent):
    """Settings of the deep agent: DQN, DQN-MMC, RND, DQN-SR (bonus "sf"), DQN-SF-PF and controls are values of these.

    preset: "paper" as the paper; "nature" the same with a smaller network; "small" for small images. It says what the
    settings are that are left out. Each open point of the paper is an option; docs/paper.md has them all.
    """

    kind: ClassVar[Kind] = "images"
    resumable: ClassVar[bool] = True
    version: ClassVar[int] = 2

    bonus: Literal["none", "sf", "sf-pf", "rnd", "constant", "count"] = "sf-pf"
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
    loss: Literal["squared", "huber"] = _PRESET  # of the error in eq. 17
    clip: bool = _PRESET  # rewards to [-1, 1], before and after the bonus is added
    bonus_at: Literal["collection", "sampling"] = "collection"  # when the bonus of the TD error is computed
    scale: Literal["none", "rms", "standard"] = _PRESET  # of the bonus: as it is, over its RMS, or standardised
    offset: float = 0.0  # what a standardised bonus is shifted by
    network: Literal["paper", "nature", "small"] = _PRESET
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
    epsilon_frames: int = 1_000_000  # after so many frames
    epsilon_fraction: float = _PRESET  # or, unless 0, after this part of the run
    w_q: float = 1.0  # weights of eq. 18
    w_sf: float = _PRESET
    w_pf: float = _PRESET
    w_recon: float = _PRESET
    precision: Literal["fp32", "bf16"] = "fp32"
    device: str = "auto"  # cuda where there is one, else cpu

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise unknown("preset of DQN", self.preset, PRESETS)
        if self.bonus not in _BONUSES:
            raise unknown("bonus of DQN", self.bonus, _BONUSES)
        defaults = {"norm": "l1"} | PRESETS[self.preset] | _BONUSES[self.bonus]
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is None and field.name in defaults:
                object.__setattr__(self, field.name, defaults[field.name])
        self._check()

    def _check(self) -> None:
        choices = {
            "norm": ("l1", "l2"),
            "sf_pf": ("prose", "printed"),
            "psi": ("state", "state-action"),
            "loss": ("squared", "huber"),
            "bonus_at": ("collection", "sampling"),
            "scale": ("none", "rms", "standard"),
            "network": ("paper", "nature", "small"),
            "optimiser": ("rmsprop", "adam"),
            "target": ("periodic", "polyak"),
            "precision": ("fp32", "bf16"),
            "reconstruction": (False, True),
            "clip": (False, True),
            "replay_on_disk": (False, True),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise unknown(f"{name} of DQN", getattr(self, name), map(str, known))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is float and (isinstance(value, bool) or not isinstance(value, int | float)):
                raise ValueError(f"DQN: {field.name} must be a number, not {value!r}")
        if not isinstance(self.device, str):
            raise ValueError(f"DQN: device must be auto, cpu or cuda, not {self.device!r}")
        for name in ("stack", "envs", "batch", "train_every", "target_every", "replay", "epsilon_frames"):
            if not _whole(getattr(self, name), 1):
                raise ValueError(f"DQN: {name} must be a whole number of at least 1, not {getattr(self, name)}")
        if not _whole(self.learning_starts, 0):
            raise ValueError(f"DQN: learning_starts must be a whole number of at least 0, not {self.learning_starts}")
        for name in ("mmc", "gamma", "gamma_sr", "gamma_pr", "decay", "polyak", "epsilon", "epsilon_fraction"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"DQN: {name} must lie in [0, 1], not {getattr(self, name)}")
        for name in ("rate", "eps", "rnd_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"DQN: {name} must be above 0, not {getattr(self, name)}")
        for name in ("beta", "offset", "w_q", "w_sf", "w_pf", "w_recon"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"DQN: {name} must be a finite number, not {getattr(self, name)}")

    @property
    def name(self) -> str:
        """The name of the agent, up to its further settings."""
        names = [name for name, settings in AGENTS.items() if settings["bonus"] == self.bonus]
        return "dqn-mmc" if self.bonus == "none" and self.mmc else names[0]

    @property
    def num_gpus(self) -> int:
        """What a run asks of a cluster; "auto" takes what it finds and asks for nothing."""
        return int(self.device.startswith("cuda"))

    def run(  # type: ignore[override]
        self,
        env: Any,
        steps: int | None = None,
        seeds: int | Sequence[int] = 1,
        *,
        frames: int | None = None,
        seed: int | None = None,
        out: str | Path | None = None,
        threads: int | None = None,
        progress: Any = None,
        **options: Any,
    ) -> Trace:
        """Train on an environment for so many steps, or frames, of each seed.

        env: a name (`spie.tasks.gymnasium`), or a Gymnasium VectorEnv of single frames that does not reset itself.
        seeds: a count n, meaning 0 ... n-1, or the seeds themselves, which are trained side by side; or one `seed`.
        out: a folder for checkpoints, episodes and curves, of a single seed; go on with `spie resume` after a stop.
        progress: called with a `training.Report` now and then, where there is a folder.
        options: of the environment, such as frame_skip=4.
        """
        need_torch()
        from spie.agents.dqn import session as training
        from spie.agents.dqn.many_seeds import run_stacked
        from spie.engine.lanes import seed_array

        lanes = seed_array([seed] if seed is not None else seeds).tolist()
        if out is not None:
            if len(lanes) > 1:
                raise ValueError("a folder is for a single seed; give seed=... or leave out=... away")
            where = {"frames": frames, "options": options, "threads": threads, "progress": progress}
            return training.train(self, env, steps, lanes[0], out, **where)
        task = training.Task(env, options).make(self.envs * len(lanes)) if isinstance(env, str) else env
        steps = steps_of(steps, frames, task)
        training.check_fits(self, task, steps, len(lanes))
        return run_stacked(self, task, lanes, steps)


def steps_of(steps: int | None, frames: int | None, env: Any) -> int:
    """The steps of a run that was asked for in steps or in frames."""
    if (steps is None) == (frames is None):
        raise ValueError("how long? give either steps or frames, such as frames=1000000")
    skip = getattr(env, "frame_skip", 1)
    number, asked = ("frames", frames) if steps is None else ("steps", steps)
    if not _whole(asked, skip if steps is None else 1):
        least = f"at least {skip}, which make one step" if steps is None else "at least 1"
        raise ValueError(f"{number} must be a whole number of {least}, not {asked}")
    return int(asked or 0) // (skip if steps is None else 1)


def need_torch() -> None:
    """One clear line where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise ImportError('DQN needs torch: pip install "spie-rl[deep]"')


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
