"""One self-contained HTML page from a results file: ours beside theirs, verdicts, figures and the commands.

Functions here compute what the page shows as tables, drawings and lines of text; the template lays it out. What is
unfinished or was not run is shown as such and gives no number.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from spie import stats
from spie.page import plots
from spie.paper import (
    CONTROLS,
    EXPERIMENTS,
    Experiment,
    Results,
    deep,
    dropin,
    get_experiment,
    grids,
    ledger,
    mountain_car,
    tabular,
    tuned,
)
from spie.paper import published as paper
from spie.runs.run import Run, load
from spie.search.select import Choice, Search
from spie.tasks.mdp import MDP
from spie.trace import Trace

THIN = "\N{NARROW NO-BREAK SPACE}"
CONTROL = "control, not in the paper"
FADE = 700  # steps after which a visit in the animation is a third as bright


class Span(NamedTuple):
    """A word in place of several cells."""

    text: str
    columns: int


class Row(NamedTuple):
    values: Sequence[Any]
    kind: str = ""  # "control" or "total"


class Table(NamedTuple):
    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    texts: int = 1  # so many columns are text, the others numbers


class Drawing(NamedTuple):
    caption: str
    svgs: Sequence[str]


class Lines(NamedTuple):
    title: str
    lines: Sequence[str]


Part = Table | Drawing | Lines


class Section(NamedTuple):
    """An experiment on the page."""

    name: str
    title: str
    command: str
    state: str  # "finished", "not run" or "unfinished: ..."
    facts: str = ""  # runs, seeds, time
    parts: Sequence[Part] = ()
    settings: Table | None = None


class Comparison(NamedTuple):
    """Our estimate of a published cell beside it, and how far they are apart with the printed spread read both ways."""

    ours: stats.Estimate
    published: paper.Cell
    as_sd: stats.Agreement
    as_se: stats.Agreement

    @property
    def verdict(self) -> str:
        if self.ours.n < ledger.FEWEST_SEEDS:
            return "too few seeds"
        return "agrees" if self.as_sd.agrees else "differs"


def number(value: Any, digits: int | None = None) -> str:
    """A number for reading: thin spaces between thousands, a dash for none; text stays as it is."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isinf(value):
        return str(value)
    if digits is None:
        digits = 0 if float(value).is_integer() or abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}".replace(",", THIN).replace("-", "\N{MINUS SIGN}")


def between(low: float, high: float, digits: int | None = None) -> str:
    return f"{number(low, digits)} – {number(high, digits)}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}{THIN}%"


# What a store has of an experiment


def is_finished(results: Results, name: str) -> bool:
    return bool(results.runs(name)) and results.missing(name) == 0


def traces(results: Results, name: str) -> dict[str, dict[str, tuple[Run, Trace]]]:
    """Run and trace by environment and agent; of a finished experiment."""
    found: dict[str, dict[str, tuple[Run, Trace]]] = {}
    for run in results.runs(name):
        if run.role == "search":
            continue
        trace = results.trace(name, run.env, run.agent)
        assert trace is not None
        found.setdefault(run.env, {})[run.agent] = run, trace
    return found


@functools.lru_cache(maxsize=16)  # of one report
def comparisons(results: Results, name: str) -> dict[tuple[str, str], Comparison]:
    """The published cells of an experiment beside ours; none unless it is finished."""
    found: dict[tuple[str, str], Comparison] = {}
    for env, agents in traces(results, name).items() if is_finished(results, name) else ():
        for agent, (_, trace) in agents.items():
            if (cell := EXPERIMENTS[name].published.get((env, agent))) is not None:
                ours, n = stats.estimate(trace.total_reward), paper.SEEDS_OF_TABLES_1_AND_3
                as_sd, as_se = stats.agreement(ours, *cell, n), stats.agreement(ours, *cell, n, "se")
                found[env, agent] = Comparison(ours, cell, as_sd, as_se)
    return found


def tally(results: Results) -> Table:
    """How many published cells agree, differ, were not run."""
    rows = []
    for e in EXPERIMENTS.values():
        if e.published and e.name != "readings":
            found = Counter(c.verdict for c in comparisons(results, e.name).values())
            judged = (found["agrees"], found["differs"])
            rows.append(Row((e.title, *judged, len(e.published) - sum(judged))))
    rows.append(Row(("Table 2: Atari scores, not run at the paper's budget", 0, 0, len(paper.TABLE_2))))
    total = [sum(row.values[i] for row in rows) for i in (1, 2, 3)]
    return Table("Table by table", ("table", "agree", "differ", "not run"), [*rows, Row(("all", *total), "total")])


# Tables


