"""The paper's claims about tabular tasks and grid worlds, each measured on stored runs and judged by one rule.

A claim is measured in parts (environments, agents, levels). A part is a number with a 95 % bootstrap interval and the
range that the claim gives it: it holds where the interval lies inside the range, fails where it lies outside, and is
undecided where it crosses an end. All parts hold: reproduced. None does, or more fail: not reproduced. Else: partly.
Where the paper's own tables contradict its sentence, that is the verdict, and our outcome is in the reason.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.paper import CONTROLS, Results
from spie.paper import published as paper
from spie.paper.grids import COVERAGE_MAPS, GOAL_MAPS, TRANSIENT_MAP, settings
from spie.paper.mountain_car import SMALL_BETAS
from spie.paper.tabular import CHAINS
from spie.representations import fr, pr, sr, stationary
from spie.stats import RESAMPLES
from spie.tasks import grid
from spie.tasks.mdp import MDP
from spie.trace import Trace, Trajectory

REPRODUCED, PARTLY, NOT_REPRODUCED = "reproduced", "partly", "not reproduced"
CONTRADICTED = "contradicted by the paper's own numbers"
NOT_RUN, OVER_BUDGET = "not run", "not run at the paper's budget"
VERDICTS = (REPRODUCED, PARTLY, NOT_REPRODUCED, CONTRADICTED, NOT_RUN, OVER_BUDGET)

FEWEST_SEEDS = 10  # an interval from fewer decides nothing
SIMILAR: dict[str, Any] = {"floor": 0.8, "ceiling": 1.25}  # "similar", "comparable": a ratio in this range
CONSISTENT = 1.5  # "consistent" over maps: at most so many times the steps a state
ROUNDING = 1e-9
SHARES = (0.5, 0.9, 0.99)  # of the states to cover

Array = NDArray[Any]


@dataclass(frozen=True)
class Part:
    """One number that a claim is about, its interval, and the range in which the claim says it lies."""

    label: str
    value: float
    low: float
    high: float
    floor: float = -math.inf
    ceiling: float = math.inf

    @property
    def outcome(self) -> str:
        if self.floor < self.low and self.high < self.ceiling:
            return "holds"
        return "fails" if self.high < self.floor or self.low > self.ceiling else "undecided"

    @property
    def strength(self) -> tuple[int, float]:
        """For sorting: the outcome, then how far the interval is inside the range."""
        margin = min(self.low - self.floor, self.ceiling - self.high)
        return ("fails", "undecided", "holds").index(self.outcome), margin

    def __str__(self) -> str:
        interval = f" [{_number(self.low)}, {_number(self.high)}]" if self.low != self.high else ""
        return f"{self.label}: {_number(self.value)}{interval}"


class Missing(LookupError):
    """An experiment that a claim needs is not stored."""


class Runs:
    """Traces by "experiment/agent" and environment; notes the fewest seeds that any of them has."""

    def __init__(self, results: Results) -> None:
        self.results, self.seeds = results, math.inf

    def __call__(self, key: str, env: str) -> Any:
        experiment, agent = key.split("/")
        trace = self.results.trace(experiment, env, agent)
        if trace is None:
            raise Missing(experiment)
        self.seeds = min(self.seeds, len(trace.seeds))
        return trace


Measure = Callable[[Runs], list[Part]]


@dataclass(frozen=True)
class Claim:
    """An empirical sentence of the paper, or a question of ours that it raises."""

    id: str
    section: str
    lines: str  # of spie.tex: "383-385, 947"
    text: str  # in our words
    measured: str
    measure: Measure | None = None
    printed: Callable[[], list[str]] = list  # where the paper's tables say otherwise
    same_as: tuple[str, ...] = ()  # a restatement: the parts of these claims
    unmeasured: str = NOT_RUN  # the verdict where there is no measure
    ours: bool = False

    @property
    def where(self) -> str:
        return f"{self.section}, line{'s' if set(self.lines) & set('-,') else ''} {self.lines} of spie.tex"


@dataclass(frozen=True)
class Judgement:
    claim: Claim
    figure: str
    verdict: str
    reason: str
    parts: tuple[Part, ...] = ()


def judge(results: Results, claims: Sequence[Claim] | None = None) -> list[Judgement]:
    """Claims (by default all) with our figure, the verdict and one line of reason."""
    by_id = {claim.id: claim for claim in CLAIMS}

    @functools.cache
    def measured(claim: Claim) -> tuple[list[Part], float]:
        runs = Runs(results)
        return (claim.measure(runs) if claim.measure else []), runs.seeds

    return [_judge(claim, [by_id[name] for name in claim.same_as] or [claim], measured) for claim in claims or CLAIMS]


def _judge(claim: Claim, sources: Sequence[Claim], measured: Callable[[Claim], tuple[list[Part], float]]) -> Judgement:
    parts: list[Part] = []
    try:
        seeds = min(measured(source)[1] for source in sources)
        for source in sources:
            name = f"{source.id}: " if len(sources) > 1 else ""
            parts += [replace(part, label=name + part.label) for part in measured(source)[0]]
        if not parts:
            verdict, reason = claim.unmeasured, "no experiment of ours measures it"
        elif seeds < FEWEST_SEEDS:
            verdict, reason = NOT_RUN, f"{seeds} seeds decide nothing, {FEWEST_SEEDS} are the least"
        else:
            verdict, reason = verdict_of(parts)
    except Missing as missing:
        verdict, reason = NOT_RUN, f"no stored results; spie run {missing}"
    printed = [sentence for source in sources for sentence in source.printed()]
    if printed:
        verdict, reason = CONTRADICTED, f"{'; '.join(printed)}. Ours: {verdict} ({reason})"
    figure = "; ".join(map(str, parts)) or "-"
    if len(parts) > 3:
        figure = f"{min(parts, key=lambda part: part.strength)} (weakest of {len(parts)})"
    return Judgement(claim, figure, verdict, reason, tuple(parts))


def verdict_of(parts: Sequence[Part]) -> tuple[str, str]:
    """The rule: the verdict, and which parts made it."""
    labels = {outcome: [p.label for p in parts if p.outcome == outcome] for outcome in ("holds", "fails", "undecided")}
    n = len(labels["holds"])
    if n == len(parts):
        return REPRODUCED, f"holds in all {n} parts" if n > 1 else "holds"
    why = [f"holds in {n} of {len(parts)}"]
    for outcome in ("fails", "undecided"):
        some, more = labels[outcome][:6], len(labels[outcome]) - 6
        if some:
            why.append(f"{outcome}: {', '.join(some)}{f' and {more} more' if more > 0 else ''}")
    return (NOT_REPRODUCED if n == 0 or len(labels["fails"]) > n else PARTLY), "; ".join(why)


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"


# --- The vocabulary: every part is made by one of these. ---


def bootstrapped(label: str, f: Callable[..., Any], *samples: Array, **ends: float) -> Part:
    """f of some samples, of which it reduces the last axis; their entries (seeds) are resampled, each sample apart."""
    with np.errstate(all="ignore"):  # where nothing happens or varies, a ratio is no number and decides nothing
        drawn = f(*(x[_picks(len(x), i)] for i, x in enumerate(samples)))
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Part(label, float(f(*samples)), float(low), float(high), **ends)


@functools.lru_cache(maxsize=16)
def _picks(n: int, seed: int) -> Array:
    return np.random.default_rng(seed).integers(n, size=(RESAMPLES, n), dtype=np.int32)


def level(label: str, a: Array, **ends: float) -> Part:
    return bootstrapped(label, lambda x: x.mean(axis=-1), a, **ends)


def ratio(label: str, a: Array, b: Array, statistic: Callable[..., Any] = np.mean, **ends: float) -> Part:
    return bootstrapped(label, lambda *x: np.divide(*(statistic(y, axis=-1) for y in x)), a, b, **ends)


def double_ratio(label: str, *abcd: Array, statistic: Callable[..., Any] = np.mean, **ends: float) -> Part:
    """(a / b) / (c / d)."""

    def f(*samples: Array) -> Any:
        a, b, c, d = (statistic(x, axis=-1) for x in samples)
        return (a / b) / (c / d)

    return bootstrapped(label, f, *abcd, **ends)


def exact(label: str, value: float, **ends: float) -> Part:
    return Part(label, float(value), float(value), float(value), **ends)


def compare(
    values: Callable[[Trace], Array], a: str, others: Sequence[str], envs: Sequence[str], what: str = "", **ends: Any
) -> Measure:
    """A number of each seed of a over that of each of the others, in each environment."""

    def measure(runs: Runs) -> list[Part]:
        parts = []
        for env, other in itertools.product(envs, others):
            words = (what, env if len(envs) > 1 else "", _agent(other) if len(others) > 1 else "")
            samples = values(runs(a, env)), values(runs(other, env))
            parts.append(ratio(" ".join(filter(None, words)), *samples, **ends))
        return parts

    return measure


def together(*measures: Measure) -> Measure:
    return lambda runs: [part for measure in measures for part in measure(runs)]


def of(experiment: str, *agents: str) -> tuple[str, ...]:
    return tuple(f"{experiment}/{agent}" for agent in agents)


def _agent(key: str) -> str:
    return key.split("/")[1]


# --- What is read off a trace: one number a seed. ---


steps_to = Trace.steps_to


def area(trace: Trace) -> Array:
    """Area under the coverage curve: the share of the states seen, averaged over all steps."""
    T = trace.steps[:, None]
    return np.asarray(1 - (np.where(trace.first_visit < 0, T, trace.first_visit) / T).mean(axis=1))


def seen(trace: Trace) -> Array:
    return np.asarray((trace.first_visit >= 0).mean(axis=1))


def reward(trace: Trace) -> Array:
    return trace.total_reward


def episode(trace: Trace, episodes: slice = slice(None)) -> Array:
    """Mean steps of an episode."""
    return np.asarray(trace.episode_steps[:, episodes].mean(axis=1))


def roughness(trace: Trace) -> Array:
    """By how many steps an episode differs from the one before."""
    return np.asarray(np.abs(np.diff(trace.episode_steps, axis=1)).mean(axis=1))


def off_average(trace: Trace) -> Array:
    """By how many steps the episodes of a seed differ from the average of all seeds."""
    return np.asarray(np.abs(trace.episode_steps - trace.episode_steps.mean(axis=0)).mean(axis=1))


def visit_share(trace: Trace, cells: Callable[[MDP], Array], env: str) -> Array:
    return np.asarray(trace.visits[:, cells(grid(env))].sum(axis=1) / trace.visits.sum(axis=1))


def doors(mdp: MDP) -> Array:
    """Free cells between two walls that face each other."""
    up, right, down, left = (mdp.next[:, :, 0] == np.arange(mdp.n_states)[:, None]).T
    return np.asarray((up & down) | (left & right))


def borders(mdp: MDP) -> Array:
    """Cells beside a wall or the edge that are no doors."""
    return np.asarray((mdp.next[:, :, 0] == np.arange(mdp.n_states)[:, None]).any(axis=1) & ~doors(mdp))


def rooms(mdp: MDP) -> Array:
    """The room of each state, numbered: the connected parts that are left without the doors; -1 for a door."""
    from scipy.sparse.csgraph import connected_components

    door, joined = doors(mdp), mdp.transition() > 0
    joined[door] = joined[:, door] = False
    labels = connected_components(joined, directed=False)[1]
    return np.where(door, -1, np.searchsorted(np.unique(labels[~door]), labels))


@functools.cache
def _transient_rooms() -> Array:
    return rooms(grid(TRANSIENT_MAP))


def places(path: Trajectory) -> Array:
    """The states of a path, where it ends included."""
    return np.append(path.states[:1], path.next_states)


def stays(path: Trajectory, room: Array) -> list[tuple[float, float]]:
    """Steps of each stay in a room that was left again, and the share of the room that was visited in it."""
    s = places(path)
    t = np.flatnonzero(room[s] >= 0)  # on a door, a stay goes on
    cuts = np.flatnonzero(np.diff(room[s[t]])) + 1
    size = np.bincount(room[room >= 0])
    visited = np.split(s[t], cuts)[:-1]
    steps = np.diff(t[np.append(0, cuts)])
    return [(float(n), len(np.unique(v)) / size[room[v[0]]]) for n, v in zip(steps, visited, strict=True)]


def all_stays(trace: Trace) -> Array:
    """Stays of the recorded seeds [stays, (steps, share)]."""
    found = [stay for path in trace.paths.values() for stay in stays(path, _transient_rooms())]
    return np.array(found or [(math.nan, math.nan)])


def switches(trace: Trace) -> Array:
    return np.array([float(len(stays(path, _transient_rooms()))) for path in trace.paths.values()])


def variation(x: Array, axis: int) -> Any:
    return x.std(axis=axis) / x.mean(axis=axis)


def seen_of_each_room(trace: Trace) -> Array:
    """The share seen of the room that was seen least."""
    room = _transient_rooms()
    shares = [(trace.first_visit[:, room == k] >= 0).mean(axis=1) for k in range(room.max() + 1)]
    return np.asarray(np.min(shares, axis=0))


def idleness(trace: Trace) -> Array:
    """Time since a state's last visit, averaged over states and steps, over the number of states: a tour gives 1/2."""
    S, found = trace.visits.shape[1], []
    for path in trace.paths.values():
        s = places(path)
        T = len(s)
        # Every state gets a visit before the start and one at the end; a gap of g steps between visits adds g(g-1)/2.
        state, time = np.concatenate([np.arange(S), s, np.arange(S)]), np.r_[np.zeros(S), np.arange(T), np.full(S, T)]
        order = np.argsort(state, kind="stable")
        gaps = np.diff(time[order])[np.diff(state[order]) == 0]
        found.append(gaps @ (gaps - 1) / 2 / (T * S * S))
    return np.array(found)


