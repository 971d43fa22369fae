"""Where runs execute: what is stored already is not run again, the rest goes to a backend and into the store."""

import contextlib
import dataclasses
import functools
import json
import math
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from spie.agents.base import Session
from spie.engine.lanes import check_memory, machine_memory
from spie.errors import is_among, unknown
from spie.files import write_whole
from spie.runs.ahead import CompiledAhead
from spie.runs.mirror import KeptFolders, Mirror
from spie.runs.processes import in_processes, portable
from spie.runs.run import Run, save
from spie.runs.store import Store
from spie.runs.user_code import complaint, loaded_files, register_files
from spie.trace import Result

BACKENDS = ("serial", "processes", "ray")
GRACE, GRACE_WITH_CHECKPOINT = 1.0, 60.0  # seconds for a worker that was told to stop
# Ray's way to have all its processes listen on the loopback device: what it does by itself on Windows and macOS. The
# address of the node alone does not, for Ray replaces 127.0.0.1 by one that others can reach.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
LOOK = 1.0  # seconds between two looks at how far the workers are
NOTED = 5.0  # seconds between two notes of how long a run has taken, at least

Progress: TypeAlias = Callable[[Run, float], None]  # told of a run how much is done, 0 to 1
Timed: TypeAlias = tuple[Result, float, float]  # a result, the seconds that it took, and those of processors
Outcome: TypeAlias = Timed | Exception  # or what the run itself raised
Finished: TypeAlias = Generator[tuple[Run, Outcome], None, None]


def execute(
    runs: Sequence[Run],
    store: Store,
    on: str = "serial",
    address: str | None = None,
    progress: Progress = lambda run, share: None,
    failing: Callable[[Run, Exception], None] = lambda run, error: None,
) -> Generator[Run, None, None]:
    """Run what the store does not have yet, and yield each run once it is stored; those stored before come first.

    address: of a Ray cluster that is there already; without one, Ray starts on this machine and ends with this process.
    progress: told now and then how much of a run is done. A run that is resumable keeps checkpoints beside the store
    until it is stored; on Ray, workers that do not see that folder send them there.
    A run that fails does not keep the others from being run and stored: it is raised when they are, and `failing` is
    told of it at once.
    """
    if not is_among(on, BACKENDS):
        raise unknown("backend", on, BACKENDS)
    missing = []
    for run in {run.id: run for run in runs}.values():
        if run.id in store:
            shutil.rmtree(_folder(store, run), ignore_errors=True)  # of a command that was killed in between
            yield run
        else:
            missing.append(run)
    if on != "ray":
        _check_room([run for run in missing if run.settings.resumable], store, on)
    for agent in {type(run.settings): run.settings for run in missing}.values():
        agent.require()  # what is not installed is said before anything runs
    if on == "ray" and missing:
        finished = _on_ray(missing, store, address, progress)
    elif on == "serial" or not missing:
        finished = _serial(missing, store, progress)
    else:
        finished = _on_processes(missing, store, progress)
    failed: list[tuple[Run, Exception]] = []
    with contextlib.closing(finished):
        for run, outcome in finished:
            if isinstance(outcome, Exception):
                failed.append((run, outcome))
                if len(missing) > 1:
                    failing(run, outcome)
                continue
            save(store, run, *outcome)
            shutil.rmtree(_folder(store, run), ignore_errors=True)
            yield run
    if failed:
        raise _failure(failed, len(missing))


def _failure(failed: Sequence[tuple[Run, Exception]], n_runs: int) -> Exception:
    """What is raised about runs that failed: of a mistake one line, else the first error itself."""
    run, error = failed[0]
    if n_runs == 1:
        return error
    words = f"{len(failed)} of {n_runs} runs failed, {n_runs - len(failed)} are stored: {run.env} {run.agent}"
    if isinstance(error, ValueError):
        return ValueError(f"{words}: {error}")
    error.add_note(words)
    return error


def _folder(store: Store, run: Run) -> Path:
    """Where a resumable run keeps its checkpoints."""
    return _folders(store) / run.id


def _folders(store: Store) -> Path:
    return store.path.with_name(f"{store.path.name}-runs").absolute()


