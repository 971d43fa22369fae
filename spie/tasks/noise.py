"""What disturbs a picture and says nothing about the state: pixels at random, or a second figure that walks about.

patch    a strip beside the map, four pixels wide, is drawn again at every step
walker   a figure begins anywhere and goes to a neighbouring cell at random at every step; the agent is drawn above
         it, and neither is in the other's way
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spie.errors import is_among, unknown
from spie.tasks.mdp import MDP

NOISES = ("none", "patch", "walker")
STRIP = 4  # pixels
WALKER = 200  # its grey; the agent has 255, a goal 160

Images = NDArray[np.uint8]


def check_noise(noise: str) -> None:
    if not is_among(noise, NOISES):
        raise unknown("noise of an image task", noise, NOISES)


class Disturbed:
    """Pictures of the states of an MDP, uint8 [S, H, W], with a disturbance; its own state is where the walker is."""

    def __init__(self, noise: str, mdp: MDP, images: Images, agent: int) -> None:
        """agent: its grey."""
        check_noise(noise)
        self.noise, self.images = noise, images
        height, width = images.shape[1:]
        self.shape = (height, width + STRIP) if noise == "patch" else (height, width)
        if noise == "walker":
            assert mdp.cells is not None
            self._figures = images == agent  # [S, H, W]
            self._neighbours = _neighbours(mdp.cells)

    def begin(self, rng: np.random.Generator) -> int:
        """Where the walker is when an episode begins."""
        return int(rng.integers(len(self.images))) if self.noise == "walker" else 0

    def move(self, walker: int, rng: np.random.Generator) -> int:
        """Where it is one step later."""
        return int(self._neighbours[walker, rng.integers(4)]) if self.noise == "walker" else 0

    def pictures(
        self, states: NDArray[np.int64], walkers: NDArray[np.int64], rngs: Sequence[np.random.Generator]
    ) -> Images:
        """What is seen in states [n], uint8 [n, H, W], with the generator of each."""
        seen = self.images[states]
        if self.noise == "patch":
            strips = [rng.integers(0, 256, (seen.shape[1], STRIP), np.uint8) for rng in rngs]
            return np.concatenate([seen, np.stack(strips)], axis=2)
        if self.noise == "walker":
            seen = np.where(self._figures[walkers] & ~self._figures[states], np.uint8(WALKER), seen)
        return seen


def _neighbours(cells: NDArray[np.int32]) -> NDArray[np.int64]:
    """The state above, right, below and left of each [S, 4]; itself where there is none."""
    at = {tuple(cell): s for s, cell in enumerate(cells.tolist())}
    ways = ((-1, 0), (0, 1), (1, 0), (0, -1))
    return np.array([[at.get((row + i, column + j), s) for i, j in ways] for (row, column), s in at.items()], np.int64)
