"""Kill -9 at ten random moments, resumed each time, must be the unbroken run: `python benchmarks/kills.py ENV`.

Prints where each kill struck, and whether weights, replay, statistics, random generators, emulator and monitor.csv are
the same bit for bit.
"""

import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spie.agents.dqn import checkpoint
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.session import resume, train
from spie.tasks.registry import task

KILLS, STEPS = 10, 1500
SETTINGS = {"preset": "small", "learning_starts": 200, "replay": 800, "batch": 16}


def go(env: str, folder: Path) -> None:
    """Begin the run, or go on with it."""
    if (folder / "run.json").exists():
        resume(folder, checkpoint_steps=50)
    else:
        game = env != "four-rooms"
        options = {"max_frames": 500} if game else {}  # returns are known, and learned from, once an episode is over
        on = task(env, "images", **options)
        train(DQN(**SETTINGS, stack=4 if game else 1), on, STEPS, 0, folder, checkpoint_steps=50)


def state(folder: Path) -> tuple[object, ...]:
    last = checkpoint.load(checkpoint.checkpoints(folder / "checkpoints")[0])
    values = {name: value for name, value in last.values.items() if name not in ("seconds", "segments")}
    arrays = {name: array.tobytes() for name, array in (last.weights | last.arrays).items()}
    return arrays, values, (folder / "monitor.csv").read_bytes()


def main(env: str) -> None:
    rng = random.Random()
    with tempfile.TemporaryDirectory() as scratch:
        whole, broken = Path(scratch) / "whole", Path(scratch) / "broken"
        begin = time.perf_counter()
        go(env, whole)
        seconds = time.perf_counter() - begin
        for kill in range(KILLS):
            process = subprocess.Popen([sys.executable, __file__, env, str(broken)], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0, 2 * seconds / KILLS))
            process.send_signal(signal.SIGKILL)
            process.wait()
            found = checkpoint.checkpoints(broken / "checkpoints")
            print(f"kill {kill + 1}: last checkpoint {found[0].name if found else 'none yet'}", flush=True)
        go(env, broken)
        updates = checkpoint.load(checkpoint.checkpoints(whole / "checkpoints")[0]).values["updates"]
        outcome = "the same, bit for bit" if state(whole) == state(broken) and updates else "NOT the same"
        print(f"{env}: {outcome}, after {updates} updates")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        import spie.agents.dqn.build  # noqa: F401  # loading torch takes longer than a part of the run

        print("begin", flush=True)
        go(sys.argv[1], Path(sys.argv[2]))
    else:
        main(sys.argv[1])
