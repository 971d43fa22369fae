"""What can be explored: tasks as data, known by name and to Gymnasium."""

from spie.tasks.atari import AtariTask
from spie.tasks.chains import riverswim, sixarms
from spie.tasks.classic import mountain_car, pendulum
from spie.tasks.graphs import graph, hexgrid, tree
from spie.tasks.grids import grid, maze, write_map
from spie.tasks.gymnasium import EnvTask, GymnasiumTask
from spie.tasks.minatar import MinAtarTask
from spie.tasks.pixels import PixelTask, deep_sea
from spie.tasks.tracks import linear_track, plus_maze, t_maze, tartarus

__all__ = [
    "AtariTask",
    "EnvTask",
    "GymnasiumTask",
    "MinAtarTask",
    "PixelTask",
    "deep_sea",
    "graph",
    "grid",
    "hexgrid",
    "linear_track",
    "maze",
    "mountain_car",
    "pendulum",
    "plus_maze",
    "riverswim",
    "sixarms",
    "t_maze",
    "tartarus",
    "tree",
    "write_map",
]
