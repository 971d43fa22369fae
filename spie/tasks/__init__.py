"""What can be explored: tasks as data, known by name and to Gymnasium."""

from spie.tasks.atari import AtariTask
from spie.tasks.chains import riverswim, sixarms
from spie.tasks.classic import acrobot, mountain_car, pendulum
from spie.tasks.graphs import graph, hexgrid, tree
from spie.tasks.grids import grid, maze, write_map
from spie.tasks.gymnasium import EnvTask, GymnasiumTask
from spie.tasks.minatar import MinAtarTask
from spie.tasks.pixels import PixelTask, deep_sea
from spie.tasks.toy_text import cliff_walking, frozen_lake, one_way_maze, random_maze, taxi
from spie.tasks.tracks import linear_track, plus_maze, t_maze, tartarus

__all__ = [
    "AtariTask",
    "EnvTask",
    "GymnasiumTask",
    "MinAtarTask",
    "PixelTask",
    "acrobot",
    "cliff_walking",
    "deep_sea",
    "frozen_lake",
    "graph",
    "grid",
    "hexgrid",
    "linear_track",
    "maze",
    "mountain_car",
    "one_way_maze",
    "pendulum",
    "plus_maze",
    "random_maze",
    "riverswim",
    "sixarms",
    "t_maze",
    "tartarus",
    "taxi",
    "tree",
    "write_map",
]
