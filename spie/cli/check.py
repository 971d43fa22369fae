"""`spie check`: is an intrinsic reward sound?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import app

if TYPE_CHECKING:
    import gymnasium as gym

EPISODE = 500  # steps after which episodes of a task are truncated


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(help="An intrinsic reward. See spie list.", autocompletion=completion.reward_names)
    ],
    env: Annotated[
        str | None,
        typer.Option(help="A task of spie list, a map, or a Gymnasium id (default: a maze, or MountainCar)."),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a random policy to check it on.")] = 2000,
    file: Annotated[Path | None, typer.Option("--from", help="A Python file of yours with @spie.reward.")] = None,
) -> None:
    """Check an intrinsic reward: numbers, episode edges, order of environments, scale, whether it fades, speed."""
    from spie.dropin.check import check_reward
    from spie.runs.user_code import load_rewards

    if file is not None:
        load_rewards(file)
    if steps < 100:
        raise ValueError(f"--steps must be 100 or more, not {steps}")
    check_reward(name, None if env is None else _environment(env), steps)


def _environment(name: str) -> "gym.Env[Any, Any]":
    """A task that is a table or continuous, by name; or else what Gymnasium knows by that name."""
    import gymnasium as gym

    from spie.tasks.registry import find, make_env

    try:
        entry = find(name)
    except ValueError as error:
        entry, why = None, error
    if entry is not None and entry.kind != "images":
        return make_env(name, entry.kind, max_steps=EPISODE)
    try:
        return gym.make(name)
    except gym.error.Error as error:
        known = "" if entry is not None else f" {why}"
        raise ValueError(f"--env {name}: {error}{known}") from error
