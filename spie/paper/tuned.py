"""Every agent and every control tuned in the same way, then compared on seeds that no tuning saw.

A search ranks all settings on few seeds, a second round ranks the best of them on more, and what is reported comes from
a third set of seeds with the one setting that is left, because the best of many noisy means flatters itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spie.agents.sarsa.settings import Sarsa
from spie.paper import grids, tabular
from spie.paper import published as paper
from spie.paper.printed_grid import printed_grid
from spie.runs.run import Run
from spie.search.select import FRESH, Array, Load, Search
from spie.tasks import grid, maze
from spie.tasks.mdp import MDP

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


class Contest(NamedTuple):
    """One agent's search for the setting that does best on one environment, or on several together."""

    agent: str
    searches: Sequence[Search]
    second_seeds: int

    def finalists(self, load: Load) -> list[list[tuple[Run, Array]]]:
        """The runs of the second round, for each environment."""
        first = self._together([search.scores(load).mean(axis=1) for search in self.searches])
        best = self.searches[0].best(first, FINALISTS)
        return [search.again(best, _seeds(1, self.second_seeds)) for search in self.searches]

    def winner(self, load: Load) -> int:
        """The number of the setting that the second round leaves."""
        rounds = self.finalists(load)
        means = [np.concatenate([load(run).values.mean(axis=1) for run, _ in runs]) for runs in rounds]
        numbers = np.concatenate([inside for _, inside in rounds[0]])
        return int(numbers[self.searches[0].best(self._together(means), 1)[0]])

    def _together(self, means: Sequence[Array]) -> Array:
        """Mean over environments, each in proportion to its size."""
        parts = [m / search.mdp.n_states for m, search in zip(means, self.searches, strict=True)]
        return np.asarray(np.mean(parts, axis=0))


def _seeds(n_round: int, n: int) -> tuple[int, ...]:
    """Fresh seeds of the second round (1) and of what is reported (2)."""
    return tuple(range(n_round * FRESH, n_round * FRESH + n))


# On the chains: a contest for each agent and chain


def chain_agents(env: str) -> dict[str, Sarsa]:
    """The agents of Tables 1, 3 and 4 and the controls, with the paper's settings or SARSA-SRR's."""
    return {agent: tabular.settings(env, agent) for agent in AGENTS} | tabular.controls(env)


def chain_contests(seeds: int) -> dict[tuple[str, str], Contest]:
    """By chain and agent."""
    contests = {}
    for env, build in tabular.CHAINS.items():
        mdp = build()
        for agent, s in chain_agents(env).items():
            search = Search(env, agent, printed_grid(agent, s), mdp, paper.CHAIN_STEPS, min(20, seeds))
            contests[env, agent] = Contest(agent, [search], min(200, seeds))
    return contests


def chain_runs(seeds: int) -> list[Run]:
    return [run for contest in chain_contests(seeds).values() for run in contest.searches[0].runs]


def chain_finals(seeds: int, load: Load) -> list[Run]:
    return [run for c in chain_contests(seeds).values() for runs in c.finalists(load) for run, _ in runs]


def chain_confirmed(seeds: int, load: Load) -> list[Run]:
    """The winners, and the printed settings on the same seeds."""
    runs = []
    for (env, agent), contest in chain_contests(seeds).items():
        (search,) = contest.searches
        runs.append(_confirmed(env, agent, search.setting(contest.winner(load)), search.mdp, search.steps, seeds))
        if agent in AGENTS:
            printed = tabular.settings(env, agent)
            runs.append(_confirmed(env, agent + UNTUNED, printed, search.mdp, search.steps, seeds))
    return runs


def _confirmed(env: str, agent: str, s: Sarsa, mdp: MDP, steps: int, seeds: int) -> Run:
    return Run(env, agent, s, mdp, steps, _seeds(2, seeds))


# In grid worlds: a contest for each agent, one setting for all maps


def map_contests(seeds: int) -> dict[str, Contest]:
    """By agent."""
    agents = {agent: grids.settings(agent) for agent in MAP_AGENTS} | grids.controls()
    maps = {name: grid(name) for name in grids.COVERAGE_MAPS}
    contests = {}
    for agent, s in agents.items():
        tried = printed_grid(agent, s, "coverage")
        searches = [Search(n, agent, tried, mdp, paper.COVERAGE_STEPS, min(5, seeds)) for n, mdp in maps.items()]
        contests[agent] = Contest(agent, searches, min(50, seeds))
    return contests


def map_runs(seeds: int) -> list[Run]:
    return [run for c in map_contests(seeds).values() for search in c.searches for run in search.runs]


def map_finals(seeds: int, load: Load) -> list[Run]:
    return [run for c in map_contests(seeds).values() for runs in c.finalists(load) for run, _ in runs]


def map_confirmed(seeds: int, load: Load) -> list[Run]:
    """The winners and the paper's one setting, on the maps of the search and on the unseen ones."""
    maps = {name: grid(name) for name in grids.COVERAGE_MAPS} | {n: grid(text) for n, text in UNSEEN.items()}
    runs = []
    for agent, contest in map_contests(seeds).items():
        settings = {agent: contest.searches[0].setting(contest.winner(load))}
        if agent in MAP_AGENTS:
            settings[agent + UNTUNED] = grids.settings(agent)
        for name, mdp in maps.items():
            runs += [_confirmed(name, a, s, mdp, paper.COVERAGE_STEPS, seeds) for a, s in settings.items()]
    return runs
