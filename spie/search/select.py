"""Choose among settings on some seeds, confirm on others: the best of many noisy means flatters itself.

Every search of spie does so by this file: sweeps, tuning, and the experiments that compare tuned agents.

    search = Search("riverswim", "sarsa-srr", (SettingsGrid(base, axes),), task, steps=5000)
    choice = Choice((search,), (Round(seeds=20, left=10), Round(fresh(200), left=1)), confirm=fresh(1000, 2))
    choice.runs(0, load)        # 20 seeds of all settings
    choice.runs(1, load)        # once those are there: 200 other seeds of the best 10
    choice.confirmed(1, load)   # once those are there: 1000 further seeds of the best one

Where `load` gives what a run left: out of a store, so that a search that is stopped continues, or, for a score at once,
`Run.execute`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spie.runs.run import Run
from spie.search.grid import MEASURES, SettingsGrid

PIECE_SECONDS = 12.0  # of one core: what a kill may lose
FRESH = 1_000_000  # a search begins with seeds below; each further set of seeds begins at a multiple of it
HALVING = 3  # successive halving leaves a third of the settings and gives them three times the seeds

Load = Callable[[Run], Any]  # what a run left
Array = NDArray[Any]


def fresh(n: int, nth: int = 1) -> tuple[int, ...]:
    """n seeds that the search did not use; nth: 1 for the first such set, 2 for another that shares no seed with it."""
    return tuple(range(nth * FRESH, nth * FRESH + n))


class SearchRun(NamedTuple):
    """A run of some of the settings, and their numbers."""

    run: Run
    numbers: Array


@dataclass(frozen=True, eq=False)
class Search:
    """The settings of one agent that are tried on one task, numbered through all grids."""

    env: str
    agent: str
    grids: tuple[SettingsGrid, ...]
    task: Any
    steps: int
    episodes: int | None = None
    scale: float = 1.0  # scores are divided by it where several tasks count together
    note: str = ""  # what was left out of it, for people

    def __len__(self) -> int:
        return sum(map(len, self.grids))

    @property
    def measure(self) -> str:
        return self.grids[0].measure

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is."""
        return MEASURES[self.measure].sign

    def run(self, grid: SettingsGrid, seeds: int | tuple[int, ...]) -> Run:
        return Run(self.env, f"{self.agent} search", grid, self.task, self.steps, seeds, self.episodes, role="search")

    def seconds(self, seeds: int) -> float:
        """About how long all settings take on one core."""
        return len(self) * self.run(SettingsGrid(self.grids[0].base), seeds).seconds

    def score(self, settings: Any, seeds: Sequence[int]) -> Array:
        """The score of settings on some seeds [seeds], run at once; more is better."""
        run = self.run(SettingsGrid(settings, measure=self.measure), tuple(seeds))
        values: Array = self.sign * Run.execute(run).values[0]  # type: ignore[union-attr]
        return values

    def pieces(self, seeds: int) -> list[SettingsGrid]:
        """The grids in pieces that take about PIECE_SECONDS with that many seeds."""
        n_steps, size = self.steps * (self.episodes or 1) * seeds, self.grids[0].base.size_of_step(self.task)
        most = int(PIECE_SECONDS * len(self) / (len(self) * float(n_steps * size)))
        return [piece for grid in self.grids for piece in grid.split(most)]

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The settings that vary, each with its value in every combination; not a number where it has no part in it."""
        names = dict.fromkeys(name for grid in self.grids for name, _ in grid.axes)
        varied = set(names)
        if len(self.grids) > 1:
            names |= dict.fromkeys(n for n, v in vars(self.grids[0].base).items() if v != vars(self.grids[1].base)[n])
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for grid in self.grids:
            own = dict(zip((n for n, _ in grid.axes), zip(*grid.combinations(), strict=True), strict=True))
            for name, column in columns.items():
                column += own.get(name, [np.nan if name in varied else getattr(grid.base, name)] * len(grid))
        return {name: np.array(column) for name, column in columns.items()}


class Round(NamedTuple):
    """Some seeds, and how many settings go on after it."""

    seeds: int | tuple[int, ...]  # all that count in it, n for 0 ... n-1; what a round before ran is not run again
    left: int

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds


def halving(n_settings: int, seeds: int) -> tuple[Round, ...]:
    """Successive halving: a ninth of the seeds for all, a third for the best third, all for a third of those."""
    rounds, left = [], n_settings
    for rung in sorted({math.ceil(seeds / HALVING**2), math.ceil(seeds / HALVING), seeds}):
        left = math.ceil(left / HALVING)
        rounds.append(Round(rung, left))
    return tuple(rounds)


class Scored(NamedTuple):
    """What the rounds of a choice say about each of its settings."""

    values: Array  # [tasks, settings, seeds of all rounds]; not a number where a setting did not get a seed
    ranking: Array  # numbers of the settings, best first; those that got to a later round come before others


@dataclass(frozen=True, eq=False)
class Choice:
    """Which settings do best on a task, or on several together: chosen in rounds, confirmed on seeds of their own."""

    searches: tuple[Search, ...]  # the same settings on each task
    rounds: tuple[Round, ...]
    confirm: tuple[int, ...] = ()  # seeds

    def __post_init__(self) -> None:
        if used := {*self.seeds} & {*self.confirm}:
            raise ValueError(f"seed {min(used)} cannot confirm what it helped to choose; give other seeds")

    def __len__(self) -> int:
        return len(self.searches[0])

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all rounds, each once."""
        return tuple(dict.fromkeys(seed for one in self.rounds for seed in one.all_seeds))

    @cached_property
    def _pieces(self) -> list[list[SettingsGrid]]:
        return [search.pieces(len(self.rounds[0].all_seeds)) for search in self.searches]

    def settings(self, number: int) -> Any:
        """Settings by number."""
        (trial,) = self.trials(0, np.array([number]), (0,))
        return trial.run.settings.settings()[0]

    def trials(self, n_task: int, numbers: Array, seeds: tuple[int, ...]) -> list[SearchRun]:
        """Settings by number on one of the tasks: a run for each piece of the search that some of them are in."""
        found, first = [], 0
        asked = len(seeds) if seeds == tuple(range(len(seeds))) else seeds
        for piece in self._pieces[n_task]:
            inside = np.sort(numbers[(first <= numbers) & (numbers < first + len(piece))])
            if len(inside):
                only = None if len(inside) == len(piece) else tuple(int(i) for i in inside - first)
                grid = dataclasses.replace(piece, only=only)
                found.append(SearchRun(self.searches[n_task].run(grid, asked), inside))
            first += len(piece)
        return found

    def runs(self, n_round: int, load: Load) -> list[Run]:
        """The runs of a round, which follow from what the rounds before it left."""
        _, left, _ = self._play(n_round, load)
        return [trial.run for task in range(len(self.searches)) for trial in self._round(n_round, task, left)]

    def scored(self, load: Load) -> Scored:
        """What all rounds left."""
        values, _, keys = self._play(len(self.rounds), load)
        return Scored(values, np.lexsort(keys))

    def searched(self, load: Load) -> Array:
        """The mean of every setting in the first round, which has all of them; its best is too good to be true."""
        _, _, (means, _) = dataclasses.replace(self, rounds=self.rounds[:1])._play(1, load)
        return -self.searches[0].sign * means

    def best(self, n: int, load: Load) -> Array:
        """The numbers of the n best settings, best first; of equals the first."""
        return self.scored(load).ranking[:n]

    def confirmed(self, n: int, load: Load) -> list[list[SearchRun]]:
        """The n best on the seeds that confirm, for each task."""
        best = self.best(n, load)
        return [self.trials(task, best, self.confirm) for task in range(len(self.searches))]

    def _round(self, n_round: int, n_task: int, numbers: Array) -> list[SearchRun]:
        before = {seed for one in self.rounds[:n_round] for seed in one.all_seeds}
        seeds = tuple(seed for seed in self.rounds[n_round].all_seeds if seed not in before)
        return self.trials(n_task, numbers, seeds) if seeds else []

    def _play(self, n_rounds: int, load: Load) -> tuple[Array, Array, tuple[Array, Array]]:
        """The first rounds: values of all seeds, the settings that are left, and by what settings are sorted.

        The last key comes first: how many rounds a setting played, then its mean in the last one of them.
        """
        place = {seed: i for i, seed in enumerate(self.seeds)}
        values = np.full((len(self.searches), len(self), len(place)), np.nan)
        left, played, means = np.arange(len(self)), np.zeros(len(self)), np.zeros(len(self))
        for n_round, one in enumerate(self.rounds[:n_rounds]):
            for task in range(len(self.searches)):
                for run, numbers in self._round(n_round, task, left):
                    found = load(run)
                    columns = np.array([place[seed] for seed in found.seeds.tolist()])
                    values[task][np.ix_(numbers, columns)] = found.values
            columns = np.array([place[seed] for seed in one.all_seeds])
            of_tasks = [
                np.ascontiguousarray(values[task][np.ix_(left, columns)]).mean(axis=1) / search.scale
                for task, search in enumerate(self.searches)
            ]
            means[left] = np.mean(of_tasks, axis=0)
            played[left] = n_round + 1
            left = np.sort(left[np.argsort(-self.searches[0].sign * means[left], kind="stable")[: one.left]])
        return values, left, (-self.searches[0].sign * means, -played)


def mean_and_error(values: Array) -> tuple[Array, Array, Array]:
    """Mean, standard error and number of the values [..., seeds] that are there."""
    n = (~np.isnan(values)).sum(axis=-1)
    mean = np.nanmean(values, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.nansum((values - mean[..., None]) ** 2, axis=-1)
        return mean, np.asarray(np.sqrt(squares / (n - 1) / n)), n


def usual_length(kind: str, cap: int | None, steps: int | None, episodes: int | None) -> tuple[int, int | None]:
    """Steps and episodes of a run on a task of some kind, where they are left out; cap: of the task's episodes."""
    if kind == "continuous":
        return steps or cap or 1000, episodes or 300
    return steps or {"table": 5000, "images": 30_000}[kind], episodes