def row_norms(path: Trajectory, S: int, eta: float, gamma: float) -> Array:
    """Row sums of the SR that is learned along a path; their update needs nothing but themselves."""
    sums = [0.0] * S
    for s, s_next in zip(path.states.tolist(), path.next_states.tolist(), strict=True):
        sums[s] += eta * (1 + gamma * sums[s_next] - sums[s])
    return np.array(sums)


def norms_follow_counts(trace: Trace) -> Array:
    """Rank correlation of row norm and visits over the states visited."""
    agent, S, found = settings("sarsa-sr"), trace.visits.shape[1], []
    for path in trace.paths.values():
        visits, norms = np.bincount(path.states, minlength=S), row_norms(path, S, agent.eta, agent.gamma_sr)
        found.append(np.corrcoef(ranks(norms[visits > 0]), ranks(visits[visits > 0]))[0, 1])
    return np.array(found)


def ranks(x: Array) -> Array:
    """Equal values share the mean of their ranks."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[which])


def bonus_drift(path: Trajectory) -> float:
    """The most that the bonus of one state and action changes."""
    pairs = np.unique(np.stack([path.states, path.actions]), axis=1, return_inverse=True)[1].ravel()
    order = np.lexsort([path.bonuses, pairs])
    starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    bonuses = path.bonuses[order]
    return float(np.max(np.maximum.reduceat(bonuses, starts) - np.minimum.reduceat(bonuses, starts)))


# --- Measures that are more than one comparison. ---


def covers_faster(agent: str, *rivals: str) -> Measure:
    """Median steps of the fastest rival over the agent's, on each map, for each share of the states."""

    def measure(runs: Runs) -> list[Part]:
        parts = []
        for env, share in itertools.product(COVERAGE_MAPS, SHARES):
            times = {rival: steps_to(runs(rival, env), share) for rival in rivals}
            best = min(times, key=lambda rival: float(np.median(times[rival])))
            label = f"{env} {share:.0%}" + (f" {_agent(best)}" if len(rivals) > 1 else "")
            parts.append(ratio(label, times[best], steps_to(runs(agent, env), share), np.median, floor=1))
        return parts

    return measure