def reward_tables(results: Results, name: str) -> list[Part]:
    """A table for each environment: the cells, the controls, the ceiling; then why cells may differ."""
    compared = comparisons(results, name)
    columns = "agent;mean;paper;verdict;apart, sd;apart, se;± printed;sd;se;median;IQM;95 % interval;n".split(";")
    parts: list[Part] = []
    for env, agents in traces(results, name).items():
        rows = []
        for agent, (_, trace) in agents.items():
            e = stats.estimate(trace.total_reward)
            theirs: tuple[Any, ...] = (Span(CONTROL, 5),)
            if (c := compared.get((env, agent))) is not None:
                (mean, spread), apart = c.published, (number(z, 1) for z in (c.as_sd.z, c.as_se.z))
                theirs = (mean, c.verdict, *apart, spread)
            ours = (e.sd, e.se, e.median, e.iqm, between(e.low, e.high), e.n)
            rows.append(Row((agent, e.mean, *theirs, *ours), "control" if c is None else ""))
        if env in tabular.CHAINS:
            ceiling = tabular.best_return(tabular.CHAINS[env](), paper.CHAIN_STEPS)
            rows.append(Row(("best policy", ceiling, Span("ceiling, by dynamic programming", 11)), "total"))
        parts.append(Table(f"{env}: total reward in {number(paper.CHAIN_STEPS)} steps", columns, rows))
    lines = [reason(results, *cell, c) for cell, c in compared.items() if c.verdict == "differs"]
    return [*parts, Lines("Where ours differ", lines)] if lines else parts


def reason(results: Results, env: str, agent: str, cell: Comparison) -> str:
    """What the other readings of the open points do to a cell that differs."""
    mean, spread = cell.published
    said = f"{agent} on {env}: ours is {cell.ours.mean / mean:.2g} times the paper's."
    if cell.as_se.agrees:
        said += f" It agrees if ± {number(spread)} is a standard error."
    others = {
        name.partition(" ")[2]: c
        for (where, name), c in comparisons(results, "readings").items()
        if where == env and name.startswith(f"{agent} ")
    }
    if not others:
        return f"{said} Other readings are not compared yet: spie run readings."
    shown = {option: f"{option} ({number(c.ours.mean)}, {number(c.as_sd.z, 1)} apart)" for option, c in others.items()}
    agreeing = [shown[option] for option, c in others.items() if c.verdict == "agrees"]
    if agreeing:
        return f"{said} Another reading agrees: {'; '.join(agreeing)}."
    nearest = min(others, key=lambda option: abs(others[option].ours.mean - mean))
    return f"{said} None of {len(others)} other readings agrees; nearest: {shown[nearest]}."


def reading_tables(results: Results, name: str) -> list[Part]:
    """The published cells under every reading, and how many agree under each."""
    compared = comparisons(results, name)
    agrees = {cell: c.verdict == "agrees" for cell, c in compared.items()}
    options = list(dict.fromkeys(agent.partition(" ")[2] for _, agent in compared))
    rows = []
    for option in options[1:]:
        touched = [(env, agent) for env, agent in compared if agent.endswith(f" {option}")]
        both = [(agrees[env, agent.split()[0]], agrees[env, agent]) for env, agent in touched]
        here, there = map(sum, zip(*both, strict=True))
        rows.append(Row((option, len(both), here, there, both.count((False, True)), both.count((True, False)))))
    columns = ("reading", "cells it touches", "agree as read here", "agree under it", "explained", "broken")
    parts: list[Part] = [Table("Do other readings explain it? Cells that agree with the paper", columns, rows)]
    for env in tabular.CHAINS:
        rows = []
        for agent in (agent for where, agent in tabular.CELLS if where == env):
            cells = [(env, f"{agent} {option}".strip()) for option in options]
            found = ((compared.get(cell), " ✓" * agrees.get(cell, False)) for cell in cells)
            shown = (c and f"{number(c.ours.mean)} ({number(c.as_sd.z, 1)}){mark}" for c, mark in found)
            rows.append(Row((agent, tabular.CELLS[env, agent].mean, *shown)))
        header = ("agent", "paper", *(option or "as read here" for option in options))
        parts.append(Table(f"{env}: mean (standard errors apart), ✓ agrees", header, rows))
    return parts


def table_5(results: Results, name: str) -> list[Part]:
    """The paper's settings, those of the grid worlds among them."""
    names = ("alpha", "eta", "gamma", "gamma_sr", "eta_pr", "gamma_pr", "beta", "epsilon")
    cells = paper.TABLE_5 | {("grid worlds", "all"): paper.GRID_SETTINGS}
    rows = [Row((*key, *(f"{row[name]:g}" if name in row else None for name in names))) for key, row in cells.items()]
    return [Table("The paper's settings, as used here", ("environment", "agent", *names), rows, texts=2)]


def settings_table(runs: Sequence[Run]) -> Table:
    """The settings that differ between the runs, and in the caption those that do not."""
    rows = [_flat(dataclasses.asdict(run.settings)) | {"steps": run.steps, "episodes": run.episodes} for run in runs]
    names = dict.fromkeys(name for row in rows for name in row)  # kinds of agents have settings of their own
    varied = [name for name in names if len({repr(row.get(name)) for row in rows}) > 1]
    shared = ", ".join(f"{name} = {value}" for name, value in rows[0].items() if name not in varied)
    shown = [
        Row((run.env, run.agent, *(f"{v:g}" if isinstance(v := row.get(name), float) else v for name in varied)))
        for run, row in zip(runs, rows, strict=True)
    ]
    return Table(f"All runs: {shared}", ("environment", "agent", *varied), shown, texts=2)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings within settings, as those of an agent on an image task, beside the others."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


