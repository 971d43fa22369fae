"""Observations as learners on features see them: numbers, images, categories, texts, or several of these together."""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.spaces import at, categories, leaves, singles
from spie.features import ConvolutionFeatures, FourierFeatures, convolution_features, fourier_features

Array = NDArray[Any]
Vector = NDArray[np.float64]
CELLS = 10  # of the grid on which a count bonus counts, along each number of an observation
FEATURES = 128  # of an observation; those of several parts share them
LEAST_FEATURES = 16  # of a part


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


class Categories:
    """Whole numbers with a few values each: one-hot, or random directions where those would be too many."""

    bounds = None

    def __init__(self, sizes: list[int], firsts: list[int], most: int) -> None:
        n = sum(sizes)
        self.phi_of = np.eye(n) if n <= most else np.random.default_rng(0).normal(size=(n, most))
        self.offsets = np.cumsum([0, *sizes[:-1]]) - np.array(firsts)

    @property
    def dimension(self) -> int:
        return int(self.phi_of.shape[1])

    def read(self, observation: Any) -> Vector:
        phi = self.phi_of[self.offsets + np.asarray(observation, np.int64).reshape(-1)].sum(axis=0)
        return np.asarray(phi / np.linalg.norm(phi))

    def read_all(self, observations: Any, n: int) -> Vector:
        return np.array([self.read(observation) for observation in singles(observations, n)])

    def state(self) -> dict[str, Array]:
        return {"phi_of": self.phi_of}

    def load(self, arrays: dict[str, Array]) -> None:
        self.phi_of = arrays["phi_of"].copy()


class Words:
    """Texts: a direction of its own for each."""

    bounds = None
    dimension = LEAST_FEATURES

    def read(self, observation: Any) -> Vector:
        return _direction(str(observation))

    def read_all(self, observations: Any, n: int) -> Vector:
        return np.array([self.read(observation) for observation in singles(observations, n)])

    def state(self) -> dict[str, Array]:
        return {}

    def load(self, arrays: dict[str, Array]) -> None:
        """Nothing is kept."""


@functools.lru_cache(1024)
def _direction(text: str) -> Vector:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    direction = np.random.default_rng(seed).normal(size=LEAST_FEATURES)
    return np.asarray(direction / np.linalg.norm(direction))


class Composite:
    """A Dict or a Tuple, by the features of each of its parts, side by side and with equal weight."""

    bounds = None

    def __init__(self, parts: list[tuple[tuple[Any, ...], Reader]]) -> None:
        self.parts = parts
        self.dimension = sum(reader.dimension for _, reader in parts)
        self.weight = 1 / math.sqrt(len(parts))

    def read(self, observation: Any) -> Vector:
        return self.weight * np.concatenate([reader.read(at(observation, path)) for path, reader in self.parts])

    def read_all(self, observations: Any, n: int) -> Vector:
        return np.array([self.read(observation) for observation in singles(observations, n)])

    def state(self) -> dict[str, Array]:
        return {f"part_{i}_{k}": v for i, (_, reader) in enumerate(self.parts) for k, v in reader.state().items()}

    def load(self, arrays: dict[str, Array]) -> None:
        for i, (_, reader) in enumerate(self.parts):
            own = f"part_{i}_"
            reader.load({name.removeprefix(own): array for name, array in arrays.items() if name.startswith(own)})


def reader(env: str, space: gym.Space[Any], features: Callable[[Any], Any] | None, most: int = FEATURES) -> Reader:
    """What reads the observations of a space, by given features or by default ones, of which there are `most`."""
    if isinstance(features, FourierFeatures):
        return Numbers(features)
    if isinstance(features, ConvolutionFeatures):
        return Images(features)
    if features is not None:
        return Anything(features, space)
    parts = list(leaves(space))
    if [path for path, _ in parts] == [()]:
        return _part(env, space, most)
    each = max(LEAST_FEATURES, most // len(parts))
    return Composite([(path, _part(env, part, each)) for path, part in parts])


def _part(env: str, space: gym.Space[Any], most: int) -> Reader:
    """Fourier features of numbers, a fixed random convolution of an image, one-hot categories, texts by direction."""
    if (of := categories(space)) is not None:
        return Categories(*of, most)
    if isinstance(space, gym.spaces.Box):
        if is_image(space):
            return Images(convolution_features(space, most))
        try:
            return Numbers(fourier_features(space, most))
        except ValueError as error:
            raise ValueError(f"{env}: {error}, as features=spie.fourier_features(space, low=..., high=...)") from error
    if isinstance(space.sample(), str):
        return Words()
    raise ValueError(
        f"{env}: observations of {type(space).__name__} have no default features; give features=, a function of an "
        "observation that returns numbers"
    )


def is_image(space: gym.spaces.Box) -> bool:
    """Three axes, or two of bytes."""
    return len(space.shape) == 3 or (len(space.shape) == 2 and space.dtype == np.uint8)
