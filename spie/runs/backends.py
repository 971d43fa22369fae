"""Where runs execute: what is stored already is not run again, the rest goes to a backend and into the store."""

import contextlib
import functools
import math
import multiprocessing
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, TypeAlias

from spie.agents.base import Session
from spie.engine.lanes import machine_memory
from spie.errors import unknown
from spie.runs.run import Run, save
from spie.runs.store import Store
from spie.runs.user_code import loaded_files, register_files
from spie.trace import Result

BACKENDS = ("serial", "processes", "ray")
GRACE, GRACE_WITH_CHECKPOINT = 2.0, 60.0  # seconds for a worker that was told to stop
LOOK = 1.0  # seconds between two looks at how far the workers are

Progress: TypeAlias = Callable[[Run, float], None]  # told of a run how much is done, 0 to 1
Timed: TypeAlias = tuple[Result, float, float]  # a result, the seconds that it took, and those of processors
Finished: TypeAlias = Generator[tuple[Run, Timed], None, None]


def execute(
    runs: Sequence[Run],
    store: Store,
    on: str = "serial",
    address: str | None = None,
    progress: Progress = lambda run, share: None,
) -> Generator[Run, None, None]:
    """Run what the store does not have yet, and yield each run once it is stored; those stored before come first.

    address: of a Ray cluster that is there already; without one, Ray starts on this machine and ends with this process.
    progress: told now and then how much of a run is done. A run that is resumable keeps checkpoints beside the store
    until it is stored; on Ray, whose workers may be on other machines, it keeps none and begins anew where it is lost.
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
        finished = _on_ray(missing, address, progress)
    elif on == "serial" or len(missing) < 2:
        finished = _serial(missing, store, progress)
    else:
        finished = _on_processes(missing, store, progress)
    with contextlib.closing(finished):
        for run, (result, *seconds) in finished:
            save(store, run, result, *seconds)
            shutil.rmtree(_folder(store, run), ignore_errors=True)
            yield run


def _folder(store: Store, run: Run) -> Path:
    """Where a resumable run keeps its checkpoints."""
    return store.path.with_name(f"{store.path.name}-runs") / run.id


def _timed(run: Run, session: Session) -> Timed:
    began, cpu = time.perf_counter(), time.process_time()
    return run.execute(session), time.perf_counter() - began, time.process_time() - cpu


# In this process, on threads


def _serial(runs: Sequence[Run], store: Store, progress: Progress) -> Finished:
    for run in runs:
        yield run, _timed(run, Session(None, _folder(store, run), functools.partial(progress, run)))


# In processes of this machine


class _Shared:
    """What a command and its workers tell each other, in memory that they share; a killed worker leaves no lock."""

    def __init__(self, context: Any, n_runs: int) -> None:
        self.shares = context.Array("d", n_runs, lock=False)  # of each run, how much is done
        self.stop = context.Value("b", 0, lock=False)  # 1: no run begins any more


_shared: Any = None  # a worker's view of it


def _on_processes(runs: Sequence[Run], store: Store, progress: Progress) -> Finished:
    context = multiprocessing.get_context("spawn")
    shared = _Shared(context, len(runs))
    others = set(multiprocessing.active_children())
    with ProcessPoolExecutor(_workers(runs), context, _begin_worker, (shared,)) as pool:
        pending: dict[Future[Timed], Run] = {
            pool.submit(_in_worker, run, i, _folder(store, run), loaded_files()): run for i, run in enumerate(runs)
        }
        try:
            while pending:
                done, _ = wait(pending, timeout=LOOK, return_when=FIRST_COMPLETED)
                for future in done:
                    yield pending.pop(future), future.result()
                for run, share in zip(runs, shared.shares, strict=True):
                    progress(run, share)
        except BaseException as error:
            shared.stop.value = 1  # runs that a worker has fetched already do not begin any more
            pool.shutdown(wait=False, cancel_futures=True)
            _end(set(multiprocessing.active_children()) - others, any(run.settings.resumable for run in runs))
            if isinstance(error, BrokenProcessPool):
                raise OSError("a worker was killed, perhaps for want of memory; run again to continue") from error
            raise


def _end(workers: Iterable[Any], saving: bool) -> None:
    """Stop workers: at once where they listen, else by force; those that save first get more time."""
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
    end = time.monotonic() + (GRACE_WITH_CHECKPOINT if saving else GRACE)
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()


def _workers(runs: Sequence[Run]) -> int:
    """How many processes the cores and the memory of this machine are enough for."""
    cores: int = (os.cpu_count() or 1) // max(run.settings.resources().cpus for run in runs)
    most: int = max(run.settings.memory(run.task, run.steps, run.n_seeds) for run in runs)
    return max(1, min(cores, int(0.9 * machine_memory() / most) if most else cores))


def _begin_worker(shared: _Shared) -> None:
    """A worker reports to `shared`, and ends with the process that started it, even if that one is killed."""
    global _shared
    _shared = shared
    if os.name == "posix":
        os.setpgid(0, 0)  # Ctrl-C in a terminal goes to the command alone, which tells each worker once
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _in_worker(run: Run, place: int, folder: Path, files: Mapping[str, str]) -> Timed:
    """A run in a worker, which has the user's files with rewards and reports to its place of the shares."""
    register_files(files)
    if _shared.stop.value:
        raise CancelledError
    report = functools.partial(_shared.shares.__setitem__, place)
    try:
        return _timed(run, Session(run.settings.resources().cpus, folder, report))
    except KeyboardInterrupt:
        _shared.stop.value = 1  # or this worker might have begun another before the command stops it
        raise


# On a Ray cluster


def _on_ray(runs: Sequence[Run], address: str | None, progress: Progress) -> Finished:
    """The runs as Ray tasks; results as they come. A worker or node that is lost costs its tasks' time, no more."""
    try:
        import ray
    except ImportError:
        raise ValueError('--on ray needs Ray: pip install "spie-rl[ray]"') from None
    if not ray.is_initialized():  # it stays up for what else this process runs
        _connect(ray, address)
    board = _on_this_node(ray, _Board)
    task: Any = ray.remote(max_retries=10)(_as_task)
    pending: dict[Any, Run] = {}
    for run in runs:
        asked = run.settings.resources()
        options = task.options(num_cpus=asked.cpus, num_gpus=asked.gpus)
        pending[options.remote(run, board, loaded_files())] = run
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


class _Board:
    """How much is done of each run, by id, as the workers of a cluster report it: a Ray actor."""

    def __init__(self) -> None:
        self.shares: dict[str, float] = {}

    def tell(self, run_id: str, share: float) -> None:
        self.shares[run_id] = share

    def read(self) -> dict[str, float]:
        return self.shares


def _on_this_node(ray: Any, actor: type[_Board]) -> Any:
    """An actor on the node of this command: it is lost with the command itself, and not before."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    return ray.remote(actor).options(num_cpus=0, scheduling_strategy=here).remote()


def _as_task(run: Run, board: Any, files: Mapping[str, str]) -> Timed:
    """A run in a worker of a cluster, which has the user's files with rewards and reports to the board."""
    register_files(files)
    last = -math.inf

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= LOOK:
            last = time.monotonic()
            board.tell.remote(run.id, share)

    return _timed(run, Session(run.settings.resources().cpus, None, report))


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
