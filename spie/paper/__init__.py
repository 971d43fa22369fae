"""The paper's experiments as data: what to run, what the paper reports, how it is read off a run.

To add one, write its runs as a function of the number of seeds and add a line to EXPERIMENTS.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spie.errors import unknown
from spie.paper import deep, dropin, grids, mountain_car, tabular, tuned
from spie.paper import published as paper
from spie.runs.run import Run, load
from spie.runs.store import Store
from spie.search.select import Load

CONTROLS = ("constant", "optimistic", "count", "random")  # ours, not in the paper


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    seeds: int = 1  # by default
    runs: Callable[..., list[Run]] = lambda seeds: []
    published: Mapping[tuple[str, str], paper.Cell] = field(default_factory=dict)  # by (env, agent)
    then: tuple[Callable[[int, Load], list[Run]], ...] = ()  # further runs, which follow from what those before left
    long: bool = False  # minutes: run by name only
    on: str = "serial"  # where to run unless told otherwise: deep agents use one thread, so several processes
    frames: int = 0  # of a run on Atari; the same with another budget is the experiment "name@frames"

    def planned(self, seeds: int, store: Store) -> list[Run]:
        """The runs of the experiment, and those that follow from them as far as that is known yet."""
        runs = self.runs(seeds)
        for follow in self.then:
            if any(run.id not in store for run in runs):
                break
            runs += follow(seeds, functools.partial(load, store))
        return runs


EXPERIMENTS = {
    e.name: e
    for e in (
        Experiment(
            "table1",
            "Table 1: reward on RiverSwim and SixArms in 5000 steps",
            1000,
            functools.partial(tabular.runs, paper.TABLE_1),
            paper.TABLE_1,
        ),
        Experiment(
            "table3",
            "Table 3: the same with fixed SR and FR",
            1000,
            functools.partial(tabular.runs, paper.TABLE_3),
            paper.TABLE_3,
        ),
        Experiment(
            "table4",
            "Table 4: ablations (a), (b), (c) of SR-R",
            1000,
            functools.partial(tabular.runs, paper.TABLE_4),
            paper.TABLE_4,
        ),
        Experiment(
            "readings",
            "Tables 1, 3, 4 under other readings of the open points",
            1000,  # as the tables: the cells as read here are then the same runs
            tabular.reading_runs,
            {(env, agent): tabular.CELLS[env, agent.split()[0]] for env, agent in tabular.READINGS},
        ),
        Experiment("table5", "Table 5: the settings"),
        Experiment(
            "table2",
            "Table 2: Atari scores",
            1,
            deep.table_2,
            long=True,
            on="processes",
            frames=deep.SMALL_TIER,
        ),
        Experiment(
            "recon",
            "Montezuma's Revenge with and without reconstruction (Appendix D)",
            1,
            deep.reconstruction,
            long=True,
            on="processes",
            frames=deep.SMALL_TIER,
        ),
        Experiment("figure1", "Figure 1: coverage of grid worlds without reward", 100, grids.figure_1),
        Experiment("figure2", "Figure 2: the network of DQN-SF-PF"),
        Experiment("figure3", "Figure 3: goal tasks, goals that move", 100, grids.figure_3),
        Experiment("figure4", "Figure 4: MountainCar with linear features", 10, mountain_car.figure_4),
        Experiment("figure5", "Figure 5: the two MDPs"),
        Experiment("figure6", "Figure 6: where the agents go, step by step", 100, grids.figure_6),
        Experiment("figure7", "Figure 7: optimistic starts", 100, grids.figure_7),
        Experiment(
            "tuned",
            "Tables 1, 3, 4 with every agent and control tuned alike",
            1000,
            tuned.chain_runs,
            then=(tuned.chain_finals, tuned.chain_confirmed),
            long=True,
        ),
        Experiment(
            "tuned-grids",
            "Coverage with one tuned setting for all maps, also on maps that no tuning saw",
            200,
            tuned.map_runs,
            then=(tuned.map_finals, tuned.map_confirmed),
            long=True,
        ),
        Experiment(
            "pixels",
            "Deep agents on small image tasks (not in the paper)",
            20,
            deep.pixels,
            long=True,
            on="processes",
        ),
        Experiment(
            "pixels-paper",
            "The same with the bonus as the paper pays it: beta .07, not scaled, clipped",
            20,
            deep.paper_bonus,
            long=True,
            on="processes",
        ),
        Experiment("dropin", "Other people's agents with a bonus (not in the paper)", 10, dropin.runs, long=True),
    )
}


def get_experiment(name: str) -> Experiment:
    """The experiment known as `name`; "table2@1000000" is Table 2 with so many frames a run."""
    plain, at, frames = name.partition("@")
    if plain not in EXPERIMENTS:
        raise unknown("experiment", plain, EXPERIMENTS)
    e = EXPERIMENTS[plain]
    if not at:
        return e
    if not e.frames:
        raise ValueError(f"{plain} has no budget in frames; those that have: {', '.join(with_frames())}")
    if not frames.isdecimal() or int(frames) < deep.LEAST_FRAMES:
        raise ValueError(f"{plain}: {frames or 0} frames are no budget; give {deep.LEAST_FRAMES} or more")
    return replace(e, name=name, runs=functools.partial(e.runs, frames=int(frames)), frames=int(frames))


def with_frames() -> list[str]:
    """The experiments whose budget is counted in frames."""
    return [name for name, e in EXPERIMENTS.items() if e.frames]


class Results:
    """What a store has of each experiment, with the number of seeds that was asked for last."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seeds = store.asked_for()

    @functools.cache  # noqa: B019  # a Results lives as long as one command
    def runs(self, name: str) -> Sequence[Run]:
        """The runs of an experiment; none where it was never asked for."""
        return get_experiment(name).planned(self.seeds[name], self.store) if name in self.seeds else []

    def missing(self, name: str) -> int:
        """How many runs of an experiment are not stored: 0 for one that is finished."""
        return sum(run.id not in self.store for run in self.runs(name))

    @functools.cache  # noqa: B019
    def trace(self, name: str, env: str, agent: str) -> Any:
        """The trace of a cell of an experiment (a Trace or an EpisodeTrace), None where it is not stored."""
        for run in self.runs(name):
            if (run.env, run.agent) == (env, agent) and run.id in self.store:
                return load(self.store, run)
        return None
