"""A run: all that determines a result, its id, and the way of a result into the store and back."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Agent, Keep, Session, changed, identity
from spie.errors import is_whole
from spie.runs.store import Store
from spie.runs.user_code import source_of
from spie.trace import EpisodeTrace, Result, Scores, Trace, Trajectory

SOURCES = ("spie", ":!spie/results")  # what a run may depend on, as git names it
FORMAT = 2  # of a run's id and of what is stored; raised when either changes so that the old cannot be read
Role = Literal["paper", "control", "reading", "search"]  # why a run is there: who may claim what of it
RESULTS: dict[str, type[Any]] = {kind.kind: kind for kind in (Trace, EpisodeTrace, Scores)}
# Counts, steps and states, which are stored in as few bytes as their numbers need.
STEP_COLUMNS = tuple(field.name for field in dataclasses.fields(Trajectory))
COUNTS = {"visits", "first_visit", "snapshots", "episode_steps", "states", "actions", "next_states"}


@dataclass(frozen=True, eq=False)
class Run:
    """One agent on one task: all that determines a result, which is then known by `id`."""

    env: str  # names for people; the id is of the task and the settings themselves
    agent: str
    settings: Any  # an Agent
    task: Any  # a Task of the kind that the agent runs on
    steps: int
    seeds: int | tuple[int, ...]
    episodes: int | None = None
    keep: Keep = Keep()
    role: Role = "paper"
    variant: Mapping[str, Any] = field(default_factory=dict)  # how it differs from the agent so named

    def __post_init__(self) -> None:
        for name in ("steps", "seeds", "episodes"):
            if is_whole(value := getattr(self, name)):
                object.__setattr__(self, name, int(value))  # of NumPy's, too: ids are made of plain values

    @functools.cached_property
    def spec(self) -> dict[str, Any]:
        """The run in plain values: of settings and options only those that are not at their defaults."""
        own = "".join(map(source_of, self.settings.rewards))  # a name says what a built-in does, not what a user's does
        spec = identity(self.settings) | {
            "task": self.task.digest,
            "steps": self.steps,
            "seeds": self.seeds if isinstance(self.seeds, int) else list(map(int, self.seeds)),
            "format": FORMAT,
        }
        extra = {
            "own rewards": hashlib.sha256(own.encode()).hexdigest() if own else None,
            "episodes": self.episodes,
            "keep": changed(self.keep),
        }
        return spec | {name: value for name, value in extra.items() if value}

    @functools.cached_property
    def id(self) -> str:
        """Of all that determines the result: the same run has the same id in every process and every release."""
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def cell(self) -> tuple[str, str, Mapping[str, Any]]:
        """What it is called by: task, agent and variant. Runs of other seeds of it have the same."""
        return self.env, self.agent, self.variant

    @property
    def n_seeds(self) -> int:
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    @property
    def seed_numbers(self) -> tuple[int, ...]:
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    @property
    def seed_words(self) -> str:
        """Which seeds it has, for people, where they are not the first ones: "seed 1" or "seeds 10 to 19"."""
        if isinstance(self.seeds, int):
            return ""
        first, last = self.seeds[0], self.seeds[-1]
        return f"seed {first}" if len(self.seeds) == 1 else f"seeds {first} to {last}"

    def in_blocks(self, size: int) -> list["Run"]:
        """The same as runs of `size` seeds each: more seeds are more runs, and those that are there stay.

        The first block is named by its number of seeds, as a run is that has no more.
        """
        numbers = self.seed_numbers
        blocks = [numbers[i : i + size] for i in range(0, len(numbers), size)]
        seeds_of = [len(block) if block == tuple(range(len(block))) else block for block in blocks]
        return [dataclasses.replace(self, seeds=seeds) for seeds in seeds_of]

    @property
    def seconds(self) -> float:
        """About how long it takes on one core, compiled; at most as long where episodes end by themselves."""
        return float(self.settings.seconds(self.task, self.steps * (self.episodes or 1), self.n_seeds))

    def execute(self, session: Session = Session()) -> Result:
        agent: Agent[Result] = self.settings
        return agent.run(self.task, self.steps, self.seeds, episodes=self.episodes, keep=self.keep, session=session)


def save(
    store: Store,
    run: Run,
    result: Result,
    seconds: float,
    cpu_seconds: float | None = None,
    made_by: Mapping[str, str] | None = None,
    stored: str | None = None,
) -> None:
    """Put a result into the store under its run's id. made_by, stored: of one that was made elsewhere, before."""
    spec, by = run.spec | {"env": run.env, "name": run.agent}, versions() if made_by is None else made_by
    store.save(run.id, result.kind, spec, by, seconds, _packed(arrays_of(result)), cpu_seconds, stored)


