"""Who explores: the contract of an agent, and what a run may be asked for.

An agent is a frozen dataclass of settings. It says WHAT is learned; a `Session` says WHERE and HOW, and changes no
result; a `Keep` says what is recorded.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from spie.agents.replay import Replay as Replay
from spie.engine.lanes import seed_array
from spie.engine.specialise import Kernel
from spie.errors import check_number, check_whole, is_name, is_row, is_whole, told
from spie.notebook import progress_below
from spie.tasks.base import Kind
from spie.trace import Result

Seeds: TypeAlias = int | Sequence[int]  # a count n, meaning 0 ... n-1, or the seeds themselves, 0 ... 2^63 - 1
R_co = TypeVar("R_co", bound=Result, covariant=True)  # what an agent's runs leave


@dataclass(frozen=True)
class Keep:
    """What a run records beside its totals; part of the run's id.

    Raises ValueError for what are no names, or no whole numbers.

    >>> trace = spie.Sarsa().run(spie.grid("cluster-simple"), steps=300, keep=spie.Keep(matrices=("Q", "M")))
    >>> trace.Q.shape, trace.M.shape, trace.N
    ((1, 91, 4), (1, 91, 91), None)
    """

    matrices: tuple[str, ...] = ()  # final values, by name: Q, M, F, N of tables; Q, Psi, Xi of linear agents
    snapshots: tuple[int, ...] = ()  # steps at which the visits of all states are noted
    paths: tuple[int, ...] = ()  # seeds whose every step is kept, as `Trace.paths`

    def __post_init__(self) -> None:
        for name in ("matrices", "snapshots", "paths"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise ValueError(f'Keep: {name} must be a sequence, such as ("{told(value)}",), not "{told(value)}"')
            fits = is_name if name == "matrices" else is_whole
            if not is_row(value) or not all(map(fits, value := tuple(value))):
                kind = "names" if name == "matrices" else "whole numbers"
                raise ValueError(f"Keep: {name} must be a sequence of {kind}, not {told(value)}")
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Session:
    """Where and how a run executes; its result never depends on this.

    Raises ValueError for what are no threads, no folder or no function.

    >>> done = []
    >>> trace = spie.Sarsa().run(
    ...     spie.grid("cluster-simple"), steps=300, session=spie.Session(threads=1, progress=done.append)
    ... )
    >>> done[-1]
    1.0
    """

    threads: int | None = None  # None: what suits the agent
    folder: Path | None = None  # for checkpoints of an agent that is `resumable`
    progress: Callable[[float], None] | None = None  # called now and then with the share of the run that is done

    def __post_init__(self) -> None:
        if self.threads is not None:
            check_whole("Session: threads", self.threads, 1, 4096)
        if self.folder is not None and not isinstance(self.folder, Path | str):
            raise ValueError(f"Session: folder must be a path, not {told(self.folder)}")
        if self.progress is not None and not callable(self.progress):
            raise ValueError(f"Session: progress must be a function, not {told(self.progress)}")


@dataclass(frozen=True)
class Request:
    """What a call of `run` asks an agent for: its arguments, checked as far as they do not depend on the agent.

    >>> spie.Request(spie.riverswim(), steps=10, seeds=3).seed_array.tolist()
    [0, 1, 2]
    """

    task: Any
    steps: int
    seeds: Seeds = 1
    episodes: int | None = None
    keep: Keep = Keep()
    replay: Replay | None = None
    session: Session = Session()

    def __post_init__(self) -> None:
        for name, kind in (("keep", Keep), ("replay", Replay), ("session", Session)):
            value = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or kind is not Replay):  # such as an array of actions
                raise ValueError(f"{name} must be a spie.{kind.__name__}, not {type(value).__name__}")

    @property
    def seed_array(self) -> NDArray[np.int64]:
        """Every seed, whether a count of them was given or they themselves."""
        return seed_array(self.seeds)

    def refuse(self, agent: str, *options: str) -> None:
        """Refuse to go on if any of these was asked for, because the agent cannot do it."""
        asked = {f"keep.{name}": value for name, value in vars(self.keep).items()}
        asked |= {"episodes": self.episodes, "replay": self.replay}
        for name in options:
            if asked[name] not in (None, ()):
                raise ValueError(f"{agent} has no {name}; leave it out")

    def part(self, i: int, n: int) -> "Request":
        """The same as part i of n equal ones, so that the progress of all of them is that of a whole."""
        progress = self.session.progress
        if progress is None:
            return self
        session = dataclasses.replace(self.session, progress=lambda share: progress((i + share) / n))
        return dataclasses.replace(self, session=session)


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
class Agent(Protocol[R_co]):
    """A frozen dataclass of settings that can run on a task. Inherit from it and define `execute`, or `run` itself.

    Everything else has a default.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Patient(spie.Agent):
    ...     epsilon: float = 0.5
    ...     version = 1
    ...     def execute(self, request):  # here by way of an agent that exists
    ...         sarsa = spie.Sarsa(reward="none", epsilon=self.epsilon)
    ...         return sarsa.run(request.task, request.steps, request.seeds)
    >>> Patient().run(spie.grid("cluster-simple"), steps=300, seeds=2).steps.tolist()
    [300, 300]
    """

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
    ) -> R_co:
        """Run on a task, once per seed; an option that the agent does not have is refused.

        steps: the length of a run; with `episodes`, the cap of each episode; where one is truncated, Q bootstraps.
        seeds: a count n, meaning 0 ... n-1, or the seeds themselves. A seed gives the same run in any company.
        episodes: stop after that many episodes.
        keep: what is recorded beside the totals: final matrices, snapshots of the visits, trajectories of some seeds.
        replay: recorded behaviour in place of the agent's own choices; it learns all the same.
        session: threads (None: what suits the agent), folder and progress. Results do not depend on it.

        >>> spie.Sarsa().run(spie.grid("cluster-simple"), steps=300, seeds=[7, 8]).seeds.tolist()
        [7, 8]
        """
        options: dict[str, Any] = {"episodes": episodes, "keep": keep, "replay": replay, "session": session}
        return self.run_many([self], task, steps, seeds, **options)[0]

    @classmethod
    def run_many(
        cls,
        settings: Sequence[Any],
        task: Any,
        steps: int,
        seeds: Seeds = 1,
        *,
        episodes: int | None = None,
        keep: Keep = Keep(),
        replay: Replay | None = None,
        session: Session = Session(),
    ) -> Sequence[R_co]:
        """Run each of several settings of such an agent on each seed, as `run` does: a result each, in their order.

        settings: agents of this class. The other arguments are those of `run`.

        >>> maze = spie.grid("cluster-simple")
        >>> traces = spie.run_sarsa([spie.Sarsa(beta=1.0), spie.Sarsa(beta=10.0)], maze, steps=300, seeds=3)
        >>> len(traces), traces[0].total_reward.shape
        (2, (3,))
        """
        request = Request(task, steps, seeds, episodes, keep, replay, session)
        if session.progress is None and (shown := progress_below(cls.__name__)) is not None:
            request = dataclasses.replace(request, session=dataclasses.replace(session, progress=shown))
        return cls.execute_many(settings, request)

    @classmethod
    def execute_many(cls, settings: Sequence[Any], request: Request) -> Sequence[R_co]:
        """Run each of several settings, one after the other.

        An agent that can run them side by side does so here: a search over settings is such a call.
        """
        return [one.execute(request.part(i, len(settings))) for i, one in enumerate(settings)]

    @classmethod
    def kernels(cls, settings: Sequence[Any], request: Request) -> Sequence[Kernel]:
        """What has to be compiled before these settings run, if no earlier process has; mostly nothing."""
        return ()

    def execute(self, request: Request) -> R_co:
        """Run these settings: what an agent defines that has no `run` of its own."""
        if type(self).run is Agent.run:
            raise NotImplementedError(f"{type(self).__name__} defines neither execute nor run")
        r = request
        options: dict[str, Any] = {"episodes": r.episodes, "keep": r.keep, "replay": r.replay, "session": r.session}
        return self.run(r.task, r.steps, r.seeds, **options)

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

    def require(self) -> None:
        """Raise ImportError, with the way to install it, where a library is missing that it needs to run."""
        return None

    def usual_settings(self, task: Any) -> dict[str, Any]:
        """What the agent is given on a task, by name, where the user does not say otherwise; mostly nothing."""
        return {}

    def tuning_ranges(self, task: Any) -> dict[str, Range]:
        """The settings that make a difference to this agent, and between which values each is worth a try."""
        return {}

    def is_scale_free(self, task: Any) -> bool:
        """Whether any two values of beta above 0 give the same choices here."""
        return False

    def seconds_per_step(self, task: Any) -> float:
        """About how long a step of one seed takes on one core, compiled."""
        return 1e-4

    def seconds(self, task: Any, steps: int, seeds: int) -> float:
        """About how long seeds of that many steps take on one core, compiled."""
        return steps * seeds * self.seconds_per_step(task)

    def size_of_step(self, task: Any) -> float:
        """What searches are cut into pieces by. It never changes: the ids of stored pieces depend on it."""
        return self.seconds_per_step(task)

    def memory(self, task: Any, steps: int, seeds: int) -> int:
        """About how many bytes a run needs; 0 where it is next to nothing."""
        return 0

    def resources(self) -> Resources:
        return Resources()


def identity(agent: Agent[Any]) -> dict[str, Any]:
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


def check_ranges(settings: Any, **ranges: str) -> None:
    """Refuse settings that are no numbers in their interval, such as "[0, 1)"; None is one where it is the default."""
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    for name, interval in ranges.items():
        value = getattr(settings, name)
        if value is not None or defaults[name] is not None:
            check_number(f"{type(settings).__name__}: {name}", value, interval)


def pr_rates(settings: Any) -> tuple[float, float]:
    """Learning rate and discount of the PR: `eta_pr` and `gamma_pr`; None stands for those of the SR."""
    eta_pr: float = settings.eta if settings.eta_pr is None else settings.eta_pr
    gamma_pr: float = settings.gamma_sr if settings.gamma_pr is None else settings.gamma_pr
    return eta_pr, gamma_pr
