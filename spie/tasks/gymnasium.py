"""Images from Gymnasium: any id whose observations are uint8 images, and any VectorEnv of one's own.

All image tasks are a `VectorEnv` of single grey frames uint8 [n, H, W] that waits to be reset. Those of spie can be
saved (`get_state`, `set_state`). Of a Gymnasium id an episode is saved as the environment's own `get_state` gives it,
in plain arrays, where it has one and a `set_state`; else as the seed that it began with and its actions, which are
played again, and checked against the last frame and the rewards. Where that fails, as in an environment that draws
random numbers of its own, a run that is resumed begins a new episode and says so. A VectorEnv of one's own is saved
where it has the two methods.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spie.tasks import vector
from spie.tasks.base import ImageTask
from spie.tasks.registry import PATTERNS, Entry, find, make_env


@dataclass(frozen=True)
class GymnasiumTask(ImageTask):
    """A Gymnasium id whose observations are uint8 images, with the options of its `gymnasium.make`."""

    id: str
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return self.id

    @property
    def digest(self) -> str:
        """Of the id and the options; what the environment does lies with whoever wrote it."""
        what = json.dumps(["gymnasium, a seed an episode", self.id, dict(self.options)], sort_keys=True, default=repr)
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    @property
    def frame_skip(self) -> int:
        return 1

    @property
    def recipe(self) -> tuple[str, dict[str, Any]]:
        return self.id, dict(self.options)

    def make(self, n: int) -> "GymnasiumImages":
        return GymnasiumImages(self.id, n, **self.options)

    def env(self, render_mode: str | None = None, max_steps: int | None = None) -> gym.Env[Any, Any]:
        """A single one, as Gymnasium makes it."""
        return gym.make(self.id, render_mode=render_mode, max_episode_steps=max_steps, **self.options)


@dataclass(frozen=True)
class EnvTask(ImageTask):
    """A VectorEnv of one's own: `factory(n)` makes n copies that show single grey frames and do not reset themselves.

        spie.EnvTask("my-maze", lambda n: MyMazes(n))

    The name stands for all that determines it: another environment needs another name.

    label: its name. factory: called with the number of copies. frame_skip: frames of the game in a step.

    >>> spie.EnvTask("my-maze", lambda n: None).name
    'my-maze'
    """

    label: str
    factory: Callable[[int], Any]
    frame_skip: int = 1

    @property
    def name(self) -> str:
        return self.label

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(["env", self.name, self.frame_skip]).encode()).hexdigest()[:24]

    def make(self, n: int) -> Any:
        return self.factory(n)


class GymnasiumImages(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Copies of any Gymnasium environment whose observations are uint8 images, grey or in colour."""

    def __init__(self, name: str, n: int, **options: Any) -> None:
        try:
            self.envs = [gym.make(name, **options) for _ in range(n)]
        except (TypeError, gym.error.Error) as error:
            raise ValueError(f"{name}: {str(error).splitlines()[0]}") from error
        space, actions = self.envs[0].observation_space, self.envs[0].action_space
        shape = space.shape or ()
        if not (isinstance(space, gym.spaces.Box) and space.dtype == np.uint8 and len(shape) in (2, 3)) or (
            len(shape) == 3 and shape[2] not in (1, 3)
        ):
            raise ValueError(
                f"{name}: its observation is {type(space).__name__} {list(shape)} of {space.dtype}, not an image "
                "(Box of uint8, height x width, perhaps x 1 or 3); a wrapper that renders it would make it one"
            )
        if not isinstance(actions, gym.spaces.Discrete) or actions.start != 0:
            raise ValueError(f"{name}: its actions are {actions}; DQN needs Discrete ones, counted from 0")
        self.num_envs = n
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED}
        self.single_observation_space = gym.spaces.Box(0, 255, shape[:2], np.uint8)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.single_action_space = actions
        self.action_space = batch_space(actions, n)
        self._name, self._rngs = name, vector.generators(0, n)
        self._frames = np.zeros((n, *shape[:2]), np.uint8)
        self._seeds = np.zeros(n, np.int64)  # of the episodes that are under way
        self._actions: list[list[int]] = [[] for _ in range(n)]  # and what was done and paid in them
        self._rewards = np.zeros(n)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        mask = vector.reset_mask(self.num_envs, options)
        vector.reseed(self._rngs, seed, mask)
        for i in np.flatnonzero(mask).tolist():
            self._begin(i, int(self._rngs[i].integers(2**31)))
        return self._frames.copy(), {}

    def _begin(self, i: int, seed: int) -> None:
        """A new episode: with a seed of its own, so that it can be played again."""
        self._frames[i] = grey(self.envs[i].reset(seed=seed)[0])
        self._seeds[i], self._actions[i], self._rewards[i] = seed, [], 0

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for i in range(self.num_envs):
            rewards[i], terminated[i], truncated[i] = self._step(i, int(actions[i]))
        return self._frames.copy(), rewards, terminated, truncated, {}

    def _step(self, i: int, action: int) -> tuple[float, bool, bool]:
        frame, reward, terminated, truncated, _ = self.envs[i].step(action)
        self._frames[i] = grey(frame)
        self._actions[i].append(action)
        self._rewards[i] += float(reward)
        return float(reward), bool(terminated), bool(truncated)

    def get_state(self) -> vector.State:
        """Everything that decides how the episodes go on."""
        own = {
            f"env{i}.{name}": np.asarray(array)
            for i, env in enumerate(self.envs)
            if _gives_state(env)
            for name, array in env.unwrapped.get_state().items()  # type: ignore[attr-defined]
        }
        if any(array.dtype.hasobject for array in own.values()):
            own = {}  # no plain arrays: the actions will do
        return own | self._arrays() | {"actions": np.array([a for taken in self._actions for a in taken], np.int64)}

    def _arrays(self) -> vector.State:
        return {
            "random": vector.save_generators(self._rngs),
            "seeds": self._seeds.copy(),
            "lengths": np.array([len(taken) for taken in self._actions], np.int64),
            "rewards": self._rewards.copy(),
            "frames": self._frames.copy(),
        }

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state of `get_state`; CannotGoOnError where an episode comes out otherwise."""
        vector.check_state(self._name, state, self._arrays())
        vector.load_generators(self._rngs, state["random"])
        parts = np.split(state["actions"], np.cumsum(state["lengths"])[:-1])
        for i, (seed, actions) in enumerate(zip(state["seeds"].tolist(), parts, strict=True)):
            self._begin(i, seed)
            own = {name.partition(".")[2]: array for name, array in state.items() if name.startswith(f"env{i}.")}
            if own and _gives_state(self.envs[i]):
                _set_own(self.envs[i], own, len(actions))
                self._actions[i], self._frames[i] = actions.tolist(), state["frames"][i]
                self._rewards[i] = state["rewards"][i]
                continue
            over = [any(self._step(i, action)[1:]) for action in actions.tolist()]
            same = np.array_equal(self._frames[i], state["frames"][i]) and self._rewards[i] == state["rewards"][i]
            if any(over[:-1]) or not same:
                why = "the same actions from the same seed lead elsewhere"
                raise vector.CannotGoOnError(
                    f"{self._name}: the episode under way cannot be brought back, because {why}"
                )

    def close_extras(self, **_: Any) -> None:
        for env in self.envs:
            env.close()


# Wrappers that keep nothing of an episode, but for the time limit, whose count is known.
_FORGETFUL = (
    gym.wrappers.TimeLimit, gym.wrappers.OrderEnforcing, gym.wrappers.PassiveEnvChecker,
    gym.wrappers.TransformObservation,
)  # fmt: skip


def _wrappers(env: Any) -> list[gym.Wrapper[Any, Any, Any, Any]]:
    found = []
    while isinstance(env, gym.Wrapper):
        found.append(env)
        env = env.env
    return found


def _gives_state(env: gym.Env[Any, Any]) -> bool:
    """Whether an environment gives its state, and no wrapper around it has more of it."""
    return vector.can_be_saved(env.unwrapped) and all(isinstance(one, _FORGETFUL) for one in _wrappers(env))


def _set_own(env: Any, state: Mapping[str, NDArray[Any]], steps: int) -> None:
    env.unwrapped.set_state(state)
    for wrapper in _wrappers(env):
        if isinstance(wrapper, gym.wrappers.TimeLimit):
            wrapper._elapsed_steps = steps  # type: ignore[assignment]  # None before the first reset


def image_shape(env: Any) -> tuple[int, int]:
    """(height, width) of the single frames that a VectorEnv gives; ValueError where it does not give such."""
    space = env.single_observation_space
    shape: tuple[int, ...] = space.shape or ()
    if not isinstance(space, gym.spaces.Box) or space.dtype != np.uint8 or len(shape) != 2:
        raise ValueError(
            f"observations are {type(space).__name__} {list(shape)} of {space.dtype}; DQN needs single grey images, "
            "Box of uint8, height x width: it stacks them itself"
        )
    if env.metadata.get("autoreset_mode") == gym.vector.AutoresetMode.SAME_STEP:
        raise ValueError(
            "the environment resets itself within a step, and so hides the last frame of an episode; make it with "
            "autoreset_mode=AutoresetMode.DISABLED"
        )
    return shape[0], shape[1]


def grey(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """An image [H, W], [H, W, 1] or [H, W, 3] as its luminance [H, W]."""
    if frame.ndim == 2:
        return frame
    if frame.shape[2] == 1:
        return frame[:, :, 0]
    return np.asarray(np.rint(frame @ np.array([0.299, 0.587, 0.114])), np.uint8)


def _entry(name: str) -> Entry | None:
    """A Gymnasium id; one that spie registered is the task itself, which can be saved and counts its true states."""
    registered = gym.registry.get(name)
    if registered is None:
        return None
    if registered.entry_point == f"{make_env.__module__}:{make_env.__name__}" and registered.kwargs["kind"] == "images":
        return find(registered.kwargs["name"], "images")
    return Entry(name, "images", functools.partial(_from_options, name))


def _from_options(id: str, **options: Any) -> GymnasiumTask:
    return GymnasiumTask(id, options)


PATTERNS["images"].append(_entry)
