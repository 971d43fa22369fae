"""Atari 2600 games under the protocol of Machado et al. (2018), several of them stepped together.

- All 18 actions, default mode and difficulty; an episode ends with the game, never with a life.
- Sticky actions: in every emulator frame the action before stays in force with probability .25, whatever the agent
  asks for. They are drawn here: a state saved by ALE omits the action that sticks.
- An action is held for `frame_skip` frames. The observation is the pixelwise maximum of the last two frames (sprites
  flicker) in ALE's luminance, scaled to 84 x 84 by averaging over areas, rounded half up. It is computed in whole
  numbers, so it is the same on every machine.
- After `max_frames` emulator frames an episode is truncated.
- Montezuma's Revenge tells in `info["state"]` which of its 24 rooms it is in.
"""

import dataclasses
import difflib
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from spie.tasks import vector
from spie.tasks.base import ImageTask
from spie.tasks.registry import PATTERNS, Entry, register_task

GAMES = ("Freeway", "Gravitar", "MontezumaRevenge", "PrivateEye", "Solaris", "Venture")  # of the paper
# Rooms of a game, where it is known which byte of its memory says so: that byte, and how many rooms there are.
ROOMS = {"montezumarevenge": (3, 24)}
SIDE = 84
N_ACTIONS = 18


@dataclass(frozen=True)
class AtariTask(ImageTask):
    """An Atari game, "MontezumaRevenge", "montezuma-revenge" or "ALE/MontezumaRevenge-v5"."""

    game: str
    frame_skip: int = 5
    max_frames: int = 18_000
    sticky: float = 0.25

    def __post_init__(self) -> None:
        whole = all(isinstance(n, int) and n >= 1 for n in (self.frame_skip, self.max_frames))
        if not whole or not isinstance(self.sticky, int | float) or not 0 <= self.sticky < 1:
            raise ValueError(
                f"{self.game}: frame_skip {self.frame_skip} and max_frames {self.max_frames} must be whole numbers of "
                f"1 or more, sticky {self.sticky} in [0, 1)"
            )

    @property
    def name(self) -> str:
        return self.game

    @property
    def digest(self) -> str:
        """Of the game, however it is spelled, and of the options."""
        what = json.dumps(["atari", _plain(self.game), self.frame_skip, self.max_frames, self.sticky])
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    @property
    def shape(self) -> tuple[int, int]:
        return SIDE, SIDE

    @property
    def recipe(self) -> tuple[str, dict[str, Any]]:
        options = dataclasses.asdict(self)
        return options.pop("game"), options

    def make(self, n: int, seed: int | Sequence[int] = 0) -> "AtariVectorEnv":
        return AtariVectorEnv(self, vector.generators(seed, n))


def make_atari(game: str, n: int = 1, seed: int | Sequence[int] = 0, **options: Any) -> "AtariVectorEnv":
    """n copies of a game, each with a generator of its own; options as those of `AtariTask`."""
    return AtariTask(game, **options).make(n, seed)


