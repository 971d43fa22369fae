"""Environments as MDPs, and their Gymnasium ids."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from spie.envs.chains import riverswim, sixarms
from spie.envs.grids import grid, maze
from spie.mdp import MDP, MDPEnv

__all__ = ["grid", "make_env", "maze", "register", "riverswim", "sixarms"]


def make_env(mdp: str, render_mode: str | None = None, max_steps: int | None = None, **arguments: Any) -> MDPEnv:
    """Gymnasium environment of an MDP by its function's name; further arguments go to that function."""
    build: dict[str, Callable[..., MDP]] = {"riverswim": riverswim, "sixarms": sixarms, "grid": grid}
    return MDPEnv(build[mdp](**arguments), render_mode, max_steps)


make_env.metadata = MDPEnv.metadata  # type: ignore[attr-defined]  # where gymnasium.make looks for the render modes


def register() -> None:
    """Make spie/RiverSwim-v0, SixArms, Grid, and the image tasks spie/Pixels-...-v0 known to gymnasium.make."""
    tables, pixels = "spie.envs:make_env", "spie.envs.pixels:make_pixels_env"
    arguments: dict[str, tuple[str, dict[str, Any]]] = {
        "RiverSwim": (tables, {"mdp": "riverswim"}),
        "SixArms": (tables, {"mdp": "sixarms"}),
        "Grid": (tables, {"mdp": "grid", "map": "of-small", "task": "explore", "bumps": True}),
        "Pixels-FourRooms": (pixels, {"name": "four-rooms"}),
        "Pixels-ClusterHard": (pixels, {"name": "cluster-hard"}),
        "Pixels-DeepSea": (pixels, {"name": "deep-sea-10"}),
        "Pixels-Grid": (pixels, {"name": "of-small"}),
    }
    for name, (entry_point, kwargs) in arguments.items():
        if f"spie/{name}-v0" not in gym.registry:
            gym.register(f"spie/{name}-v0", entry_point=entry_point, kwargs=kwargs)
