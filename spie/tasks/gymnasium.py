"""Environments that show images, by name: Atari games, the small image tasks, any Gymnasium id with image observations.

All of them are a `VectorEnv` of single grey frames uint8 [n, H, W] that waits to be reset. Those of spie can be saved
(`get_state`, `set_state`); others cannot, and a run that is resumed on them begins a new episode.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spie.errors import unknown
from spie.tasks import vector
from spie.tasks.atari import GAMES, make_atari
from spie.tasks.grids import MAPS
from spie.tasks.pixels import make_pixels


def make_images(name: str, n: int = 1, **options: Any) -> Any:
    """n copies of an environment: "ALE/MontezumaRevenge-v5", "MontezumaRevenge", "four-rooms", "deep-sea-10", a map
    by name or file, a Gymnasium id.

    options: of the environment, such as frame_skip of a game or max_steps of a task.
    """
    make, known = _maker(name)
    for option in options:
        if known and option not in known:
            raise unknown(f"option of {name}", option, known)
    return make(n=n, **options)


def _plain(game: str) -> str:
    """Freeway is freeway, MontezumaRevenge is montezuma-revenge."""
    return game.replace("-", "").lower()


def options_of(name: str) -> tuple[str, ...]:
    """The options of an environment; none where only Gymnasium knows them."""
    return _maker(name)[1]


def _maker(name: str) -> tuple[Callable[..., Any], tuple[str, ...]]:
    registered = gym.registry.get(name)
    if name.startswith("ALE/") or _plain(name) in map(_plain, GAMES):
        return partial(make_atari, name), ("frame_skip", "max_frames", "sticky")
    if registered is not None and name.startswith("spie/Pixels-"):
        return partial(make_pixels, **registered.kwargs), ("max_steps",)
    if name.startswith("deep-sea-") or name in MAPS or "\n" in name or Path(name).is_file():
        return partial(make_pixels, name), ("max_steps",)
    if registered is not None:
        return partial(GymnasiumImages, name), ()
    raise unknown("game, image task, map or Gymnasium id", name, [*GAMES, *MAPS, "deep-sea-10"])


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
