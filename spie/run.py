"""Where runs execute: what is stored already is not run again, the rest goes to a backend and into the store."""

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import multiprocessing
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.errors import unknown
from spie.store import Store
from spie.trace import EpisodeTrace, Path, Trace

ENGINE_VERSION = 1  # raised when the engine gives other numbers for the same run
BACKENDS = ("serial", "processes")
AnyTrace: TypeAlias = Trace | EpisodeTrace


@dataclass(frozen=True, eq=False)
class Run:
    """One settings on one environment: all that determines a result, which is then known by `id`."""

    env: str  # names for people; the id is of the task itself
    agent: str
    settings: Any  # a frozen dataclass with `run(task, steps, seeds, ...) -> Trace`, or another of our traces
    task: Any  # an MDP or what else the agent runs on, with its `digest`
    steps: int
    seeds: int | tuple[int, ...]
    episodes: int | None = None
    snapshots: tuple[int, ...] = ()
    record: tuple[int, ...] = ()

    @functools.cached_property
    def spec(self) -> dict[str, Any]:
        """The run in plain values."""
        return {
            "agent": type(self.settings).__name__,
            "settings": dataclasses.asdict(self.settings),
            "mdp": self.task.digest,
            "steps": self.steps,
            "seeds": self.seeds if isinstance(self.seeds, int) else list(self.seeds),
            "episodes": self.episodes,
            "snapshots": list(self.snapshots),
            "record": list(self.record),
            "engine": ENGINE_VERSION,
        }

    @functools.cached_property
    def id(self) -> str:
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def n_seeds(self) -> int:
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    @property
    def seconds(self) -> float:
        """About how long it takes on one core, compiled; at most so long where episodes end by themselves."""
        return float(self.steps * (self.episodes or 1) * self.n_seeds * self.settings.seconds_per_step(self.task))

    def execute(self, threads: int | None = None) -> AnyTrace:
        asked = {"episodes": self.episodes, "snapshots": self.snapshots, "record": self.record}
        options = {name: value for name, value in asked.items() if value}
        trace: AnyTrace = self.settings.run(self.task, self.steps, self.seeds, threads=threads, **options)
        return trace


def execute(runs: Sequence[Run], store: Store, on: str = "serial") -> Iterator[Run]:
    """Run what the store does not have yet, and yield each run once it is stored; those stored before come first."""
    if on not in BACKENDS:
        raise unknown("backend", on, BACKENDS)
    missing = []
    for run in {run.id: run for run in runs}.values():
        if run.id in store:
            yield run
        else:
            missing.append(run)
    if on == "serial" or len(missing) < 2:
        for run in missing:
            save(store, run, *_timed(run, None))
            yield run
    else:
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
            futures = {pool.submit(_timed, run, 1): run for run in missing}
            try:
                for future in as_completed(futures):
                    save(store, futures[future], *future.result())
                    yield futures[future]
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _timed(run: Run, threads: int | None) -> tuple[AnyTrace, float]:
    began = time.perf_counter()
    return run.execute(threads), time.perf_counter() - began


def save(store: Store, run: Run, trace: AnyTrace, seconds: float) -> None:
    """Put a trace into the store under its run's id."""
    arrays: dict[str, NDArray[Any]] = {}
    for field in dataclasses.fields(trace):
        value = getattr(trace, field.name)
        if isinstance(value, np.ndarray | str):
            arrays[field.name] = np.asarray(value)
    for seed, path in getattr(trace, "paths", {}).items():
        arrays |= {f"paths/{seed}/{f.name}": getattr(path, f.name) for f in dataclasses.fields(path)}
    store.save(run.id, run.spec | {"env": run.env, "name": run.agent}, versions(), seconds, arrays)


def load(store: Store, run: Run) -> Any:
    """The trace of a run that is in the store; KeyError where it is not."""
    arrays = store.load(run.id)
    fields: dict[str, Any] = arrays
    if "terminated" in arrays:
        return EpisodeTrace(**fields | {"settings": str(arrays["settings"])})
    steps: dict[int, dict[str, NDArray[Any]]] = {}
    for name in [name for name in arrays if name.startswith("paths/")]:
        _, seed, field = name.split("/")
        steps.setdefault(int(seed), {})[field] = arrays.pop(name)
    return Trace(**fields, paths={seed: Path(**path) for seed, path in steps.items()})


def versions() -> dict[str, str]:
    """What the results depend on, in case they ever differ."""
    packages = ("spie-rl", "numpy", "scipy", "numba", "torch")
    found = {"python": platform.python_version(), "engine": str(ENGINE_VERSION)}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found
