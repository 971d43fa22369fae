"""What a sweep is over: an experiment, or a task and agents by name; where no values are given, the paper's grid."""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spie.agents.base import Keep
from spie.agents.registry import agent as named
from spie.errors import as_names, check_whole, is_row, told, unknown
from spie.notebook import progress_below
from spie.paper import chains, grid_worlds
from spie.paper import published as paper
from spie.paper.contenders import label
from spie.paper.printed_grid import printed_grid
from spie.paper.registry import EXPERIMENTS, get_experiment
from spie.runs.run import Run
from spie.search import sweep as search_sweep
from spie.search.grid import SettingsGrid, usual_measure
from spie.search.select import Search, usual_length
from spie.search.sweep import Plan, SweepTable
from spie.tasks.registry import find
from spie.tasks.registry import names as task_names
from spie.tasks.registry import task as named_task


def sweep(
    where: Any,
    agents: str | Iterable[str] = (),
    *,
    steps: int | None = None,
    episodes: int | None = None,
    seeds: int = 20,
    top: int = 5,
    confirm: int = 200,
    halving: bool = False,
    budget: float | None = None,
    on: str = "serial",
    address: str | None = None,
    results: Any = None,
    yes: bool = False,
    progress: search_sweep.Progress | None = None,
    **values: Any,
) -> SweepTable:
    """Try every combination of `values` for each agent, and confirm the best on fresh seeds.

        spie.sweep("riverswim", "sarsa-srr", alpha=[0.05, 0.1], beta=[1, 10, 100])

    where: a task, by name or as it is, a map, or an experiment, whose tasks, steps and settings are then used.
    agents: by name; without any, those of the experiment, else SARSA-SRR.
    values: settings and the values to try; without any, the paper's grid.
    top, confirm: the best `top` settings of each agent run again on `confirm` seeds that the search did not use.
    halving: successive halving, which gives most settings only a ninth of the seeds.
    budget: seconds; where they do not suffice, OutOfTime is raised, and the same call continues.
    results: the file that keeps what was run, as for `spie run`; the same call later is instant.
    yes: go on where the grid is very large.

    steps, episodes, seeds: of each run of the search. on, address: where it runs, as for `spie run`.
    progress: told how much is done. Returns a table. Raises ValueError for settings that are not there.

    >>> table = spie.sweep("cluster-simple", "sarsa-srr", beta=[1.0, 10.0], steps=300, seeds=3, top=1, confirm=3)
    >>> "beta" in str(table)
    True
    """
    progress = progress or progress_below("sweep")
    how = Plan(seeds, top, confirm, halving, budget, on, address, results, yes, progress)
    several = {name: _several(name, given) for name, given in values.items()}
    return search_sweep.sweep(searches(where, as_names("agents", agents), several, steps, episodes), how)


def _several(name: str, values: Any) -> tuple[Any, ...]:
    """One value or several, each once."""
    try:
        found = tuple(dict.fromkeys(values)) if is_row(values) else (values,)
    except TypeError:
        raise ValueError(f"{name} must be a value or several, not {told(values)}") from None
    if not found:
        raise ValueError(f"{name} has no values to try; give one, or leave it out")
    return found


