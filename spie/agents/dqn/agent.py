"""`spie.DQN`: the deep agent, importable without torch; its settings are in settings.py, its loop in learner.py."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from spie.agents.base import Agent, Range, Request, Resources
from spie.agents.dqn.cost import memory_for, seconds_for
from spie.agents.dqn.settings import VERSION, DQNSettings, check_steps, own_bonus
from spie.rewards import reward_names
from spie.tasks.base import ImageTask, Kind, check_kind
from spie.trace import Trace

AGENTS: dict[str, dict[str, Any]] = {
    "dqn": {"bonus": "none"},
    "dqn-mmc": {"bonus": "none", "mmc": 0.1},
    "rnd": {"bonus": "rnd"},
    "dqn-sr": {"bonus": "sf"},
    "dqn-sf-pf": {"bonus": "sf-pf"},
    "dqn-constant": {"bonus": "constant"},
    "dqn-count": {"bonus": "count"},
    "dqn-novelty": {"bonus": "novelty"},
    "dqn-sp-novelty": {"bonus": "sp-novelty"},
}
STEP_SIZES = {"paper": 0.13, "nature": 0.02, "small": 5e-4, "minatar": 1e-3}
LONG = 100_000_000  # steps: next to these it does not count when learning begins


@dataclass(frozen=True, kw_only=True)
class DQN(DQNSettings, Agent[Trace]):
    """The deep agent: DQN, DQN-MMC, RND, DQN-SR (bonus "sf"), DQN-SF-PF and controls are settings of it.

    Every field below is a setting; values out of range raise ValueError. Needs the extra `deep`.

    >>> spie.DQN(bonus="sf-pf", preset="small").rewards
    ('sf-pf',)
    """

    kind: ClassVar[Kind] = "images"
    resumable: ClassVar[bool] = True
    version: ClassVar[int] = VERSION

    @property
    def name(self) -> str:
        """The name of the agent, up to its further settings."""
        names = [name for name, settings in AGENTS.items() if settings["bonus"] == self.bonus]
        return "dqn-mmc" if self.bonus == "none" and self.mmc else (*names, f"dqn-{self.bonus}")[0]

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.bonus,) if self.bonus in reward_names("features") else ()

    def changed_settings(self) -> dict[str, Any]:
        """What differs from the settings that the bonus and the preset stand for, and the text of a bonus not ours."""
        usual = vars(DQNSettings(bonus=self.bonus, preset=self.preset)) | {"bonus": "sf-pf", "preset": "paper"}
        found = {name: value for name, value in vars(self).items() if value != usual[name]}
        own = own_bonus(self.bonus)
        return found | {"own bonus": own} if own else found

    def usual_settings(self, task: ImageTask) -> dict[str, Any]:
        """The paper's settings for games, small ones for the rest, and MinAtar's network for images of planes."""
        if task.planes > 1:
            return {"preset": "small", "network": "minatar"}
        return {"preset": "paper" if task.frame_skip > 1 else "small"}

    def tuning_ranges(self, task: ImageTask) -> dict[str, Range]:
        ranges = {"rate": Range(1e-5, 1e-2, log=True), "epsilon": Range(0.01, 0.3, log=True)}
        if self.target == "polyak":
            ranges["polyak"] = Range(0.001, 0.1, log=True)
        if self.bonus != "none":
            ranges["beta"] = Range(1e-4, 1.0, log=True)
        return ranges

    def seconds_per_step(self, task: Any) -> float:
        return seconds_for(self, LONG, 1) / LONG

    def seconds(self, task: Any, steps: int, seeds: int) -> float:
        return seconds_for(self, steps, seeds)

    def size_of_step(self, task: Any) -> float:
        return STEP_SIZES[self.network]

    def memory(self, task: Any, steps: int, seeds: int) -> int:
        """Of all seeds where they run side by side, else of one."""
        return memory_for(self, task.shape, steps) * (seeds if self.network == "small" else 1)

    def resources(self) -> Resources:
        """A GPU where the settings name one; "auto" takes what it finds and asks for nothing."""
        return Resources(gpus=int(self.device.startswith("cuda")))

    @property
    def usual_threads(self) -> int:
        """What `spie train` runs on: small matrices gain nothing from a second thread."""
        return 1 if self.network == "small" else os.cpu_count() or 1

    def require(self) -> None:
        need_torch()

    def execute(self, request: Request) -> Trace:
        """Train each seed for `steps` steps: `spie.agent("dqn-sf-pf").run(spie.task("Freeway"), 10_000)`.

        Small networks train side by side, larger ones one after the other. With a folder in the session, a single seed
        leaves its checkpoints, episodes and curves there, for `spie resume`, `evaluate` and `play`; several seeds of a
        larger network have a folder each in it until they are done. Either goes on where it was stopped.
        """
        task, steps, session = request.task, request.steps, request.session
        check_kind(task, "images", "DQN")
        request.refuse("DQN", "episodes", "replay", "keep.matrices", "keep.snapshots", "keep.paths")
        check_steps(steps)
        lanes = request.seed_array.tolist()
        need_torch()
        from spie.agents.dqn.session import run_seeds

        folder = None if session.folder is None else Path(session.folder)
        return run_seeds(self, task, lanes, steps, session.threads or 1, folder, session.progress)


def need_torch() -> None:
    """One clear line where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise ImportError('DQN needs torch: pip install "spie-rl[deep]"')


def as_dqn(agent: Any) -> DQN:
    """An agent that trains into a folder which `spie resume`, `evaluate` and `play` understand; others are refused."""
    if not isinstance(agent, DQN):
        raise ValueError(
            f"spie train trains DQN agents only; run {type(agent).__name__} from Python, with its method run"
        )
    return agent