def _check_room(runs: Sequence[Run], store: Store, on: str) -> None:
    """Refuse long runs that the memory or the disk cannot hold before the first of them begins.

    Checkpoints take about as much of the disk as a run takes of the memory: the replay once, and the networks twice.
    """
    if not runs:
        return
    sizes = [run.settings.memory(run.task, run.steps, run.n_seeds) for run in runs]
    most, run = max(zip(sizes, runs, strict=True), key=lambda sized: sized[0])
    who = f"{run.env} {run.agent}, {run.steps:,} steps,"
    check_memory(most, who, "run it with fewer frames or seeds, or on another machine")
    at_once = _workers(runs) if on == "processes" and len(runs) > 1 else 1
    free = shutil.disk_usage(store.path.absolute().parent).free
    if at_once * most > free:
        needs = f"{at_once} x {most / 1e9:,.1f} GB of disk for checkpoints and {store.path.absolute().parent} has"
        raise ValueError(f"{who} would need {needs} {free / 1e9:,.1f} GB; give a --results file elsewhere")


def _timed(run: Run, session: Session) -> Outcome:
    """A result, or what the run raised; what is wrong with the machine, such as its disk, is raised for all runs."""
    clock = _Clock(session.folder if run.settings.resumable else None)

    def report(share: float) -> None:
        clock.note_now_and_then()
        if session.progress is not None:
            session.progress(share)

    try:
        return run.execute(dataclasses.replace(session, progress=report)), *clock.read()
    except OSError:
        raise
    except Exception as error:
        told = complaint(error)  # here, because its place in the user's file does not go from process to process
        return ValueError(told) if told else portable(error)


class _Clock:
    """How long a run has taken, and processors for it, in all the processes that worked on it.

    What earlier ones took stands in a file beside the checkpoints, whose name begins with a dot: it is of no run that
    begins there. It counts what was lost with a process, too; the last seconds before a kill may be missing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / ".worked"
        self._began, self._cpu, self._noted = time.perf_counter(), time.process_time(), time.monotonic()
        self._before = (0.0, 0.0)
        with contextlib.suppress(OSError, ValueError, TypeError):  # without a file, or with half of one, from now on
            if self._file is not None:
                seconds, cpu_seconds = map(float, json.loads(self._file.read_text()))
                self._before = (seconds, cpu_seconds)

    def read(self) -> tuple[float, float]:
        seconds, cpu_seconds = time.perf_counter() - self._began, time.process_time() - self._cpu
        return self._before[0] + seconds, self._before[1] + cpu_seconds

    def note_now_and_then(self) -> None:
        if self._file is not None and time.monotonic() - self._noted >= NOTED and self._file.parent.is_dir():
            write_whole(self._file, json.dumps(self.read()))
            self._noted = time.monotonic()


# In this process, on threads


def _serial(runs: Sequence[Run], store: Store, progress: Progress) -> Finished:
    with CompiledAhead(runs) as ahead:
        for run in runs:
            ahead.begins(run)
            yield run, _timed(run, Session(None, _folder(store, run), functools.partial(progress, run)))


# In processes of this machine


def _on_processes(runs: Sequence[Run], store: Store, progress: Progress) -> Finished:
    alone = len(runs) == 1  # then it has all cores, and a process all the same: code that hangs can be stopped
    jobs = [
        (_in_worker, (run, None if alone else run.settings.resources().cpus, _folder(store, run), loaded_files()))
        for run in runs
    ]
    grace = GRACE_WITH_CHECKPOINT if any(run.settings.resumable for run in runs) else GRACE
    with contextlib.closing(in_processes(jobs, _workers(runs), grace, LOOK)) as finished:
        for shares, done in finished:
            for i, timed in done:
                yield runs[i], timed
            for run, share in zip(runs, shares, strict=True):
                progress(run, share)


def _workers(runs: Sequence[Run]) -> int:
    """How many processes the cores and the memory of this machine are enough for."""
    cores: int = (os.cpu_count() or 1) // max(run.settings.resources().cpus for run in runs)
    most: int = max(run.settings.memory(run.task, run.steps, run.n_seeds) for run in runs)
    return max(1, min(cores, int(0.9 * machine_memory() / most) if most else cores))


def _in_worker(
    report: Callable[[float], None], run: Run, threads: int | None, folder: Path, files: Mapping[str, str]
) -> Outcome:
    """A run in a worker, which has the user's files with rewards and reports how much is done."""
    register_files(files)
    return _timed(run, Session(threads, folder, report))


# On a Ray cluster


