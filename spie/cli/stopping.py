"""How a command is stopped: Ctrl-C, SIGTERM and SIGHUP alike, and a second time without waiting for anything."""

import os
import select
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

from spie.cli.terminal import CONTINUES
from spie.errors import printable

PATIENCE = 1.0  # seconds until it is said what a command that was told to stop waits for
ONE_WISH = 0.2  # seconds: what wrappers and a terminal send together is one wish to stop
_FIRST = threading.Lock()
OVER = 0  # no signal has this number: the command is over


def say_stopped(heard: list[int]) -> int:
    """Say once that the command was stopped, by what and how it goes on. Returns its exit code."""
    by = f" by {signal.Signals(heard[0]).name}" if heard else ""
    again = CONTINUES[-1] if CONTINUES else shlex.join(["spie", *sys.argv[1:]])
    if _FIRST.acquire(blocking=False):  # the thread that looks at signals and the main one may both get here
        print(f"stopped{by}; what is stored stays, continue with: {printable(again)}", file=sys.stderr, flush=True)
    return 128 + (heard[0] if heard else signal.SIGINT)


@contextmanager
def stopped_by_signals() -> Iterator[list[int]]:
    """Have SIGTERM and SIGHUP, which clusters and closed terminals send, do what Ctrl-C does. Yields which came.

    The second of any of them ends the process at once, whatever it does. Afterwards all signals mean what they meant.
    """
    heard: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        on_ctrl_c: Any = signal.getsignal(signal.SIGINT)  # of whoever saves before it stops
        if not callable(on_ctrl_c):  # ignored, as in the background of a shell
            raise KeyboardInterrupt
        on_ctrl_c(signal.SIGINT, frame)

    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    stops: list[int] = [signal.SIGINT] * (signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    ours = []
    for name in ("SIGTERM", "SIGHUP"):
        number = vars(signal).get(name)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it
            signal.signal(number, stop)
            ours.append(number)
    watched = _watched(stops + ours, lambda number: os._exit(say_stopped([number] * (number != signal.SIGINT))))
    try:
        with watched if os.name == "posix" else nullcontext():
            yield heard
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _watched(stops: list[int], end: Callable[[int], Any]) -> Iterator[None]:
    """Look at the signals in a thread of its own, because compiled code does not let Python look at them."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def watch() -> None:
        first = 0.0
        while True:
            if not select.select([read], [], [], PATIENCE if first else None)[0]:
                _say_what_is_waited_for()
                select.select([read], [], [])
            for number in os.read(read, 64):
                if number == OVER:
                    return
                if number in stops and first and time.monotonic() > first + ONE_WISH:
                    end(number)
                elif number in stops:
                    first = first or time.monotonic()

    thread = threading.Thread(target=watch, name="signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(write, bytes([OVER]))
        thread.join()
        os.close(read)
        os.close(write)


def _say_what_is_waited_for() -> None:
    from spie.engine.specialise import under_way

    what = ", ".join(under_way())
    waits = f"compiled code cannot be interrupted; waiting for {what}" if what else "waiting for what is running to end"
    print(f"{printable(waits)}; press Ctrl-C again to stop at once", file=sys.stderr, flush=True)
