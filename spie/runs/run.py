"""Where runs execute: what is stored already is not run again, the rest goes to a backend and into the store."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep, Session, changed
from spie.engine.lanes import machine_memory
from spie.errors import unknown
from spie.rewards import adopt, files, own_text
from spie.runs.store import Store
from spie.trace import EpisodeTrace, Result, Scores, Trace, Trajectory

FORMAT = 2  # of a run's id and of what is stored; raised when either changes
BACKENDS = ("serial", "processes", "ray")
Role = Literal["paper", "control", "reading", "search"]  # why a run is there: who may claim what of it
RESULTS: dict[str, type[Any]] = {kind.kind: kind for kind in (Trace, EpisodeTrace, Scores)}


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

    @functools.cached_property
    def spec(self) -> dict[str, Any]:
        """The run in plain values: of settings and options only those that are not at their defaults."""
        own = "".join(map(own_text, self.settings.rewards))  # a name says what a built-in does, not what a user's does
        spec = {
            "agent": type(self.settings).__name__,
            "version": self.settings.version,
            "settings": self.settings.changed_settings(),
            "task": self.task.digest,
            "steps": self.steps,
            "seeds": self.seeds if isinstance(self.seeds, int) else list(self.seeds),
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
        return hashlib.sha256(json.dumps(self.spec, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def n_seeds(self) -> int:
        return self.seeds if isinstance(self.seeds, int) else len(self.seeds)

    @property
    def seconds(self) -> float:
        """About how long it takes on one core, compiled; at most as long where episodes end by themselves."""
        return float(self.steps * (self.episodes or 1) * self.n_seeds * self.settings.seconds_per_step(self.task))

    def execute(self, session: Session = Session()) -> Result:
        options = {"episodes": self.episodes, "keep": self.keep, "session": session}
        result: Result = self.settings.run(self.task, self.steps, self.seeds, **options)
        return result


def execute(
    runs: Sequence[Run],
    store: Store,
    on: str = "serial",
    address: str | None = None,
    progress: Callable[[Run, float], None] = lambda run, share: None,
) -> Generator[Run, None, None]:
    """Run what the store does not have yet, and yield each run once it is stored; those stored before come first.

    address: of a Ray cluster that is there already; without one, Ray starts on this machine and ends with this process.
    progress: told now and then how much of a long run is done. Such a run keeps checkpoints beside the store until it
    is stored; on Ray, whose workers may be on other machines, it has neither.
    """
    if on not in BACKENDS:
        raise unknown("backend", on, BACKENDS)
    missing = []
    for run in {run.id: run for run in runs}.values():
        if run.id in store:
            shutil.rmtree(_folder(store, run), ignore_errors=True)  # of a command that was killed in between
            yield run
        else:
            missing.append(run)
    if on == "ray" and missing:
        finished = _on_ray(missing, address)
    elif on == "serial" or len(missing) < 2:
        finished = ((run, _timed(run, None, None, _folder(store, run), progress)) for run in missing)
    else:
        finished = _on_processes(missing, store, progress)
    with contextlib.closing(finished):
        for run, result in finished:
            save(store, run, *result)
            shutil.rmtree(_folder(store, run), ignore_errors=True)
            yield run


def _folder(store: Store, run: Run) -> FilePath:
    """Where a long run keeps its checkpoints."""
    return store.path.with_name(f"{store.path.name}-runs") / run.id


Finished: TypeAlias = Generator[tuple[Run, tuple[Any, float]], None, None]


def _on_processes(runs: Sequence[Run], store: Store, progress: Callable[[Run, float], None]) -> Finished:
    context = multiprocessing.get_context("spawn")
    shares: Any = context.Array("d", len(runs) + 1, lock=False)  # of each run what is done; at last whether to stop
    others = set(multiprocessing.active_children())
    most = max(run.settings.memory(run.task, run.steps, run.n_seeds) for run in runs)
    workers = max(1, min(int(0.9 * machine_memory() / most) if most else len(runs), os.cpu_count() or 1))
    with ProcessPoolExecutor(workers, context, _begin_worker, (shares,)) as pool:
        pending: dict[Future[Any], Run] = {
            pool.submit(_timed, run, 1, files(), _folder(store, run), i): run for i, run in enumerate(runs)
        }
        try:
            while pending:
                done, _ = wait(pending, timeout=1, return_when=FIRST_COMPLETED)
                for future in done:
                    yield pending.pop(future), future.result()
                for run, share in zip(runs, shares, strict=False):
                    progress(run, share)
        except BaseException as error:
            shares[len(runs)] = 1  # runs that a worker has fetched already do not begin any more
            if not isinstance(error, KeyboardInterrupt):  # of which the workers have heard themselves
                for worker in set(multiprocessing.active_children()) - others:
                    os.kill(worker.pid or 0, signal.SIGINT)
            pool.shutdown(cancel_futures=True)
            if isinstance(error, BrokenProcessPool):
                raise OSError("a worker was killed, perhaps for want of memory; run again to continue") from error
            raise


_shares: Any = None  # of a worker: how much is done of each run, which the process that sent them reads


def _begin_worker(shares: Any) -> None:
    """A worker reports to `shares`, and ends with the process that started it, even if that one is killed."""
    global _shares
    _shares = shares
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _timed(
    run: Run,
    threads: int | None,
    rewards: Mapping[str, str] | None = None,
    folder: FilePath | None = None,
    progress: int | Callable[[Run, float], None] | None = None,
) -> tuple[Result, float]:
    """What a run leaves, and how long it took. A worker gets the user's files with rewards, and a place in _shares."""
    adopt(rewards or {})
    if isinstance(progress, int) and _shares[len(_shares) - 1]:
        raise CancelledError

    def report(share: float) -> None:
        if isinstance(progress, int):
            _shares[progress] = share
        elif progress is not None:
            progress(run, share)

    began = time.perf_counter()
    try:
        return run.execute(Session(threads, folder, report)), time.perf_counter() - began
    except KeyboardInterrupt:
        if isinstance(progress, int):  # or this worker might have begun another before the command stops it
            _shares[len(_shares) - 1] = 1
        raise


