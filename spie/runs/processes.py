"""Worker processes of this machine, which end with the command that started them, however it ends.

The standard pool waits for ever, at the end of the program, for the rest of a message that a killed worker had begun.
Here each worker has a pipe of its own, and the command keeps no copy of the worker's end: when a worker dies, its pipe
says so.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]  # called with how to report its share, and the arguments
Finished: TypeAlias = tuple[list[float], list[tuple[int, Any]]]  # shares of all jobs; places and results of the new


def in_processes(jobs: Sequence[Job], n_workers: int, grace: float, look: float) -> Generator[Finished, None, None]:
    """Execute jobs in fresh processes; at least every `look` seconds yield how far they are and what is done.

    The first job that raises, and whoever closes this generator, stops all: no job begins any more, and a worker that
    does not end within `grace` seconds is killed.
    """
    context = multiprocessing.get_context("spawn")
    shared = _Shared(context, len(jobs))
    waiting = list(enumerate(jobs))[::-1]
    workers: list[_Worker] = []
    left = len(jobs)
    try:
        workers += [_Worker(context, shared) for _ in range(min(n_workers, len(jobs)))]
        for worker in workers:
            worker.give(waiting.pop())
        while left:
            done, failure = [], None
            for worker in _ready(workers, look):
                try:
                    done.append(worker.take())
                except BaseException as error:  # raised once the results of the others are handed over
                    failure = error
                    shared.stop.value = 1
                else:
                    if waiting:
                        worker.give(waiting.pop())
            left -= len(done)
            yield list(shared.shares), done
            if failure is not None:
                raise failure
    finally:
        shared.stop.value = 1
        _end(workers, grace if left else 0.0)


class _Shared:
    """What a command and its workers tell each other, in memory that they share; a killed worker leaves no lock."""

    def __init__(self, context: Any, n_jobs: int) -> None:
        self.shares = context.Array("d", n_jobs, lock=False)  # of each job, how much is done
        self.stop = context.Value("b", 0, lock=False)  # 1: no job begins any more


class _Worker:
    """A process, the command's end of its pipe, and the place of the job it is at (-1: of none)."""

    def __init__(self, context: Any, shared: _Shared) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, shared))
        self.process.start()
        theirs.close()
        self.place = -1

    def give(self, job: tuple[int, Job]) -> None:
        self.place = job[0]
        with contextlib.suppress(BrokenPipeError):  # it died: which is said when its result is taken
            self.pipe.send(job)

    def take(self) -> tuple[int, Any]:
        """The result, once the pipe is ready. Raises what the job raised, or that the worker is dead."""
        try:
            failed, result = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise OSError("a worker was killed, perhaps because memory ran out; run again to continue") from error
        if failed:
            raise result
        place, self.place = self.place, -1
        return place, result


def _ready(workers: Sequence[_Worker], look: float) -> list[_Worker]:
    busy = {worker.pipe: worker for worker in workers if worker.place >= 0}
    return [busy[pipe] for pipe in wait(list(busy), look)]


def _end(workers: Sequence[_Worker], grace: float) -> None:
    """Stop workers: at once where they listen, else by force. Those that have nothing to do see their pipe close."""
    for worker in workers:
        worker.pipe.close()
        if worker.place >= 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid, signal.SIGINT)
    end = time.monotonic() + max(grace, 1.0)  # seconds for a worker with nothing to do
    for worker in workers:
        worker.process.join(max(0.0, end - time.monotonic()))
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join()
        worker.process.close()


# In the worker


def _work(pipe: Connection, shared: _Shared) -> None:
    """Execute what comes through the pipe until it is closed. Ends with the process that started it, even if killed."""
    if os.name == "posix":
        os.setpgid(0, 0)  # Ctrl-C in a terminal goes to the command alone, which tells each worker once
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        while True:
            pipe.send(_outcome(pipe.recv_bytes(), shared))


def _outcome(job: bytes, shared: _Shared) -> tuple[bool, Any]:
    """Whether a job failed, and its result or what it raised, with where."""
    try:
        place, (call, arguments) = pickle.loads(job)
        if shared.stop.value:
            raise KeyboardInterrupt
        return False, call(lambda share: shared.shares.__setitem__(place, share), *arguments)
    except BaseException as error:
        return True, portable(error)


def portable(error: BaseException) -> Any:
    """An error that is being handled, as other processes can read it; with where it was raised, if it is no mistake."""
    if multiprocessing.parent_process() is not None and not isinstance(error, ValueError):
        error.add_note("in a worker process:\n" + traceback.format_exc())
    try:
        pickle.loads(pickle.dumps(error))  # which not every exception survives
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
