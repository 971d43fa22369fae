"""How fast spie is on this machine: `make bench`, a minute or two, and more the first time, when kernels compile.

All in one process, on one thread where nothing else is said, in CPU time. What is compared runs in turn, many times
over, and the best time counts: on a machine shared with others it says most about the code. `spread` is how far the
median lies above the best. No time includes compilation.
"""

import functools
import importlib.util
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numba import njit

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from pairs import processor
from plain import sarsa_srr
from plain_linear import linear_q

import spie
from reference import reference
from spie.behaviour.likelihood import log_likelihoods
from spie.engine.lanes import aligned_zeros
from spie.engine.matrix import product
from spie.paper.sweeps import searches
from spie.rewards import get_reward, reward_names
from spie.runs.run import Run, save
from spie.runs.store import Store

ONE_THREAD = spie.Session(threads=1)
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")


class Task(NamedTuple):
    agent: spie.Sarsa
    mdp: spie.MDP
    steps: int
    seeds: int
    target_ns: int  # a step, on an AMD EPYC of 4.5 GHz
    target_ratio: int  # to NumPy

    def run(self, **changes: Any) -> Callable[[], Any]:
        """The task as something to time, perhaps with another reward or with more threads or seeds."""
        agent = replace(self.agent, reward=changes.pop("reward", "sr-r"))
        return partial(agent.run, self.mdp, self.steps, **{"seeds": self.seeds, "session": ONE_THREAD} | changes)

    def ns(self, seconds: list[float]) -> float:
        return 1e9 * seconds[0] / self.steps / self.seeds


GRID = spie.Sarsa()  # the paper's settings for grid worlds; the others are Table 5's
RIVERSWIM = replace(GRID, eta=0.25, beta=10, epsilon=0.01)
SIXARMS = replace(GRID, alpha=0.01, eta=0.01, gamma_sr=0.99, beta=10_000, epsilon=0.01)
OF_SMALL = Task(GRID, spie.grid("of-small"), 8000, 32, target_ns=40, target_ratio=400)
TASKS = {
    "RiverSwim": Task(RIVERSWIM, spie.riverswim(), 5000, 256, target_ns=12, target_ratio=1000),
    "SixArms": Task(SIXARMS, spie.sixarms(), 5000, 256, target_ns=14, target_ratio=1000),
    "OF-small": OF_SMALL,
    "OF-large": Task(GRID, spie.grid("of-large"), 8000, 16, target_ns=90, target_ratio=150),
}


def race(
    runs: dict[Any, Callable[[], Any]], rounds: int = 15, clock: Callable[[], float] = time.process_time
) -> dict[Any, list[float]]:
    """Time the runs in turn; the seconds of each, sorted. The first round, which may compile, does not count."""
    seconds: dict[Any, list[float]] = {name: [] for name in runs}
    for _ in range(rounds + 1):
        for name, run in runs.items():
            begin = clock()
            run()
            seconds[name].append(clock() - begin)
    return {name: sorted(times[1:]) for name, times in seconds.items()}


def spread(seconds: list[float]) -> str:
    return f"+{100 * (median(seconds) / min(seconds) - 1):.0f} %"


