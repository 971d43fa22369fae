"""Coverage with every agent and every control tuned alike: a contest for each agent, the same settings for all maps."""

import numpy as np

from spie.paper import published as paper
from spie.paper.contenders import label
from spie.paper.contests import PRINTED, contest, contest_experiment, winner
from spie.paper.experiment import Experiment, coverage_steps
from spie.paper.grid_worlds import COVERAGE_MAPS, controls, settings
from spie.paper.measures import steps_to
from spie.paper.printed_grid import printed_grid
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import SectionPart, Table, Text, agent_row, number
from spie.runs.run import Role, Run
from spie.search.select import Choice, Load, Search
from spie.tasks import grid, maze

AGENTS = tuple(dict.fromkeys(agent for _, agent in paper.TABLE_1 | paper.TABLE_3))
THREE_ROOMS = """\
S....#....#....
.....#.........
.....#....#....
..........#....
.....#....#....
"""
UNSEEN = {"cluster-simple-large": "cluster-simple-large", "three-rooms": THREE_ROOMS, "maze": maze(15, 15)}


def contests(seeds: int) -> dict[str, Choice]:
    """By agent."""
    agents = {agent: settings(agent) for agent in AGENTS} | controls()
    maps = {name: grid(name) for name in COVERAGE_MAPS}
    found = {}
    for agent, s in agents.items():
        tried = printed_grid(agent, s, "coverage")
        searches = [Search(n, agent, tried, mdp, paper.COVERAGE_STEPS, scale=mdp.n_states) for n, mdp in maps.items()]
        found[agent] = contest(searches, min(5, seeds), min(50, seeds), seeds)
    return found


def confirmation(seeds: int, load: Load) -> list[Run]:
    """The winners and the paper's settings, on the maps of the search and on the unseen ones."""
    maps = {name: grid(name) for name in COVERAGE_MAPS} | {n: grid(text) for n, text in UNSEEN.items()}
    planned = []
    for agent, choice in contests(seeds).items():
        best, steps, confirm = winner(choice, load), paper.COVERAGE_STEPS, choice.confirm
        role: Role = "paper" if agent in AGENTS else "control"
        for name, mdp in maps.items():
            planned.append(Run(name, agent, best, mdp, steps, confirm, role=role))
            if agent in AGENTS:
                planned.append(Run(name, agent, settings(agent), mdp, steps, confirm, variant=PRINTED))
    return planned


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Steps to see 99 % with the same settings for all maps: those of the search, and maps that it never saw."""
    found = results.found(experiment.name)
    control = {run.agent: run.role == "control" for cells in found.values() for run, _ in cells.values()}
    maps = [f"{env}{' (unseen)' if env in UNSEEN else ''}" for env in found]
    parts: list[SectionPart] = []
    for variant, what in (({}, "tuned alike"), (PRINTED, "with the paper's settings")):
        rows = []
        for agent in control:
            traces = [cells[name].trace for cells in found.values() if (name := label(agent, variant)) in cells]
            if traces:
                steps = [float(np.median(steps_to(trace, 0.99))) for trace in traces]
                shown = (number(n, 0) if n <= paper.COVERAGE_STEPS else f"> {paper.COVERAGE_STEPS}" for n in steps)
                rows.append(agent_row((agent, *shown), control[agent]))
        parts.append(Table(f"Median steps to see 99 % of the states, {what}", ("agent", *maps), rows))
    lines = []
    for env, cells in found.items():
        means = {agent: float(steps_to(cells[agent].trace, 0.99).mean()) for agent in control}
        fastest = sorted(means, key=lambda agent: means[agent])[:4]
        lines.append(f"{env}: {', '.join(f'{agent} {number(means[agent], 0)}' for agent in fastest)}")
    return [*parts, Text("Tuned alike, the fastest four by mean steps", lines)]


TITLE = "Coverage with the same tuned settings for all maps, also on maps that no tuning saw"
register_experiment(
    contest_experiment("tuned-grids", TITLE, section, contests, confirmation, seeds=200, measure=coverage_steps)
)
