"""`make kills`: commands killed at random, then continued, must leave what an unbroken one leaves, bit for bit.

    python benchmarks/kills.py --kills 100                  every kind of command in turn
    python benchmarks/kills.py train --kills 10 --seed 3    one kind

A kill is kill -9 or SIGTERM at a random moment, SIGKILL of a worker, or a disk that is full (a small tmpfs, where root
may mount one). Prints a line for each broken command: how often it was killed, by what, and whether what it left is the
same. What is compared: every array of every stored run; of training the last checkpoint (weights, replay, statistics,
random generators, emulator) and monitor.csv; of tuning all trials and what was printed; of fits every file.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parents[1]
MOST = 12  # kills of one command, then it may end
PROGRAM = """
import functools, sys
sys.path.insert(0, {here!r})
if sys.argv[1] in ("train", "resume"):
    from spie.agents.dqn import session
    for name in ("train", "resume"):
        setattr(session, name, functools.partial(getattr(session, name), checkpoint_steps=50))
from spie import cli
cli.main()
"""
WALKS = "subject,state\n" + "".join(f"{subject},{s}\n" for subject in "ab" for s in "0123454321012345")
DEEP = "--preset small learning_starts=200 replay=800 batch=16 --steps 900"


@dataclass(frozen=True)
class Kind:
    """A command that can be broken: its words, those that go on with it, and what it leaves."""

    words: str
    left: Callable[[Path], Any]
    again: str = ""  # words that go on; the same as before without
    weight: int = 1


def stored(folder: Path) -> Any:
    """Every array of every stored run."""
    from spie.runs.store import Store

    with Store(folder / "results.db") as store:
        ids = sorted(row[0] for row in store._connection.execute("SELECT id FROM runs"))
        return {run: {name: array.tobytes() for name, array in store.load(run)[1].items()} for run in ids}


def trained(folder: Path) -> Any:
    """The last checkpoint and monitor.csv."""
    from spie.agents.dqn import checkpoint

    last = checkpoint.load(checkpoint.checkpoints(folder / "run" / "checkpoints")[0])
    values = {name: value for name, value in last.values.items() if name not in ("seconds", "segments")}
    arrays = {name: array.tobytes() for name, array in (last.weights | last.arrays).items()}
    return arrays, json.dumps(values, sort_keys=True), (folder / "run" / "monitor.csv").read_bytes()


def tuned(folder: Path) -> Any:
    """What every finished trial tried and scored, and what was said at the end."""
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = JournalStorage(JournalFileBackend(str(folder / "j")))
    (study,) = (optuna.load_study(study_name=None, storage=storage).get_trials(deepcopy=False),)
    return [(trial.params, trial.value) for trial in study if trial.state.name in ("COMPLETE", "PRUNED")]


def fitted(folder: Path) -> Any:
    """Every table of a fit."""
    return {file.name: file.read_bytes() for file in sorted((folder / "fit").glob("*.csv"))}


KINDS = {
    "run": Kind("run figure3 --seeds 40 --on serial", stored),
    "sweep": Kind("sweep riverswim beta=1,2,3 alpha=.1,.2 --seeds 300 --confirm 50 --on serial", stored, weight=3),
    "processes": Kind("run table1 --seeds 60 --on processes", stored, weight=2),
    "ray": Kind("run table1 --seeds 30 --on ray", stored),
    "train": Kind(f"train four-rooms {DEEP} --out run", trained, "resume run", weight=2),
    "disk": Kind(f"train four-rooms {DEEP} replay_on_disk=true --out run", trained, "resume run"),
    "atari": Kind(f"train Freeway {DEEP} stack=4 max_frames=500 --out run", trained, "resume run"),
    "tune": Kind("tune sarsa-srr --env riverswim --trials 12 --seeds 3 --confirm 5 --journal j", tuned),
    "fit": Kind("fit walk.csv --models random,turn-back,habit --starts 3 --out fit", fitted),
    "compare": Kind(
        "compare --env riverswim --agent q-learning --bonuses constant,sr-r --steps 1500 --seeds 4 --choose 2 "
        "--on processes", stored,
    ),
}  # fmt: skip
WORKERS = ("spawn_main", "ray::")  # what processes are called that execute runs


def begin(folder: Path, words: str) -> subprocess.Popen[str]:
    """A command in a folder and a session of its own; workers and all can be found by it."""
    (folder / "walk.csv").write_text(WALKS)
    log = open(folder / "log", "a")  # noqa: SIM115 (the process keeps it)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(here=str(HERE)), *words.split()],
        cwd=folder, stdout=log, stderr=log, text=True, start_new_session=True,
    )  # fmt: skip


def going_on(kind: Kind, folder: Path) -> str:
    """The words that begin the command, or go on with it."""
    return kind.again if kind.again and (folder / "run" / "run.json").exists() else kind.words


def members(process: subprocess.Popen[str]) -> list[int]:
    """The other processes of a command's session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry.name)) == process.pid and int(entry.name) != process.pid:
                found.append(int(entry.name))
    return found


