"""What the judge of exploration says: the ledger's entries, and the section of the page."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.agents.registry import agent as named
from spie.paper.beyond.exploration_tasks import (
    COVERAGE,
    ENOUGH,
    EVALUATED,
    HELD_OUT,
    MOVING,
    TASKS,
    TUNING,
    Array,
    greedy_success,
    steps_after_a_switch,
)
from spie.paper.claims import Claim, Evidence, Measure, Missing, Runs
from spie.paper.contenders import Contender
from spie.paper.contests import winner
from spie.paper.experiment import Experiment
from spie.paper.measures import level, ratio
from spie.paper.results import Results, Stored
from spie.paper.sections import (
    CurvePanels,
    Look,
    Panel,
    Row,
    SectionPart,
    Table,
    Text,
    between,
    mean_curve,
    number,
    percent,
)
from spie.runs.run import load
from spie.search.select import Choice

NAME = "exploration"
SPIE = Contender(NAME, "spie")
SOLVED = ("frozen-lake-8x8", "deep-sea-20")
SLIPPERY = "frozen-lake-8x8-slippery"
LOOKS = {  # contenders that are agents of other names elsewhere
    "bare": Look("sarsa"),
    "optimistic start": Look("optimistic"),
    "count as reward": Look("count"),
    "count as optimism": Look("count", "as optimism"),
    "column as optimism": Look("count", "of a column, as optimism"),
    "sp-novelty": Look("sarsa-sp-novelty"),
    "etd": Look("sarsa-etd"),
}


def solved_share(env: str, trace: Any) -> Array:
    """The chance of each seed's greedy policy to reach the goal [seeds]."""
    return greedy_success(TASKS[env].mdp, trace.Q, TASKS[env].steps)


# The ledger


def claims(
    controls: Sequence[str], rivals: Sequence[str], here: Mapping[str, Any], apart: Mapping[str, Any]
) -> tuple[Claim, ...]:
    """What is said of `spie`, to be computed."""
    of_controls = [Contender(NAME, agent) for agent in controls if agent != "random"]
    of_paper = [Contender(NAME, agent) for agent in rivals]
    tuned = [Contender(NAME, agent, here) for agent in ("sarsa", *rivals, "constant", "optimistic", "count")]
    tuned.append(Contender(NAME, "sarsa-sr-pr", apart))
    # fmt: off
    return (
        Claim("spie-beats-all-controls", "Beyond the paper", "", "spie beats all controls on tasks no tuning saw.",
              "mean score over that of the best control, on each held-out task, fresh seeds: above 1",
              above_best(of_controls, tuple(HELD_OUT), _score), ours=True),
        Claim("spie-beats-the-papers-agents", "Beyond the paper", "",
              "spie beats the paper's agents, tuned alike, on tasks no tuning saw.",
              "mean score over that of the best of them, on each held-out task, fresh seeds: above 1",
              above_best(of_paper, tuple(HELD_OUT), _score), ours=True),
        Claim("spie-covers-faster", "Beyond the paper", "", "spie covers the five grids faster than every control.",
              "steps to see 99 % of the states, of the fastest control over those of spie: above 1",
              above_best(of_controls, COVERAGE, _score), ours=True),
        Claim("spie-solves", "Beyond the paper", "", "spie solves FrozenLake 8x8 and DeepSea 20.",
              f"share of seeds whose greedy policy reaches the goal with a chance of {ENOUGH:g} or more: above .95",
              _solves, ours=True),
        Claim("spie-slippery", "Beyond the paper", "", "On slippery FrozenLake 8x8 spie is well above half.",
              "chance that the greedy policy reaches the goal within 200 steps: above .6", _slippery, ours=True),
        Claim("spie-moving-goals", "Beyond the paper", "",
              "After a goal has moved, spie needs at most half of SARSA-SRR's steps.",
              "mean steps of the 5 episodes after a switch over SARSA-SRR's, tuned alike: below .5",
              _moving, ours=True),
        Claim("spie-on-the-chains", "Beyond the paper", "",
              "On RiverSwim and SixArms spie is within 5 % of the best agent that was tuned there.",
              "mean reward over that of the best agent or control tuned on this very task: above .95",
              above_best(tuned, ("riverswim", "sixarms"), lambda env, t: t.total_reward, floor=0.95), ours=True),
    )
    # fmt: on


def _score(env: str, trace: Any) -> Array:
    return TASKS[env].score(trace)


def above_best(
    rivals: Sequence[Contender], envs: Sequence[str], value: Callable[[str, Any], Array], floor: float = 1.0
) -> Measure:
    """The mean of spie over that of the best rival, in each environment; rivals that did not run are left out."""

    def measure(runs: Runs) -> list[Evidence]:
        parts = []
        for env in envs:
            there = [who for who in rivals if runs.results.trace(NAME, env, who.agent, **who.variant) is not None]
            if not there:
                raise Missing(NAME)
            values = {who: value(env, runs(who, env)) for who in there}
            best = max(there, key=lambda who: float(values[who].mean()))
            parts.append(ratio(f"{env} {best.label}", value(env, runs(SPIE, env)), values[best], floor=floor))
        return parts

    return measure


