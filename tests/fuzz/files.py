"""Files that were damaged or made up: stores, checkpoints, bonus files, recorded paths, reward files of users."""

import random
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from harness import Attempt, Difference, Fuzzer
from values import short

import spie
from spie.agents.dqn import checkpoint
from spie.rewards import REWARDS
from spie.runs.store import Store, StoreError
from spie.runs.user_code import load_rewards


def damaged(rng: random.Random, data: bytes) -> tuple[str, bytes]:
    """The same bytes with something wrong, and what."""
    kind, n = rng.choice(("bit", "bit", "bit", "bytes", "cut", "zeros", "twice", "more")), len(data)
    at = rng.randrange(n)
    size = rng.choice((1, 4, 16, 300))
    if kind == "bit":
        return f"bit {at}", data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if kind == "bytes":
        return f"{size} bytes at {at}", data[:at] + rng.randbytes(size) + data[at + size :]
    if kind == "cut":
        return f"cut at {at}", data[:at]
    if kind == "zeros":
        return f"{size} zeros at {at}", data[:at] + bytes(size) + data[at + size :]
    if kind == "twice":
        return f"{size} bytes at {at} twice", data[: at + size] + data[at:]
    return f"{size} bytes more", data + rng.randbytes(size)


def _equal(found: Any, expected: Any) -> bool:
    """Whether two arrays, or mappings to arrays and plain values, are the same to the bit."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(_equal(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, np.ndarray):
        same = (found.dtype, found.shape) == (expected.dtype, expected.shape)
        return same and found.tobytes() == expected.tobytes()
    return bool(found == expected)


# Stores


def _stored(folder: Path) -> Any:
    """A store as bytes, and all that it holds."""
    bits = np.random.default_rng(0)
    path = folder / "sound.db"
    with Store(path) as store:
        for run in "abc":
            arrays = {"x": bits.normal(size=(3, 4)), "n": bits.integers(0, 9, 5), "word": np.array("ä word")}
            store.save(run, "scores", {"steps": 5, "run": run}, {"spie": "1"}, 0.5, arrays)
        store.ask_for("table1", 7)
    return path.read_bytes(), _content(path), folder / "damaged.db"


def _content(path: Path) -> dict[str, Any]:
    with Store(path) as store:
        found = {run: (*store.load(run), store.info(run)) for run in "abc" if run in store}
        return {run: {"kind": kind, "arrays": arrays, "info": info} for run, (kind, arrays, info) in found.items()} | {
            "asked": store.asked_for()
        }


def stores(rng: random.Random, shared: Any) -> Attempt:
    """A results file with some bytes wrong: a StoreError, or what it held."""
    data, expected, path = shared
    words, wrong = damaged(rng, data)

    def attempt() -> None:
        for rest in path.parent.glob("damaged.db*"):
            rest.unlink()
        path.write_bytes(wrong)
        found = _content(path)
        for key, value in found.items():  # a run that is gone is run again
            if key == "asked" and not wrong:  # an empty file is a new one
                value = value or expected[key]
            if not _equal(value, expected[key]):
                raise Difference(f"{key} came back as {short(value)}")

    return Attempt(f"store: {words}", attempt)


# What wrappers save


SAVED: tuple[dict[str, Any], ...] = (  # wrappers whose files differ in kind
    {"reward": "sr-r"}, {"reward": "sp-novelty"}, {"reward": "teacher"}, {"reward": "sr-r", "episodic": True},
    {"reward": "sr", "times": "count", "beta": "auto"},
)  # fmt: skip


def _bonus(kind: int) -> Any:
    return spie.IntrinsicReward(spie.riverswim().env(max_steps=50), **SAVED[kind])


def _saved(folder: Path) -> Any:
    found = []
    for kind in range(len(SAVED)):
        env = _bonus(kind)
        env.reset(seed=0)
        for _ in range(40):
            *_, ended, cut, _ = env.step(1)
            if ended or cut:
                env.reset()
        env.save(folder / "sound")
        found.append(((folder / "sound").read_bytes(), env.state_dict()))
    return found, folder / "damaged"


def bonuses(rng: random.Random, shared: Any) -> Attempt:
    """A file of IntrinsicReward.save with some bytes wrong: a ValueError, or the same state."""
    found, path = shared
    kind = rng.randrange(len(SAVED))
    data, expected = found[kind]
    words, wrong = damaged(rng, data)

    def attempt() -> None:
        path.write_bytes(wrong)
        env = _bonus(kind)
        env.load(path)
        if not _equal(env.state_dict(), expected):
            raise Difference("another state was loaded")

    return Attempt(f"bonus file of {SAVED[kind]}: {words}", attempt)


# Checkpoints


def _checkpointed(folder: Path) -> Any:
    bits = np.random.default_rng(1)
    weights = {"w": bits.normal(size=(4, 3)).astype(np.float32), "b": np.zeros(3, np.float32)}
    arrays = {"replay": bits.integers(0, 9, 40), "rng": bits.normal(size=6)}
    made = checkpoint.Checkpoint(weights, arrays, {"step": 7, "segments": [[]]})
    path = checkpoint.save(folder / "checkpoints", 7, made, folder / "frames")
    return {file.name: file.read_bytes() for file in path.iterdir()}, made, path


def checkpoints(rng: random.Random, shared: Any) -> Attempt:
    """A checkpoint with some bytes of one of its files wrong: a CheckpointError, or the same."""
    files, expected, path = shared
    name = rng.choice(sorted(files))
    words, wrong = damaged(rng, files[name])

    def attempt() -> None:
        for file, data in files.items():
            (path / file).write_bytes(wrong if file == name else data)
        found = checkpoint.load(path)
        same = _equal(found.weights, expected.weights) and _equal(found.arrays, expected.arrays)
        if not same or found.values != expected.values:
            raise Difference("another checkpoint was loaded")

    return Attempt(f"checkpoint, {name}: {words}", attempt)


# Recorded paths

CELLS = ("", "nan", "inf", "-1", "1e400", "9" * 30, "x", "=1+1", '"', "\0", 0.5)
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"stays": "drop"}, {"jumps": "cut"}, {"missing": "drop"}, {"cell": 2}, {"cell": 0}, {"cell": "x"},
)  # fmt: skip
HEADS = ("subject", "trial", "step", "state", "x", "y", "t", "action", "reward", "maze", "session", "odd", "")


def paths(rng: random.Random, shared: Path) -> Attempt:
    """CSV files of recorded paths: right ones with some cells, heads or bytes wrong."""
    columns = ["subject", "trial", *rng.choice((["state"], ["x", "y"], ["state", "action"], ["t", "x", "y"]))]
    if rng.random() < 0.2:
        columns[rng.randrange(len(columns))] = rng.choice(HEADS)
    walk, rows = rng.randrange(9), []
    for i in range(rng.randint(0, 12)):
        row, column = divmod(walk, 3)
        usual = {"subject": "a", "trial": i // 5, "state": rng.choice((walk, f"{row},{column}")), "x": column + 0.5}
        usual |= {"y": row + 0.5, "t": i, "action": "" if rng.random() < 0.8 else rng.randrange(4)}
        rows.append([usual.get(name, "") for name in columns])
        walk = rng.choice([s for s in (walk - 3, walk + 3, walk - (column > 0), walk + (column < 2)) if 0 <= s < 9])
    for _ in range(rng.choice((0, 0, 1, 3))):
        if rows:
            one = rng.choice(rows)
            one[rng.randrange(len(one))] = rng.choice(
                ("", "nan", "inf", "-1", "1e400", "9" * 30, "x", "=1+1", '"', "\0", 0.5)
            )
    quote = lambda cell: f'"{cell}"' if "," in str(cell) else str(cell)  # noqa: E731
    mark = rng.choice((",", ",", ";", "\t"))
    text = "\n".join(mark.join(map(quote, row)) for row in [columns, *rows])
    data = text.encode()
    if data and rng.random() < 0.2:
        data = damaged(rng, data)[1]
    maze = rng.choice((None, "...\n...\n...\n", "S..\n.#.\n..G\n"))
    options = rng.choice(OPTIONS)

    def attempt() -> None:
        file = shared / "walked.csv"
        file.write_bytes(data)
        found = spie.Paths.from_csv(file, maze, **options)
        found.to_csv(shared / "again.csv")
        if maze is not None:
            again = spie.Paths.from_csv(shared / "again.csv", maze, stays="keep")
            for one, other in zip(found.trials, again.trials, strict=True):  # a trial that was cut has another name
                same = one.subject == other.subject and _equal(one.states, other.states)
                if not same or not _equal(one.actions, other.actions):
                    raise Difference("the paths do not come back")

    return Attempt(f"paths {short(data)} maze={maze!r} {options}", attempt)


# Files of users

PIECES = (
    "import spie\n", "x = 1 / 0\n", "def f(:\n", "raise SystemExit\n", "import sys; sys.exit('bye')\n", "\0", "ä = 1\n",
    "@spie.reward('mine')\ndef mine(M_next):\n    return -M_next\n", "raise BaseException\n", "    y = 2\n", "\ud800",
    "@spie.reward('sr')\ndef sr(M_next):\n    return 1.0\n", "@spie.reward(5)\ndef five():\n    return 1.0\n",
    "@spie.reward('odd')\ndef odd(nothing):\n    return 1.0\n", "from __future__ import braces\n", "import nowhere\n",
    "@spie.reward('many')\ndef many(*M_next):\n    return 1.0\n", "(" * 300 + "\n", "raise KeyError('a\\nb')\n",
    "assert False, 'no'\n", "def g(): return g()\ng()\n",
)  # fmt: skip


def user_files(rng: random.Random, shared: Path) -> Attempt:
    """Reward files of users that do whatever comes to mind: one line with the place."""
    text = "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 4)))
    data = text.encode("utf-8", "surrogatepass")

    def attempt() -> None:
        file = shared / f"mine{rng.randrange(3)}.py"
        file.write_bytes(data)
        with REWARDS.restored():
            load_rewards(file)

    return Attempt(f"reward file {short(data)}", attempt)


gym.logger.min_level = gym.logger.ERROR
FUZZERS = (
    Fuzzer("stores", stores, _stored, 1.5, (StoreError,)),
    Fuzzer("bonus-files", bonuses, _saved),
    Fuzzer("checkpoints", checkpoints, _checkpointed, 1.0, (checkpoint.CheckpointError,)),
    Fuzzer("paths", paths, lambda folder: folder),
    Fuzzer("user-files", user_files, lambda folder: folder, 0.5),
)
