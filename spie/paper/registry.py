"""Experiments by name, and all claims: what `spie list`, `run`, `report` and the page read.

Every module of `spie.paper` and `spie.paper.beyond` that registers an experiment, or has claims of its own, is found by
itself; `FIRST` only says in which order the page shows them.
"""

import importlib
import pkgutil
from collections.abc import Sequence

from spie.paper.claims import Claim
from spie.paper.experiment import Experiment, read_key
from spie.registry import Registry

FIRST = (
    "table1 table3 table4 readings table5 table2 recon figure1 figure2 figure3 figure4 figure5 figure6 figure7 tuned "
    "tuned-grids pixels pixels-paper pixels-readings parity dropin"
).split()
FOLDERS = ("spie.paper", "spie.paper.beyond")

_claims: dict[str, tuple[Claim, ...]] = {}  # of no experiment, by what they have in common


def _load_own() -> None:
    """Import every module of the two packages; those of experiments register what they have."""
    for folder in FOLDERS:
        for module in pkgutil.iter_modules(importlib.import_module(folder).__path__):
            if module.name != "claims_table":  # a command
                importlib.import_module(f"{folder}.{module.name}")


EXPERIMENTS: Registry[Experiment] = Registry("experiment", _load_own)


def register_experiment(experiment: Experiment) -> None:
    """Make an experiment known: from then on it is listed, run, judged and on the page."""
    EXPERIMENTS.add(experiment.name, experiment)


def register_claims(subject: str, claims: Sequence[Claim]) -> None:
    """Make claims known that belong to no experiment."""
    _claims[subject] = tuple(claims)


def get_experiment(
    name: str, frames: int | None = None, network: str | None = None, tier: str | None = None
) -> Experiment:
    """The experiment known as `name`, with a budget in frames, a network or a tier where these are given."""
    experiment = EXPERIMENTS.get(name)
    if tier is not None:
        if frames is not None or network is not None:
            raise ValueError("a tier says how many frames and which network: leave out --frames and --network")
        return experiment.with_tier(tier)
    if frames is not None:
        experiment = experiment.with_frames(frames)
    return experiment if network is None else experiment.with_network(network)


def experiment_of(key: str) -> Experiment:
    """The experiment that a store notes under a key: the inverse of `Experiment.key`."""
    name, options = read_key(key)
    return get_experiment(name, **options)


def experiments() -> list[Experiment]:
    """All of them, in the order of the page: those of `FIRST`, then the others as they were added."""
    found = dict(EXPERIMENTS.items())
    return [found[name] for name in sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))]


def claims() -> list[Claim]:
    """Every claim, experiment by experiment; those that belong to none come last."""
    found = [claim for experiment in experiments() for claim in experiment.claims]
    return found + [claim for _, some in sorted(_claims.items()) for claim in some]
