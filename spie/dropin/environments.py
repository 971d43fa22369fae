"""Environments by whatever names them: a task of spie, a map, a Gymnasium id, MiniGrid, ALE, a function of the user."""

import hashlib
import importlib
import inspect
import re
import runpy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.spaces import at, leaves
from spie.errors import is_name, told
from spie.tasks.base import Kind
from spie.tasks.registry import find, make_env

EPISODE = 500  # steps after which episodes of a task of spie are truncated
ATARI_SIDE = 84  # of a frame, in pixels
VERSIONED = re.compile(r"-v\d+$")
Bounds = tuple[tuple[tuple[Any, ...], tuple[float, ...], tuple[float, ...]], ...]  # path in the space, lows, highs


@dataclass(frozen=True)
class MadeTask:
    """An environment, by what makes it: a name, or a function; `text` stands for what the function does."""

    kind: ClassVar[Kind] = "table"

    name: str
    function: Callable[[], Any] | None = None
    text: str = ""
    bounds: Bounds = ()  # of numbers in the observation that have none of their own

    @property
    def digest(self) -> str:
        what = f"made {self.name} {self.bounds!r} {self.text}"
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    def make(self) -> gym.Env[Any, Any]:
        """A new one."""
        env = make_environment(self.name) if self.function is None else _called(self.name, self.function)
        return Bounded(env, self.bounds) if self.bounds else env


def made_task(where: str | Callable[[], Any] | gym.Env[Any, Any]) -> MadeTask:
    """The task that is named, or that a function makes: `module:function`, `file.py:function`, or itself."""
    if isinstance(where, gym.Env):
        if not _is_as_registered(where):
            which = type(where.unwrapped).__name__
            raise ValueError(f"{which} cannot be made again as it is; give its id, or a function that makes it")
        return MadeTask(str(where.spec.id))  # type: ignore[union-attr]
    if callable(where):
        return MadeTask(where.__name__, where, text_of(where))
    if not is_name(where):
        raise ValueError(f"env must be the name of a task, or a function that makes one, not {told(where)}")
    if where.endswith(".py"):
        raise ValueError(f"{where}: which function in it makes the environment? Write {where}:function")
    if is_function(where):
        named_function(where)
        return MadeTask(where, None, named_text(where))
    return MadeTask(where)


def _is_as_registered(env: gym.Env[Any, Any]) -> bool:
    """Whether its id alone makes it again: no options, time limits or wrappers of the user's."""
    spec = env.spec
    usual = None if spec is None else gym.registry.get(spec.id)
    if spec is None or usual is None:
        return False
    same = {**spec.kwargs, "render_mode": None} == {**usual.kwargs, "render_mode": None}
    return same and spec.max_episode_steps == usual.max_episode_steps and not spec.additional_wrappers


def is_function(name: str) -> bool:
    """Whether a name is `module:function` or `file.py:function`, and no id of Gymnasium with its module."""
    return ":" in name and "\n" not in name and not VERSIONED.search(name) and name not in gym.registry