def covers_alike(agent: str, other: str) -> Measure:
    times = [(share, functools.partial(steps_to, share=share)) for share in SHARES]
    ends: dict[str, Any] = {"statistic": np.median, **SIMILAR}
    return together(*(compare(f, agent, [other], COVERAGE_MAPS, f"{share:.0%}", **ends) for share, f in times))


def half_reached(runs: Runs) -> list[Part]:
    parts = []
    for env in COVERAGE_MAPS:
        trace = runs("figure1/sarsa-sr", env)
        end = "floor" if env == "of-small" else "ceiling"
        parts.append(level(env, np.asarray(steps_to(trace, 0.5) <= trace.steps), **{end: 0.5}))
    return parts


def slowdown(runs: Runs, agent: str, env: str) -> tuple[Array, Array]:
    """Steps a state to cover 90 % of a map, and of OF-small."""
    traces = [runs(f"figure1/{agent}", name) for name in (env, "of-small")]
    a, b = (steps_to(trace, 0.9) / trace.visits.shape[1] for trace in traces)
    return a, b


def consistent(runs: Runs) -> list[Part]:
    return [ratio(e, *slowdown(runs, "sarsa-srr", e), np.median, ceiling=CONSISTENT) for e in COVERAGE_MAPS[1:]]


def others_degrade(runs: Runs) -> list[Part]:
    parts = []
    for env in COVERAGE_MAPS[1:]:
        both = slowdown(runs, "sarsa", env) + slowdown(runs, "sarsa-srr", env)
        parts.append(double_ratio(f"{env} sarsa", *both, statistic=np.median, floor=1))
        for agent in of("figure1", "sarsa-sr", "sarsa-fr"):
            shares = seen(runs(agent, env)), seen(runs(agent, "of-small"))
            parts.append(ratio(f"{env} {_agent(agent)}", *shares, ceiling=1))
    return parts


def fixing_costs_little(runs: Runs) -> list[Part]:
    steps = functools.partial(steps_to, share=0.9)
    ends: dict[str, Any] = {"statistic": np.median, "ceiling": SIMILAR["ceiling"]}
    parts = compare(steps, SRR_FIXED, [SRR], COVERAGE_MAPS, "sarsa-srr", **ends)(runs)
    for other, env in itertools.product(("sarsa-sr", "sarsa-fr"), COVERAGE_MAPS):
        agents = of("figure1", "sarsa-srr-fixed", "sarsa-srr", f"{other}-fixed", other)
        parts.append(double_ratio(f"less than {other} {env}", *(area(runs(agent, env)) for agent in agents), floor=1))
    return parts


def levels(values: Callable[[Trace], Array], agents: Sequence[str], what: str, **ends: float) -> Measure:
    """On the map of Figure 6."""
    return lambda runs: [level(f"{what} {_agent(key)}", values(runs(key, TRANSIENT_MAP)), **ends) for key in agents]


def cycles(agent: str, rival: str) -> Measure:
    """Room switches, and how much the length of a stay varies."""

    def stay_lengths(trace: Trace) -> Array:
        return np.asarray(all_stays(trace)[:, 0])

    name, where = _agent(agent), [TRANSIENT_MAP]
    return together(
        compare(switches, agent, [rival], where, f"{name} switches", floor=1),
        compare(stay_lengths, agent, [rival], where, f"{name} variation of stays", statistic=variation, ceiling=1),
    )


def seen_in_a_stay(trace: Trace) -> Array:
    return np.asarray(all_stays(trace)[:, 1])


def recorded(key: str, number: Callable[[Trajectory], float], **ends: float) -> Measure:
    """The largest of a number over the recorded seeds of Figure 6."""
    return lambda runs: [exact(_agent(key), max(map(number, runs(key, TRANSIENT_MAP).paths.values())), **ends)]


def largest_bonus(path: Trajectory) -> float:
    return float(path.bonuses.max())


