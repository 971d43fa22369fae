"""Deep agents on small image tasks, many seeds side by side; and with the bonus as the paper pays it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.agents.registry import agent as named
from spie.paper.experiment import Experiment, in_blocks, states_seen
from spie.paper.measures import area
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.sections import (
    CurvePanels,
    Panel,
    SectionPart,
    Table,
    Text,
    agent_row,
    between,
    mean_curve,
    number,
    percent,
)
from spie.runs.run import Run
from spie.tasks.registry import task as known_task
from spie.trace import Trace

STEPS = {"four-rooms": 30_000, "cluster-hard": 40_000}  # by task
BLOCK = 10  # seeds that train side by side in one run; what ships grows by as many
NO_BONUS, BONUSES = ("dqn", "dqn-mmc"), ("rnd", "dqn-sr", "dqn-sf-pf")
CONTROLS = {"constant": "dqn-constant", "count": "dqn-count"}  # by the name that they have here
PRINTED = {"bonus": "printed"}  # beta, scale and clipping as the paper has them
PRINTED_SETTINGS: dict[str, Any] = {"beta": 0.07, "scale": "none", "clip": True}

# The other reading of every open point of the deep agent that these tasks and this network can show.
READINGS: tuple[dict[str, Any], ...] = (
    {"pf_reads": "target"}, {"sf_start": "s_next"}, {"relu_features": True}, {"bonus_from": "start"},
    {"sf_pf": "printed"}, {"psi": "state-action"}, {"norm": "l2"}, {"bonus_at": "sampling"},
)  # fmt: skip
# And of RND: a predictor that learns ten times as fast, and the intrinsic value apart, over the ends of episodes.
RND_READINGS: tuple[dict[str, Any], ...] = ({"rnd_rate": 5e-3}, {"value_heads": "two"})

Values = Callable[[Trace], NDArray[Any]]


def runs(seeds: int) -> list[Run]:
    """The paper's five agents and two controls, with the settings for small tasks."""
    planned = []
    for task in STEPS:
        planned += [_run(task, seeds, agent, agent) for agent in NO_BONUS + BONUSES]
        planned += [_run(task, seeds, name, agent, role="control") for name, agent in CONTROLS.items()]
    return planned


def printed_runs(seeds: int) -> list[Run]:
    """SF-PF with the bonus as the paper pays it, beside some agents of `runs`, whose runs these are."""
    shared = [run for run in runs(seeds) if run.agent in ("dqn-mmc", "dqn-sf-pf", *CONTROLS)]
    planned = []
    for task in STEPS:
        planned += [run for run in shared if run.env == task]
        planned.append(_run(task, seeds, "dqn-sf-pf", "dqn-sf-pf", PRINTED_SETTINGS, variant=PRINTED))
    return planned


def reading_runs(seeds: int) -> list[Run]:
    """SF-PF and RND as read here, their rivals without bonus, and both under each other reading: on four-rooms."""
    shown = (*NO_BONUS, "dqn-sf-pf", "rnd")
    planned = [run for run in runs(seeds) if run.env == "four-rooms" and run.agent in shown]
    for agent, readings in {"dqn-sf-pf": READINGS, "rnd": RND_READINGS}.items():
        planned += [_run("four-rooms", seeds, agent, agent, one, variant=one, role="reading") for one in readings]
    return planned


def _run(env: str, seeds: int, name: str, agent: str, changes: Mapping[str, Any] | None = None, **rest: Any) -> Run:
    s = named(agent, preset="small", **changes or {})
    return Run(env, name, s, known_task(env, "images"), STEPS[env], seeds, **rest)


def late_success(trace: Trace) -> NDArray[np.float64]:
    """Of the episodes that end in the last fifth of the steps, the share that reach the goal [seeds]."""
    assert trace.episode_rewards is not None
    ends = np.cumsum(trace.episode_steps, axis=1)
    late = (trace.episode_steps > 0) & (ends > 0.8 * trace.steps[:, None])
    return np.asarray((late & (trace.episode_rewards > 0)).sum(axis=1) / np.maximum(late.sum(axis=1), 1))


