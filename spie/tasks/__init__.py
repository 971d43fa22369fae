"""What can be explored: tasks as data, known by name and to Gymnasium."""

from spie.tasks.atari import AtariTask
from spie.tasks.chains import riverswim, sixarms
from spie.tasks.classic import mountain_car, pendulum
from spie.tasks.grids import grid, maze
from spie.tasks.gymnasium import EnvTask, GymnasiumTask
from spie.tasks.pixels import PixelTask, deep_sea
from spie.tasks.toy_text import cliff_walking, frozen_lake, one_way_maze, random_maze, taxi

__all__ = [
    "AtariTask",
    "EnvTask",
    "GymnasiumTask",
    "PixelTask",
    "cliff_walking",
    "deep_sea",
    "frozen_lake",
    "grid",
    "maze",
    "mountain_car",
    "one_way_maze",
    "pendulum",
    "random_maze",
    "riverswim",
    "sixarms",
    "taxi",
]
