"""`spie check`: is an intrinsic reward sound?"""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli.terminal import app


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="An intrinsic reward. See spie list.")],
    env: Annotated[
        str | None, typer.Option(help="Gymnasium id of an environment (default: a maze, or MountainCar).")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of a random policy to check it on.")] = 2000,
    file: Annotated[Path | None, typer.Option("--from", help="A Python file of yours with @spie.reward.")] = None,
) -> None:
    """Check an intrinsic reward: numbers, episode edges, order of environments, scale, whether it fades, speed."""
    import gymnasium as gym

    from spie.dropin.check import check_reward
    from spie.runs.user_code import load_rewards

    if file is not None:
        load_rewards(file)
    if steps < 100:
        raise ValueError(f"--steps must be 100 or more, not {steps}")
    try:
        chosen = None if env is None else gym.make(env)
    except gym.error.Error as error:
        raise ValueError(f"--env {env}: {error}") from error
    check_reward(name, chosen, steps)