# Figures


def drawing(caption: str, *figures: Any) -> Drawing:
    return Drawing(caption, [plots.svg(figure) for figure in figures])


def coverage_curves(results: Results, name: str, shown: Callable[[str], bool] = lambda agent: True) -> Any:
    x = np.linspace(0, paper.COVERAGE_STEPS, 101)
    panels = []
    for env, agents in traces(results, name).items():
        chosen = {agent: 100 * trace.coverage(x) for agent, (_, trace) in agents.items() if shown(agent)}
        curves = {agent: plots.Curve(x, *stats.mean_curve(values)) for agent, values in chosen.items()}
        panels.append(plots.Panel(env, curves, "steps", "states seen, %"))
    return plots.curve_panels(panels)


def coverage_tables(results: Results, name: str) -> list[Part]:
    """States seen at the end, and the steps it took to see a share of them."""
    shares = (0.5, 0.9, 0.99)
    columns = ["agent", "seen at the end", "95 % interval", "sd"]
    columns += [column for share in shares for column in (f"steps to {percent(share)}", "seeds there")]
    parts: list[Part] = []
    for env, agents in traces(results, name).items():
        rows = []
        for agent, (run, trace) in agents.items():
            e = stats.estimate(100 * trace.coverage([run.steps])[:, 0])
            values = [agent, percent(e.mean / 100, 1), between(e.low, e.high, 1), number(e.sd, 1)]
            for share in shares:
                steps = ledger.steps_to(trace, share)
                median = float(np.median(steps))
                values.append(number(median, 0) if median <= run.steps else f"> {number(run.steps)}")
                values.append(percent(float((steps <= run.steps).mean())))
            rows.append(row_of(agent, values))
        parts.append(Table(f"{env}: coverage; steps are medians over all seeds", columns, rows))
    return parts


def row_of(agent: str, values: Sequence[Any]) -> Row:
    """A row without verdict; a control is marked in the name."""
    is_control = agent.partition(" ")[0] in CONTROLS
    return Row((f"{agent} ({CONTROL})", *values[1:]), "control") if is_control else Row(values)


def figure_1(results: Results, name: str) -> list[Part]:
    maps = {run.env: run.task for run in results.runs(name)}
    fixed = coverage_curves(results, name, lambda agent: agent.endswith("-fixed") or agent in ("sarsa", *CONTROLS))
    learned = coverage_curves(results, name, lambda agent: not agent.endswith("-fixed"))
    return [
        drawing(f"(a) The maps {', '.join(maps)}", *(plots.state_maps(mdp, {env: None}) for env, mdp in maps.items())),
        drawing("(b) Representations learned on the way; mean and 95 % interval", learned),
        drawing("(c) Fixed representations, those of the random walk", fixed),
        *coverage_tables(results, name),
    ]


def figure_7(results: Results, name: str) -> list[Part]:
    bounds = {agent: grids.optimistic(agent, grids.bonus_bound(agent)).q0 for agent in ("sarsa-sr", "sarsa-fr")}
    start = number(grids.optimistic("sarsa-sr").q0, 0)
    most = ", ".join(f"{number(q0, 0)} for {agent}" for agent, q0 in bounds.items())
    caption = f"Q starts at {start}, as in the paper; with -bound at the most that the bonus can add up to: {most}"
    return [drawing(caption, coverage_curves(results, name)), *coverage_tables(results, name)]


def shortest_paths(mdp: MDP) -> list[float]:
    """Expected steps of the shortest path from the start to the goal, in each phase."""
    lengths = []
    for ends in mdp.terminal:
        steps = np.where(ends, 0.0, np.inf)
        for _ in range(mdp.n_states):
            steps = np.minimum(steps, 1 + steps[mdp.next].min(axis=(1, 2)))
        lengths.append(float(mdp.start[mdp.start > 0] @ steps[mdp.start > 0]))
    return lengths


def figure_3(results: Results, name: str) -> list[Part]:
    """Steps against episodes; then their means, and the episodes that were cut off."""
    columns = ("agent", "steps an episode", "95 % interval", "sd", "median", "first 10", "last 10", "cut off", "n")
    panels: list[plots.Panel] = []
    parts: list[Part] = []
    for env, agents in traces(results, name).items():
        run = next(iter(agents.values()))[0]
        episodes, every = run.episodes or 0, run.task.episodes_per_phase
        x = np.arange(1, episodes + 1.0)
        curves, rows = {}, []
        for agent, (_, trace) in agents.items():
            steps = trace.episode_steps
            curves[agent] = plots.Curve(x, *stats.mean_curve(steps))
            e = stats.estimate(steps.mean(axis=1))
            ends = (float(steps[:, :10].mean()), float(steps[:, -10:].mean()))
            cut = f"{number(int(trace.truncated.sum()))} of {number(steps.size)}"
            rows.append(row_of(agent, (agent, e.mean, between(e.low, e.high), e.sd, e.median, *ends, cut, e.n)))
        lengths = sorted(set(shortest_paths(run.task)))
        names = ["", "shortest path " + ", ".join(map(number, lengths))]  # one label, at the uppermost
        paths = {" " * k + names[length == lengths[-1]]: length for k, length in enumerate(lengths)}
        switches = [k + 0.5 for k in range(every, episodes, every)] if every else []
        panels.append(plots.Panel(env, curves, "episode", "steps", paths, switches, log="y"))
        parts.append(Table(f"{env}: {episodes} episodes, cut off at {number(run.steps)} steps", columns, rows))
    caption = "Mean steps to the goal and 95 % interval; vertical lines: the goal moves"
    return [drawing(caption, plots.curve_panels(panels)), *parts]