class AtariVectorEnv(gym.vector.VectorEnv[NDArray[np.uint8], NDArray[np.int64], NDArray[Any]]):
    """Observations uint8 [n, 84, 84], the screen alone: whoever needs several frames stacks them."""

    def __init__(self, task: AtariTask, rngs: list[np.random.Generator]) -> None:
        rom = _rom(task.game)
        from ale_py import ALEInterface, LoggerMode

        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.game, self._rom, self._rngs = task.game, rom, rngs
        self._room_byte, self.n_states = ROOMS.get(_plain(task.game), (0, 0))  # what is told as the true state
        self.frame_skip, self.max_frames, self.sticky = task.frame_skip, task.max_frames, task.sticky
        self.num_envs = n = len(rngs)
        self.metadata = {"autoreset_mode": gym.vector.AutoresetMode.DISABLED, "render_modes": ["rgb_array"]}
        self.render_mode = "rgb_array"
        self.single_observation_space = gym.spaces.Box(0, 255, (SIDE, SIDE), np.uint8)
        self.observation_space = batch_space(self.single_observation_space, n)
        self.single_action_space = gym.spaces.Discrete(N_ACTIONS)
        self.action_space = batch_space(self.single_action_space, n)

        self._emulators = [ALEInterface() for _ in rngs]
        self._load(np.ones(n, np.bool_))
        height, width = self._emulators[0].getScreenDims()
        self._screens = np.zeros((2, n, height, width), np.uint8)  # the last frame and the one before
        self._observations = np.zeros((n, SIDE, SIDE), np.uint8)
        self._held = np.zeros(n, np.int64)  # the action in force, which sticks
        self._over = np.ones(n, np.bool_)

    def _load(self, which: NDArray[np.bool_]) -> None:
        for i in np.flatnonzero(which):
            self._emulators[i].setFloat("repeat_action_probability", 0.0)
            self._emulators[i].setInt("random_seed", int(self._rngs[i].integers(2**31)))
            self._emulators[i].loadROM(self._rom)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        mask = vector.reset_mask(self.num_envs, options)
        self._load(vector.reseed(self._rngs, seed, mask))
        self._screens[:, mask] = 0
        for i in np.flatnonzero(mask):
            self._emulators[i].reset_game()
            self._emulators[i].getScreenGrayscale(self._screens[0, i])
        self._held[mask] = 0
        self._over[mask] = False
        self._observations[mask] = shrink(self._screens[0, mask])
        return self._observations.copy(), self._rooms()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        actions = np.asarray(actions)
        vector.check_step(self.game, actions, N_ACTIONS, self._over)
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        self._screens[1] = 0
        for i, emulator in enumerate(self._emulators):
            moves = self._rngs[i].random(self.frame_skip) >= self.sticky
            for frame in range(self.frame_skip):
                if moves[frame]:
                    self._held[i] = actions[i]
                rewards[i] += emulator.act(int(self._held[i]))
                terminated[i] = emulator.game_over(with_truncation=False)
                truncated[i] = not terminated[i] and emulator.getEpisodeFrameNumber() >= self.max_frames
                if terminated[i] or truncated[i]:
                    break
                if frame == self.frame_skip - 2:
                    emulator.getScreenGrayscale(self._screens[1, i])
            emulator.getScreenGrayscale(self._screens[0, i])
        self._over = terminated | truncated
        self._observations = shrink(self._screens.max(axis=0))
        return self._observations.copy(), rewards, terminated, truncated, self._rooms()

    def _rooms(self) -> dict[str, Any]:
        """The rooms that the games are in, where that is known."""
        if not self.n_states:
            return {}
        rooms = [min(int(emulator.getRAM()[self._room_byte]), self.n_states - 1) for emulator in self._emulators]
        return {"state": np.array(rooms)}

    def render(self) -> tuple[NDArray[np.uint8], ...]:
        """The screens in colour. ALE keeps no picture in a saved state: after `set_state`, first after a step."""
        return tuple(emulator.getScreenRGB() for emulator in self._emulators)

    def get_state(self) -> vector.State:
        """Everything that decides how the episodes go on, ALE's own generators included."""
        emulators = {
            f"emulator{i}": np.frombuffer(emulator.cloneState(include_rng=True).serialize(), np.uint8)
            for i, emulator in enumerate(self._emulators)
        }
        return emulators | self._arrays()

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state of `get_state`."""
        from ale_py import ALEState

        vector.check_state(self.game, state, self._arrays())
        for i, emulator in enumerate(self._emulators):
            try:
                emulator.restoreState(ALEState(state[f"emulator{i}"].tobytes()))
            except (KeyError, RuntimeError, SystemError) as error:
                raise ValueError(f"{self.game}: the saved state of emulator {i} is missing or damaged") from error
        vector.load_generators(self._rngs, state["random"])
        self._held, self._over = state["held"].copy(), state["over"].copy()
        self._observations = state["observations"].copy()

    def _arrays(self) -> vector.State:
        return {
            "random": vector.save_generators(self._rngs),
            "held": self._held.copy(),
            "over": self._over.copy(),
            "observations": self._observations.copy(),
        }


def shrink(screens: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Screens [n, height, width] averaged over areas to [n, 84, 84].

    Weights are whole numbers and sums stay below 2^24, so float32 holds them exactly, in whatever order they are added.
    """
    n, height, width = screens.shape
    rows, columns = _overlaps(height), _overlaps(width)
    bands = rows @ screens.astype(np.float32).reshape(-1, rows.shape[1], width)
    sums = bands.reshape(2 * n, -1, columns.shape[1]) @ columns.T  # in halves: for more, the library wakes its threads
    area = rows[0].sum() * columns[0].sum()
    return np.asarray((sums + area // 2) / area, np.uint8).reshape(n, SIDE, SIDE)


def _overlaps(length: int) -> NDArray[np.float32]:
    """How far each of `length` old pixels reaches into each of 84 new ones: one period of it, in whole units."""
    period = math.gcd(length, SIDE)
    old, new = length // period, SIDE // period
    begins, ends = np.arange(new)[:, None] * old, np.arange(old) * new
    overlap = np.minimum(begins + old, ends + new) - np.maximum(begins, ends)
    return np.asarray(np.maximum(overlap, 0), np.float32)


def _plain(game: str) -> str:
    """montezumarevenge, however it is spelled."""
    return game.removeprefix("ALE/").removesuffix("-v5").replace("_", "").replace("-", "").lower()


def _rom(game: str) -> Path:
    """Where the ROM of a game is."""
    try:
        from ale_py import roms
    except ImportError as error:
        raise ImportError('Atari needs ale-py: pip install "spie-rl[deep]"') from error
    known = {rom.replace("_", ""): rom for rom in roms.get_all_rom_ids()}
    plain = _plain(game)
    if plain not in known:
        close = difflib.get_close_matches(plain, known, n=1)
        hint = f'; did you mean "{known[close[0]].title().replace("_", "")}"?' if close else "."
        raise ValueError(f'no Atari game "{game}"{hint} Known: {", ".join(GAMES)} and every other game of ale_py')
    try:
        rom = roms.get_rom_path(known[plain])
    except OSError as error:
        why = str(error).splitlines()[0]
        raise OSError(f"{game}: its ROM cannot be used ({why}); install ale-py again, or set ALE_ROMS_DIR") from error
    assert rom is not None
    return rom


def _entry(name: str) -> Entry | None:
    """A game of the paper by any of its names, or any other one of ale_py by its Gymnasium id."""
    known = name.startswith("ALE/") or _plain(name) in map(_plain, GAMES)
    return Entry(name, "images", functools.partial(AtariTask, name)) if known else None


for _game in GAMES:
    register_task(_game, "images")(functools.partial(AtariTask, _game))
PATTERNS["images"].append(_entry)