def table(title: str, *rows: tuple[Any, ...]) -> None:
    """Print rows, the first of them the header, in Markdown."""
    text = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*text, strict=True)]
    text.insert(1, ["-" * width for width in widths])
    print(f"\n{title}\n{machine()}\n")
    for row in text:
        print("|", " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)), "|", flush=True)


@njit(nogil=True)
def squares(n, x):
    """A chain of multiplications, each of which waits 3 cycles for the one before."""
    for _ in range(n):
        x = x * x
    return x


CHAIN = 2_000_000  # its length: half a millisecond or more


def clock(seconds: float) -> float:
    """GHz, by the time of a chain."""
    return 3e-9 * CHAIN / seconds


@functools.cache
def machine() -> str:
    """The processor and its clock, as it is when this is first asked."""
    times = race({"chain": partial(squares, CHAIN, np.uint64(3))}, rounds=20)
    return f"({processor()}; {clock(times['chain'][0]):.2f} GHz)"


def engine_against_numpy() -> None:
    few = 500  # steps of the slow ones
    runs: dict[Any, Callable[[], Any]] = {}
    for name, task in TASKS.items():
        runs[name, "engine"] = task.run()
        runs[name, "plain"] = partial(sarsa_srr, task.agent, task.mdp, few, seed=0)
        runs[name, "reference"] = partial(reference, task.agent, task.mdp, few, seed=0)
    times = race(runs, rounds=40)
    header = ("task", "states", "ns per step", "spread", "at most, AMD EPYC")
    header += ("plain NumPy, ns", "times faster", "tests/reference.py, ns", "times faster", "at least")
    rows: list[tuple[Any, ...]] = [header]
    for name, task in TASKS.items():
        engine = task.ns(times[name, "engine"])
        plain, slow = (1e9 * times[name, which][0] / few for which in ("plain", "reference"))
        row = (name, task.mdp.n_states, f"{engine:.1f}", spread(times[name, "engine"]))
        row += (task.target_ns, f"{plain:,.0f}", f"{plain / engine:,.0f}", f"{slow:,.0f}", f"{slow / engine:,.0f}")
        rows.append((*row, task.target_ratio))
    table("SARSA-SRR on one core", *rows)


def engine_against_jax() -> None:
    """The same algorithm under JAX's vmap and scan, as many seeds as the engine has, on one thread."""
    if importlib.util.find_spec("jax") is None:
        print('\nNo row for JAX, which is not installed: pip install "spie-rl[jax]"')
        return
    from plain_jax import sarsa_srr as in_jax

    runs: dict[Any, Callable[[], Any]] = {}
    for name, task in TASKS.items():
        runs[name, "engine"] = task.run()
        runs[name, "jax"] = in_jax(task.agent, task.mdp, task.steps, task.seeds)
    times = race(runs, rounds=5)
    rows: list[tuple[Any, ...]] = [("task", "states", "ns per step", "JAX, ns", "times faster")]
    for name, task in TASKS.items():
        engine, jax = (task.ns(times[name, which]) for which in ("engine", "jax"))
        rows.append((name, task.mdp.n_states, f"{engine:.1f}", f"{jax:.0f}", f"{jax / engine:.1f}"))
    table("SARSA-SRR beside the same in JAX, vmap over seeds and scan over steps", *rows)


BUILT_IN = tuple(name for name in reward_names("tables") if get_reward(name).built_in)


@spie.reward("from a file")
def from_a_file(M_next: float, M_col_next: float) -> float:
    return M_next - M_col_next


def rewards() -> None:
    """Every reward, and SR-R as a user would define it in a file or at a prompt, where its text cannot be had."""
    prompt: dict[str, Any] = {}
    exec("def at_a_prompt(M_next, M_col_next): return M_next - M_col_next", prompt)
    spie.reward("at a prompt")(prompt["at_a_prompt"])
    own = ("from a file", "at a prompt")
    times = race({name: OF_SMALL.run(reward=name) for name in BUILT_IN + own}, rounds=30)
    ns = {name: OF_SMALL.ns(seconds) for name, seconds in times.items()}
    rows = [(name, f"{ns[name]:.1f}", spread(times[name])) for name in BUILT_IN]
    table("Every reward on OF-small", ("reward", "ns per step", "spread"), *rows)
    rows = [(name, f"{ns[name]:.1f}", f"{ns[name] / ns['sr-r']:.2f}", "1.33") for name in own]
    table("SR-R defined by a user", ("defined", "ns per step", "times the built-in", "at most"), *rows)


def beyond_the_paper() -> None:
    """Mechanisms of docs/exploration.md, as multiples of SARSA-SRR's step."""
    agents: dict[str, Any] = {"SARSA-SRR": spie.Sarsa()}
    for count in ("visits", "pr-column", "sr-column"):
        agents[f"optimism by {count}"] = spie.Sarsa(reward="none", optimism=1.0, count=count)
    agents |= {name: spie.agent(name) for name in ("sarsa-sp-novelty", "sarsa-etd", "spie")}
    for name in ("RiverSwim", "OF-small"):
        _, mdp, steps, seeds, *_ = TASKS[name]
        runs = {agent: partial(s.run, mdp, steps, seeds, session=ONE_THREAD) for agent, s in agents.items()}
        ns = {agent: TASKS[name].ns(seconds) for agent, seconds in race(runs, rounds=10).items()}
        rows = [(agent, f"{ns[agent]:.1f}", f"{ns[agent] / ns['SARSA-SRR']:.2f}") for agent in agents]
        table(f"Beyond the paper, on {name}", ("agent", "ns per step", "times SARSA-SRR"), *rows)


# These pay the same whatever they ask for, so that their runs take the same path and differ only in what is kept.


@spie.reward("choice, move, Q")
def nothing() -> float:
    return -1.0


@spie.reward("+ row sums")
def row_sums(M_row: float) -> float:
    return -1.0 + 0.0 * M_row


@spie.reward("+ M")
def matrix(M_next: float) -> float:
    return -1.0 + 0.0 * M_next


@spie.reward("+ M, column sums")
def column_sums(M_next: float, M_col_next: float) -> float:
    return -1.0 + 0.0 * (M_next - M_col_next)


def where_it_goes() -> None:
    parts = ("choice, move, Q", "+ row sums", "+ M", "+ M, column sums")
    tasks = {name: TASKS[name] for name in ("RiverSwim", "OF-small", "OF-large")}
    times = race({(name, part): task.run(reward=part) for name, task in tasks.items() for part in parts}, rounds=25)
    rows = [(name, *(f"{task.ns(times[name, part]):.1f}" for part in parts)) for name, task in tasks.items()]
    table("Where the time goes, ns per step", ("task", *parts), *rows)


@njit(nogil=True)
def products(y, A, x, n, times):
    """A matrix times a vector, again and again."""
    for _ in range(times):
        product(y, 0, A, 0, x, 0, x, 0, x, 0, n)


def linear() -> None:
    """Linear Q-learning on MountainCar, beside NumPy driving Gymnasium and beside the rate of its matrix products."""
    cap, times, targets = 300, 3000, {"none": "40", "sf": "", "sf-pf": "20"}
    kinds: dict[str, Any] = {"float64": np.float64, "float32": np.float32}
    agents = {(r, kind): spie.LinearQ(reward=r, precision=kind) for kind in kinds for r in targets}
    steps: dict[Any, int] = {}

    def engine(key: tuple[str, str]) -> None:
        trace = agents[key].run(spie.mountain_car(), cap, 1, episodes=60, session=ONE_THREAD)
        steps[key] = int(trace.episode_steps.sum())

    def plain(reward: str) -> None:
        steps[reward] = int(linear_q(agents[reward, "float64"], 1, seed=0, cap=cap).sum())

    d = agents["none", "float64"].dimension
    runs: dict[Any, Callable[[], Any]] = {}
    for kind, dtype in kinds.items():
        y, A, x = (aligned_zeros(n, dtype=dtype) for n in (d, d * d, d))
        runs[kind] = partial(products, y, A, x, d, times)
    runs |= {key: partial(engine, key) for key in agents}
    runs |= {reward: partial(plain, reward) for reward in targets}
    seconds = race(runs, rounds=12)
    rates = {kind: 2e-9 * d * d * times / seconds[kind][0] for kind in kinds}
    header = ("reward", "numbers", "us per step", "spread", "NumPy + Gymnasium, us", "times faster", "at least")
    rows: list[tuple[Any, ...]] = [(*header, "GFLOP/s", "of the rate", "at least")]
    for reward, kind in agents:
        fast, slow = (1e6 * seconds[key][0] / steps[key] for key in ((reward, kind), reward))
        flops = list(targets).index(reward) * 4 * d * d  # a matrix is multiplied once and changed once
        rate = 1e-3 * flops / fast
        work = (f"{rate:.1f}", f"{rate / rates[kind]:.2f}", 0.85) if flops else ("", "", "")
        row = (reward, kind, f"{fast:.2f}", spread(seconds[reward, kind]), f"{slow:.1f}", f"{slow / fast:.0f}")
        rows.append((*row, targets[reward], *work))
    said = ", ".join(f"{rate:.1f} in {kind}" for kind, rate in rates.items())
    table(f"Linear Q-learning, {d} features; GFLOP/s of a product with a matrix alone: {said}", *rows)


def sweeps() -> None:
    """A piece of a sweep, stored as it is in `spie sweep`, beside the same lanes in the bare engine."""
    runs: dict[Any, Callable[[], Any]] = {}
    pieces = {}
    for env, agent in itertools.product(("riverswim", "sixarms"), ("sarsa-srr", "sarsa-sr-pr")):
        (search,) = searches(env, [agent], {})
        piece = next(search.pieces(20)[-1].split(540))
        pieces[env, agent] = search.run(piece, 20)
        settings, mdp = piece.settings(), search.task
        runs[env, agent, "engine"] = partial(spie.run_sarsa, settings, mdp, search.steps, 20, session=ONE_THREAD)
        runs[env, agent, "one setting"] = partial(
            settings[0].run, mdp, search.steps, 20 * len(piece), session=ONE_THREAD
        )
        runs[env, agent, "sweep"] = partial(stored, pieces[env, agent])
    times = race(runs, rounds=5)
    header = ("task", "agent", "settings x seeds", "engine, ns per step", "one setting, all seeds", "sweep, stored")
    rows = [(*header, "speed of the engine", "at least")]
    for (env, agent), run in pieces.items():
        lanes = len(run.settings) * 20
        engine, one, sweep = (
            1e9 * times[env, agent, what][0] / lanes / run.steps for what in ("engine", "one setting", "sweep")
        )
        ns = (f"{engine:.1f}", f"{one:.1f}", f"{sweep:.1f}")
        rows.append((env, agent, f"{len(run.settings)} x 20", *ns, f"{engine / sweep:.2f}", "0.8"))
    table("Sweeps: what the harness costs", *rows)


def stored(run: Run) -> None:
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder, "r.db")) as store:
        began = time.perf_counter()
        save(store, replace(run), run.execute(ONE_THREAD), time.perf_counter() - began)


