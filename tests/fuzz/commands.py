"""Command lines: a command, its options and values, some of them wrong. What would take long is not done.

Whatever reaches the work itself was taken, and counts as right; all else must be one line and exit code 2.
"""

import contextlib
import io
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from harness import Attempt, Difference, Fuzzer, Refused, is_ours, loaded
from values import short

from spie import cli


class Reached(BaseException):
    """A command was accepted and begins its work."""


def reached(*_: Any, **__: Any) -> Any:
    raise Reached


WORK = (
    "spie.runs.run.Run.execute",
    "spie.search.grid.SettingsGrid.run",
    "spie.agents.dqn.session.train",
    "spie.dropin.check.check_reward",
    "spie.page.report.write",
    "spie.cli.show._show_table",
    "spie.cli.show._show_continuous",
    "spie.cli.film.filmed_run",
    "spie.studio.build.page",
    "spie.behaviour.fit.estimate",
    "spie.cli.demo._run",
    "spie.comparison.compare.calibrate",
    "socket.socket.connect",
    "webbrowser.open",
)
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("--seeds", "--frames", "--network", "--tier", "--results", "--on", "--address", "--json"),
    "sweep": ("--agent", "--seeds", "--top", "--steps", "--halving", "--budget", "--results", "--on", "-o"),
    "tune": ("--env", "--trials", "--seeds", "--confirm", "--steps", "--episodes", "--journal"),
    "train": ("--agent", "--seed", "--steps", "--frames", "--preset", "--out"),
    "resume": ("--results",),
    "evaluate": ("--episodes", "--epsilon", "--json"),
    "play": ("-o", "--epsilon", "--steps"),
    "show": ("--task", "--gamma", "--of", "--panels", "--policy", "--bumps", "-o"),
    "film": ("--agents", "--steps", "--frames", "--seed", "--task", "-o"),
    "studio": ("--out", "--no-open"),
    "check": ("--from", "--on"),
    "fit": ("--maze", "--models", "--method", "--starts", "--seed", "--stays", "--jumps", "--cell", "--out"),
    "compare": ("--env", "--env", "--agent", "--bonuses", "--steps", "--seeds", "--choose", "--again", "--budget"),
    "demo": ("--out",),
    "data": ("--folder", "-o"),
    "repair": ("--results",),
    "report": ("-o", "--results"),
}  # fmt: skip
PLACES = tuple(
    "riverswim four-rooms table1 sarsa-srr dqn-sf-pf mountain-car map.txt walk.csv bad.py noise . sr-r".split()
)
ODD = (
    "", "[/]", "[bold]", "\x1b[2J", "a\nb", "../..", "/dev/null", "-5", "0", "1", "3", "nan", "inf", "1e9", "x", "ä",
    "=", "9" * 30, "no/such/p.png", "p.png", "t.csv", "all", "90s", "serial", "processes", "deep-sea-999999", "beta=1",
    "M,N", "alpha=", "beta=1e308", "alpha=[[", "beta=1,2", "nosuch:Env-v0", "--", "-x", "--help", "\ud800",
)  # fmt: skip


def _folder(folder: Path) -> Path:
    (folder / "map.txt").write_text("S..\n.#.\n..G\n")
    (folder / "walk.csv").write_text("subject,state\na,0\na,1\na,2\n")
    (folder / "bad.py").write_text("import spie\n@spie.reward('bad')\ndef bad(M_next):\n    return 1 / 0\n")
    (folder / "noise").write_bytes(random.Random(0).randbytes(3000))
    return loaded(folder)


def commands(rng: random.Random, shared: Path) -> Attempt:
    name = rng.choice([*COMMANDS, "list", "nothing"])
    words = [name] + [rng.choice(PLACES) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    for _ in range(rng.randint(0, 3)):
        option = rng.choice(COMMANDS.get(name, ("--help",)))
        value = rng.choice(ODD if rng.random() < 0.7 else PLACES)
        words += [option] if option in ("--json", "--halving", "--bumps", "--no-open") else [option, value]
    if rng.random() < 0.4:
        words.insert(rng.randint(1, len(words)), rng.choice(ODD))
    if name in ("train", "resume", "list") and rng.random() < 0.7:
        name = words[0] = "show"  # those load much

    def attempt() -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _without_work():
            try:
                cli.main()
            except Reached:
                return
            except SystemExit as stop:
                code, cause = stop.code or 0, stop.__context__
            else:
                code, cause = 0, None
        said = err.getvalue()
        if code not in (0, 2) or "Traceback" in said:
            raise Difference(f"exit code {code}: {said[-300:]}")
        if code == 2 and (not said.rstrip("\n").split("\n")[-1].isprintable()):
            raise Difference(f"not printable: {said[-300:]!r}")
        if code == 2 and type(cause) in (ValueError, TypeError) and not is_ours(cause, one_line=False):
            raise cause
        if code == 2:
            raise Refused

    @contextlib.contextmanager
    def _without_work() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(sys, "argv", ["spie", *words]))
            for place in WORK:
                stack.enter_context(mock.patch(place, reached))
            yield

    return Attempt(f"spie {short(words)}", attempt)


FUZZERS = (Fuzzer("commands", commands, _folder, 2.0),)
