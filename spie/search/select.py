"""A search over settings as runs: grids cut into pieces that are stored one by one, ranked, and run again."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.sarsa.settings import Sarsa
from spie.runs.run import Run
from spie.search.grid import MEASURES, SettingsGrid
from spie.tasks.mdp import MDP

PIECE_SECONDS = 12.0  # of one core: what a kill may lose
FRESH = 1_000_000  # a search uses seeds below, what confirms it seeds from here on

Load = Callable[[Run], Any]  # what a stored run left
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Search:
    """All settings of one agent that are tried on one environment."""

    env: str
    agent: str
    grids: tuple[SettingsGrid, ...]
    mdp: MDP
    steps: int
    seeds: int
    episodes: int | None = None

    def __len__(self) -> int:
        return sum(map(len, self.grids))

    def run(self, grid: SettingsGrid, seeds: int | tuple[int, ...]) -> Run:
        return Run(self.env, f"{self.agent} search", grid, self.mdp, self.steps, seeds, self.episodes, role="search")

    @cached_property
    def runs(self) -> list[Run]:
        """The grids in pieces of about PIECE_SECONDS."""
        one = self.run(SettingsGrid(self.grids[0].base), self.seeds).seconds
        return [self.run(piece, self.seeds) for g in self.grids for piece in g.split(int(PIECE_SECONDS / one))]

    def again(self, chosen: Array, seeds: tuple[int, ...]) -> list[tuple[Run, Array]]:
        """Settings chosen by number on other seeds: runs, and which of the chosen are in each."""
        runs, first = [], 0
        for piece in (run.settings for run in self.runs):
            inside = np.sort(chosen[(first <= chosen) & (chosen < first + len(piece))])
            if len(inside):
                only = tuple(int(i) for i in inside - first)
                runs.append((self.run(dataclasses.replace(piece, only=only), seeds), inside))
            first += len(piece)
        return runs

    def setting(self, number: int) -> Sarsa:
        """Settings by number."""
        ((run, _),) = self.again(np.array([number]), (0,))
        found: list[Sarsa] = run.settings.settings()
        return found[0]

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The settings that vary, each as one value for every settings."""
        names = dict.fromkeys(name for grid in self.grids for name, _ in grid.axes)
        if len(self.grids) > 1:
            names |= dict.fromkeys(n for n, v in vars(self.grids[0].base).items() if v != vars(self.grids[1].base)[n])
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for grid in self.grids:
            own = dict(zip((n for n, _ in grid.axes), zip(*grid.combinations(), strict=True), strict=True))
            for name, column in columns.items():
                column += own.get(name, [getattr(grid.base, name)] * len(grid))
        return {name: np.array(column) for name, column in columns.items()}

    def scores(self, load: Load) -> Array:
        """What the search found, [settings, seeds]."""
        return np.concatenate([load(run).values for run in self.runs])

    @property
    def sign(self) -> int:
        return MEASURES[self.grids[0].measure].sign

    def best(self, means: Array, n: int) -> Array:
        """The numbers of the n best settings, best first; of equals the first."""
        return np.argsort(-self.sign * means, kind="stable")[:n]
