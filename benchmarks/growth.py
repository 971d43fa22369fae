"""Cost of a step against the number of states: `python benchmarks/growth.py` prints it and draws docs/growth.png.

A run is a hundred times as long as there are states, so that they are visited again and again and their discovery
hardly counts. Two minutes.
"""

from collections import defaultdict
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
from bench import ONE_THREAD, RIVERSWIM, race, table
from plain import sarsa_srr

import spie
from spie.agents.sarsa.batch import DENSE_STATES

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "growth.png"
LINES = {  # colour, and where the label stands: states, ns
    "plain NumPy, SR-R, open field": ("#777777", 20, 19_000),
    "SR-R, open field": ("#0072b2", 190, 420),
    "SR-R, maze": ("#d55e00", 1250, 210),
    "SR, open field: no matrix needed": ("#009e73", 120, 14),
}


def open_field(size: int) -> spie.MDP:
    return spie.grid("\n".join(["S" + "." * (size - 1)] + ["." * size] * (size - 1)))


def measure() -> dict[str, dict[int, float]]:
    """Nanoseconds per step, by line of the picture and number of states."""
    numpy, fields, mazes, no_matrix = LINES
    jobs = {}

    def add(line: str, agent: spie.Sarsa, mdp: spie.MDP, least_seeds: int = 1) -> None:
        steps = max(5000, 100 * mdp.n_states)
        seeds = max(least_seeds, 400_000 // steps // 8 * 8)
        jobs[line, mdp.n_states] = steps * seeds, partial(agent.run, mdp, steps, seeds, session=ONE_THREAD)

    add(fields, RIVERSWIM, spie.riverswim())
    for size in (4, 10, 20, 32, 45, 63, 100):
        mdp = open_field(size)
        add(fields, spie.Sarsa(), mdp)
        add(no_matrix, spie.Sarsa(reward="sr"), mdp, least_seeds=8)
        if mdp.n_states <= DENSE_STATES:
            jobs[numpy, mdp.n_states] = 1000, partial(sarsa_srr, spie.Sarsa(), mdp, steps=1000, seed=0)
    for size in (7, 15, 29, 45, 65, 87, 139):
        add(mazes, spie.Sarsa(), spie.grid(spie.maze(size, size)))

    quick = {job: run for job, (_, run) in jobs.items() if job[1] <= 1024}
    slow = {job: run for job, (_, run) in jobs.items() if job[1] > 1024}
    ns: dict[str, dict[int, float]] = defaultdict(dict)
    for (line, states), seconds in (race(quick, rounds=25) | race(slow, rounds=5)).items():
        ns[line][states] = 1e9 * seconds[0] / jobs[line, states][0]
    return ns


def draw(ns: dict[str, dict[int, float]]) -> None:
    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    axes.axvline(DENSE_STATES, color="#aaaaaa", ls=":", lw=1)
    axes.annotate("row-sparse\nbeyond", (DENSE_STATES, 14_000), (4, 0), textcoords="offset points", color="#777777")
    axes.annotate("RiverSwim", (6, ns["SR-R, open field"][6]), (0, 8), textcoords="offset points", color="#0072b2")
    for line, (colour, *label) in LINES.items():
        axes.plot(*zip(*ns[line].items(), strict=True), "o-", color=colour, lw=1.5, ms=5)
        axes.text(*label, line, color=colour)
    axes.set(xscale="log", yscale="log", xlim=(5, 15_000), ylim=(10, 100_000))
    axes.set(xlabel="number of states", ylabel="nanoseconds per step, on one core")
    ticks = [6, 16, 100, 400, 1024, 2025, 3969, 10_000]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks([10, 100, 1000, 10_000, 100_000], ["10", "100", "1,000", "10,000", "100,000"])
    axes.grid(axis="y", color="#eeeeee")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=130)


def show(ns: dict[str, dict[int, float]]) -> None:
    rows = []
    for states in ns["SR-R, open field"]:
        row = [f"{states:,}"]
        for line in LINES:  # mazes have nearly as many states
            near = min(ns[line], key=lambda size: abs(size - states))
            row.append(f"{ns[line][near]:,.0f}" if abs(near / states - 1) < 0.1 else "")
        rows.append(tuple(row))
    table("Nanoseconds per step", ("states", *LINES), *rows)


if __name__ == "__main__":
    ns = measure()
    show(ns)
    draw(ns)
    print(f"\ndrawn in {PICTURE}")
