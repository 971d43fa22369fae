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
    """Make spie/RiverSwim-v0, spie/SixArms-v0 and spie/Grid-v0 known to gymnasium.make."""
    arguments: dict[str, dict[str, Any]] = {
        "RiverSwim": {"mdp": "riverswim"},
        "SixArms": {"mdp": "sixarms"},
        "Grid": {"mdp": "grid", "map": "of-small", "task": "explore", "bumps": True},
    }
    for name in arguments:
        if f"spie/{name}-v0" not in gym.registry:
            gym.register(f"spie/{name}-v0", entry_point="spie.envs:make_env", kwargs=arguments[name])
