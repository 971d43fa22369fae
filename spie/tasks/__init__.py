"""What can be explored: tasks as data, known by name and to Gymnasium."""

from spie.tasks.atari import AtariTask
from spie.tasks.chains import riverswim, sixarms
from spie.tasks.classic import mountain_car, pendulum
from spie.tasks.grids import grid, maze
from spie.tasks.gymnasium import EnvTask, GymnasiumTask
from spie.tasks.minatar import MinAtarTask
from spie.tasks.pixels import PixelTask, deep_sea

__all__ = [
    "AtariTask",
    "EnvTask",
    "GymnasiumTask",
    "MinAtarTask",
    "PixelTask",
    "deep_sea",
    "grid",
    "maze",
    "mountain_car",
    "pendulum",
    "riverswim",
    "sixarms",
]