BLOCK = 20  # episodes that a point of Figure 4's curves averages


def blocks(values: Any) -> Any:
    """Means over blocks of episodes, [seeds, episodes] to [seeds, blocks]."""
    return np.asarray(values, np.float64).reshape(len(values), -1, BLOCK).mean(axis=2)


def best_betas(agents: dict[str, tuple[Run, Any]]) -> list[str]:
    """Of every agent that was searched, the beta with the most episodes that reached the flag on the tuning seeds."""
    found = {agent: float(trace.terminated.mean()) for agent, (_, trace) in agents.items()}
    return [
        max((name for name in found if name.startswith(f"{a} ")), key=found.__getitem__) for a in mountain_car.TUNED
    ]


def flag_table(env: str, agents: dict[str, tuple[Run, Any]]) -> Table:
    columns = "agent;goals, %;95 % interval;first 100;last 100;steps an episode;first goal;seeds without;mean bonus"
    rows = []
    for agent, (_, trace) in agents.items():
        e = stats.estimate(100 * trace.terminated.mean(axis=1))
        first = trace.first_success[trace.first_success >= 0] + 1
        bonus = float(trace.episode_bonuses.sum() / max(1, trace.episode_steps.sum()))
        values = (
            agent, number(e.mean, 1), between(e.low, e.high, 1), percent(float(trace.terminated[:, :100].mean())),
            percent(float(trace.terminated[:, -100:].mean())), number(float(trace.episode_steps.mean()), 0),
            number(float(np.median(first)), 0) if len(first) else "never", len(trace.seeds) - len(first),
            f"{bonus:.2g}",
        )  # fmt: skip
        rows.append(row_of(agent, values))
    run, trace = next(iter(agents.values()))
    title = (
        f"{env}: {trace.episode_steps.shape[1]} episodes of at most {number(run.steps)} steps, {len(trace.seeds)} seeds"
    )
    return Table(title, columns.split(";"), rows)