def _solves(runs: Runs) -> list[Evidence]:
    return [level(env, 1.0 * (solved_share(env, runs(SPIE, env)) >= ENOUGH), floor=0.95) for env in SOLVED]


def _slippery(runs: Runs) -> list[Evidence]:
    return [level(SLIPPERY, solved_share(SLIPPERY, runs(SPIE, SLIPPERY)), floor=0.6)]


def _moving(runs: Runs) -> list[Evidence]:
    srr = Contender(NAME, "sarsa-srr")
    steps = {env: [steps_after_a_switch(runs(who, env)) for who in (SPIE, srr)] for env in MOVING}
    return [ratio(env, ours, theirs, ceiling=0.5) for env, (ours, theirs) in steps.items()]


# The page


def section(
    experiment: Experiment,
    results: Results,
    contests: Callable[[int], dict[str, Choice]],
    chain_contests: Callable[[int], dict[Any, Choice]],
) -> list[SectionPart]:
    """How it was done, the profile, who wins where, what is solved, and the bars."""
    found = results.found(experiment.name)
    agents = list(dict.fromkeys(run.agent for cells in found.values() for run, _ in cells.values() if not run.variant))
    scores = {agent: {env: TASKS[env].score(cells[agent].trace) for env, cells in found.items()} for agent in agents}
    seeds = results.seeds[experiment.key]
    chosen = contests(seeds)
    return [
        Text("How it was done", _method(results, chosen, chain_contests(seeds))),
        CurvePanels("Share of all runs above a score; 1 is the most that could be had", _profiles(scores)),
        _overall(scores, found, chosen, functools.partial(load, results.store)),
        _by_task(scores, found),
        _solved_table(found, agents),
        _chains(found),
        _switches(found, agents),
    ]


def _method(results: Results, chosen: Mapping[str, Choice], chains: Mapping[Any, Choice]) -> list[str]:
    tried = sum(map(len, chosen.values()))
    of_chains = sum(map(len, chains.values()))
    best = winner(chosen["spie"], functools.partial(load, results.store))
    same = "the same" if repr(best) == repr(named("spie")) else f"others, {best}"
    first = len(chosen["spie"].rounds[0].all_seeds)
    return [
        f"{number(tried)} settings of {len(chosen)} contenders on {len(TUNING)} tuning tasks, {first} seeds; the "
        f"best 5 of each on other seeds; reported: a third set of seeds, one setting of each contender for all tasks. "
        f"On the chains {number(of_chains)} further settings, tuned there.",
        f"Tuning tasks: {'; '.join(TUNING)}. Held out: {'; '.join(HELD_OUT)}.",
        f"spie is {named('spie')}; the search chooses {same}.",
        "A score is a share of what could be had: states over steps to see 99 % of them; steps of the shortest way "
        "over those of an episode; reward over the best that can be expected; least cost over cost. A run has all its "
        "episodes in it, those of learning too.",
    ]


def _pooled(scores: Mapping[str, Array]) -> Array:
    """Scores of the held-out tasks [tasks, seeds]."""
    return np.stack([scores[env] for env in HELD_OUT])


def _profiles(scores: Mapping[str, Mapping[str, Array]]) -> list[Panel]:
    tau = np.linspace(0, 1, 51)
    panels = []
    for title, envs in (("held-out tasks", HELD_OUT), ("tuning tasks", TUNING)):
        curves = {}
        for agent, of in scores.items():
            above = np.stack([of[env] for env in envs])[:, :, None] >= tau  # a score of 1 counts at 1
            curves[agent] = mean_curve(tau, above.mean(axis=0), LOOKS.get(agent))  # seeds are resampled, tasks not
        panels.append(Panel(title, curves, "score", "share of runs at or above"))
    return panels


def _overall(
    scores: Mapping[str, Mapping[str, Array]], found: Mapping[str, Any], chosen: Mapping[str, Choice], stored: Any
) -> Table:
    """Means over the held-out tasks, and against spie task by task."""
    rows = []
    for agent, of in sorted(scores.items(), key=lambda item: -float(_pooled(item[1]).mean())):
        e = stats.estimate(_pooled(of).mean(axis=0))
        worst = min(HELD_OUT, key=lambda env: float(of[env].mean()))
        against = [outcome(scores["spie"][env], of[env]) for env in HELD_OUT]
        counts = ("–",) * 3 if agent == "spie" else tuple(against.count(word) for word in ("wins", "ties", "loses"))
        best = named("spie") if agent == "spie" else winner(chosen[agent], stored)
        varied = ", ".join(f"{key} {vars(best)[key]}" for key in chosen[agent].searches[0].columns)
        values = (agent, number(e.mean, 3), between(e.low, e.high, 3), f"{worst} {of[worst].mean():.2f}", *counts)
        rows.append(_row((*values, len(chosen[agent]), varied), found, agent))
    caption = f"Mean score over {len(HELD_OUT)} held-out tasks; how often spie wins, ties and loses against each"
    columns = "agent;mean score;95 % interval;worst task;spie wins;ties;loses;settings tried;chosen"
    return Table(caption, columns.split(";"), rows)


