"""What a store has of each experiment."""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

from spie.paper.contenders import label, words
from spie.paper.experiment import read_key
from spie.paper.registry import experiment_of
from spie.paper.sections import Look
from spie.runs.run import Run, load
from spie.runs.store import Store

Value = TypeVar("Value")


class Stored(NamedTuple):
    """A run and what it left: a Trace or an EpisodeTrace."""

    run: Run
    trace: Any

    @property
    def look(self) -> Look:
        """How its curves look."""
        return Look(self.run.agent, words(self.run.variant))


class Results:
    """What a store has of each experiment, with the number of seeds that was asked for last.

    Experiments are named by their `key`. What is read or computed once is kept as long as this object.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seeds = store.asked_for()
        self._kept: dict[Hashable, Any] = {}

    def once(self, make: Callable[..., Value], *arguments: Hashable) -> Value:
        """make(self, *arguments), computed once."""
        key = (make, *arguments)
        if key not in self._kept:
            self._kept[key] = make(self, *arguments)
        found: Value = self._kept[key]
        return found

    def keys(self, name: str) -> list[str]:
        """The keys of an experiment that were asked for: with the usual budget, and with others."""
        return [key for key in self.seeds if read_key(key)[0] == name]

    def runs(self, key: str) -> Sequence[Run]:
        """The runs of an experiment; none where it was never asked for."""
        return self.once(_runs, key)

    def missing(self, key: str) -> int:
        """How many runs of an experiment are not stored: 0 for one that is finished."""
        return sum(run.id not in self.store for run in self.runs(key))

    def finished(self, key: str) -> bool:
        return bool(self.runs(key)) and self.missing(key) == 0

    def trace(self, experiment: str, env: str, agent: str, **variant: Any) -> Any:
        """What a cell left (a Trace or an EpisodeTrace), None where it is not stored; never of a search."""
        cell = (env, agent, variant)
        asked = [run for run in self.runs(experiment) if run.role != "search" and run.cell == cell]
        stored = [run for run in asked if run.id in self.store]
        return self.once(_trace, *stored) if stored else None

    def found(self, key: str) -> dict[str, dict[str, Stored]]:
        """All cells that are stored by environment and label, those of a search left out.

        A cell may have several runs, of some seeds each: it has the seeds of those that are stored.
        """
        cells: dict[str, dict[str, list[Run]]] = {}
        for run in self.runs(key):
            if run.role != "search" and run.id in self.store:
                cells.setdefault(run.env, {}).setdefault(label(run.agent, run.variant), []).append(run)
        return {env: {name: self._stored(runs) for name, runs in of_env.items()} for env, of_env in cells.items()}

    def _stored(self, runs: Sequence[Run]) -> Stored:
        run, *more = runs
        if more:
            run = dataclasses.replace(run, seeds=tuple(seed for one in runs for seed in one.seed_numbers))
        return Stored(run, self.once(_trace, *runs))

    def searched(self, key: str) -> list[Stored]:
        """The runs of a search, where each leaves a trace, as they are stored."""
        return [Stored(run, self.once(_trace, run)) for run in self.runs(key) if run.role == "search"]


def _runs(results: Results, key: str) -> list[Run]:
    if key not in results.seeds:
        return []
    return experiment_of(key).planned(results.seeds[key], results.store)


def _trace(results: Results, *runs: Run) -> Any:
    """What runs of one cell left, their seeds together."""
    first, *more = (load(results.store, run) for run in runs)
    return first.joined_with(more) if more else first