def flag_curves(agents: dict[str, tuple[Run, Any]]) -> Any:
    """Steps, success and the sign and size of the bonus, against episodes."""
    curves: tuple[dict[str, plots.Curve], ...] = ({}, {}, {})
    for agent, (_, trace) in agents.items():
        x = BLOCK * np.arange(1, trace.episode_steps.shape[1] // BLOCK + 1)
        shown = [trace.episode_steps, 100.0 * trace.terminated]
        if agent.startswith("linear-q-sf"):
            shown.append(trace.episode_bonuses / np.maximum(1, trace.episode_steps))
        for of, values in zip(curves, shown, strict=False):
            of[agent] = plots.Curve(x, *stats.mean_curve(blocks(values)))
    titles = ("steps of an episode", "episodes that reach the flag", "mean intrinsic reward of a step, before beta")
    labels = ("steps", "%", "r_int")
    return plots.curve_panels(
        [plots.Panel(title, of, "episode", label) for title, of, label in zip(titles, curves, labels, strict=True)]
    )


def figure_4(results: Results, name: str) -> list[Part]:
    """The car, example features, curves with the paper's settings and with a beta that keeps the flag; the pendulum."""
    found = traces(results, name)
    car, best = found["mountain-car"], best_betas(found[mountain_car.TUNING])
    task, settings = mountain_car.TASKS["mountain-car"](), mountain_car.settings("linear-q-sf-pf")
    phi = settings.features(task, 0)(task.seen_over_view(40))
    maps = {f"feature {i}": phi[:, :, i] for i in range(8)}
    betas = ", ".join(f"{beta:g}" for beta in mountain_car.SMALL_BETAS)
    shown = [agent for agent in car if "beta=" not in agent]
    kept = {agent: car[agent] for agent in best}
    beta = paper.MOUNTAIN_CAR["beta"]
    everything: list[Any] = [trace for agents in found.values() for _, trace in agents.values()]
    failures = [line for trace in everything for line in trace.failures]
    return [
        drawing("(a) The task: rock up the hill to the flag; nothing is paid before", plots.mountain_car()),
        drawing("(b) Eight of 128 random Fourier features, seed 0", plots.space_maps(maps, task.view, task.labels)),
        drawing(
            f"(c) With the paper's beta of {number(beta)}: mean of {BLOCK} episodes and 95 % interval",
            flag_curves({agent: car[agent] for agent in (*mountain_car.AGENTS, "constant", "count")}),
        ),
        flag_table("The paper's settings, other readings and controls", {agent: car[agent] for agent in shown}),
        drawing(f"With the best beta of {betas} for each, chosen on other seeds", flag_curves(kept)),
        flag_table("Each with the best small beta", kept),
        flag_table("The search for it", found[mountain_car.TUNING]),
        flag_table("Another task, the pendulum", found["pendulum"]),
        Lines("Runs that overflowed", failures or ["none"]),
    ]


def figure_5(results: Results, name: str) -> list[Part]:
    return [drawing(env, plots.mdp_diagram(mdp())) for env, mdp in tabular.CHAINS.items()]


def figure_6(results: Results, name: str) -> list[Part]:
    """Mean visits up to each step, then how the agents move between the rooms."""
    (agents,) = traces(results, name).values()
    rows = []
    for agent, (_, trace) in agents.items():
        switches, idle = stats.estimate(ledger.switches(trace)), stats.estimate(ledger.idleness(trace))
        steps, share = ledger.all_stays(trace).T  # not a number where the room was never left
        stay = (float(np.median(steps)), None if np.isnan(share).any() else percent(share.mean()))
        values = (agent, switches.mean, between(switches.low, switches.high), *stay, idle.mean)
        rows.append(row_of(agent, (*values, between(idle.low, idle.high), percent(ledger.seen(trace).mean()))))
    visits = {agent: trace.snapshots.mean(axis=0) for agent, (_, trace) in agents.items()}
    maps = plots.heat_maps(results.runs(name)[0].task, visits, [number(step) for step in paper.FIGURE_6_STEPS])
    columns = "agent,room switches,95 % interval,median stay,room seen in a stay,idleness,95 % interval,states seen"
    caption = f"Moves between the rooms, {len(trace.paths)} recorded seeds"
    idle_said = "Idleness: mean time since a state's last visit, over the number of states. A perfect tour has 0.5."
    drawn = drawing(f"Mean visits after so many steps; {', '.join(CONTROLS)}: {CONTROL}", maps)
    return [drawn, Table(caption, columns.split(","), rows), Lines("", [idle_said])]


TABLE_1 = tuple(dict.fromkeys(agent for _, agent in paper.TABLE_1))


def tuned_chains(results: Results, name: str) -> list[Part]:
    """Who leads when all are tuned alike, how that compares with the paper's order, and what it depends on."""
    columns = (
        "agent;mean;95 % interval;of the ceiling;median;sd;best of the search;tried;printed settings;paper;tuned to"
    )
    parts: list[Part] = []
    for env, agents in traces(results, name).items():
        ceiling = tabular.best_return(tabular.CHAINS[env](), paper.CHAIN_STEPS)
        means = {agent: trace.total_reward.mean() for agent, (_, trace) in agents.items()}
        rows = []
        for agent in sorted(means, key=lambda agent: -means[agent]):
            if agent.endswith(tuned.UNTUNED):
                continue
            run, trace = agents[agent]
            e = stats.estimate(trace.total_reward)
            search, found = chain_search(results, env, agent)
            cell = tabular.CELLS.get((env, agent))
            ours = (e.mean, between(e.low, e.high), percent(e.mean / ceiling), e.median, e.sd, found.max(), len(search))
            theirs = (means.get(agent + tuned.UNTUNED), cell and cell.mean)
            values = (", ".join(f"{key} {getattr(run.settings, key):g}" for key in search.columns),)
            rows.append(row_of(agent, (agent, *ours, *theirs, *values)))
        rows.append(Row(("best policy", ceiling, Span("ceiling, by dynamic programming", 9)), "total"))
        searched = contests(results)[env, agent].rounds[0].seeds
        seeds = f"{number(len(trace.seeds))} fresh seeds; best of the search: {searched} seeds, flattering"
        parts += [Table(f"{env}: total reward, {seeds}", columns.split(";"), rows)]
        parts += [Lines(f"{env}: the order", order_lines(env, agents, means))]
    caption = "Best mean of the search for each value of a setting, the others free; {}"
    parts += [drawing(caption.format(env), sensitivity(results, env)) for env in tabular.CHAINS]
    return parts


@functools.lru_cache(maxsize=1)  # of one report
def contests(results: Results) -> dict[tuple[str, str], Choice]:
    return tuned.chain_contests(results.seeds["tuned"])


def chain_search(results: Results, env: str, agent: str) -> tuple[Search, Any]:
    """A search of `tuned` and the mean that it found for each of its settings."""
    contest = contests(results)[env, agent]
    return contest.searches[0], contest.searched(functools.partial(load, results.store))


def order_lines(env: str, agents: Mapping[str, tuple[Run, Trace]], means: Mapping[str, float]) -> list[str]:
    """The verdict on the paper's order of Table 1, pair by pair, and who leads of all."""

    def ahead(a: str, b: str) -> str:
        _, low, high = stats.difference(agents[a][1].total_reward, agents[b][1].total_reward)
        return "yes" if low > 0 else "no" if high < 0 else "undecided"

    theirs = sorted(TABLE_1, key=lambda agent: -paper.TABLE_1[env, agent].mean)
    ours = sorted((agent for agent in means if tuned.UNTUNED not in agent), key=lambda agent: -means[agent])
    pairs = {f"{a} above {b}": ahead(a, b) for a, b in itertools.combinations(theirs, 2)}
    counted = Counter(pairs.values())
    against = [pair for pair, found in pairs.items() if found == "no"]
    level = [agent for agent in ours[1:] if ahead(ours[0], agent) != "yes"]
    return [
        f"Printed: {', '.join(theirs)}. Tuned alike: {', '.join(agent for agent in ours if agent in TABLE_1)}.",
        f"Of {len(pairs)} pairs {counted['yes']} are as printed and {counted['undecided']} undecided; "
        f"the other way round: {', '.join(against) or 'none'}.",
        f"Of all agents and controls {ours[0]} earns most; not told apart from it: {', '.join(level) or 'none'}.",
    ]


def sensitivity(results: Results, env: str) -> Any:
    """The best mean that is left when one setting is held at a value."""
    searches = {agent: chain_search(results, env, agent) for agent in (*TABLE_1, *CONTROLS) if agent != "random"}
    panels = []
    for name in paper.SWEEP:
        curves = {}
        for agent, (search, means) in searches.items():
            if name in (columns := search.columns):
                x = np.unique(columns[name])
                best = np.array([means[columns[name] == value].max() for value in x])
                curves[agent] = plots.Curve(x, best, best, best)
        panels.append(plots.Panel(name, curves, "", "reward", log="" if name.startswith("gamma") else "x"))
    return plots.curve_panels(panels)


def tuned_maps(results: Results, name: str) -> list[Part]:
    """Steps to see 99 % with one setting for all maps: those of the search, and maps that it never saw."""
    found = traces(results, name)
    agents = list(dict.fromkeys(agent.removesuffix(tuned.UNTUNED) for agents in found.values() for agent in agents))
    maps = [f"{env}{' (unseen)' if env in tuned.UNSEEN else ''}" for env in found]
    parts: list[Part] = []
    for suffix, what in (("", "tuned alike"), (tuned.UNTUNED, "with the paper's one setting")):
        rows = []
        for agent in agents:
            cells = [found[env].get(agent + suffix) for env in found]
            if all(cells):
                steps = [float(np.median(ledger.steps_to(trace, 0.99))) for _, trace in filter(None, cells)]
                shown = (number(n, 0) if n <= paper.COVERAGE_STEPS else f"> {paper.COVERAGE_STEPS}" for n in steps)
                rows.append(row_of(agent, (agent, *shown)))
        parts.append(Table(f"Median steps to see 99 % of the states, {what}", ("agent", *maps), rows))
    lines = []
    for env, runs in found.items():
        steps_of = {agent: ledger.steps_to(runs[agent][1], 0.99) for agent in agents}
        order = sorted(agents, key=lambda agent: steps_of[agent].mean())
        shown = (f"{agent} {number(float(steps_of[agent].mean()), 0)}" for agent in order[:4])
        lines.append(f"{env}: {', '.join(shown)}")
    return [*parts, Lines("Tuned alike, the fastest four by mean steps", lines)]


def figure_2(results: Results, name: str) -> list[Part]:
    """The network, with the shapes that a state of four frames passes through."""
    try:
        layers = deep.network()
    except ImportError:
        return [Lines("", ['Drawing the network needs torch: pip install "spie-rl[deep]"'])]

    def branch(*places: str, last: str = "") -> list[plots.Layer]:
        found = [layers[place] for place in layers if place.startswith(places)]
        names = [layer.what for layer in found]
        names[-1] = last or names[-1]
        return [plots.Layer(name, layer.shape) for name, layer in zip(names, found, strict=True)]

    trunk = [plots.Layer("frames", deep.ATARI_SHAPE), *branch("encoder", last="FC, unit length: φ")]
    heads = {"Q": branch("q"), "ψ|": branch("psi"), "ξ|": branch("xi")}
    embedded, *decoder = branch(
        "decoder.features", "decoder.first", "decoder.second", "decoder.deconv", last="next frame"
    )
    embedded = embedded._replace(name="FC, times action")
    millions = sum(layer.parameters for layer in layers.values()) / 1e6
    caption = f"{millions:.2f} million parameters; ‖: no gradient goes back; φ and the action predict the next frame"
    return [drawing(caption, plots.network_diagram(trunk, heads, [embedded, *decoder]))]


def atari(results: Results, name: str) -> list[Part]:
    """Our scores within a budget beside those of the paper, which are of another."""
    printed = paper.TABLE_2 | paper.RECONSTRUCTION
    frames = get_experiment(name).frames
    comparable = frames >= deep.PAPER_FRAMES
    rows = []
    for env, agents in traces(results, name).items():
        for agent, (_, trace) in agents.items():
            values = deep.score(trace)
            ours = stats.estimate(values[~np.isnan(values)]) if not np.isnan(values).all() else None
            episodes = float((trace.episode_steps > 0).sum(axis=1).mean())
            mean = (None, None) if ours is None else (ours.mean, ours.sd)
            cell = printed[env, agent]
            rows.append(Row((env, agent, *mean, episodes, len(values), cell.mean, cell.spread)))
    budget = f"{number(frames)} frames, {number(rows[0].values[5])} seed(s); score: mean of the last 100 episodes."
    verdict = "" if comparable else f" Not comparable: the paper's agents had {number(deep.PAPER_FRAMES)} frames."
    columns = ("game", "agent", "ours", "sd", "episodes", "n", "paper", "± printed")
    return [Table(budget + verdict, columns, rows, texts=2)]


def pixels(results: Results, name: str) -> list[Part]:
    """Coverage and success on the image tasks; then every agent against every other."""
    measures = {"states seen, mean over steps": ledger.area, "success": deep.late_success}
    columns = ["agent", "states seen, mean over steps", "95 % interval", "goals found", "95 % interval"]
    columns += ["success in the last fifth", "95 % interval", "seeds that found the goal", "n"]
    curves: list[plots.Panel] = []
    parts: list[Part] = []
    verdicts: list[str] = []
    for env, agents in traces(results, name).items():
        steps = next(iter(agents.values()))[0].steps
        x = np.linspace(0, steps, 101)
        seen = {agent: plots.Curve(x, *stats.mean_curve(100 * t.coverage(x))) for agent, (_, t) in agents.items()}
        goals = {agent: plots.Curve(x, *stats.mean_curve(deep.goals(t, x))) for agent, (_, t) in agents.items()}
        curves.append(plots.Panel(env, seen, "steps", "states seen, %"))
        curves.append(plots.Panel(env, goals, "steps", "goals found so far"))
        rows = []
        for agent, (_, trace) in agents.items():
            values: list[Any] = [agent]
            for e, digits in (
                (stats.estimate(100 * ledger.area(trace)), 1),
                (stats.estimate(trace.total_reward), 1),
                (stats.estimate(100 * deep.late_success(trace)), 1),
            ):
                values += [number(e.mean, digits), between(e.low, e.high, digits)]
            rows.append(row_of(agent, (*values, percent(float((trace.total_reward > 0).mean())), e.n)))
        parts.append(Table(f"{env}: {number(steps)} steps; shares in percent", columns, rows))
        for measure, values_of in measures.items():
            rows = []
            for agent, (_, ours) in agents.items():
                found = [stats.improvement(values_of(ours), values_of(theirs)) for _, theirs in agents.values()]
                shown = [f"{p:.2f}{'*' if low > 0.5 or high < 0.5 else ''}" for p, low, high in found]
                shown[list(agents).index(agent)] = "–"
                rows.append(row_of(agent, (agent, *shown)))
            caption = f"{env}: chance that a seed of the row beats one of the column in {measure}; "
            caption += "* its 95 % interval leaves out 0.5"
            parts.append(Table(caption, ("agent", *agents), rows))
        rivals = {"no bonus": "dqn-mmc"} | {agent: agent for agent in agents if agent in CONTROLS}
        for agent in [agent for agent in agents if agent.startswith(("rnd", "dqn-s"))]:
            said = []
            for measure, values_of in measures.items():
                theirs = {name: values_of(agents[rival][1]) for name, rival in rivals.items()}
                said.append(f"{measure.partition(',')[0]} {against(values_of(agents[agent][1]), theirs)}")
            verdicts.append(f"{env}, {agent}: {'; '.join(said)}.")
    says = Lines("Against no bonus (DQN-MMC) and the controls", verdicts)
    return [drawing("Mean and 95 % interval", plots.curve_panels(curves)), says, *parts]


def against(ours: Any, rivals: Mapping[str, Any]) -> str:
    """Whom our seeds beat, lose to, or neither: by whether the 95 % interval of the chance of it leaves out 1/2."""
    said: dict[str, list[str]] = {}
    for rival, theirs in rivals.items():
        _, low, high = stats.improvement(ours, theirs)
        said.setdefault("above" if low > 0.5 else "below" if high < 0.5 else "undecided against", []).append(rival)
    return ", ".join(f"{verdict} {' and '.join(names)}" for verdict, names in said.items())


def animation(results: Results) -> dict[str, Any] | None:
    """SARSA-SRR between the two rooms, seed 0 of Figure 6: the map, its path and what is shown while it rests."""
    name, agent = "figure6", "sarsa-srr"
    trace = results.trace(name, grids.TRANSIENT_MAP, agent) if is_finished(results, name) else None
    if trace is None:
        return None
    mdp = results.runs(name)[0].task
    assert mdp.cells is not None
    s, room = ledger.places(trace.paths[0]), ledger.rooms(mdp)
    letters = {(0, 0): ".", (-1, 0): "u", (0, 1): "r", (1, 0): "d", (0, -1): "l"}
    last = np.full(mdp.n_states, -np.inf)
    np.maximum.at(last, s, np.arange(len(s)))
    brightness = np.exp((last - len(s) + 1) / FADE).round(3)
    cuts = [0, *(np.flatnonzero(np.diff(room[s])) + 1).tolist(), len(s)]
    return {
        "shape": mdp.shape,
        "squares": list(zip(*mdp.cells.T.tolist(), room.tolist(), brightness.tolist(), strict=True)),
        "start": int(s[0]),
        "end": int(s[-1]),
        "moves": "".join(letters[row, column] for row, column in np.diff(mdp.cells[s], axis=0).tolist()),
        "stays": [(int(room[s[a]]), a, b - a) for a, b in itertools.pairwise(cuts)],  # room, first step, length
        "fade": FADE,
    }


def drop_in(results: Results, name: str) -> list[Part]:
    """Seeds that solved each task, and how soon the goal was found."""
    columns = ("agent", "seeds that solved it", "seeds that found the goal", "steps until then, median", "at the goal")
    parts: list[Part] = []
    for env, agents in traces(results, name).items():
        rows = []
        for agent, (run, found) in agents.items():
            trace: Any = found  # an EpisodeTrace
            first = dropin.found(trace)
            soon = number(float(np.median(first[first >= 0])), 0) if (first >= 0).any() else None
            share = percent(float((trace.episode_rewards > dropin.GOAL).sum() / (trace.episode_steps > 0).sum()), 1)
            values = (agent, f"{dropin.solved(trace).sum()} of {run.n_seeds}", int((first >= 0).sum()), soon, share)
            rows.append(Row(values, "control" if agent.partition(" ")[0] in CONTROLS else ""))
        parts.append(Table(f"{env}: {number(run.steps)} steps a seed", columns, rows))
    lines = [
        f"A seed has solved a task if {dropin.ENOUGH} of its last {dropin.LAST} episodes reached the goal. Beta falls "
        "to 0 in the course of a run, and so does epsilon of Q-learning. At the goal: share of all episodes.",
        "A cost makes an agent try what it has not tried, and it makes the end of an episode worth having: on the "
        "frozen lake, where holes end episodes, agents that pay for every step learn to fall in.",
    ]
    return [*parts, Lines("How to read it", lines)]


# The page

BUILDERS: dict[str, Callable[[Results, str], list[Part]]] = {
    "readings": reading_tables,
    "table5": table_5,
    "figure1": figure_1,
    "figure2": figure_2,
    "figure3": figure_3,
    "figure4": figure_4,
    "figure5": figure_5,
    "figure6": figure_6,
    "figure7": figure_7,
    "tuned": tuned_chains,
    "tuned-grids": tuned_maps,
    "pixels": pixels,
    "pixels-paper": pixels,
    "dropin": drop_in,
    "table2": atari,
    "recon": atari,
}


def section(results: Results, e: Experiment) -> Section:
    """An experiment with its parts, or the command that is still to be run."""
    build = BUILDERS.get(e.name.partition("@")[0], reward_tables)
    if not e.runs(1):
        return Section(e.name, e.title, "", "finished", parts=build(results, e.name))
    runs, missing = results.runs(e.name), results.missing(e.name)
    command = f"spie run {e.name} --seeds {results.seeds.get(e.name, e.seeds)}"
    if not runs:
        return Section(e.name, e.title, command, "not run")
    if missing:
        state = f"unfinished: {len(runs) - missing} of {len(runs)} runs stored, continue with"
        return Section(e.name, e.title, command, state)
    seconds = sum(results.store.info(run.id)["seconds"] for run in runs)
    single = [run for run in runs if run.role != "search"]
    facts = f"{len(single)} runs of {number(single[0].n_seeds)} seeds, {number(seconds, 1)} s"
    if len(single) < len(runs):
        tried = sum(run.settings.n_settings for run in runs if run.role == "search")
        facts += f", the search over {number(tried)} settings included"
    return Section(e.name, e.title, command, "finished", facts, build(results, e.name), settings_table(single))


def other_budgets(results: Results) -> list[str]:
    """What was asked for with a number of frames of its own."""
    return [name for name in results.seeds if "@" in name]


def page(results: Results) -> str:
    """The whole page as text."""
    judgements = ledger.judge(results)
    counted = Counter(judgement.verdict for judgement in judgements)
    stored = [run for name in EXPERIMENTS if is_finished(results, name) for run in results.runs(name)]
    versions = {tuple(sorted(results.store.info(run.id)["versions"].items())) for run in stored}
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spie.page"), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["number"] = number
    return environment.get_template("report.html").render(
        tally=tally(results),
        verdicts=[(verdict, counted[verdict]) for verdict in ledger.VERDICTS if counted[verdict]],
        sections=[section(results, get_experiment(name)) for name in [*EXPERIMENTS, *other_budgets(results)]],
        judgements=judgements,
        animation=animation(results),
        apart=stats.STANDARD_ERRORS,
        paper_seeds=paper.SEEDS_OF_TABLES_1_AND_3,
        versions=[", ".join(map(" ".join, found)) for found in sorted(versions)],
    )


def write(results: Results, path: Path) -> None:
    """Write the page whole, or leave what was there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8") as file:  # first, so that a wrong path is no waste of time
            file.write(page(results))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}); give another with -o") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