def _row(values: Sequence[Any], found: Mapping[str, Mapping[str, Stored]], agent: str) -> Row:
    is_control = next(iter(found.values()))[agent].run.role == "control"
    return Row(values, "control" if is_control else "total" if agent == "spie" else "")


def outcome(ours: Array, theirs: Array) -> str:
    """wins, ties or loses, by the 95 % interval of the difference of means."""
    _, low, high = stats.difference(ours, theirs)
    return "wins" if low > 0 else "loses" if high < 0 else "ties"


def _by_task(scores: Mapping[str, Mapping[str, Array]], found: Mapping[str, Any]) -> Table:
    """On every task: spie, the best control, the best of the paper's agents."""
    roles = {run.agent: run.role for cells in found.values() for run, _ in cells.values() if not run.variant}
    rows = []
    for env in TASKS:
        e = stats.estimate(scores["spie"][env])
        values: list[Any] = [env, "tuning" if env in TUNING else "held out", f"{e.mean:.3f}", between(e.low, e.high, 3)]
        for kind in ("control", "paper"):
            rivals = [agent for agent, role in roles.items() if role == kind and agent != "spie"]
            best = max(rivals, key=lambda agent: float(scores[agent][env].mean()))
            b = stats.estimate(scores[best][env])
            values += [
                best,
                f"{b.mean:.3f}",
                between(b.low, b.high, 3),
                outcome(scores["spie"][env], scores[best][env]),
            ]
        rows.append(Row(values))
    columns = (
        "task;set;spie;95 % interval;best control;score;95 % interval;spie;best of the paper's;score;95 % interval;spie"
    )
    return Table("Score by task; spie against the best control and the paper's best agent", columns.split(";"), rows, 2)


def _solved_table(found: Mapping[str, Any], agents: Sequence[str]) -> Table:
    """Greedy policies after training: seeds that solved the task, and the mean chance to reach the goal."""
    rows = []
    for agent in agents:
        values: list[Any] = [agent]
        for env in EVALUATED:
            chance = solved_share(env, found[env][agent].trace)
            e = stats.estimate(chance)
            values.append(f"{percent(float((chance >= ENOUGH).mean()))}; {e.mean:.2f} ({between(e.low, e.high, 2)})")
        rows.append(_row(values, found, agent))
    caption = f"Seeds whose greedy policy reaches the goal with a chance of {ENOUGH:g}; mean chance (95 % interval)"
    return Table(caption, ("agent", *EVALUATED), rows)


def _chains(found: Mapping[str, Mapping[str, Stored]]) -> Table:
    rows = []
    for env in ("riverswim", "sixarms"):
        ours = found[env]["spie"].trace.total_reward
        cells = {name: cell for name, cell in found[env].items() if cell.run.variant or name == "spie"}
        for name, (run, trace) in sorted(cells.items(), key=lambda item: -item[1].trace.total_reward.mean()):
            e = stats.estimate(trace.total_reward)
            part = ratio("", ours, trace.total_reward)
            shown = f"{part.value:.3f} ({between(part.low, part.high, 3)})" if name != "spie" else "–"
            rows.append(
                Row((env, name, e.mean, between(e.low, e.high), shown), "control" if run.role == "control" else "")
            )
    caption = "The chains: spie, not tuned there, against agents and controls tuned on the task itself"
    return Table(caption, ("chain", "agent", "total reward", "95 % interval", "spie over it"), rows, texts=2)


def _switches(found: Mapping[str, Mapping[str, Stored]], agents: Sequence[str]) -> Table:
    rows = []
    for agent in agents:
        estimates = [stats.estimate(steps_after_a_switch(found[env][agent].trace)) for env in MOVING]
        estimates += [stats.estimate(found[env][agent].trace.steps_to(0.99)) for env in COVERAGE]
        rows.append(
            _row((agent, *(f"{number(e.mean, 1)} ({between(e.low, e.high, 1)})" for e in estimates)), found, agent)
        )
    columns = [*(f"{env}, steps after a switch" for env in MOVING), *(f"{env}, steps to 99 %" for env in COVERAGE)]
    return Table("Steps of an episode after a switch of goals, and steps to cover a map", ("agent", *columns), rows)
