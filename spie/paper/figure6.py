"""Figure 6: where the agents go in a large map of two rooms, step by step."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.agents.base import Keep
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.claims import Claim, Measure
from spie.paper.closed_forms import closed_form, sr_r
from spie.paper.contenders import CONTROLS, Contender, of
from spie.paper.experiment import Experiment, states_seen
from spie.paper.grid_worlds import control_runs, controls, settings
from spie.paper.measures import (
    ROUNDING,
    Array,
    bonus_drift,
    compare,
    crossings,
    exact,
    idleness,
    level,
    places,
    ranks,
    rooms,
    row_norms,
    seen,
    stays,
    together,
    variation,
)
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.rules import LESS, MORE, MOST_OF, MUCH_MORE, SMALL_PART
from spie.paper.sections import (
    CONTROL,
    Film,
    HeatMaps,
    SectionPart,
    Table,
    Text,
    agent_row,
    between,
    number,
    percent,
)
from spie.runs.run import Run
from spie.tasks import grid
from spie.trace import Trace, Trajectory

MAP = "cluster-simple-large"
RECORDED = tuple(range(200))  # seeds whose every step is kept, for room switches and films
FADE = 700  # steps after which a visit in a film is a third as bright

LEARNED, FIXED = ("sarsa-sr", "sarsa-fr", "sarsa-srr"), ("sarsa-sr-fixed", "sarsa-fr-fixed", "sarsa-srr-fixed")
SR, FR, SRR = of("figure6", *LEARNED)
SR_FIXED, FR_FIXED, SRR_FIXED = of("figure6", *FIXED)
CONSTANT, OPTIMISTIC, COUNT, RANDOM = of("figure6", *CONTROLS)
BOTH_SRR = (SRR, SRR_FIXED)


def runs(seeds: int) -> list[Run]:
    """Where the agents are, and how they move between the two rooms."""
    run = functools.partial(_run, seeds)
    return [run(agent, settings(agent)) for agent in LEARNED + FIXED] + control_runs(run)


def _run(seeds: int, agent: str, s: Sarsa) -> Run:
    keep = Keep(snapshots=paper.FIGURE_6_STEPS, paths=tuple(seed for seed in RECORDED if seed < seeds))
    return Run(MAP, agent, s, grid(MAP), paper.FIGURE_6_STEPS[-1], seeds, keep=keep)


# Measures


@functools.cache
def the_rooms() -> Array:
    return rooms(grid(MAP))


def all_stays(trace: Trace) -> Array:
    """Stays of the recorded seeds [stays, (steps, share)]."""
    found = [stay for path in trace.paths.values() for stay in stays(path, the_rooms())]
    return np.array(found or [(math.nan, math.nan)])


def stay_lengths(trace: Trace) -> Array:
    return np.asarray(all_stays(trace)[:, 0])


def seen_in_a_stay(trace: Trace) -> Array:
    return np.asarray(all_stays(trace)[:, 1])


def switches(trace: Trace) -> Array:
    """How often each recorded seed changes rooms."""
    return np.array([float(len(crossings(places(path), the_rooms())[1])) for path in trace.paths.values()])


def seen_of_each_room(trace: Trace) -> Array:
    """The share seen of the room that was seen least."""
    room = the_rooms()
    shares = [(trace.first_visit[:, room == k] >= 0).mean(axis=1) for k in range(room.max() + 1)]
    return np.asarray(np.min(shares, axis=0))


def norms_follow_counts(trace: Trace) -> Array:
    """Rank correlation of row norm and visits over the states visited."""
    agent, S, found = settings("sarsa-sr"), trace.visits.shape[1], []
    for path in trace.paths.values():
        visits, norms = np.bincount(path.states, minlength=S), row_norms(path, S, agent.eta, agent.gamma_sr)
        found.append(np.corrcoef(ranks(norms[visits > 0]), ranks(visits[visits > 0]))[0, 1])
    return np.array(found)


def largest_bonus(path: Trajectory) -> float:
    return float(path.bonuses.max())


def levels(values: Callable[[Trace], Array], agents: Sequence[Contender], what: str, **ends: Any) -> Measure:
    """A number of each agent."""
    return lambda runs: [level(f"{what} {agent.label}", values(runs(agent, MAP)), **ends) for agent in agents]


def cycles(agent: Contender, rival: Contender) -> Measure:
    """Room switches, and how much the length of a stay varies."""
    return together(
        compare(switches, agent, [rival], [MAP], f"{agent.label} switches", **MORE),
        compare(stay_lengths, agent, [rival], [MAP], f"{agent.label} variation of stays", statistic=variation, **LESS),
    )


def recorded(agent: Contender, value: Callable[[Trajectory], float], **ends: Any) -> Measure:
    """The largest of a number over the recorded seeds."""
    return lambda runs: [exact(agent.label, max(map(value, runs(agent, MAP).paths.values())), **ends)]


# fmt: off
CLAIMS = (
    Claim("never-positive", "Appendix C", "eq. 8",
          "r_SR-R is never above 0, so that Q = 0 is an optimistic start for it.",
          "largest r_SR-R: exact M in every environment, learned and fixed M in the recorded seeds of Figure 6: 0",
          together(closed_form(lambda P, M: sr_r(P, M).max(), ceiling=ROUNDING),
                   *(recorded(agent, largest_bonus, ceiling=ROUNDING) for agent in BOTH_SRR))),
    Claim("cycling", "Section 3", "Figure 6",
          "SARSA-SRR stays in a room until it has seen much of it, then crosses over, again and again.",
          "recorded seeds of Figure 6, stays that ended: share of the room seen, above 1/2; room switches over the "
          "random walk's, more; coefficient of variation of stays over the random walk's, less",
          together(levels(seen_in_a_stay, BOTH_SRR, "seen in a stay", floor=MOST_OF),
                   *(cycles(agent, RANDOM) for agent in BOTH_SRR))),
    Claim("cycling-of-controls", "Section 3", "Figure 6",
          "SARSA-SRR cycles more than an agent with a constant cost.",
          "room switches over the control's, more; coefficient of variation of stays, less",
          cycles(SRR, CONSTANT), ours=True, controls=True),
    Claim("memory", "Section 3", "Figure 6",
          "SARSA-SRR keeps away from where it was recently and returns to old places.",
          "idleness (mean time since a state's last visit, over the number of states) over that of others: less",
          together(*(compare(idleness, agent, (RANDOM, SR, FR), [MAP], f"{agent.label} over", **LESS)
                     for agent in BOTH_SRR))),
    Claim("memory-of-controls", "Section 3", "Figure 6", "It does so better than agents without representation.",
          "idleness over that of the controls: less",
          compare(idleness, SRR, (CONSTANT, COUNT), [MAP], **LESS), ours=True, controls=True),
    Claim("stationary-bonus", "Section 3", "", "With a fixed SR the bonus does not change in time, learned it does.",
          "most that the bonus of a state and action changes, recorded seeds of Figure 6: 0 fixed, above 0 learned",
          together(recorded(SRR_FIXED, bonus_drift, ceiling=ROUNDING), recorded(SRR, bonus_drift, floor=ROUNDING))),
    Claim("norms-follow-counts", "Section 3", "", "The row norms of the learned SR track visit counts.",
          "rank correlation over visited states, SR learned along the recorded seeds of Figure 6: above 0.5",
          levels(norms_follow_counts, (SR, SRR, RANDOM), "along", floor=0.5)),
    Claim("sr-minimal", "Appendix C", "Figure 6", "In the large two rooms SARSA-SR hardly explores, learned or fixed.",
          "share of the states seen in 6000 steps: below 1/4",
          levels(seen, (SR, SR_FIXED), "seen", ceiling=SMALL_PART)),
    Claim("fr-differs-when-fixed", "Appendix C", "Figure 6", "There SARSA-FR explores much more learned than fixed.",
          "states seen in 6000 steps, learned over fixed: much more",
          compare(seen, FR, [FR_FIXED], [MAP], "learned", **MUCH_MORE)),
    Claim("fr-fixed-small-part", "Appendix C", "Figure 6", "There fixed SARSA-FR sees a small part only.",
          "share of the states seen in 6000 steps: below 1/4", levels(seen, [FR_FIXED], "seen", ceiling=SMALL_PART)),
    Claim("srr-explores-both", "Appendix C", "Figure 6", "There SARSA-SRR sees all of both rooms, repeatedly.",
          "share seen of the less seen room, above 0.99; room switches, at least 2",
          together(levels(seen_of_each_room, BOTH_SRR, "seen", floor=0.99),
                   levels(switches, BOTH_SRR, "switches", floor=2))),
    Claim("optimistic-start", "Appendix C", "Figure 7",
          "Q = 1 / (1 - gamma) is an optimistic start for r_SR and r_FR.",
          "largest bonus in the recorded seeds of Figure 6: at most the 1 that this Q allows for",
          together(*(recorded(agent, largest_bonus, ceiling=1 + ROUNDING) for agent in (SR, FR)))),
)
# fmt: on


# The page


COLUMNS = "agent,room switches,95 % interval,median stay,room seen in a stay,idleness,95 % interval,states seen".split(
    ","
)


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Mean visits up to each step, then how the agents move between the rooms."""
    (cells,) = results.found(experiment.name).values()
    rows = []
    for label, (run, trace) in cells.items():
        switched, idle = stats.estimate(switches(trace)), stats.estimate(idleness(trace))
        steps, share = all_stays(trace).T  # not a number where the room was never left
        stay = (float(np.median(steps)), None if np.isnan(share).any() else percent(share.mean()))
        values = (label, switched.mean, between(switched.low, switched.high), *stay, idle.mean)
        rest = (between(idle.low, idle.high), percent(seen(trace).mean()))
        rows.append(agent_row((*values, *rest), run.role == "control"))
    visits = {label: trace.snapshots.mean(axis=0) for label, (_, trace) in cells.items()}
    caption = f"Mean visits after that many steps; {', '.join(CONTROLS)}: {CONTROL}"
    idle_said = "Idleness: mean time since a state's last visit, over the number of states. A perfect tour has 0.5."
    return [
        HeatMaps(caption, run.task, visits, [number(step) for step in paper.FIGURE_6_STEPS]),
        Table(f"Moves between the rooms, {len(trace.paths)} recorded seeds", COLUMNS, rows),
        Text("", [idle_said]),
        *films(results),
    ]


