"""Tables 1, 3 and 4 with every agent and every control tuned alike: a contest for each agent and chain."""

import functools
import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from spie import stats
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.chains import CELLS, CHAINS, best_return, controls, earns, settings
from spie.paper.claims import Claim
from spie.paper.contenders import CONTROLS, Contender, label, of
from spie.paper.contests import PRINTED, contest, contest_experiment, winner
from spie.paper.experiment import Experiment
from spie.paper.measures import together
from spie.paper.printed_grid import printed_grid
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.rules import MORE, NO_LESS
from spie.paper.sections import (
    Curve,
    CurvePanels,
    Panel,
    Row,
    SectionPart,
    Span,
    Table,
    Text,
    agent_row,
    between,
    number,
    percent,
)
from spie.runs.run import Role, Run, load
from spie.search.select import Choice, Load, Search

AGENTS = tuple(dict.fromkeys(agent for _, agent in CELLS))
TABLE_1 = tuple(dict.fromkeys(agent for _, agent in paper.TABLE_1))
SRR = Contender("tuned", "sarsa-srr")


def agents(env: str) -> dict[str, Sarsa]:
    """The agents of Tables 1, 3 and 4 and the controls, with the paper's settings or SARSA-SRR's."""
    return {agent: settings(env, agent) for agent in AGENTS} | controls(env)


def contests(seeds: int) -> dict[tuple[str, str], Choice]:
    """By chain and agent."""
    found = {}
    for env, build in CHAINS.items():
        mdp = build()
        for agent, s in agents(env).items():
            search = Search(env, agent, printed_grid(agent, s), mdp, paper.CHAIN_STEPS)
            found[env, agent] = contest([search], min(20, seeds), min(200, seeds), seeds)
    return found


def confirmation(seeds: int, load: Load) -> list[Run]:
    """The winners, and the printed settings on the same seeds."""
    planned = []
    for (env, agent), choice in contests(seeds).items():
        mdp, steps = choice.searches[0].task, choice.searches[0].steps
        role: Role = "paper" if agent in AGENTS else "control"
        planned.append(Run(env, agent, winner(choice, load), mdp, steps, choice.confirm, role=role))
        if agent in AGENTS:
            planned.append(Run(env, agent, settings(env, agent), mdp, steps, choice.confirm, variant=PRINTED))
    return planned


# fmt: off
CLAIMS = (
    Claim("tuned-best", "Section 4", "Table 1", "Tuned alike, SARSA-SRR earns more than all other agents of Table 1.",
          "mean reward over that of the others, every agent tuned over the same grid, on fresh seeds: more",
          earns(SRR, *of("tuned", "sarsa", "sarsa-sr", "sarsa-fr", "sarsa-sr-pr"), **MORE), ours=True),
    Claim("tuned-best-of-controls", "Section 4", "Table 1",
          "Tuned alike, SARSA-SRR earns more than agents without representation.",
          "as tuned-best, against the controls", earns(SRR, *of("tuned", *CONTROLS), **MORE), ours=True,
          controls=True),
    Claim("table5-best", "Appendix E", "Table 5", "The settings of Table 5 are the best of a sweep.",
          "mean reward with them over that with the best of our sweep, on fresh seeds: no less",
          together(*(earns(Contender("tuned", agent, PRINTED), Contender("tuned", agent), what=agent, **NO_LESS)
                     for agent in dict.fromkeys(agent for _, agent in paper.TABLE_5)))),
)
# fmt: on


# The page


COLUMNS = "agent;mean;95 % interval;of the ceiling;median;sd;best of the search;tried;printed settings;paper;tuned to"


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Who leads when all are tuned alike, how that compares with the paper's order, and what it depends on."""
    parts: list[SectionPart] = []
    for env, cells in results.found(experiment.name).items():
        parts += [_table(results, env, cells), Text(f"{env}: the order", order_lines(env, cells))]
    caption = "Best mean of the search for each value of a setting, the others free; {}"
    return parts + [CurvePanels(caption.format(env), sensitivity(results, env)) for env in CHAINS]


def _table(results: Results, env: str, cells: Mapping[str, Stored]) -> Table:
    ceiling = best_return(CHAINS[env](), paper.CHAIN_STEPS)
    means = {name: trace.total_reward.mean() for name, (_, trace) in cells.items()}
    rows = []
    for agent in tuned_order(cells):
        run, trace = cells[agent]
        e = stats.estimate(trace.total_reward)
        choice, found = searched(results, env, agent)
        cell = CELLS.get((env, agent))
        ours = (e.mean, between(e.low, e.high), percent(e.mean / ceiling), e.median, e.sd, found.max(), len(choice))
        theirs = (means.get(label(agent, PRINTED)), cell and cell.mean)
        values = (", ".join(f"{key} {getattr(run.settings, key):g}" for key in choice.searches[0].columns),)
        rows.append(agent_row((agent, *ours, *theirs, *values), run.role == "control"))
    rows.append(Row(("best policy", ceiling, Span("ceiling, by dynamic programming", 9)), "total"))
    seeds = f"{number(len(trace.seeds))} fresh seeds; best of the search: {choice.rounds[0].seeds} seeds, flattering"
    return Table(f"{env}: total reward, {seeds}", COLUMNS.split(";"), rows)


def tuned_order(cells: Mapping[str, Stored]) -> list[str]:
    """The tuned agents and controls, the best first."""
    means = {run.agent: trace.total_reward.mean() for run, trace in cells.values() if not run.variant}
    return sorted(means, key=lambda agent: -means[agent])


def searched(results: Results, env: str, agent: str) -> tuple[Choice, Any]:
    """The contest of an agent, and the mean that its search found for each of the settings."""
    choice = results.once(_contests)[env, agent]
    return choice, choice.searched(functools.partial(load, results.store))


def _contests(results: Results) -> dict[tuple[str, str], Choice]:
    return contests(results.seeds["tuned"])


def order_lines(env: str, cells: Mapping[str, Stored]) -> list[str]:
    """The verdict on the paper's order of Table 1, pair by pair, and who leads of all."""

    def ahead(a: str, b: str) -> str:
        _, low, high = stats.difference(cells[a].trace.total_reward, cells[b].trace.total_reward)
        return "yes" if low > 0 else "no" if high < 0 else "undecided"

    theirs = sorted(TABLE_1, key=lambda agent: -paper.TABLE_1[env, agent].mean)
    ours = tuned_order(cells)
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


def sensitivity(results: Results, env: str) -> list[Panel]:
    """The best mean that is left when one setting is held at a value."""
    searches = {agent: searched(results, env, agent) for agent in (*TABLE_1, *CONTROLS) if agent != "random"}
    panels, ranges = [], Sarsa(reward="sr-pr").tuning_ranges(None)  # the one agent that has every setting of the sweep
    for name in paper.SWEEP:
        curves = {}
        for agent, (choice, means) in searches.items():
            if name in (columns := choice.searches[0].columns):
                x = np.unique(columns[name])
                best = np.array([means[columns[name] == value].max() for value in x])
                curves[agent] = Curve(x, best, best, best)
        panels.append(Panel(name, curves, "", "reward", log="x" if ranges[name].log else ""))
    return panels


TITLE = "Tables 1, 3, 4 with every agent and control tuned alike"
register_experiment(contest_experiment("tuned", TITLE, section, contests, confirmation, seeds=1000, claims=CLAIMS))
