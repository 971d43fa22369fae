"""How many steps determine the parameters of SR-R, and tell the models apart? The tables of docs/behaviour.md.

    python benchmarks/recovery.py                        what the choices say, by Fisher information: half a minute
    python benchmarks/recovery.py recover T 1000 [24]    simulated subjects (24), fitted again
    python benchmarks/recovery.py confuse open 1000 [20] subjects of each of six models (20), all models fitted to each

Parameters are drawn log-uniformly over the bounds of the fit; beta is fixed, since nothing is paid.
"""

import dataclasses
import sys

import numpy as np

import spie
from spie.behaviour.recovery import Recovery, information, simulated

MAZES = {"T": "S......\n###.###\n###.###\n###.###", "open": "S....\n" + "\n".join(["....."] * 4), "rooms": "four-rooms"}
RATE = (0.02, 0.8)
BOUNDS = {"alpha": RATE, "eta": RATE, "inverse_temperature": (1.0, 30.0)}
WEIGHTS = {"turn_back": (-3.0, -0.5), "habit": (1.0, 5.0), "habit_rate": RATE, "gamma": (0.5, 0.95)}
SIX = ["turn-back", "habit", "count", "constant", "sr-r", "sr-agent"]


def one_walk(maze: str, steps: int) -> spie.Paths:
    """A walk of that length, which says where and how long simulated subjects walk; its last place is the goal."""
    mdp = spie.grid(MAZES[maze], bumps=False)
    rng, walk = np.random.default_rng(0), [0]
    for _ in range(steps):
        walk.append(int(mdp.next[walk[-1], rng.choice(np.flatnonzero(mdp.available[walk[-1]])), 0]))
    return dataclasses.replace(spie.Paths.from_states({"a": [walk]}, mdp), goal=mdp.n_states - 1)


def expect(maze: str, steps: int, temperatures: tuple[float, float], n: int = 24) -> None:
    """One line: the correlations to expect, from walks at drawn parameters, nothing fitted."""
    paths = one_walk(maze, steps)
    model = spie.model("sr-r").bounded(BOUNDS | {"inverse_temperature": temperatures}).identifiable(paths)
    x = np.random.default_rng(3).uniform(0, 1, (n, 3))
    values = np.stack([parameter.value(x[:, j]) for j, parameter in enumerate(model.parameters)], axis=1)
    made = simulated(model, values, paths, np.zeros(n, int), 1003)
    log_p = model.log_p(values, made, np.arange(n))
    said = Recovery(model, x, x, log_p, log_p, steps, information(model, x, made))
    chance = np.exp(made.chance("1") / steps)
    places = paths.mazes[0].n_states
    print(f"{maze:5} {places:4} places {steps:6} steps, inverse temperature {temperatures}: expected "
          f"{np.round(said.expected, 2)}; median chance of a choice {np.exp(np.median(log_p) / steps):.2f}, "
          f"at random {chance:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    n = int(sys.argv[4]) if sys.argv[4:] else None
    if not sys.argv[1:]:
        for maze, lengths in {"T": (1000,), "open": (1000, 4000), "rooms": (1000, 4000, 16_000)}.items():
            for steps in lengths:
                for temperatures in ((0.1, 3.0), (1.0, 30.0), (10.0, 300.0)):
                    expect(maze, steps, temperatures)
    elif sys.argv[1] == "recover":
        fit = spie.fit(one_walk(sys.argv[2], int(sys.argv[3])), "sr-r", starts=20, bounds=BOUNDS, seed=11)
        found = fit.recover(n or 24)
        print(found.rows())
        error = (1 - found.correlation**2) / np.sqrt(len(found.truth) - 3)  # of a correlation, to first order
        print(f"standard errors of the correlations: {np.round(error, 3)}")
    else:
        fit = spie.fit(one_walk(sys.argv[2], int(sys.argv[3])), SIX, starts=1, bounds=BOUNDS | WEIGHTS, seed=5)
        print(fit.confusion(n or 20, starts=8, drawn=True).rows())