FILMED = {
    SRR: "SARSA-SRR",
    SRR_FIXED: "SARSA-SRR, fixed,",
    SR: "SARSA-SR",
    SR_FIXED: "SARSA-SR, fixed,",
    FR: "SARSA-FR",
    FR_FIXED: "SARSA-FR, fixed,",
    CONSTANT: "A constant cost",
}


def films(results: Results) -> list[Film]:
    """Every agent of the figure, learned and fixed, and one control between the two rooms: one recorded run each."""
    shown = []
    for agent, title in FILMED.items():
        s = controls()[agent.agent] if agent == CONSTANT else settings(agent.agent)
        matrix: Any = {"sr": "M", "sr-r": "M", "fr": "F"}.get(s.reward, "")
        text = f"seed 0 of Figure 6, no reward{f'; {CONTROL}' if agent == CONSTANT else ''}"
        path = results.trace(agent.experiment, MAP, agent.agent).paths[0]
        where = grid(MAP), places(path), path.bonuses, the_rooms(), FADE
        rate = s.eta if s.learned else None
        shown.append(Film(f"{title} between two rooms", text, *where, matrix, s.gamma_sr, rate))
    return shown


register_experiment(
    Experiment(
        "figure6",
        "Figure 6: where the agents go, step by step",
        section,
        runs,
        seeds=1000,
        claims=CLAIMS,
        measure=states_seen,
    )
)
