"""An experiment: one file with its runs, its claims, its section of the page and its cells in the terminal.

    register_experiment(Experiment("figure8", "Figure 8: ...", section, runs, seeds=100, claims=CLAIMS))

The file is found by itself where it lies in `spie.paper` or `spie.paper.beyond`; elsewhere by a plug-in.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.errors import unknown
from spie.paper import published as paper
from spie.paper.claims import Claim
from spie.paper.rules import cell_verdict
from spie.paper.sections import SectionPart
from spie.runs.run import Run, load
from spie.runs.store import Store
from spie.search.select import Load

LEAST_FRAMES = 1_000
SHARE_SEEN = 0.99  # of the states: what counts as covered

Array = NDArray[Any]


def in_blocks(planned: Callable[..., list[Run]], size: int) -> Callable[..., list[Run]]:
    """The same runs, of at most `size` seeds each: what is stored or ships of fewer seeds grows to more.

    The first block of all cells comes before the second of any.
    """

    def blocks(seeds: int, **options: Any) -> list[Run]:
        split = [block for run in planned(seeds, **options) for block in run.in_blocks(size)]
        return sorted(split, key=lambda run: run.seed_numbers[0])

    return blocks


def no_runs(seeds: int) -> list[Run]:
    """Of an experiment that is drawn from the settings."""
    return []


def total_reward(run: Run, trace: Any) -> tuple[str, Array]:
    """What is measured of a run, and a value for each seed."""
    return "total reward (more is better)", trace.total_reward


def episode_steps(run: Run, trace: Any) -> tuple[str, Array]:
    return "steps per episode (less is better)", np.asarray(trace.episode_steps.mean(axis=1))


def states_seen(run: Run, trace: Any) -> tuple[str, Array]:
    seen = np.asarray((trace.first_visit >= 0).sum(axis=1))
    return f"states seen in {run.steps} steps, of {trace.first_visit.shape[1]} (more is better)", seen


def coverage_steps(run: Run, trace: Any) -> tuple[str, Array]:
    return f"steps until {SHARE_SEEN:.0%} of the states were seen (less is better)", trace.steps_to(SHARE_SEEN)


def beside_published(experiment: "Experiment", run: Run, ours: stats.Estimate) -> dict[str, Any]:
    """The published number of a cell, and whether ours agrees with it."""
    cell = experiment.published.get((run.env, run.agent))
    if cell is None:
        verdict = "control" if run.role == "control" else "no number printed"
        return {"paper_mean": None, "paper_spread": None, "verdict": verdict}
    test = stats.agreement(ours, *cell, paper.SEEDS_OF_TABLES_1_AND_3)
    apart = {"standard_errors_apart": round(test.z, 2), "spread_read_as": test.reading}
    verdict = cell_verdict(ours, cell.mean, test)
    return apart | {"paper_mean": cell.mean, "paper_spread": cell.spread, "verdict": verdict}


@dataclass(frozen=True)
class AskedOptions:
    """What an experiment was asked for with beside its name: its results are apart from those without."""

    frames: int | None = None
    network: str | None = None
    tier: str | None = None

    def given(self) -> dict[str, Any]:
        """Those that are not at their defaults, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


def write_key(name: str, options: Mapping[str, Any]) -> str:
    """An experiment and its options as a store and a file of results name them, such as table2@1000000."""
    words = (str(value) if option == "frames" else f"{option}={value}" for option, value in options.items())
    return "@".join((name, *words))


def read_key(key: str) -> tuple[str, dict[str, Any]]:
    """The inverse of `write_key`."""
    name, *words = key.split("@")
    pairs = [word.rpartition("=") for word in words]
    return name, {option or "frames": value if option else int(value) for option, _, value in pairs}