def goals(trace: Trace, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Goals reached by each of the given steps [seeds, len(steps)]."""
    assert trace.episode_rewards is not None
    ends = np.where(trace.episode_rewards > 0, np.cumsum(trace.episode_steps, axis=1), np.inf)
    return np.array([np.searchsorted(np.sort(row), steps, side="right") for row in ends], np.float64)


# The page


MEASURES: dict[str, Values] = {"states seen": area, "success": late_success}  # of states: mean over steps


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Coverage and success on the image tasks; then every agent against every other."""
    panels: list[Panel] = []
    tables: list[SectionPart] = []
    verdicts: list[str] = []
    for env, cells in results.found(experiment.name).items():
        panels += _panels(env, cells)
        tables += [_table(env, cells), *(_against_each_other(env, cells, measure) for measure in MEASURES)]
        verdicts += _verdicts(env, cells)
    says = Text(
        "Against no bonus (DQN-MMC; DQN where, as in RND, there is no Monte-Carlo part) and the controls", verdicts
    )
    return [CurvePanels("Mean and 95 % interval", panels), says, *tables]


def _panels(env: str, cells: Mapping[str, Stored]) -> list[Panel]:
    x = np.linspace(0, STEPS[env], 101)
    seen = {name: mean_curve(x, 100 * one.trace.coverage(x), one.look) for name, one in cells.items()}
    found = {name: mean_curve(x, goals(one.trace, x), one.look) for name, one in cells.items()}
    return [Panel(env, seen, "steps", "states seen, %"), Panel(env, found, "steps", "goals found so far")]


def _table(env: str, cells: Mapping[str, Stored]) -> Table:
    columns = ["agent", "states seen, mean over steps", "95 % interval", "goals found", "95 % interval"]
    columns += ["success in the last fifth", "95 % interval", "seeds that found the goal", "n"]
    rows = []
    for name, (run, trace) in cells.items():
        values: list[Any] = [name]
        for measured in (100 * area(trace), trace.total_reward, 100 * late_success(trace)):
            e = stats.estimate(measured)
            values += [number(e.mean, 1), between(e.low, e.high, 1)]
        found = percent(float((trace.total_reward > 0).mean()))
        rows.append(agent_row((*values, found, e.n), run.role == "control"))
    return Table(f"{env}: {number(STEPS[env])} steps; shares in percent", columns, rows)


def _against_each_other(env: str, cells: Mapping[str, Stored], measure: str) -> Table:
    values = {name: MEASURES[measure](trace) for name, (_, trace) in cells.items()}
    rows = []
    for name, (run, _) in cells.items():
        found = [stats.improvement(values[name], theirs) for theirs in values.values()]
        shown = [f"{p:.2f}{'*' if low > 0.5 or high < 0.5 else ''}" for p, low, high in found]
        shown[list(cells).index(name)] = "–"
        rows.append(agent_row((name, *shown), run.role == "control"))
    caption = f"{env}: chance that a seed of the row beats one of the column in {measure}; "
    return Table(caption + "* its 95 % interval leaves out 0.5", ("agent", *cells), rows)


def _verdicts(env: str, cells: Mapping[str, Stored]) -> list[str]:
    """A line for every agent with a bonus."""
    controls = [name for name, (run, _) in cells.items() if run.role == "control"]
    lines = []
    for name, (run, trace) in cells.items():
        bare = "dqn-mmc" if run.settings.mmc else "dqn"  # the same agent without its bonus
        rivals = [who for who in (bare, *controls) if who in cells]  # what ships may be unfinished
        if run.agent in BONUSES and rivals:
            said = []
            for measure, values in MEASURES.items():
                theirs = {f"no bonus ({who})" if who == bare else who: values(cells[who].trace) for who in rivals}
                said.append(f"{measure} {against(values(trace), theirs)}")
            lines.append(f"{env}, {name}: {'; '.join(said)}.")
    return lines


def against(ours: Any, rivals: Mapping[str, Any]) -> str:
    """Whom our seeds beat, lose to, or neither: by whether the 95 % interval of the chance of it leaves out 1/2."""
    said: dict[str, list[str]] = {}
    for rival, theirs in rivals.items():
        _, low, high = stats.improvement(ours, theirs)
        said.setdefault("above" if low > 0.5 else "below" if high < 0.5 else "undecided against", []).append(rival)
    return "; ".join(f"{verdict} {', '.join(names)}" for verdict, names in said.items())


HOW: dict[str, Any] = {"seeds": 20, "measure": states_seen, "long": True, "on": "processes", "grows": True}
for name, title, planned in (
    ("pixels", "Deep agents on small image tasks (not in the paper)", runs),
    ("pixels-paper", "The same with the bonus as the paper pays it: beta .07, not scaled, clipped", printed_runs),
    ("pixels-readings", "DQN-SF-PF and RND on four-rooms under other readings of the open points", reading_runs),
):
    register_experiment(Experiment(name, title, section, in_blocks(planned, BLOCK), ships=section, **HOW))
