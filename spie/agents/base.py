"""Who explores: the contract of an agent, and what a run may be asked for.

An agent is a frozen dataclass of settings. It says WHAT is learned; a `Session` says WHERE and HOW, and changes no
result; a `Keep` says what is recorded.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from spie.agents.replay import Replay as Replay
from spie.tasks.base import Kind
from spie.trace import Result

Seeds: TypeAlias = int | Sequence[int]  # a count n, meaning 0 ... n-1, or the seeds themselves, 0 ... 2^63 - 1


@dataclass(frozen=True)
class Keep:
    """What a run records beside its totals; part of the run's id."""

    matrices: tuple[str, ...] = ()  # final values, by name: Q, M, F, N of tables; Q, Psi, Xi of linear agents
    snapshots: tuple[int, ...] = ()  # steps at which the visits of all states are noted
    paths: tuple[int, ...] = ()  # seeds whose every step is kept, as `Trace.paths`

    def __post_init__(self) -> None:
        for name in ("matrices", "snapshots", "paths"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f'Keep: {name} must be several, such as ("{value}",), not "{value}"')
            object.__setattr__(self, name, tuple(value))


@dataclass(frozen=True)
class Session:
    """Where and how a run executes; its result never depends on this."""

    threads: int | None = None  # None: what suits the agent
    folder: Path | None = None  # for checkpoints of an agent that is `resumable`
    progress: Callable[[float], None] | None = None  # called now and then with the share of the run that is done


@dataclass(frozen=True)
class Resources:
    """What a run asks of a cluster."""

    cpus: int = 1
    gpus: int = 0


class Range(NamedTuple):
    """Where a setting may lie."""

    low: float
    high: float
    log: bool  # whether on a logarithmic scale


@runtime_checkable
class Agent(Protocol):
    """A frozen dataclass of settings that can run on a task. Inherit from it: all but `run` has a default."""

    version: ClassVar[int] = 1  # raised when the same settings give other numbers
    kind: ClassVar[Kind] = "table"  # of the tasks that it runs on
    resumable: ClassVar[bool] = False  # a run that is killed goes on from the folder of its session

    def run(
        self,
        task: Any,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> Result:
        """Run on a task, once per seed. With `episodes`, `steps` is the cap of each episode."""
        raise NotImplementedError

    @property
    def n_settings(self) -> int:
        """How many settings run side by side: 1, or the size of a grid of settings."""
        return 1

    @property
    def rewards(self) -> tuple[str, ...]:
        """The registered rewards that it evaluates: the text of a user's own is part of a run's id."""
        return ()

    def changed_settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as plain values: a run's id is made of them.

        An option that is added later, at its default, is therefore not part of the ids of older runs.
        """
        return changed(self)

    @classmethod
    def run_many(
        cls,
        settings: Sequence[Any],
        task: Any,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        session: Session = Session(),
    ) -> Sequence[Result]:
        """Run each of several settings of such an agent on each seed, one after the other.

        An agent that can run them side by side says so here: a search over settings is such a call.
        """
        results = []
        for i, one in enumerate(settings):
            part = dataclasses.replace(session, progress=_part(session.progress, i, len(settings)))
            results.append(one.run(task, steps, seeds, episodes=episodes, session=part))
        return results

    def usual_settings(self, task: Any) -> dict[str, Any]:
        """What the agent is given on a task, by name, where the user does not say otherwise; mostly nothing."""
        return {}

    def tuning_ranges(self, task: Any) -> dict[str, Range]:
        """The settings that make a difference to this agent, and between which values each is worth a try."""
        return {}

    def seconds_per_step(self, task: Any) -> float:
        """About how long a step of one seed takes on one core, compiled."""
        return 1e-4

    def memory(self, task: Any, steps: int, seeds: int) -> int:
        """About how many bytes a run needs; 0 where it is next to nothing."""
        return 0

    def resources(self) -> Resources:
        return Resources()


def _part(progress: Callable[[float], None] | None, i: int, n: int) -> Callable[[float], None] | None:
    """What part i of n equal ones reports to, so that all of them are a whole."""
    return None if progress is None else lambda share: progress((i + share) / n)


def identity(agent: Agent) -> dict[str, Any]:
    """Agent, version and settings in plain values: what a run's id says of the agent.

    An agent of another package is known by the package, too, because two may choose one name.
    """
    package = type(agent).__module__.partition(".")[0]
    own = {} if package == __name__.partition(".")[0] else {"package": package}
    return own | {"agent": type(agent).__name__, "version": agent.version, "settings": agent.changed_settings()}


def changed(settings: Any, **defaults: Any) -> dict[str, Any]:
    """The fields of a dataclass whose value is not their default, as plain values; `defaults` take precedence."""
    found = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        value = value.item() if isinstance(value, np.generic) else value
        if field.name in defaults:
            default = defaults[field.name]
        elif field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        else:
            default = field.default
        if value != default or type(value) is not type(default):
            found[field.name] = changed(value) if dataclasses.is_dataclass(value) else value
    return found


def refuse(agent: str, **options: Any) -> None:
    """Refuse what was asked for and an agent cannot do: named options that are not empty."""
    for name, value in options.items():
        if value:
            raise ValueError(f"{agent} has no {name}; leave it out")


def check_options(keep: Any, replay: Any, session: Any) -> None:
    """Refuse what is no Keep, Replay or Session, such as a plain array of actions."""
    for name, value, kind in (("keep", keep, Keep), ("replay", replay, Replay), ("session", session, Session)):
        if not isinstance(value, kind) and (value is not None or kind is not Replay):
            raise ValueError(f"{name} must be a spie.{kind.__name__}, not {type(value).__name__}")


def check_ranges(settings: Any, **ranges: str) -> None:
    """Refuse numbers among the settings that lie outside of their interval, such as "[0, 1)"; None is none."""
    for name, interval in ranges.items():
        value = getattr(settings, name)
        low, high = map(float, interval[1:-1].split(", "))
        above = value is None or (low <= value if interval[0] == "[" else low < value)
        below = value is None or (value <= high if interval[-1] == "]" else value < high)
        if not (above and below):
            raise ValueError(f"{type(settings).__name__}: {name} must lie in {interval}, not {value}")


def pr_rates(settings: Any) -> tuple[float, float]:
    """Learning rate and discount of the PR: `eta_pr` and `gamma_pr`; None stands for those of the SR."""
    eta_pr: float = settings.eta if settings.eta_pr is None else settings.eta_pr
    gamma_pr: float = settings.gamma_sr if settings.gamma_pr is None else settings.gamma_pr
    return eta_pr, gamma_pr
