"""Images from Gymnasium: any id whose observations are uint8 images, and any VectorEnv of one's own.

All image tasks are a `VectorEnv` of single grey frames uint8 [n, H, W] that waits to be reset. Those of spie can be
saved (`get_state`, `set_state`); others cannot, and a run that is resumed on them begins a new episode.
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
        what = json.dumps(["gymnasium", self.id, dict(self.options)], sort_keys=True, default=repr)
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
        self._frames = np.zeros((n, *shape[:2]), np.uint8)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        mask = vector.reset_mask(self.num_envs, options)
        seeds = [None if seed is None else seed + i if isinstance(seed, int) else seed[i] for i in range(self.num_envs)]
        for i in np.flatnonzero(mask):
            self._frames[i] = grey(self.envs[i].reset(seed=seeds[i])[0])
        return self._frames.copy(), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for i, env in enumerate(self.envs):
            frame, reward, terminated[i], truncated[i], _ = env.step(int(actions[i]))
            self._frames[i], rewards[i] = grey(frame), float(reward)
        return self._frames.copy(), rewards, terminated, truncated, {}

    def close_extras(self, **_: Any) -> None:
        for env in self.envs:
            env.close()


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
