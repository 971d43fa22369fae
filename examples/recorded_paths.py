"""Which model do recorded paths follow? Here they are made up; yours come from spie.Paths.from_csv("paths.csv")."""

import numpy as np

import spie

MAZE = "S...\n.#..\n...G"
rng = np.random.default_rng(0)
maze = spie.grid(MAZE, bumps=False)


def walk(steps=60):
    """A walker that seldom turns back."""
    states = [0]
    for _ in range(steps):
        options = maze.next[states[-1], maze.available[states[-1]], 0]
        new = [s for s in options if s not in states[-2:-1]]
        states.append(int(rng.choice(new if new and rng.random() < 0.8 else options)))
    return states


paths = spie.Paths.from_states({name: [walk(), walk()] for name in ("Ada", "Bo", "Cy")}, maze)
print(paths.report())
fit = spie.fit(paths, ["random", "turn-back"], starts=3)
print(fit.compare())
print("weight of turning back:", fit["turn-back"].values()[:, 0].round(2))