def threads() -> None:
    """One thread and two, beside what the machine allows: the same for two chains that share nothing."""
    seeds, n = 8 * OF_SMALL.seeds, 40_000_000

    def chains(workers: int) -> None:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(partial(squares, n), [np.uint64(3)] * 2))

    whats = ("SR-R on OF-small", "two chains")
    runs = {f"{whats[0]} {k}": OF_SMALL.run(seeds=seeds, session=spie.Session(threads=k)) for k in (1, 2)}
    runs |= {f"{whats[1]} {k}": partial(chains, k) for k in (1, 2)}
    wall, cpu = race(runs, clock=time.perf_counter), race(runs)
    rows = []
    for what in whats:
        one, two = f"{what} 1", f"{what} 2"
        ratios = f"{wall[one][0] / wall[two][0]:.2f}", f"{cpu[two][0] / cpu[one][0]:.2f}"
        rows.append((what, f"{1e3 * wall[one][0]:.0f}", f"{1e3 * wall[two][0]:.0f}", *ratios))
    header = ("what", "1 thread, wall ms", "2 threads, wall ms", "times faster", "times the CPU")
    table(f"Threads: {seeds} seeds, and what this machine has to give just now", header, *rows)


FIRST_RESULT = "import spie; spie.Sarsa().run(spie.grid('of-small'), steps=8000)"