def larger_gain(runs: Runs) -> list[Part]:
    """Gain of SARSA-SRR on the goal task of OF-small over that of Cluster-hard."""
    parts = []
    for other in ("sarsa", "sarsa-sr"):
        cells = itertools.product(("of-small/goal", "cluster-hard/goal"), of("figure3", other, "sarsa-srr"))
        parts.append(double_ratio(other, *(episode(runs(agent, env)) for env, agent in cells), floor=1))
    return parts


def larger_gain_exploring(runs: Runs) -> list[Part]:
    cells = itertools.product(("cluster-hard", "of-small"), of("figure1", "sarsa", "sarsa-srr"))
    times = [steps_to(runs(agent, env), 0.9) for env, agent in cells]
    return [double_ratio("sarsa", *times, statistic=np.median, floor=1)]


def second_round(*agents: str) -> Measure:
    """Steps when a goal comes the second time over those of the first time, and this over another agent's."""

    def measure(runs: Runs) -> list[Part]:
        parts = []
        for name, goal, n in itertools.product(GOAL_MAPS, range(3), (1, 30)):
            windows = [slice(first, first + n) for first in (30 * (goal + 3), 30 * goal)]
            traces = [runs(f"figure3/{agent}", f"{name}/moving-goal") for agent in agents]
            samples = [episode(trace, window) for trace in traces for window in windows]
            label = f"{name} {('G', 'G1', 'G2')[goal]} {'first episode' if n == 1 else 'all episodes'}"
            two_or_four: Callable[..., Part] = ratio if len(agents) == 1 else double_ratio
            parts.append(two_or_four(label, *samples, ceiling=1))
        return parts

    return measure


GAMMA = paper.GRID_SETTINGS["gamma_sr"]


@functools.cache
def chain(name: str) -> tuple[Array, Array]:
    """P of the uniform random policy, and its M."""
    P = (CHAINS[name]() if name in CHAINS else grid(name)).transition()
    return P, sr(P, GAMMA)


def closed_form(number: Callable[[Array, Array], float], **ends: float) -> Measure:
    """A number of P and M, in every environment."""
    return lambda runs: [exact(n, number(*chain(n)), **ends) for n in (*COVERAGE_MAPS, TRANSIENT_MAP, *CHAINS)]


def sr_r(P: Array, M: Array) -> Array:
    """r_SR-R of every possible step."""
    return np.asarray((M - M.sum(axis=0))[P > 0])


def reciprocity_off(P: Array, M: Array) -> float:
    z = stationary(P)
    return float(np.abs(pr(P, GAMMA) * z - z[:, None] * M).max())


def one_door(runs: Runs) -> list[Part]:
    mdp = grid("cluster-simple")
    return [exact("doors", doors(mdp).sum(), ceiling=1.5), exact("rooms", rooms(mdp).max() + 1, floor=1.5)]


def high_pay_is_rare(runs: Runs) -> list[Part]:
    parts = []
    for name, make in CHAINS.items():
        mdp = make()
        z, pay = stationary(mdp.transition()), mdp.reward[0].max(axis=(1, 2))
        parts.append(exact(name, z[pay.argmax()] / z[np.where(pay > 0, pay, np.inf).argmin()], ceiling=1))
    return parts


# --- What the paper prints. ---


def flag_is_kept(runs: Runs) -> list[Part]:
    """At the paper's beta and at the largest small one."""
    parts = []
    for beta in BETAS[:2]:
        ends = runs(f"figure4/linear-q-sf-pf{beta}", "mountain-car").terminated
        share = ends[:, -100:].mean(axis=1), ends[:, :100].mean(axis=1)
        parts.append(ratio(beta.strip() or "beta=1000", *share, floor=1))
    return parts


def printed_above(a: str, others: Sequence[str], envs: Sequence[str], cells: Any, seeds: float = math.inf) -> Any:
    """Where a is not printed above another; with `seeds`, not by 2 standard errors, the spread read as an sd."""

    def found() -> list[str]:
        against = []
        for env, other in itertools.product(envs, others):
            x, y = cells[env, a], cells[env, other]
            error = math.hypot(x.spread, y.spread) / math.sqrt(seeds)
            if x.mean - y.mean <= 2 * error:
                apart = f", {(x.mean - y.mean) / error:.1f} standard errors" if x.mean > y.mean else ""
                against.append(f"{_number(x.mean)} against {_number(y.mean)} of {other} on {env}{apart}")
        return [f"printed for {a}: {', '.join(against)}"] if against else []

    return found


# --- The claims. ---

GRID_AGENTS = ("sarsa", "sarsa-sr", "sarsa-fr")
GOALS, MOVING = (tuple(f"{name}/{task}" for name in GOAL_MAPS) for task in ("goal", "moving-goal"))
CAR = ("mountain-car",)
BETAS = ("", *(f" beta={beta:g}" for beta in SMALL_BETAS))
GAMES = tuple(dict.fromkeys(game for game, _ in paper.TABLE_2))
WITH, WITHOUT, SF_WITHOUT = (cell.mean for cell in paper.RECONSTRUCTION.values())
SRR, SRR_FIXED = "figure1/sarsa-srr", "figure1/sarsa-srr-fixed"
FIXED_FR = "table3/sarsa-fr-fixed", ["table1/sarsa-fr"]
AT_GOALS = "figure3/sarsa-srr", of("figure3", "sarsa", "sarsa-sr")
BOTH_SRR = of("figure6", "sarsa-srr", "sarsa-srr-fixed")


def occupancy(cells: Callable[[MDP], Array], a: str, other: str, what: str, **ends: float) -> Measure:
    maps = COVERAGE_MAPS if cells is borders else ("cluster-simple", "cluster-hard")
    shares = {env: functools.partial(visit_share, cells=cells, env=env) for env in maps}
    return together(*(compare(share, a, [other], [env], f"{what} {env}", **ends) for env, share in shares.items()))


def earns(agent: str, *others: str, what: str = "", **ends: float) -> Measure:
    """Mean reward of an agent over others', on both chains."""
    return compare(reward, agent, others, tuple(CHAINS), what, **ends)


