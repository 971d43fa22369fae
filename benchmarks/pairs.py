"""Whether one checkout is as fast as another: `python benchmarks/pairs.py BEFORE [AFTER]`, ten minutes or so.

    pairs.py ../before                 this checkout against another
    pairs.py ../before --only engine   one group of rows; may be given several times
    pairs.py ../before --pairs 31      more pairs: narrower intervals

A pair is a process of each checkout, one right after the other, the first of them in turn. What counts is CPU time, so
that others on the machine disturb little, and of a pair only the ratio. A row gives its median with a 95 % interval
from the order of the ratios alone. Each checkout has compiled kernels of its own; `cold` rows have none.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[1]
LIMIT = 1.03  # an interval that lies wholly above it says: slower

# Each prints seconds by row. What is timed runs once before, so that compiled code is there; the best of some counts.
TIMED = '''
import json, time
from dataclasses import replace
import spie

ONE_THREAD = {"session": spie.Session(threads=1)} if hasattr(spie, "Session") else {"threads": 1}

def best(run, least=0.5):
    """The best of at least two runs, and of as many as half a second holds."""
    run()
    seconds = []
    while len(seconds) < 2 or sum(seconds) < least:
        begin = time.process_time()
        run()
        seconds.append(time.process_time() - begin)
    return min(seconds)
'''
ENGINE = """
grid = spie.Sarsa()
chain = replace(grid, eta=0.25, beta=10, epsilon=0.01)
arms = replace(grid, alpha=0.01, eta=0.01, gamma_sr=0.99, beta=10_000, epsilon=0.01)
rows = {
    "RiverSwim": (chain, spie.riverswim(), 5000, 128),
    "SixArms": (arms, spie.sixarms(), 5000, 128),
    "OF-small": (grid, spie.grid("of-small"), 8000, 32),
    "OF-large": (grid, spie.grid("of-large"), 8000, 16),
}
print(json.dumps({name: best(lambda: agent.run(mdp, steps, seeds, **ONE_THREAD))
                  for name, (agent, mdp, steps, seeds) in rows.items()}))
"""
LINEAR = """
print(json.dumps({f"linear {reward}": best(
    lambda: spie.LinearQ(reward=reward).run(spie.mountain_car(), 300, 1, episodes=20, **ONE_THREAD))
    for reward in ("none", "sf", "sf-pf")}))
"""
DEEP = """
import torch
torch.set_num_threads(1)
small = {"preset": "small", "learning_starts": 100, "batch": 32, "epsilon_fraction": 0.3}
if hasattr(spie, "agent"):
    run = lambda: spie.agent("dqn-sf-pf", **small).run(spie.task("four-rooms", kind="images"), 600, 2)
else:
    run = lambda: spie.DQN.named("dqn-sf-pf", **small).run("four-rooms", 600, 2)
print(json.dumps({"dqn-sf-pf": best(run)}))
"""
NATURE = """
import torch
from spie.agents.dqn.build import build
from spie.tasks.atari import make_atari
torch.set_num_threads(1)
learner = build(spie.DQN(bonus="none", preset="nature", reconstruction=False, optimiser="adam", rate=1e-4, replay=500,
                         learning_starts=10**6, device="cpu"), make_atari("MontezumaRevenge"), [0], 10**9)
while learner.step < 60:
    learner.advance()
print(json.dumps({"update, Nature network": best(learner.update)}))
"""
RESULT = "import spie; spie.Sarsa().run(spie.grid('of-small'), steps=8000)"
# By group: the programs, by row; the seconds of a row are those of its process, unless the program prints them.
GROUPS = {
    "engine": {"": TIMED + ENGINE},
    "linear": {"": TIMED + LINEAR},
    "start": {"import spie": "import spie", "first result, warm": RESULT, "first result, cold": RESULT},
    "deep": {"": TIMED + DEEP},
    "nature": {"": TIMED + NATURE},
}
USUAL = ("engine", "linear", "start")


def measured(checkout: Path, row: str, program: str, cache: Path) -> dict[str, float]:
    """The seconds by row of one process of a checkout."""
    program += f"\nimport spie\nassert spie.__file__.startswith({str(checkout)!r}), f'what ran was {{spie.__file__}}'"
    with tempfile.TemporaryDirectory() as scratch:
        kernels = scratch if row.endswith("cold") else str(cache)
        environment = os.environ | {"PYTHONPATH": str(checkout), "SPIE_CACHE": kernels, "OMP_NUM_THREADS": "1"}
        output = Path(scratch) / "output"
        with output.open("w") as file:
            pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-W", "ignore", "-c", program],
                environment,
                file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1)],
            )
            _, status, used = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"{checkout}: the program of {row or 'a group'} fails there; what it says stands above")
        return {row: used.ru_utime + used.ru_stime} if row else json.loads(output.read_text())


def race(checkouts: Sequence[Path], row: str, program: str, pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds before and after, by row and pair; the first process of each, which may compile, does not count."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        caches = Path(first), Path(second)
        for pair in range(-1, pairs):
            order = (0, 1) if pair % 2 else (1, 0)
            seconds = {i: measured(checkouts[i], row, program, caches[i]) for i in order}
            for name in seconds[0] if pair >= 0 else ():
                found[name].append((seconds[0][name], seconds[1][name]))
            print(f"\r{row or 'timed'}: pair {pair + 1} of {pairs}   ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Between these two the median lies with 95 %, whatever the distribution: a sign test turned round."""
    n, chance, rank = len(values), 0.0, 0
    while (chance := chance + math.comb(n, rank) / 2**n) <= 0.025:
        rank += 1
    ordered = sorted(values)
    return (ordered[rank - 1], ordered[n - rank]) if rank else (-math.inf, math.inf)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "an unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else "an unknown processor"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("after", type=Path, nargs="?", default=HERE, help="another; without, this one")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", action="append", choices=GROUPS, help=f"rows (default: {', '.join(USUAL)})")
    words = parser.parse_args()
    checkouts = words.before.resolve(), words.after.resolve()
    print(f"{words.pairs} pairs of processes, CPU time; {processor()}\n")
    print("| row | before, ms | after, ms | after / before | 95 % interval | |")
    print("| --- | --- | --- | --- | --- | --- |")
    slower = False
    for group in words.only or USUAL:
        for row, program in GROUPS[group].items():
            for name, pairs in race(checkouts, row, program, words.pairs).items():
                before, after = (1e3 * median(column) for column in zip(*pairs, strict=True))
                ratios = [b / a for a, b in pairs]
                low, high = interval(ratios)
                verdict = "slower" if low > LIMIT else "faster" if high < 1 else ""
                slower |= verdict == "slower"
                ends = f"{median(ratios):.3f} | {low:.3f} to {high:.3f} | {verdict}"
                print(f"| {name} | {before:.1f} | {after:.1f} | {ends} |", flush=True)
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
