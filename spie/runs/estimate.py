"""How long runs take on this machine as it is now: kernels that are compiled first, then the steps themselves."""

import functools
import os
import time
from collections.abc import Sequence
from typing import NamedTuple

from spie.agents.base import Request
from spie.numbers import duration
from spie.runs.run import Run

# What agents say of their steps, and this of a kernel, was measured on an idle core that does `_work` in WORK seconds
WORK = 2.6e-3
COMPILATION = 1.4
CALIBRATION = 0.05  # seconds
TRIED = 5.0  # seconds from which on it is worth a try
TRIED_SEEDS = 20  # a run with this many seeds or more may be tried on a tenth of them


class NeededTime(NamedTuple):
    """Seconds on this machine as it is now."""

    kernels: int  # that have to be compiled first
    compiling: float
    running: float
    at_most: bool = False  # episodes that end by themselves make it shorter

    @property
    def seconds(self) -> float:
        return self.compiling + self.running

    def __str__(self) -> str:
        running = f"{'at most' if self.at_most else 'about'} {duration(max(1.0, self.running))}"
        if not self.kernels:
            return running
        plural = "s" * (self.kernels > 1)
        return f"about {duration(max(1.0, self.compiling))} to compile {self.kernels} kernel{plural}, then {running}"


def estimate(runs: Sequence[Run], on: str = "serial", tried: bool = False) -> NeededTime:
    """Of runs that are not stored yet.

    tried: those whose episodes end by themselves are run on a tenth of their seeds, to see how soon. That compiles
    what they need.
    """
    seconds = {run.id: _tried(run) if tried and can_be_tried(run) else slowness() * run.seconds for run in runs}
    needs = {run.id: run.settings.kernels([run.settings], _request(run)) for run in runs}
    kernels = {kernel.name: kernel for found in needs.values() for kernel in found}
    new = sum(not kernel.is_compiled for kernel in kernels.values())
    processes = 1 if on == "serial" else min(cores(), len(needs))
    compiling = slowness() * COMPILATION * new / max(1, processes)  # Numba compiles one kernel at a time in a process
    # What is compiled runs on all cores, whatever else there is to do; all other runs, on one each
    running = sum(seconds[i] / (cores() if found else processes) for i, found in needs.items())
    bound = any(run.episodes and not (tried and can_be_tried(run)) for run in runs)
    return NeededTime(new, compiling, running, bound)


def can_be_tried(run: Run) -> bool:
    """Whether its episodes may end by themselves, and a tenth of its seeds is soon done."""
    return run.episodes is not None and run.n_seeds >= TRIED_SEEDS


def _tried(run: Run) -> float:
    """Seconds of one core that a run takes, by those that a tenth of its seeds takes."""
    seeds = _request(run).seed_array[: run.n_seeds // 10].tolist()
    how = {"episodes": run.episodes, "keep": run.keep}
    run.settings.run(run.task, 1, seeds[:1], **how | {"episodes": 1})  # compiles
    began = time.process_time()
    run.settings.run(run.task, run.steps, seeds, **how)
    return (time.process_time() - began) * slowness(busy_only=True) * run.n_seeds / len(seeds)


def _request(run: Run) -> Request:
    return Request(run.task, run.steps, run.seeds, run.episodes, run.keep)


def cores() -> int:
    """That this process may use."""
    allowed = vars(os).get("sched_getaffinity")  # Linux has it
    return len(allowed(0)) if allowed else os.cpu_count() or 1


@functools.cache
def slowness(busy_only: bool = False) -> float:
    """How many times longer things take here and now than where the constants were measured.

    busy_only: than they would take here on an idle machine.
    """
    rounds, own, began = 0, time.process_time(), time.perf_counter()
    while not rounds or time.perf_counter() - began < CALIBRATION:
        _work()
        rounds += 1
    taken = time.perf_counter() - began
    return taken / max(1e-9, time.process_time() - own) if busy_only else taken / rounds / WORK


def _work() -> int:
    return sum(i * i for i in range(100_000))
