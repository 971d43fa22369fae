"""What a behavioural model asks of its walker, and of the code that makes walkers of that kind walk."""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spie.behaviour.paths import Paths


class Walker(Protocol):
    """A frozen dataclass of settings: `spie.Sarsa`, or the `StateValues` of walkers that know the value of places."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    version: ClassVar[int]  # raised when the same settings give other numbers

    @property
    def policy(self) -> str:
        """How it chooses, "softmax" or "epsilon-greedy"."""
        ...

    @property
    def rewards(self) -> tuple[str, ...]:
        """The registered rewards that it evaluates."""
        ...


class LogLikelihood(Protocol):
    def __call__(
        self, settings: Sequence[Any], paths: Paths, rows: NDArray[np.int64], each: bool = False
    ) -> NDArray[Any]:
        """Log-likelihood of settings i along the path of subject `rows[i]` [lanes]; each: [lanes, most steps]."""
        ...


class Simulation(Protocol):
    def __call__(
        self, settings: Sequence[Any], paths: Paths, rows: NDArray[np.int64], seeds: NDArray[np.int64]
    ) -> list[list[NDArray[np.int32]]]:
        """The states that settings i walk through in each trial of subject `rows[i]`: its starts, mazes, lengths."""
        ...


class Walks(NamedTuple):
    """How the walkers of a kind follow recorded paths, and walk by themselves."""

    kind: type[Walker]  # of the settings
    log_p: LogLikelihood
    simulate: Simulation