def _on_ray(runs: Sequence[Run], store: Store, address: str | None, progress: Progress) -> Finished:
    """The runs as Ray tasks; results as they come. A worker or node that is lost costs its tasks' time, no more."""
    try:
        import ray
    except ImportError:
        raise ValueError('--on ray needs Ray: pip install "spie-rl[ray]"') from None
    if not ray.is_initialized():  # it stays up for what else this process runs
        _connect(ray, address)
    root = _folders(store)
    board, mark = _on_this_node(ray, str(root)), _mark(root, runs)
    task: Any = ray.remote(max_retries=10)(_as_task)
    pending: dict[Any, Run] = {}
    for run in runs:
        asked = run.settings.resources()
        options = task.options(num_cpus=asked.cpus, num_gpus=asked.gpus)
        pending[options.remote(run, board, loaded_files(), mark)] = run
    try:
        shares = board.read.remote()
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1, timeout=LOOK)
            for reference in done:
                yield pending.pop(reference), ray.get(reference)
            if ray.wait([shares], timeout=0)[0]:
                known = ray.get(shares)
                for run in pending.values():
                    progress(run, known.get(run.id, 0.0))
                shares = board.read.remote()
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None  # what the run itself had to say
    except ray.exceptions.RayError as error:
        raise OSError(f"Ray gave up on a run: {str(error).splitlines()[0]}") from error
    finally:
        for reference in pending:
            ray.cancel(reference)
        ray.kill(board)
        mark.unlink(missing_ok=True)


def _mark(root: Path, runs: Sequence[Run]) -> Path:
    """A file beside the checkpoints: a worker that sees it shares the disk. There is none where no run keeps any."""
    mark = root / f".{secrets.token_hex(8)}"
    if any(run.settings.resumable for run in runs):
        root.mkdir(exist_ok=True)
        mark.touch()
    return mark


class _Board(KeptFolders):
    """How much is done of each run, by id, as the workers of a cluster report it, and its checkpoints: a Ray actor."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.shares: dict[str, float] = {}

    def tell(self, run_id: str, share: float) -> None:
        self.shares[run_id] = share

    def read(self) -> dict[str, float]:
        return self.shares


def _on_this_node(ray: Any, root: str) -> Any:
    """The board on the node of this command: it is lost with the command itself, and not before."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(_Board).options(num_cpus=0, scheduling_strategy=here).remote(root)


def _as_task(run: Run, board: Any, files: Mapping[str, str], mark: Path) -> Outcome:
    """A run in a worker of a cluster, which has the user's files with rewards and reports to the board.

    Its checkpoints lie beside the store where the worker sees the mark that is there, else they are sent there.
    """
    import ray

    register_files(files)
    last, mirror = -math.inf, None  # when the board was told last; where checkpoints are sent

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LOOK:
            last = time.monotonic()
            board.tell.remote(run.id, share)
        if mirror is not None:
            mirror.send_now_and_then()

    cpus = run.settings.resources().cpus
    if not run.settings.resumable or mark.exists():
        return _timed(run, Session(cpus, mark.parent / run.id if run.settings.resumable else None, report))
    call = lambda method, *arguments: ray.get(getattr(board, method).remote(*arguments))  # noqa: E731
    with tempfile.TemporaryDirectory(prefix="spie-run-", ignore_cleanup_errors=True) as own:
        mirror = Mirror(Path(own), run.id, call)
        return _timed(run, Session(cpus, mirror.folder, report))


def _connect(ray: Any, address: str | None) -> None:
    """Join the cluster at an address; without one, start Ray here, for this process alone and without dashboard.

    Whoever reaches a port of Ray can have it run code. So ours listens on the loopback device only and answers nobody
    without a token that only this process knows.
    """
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": None}
    if address is None:
        os.environ |= LOOPBACK | {"RAY_AUTH_TOKEN": secrets.token_hex(32)}  # for the processes that Ray starts
        os.environ.pop("RAY_AUTH_MODE", None)  # then Ray's default for clusters like this one: by token
        ray._private.ray_constants.ENABLE_RAY_CLUSTER = False  # read from the environment when Ray was imported
        ray._raylet.AuthenticationTokenLoader.instance().reset_cache()  # which may hold a token of the user's
        try:
            ray.init("local", _node_ip_address="127.0.0.1", **quiet | {"include_dashboard": False})
        except Exception as error:  # Ray has no kind of its own for a node that did not start in time
            why = str(error).partition(". ")[0]
            raise OSError(f"Ray did not start on this machine ({why}); try again, or take --on processes") from error
        return
    try:
        if address != "auto":
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()  # Ray itself would try for a minute
        ray.init(address, **quiet)
    except (ConnectionError, OSError, ValueError) as error:
        cure = "start one with ray start --head, or leave out --address"
        raise OSError(f"no Ray cluster at {address} ({error}); {cure}") from error