def workers(process: subprocess.Popen[str]) -> list[int]:
    """Those of them that execute runs."""
    found = []
    for pid in members(process):
        with contextlib.suppress(OSError):
            if any(name in Path(f"/proc/{pid}/cmdline").read_text() for name in WORKERS):
                found.append(pid)
    return found


def strike(process: subprocess.Popen[str], how: str, rng: random.Random) -> str:
    """Kill a command, or one of its workers; then whatever is left of its session. Returns what was done."""
    if how == "worker":
        until = time.monotonic() + 20  # they need some seconds to begin
        while not (found := workers(process)) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(found), signal.SIGKILL)
        else:
            how = "kill -9"
    if how == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    elif how == "kill -9":
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    end(process)
    return how


def end(process: subprocess.Popen[str]) -> None:
    for pid in [process.pid, *members(process)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[bool]:
    """A tmpfs of that size as the folder, where this user may mount one."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], capture_output=True
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, process: subprocess.Popen[str]) -> None:
    """Let a command meet a full disk for a while, then give the space back."""
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    end(process)
    (folder / "filler").unlink()


def unbroken(name: str, folder: Path) -> tuple[Any, float]:
    """What a kind of command leaves, and in how many seconds."""
    folder.mkdir()
    began = time.monotonic()
    process = begin(folder, KINDS[name].words)
    code = process.wait(1200)
    end(process)
    if code:
        sys.exit(f"{name} fails by itself: {(folder / 'log').read_text()[-2000:]}")
    return KINDS[name].left(folder), time.monotonic() - began


def broken(name: str, folder: Path, seconds: float, rng: random.Random, most: int) -> tuple[Any, list[str]]:
    """The same, killed again and again; what it left, and by what it was killed."""
    kind, kills = KINDS[name], []
    folder.mkdir()
    with small_disk(folder, 512) as may_fill:
        while True:
            process = begin(folder, going_on(kind, folder))
            ways = (
                ["kill -9", "kill -9", "SIGTERM"]
                + ["worker", "worker"] * (name in ("processes", "ray", "compare"))
                + ["full disk"] * may_fill
            )
            how = rng.choice(ways)
            if len(kills) < most:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(rng.uniform(0.2, 0.8) * seconds)
            else:
                process.wait(1200)
            if process.poll() == 0:
                end(process)
                return kind.left(folder), kills
            if process.poll() is not None:
                return f"exit {process.returncode}: {(folder / 'log').read_text()[-1000:]}", kills
            if how == "full disk":
                fill(folder, process)
            else:
                how = strike(process, how, rng)
            kills.append(how)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=f"of commands; all without: {', '.join(KINDS)}")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further command after so long")
    asked = parser.parse_args()
    for kind in asked.kinds:
        if kind not in KINDS:
            parser.error(f"no kind {kind}; kinds are {', '.join(KINDS)}")
    chosen = [name for name in asked.kinds or KINDS for _ in range(KINDS[name].weight)]
    total, runs, wrong, began = 0, 0, 0, time.monotonic()
    ways: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory(prefix="spie-kills-") as scratch:
        expected: dict[str, tuple[Any, float]] = {}
        while total < asked.kills and time.monotonic() < began + asked.seconds:
            name = chosen[runs % len(chosen)]
            if name not in expected:
                expected[name] = unbroken(name, Path(scratch) / f"{name}-whole")
            left, kills = broken(
                name, Path(scratch) / f"{name}-{runs}", expected[name][1],
                random.Random(f"{name}/{asked.seed}/{runs}"), min(MOST, asked.kills - total),
            )  # fmt: skip
            same = left == expected[name][0]
            words = "the same, bit for bit" if same else f"NOT the same{f': {left}' if isinstance(left, str) else ''}"
            print(f"{name}: {len(kills)} kills ({', '.join(kills)}): {words}", flush=True)
            if not kills:  # the unbroken one had kernels to compile: strike earlier
                expected[name] = (expected[name][0], 0.6 * expected[name][1])
            if not same:
                print(f"  again: python benchmarks/kills.py {name} --kills {max(1, len(kills))} --seed {asked.seed}")
            shutil.rmtree(Path(scratch) / f"{name}-{runs}", ignore_errors=True)
            total, runs, wrong = total + len(kills), runs + 1, wrong + (not same)
            ways.update((name, way) for way in kills)
    for name in dict.fromkeys(chosen):
        counts = [f"{n} by {way}" for (kind, way), n in sorted(ways.items()) if kind == name]
        print(f"{name:<10} {', '.join(counts) or 'none'}")
    print(f"{total} kills of {runs} commands, {runs - wrong} of them the same, bit for bit; seed {asked.seed}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(main())
