"""Runs of the engine with checked array bounds; for test_bounds.py, as a process of its own.

Numba reads NUMBA_BOUNDSCHECK when it is imported, and its cache does not know the flag: so a new process, and an empty
cache. Prints what the runs left, which must be what they leave without the checks; then an index that is out of range
on purpose must be caught.
"""

import hashlib
import json
import sys

import numpy as np

import spie
from spie.engine.specialise import specialise
from spie.rewards import Reward


def planted_kernel(M_next, visits):
    """What the reward says of an entry that a table of 3 does not have."""
    return intrinsic_reward(M_next[visits], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # noqa: F821


def as_it_is(M_next):
    return M_next


def left() -> dict[str, str]:
    """Hashes of what a few runs leave: dense and sparse matrices, choice terms, ends, unavailable actions, features."""
    mdp, walls = spie.riverswim(), spie.grid("S.#.\n...G\n", "goal", bumps=False)
    walker = spie.Sarsa(policy="softmax", heading=0.5, habit=0.5, reward="none")
    runs = {
        "dense": lambda: spie.Sarsa(reward="sr-pr").run(mdp, 300, 3, keep=spie.Keep(("Q", "M", "N"), (1, 300), (0,))),
        "sparse": lambda: spie.Sarsa(sparse=True).run(mdp, 300, 3),
        "terms": lambda: walker.run(walls, 40, 3, episodes=5),
        "features": lambda: spie.LinearQ(dimension=24).run(spie.mountain_car(), 60, 2, episodes=2),
    }
    found = {}
    for name, run in runs.items():
        trace = run()
        whole = hashlib.sha256()
        for field in ("total_reward", "visits", "episode_steps", "episode_rewards", "Q", "M", "N", "snapshots"):
            value = vars(trace).get(field)
            whole.update(b"" if value is None else np.ascontiguousarray(value).tobytes())
        found[name] = whole.hexdigest()
    return found


def main() -> None:
    print(json.dumps(left()))
    if "plant" in sys.argv:
        planted = specialise(planted_kernel, [], {}, {}, Reward("mine", as_it_is, ("M_next",)))
        print(planted(np.zeros(3), 2))
        try:
            planted(np.zeros(3), 3)
        except IndexError as error:
            print(f"caught: {error}")


if __name__ == "__main__":
    main()
