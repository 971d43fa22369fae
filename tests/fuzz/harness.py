"""What every fuzzer shares: an input is made of a seed, tried within limits, and judged.

An input is *right* if it was taken and whatever can be checked of the result held; *refused* if it was a clear error of
ours. All else is a failure: an error that nobody wrote a sentence for, a hang, a crash, or a silent difference.
"""

import contextlib
import importlib
import linecache
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

SPIE = str(Path(__file__).parents[2] / "spie") + os.sep
HERE = Path(__file__).parents[2]
OUTCOMES = ("right", "refused", "raw error", "hang", "difference")  # of an input; a crash is seen from outside
LIMIT = 20.0  # seconds of a processor for one input
WAITS = 6  # and this many times as long by the clock, because others use the machine
MEMORY = 6 * 2**30  # bytes of address space beyond what the process has when it begins


class Difference(Exception):
    """A result that is not what it has to be."""


class Refused(Exception):
    """A command said in one line what is wrong."""


class Hang(BaseException):
    """An input took longer than its limit; no `except Exception` stops it."""


@dataclass(frozen=True)
class Attempt:
    """An input: words for people, and what tries it."""

    words: str
    call: Callable[[], Any]


@dataclass(frozen=True)
class Fuzzer:
    """One kind of input: made of a random generator; `prepare` gives what all attempts of a process share."""

    name: str
    make: Callable[[random.Random, Any], Attempt]
    prepare: Callable[[Path], Any] = lambda folder: None
    share: float = 1.0  # of the time
    kinds: tuple[type[BaseException], ...] = (ValueError, TypeError)  # of errors that are ours


@dataclass
class Tally:
    """What came of the inputs of a fuzzer."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)  # by where it failed: the command that repeats the first
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        return sum(self.counts.values())


def generator(fuzzer: str, seed: int, case: int) -> random.Random:
    """The random numbers of one input: the same in every process and on every machine."""
    return random.Random(f"{fuzzer}/{seed}/{case}")


def is_ours(error: BaseException, one_line: bool = True) -> bool:
    """Whether an error is a sentence that spie raises itself: a `raise` of its own source, in one line."""
    frames = list(_frames(error.__traceback__))
    if not frames or not frames[-1][0].startswith(SPIE):
        return False
    text = str(error)
    return (
        bool(text) and not (one_line and "\n" in text) and linecache.getline(*frames[-1]).strip().startswith("raise ")
    )


def _frames(step: TracebackType | None) -> Iterator[tuple[str, int]]:
    while step is not None:
        yield step.tb_frame.f_code.co_filename, step.tb_lineno
        step = step.tb_next


@contextlib.contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise `Hang` in whatever takes longer."""

    def stop(number: int, frame: Any) -> None:
        raise Hang(f"more than {seconds:.0f} s")

    clocks = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, WAITS * seconds)}
    before = {number: signal.signal(number, stop) for number in clocks}
    for clock, most in clocks.values():
        signal.setitimer(clock, most)
    try:
        yield
    finally:
        for number, (clock, _) in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(number, before[number])


def judge(fuzzer: Fuzzer, attempt: Attempt) -> tuple[str, BaseException | None]:
    """What comes of an attempt: right, refused, or the kind of failure and its error."""
    try:
        with limit(LIMIT), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt.call()
    except Refused:
        return "refused", None
    except Difference as error:
        return "difference", error
    except Hang as error:
        return "hang", error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, fuzzer.kinds) and is_ours(error):
            return "refused", None
        return "raw error", error
    return "right", None


def where(error: BaseException) -> str:
    """The place of an error: its kind and the last line of ours that it went through."""
    frames = [(file, line) for file, line in _frames(error.__traceback__) if file.startswith(SPIE)]
    file, line = frames[-1] if frames else ("?", 0)
    return f"{type(error).__name__} at {file.removeprefix(SPIE)}:{line}"


def command(fuzzer: str, seed: int, case: int) -> str:
    return f".venv/bin/python tests/fuzz/__main__.py {fuzzer} --seed {seed} --case {case}"


def repeat(fuzzer: Fuzzer, seed: int, case: int) -> str:
    """Try one input again, and tell everything."""
    with tempfile.TemporaryDirectory(prefix="spie-fuzz-") as folder, _inside(folder):
        shared = fuzzer.prepare(Path(folder))
        attempt = fuzzer.make(generator(fuzzer.name, seed, case), shared)
        print(attempt.words)
        outcome, error = judge(fuzzer, attempt)
        if error is not None:
            traceback.print_exception(error)
        print(outcome)
        return outcome


def run(fuzzer: Fuzzer, seed: int, seconds: float, most: int) -> Tally:
    """Try inputs for so long, in a process of their own; one that crashes is named, and a new process goes on."""
    context = multiprocessing.get_context("fork")
    case = context.Value("q", 0, lock=False)
    counts = context.Array("q", len(OUTCOMES), lock=False)  # shared, so that a crash loses none
    tally, begin = Tally(), time.monotonic()
    while (left := begin + seconds - time.monotonic()) > 0 and case.value < most:
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(fuzzer, seed, left, most, case, counts, theirs))
        process.start()
        theirs.close()
        with contextlib.suppress(EOFError):
            while True:
                place, said = ours.recv()
                tally.failures.setdefault(place, said)
        process.join()
        if process.exitcode == 1:
            raise RuntimeError(f"the fuzzer itself failed: {command(fuzzer.name, seed, case.value)}")
        if process.exitcode:
            tally.counts["crash"] += 1
            tally.failures[f"crash: exit {process.exitcode}"] = command(fuzzer.name, seed, case.value)
            case.value += 1
    tally.counts.update(dict(zip(OUTCOMES, counts, strict=True)))
    tally.seconds = time.monotonic() - begin
    return tally


def _work(fuzzer: Fuzzer, seed: int, seconds: float, most: int, case: Any, counts: Any, pipe: Any) -> None:
    """Try inputs until the time is over; `case` is always the one under way."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    known: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="spie-fuzz-") as folder, _inside(folder):
        shared = fuzzer.prepare(Path(folder))
        end = time.monotonic() + seconds
        while time.monotonic() < end and case.value < most:
            attempt = fuzzer.make(generator(fuzzer.name, seed, case.value), shared)
            outcome, error = judge(fuzzer, attempt)
            counts[OUTCOMES.index(outcome)] += 1
            if error is not None and (place := f"{outcome}: {where(error)}") not in known:
                known.add(place)
                pipe.send((place, f"{str(error)[:120]!r}\n    {command(fuzzer.name, seed, case.value)}"))
            case.value += 1


def loaded(folder: Path) -> Path:
    """The folder, once what takes longer to load than a single input may is loaded."""
    for module in ("torch", "stable_baselines3"):
        importlib.import_module(module)
    return folder


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """In an empty folder, with nothing said on the terminal."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


sys.path.insert(0, str(HERE))
