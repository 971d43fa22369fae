"""Claims about the environments and the closed forms: they need no runs."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from spie.paper import published as paper
from spie.paper.chains import CHAINS
from spie.paper.claims import Claim, Evidence, Measure, Runs
from spie.paper.grid_worlds import COVERAGE_MAPS
from spie.paper.measures import ROUNDING, Array, exact, rooms
from spie.paper.registry import register_claims
from spie.paper.rules import MUCH_LESS
from spie.representations import fr, pr, sr, stationary
from spie.tasks import grid
from spie.tasks.grids import doors

GAMMA = paper.GRID_SETTINGS["gamma_sr"]
ENVIRONMENTS = (*COVERAGE_MAPS, "cluster-simple-large", *CHAINS)


@functools.cache
def chain(name: str, bumps: bool = True) -> tuple[Array, Array]:
    """P of the uniform random policy, and its M; bumps: of a grid, whether a step into a wall is possible."""
    P = (CHAINS[name]() if name in CHAINS else grid(name, bumps=bumps)).transition()
    return P, sr(P, GAMMA)


def closed_form(value: Callable[[Array, Array], float], **ends: Any) -> Measure:
    """A number of P and M, in every environment."""
    return lambda runs: [exact(name, value(*chain(name)), **ends) for name in ENVIRONMENTS]


def columns_differ(runs: Runs) -> list[Evidence]:
    """Largest minus least column sum of M: on the chains, and on grids under both readings of walls."""
    parts = []
    for name in ENVIRONMENTS:
        for bumps in (True,) if name in CHAINS else (True, False):
            reading = "" if name in CHAINS else " with bumps" if bumps else " without"
            value = np.ptp(chain(name, bumps)[1].sum(axis=0))
            parts.append(exact(f"{name}{reading}", value, floor=ROUNDING))
    return parts


def sr_r(P: Array, M: Array) -> Array:
    """r_SR-R of every possible step."""
    return np.asarray((M - M.sum(axis=0))[P > 0])


def reciprocity_off(P: Array, M: Array) -> float:
    z = stationary(P)
    return float(np.abs(pr(P, GAMMA) * z - z[:, None] * M).max())


def one_door(runs: Runs) -> list[Evidence]:
    mdp = grid("cluster-simple")
    return [exact("doors", doors(mdp).sum(), ceiling=1.5), exact("rooms", rooms(mdp).max() + 1, floor=1.5)]


def high_pay_is_rare(runs: Runs) -> list[Evidence]:
    parts = []
    for name, make in CHAINS.items():
        mdp = make()
        z, pay = stationary(mdp.transition()), mdp.reward[0].max(axis=(1, 2))
        parts.append(exact(name, z[pay.argmax()] / z[np.where(pay > 0, pay, np.inf).argmin()], **MUCH_LESS))
    return parts


# fmt: off
CLAIMS = (
    Claim("one-door", "Section 3", "Figure 1a",
          "Every way between the two clusters of Cluster-simple leads through one bottleneck state.",
          "doors (at most one), and connected parts without them (at least two)", one_door),
    Claim("high-pay-is-rare", "Section 4", "Figure 5",
          "On both chains the dynamics lead to low rewards; the high ones lie in states that are hard to reach.",
          "stationary probability, under random actions, of the best-paying over the least-paying state: much less",
          high_pay_is_rare),
    Claim("reciprocity", "Section 3", "eq. 13", "SR and PR determine each other through the stationary z.",
          "largest entry of |N diag(z) - diag(z) M|, closed forms: 0", closed_form(reciprocity_off, ceiling=ROUNDING)),
    Claim("rows-uniform", "Section 3", "", "In the limit r_SR is the same in all states.",
          "largest |row sum of the exact M (1 - gamma) - 1|: 0",
          closed_form(lambda P, M: np.abs(M.sum(axis=1) * (1 - GAMMA) - 1).max(), ceiling=ROUNDING)),
    Claim("columns-differ", "Section 3", "eq. 8",
          "The column sums in r_SR-R do not become the same for all states, as the row sums in r_SR do.",
          "largest minus least column sum of the exact M: above 0; grids under both readings of walls (with bumps P is "
          "symmetric, which gives 0)", columns_differ),
    Claim("fixed-bonus-varies", "Section 3", "eq. 8", "With a known, fixed SR, r_SR-R still tells steps apart.",
          "largest minus least r_SR-R of a possible step, exact M: above 0",
          closed_form(lambda P, M: np.ptp(sr_r(P, M)), floor=ROUNDING)),
    Claim("largest-sr-entry", "Appendix C", "", "No entry of the SR is above 1 / (1 - gamma).",
          "largest entry of the exact M times (1 - gamma): at most 1",
          closed_form(lambda P, M: M.max() * (1 - GAMMA), ceiling=1 + ROUNDING)),
    Claim("fr-below-sr", "Appendix C", "", "No entry of the FR is above that of the SR.",
          "largest entry of F - M, closed forms: 0",
          closed_form(lambda P, M: (fr(P, GAMMA) - M).max(), ceiling=ROUNDING)),
)
# fmt: on

register_claims("closed forms", CLAIMS)