def searches(
    where: Any,
    agents: Sequence[str],
    values: Mapping[str, tuple[Any, ...]],
    steps: int | None = None,
    episodes: int | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> list[Search]:
    """The searches that a sweep consists of: one for each task and agent. options: of a task that is given by name."""
    for name, value in (("steps", steps), ("episodes", episodes)):
        if value is not None:
            check_whole(name, value)
    experiment = isinstance(where, str) and where in EXPERIMENTS
    if experiment and options:
        raise ValueError(f"{where} is an experiment, which has its tasks; leave out --task")
    length = (steps, episodes)
    cells = _of_experiment(where, agents, *length) if experiment else _of_task(where, agents, *length, options)
    for name in values:
        if name in paper.SWEEP and not any(name in run.settings.tuning_ranges(run.task) for run in cells):
            names = ", ".join(dict.fromkeys(run.agent for run in cells))
            uses = ", ".join(cells[0].settings.tuning_ranges(cells[0].task))
            raise ValueError(f"{names} has no use for {name}; it uses {uses}")
    return [_search(run, values) for run in cells]


def _search(run: Run, values: Mapping[str, tuple[Any, ...]]) -> Search:
    measure, note = usual_measure(run.task, run.episodes), ""
    if values:
        tried, note = _grids(run, values, measure)
    elif run.settings.kind == "table":
        tried = printed_grid(run.agent, run.settings, measure)
    else:
        raise ValueError(f"the paper has no grid for {run.agent}; give values to try, as in alpha=0.1,0.5")
    return Search(run.env, label(run.agent, run.variant), tried, run.task, run.steps, run.episodes, note=note)


def _grids(run: Run, values: Mapping[str, tuple[Any, ...]], measure: str) -> tuple[tuple[SettingsGrid, ...], str]:
    """A grid, or one for each reward where that varies, of what makes a difference; and what was left out, in words."""
    first = {name: some[0] for name, some in values.items() if some and name != "reward"}
    grids, note = [], ""
    for reward in values.get("reward", (None,)):
        base = run.settings if reward is None else SettingsGrid(run.settings, (("reward", (reward,)),)).base
        used = base.tuning_ranges(run.task)
        axes = {name: some for name, some in values.items() if name not in paper.SWEEP or name in used}
        if reward is not None:
            axes["reward"] = (reward,)
        merged = axes.get("beta", ())
        varied = SettingsGrid(base, tuple(axes.items()), measure).variants()
        free = all(isinstance(one.beta, float | int) and one.beta > 0 and one.is_scale_free(run.task) for one in varied)
        if len(merged) > 1 and free:
            axes["beta"] = merged[:1]
            note = f"{run.task.name} pays nothing, so that all values of beta are the same: beta={merged[0]:g} was run"
        left = tuple((name, (value,)) for name, value in first.items() if name not in axes)
        grids.append(SettingsGrid(SettingsGrid(base, left).base, tuple(axes.items()), measure))
    return tuple(grids), note


def _of_experiment(name: str, agents: Sequence[str], steps: int | None, episodes: int | None) -> list[Run]:
    """The runs of an experiment with one seed; those of a search of its own are not searched again."""
    runs = [run for run in get_experiment(name).runs(1) if run.role != "search"]
    if not runs:
        raise ValueError(f"{name} has no settings to vary; sweep a task, such as riverswim")
    known = list(dict.fromkeys(run.agent for run in runs))
    for agent in agents:
        if agent not in known:
            raise unknown(f"agent in {name}", agent, known)
    envs = list(dict.fromkeys(run.env for run in runs))
    runs = sorted((run for run in runs if not agents or run.agent in agents), key=lambda run: envs.index(run.env))
    return [
        dataclasses.replace(run, steps=steps or run.steps, episodes=episodes or run.episodes, keep=Keep())
        for run in runs
    ]


def _of_task(
    where: Any, agents: Sequence[str], steps: int | None, episodes: int | None, options: Mapping[str, Any]
) -> list[Run]:
    """One run, with an agent's own settings, for each agent; controls have those that the paper's task asks for."""
    chosen = list(agents) or ["sarsa-srr"]
    task, cap = _task(where, named(chosen[0]).kind, options) if isinstance(where, str) else (where, None)
    others: Mapping[str, Any] = {}
    if task.kind == "table":
        chain = task.name in chains.CHAINS
        others = chains.controls(task.name) if chain else grid_worlds.controls()
        steps = steps or (paper.CHAIN_STEPS if chain else paper.COVERAGE_STEPS)
    length, episodes = usual_length(task.kind, cap, steps, episodes)
    settings = {agent: others.get(agent) or named(agent, task) for agent in chosen}
    return [Run(task.name, agent, s, task, length, 1, episodes) for agent, s in settings.items()]


def _task(name: str, kind: Any, options: Mapping[str, Any]) -> tuple[Any, int | None]:
    """A task by name, and the cap of its episodes."""
    try:
        cap = find(name, kind).max_steps
    except ValueError as error:
        if os.path.exists(name):
            raise
        if name in task_names():
            raise ValueError(f"{name} is no task of kind {kind}; give an agent that runs on it with --agent") from error
        raise unknown("experiment, task, map or file", name, [*EXPERIMENTS.names(), *task_names(kind)]) from error
    return named_task(name, kind, **options), cap