def cpu_of_python(*arguments: str, **environment: str) -> float:
    """CPU seconds of a Python process, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command, environment = [sys.executable, *arguments], os.environ | environment
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start_up() -> None:
    processes = {  # arguments, and at most how many seconds
        "import numpy": (("-c", "import numpy"), ""),
        "import spie": (("-c", "import spie"), "0.3 beyond"),
        "spie --help": (("-m", "spie.cli", "--help"), "0.3 beyond"),
        "first result, warm": (("-c", FIRST_RESULT), "0.9 in all"),
        "first result, cold": (("-c", FIRST_RESULT), "4 in all"),
    }
    if importlib.util.find_spec("spie.cli") is None:
        del processes["spie --help"]
    seconds: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(6):
        for name, (arguments, _) in processes.items():
            with tempfile.TemporaryDirectory() as empty:
                kernels = {"SPIE_CACHE": empty} if name.endswith("cold") else {}
                seconds[name].append(cpu_of_python(*arguments, **kernels))
    rows = [
        (name, f"{min(s):.2f}", f"{min(s) - min(seconds['import numpy']):.2f}", spread(s), processes[name][1])
        for name, s in seconds.items()
    ]
    header = ("what", "CPU, s", "beyond NumPy's", "spread", "at most")
    table("A new process; warm: its kernel compiled before", header, *rows)


LARGE_MAZE = """
import time, spie
from pathlib import Path
mdp = spie.grid(spie.maze(449, 449))
spie.Sarsa().run(mdp, 10)  # compiles
begin = time.process_time()
trace = spie.Sarsa().run(mdp, 10**6, session=spie.Session(threads=1))
cpu = time.process_time() - begin
status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
print(mdp.n_states, (trace.visits > 0).sum(), cpu, int(status["VmHWM"].split()[0]) * 1024 / 1e9)
"""


def large_maze() -> None:
    """Time and memory of the row-sparse engine, in processes of their own; Linux tells how much memory they took."""
    if sys.platform != "linux":
        return
    runs = [subprocess.check_output([sys.executable, "-c", LARGE_MAZE], text=True).split() for _ in range(2)]
    states, seen, cpu, peak = min((list(map(float, run)) for run in runs), key=lambda run: run[2])
    header = ("states", "seen", "CPU, s", "peak of the process, GB", "at most")
    table(
        "A maze, 10^6 steps, row-sparse",
        header,
        (f"{states:,.0f}", f"{seen:,.0f}", f"{cpu:.2f}", f"{peak:.2f}", "1 GB"),
    )


def likelihood() -> None:
    """What a step of a recorded path costs, against a step that the same agent takes itself."""
    mdp, steps, subjects = spie.grid("four-rooms", bumps=False), 10_000, 16
    rows: list[tuple[Any, ...]] = [("policy", "simulated, ns", "likelihood, ns", "spread", "ratio", "at most")]
    for policy in ("epsilon-greedy", "softmax"):
        agent = spie.Sarsa(policy=policy, next_action="carry")  # type: ignore[arg-type]
        walked = agent.run(mdp, steps, subjects, keep=spie.Keep(paths=tuple(range(subjects))))
        replay = spie.Paths.from_trace(walked, mdp).replay
        simulate = partial(agent.run, mdp, steps, subjects, session=ONE_THREAD)
        follow = partial(log_likelihoods, [agent], mdp, replay, session=ONE_THREAD)
        seconds = race({"simulate": simulate, "follow": follow})
        one, other = (1e9 * seconds[which][0] / steps / subjects for which in ("simulate", "follow"))
        rows.append((policy, f"{one:.1f}", f"{other:.1f}", spread(seconds["follow"]), f"{other / one:.2f}", 1.5))
    table("The likelihood of recorded paths, SARSA-SRR on four-rooms", *rows)


if __name__ == "__main__":
    from cleverness import show as cleverness  # these import this file
    from wrappers import show as wrappers

    begin = time.perf_counter()
    engine_against_numpy()
    engine_against_jax()
    rewards()
    where_it_goes()
    beyond_the_paper()
    linear()
    cleverness()
    sweeps()
    wrappers()
    likelihood()
    threads()
    start_up()
    large_maze()
    print(f"\n{time.perf_counter() - begin:.0f} s in all, what had to be compiled included")
