"""Environments as data, and their Gymnasium ids."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from spie.continuous import ContinuousEnv, ContinuousTask
from spie.envs.chains import riverswim, sixarms
from spie.envs.grids import grid, maze
from spie.envs.mountain_car import mountain_car, pendulum
from spie.mdp import MDP, MDPEnv

__all__ = [
    "grid",
    "make_continuous",
    "make_env",
    "maze",
    "mountain_car",
    "pendulum",
    "register",
    "riverswim",
    "sixarms",
]


def make_env(mdp: str, render_mode: str | None = None, max_steps: int | None = None, **arguments: Any) -> MDPEnv:
    """Gymnasium environment of an MDP by its function's name; further arguments go to that function."""
    build: dict[str, Callable[..., MDP]] = {"riverswim": riverswim, "sixarms": sixarms, "grid": grid}
    return MDPEnv(build[mdp](**arguments), render_mode, max_steps)


make_env.metadata = MDPEnv.metadata  # type: ignore[attr-defined]  # where gymnasium.make looks for the render modes


def make_continuous(task: str) -> ContinuousEnv:
    """Gymnasium environment of a continuous task by its function's name."""
    build: dict[str, Callable[[], ContinuousTask]] = {"mountain_car": mountain_car, "pendulum": pendulum}
    return ContinuousEnv(build[task]())


def register() -> None:
    """Make spie/RiverSwim-v0, the other tables, continuous and image tasks known to gymnasium.make."""
    tables, continuous, pixels = "spie.envs:make_env", "spie.envs:make_continuous", "spie.envs.pixels:make_pixels_env"
    arguments: dict[str, tuple[str, dict[str, Any], int | None]] = {
        "RiverSwim": (tables, {"mdp": "riverswim"}, None),
        "SixArms": (tables, {"mdp": "sixarms"}, None),
        "Grid": (tables, {"mdp": "grid", "map": "of-small", "task": "explore", "bumps": True}, None),
        "SparseMountainCar": (continuous, {"task": "mountain_car"}, 1000),
        "SparsePendulum": (continuous, {"task": "pendulum"}, 200),
        "Pixels-FourRooms": (pixels, {"name": "four-rooms"}, None),
        "Pixels-ClusterHard": (pixels, {"name": "cluster-hard"}, None),
        "Pixels-DeepSea": (pixels, {"name": "deep-sea-10"}, None),
        "Pixels-Grid": (pixels, {"name": "of-small"}, None),
    }
    for name, (entry_point, kwargs, cap) in arguments.items():
        if f"spie/{name}-v0" not in gym.registry:
            gym.register(f"spie/{name}-v0", entry_point=entry_point, kwargs=kwargs, max_episode_steps=cap)