@dataclass(frozen=True)
class Tier:
    """A budget of an experiment that has a name."""

    frames: int
    seeds: int
    runs: Callable[..., list[Run]] | None = None  # other ones than all of them


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, or an experiment of ours."""

    name: str
    title: str
    section: Callable[["Experiment", Any], Sequence[SectionPart]]  # of the page, from the Results it is finished in
    runs: Callable[..., list[Run]] = no_runs  # by the number of seeds; with `frames`, by that as well
    seeds: int = 1  # by default
    then: tuple[Callable[[int, Load], list[Run]], ...] = ()  # further runs, which follow from what those before left
    claims: Sequence[Claim] = ()
    published: Mapping[tuple[str, str], paper.Cell] = field(default_factory=dict)  # by environment and agent
    counted: bool = True  # whether its published cells are among those that the page counts
    measure: Callable[[Run, Any], tuple[str, Array]] = total_reward  # what a cell in the terminal shows
    compared: Callable[["Experiment", Run, stats.Estimate], dict[str, Any]] = beside_published  # and beside what
    long: bool = False  # minutes: run by name only
    on: str = "serial"  # where to run unless told otherwise: deep agents use one thread, so several processes
    frames: int = 0  # of a run on Atari
    networks: tuple[str, ...] = ()  # that it can be asked for with, beside the one that suits the budget
    tiers: Mapping[str, "Tier"] = field(default_factory=dict)  # budgets by name
    asked: AskedOptions = AskedOptions()
    ships: Callable[["Experiment", Any], Sequence[SectionPart]] | None = None  # as section: see `spie.paper.shipped`
    grows: bool = False  # its runs take hours: what ships may have some of them, and others are added later
    keeps: bool = True  # whether what grows has all that its runs left, so that it can grow on another machine

    @property
    def key(self) -> str:
        """The name under which a store notes it, its options included."""
        return write_key(self.name, self.asked.given())

    @property
    def options(self) -> str:
        """What the command needs beside the name."""
        return "".join(f" --{name} {value}" for name, value in self.asked.given().items())

    def with_frames(self, frames: int) -> "Experiment":
        """The same with another budget, in frames of the emulator, of each run."""
        if not self.frames:
            raise ValueError(f"{self.name} has no budget in frames; leave out --frames")
        if frames < LEAST_FRAMES:
            raise ValueError(f"{self.name}: {frames} frames are too small a budget; give {LEAST_FRAMES} or more")
        runs = functools.partial(self.runs, frames=frames)
        return dataclasses.replace(self, runs=runs, frames=frames, asked=dataclasses.replace(self.asked, frames=frames))

    def with_network(self, network: str) -> "Experiment":
        """The same with another network of the deep agents."""
        if not self.networks:
            raise ValueError(f"{self.name} has no choice of networks; leave out --network")
        if network not in self.networks:
            raise unknown(f"network of {self.name}", network, self.networks)
        runs = functools.partial(self.runs, network=network)
        return dataclasses.replace(self, runs=runs, asked=dataclasses.replace(self.asked, network=network))

    def with_tier(self, name: str) -> "Experiment":
        """The same with a budget that has a name."""
        if not self.tiers:
            raise ValueError(f"{self.name} has no tiers; leave out --tier")
        if name not in self.tiers:
            raise unknown(f"tier of {self.name}", name, self.tiers)
        tier = self.tiers[name]
        if tier.frames == self.frames:
            return self
        runs = tier.runs or functools.partial(self.runs, frames=tier.frames)
        return dataclasses.replace(self, runs=runs, frames=tier.frames, seeds=tier.seeds, asked=AskedOptions(tier=name))

    def planned(self, seeds: int, store: Store) -> list[Run]:
        """The runs of the experiment, and those that follow from them as far as that is known yet."""
        runs = self.runs(seeds)
        for follow in self.then:
            if any(run.id not in store for run in runs):
                break
            runs += follow(seeds, functools.partial(load, store))
        return runs

    def cell(self, run: Run, trace: Any) -> dict[str, Any]:
        """One cell in plain values: what was measured, our estimate, theirs, and whether the two agree."""
        what, values = self.measure(run, trace)
        ours = stats.estimate(values)
        names = {"experiment": self.key, "env": run.env, "agent": run.agent, "variant": dict(run.variant)}
        numbers = {name: None if x != x else x for name, x in dataclasses.asdict(ours).items()}  # no NaN
        return names | {"role": run.role, "measure": what} | numbers | self.compared(self, run, ours)