def _on_ray(runs: Sequence[Run], address: str | None) -> Finished:
    """The runs as Ray tasks; results as they come. A worker or node that is lost costs its tasks' time, no more."""
    try:
        import ray
    except ImportError:
        raise ValueError('--on ray needs Ray: pip install "spie-rl[ray]"') from None
    if not ray.is_initialized():  # it stays up for what else this process runs
        _connect(ray, address)
    task: Any = ray.remote(max_retries=10)(_timed)
    pending = {}
    for run in runs:
        asked = run.settings.resources()
        pending[task.options(num_cpus=asked.cpus, num_gpus=asked.gpus).remote(run, asked.cpus, files())] = run
    try:
        while pending:
            (done,), _ = ray.wait(list(pending), num_returns=1)
            result = ray.get(done)
            yield pending.pop(done), result
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # what the run itself had to say
    except ray.exceptions.RayError as error:
        raise OSError(f"Ray gave up on a run: {str(error).splitlines()[0]}") from error
    finally:
        for reference in pending:
            ray.cancel(reference)


def _connect(ray: Any, address: str | None) -> None:
    """Join the cluster at an address; without one, start Ray here, on the loopback device and without dashboard."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": None}
    if address is None:
        ray.init("local", _node_ip_address="127.0.0.1", **quiet | {"include_dashboard": False})
        return
    try:
        if address != "auto":
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()  # Ray itself would try for a minute
        ray.init(address, **quiet)
    except (ConnectionError, OSError, ValueError) as error:
        cure = "start one with ray start --head, or leave out --address"
        raise OSError(f"no Ray cluster at {address} ({error}); {cure}") from error


def save(store: Store, run: Run, result: Result, seconds: float) -> None:
    """Put a result into the store under its run's id."""
    arrays: dict[str, NDArray[Any]] = {}
    for field_ in dataclasses.fields(result):
        value = getattr(result, field_.name)
        if isinstance(value, np.ndarray | str):
            arrays[field_.name] = np.asarray(value)
    if isinstance(result, Trace):
        for seed, path in result.paths.items():
            arrays |= {f"paths/{seed}/{f.name}": getattr(path, f.name) for f in dataclasses.fields(path)}
    store.save(run.id, run.spec | {"env": run.env, "name": run.agent}, versions(), seconds, arrays, result.kind)


def load(store: Store, run: Run) -> Any:
    """The result of a run that is in the store; KeyError where it is not."""
    kind, arrays = store.load(run.id)
    fields: dict[str, Any] = dict(arrays)
    if "settings" in arrays:
        fields["settings"] = str(arrays["settings"])
    steps: dict[int, dict[str, NDArray[Any]]] = {}
    for name in [name for name in fields if name.startswith("paths/")]:
        _, seed, column = name.split("/")
        steps.setdefault(int(seed), {})[column] = fields.pop(name)
    if steps:
        fields["paths"] = {seed: Trajectory(**path) for seed, path in steps.items()}
    return RESULTS[kind](**fields)


def versions() -> dict[str, str]:
    """What the results depend on, in case they ever differ."""
    packages = ("spie-rl", "numpy", "scipy", "numba", "torch")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found
