"""The paper's sweep over settings, and the same kind of sweep for our controls."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.search.grid import SettingsGrid


def printed_grid(agent: str, s: Sarsa, measure: str = "reward") -> tuple[SettingsGrid, ...]:
    """The paper's sweep for an agent, and the same kind of sweep for our controls.

    `optimistic` varies Q's start in place of a bonus; `count` starts Q at the most that its bonus adds up to; a random
    walk has nothing to vary. Where the environment pays nothing (measure "coverage"), the scale of a bonus, or of the
    start, changes no choice and is left as it is.
    """
    scaled = measure == "reward"
    used = [name for name in s.tuning_ranges(None) if name in paper.SWEEP]
    axes = {name: paper.SWEEP[name] for name in used if name != "beta" or scaled}
    grids: Sequence[tuple[Sarsa, dict[str, Any]]] = [(s, axes)]
    if agent == "random":
        grids = [(s, {})]
    elif agent == "optimistic" and scaled:
        grids = [(s, {"alpha": axes["alpha"], "q0": starts(s), "epsilon": axes["epsilon"]})]
    elif agent == "count" and scaled:
        betas = zip(axes.pop("beta"), starts(s), strict=True)
        grids = [(dataclasses.replace(s, beta=beta, q0=q0), axes) for beta, q0 in betas]
    return tuple(SettingsGrid(base, tuple(axes.items()), measure) for base, axes in grids)


def starts(s: Sarsa) -> tuple[float, ...]:
    """What a bonus of beta a step adds up to, for each beta of the sweep."""
    return tuple(round(beta / (1 - s.gamma), 9) for beta in paper.SWEEP["beta"])
