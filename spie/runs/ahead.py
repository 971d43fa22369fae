"""Kernels of runs that are still to come, compiled in other processes while this one is at its own.

Runs in this process come one after the other, and so would the compilation of their kernels, of which one core is busy
at a time. As soon as the first kernel has to be compiled, other processes take one step of each run that follows: that
compiles its kernel, which is then found on disk. Nothing depends on them; whatever goes wrong there is left to the run.
"""

import contextlib
import dataclasses
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from spie.agents.base import Keep
from spie.engine.specialise import watching
from spie.runs.run import Run
from spie.runs.user_code import loaded_files, register_files

MOST_PROCESSES = 4


class CompiledAhead:
    """Watches while runs are made in their order, and has processes compile for those that follow."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.left = [run for run in runs if not run.settings.resumable]  # the others compile next to nothing
        self.processes: list[subprocess.Popen[bytes]] = []
        self._watching: contextlib.AbstractContextManager[None] | None = None

    def __enter__(self) -> "CompiledAhead":
        if len(self.left) > 1:
            self._watching = watching(self._told)
            self._watching.__enter__()
        return self

    def begins(self, run: Run) -> None:
        """This run is made now."""
        self.left = [other for other in self.left if other.id != run.id]

    def _told(self, what: str) -> None:
        """A kernel is compiled: so may be those of the other runs."""
        cores = min((os.cpu_count() or 1) - 1, MOST_PROCESSES, len(self.left))
        if self.processes:
            return
        with contextlib.suppress(OSError):  # no process is to be had: then this one compiles all
            for i in range(cores):
                self.processes.append(_started(self.left[i::cores]))

    def __exit__(self, *error: object) -> None:
        if self._watching is not None:
            self._watching.__exit__(None, None, None)
        for process in self.processes:
            process.kill()  # Numba writes its files whole or not at all
            process.wait()
            with contextlib.suppress(OSError):  # it may not have read everything
                if process.stdin is not None:
                    process.stdin.close()


def _started(runs: Sequence[Run]) -> "subprocess.Popen[bytes]":
    """A process that compiles for these runs; it ends when its input does, which is with this process."""
    quiet: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # Not by multiprocessing, which would run the file of a user's program again.
    command = [sys.executable, "-c", "from spie.runs.ahead import compile_all; compile_all()"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet)
    values = (loaded_files(), len(runs), *runs)
    threading.Thread(target=_send, args=(process, values), daemon=True).start()  # it reads once it has imported spie
    return process


def _send(process: "subprocess.Popen[bytes]", values: Sequence[Any]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, ValueError, pickle.PicklingError, AttributeError, TypeError):
        for value in values:
            process.stdin.write(pickle.dumps(value))
        process.stdin.flush()


def compile_all() -> None:
    """What such a process does."""
    files, n = pickle.load(sys.stdin.buffer), pickle.load(sys.stdin.buffer)
    register_files(files)
    runs = [pickle.load(sys.stdin.buffer) for _ in range(n)]
    threading.Thread(target=_end_with_input, daemon=True).start()
    for run in runs:
        with contextlib.suppress(Exception):  # the run itself will say what is wrong
            short(run).execute()


def short(run: Run) -> Run:
    """One step of one seed of a run, and the same kernel."""
    first = range(run.seeds)[:1] if isinstance(run.seeds, int) else run.seeds[:1]
    keep = Keep(matrices=run.keep.matrices)
    return dataclasses.replace(run, steps=1, seeds=tuple(first), episodes=1 if run.episodes else None, keep=keep)


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)  # unbuffered: the buffer could not be closed at the end of the process
    os._exit(0)