def arrays_of(result: Result) -> dict[str, NDArray[Any]]:
    """All that a result holds, by name."""
    arrays: dict[str, NDArray[Any]] = {}
    for field_ in dataclasses.fields(result):
        value = getattr(result, field_.name)
        if isinstance(value, np.ndarray | str):
            arrays[field_.name] = np.asarray(value)
    if isinstance(result, Trace):
        for seed, path in result.paths.items():
            arrays |= {f"paths/{seed}/{f.name}": getattr(path, f.name) for f in dataclasses.fields(path)}
    return arrays


def _packed(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The same in less room: small integers; paths of one length as one array [paths, steps], without what follows."""
    packed = {name: array for name, array in arrays.items() if not name.startswith("paths/")}
    seeds = list(dict.fromkeys(name.split("/")[1] for name in arrays if name.startswith("paths/")))
    if len({len(arrays[f"paths/{seed}/actions"]) for seed in seeds}) == 1:
        stacked = {c: np.stack([arrays[f"paths/{seed}/{c}"] for seed in seeds]) for c in STEP_COLUMNS}
        if (stacked["states"][:, 1:] == stacked["next_states"][:, :-1]).all():  # each step begins where the last ended
            stacked["states"] = stacked["states"][:, :1]
        packed |= {f"paths/{column}": array for column, array in stacked.items()}
        packed["paths/seeds"] = np.array(list(map(int, seeds)), np.int64)
    else:
        packed |= {name: array for name, array in arrays.items() if name.startswith("paths/")}
    return {name: _narrow(array) if name.rpartition("/")[2] in COUNTS else array for name, array in packed.items()}


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Integers in the smallest type that holds them."""
    if array.dtype != np.int32 or not array.size:
        return array
    low, high = array.min(), array.max()
    sizes = (np.int8, np.uint8, np.int16, np.uint16)
    return next((array.astype(t) for t in sizes if np.iinfo(t).min <= low and high <= np.iinfo(t).max), array)


def _unpacked(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What `_packed` was given; what older versions stored stays as it is."""
    wide = {n: a.astype(np.int32, copy=False) if n.rpartition("/")[2] in COUNTS else a for n, a in arrays.items()}
    if "paths/seeds" not in wide:
        return wide
    seeds, columns = wide.pop("paths/seeds"), {column: wide.pop(f"paths/{column}") for column in STEP_COLUMNS}
    first, then = columns["states"], columns["next_states"]
    if first.shape != then.shape:
        columns["states"] = np.concatenate([first, then[:, :-1]], axis=1)
    return wide | {f"paths/{seed}/{c}": array[i] for i, seed in enumerate(seeds) for c, array in columns.items()}


def load(store: Store, run: Run) -> Any:
    """The result of a run that is in the store; KeyError where it is not."""
    kind, arrays = store.load(run.id)
    try:
        return result_of(kind, _unpacked(arrays))
    except (KeyError, TypeError, ValueError) as error:  # it fits its hash, but no run of ours left it
        raise store.damaged(run.id) from error


def result_of(kind: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """The inverse of `arrays_of`."""
    fields: dict[str, Any] = {name: str(a) if a.dtype.kind == "U" else a for name, a in arrays.items()}
    steps: dict[int, dict[str, NDArray[Any]]] = {}
    for name in [name for name in fields if name.startswith("paths/")]:
        _, seed, column = name.split("/")
        steps.setdefault(int(seed), {})[column] = fields.pop(name)
    if steps:
        fields["paths"] = {seed: Trajectory(**path) for seed, path in steps.items()}
    return RESULTS[kind](**fields)


@functools.cache
def versions() -> dict[str, str]:
    """What the results depend on, in case they ever differ."""
    packages = ("spie-rl", "numpy", "scipy", "numba", "torch")
    found = {"python": platform.python_version(), "processor": _processor()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found | ({"commit": commit} if (commit := _commit()) else {})


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str:
    """Of the sources, where they are a checkout, with a plus where they were changed since; empty where installed."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        said = [
            subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (("rev-parse", "--short=10", "HEAD"), ("status", "--porcelain", "-uno", "--", *SOURCES))
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said[0] + "+" * bool(said[1])