# fmt: off
CLAIMS = (
    # The environments and the closed forms
    Claim("one-door", "Section 3", "300-303",
          "Every way between the two clusters of Cluster-simple leads through one bottleneck state.",
          "doors (at most one), and connected parts without them (at least two)", one_door),
    Claim("high-pay-is-rare", "Section 4", "638-639, 1021",
          "On both chains the dynamics lead to low rewards; the high ones lie in states that are hard to reach.",
          "stationary probability, under random actions, of the best-paying over the least-paying state: below 1",
          high_pay_is_rare),
    Claim("reciprocity", "Section 3", "548-552, 988-1016", "SR and PR determine each other through the stationary z.",
          "largest entry of |N diag(z) - diag(z) M|, closed forms: 0", closed_form(reciprocity_off, ceiling=ROUNDING)),
    Claim("never-positive", "Appendix C", "325-326, 1199",
          "r_SR-R is never above 0, so that Q = 0 is an optimistic start for it.",
          "largest r_SR-R: exact M in every environment, learned and fixed M in the recorded seeds of Figure 6: 0",
          together(closed_form(lambda P, M: sr_r(P, M).max(), ceiling=ROUNDING),
                   *(recorded(key, largest_bonus, ceiling=ROUNDING) for key in BOTH_SRR))),
    Claim("rows-uniform", "Section 3", "350-351", "In the limit r_SR is the same in all states.",
          "largest |row sum of the exact M (1 - gamma) - 1|: 0",
          closed_form(lambda P, M: np.abs(M.sum(axis=1) * (1 - GAMMA) - 1).max(), ceiling=ROUNDING)),
    Claim("columns-differ", "Section 3", "358-360",
          "The column sums in r_SR-R do not become the same for all states, as the row sums in r_SR do.",
          "largest minus least column sum of the exact M: above 0 (a symmetric P, as of a grid with bumps, gives 0)",
          closed_form(lambda P, M: np.ptp(M.sum(axis=0)), floor=ROUNDING)),
    Claim("fixed-bonus-varies", "Section 3", "358-362", "With a known, fixed SR, r_SR-R still tells steps apart.",
          "largest minus least r_SR-R of a possible step, exact M: above 0",
          closed_form(lambda P, M: np.ptp(sr_r(P, M)), floor=ROUNDING)),
    Claim("largest-sr-entry", "Appendix C", "1199", "No entry of the SR is above 1 / (1 - gamma).",
          "largest entry of the exact M times (1 - gamma): at most 1",
          closed_form(lambda P, M: M.max() * (1 - GAMMA), ceiling=1 + ROUNDING)),
    Claim("fr-below-sr", "Appendix C", "1199", "No entry of the FR is above that of the SR.",
          "largest entry of F - M, closed forms: 0",
          closed_form(lambda P, M: (fr(P, GAMMA) - M).max(), ceiling=ROUNDING)),

    # Section 3: pure exploration
    Claim("sarsa-is-random-walk", "Section 3", "381-383", "Without reward, plain SARSA is a random walk.",
          "area under the coverage curve over the random walk's: similar",
          compare(area, "figure1/sarsa", ["figure1/random"], COVERAGE_MAPS, **SIMILAR)),
    Claim("coverage-fastest", "Section 3", "383-385", "SARSA-SRR covers every map faster than the other three agents.",
          "median steps to 50, 90, 99 % of the states, fastest other agent over SARSA-SRR: above 1",
          covers_faster(SRR, *of("figure1", *GRID_AGENTS))),
    Claim("coverage-fastest-of-controls", "Section 3", "383-385, 1199",
          "SARSA-SRR covers faster than agents that have no representation but an optimistic start.",
          "as coverage-fastest, against the controls", covers_faster(SRR, *of("figure1", *CONTROLS)), ours=True),
    Claim("coverage-faster-than-constant", "Section 3", "383-385, 1199",
          "SARSA-SRR covers faster than an agent that pays a constant 1 a step, and so starts optimistic as well.",
          "as coverage-fastest, against the constant cost", covers_faster(SRR, "figure1/constant"), ours=True),
    Claim("fr-like-sarsa", "Section 3", "385-386", "SARSA-FR covers about as fast as SARSA.",
          "median steps to 50, 90, 99 % of the states over SARSA's: similar",
          covers_alike("figure1/sarsa-fr", "figure1/sarsa")),
    Claim("sr-poor", "Section 3", "386-387", "SARSA-SR explores all four maps poorly.",
          "area under the coverage curve over SARSA's: below 1",
          compare(area, "figure1/sarsa-sr", ["figure1/sarsa"], COVERAGE_MAPS, ceiling=1)),
    Claim("sr-below-half", "Section 3", "387-388",
          "SARSA-SR does not see half of the states in 8000 steps, but on OF-small.",
          "share of seeds that see half: below 1/2, above 1/2 on OF-small", half_reached),
    Claim("srr-consistent", "Section 3", "394-395", "SARSA-SRR does equally well on the four maps.",
          f"median steps a state to 90 % over those of OF-small: below {CONSISTENT}", consistent),
    Claim("others-degrade", "Section 3", "395-397", "The other agents become worse on larger and harder maps.",
          "SARSA: that ratio over SARSA-SRR's, above 1; SARSA-SR, -FR: states seen over those of OF-small, below 1",
          others_degrade),
    Claim("cycling", "Section 3", "437-442, 742-745, 1142",
          "SARSA-SRR stays in a room until it has seen much of it, then crosses over, again and again.",
          "recorded seeds of Figure 6, stays that ended: share of the room seen, above 1/2; room switches over the "
          "random walk's, above 1; coefficient of variation of stays over the random walk's, below 1",
          together(levels(seen_in_a_stay, BOTH_SRR, "seen in a stay", floor=0.5),
                   *(cycles(key, "figure6/random") for key in BOTH_SRR))),
    Claim("cycling-of-controls", "Section 3", "437-442", "SARSA-SRR cycles more than an agent with a constant cost.",
          "room switches over the control's, above 1; coefficient of variation of stays, below 1",
          cycles("figure6/sarsa-srr", "figure6/constant"), ours=True),
    Claim("memory", "Section 3", "442-444", "SARSA-SRR keeps away from where it was lately and returns to old places.",
          "idleness (mean time since a state's last visit, over the number of states) over that of others: below 1",
          together(*(compare(idleness, key, of("figure6", "random", "sarsa-sr", "sarsa-fr"), [TRANSIENT_MAP],
                             f"{_agent(key)} over", ceiling=1) for key in BOTH_SRR))),
    Claim("memory-of-controls", "Section 3", "442-444", "It does so better than agents without representation.",
          "idleness over that of the controls: below 1",
          compare(idleness, BOTH_SRR[0], of("figure6", "constant", "count"), [TRANSIENT_MAP], ceiling=1), ours=True),
    Claim("fixed-srr-fastest", "Section 3", "464-467",
          "With fixed representations, too, SARSA-SRR covers every map faster than the other agents.",
          "as coverage-fastest, with fixed SR and FR",
          covers_faster(SRR_FIXED, *of("figure1", "sarsa", "sarsa-sr-fixed", "sarsa-fr-fixed"))),
    Claim("fixing-costs-all", "Section 3", "467-469", "Fixing SR or FR slows exploration by all three bonuses.",
          "area under the coverage curve, fixed over learned: below 1",
          together(*(compare(area, f"figure1/{name}-fixed", [f"figure1/{name}"], COVERAGE_MAPS, name, ceiling=1)
                     for name in ("sarsa-sr", "sarsa-fr", "sarsa-srr")))),
    Claim("fixing-costs-srr-little", "Section 3", "469-471",
          "Fixing costs SARSA-SRR little, and SARSA-SR and SARSA-FR much.",
          f"SARSA-SRR's median steps to 90 %, fixed over learned, below {SIMILAR['ceiling']}; area under the coverage "
          "curve, fixed over learned, SARSA-SRR's over that of the others, above 1", fixing_costs_little),
    Claim("not-only-learning", "Section 3", "358-362, 471-473, 1077",
          "Efficient exploration does not need an SR that is being learned.",
          "SARSA's median steps to 50, 90, 99 % over those of fixed SARSA-SRR, and fixed SARSA-SRR's reward on the "
          "chains over SARSA's: above 1",
          together(covers_faster(SRR_FIXED, "figure1/sarsa"),
                   earns("table3/sarsa-srr-fixed", "table1/sarsa", floor=1))),
    Claim("stationary-bonus", "Section 3", "473", "With a fixed SR the bonus does not change in time, learned it does.",
          "most that the bonus of a state and action changes, recorded seeds of Figure 6: 0 fixed, above 0 learned",
          together(recorded(BOTH_SRR[1], bonus_drift, ceiling=ROUNDING),
                   recorded(BOTH_SRR[0], bonus_drift, floor=ROUNDING))),
    Claim("sr-fixed-is-random", "Section 3", "350-358", "With a known SR, SARSA-SR explores like a random walk.",
          "area under the coverage curve of fixed SARSA-SR over SARSA's: similar",
          compare(area, "figure1/sarsa-sr-fixed", ["figure1/sarsa"], COVERAGE_MAPS, **SIMILAR)),
    Claim("norms-follow-counts", "Section 3", "117-119, 347-349", "The row norms of the learned SR track visit counts.",
          "rank correlation over visited states, SR learned along the recorded seeds of Figure 6: above 0.5",
          levels(norms_follow_counts, of("figure6", "sarsa-sr", "sarsa-srr", "random"), "along", floor=0.5)),
    Claim("border-and-doors", "Section 3", "307-312, 336-341", "SARSA-SRR is drawn to border cells and to doors.",
          "share of visits there over the random walk's: above 1",
          together(occupancy(borders, SRR, "figure1/random", "border", floor=1),
                   occupancy(doors, SRR, "figure1/random", "doors", floor=1))),
    Claim("border-and-doors-of-controls", "Section 3", "336-341", "It is so more than an agent with a constant cost.",
          "as border-and-doors, against the constant cost",
          together(occupancy(borders, SRR, "figure1/constant", "border", floor=1),
                   occupancy(doors, SRR, "figure1/constant", "doors", floor=1)), ours=True),
    Claim("sr-avoids-doors", "Section 3", "304-307", "Exploring by the norm of the SR keeps an agent from doors.",
          "SARSA-SR's share of visits to doors over the random walk's: below 1",
          occupancy(doors, "figure1/sarsa-sr", "figure1/random", "doors", ceiling=1)),
    Claim("counts-avoid-doors", "Section 1", "105-109", "Exploring by visit counts keeps an agent from doors.",
          "as sr-avoids-doors, for our count bonus",
          occupancy(doors, "figure1/count", "figure1/random", "doors", ceiling=1)),

    # Section 4 and appendix B: the two chains
    Claim("table1-best", "Section 4", "675-676", "SARSA-SRR earns significantly more than all other agents of Table 1.",
          "mean reward over that of the others: above 1",
          earns("table1/sarsa-srr", *of("table1", *GRID_AGENTS, "sarsa-sr-pr"), floor=1),
          printed_above("sarsa-srr", [*GRID_AGENTS, "sarsa-sr-pr"], tuple(CHAINS), paper.TABLE_1, 100)),
    Claim("table1-above-baselines", "Section 4", "634-635, 675-676",
          "SARSA-SRR earns more than the three agents named before: SARSA, SARSA-SR and SARSA-FR.",
          "mean reward over that of the others: above 1",
          earns("table1/sarsa-srr", *of("table1", *GRID_AGENTS), floor=1),
          printed_above("sarsa-srr", GRID_AGENTS, tuple(CHAINS), paper.TABLE_1, 100)),
    Claim("table1-best-of-controls", "Section 4", "675-676", "SARSA-SRR earns more than agents without representation.",
          "mean reward over that of the controls: above 1",
          earns("table1/sarsa-srr", *of("table1", *CONTROLS), floor=1), ours=True),
    Claim("tuned-best", "Section 4", "675-676", "Tuned alike, SARSA-SRR earns more than all other agents of Table 1.",
          "mean reward over that of the others, every agent tuned over the same grid, on fresh seeds: above 1",
          earns("tuned/sarsa-srr", *of("tuned", *GRID_AGENTS, "sarsa-sr-pr"), floor=1), ours=True),
    Claim("tuned-best-of-controls", "Section 4", "675-676",
          "Tuned alike, SARSA-SRR earns more than agents without representation.",
          "as tuned-best, against the controls",
          earns("tuned/sarsa-srr", *of("tuned", *CONTROLS), floor=1), ours=True),
    Claim("combination", "Section 4", "676-677, 1105", "Both parts of r_SR-R together earn more than either alone.",
          "mean reward over that of (a), prospective alone, and (b), retrospective alone: above 1",
          earns("table4/sarsa-srr", *of("table4", "sarsa-srr-a", "sarsa-srr-b"), floor=1),
          printed_above("sarsa-srr", ["sarsa-srr-a", "sarsa-srr-b"], tuple(CHAINS), paper.TABLE_4)),
    Claim("prospective-alone", "Appendix B", "341, 1105, 1110", "The prospective part (a) alone is not enough.",
          "mean reward of (a) over SARSA-SRR's: below 1",
          earns("table4/sarsa-srr-a", "table4/sarsa-srr", ceiling=1)),
    Claim("retrospective-alone", "Appendix B", "341, 514-516, 1105, 1110",
          "The retrospective part (b) alone does about as well as the whole, or better.",
          f"mean reward of (b) over SARSA-SRR's: above {SIMILAR['floor']}",
          earns("table4/sarsa-srr-b", "table4/sarsa-srr", floor=SIMILAR["floor"])),
    Claim("balance", "Appendix B", "677, 1112-1116", "Without a pull to bottlenecks, as in (c), the agent earns less.",
          "mean reward of (c) over SARSA-SRR's: below 1",
          earns("table4/sarsa-srr-c", "table4/sarsa-srr", ceiling=1)),
    Claim("sr-pr-comparable", "Section 4", "683-685", "With the PR for the SR's columns, rewards are comparable.",
          "mean reward of SARSA-SR-PR over SARSA-SRR's: similar",
          earns("table1/sarsa-sr-pr", "table1/sarsa-srr", **SIMILAR)),
    Claim("fixed-sr-fr-worse", "Appendix B", "1077",
          "On the chains SARSA-SR and SARSA-FR earn less when fixed, SARSA-FR on SixArms excepted.",
          "mean reward fixed over learned: below 1; above 1 for SARSA-FR on SixArms",
          together(earns("table3/sarsa-sr-fixed", "table1/sarsa-sr", what="sarsa-sr", ceiling=1),
                   compare(reward, *FIXED_FR, ["riverswim"], "sarsa-fr riverswim", ceiling=1),
                   compare(reward, *FIXED_FR, ["sixarms"], "sarsa-fr sixarms", floor=1))),
    Claim("fixing-improves-srr", "Appendix B", "1077", "On the chains SARSA-SRR earns more with a fixed SR.",
          "mean reward fixed over learned: above 1", earns("table3/sarsa-srr-fixed", "table1/sarsa-srr", floor=1),
          printed_above("sarsa-srr-fixed", ["sarsa-srr"], tuple(CHAINS), paper.TABLE_1 | paper.TABLE_3)),
    Claim("table3-best", "Appendix B", "1090-1092", "Of the agents with fixed representations SARSA-SRR earns most.",
          "mean reward over that of fixed SARSA-SR and SARSA-FR: above 1",
          earns("table3/sarsa-srr-fixed", *of("table3", "sarsa-sr-fixed", "sarsa-fr-fixed"), floor=1)),

    # Section 4: goal tasks
    Claim("goal-efficiency", "Section 4", "721-723, 736", "SARSA-SRR learns the goal tasks in fewer steps.",
          "mean steps of all episodes over SARSA's and SARSA-SR's: below 1",
          compare(episode, *AT_GOALS, GOALS, ceiling=1)),
    Claim("goal-steady", "Section 4", "724-725", "SARSA-SRR learns more steadily, with less difference between seeds.",
          "steps between one episode and the next, and between a seed and the average of seeds, over SARSA's and "
          "SARSA-SR's: below 1",
          together(compare(roughness, *AT_GOALS, GOALS, "episodes", ceiling=1),
                   compare(off_average, *AT_GOALS, GOALS, "seeds", ceiling=1))),
    Claim("sr-unstable", "Section 4", "725-728", "SARSA-SR's episodes vary greatly while it learns.",
          "steps between one episode and the next over SARSA's and SARSA-SRR's: above 1",
          compare(roughness, "figure3/sarsa-sr", of("figure3", "sarsa", "sarsa-srr"), GOALS, floor=1)),
    Claim("larger-gain-in-the-open", "Section 4", "733-734", "On goal tasks SARSA-SRR gains more in OF-small.",
          "others' steps over SARSA-SRR's, on OF-small over Cluster-hard: above 1", larger_gain),
    Claim("larger-gain-in-rooms", "Section 4", "734-735", "In pure exploration it gains more in Cluster-hard.",
          "SARSA's median steps to 90 % over SARSA-SRR's, on Cluster-hard over OF-small: above 1",
          larger_gain_exploring),
    Claim("moving-goals", "Section 4", "444-448, 751-755", "Where the goal moves, SARSA-SRR does better throughout.",
          "mean steps of all episodes over SARSA's and SARSA-SR's: below 1",
          compare(episode, *AT_GOALS, MOVING, ceiling=1)),
    Claim("ever-shorter", "Section 4", "752-754", "SARSA-SRR reaches new goals in less and less time.",
          "steps when a goal comes the second time over the first, to reach it once and in its 30 episodes: below 1",
          second_round("sarsa-srr")),
    Claim("ever-shorter-than-sarsa", "Section 4", "752-754", "It gains more from one round to the next than SARSA.",
          "that ratio over SARSA's: below 1", second_round("sarsa-srr", "sarsa"), ours=True),
    Claim("asymptote", "Section 1", "130-133, 951-954", "After learning, SARSA-SRR does better as well.",
          "mean steps of the last 10 episodes over SARSA's and SARSA-SR's: below 1",
          compare(functools.partial(episode, episodes=slice(-10, None)), *AT_GOALS, GOALS + MOVING, ceiling=1)),

    # Appendix C
    Claim("sr-minimal", "Appendix C", "1142", "In the large two rooms SARSA-SR hardly explores, learned or fixed.",
          "share of the states seen in 6000 steps: below 1/2",
          levels(seen, of("figure6", "sarsa-sr", "sarsa-sr-fixed"), "seen", ceiling=0.5)),
    Claim("fr-differs-when-fixed", "Appendix C", "1142", "There SARSA-FR explores much more learned than fixed.",
          "states seen in 6000 steps, learned over fixed: above 1",
          compare(seen, "figure6/sarsa-fr", ["figure6/sarsa-fr-fixed"], [TRANSIENT_MAP], "learned", floor=1)),
    Claim("fr-fixed-small-part", "Appendix C", "1142", "There fixed SARSA-FR sees a small part only.",
          "share of the states seen in 6000 steps: below 1/2",
          levels(seen, ["figure6/sarsa-fr-fixed"], "seen", ceiling=0.5)),
    Claim("srr-explores-both", "Appendix C", "1142", "There SARSA-SRR sees all of both rooms, repeatedly.",
          "share seen of the less seen room, above 0.99; room switches, at least 2",
          together(levels(seen_of_each_room, BOTH_SRR, "seen", floor=0.99),
                   levels(switches, BOTH_SRR, "switches", floor=2))),
    Claim("optimistic-start", "Appendix C", "1199", "Q = 1 / (1 - gamma) is an optimistic start for r_SR and r_FR.",
          "largest bonus in the recorded seeds of Figure 6: at most the 1 that this Q allows for",
          together(*(recorded(f"figure6/{name}", largest_bonus, ceiling=1 + ROUNDING)
                     for name in ("sarsa-sr", "sarsa-fr")))),
    Claim("optimism-explores", "Appendix C", "1199", "An optimistic start by itself makes an agent explore.",
          "random walk's median steps to 50, 90, 99 % over those of SARSA with optimistic Q and no bonus: above 1",
          covers_faster("figure1/optimistic", "figure1/random")),
    Claim("optimism-helps", "Appendix C", "1199", "An optimistic start improves SARSA-SR and SARSA-FR.",
          "area under the coverage curve over that from Q = 0: above 1",
          together(*(compare(area, f"figure7/{name}-optimistic", [f"figure1/{name}"], COVERAGE_MAPS, name, floor=1)
                     for name in ("sarsa-sr", "sarsa-fr")))),
    Claim("srr-ahead-of-optimism", "Appendix C", "1199", "SARSA-SRR still covers significantly faster than these.",
          "as coverage-fastest, against both with the paper's optimistic start",
          covers_faster("figure7/sarsa-srr", *of("figure7", "sarsa-sr-optimistic", "sarsa-fr-optimistic"))),
    Claim("srr-ahead-of-true-optimism", "Appendix C", "1199", "So it does where their start bounds what can be had.",
          "as coverage-fastest, against both with Q from the largest bonus",
          covers_faster("figure7/sarsa-srr",
                        *of("figure7", "sarsa-sr-optimistic-bound", "sarsa-fr-optimistic-bound")), ours=True),

    # Restatements
    Claim("abstract", "Abstract", "66-68",
          "SPIE explores more efficiently and more plausibly where rewards are rare and regions joined by doors.",
          "as coverage-fastest, goal-efficiency and cycling",
          same_as=("coverage-fastest", "goal-efficiency", "cycling")),
    Claim("introduction", "Section 1", "130-133", "SPIE learns from fewer samples and ends with a higher return.",
          "as table1-above-baselines, goal-efficiency and asymptote",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote")),
    Claim("conclusion-structure", "Section 5", "943-946",
          "Retrospective information leads to bottlenecks and between regions.",
          "as border-and-doors and cycling", same_as=("border-and-doors", "cycling")),
    Claim("conclusion-coverage", "Section 5", "946-947", "SPIE explores discrete MDPs faster in the absence of reward.",
          "as coverage-fastest", same_as=("coverage-fastest",)),
    Claim("conclusion-cycling", "Section 5", "947-948", "SPIE cycles between clusters.", "as cycling",
          same_as=("cycling",)),
    Claim("conclusion-improves", "Section 5", "951-954",
          "SPIE improves on other bonuses in sample efficiency, final performance and adapting to changes.",
          "as table1-above-baselines, goal-efficiency, asymptote and moving-goals (discrete tasks)",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote", "moving-goals")),

    # Linear and deep tasks, and the sweep
    Claim("table5-best", "Appendix E", "1217", "The settings of Table 5 are the best of a sweep.",
          "mean reward with them over that with the best of our sweep, on fresh seeds: above 0.8",
          together(*(earns(f"tuned/{agent} untuned", f"tuned/{agent}", what=agent, floor=0.8)
                     for agent in dict.fromkeys(agent for _, agent in paper.TABLE_5)))),
    Claim("unit-features", "Section 3", "574", "Features of unit length bring SF and PF to similar scales.",
          "norms of SF and PF over the states of MountainCar"),
    Claim("reciprocal-norms", "Section 3", "576-579",
          "In continuous spaces a difference of reciprocal norms works better than one of norms.",
          "MountainCar, steps of an episode with SF-PF over those with norms, 1000 episodes, the paper's settings",
          compare(episode, "figure4/linear-q-sf-pf", ["figure4/linear-q-sf-pf norms"], CAR,
                  what="reciprocals", ceiling=1)),
    Claim("mountain-car", "Section 4", "820-825", "With linear features, r_SF-PF does significantly better than r_SF.",
          "MountainCar, steps of an episode with SF-PF over those with SF, 1000 episodes, the paper's settings",
          compare(episode, "figure4/linear-q-sf-pf", ["figure4/linear-q-sf"], CAR, what="SF-PF", ceiling=1)),
    Claim("mountain-car-keeps", "Section 4", "820-825", "With r_SF-PF the flag, once found, is kept.",
          "MountainCar, share of episodes at the flag: last 100 over first 100, at the paper's beta and at a small one",
          flag_is_kept, ours=True),
    Claim("mountain-car-constant", "Section 4", "820-825",
          "r_SF-PF does better than a cost of the same scale that is the same everywhere.",
          "MountainCar, steps of an episode with SF-PF over those with a constant cost, at each beta",
          together(*(compare(episode, f"figure4/linear-q-sf-pf{beta}", [f"figure4/constant{beta}"], CAR,
                             what=beta.strip() or "beta=1000", ceiling=1) for beta in BETAS)), ours=True),
    Claim("atari-best", "Abstract", "68-70",
          "DQN-SF-PF scores higher than other methods on Atari games with rare rewards.",
          "Table 2, all games and agents", unmeasured=OVER_BUDGET,
          printed=printed_above("dqn-sf-pf", ["dqn", "dqn-mmc", "rnd", "dqn-sr"], GAMES, paper.TABLE_2)),
    Claim("atari-above-sr", "Section 4", "883-885", "DQN-SF-PF scores significantly higher than DQN-SR on four games.",
          "Table 2, 2 standard errors, the printed spreads read as standard deviations of 10 seeds",
          unmeasured=OVER_BUDGET, printed=printed_above(
              "dqn-sf-pf", ["dqn-sr"], ["gravitar", "montezuma-revenge", "private-eye", "solaris"], paper.TABLE_2, 10)),
    Claim("atari-like-sr", "Section 4", "885-886", "It scores about the same as DQN-SR on Freeway and Venture.",
          "Table 2", unmeasured=OVER_BUDGET),
    Claim("atari-above-rnd", "Section 4", "886-887", "DQN-SF-PF scores higher than RND on all six games.",
          "Table 2", unmeasured=OVER_BUDGET, printed=printed_above("dqn-sf-pf", ["rnd"], GAMES, paper.TABLE_2)),
    Claim("atari-efficiency", "Section 4", "888-893",
          "DQN-SF-PF learns faster, too: on Montezuma's Revenge in a third of DQN-SR's frames.",
          "frames until the score is near its final one; printed: "
          + " against ".join(f"{n / 1e6:g} million" for n in paper.FRAMES_TO_LEARN.values()), unmeasured=OVER_BUDGET),
    Claim("atari-losses", "Section 4", "873-876", "The printed weights bring the four losses to similar scales.",
          "mean of each weighted loss", unmeasured=OVER_BUDGET),
    Claim("atari-reconstruction", "Appendix D", "1212", "Without reconstruction DQN-SF-PF scores significantly less.",
          f"Montezuma's Revenge with and without; printed: {WITH} and {WITHOUT}",
          unmeasured=OVER_BUDGET),
    Claim("atari-without-reconstruction", "Appendix D", "1212", "Without it, SF-PF still scores more than SF alone.",
          f"Montezuma's Revenge, both without; printed: {WITHOUT} and {SF_WITHOUT}", unmeasured=OVER_BUDGET),
)
# fmt: on
