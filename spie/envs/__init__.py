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
    """Make spie/RiverSwim-v0, SixArms-v0, Grid-v0, SparseMountainCar-v0 and SparsePendulum-v0 known to gymnasium."""
    arguments: dict[str, dict[str, Any]] = {
        "RiverSwim": {"mdp": "riverswim"},
        "SixArms": {"mdp": "sixarms"},
        "Grid": {"mdp": "grid", "map": "of-small", "task": "explore", "bumps": True},
    }
    for name in arguments:
        if f"spie/{name}-v0" not in gym.registry:
            gym.register(f"spie/{name}-v0", entry_point="spie.envs:make_env", kwargs=arguments[name])
    for name, task, cap in (("SparseMountainCar", "mountain_car", 1000), ("SparsePendulum", "pendulum", 200)):
        if f"spie/{name}-v0" not in gym.registry:
            gym.register(f"spie/{name}-v0", "spie.envs:make_continuous", kwargs={"task": task}, max_episode_steps=cap)
