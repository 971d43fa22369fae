"""Every agent and every control tuned in the same way, then compared on seeds that no tuning saw.

A search ranks all settings on few seeds, a second round ranks the best of them on more, and what is reported comes from
a third set of seeds with the one setting that is left, because the best of many noisy means flatters itself.
"""

from collections.abc import Sequence

from spie.agents.sarsa.settings import Sarsa
from spie.paper import grids, tabular
from spie.paper import published as paper
from spie.paper.printed_grid import printed_grid
from spie.runs.run import Run
from spie.search.select import Choice, Load, Round, Search, fresh
from spie.tasks import grid, maze

FINALISTS = 10  # of the search, for the second round
UNTUNED = " untuned"  # after an agent's name: with the settings that the paper prints
AGENTS = tuple(dict.fromkeys(agent for _, agent in tabular.CELLS))
MAP_AGENTS = tuple(agent for agent in AGENTS if not agent.endswith(("-a", "-b", "-c")))
THREE_ROOMS = """\
S....#....#....
.....#.........
.....#....#....
..........#....
.....#....#....
"""
UNSEEN = {"cluster-simple-large": "cluster-simple-large", "three-rooms": THREE_ROOMS, "maze": maze(15, 15)}


def contest(searches: Sequence[Search], seeds: int, second_seeds: int, confirm: int) -> Choice:
    """All settings on few seeds, the best of them on more, the one that is left on others again."""
    return Choice(tuple(searches), (Round(seeds, FINALISTS), Round(fresh(second_seeds), 1)), fresh(confirm, 2))


# On the chains: a contest for each agent and chain


def chain_agents(env: str) -> dict[str, Sarsa]:
    """The agents of Tables 1, 3 and 4 and the controls, with the paper's settings or SARSA-SRR's."""
    return {agent: tabular.settings(env, agent) for agent in AGENTS} | tabular.controls(env)


def chain_contests(seeds: int) -> dict[tuple[str, str], Choice]:
    """By chain and agent."""
    contests = {}
    for env, build in tabular.CHAINS.items():
        mdp = build()
        for agent, s in chain_agents(env).items():
            search = Search(env, agent, printed_grid(agent, s), mdp, paper.CHAIN_STEPS)
            contests[env, agent] = contest([search], min(20, seeds), min(200, seeds), seeds)
    return contests


def chain_runs(seeds: int) -> list[Run]:
    return [run for contest in chain_contests(seeds).values() for run in contest.runs(0, nothing)]


def chain_finals(seeds: int, load: Load) -> list[Run]:
    return [run for contest in chain_contests(seeds).values() for run in contest.runs(1, load)]


def chain_confirmed(seeds: int, load: Load) -> list[Run]:
    """The winners, and the printed settings on the same seeds."""
    runs = []
    for (env, agent), contest in chain_contests(seeds).items():
        (search,) = contest.searches
        runs.append(Run(env, agent, winner(contest, load), search.task, search.steps, contest.confirm))
        if agent in AGENTS:
            printed = tabular.settings(env, agent)
            runs.append(Run(env, agent + UNTUNED, printed, search.task, search.steps, contest.confirm))
    return runs


def winner(contest: Choice, load: Load) -> Sarsa:
    """The settings that the second round leaves."""
    found: Sarsa = contest.settings(int(contest.best(1, load)[0]))
    return found


def nothing(run: Run) -> None:
    """The first round needs no results."""


# In grid worlds: a contest for each agent, one setting for all maps


def map_contests(seeds: int) -> dict[str, Choice]:
    """By agent."""
    agents = {agent: grids.settings(agent) for agent in MAP_AGENTS} | grids.controls()
    maps = {name: grid(name) for name in grids.COVERAGE_MAPS}
    contests = {}
    for agent, s in agents.items():
        tried = printed_grid(agent, s, "coverage")
        searches = [Search(n, agent, tried, mdp, paper.COVERAGE_STEPS, scale=mdp.n_states) for n, mdp in maps.items()]
        contests[agent] = contest(searches, min(5, seeds), min(50, seeds), seeds)
    return contests


def map_runs(seeds: int) -> list[Run]:
    return [run for contest in map_contests(seeds).values() for run in contest.runs(0, nothing)]


def map_finals(seeds: int, load: Load) -> list[Run]:
    return [run for contest in map_contests(seeds).values() for run in contest.runs(1, load)]


def map_confirmed(seeds: int, load: Load) -> list[Run]:
    """The winners and the paper's one setting, on the maps of the search and on the unseen ones."""
    maps = {name: grid(name) for name in grids.COVERAGE_MAPS} | {n: grid(text) for n, text in UNSEEN.items()}
    runs = []
    for agent, contest in map_contests(seeds).items():
        settings = {agent: winner(contest, load)}
        if agent in MAP_AGENTS:
            settings[agent + UNTUNED] = grids.settings(agent)
        for name, mdp in maps.items():
            runs += [Run(name, a, s, mdp, paper.COVERAGE_STEPS, contest.confirm) for a, s in settings.items()]
    return runs