def named_function(name: str) -> Callable[..., Any]:
    """The function `module:function`, of a module on the path or in the current folder, or `file.py:function`."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py") and not Path(place).is_file():
        raise ValueError(f"{name}: there is no file {place}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        content = runpy.run_path(place) if place.endswith(".py") else vars(importlib.import_module(place))
    except Exception as error:  # whatever the user's module does
        raise ValueError(f"{name}: {place} cannot be loaded ({type(error).__name__}: {error})") from error
    found: Any = content.get(attribute)
    if not callable(found):
        raise ValueError(f'{name}: {place} has no function "{attribute}"')
    made: Callable[..., Any] = found
    return made


def named_text(name: str) -> str:
    """What `module:function` or `file.py:function` does."""
    place = name.rpartition(":")[0]
    return Path(place).read_text(encoding="utf-8") if place.endswith(".py") else text_of(named_function(name))


def text_of(function: Callable[..., Any]) -> str:
    """What a function does: the text of its file, or of itself where it was typed in."""
    try:
        file = inspect.getsourcefile(function)
        if file is not None and Path(file).is_file():
            return Path(file).read_text(encoding="utf-8")
        return inspect.getsource(function)
    except (OSError, TypeError):
        return function.__qualname__


def _called(name: str, function: Callable[[], Any]) -> gym.Env[Any, Any]:
    try:
        env = function()
    except Exception as error:  # whatever the user's function does
        raise ValueError(f"{name} raised {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(env, gym.Env):
        raise ValueError(f"{name} returned {type(env).__name__}; it must return a gymnasium.Env")
    return env


def make_environment(name: str, max_steps: int = EPISODE) -> gym.Env[Any, Any]:
    """An environment by name; ValueError in one line where there is none."""
    if is_function(name):
        return _called(name, named_function(name))
    if name.removeprefix("minigrid:").startswith("MiniGrid-"):
        _import("minigrid", 'MiniGrid needs minigrid: pip install "spie-rl[minigrid]"')
        return _registered(name.removeprefix("minigrid:"))
    if name.startswith("ALE/"):
        return _atari(name)
    try:
        entry = find(name)
    except ValueError as error:
        if name in gym.registry or VERSIONED.search(name):
            return _registered(name)
        raise ValueError(f"--env {name}: {error}") from error
    return _registered(name) if entry.kind == "images" else make_env(name, entry.kind, max_steps=max_steps)


def _import(module: str, cure: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(cure) from None


def _registered(name: str, **options: Any) -> gym.Env[Any, Any]:
    try:
        return gym.make(name, **options)
    except (gym.error.Error, TypeError, ImportError) as error:
        raise ValueError(f"--env {name}: {str(error).partition(chr(10))[0]}") from error


def _atari(name: str) -> gym.Env[Any, Any]:
    """A game as agents see it: every fourth frame, grey, 84 x 84, the last four together."""
    gym.register_envs(_import("ale_py", 'ALE needs ale-py: pip install "spie-rl[deep]"'))
    env = _registered(name, obs_type="grayscale", frameskip=4)
    height, width = env.observation_space.shape or (0, 0)
    rows, columns = (np.linspace(0, n - 1, ATARI_SIDE).round().astype(int) for n in (height, width))
    small = gym.spaces.Box(0, 255, (ATARI_SIDE, ATARI_SIDE), np.uint8)
    shown = gym.wrappers.TransformObservation(env, lambda frame: frame[np.ix_(rows, columns)], small)
    return gym.wrappers.FrameStackObservation(shown, 4)


class Bounded(gym.ObservationWrapper[Any, Any, Any]):
    """Says bounds of numbers that have none of their own; observations stay as they are, and may lie outside."""

    def __init__(self, env: gym.Env[Any, Any], bounds: Bounds) -> None:
        super().__init__(env)
        self.observation_space = _with_bounds(env.observation_space, {path: lows for path, *lows in bounds})

    def observation(self, observation: Any) -> Any:
        return observation


def _with_bounds(space: gym.Space[Any], bounds: dict[tuple[Any, ...], Any], path: tuple[Any, ...] = ()) -> Any:
    if path in bounds and isinstance(space, gym.spaces.Box):
        low, high = (np.reshape(x, space.shape).astype(space.dtype) for x in bounds[path])
        return gym.spaces.Box(low, high, space.shape, space.dtype)
    if isinstance(space, gym.spaces.Dict):
        return gym.spaces.Dict({key: _with_bounds(part, bounds, (*path, key)) for key, part in space.items()})
    if isinstance(space, gym.spaces.Tuple):
        return gym.spaces.Tuple(_with_bounds(part, bounds, (*path, i)) for i, part in enumerate(space.spaces))
    return space


def missing_bounds(space: gym.Space[Any], observations: list[Any]) -> Bounds:
    """For numbers without bounds those that they stayed in, in some observations, and half as much on each side."""
    found = []
    for path, part in leaves(space):
        if not isinstance(part, gym.spaces.Box):
            continue
        low, high = (np.asarray(x, np.float64).reshape(-1) for x in (part.low, part.high))
        most = np.finfo(np.float32).max
        open_ = ~((np.abs(low) < most) & (np.abs(high) < most))
        if not open_.any():
            continue
        seen: NDArray[np.float64] = np.array([np.ravel(at(one, path)) for one in observations], np.float64)
        least, largest = seen.min(axis=0), seen.max(axis=0)
        room = np.maximum(0.5 * (largest - least), 1e-3)
        lows, highs = np.where(open_, least - room, low), np.where(open_, largest + room, high)
        found.append((path, tuple(lows.round(6).tolist()), tuple(highs.round(6).tolist())))
    return tuple(found)
