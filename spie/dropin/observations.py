"""Observations as learners on features see them: numbers, images, or whatever a given function can read."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.features import ConvolutionFeatures, FourierFeatures, convolution_features, fourier_features

Array = NDArray[Any]
Vector = NDArray[np.float64]
CELLS = 10  # of the grid on which a count bonus counts, along each number of an observation


class Reader(Protocol):
    """phi of observations of one kind; every phi has length 1."""

    @property
    def dimension(self) -> int:
        """The number d of features."""

    @property
    def bounds(self) -> tuple[Vector, Vector] | None:
        """Lows and highs between which a grid of cells can be laid over the space; None where there is no such grid."""

    def read(self, observation: Any) -> Vector:
        """phi [d] of an observation."""

    def read_all(self, observations: Any, n: int) -> Vector:
        """phi [n, d] of a batch of observations; may round a little differently from one at a time."""

    def state(self) -> dict[str, Array]:
        """What was drawn at random, by the names under which it is saved."""

    def load(self, arrays: dict[str, Array]) -> None:
        """Take over what `state` gave."""


class _Drawn:
    """Features that were drawn at random, and are saved."""

    phi: FourierFeatures | ConvolutionFeatures

    def __init__(self, phi: Any) -> None:
        self.phi = phi

    @property
    def dimension(self) -> int:
        return self.phi.dimension

    def state(self) -> dict[str, Array]:
        phi = self.phi
        return {f"phi_{field.name}": np.asarray(getattr(phi, field.name)) for field in dataclasses.fields(phi)}

    def load(self, arrays: dict[str, Array]) -> None:
        phi: Any = self.phi  # each of the two has fields of its own
        drawn = {field.name: arrays[f"phi_{field.name}"].copy() for field in dataclasses.fields(phi)}
        self.phi = dataclasses.replace(phi, **drawn)


class Numbers(_Drawn):
    """A Box of a few numbers, by random Fourier features."""

    phi: FourierFeatures

    @property
    def bounds(self) -> tuple[Vector, Vector] | None:
        return (self.phi.low, self.phi.high) if CELLS ** len(self.phi.low) < 2**63 else None

    def read(self, observation: Any) -> Vector:
        return self.phi(np.asarray(observation).reshape(-1))

    def read_all(self, observations: Any, n: int) -> Vector:
        return self.phi(np.reshape(observations, (n, -1)))


class Images(_Drawn):
    """A Box of images, by a fixed random convolution."""

    phi: ConvolutionFeatures
    bounds = None

    def read(self, observation: Any) -> Vector:
        return self.phi(observation)

    def read_all(self, observations: Any, n: int) -> Vector:
        return self.phi(observations)


class Anything:
    """Observations of any kind, by a function of the user that returns numbers; it is not saved."""

    bounds = None

    def __init__(self, function: Callable[[Any], Any], space: gym.Space[Any]) -> None:
        self.function = function
        self.dimension = int(np.size(function(space.sample())))

    def read(self, observation: Any) -> Vector:
        numbers = np.asarray(self.function(observation), np.float64).reshape(-1)
        if not 0 < (length := float(np.linalg.norm(numbers))) < math.inf:
            raise ValueError(f"features: the given function returns {numbers[:8]}, which has no direction")
        return np.asarray(numbers / length)

    def read_all(self, observations: Any, n: int) -> Vector:
        return np.array([self.read(observation) for observation in singles(observations, n)])

    def state(self) -> dict[str, Array]:
        return {}

    def load(self, arrays: dict[str, Array]) -> None:
        """Nothing is kept."""


def reader(env: str, space: gym.Space[Any], features: Callable[[Any], Any] | None) -> Reader:
    """What reads the observations of a space: by default Fourier features of numbers, a convolution of images."""
    phi = default_features(env, space) if features is None else features
    if isinstance(phi, FourierFeatures):
        return Numbers(phi)
    if isinstance(phi, ConvolutionFeatures):
        return Images(phi)
    return Anything(phi, space)


def default_features(env: str, space: gym.Space[Any]) -> FourierFeatures | ConvolutionFeatures:
    """Random Fourier features of a vector, a fixed random convolution of an image."""
    if not isinstance(space, gym.spaces.Box):
        raise ValueError(
            f"{env}: observations of {type(space).__name__} have no default features; give features=, a function of an "
            "observation that returns numbers, or make them one Box with gymnasium.wrappers.FlattenObservation"
        )
    if len(space.shape) == 3 or (len(space.shape) == 2 and space.dtype == np.uint8):
        return convolution_features(space)
    try:
        return fourier_features(space)
    except ValueError as error:
        raise ValueError(f"{env}: {error}, as features=spie.fourier_features(space, low=..., high=...)") from error


def singles(observations: Any, n: int) -> list[Any]:
    """The n observations of a batch, one by one."""
    if isinstance(observations, dict):
        parts = {key: singles(part, n) for key, part in observations.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(n)]
    if isinstance(observations, tuple):
        return list(zip(*(singles(part, n) for part in observations), strict=True))
    return list(observations)
