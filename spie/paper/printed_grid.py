"""The paper's sweep over settings, and the same kind of sweep for our controls."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from spie.agents.base import Range
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.search.grid import SettingsGrid


def printed_grid(agent: str, s: Sarsa, measure: str = "reward") -> tuple[SettingsGrid, ...]:
    """The paper's sweep for an agent, and the same kind of sweep for our controls.

    `optimistic` varies Q's start in place of a bonus; `count` starts Q at the most that its bonus adds up to; a random
    walk has nothing to vary; an agent that shares no setting with the paper's sweep has three values of each that it
    says may be tuned. Where the environment pays nothing (measure "coverage"), the scale of a bonus, or of the
    start, changes no choice and is left as it is.
    """
    scaled = measure == "reward"
    used = [name for name in s.tuning_ranges(None) if name in paper.SWEEP]
    axes = {name: paper.SWEEP[name] for name in used if name != "beta" or scaled}
    if not used:
        axes = {name: ends_and_middle(where) for name, where in s.tuning_ranges(None).items()}
    grids: Sequence[tuple[Sarsa, dict[str, Any]]] = [(s, axes)]
    if agent == "random":
        grids = [(s, {})]
    elif agent == "optimistic" and scaled:
        grids = [(s, {"alpha": axes["alpha"], "q0": starts(s), "epsilon": axes["epsilon"]})]
    elif agent == "count" and scaled:
        betas = zip(axes.pop("beta"), starts(s), strict=True)
        grids = [(dataclasses.replace(s, beta=beta, q0=q0), axes) for beta, q0 in betas]
    return tuple(SettingsGrid(base, tuple(axes.items()), measure) for base, axes in grids)


def ends_and_middle(where: Range) -> tuple[float, float, float]:
    """Three values of a range, the middle one with three digits."""
    middle = math.sqrt(where.low * where.high) if where.log else (where.low + where.high) / 2
    return where.low, float(f"{middle:.3g}"), where.high


def starts(s: Sarsa) -> tuple[float, ...]:
    """What a bonus of beta per step adds up to, for each beta of the sweep."""
    return tuple(round(beta / (1 - s.gamma), 9) for beta in paper.SWEEP["beta"])
