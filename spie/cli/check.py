"""`spie check`: is an intrinsic reward sound?"""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli import completion
from spie.cli.terminal import app, parse_beta


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(help="An intrinsic reward. See spie list.", autocompletion=completion.reward_names)
    ],
    env: Annotated[
        str | None,
        typer.Option(
            help="A task of spie list, a map, a Gymnasium id, or FILE.py:function (default: a maze, or MountainCar)."
        ),
    ] = None,
    beta: Annotated[str, typer.Option(help="Scale of the bonus: a number, or auto.")] = "1",
    steps: Annotated[int, typer.Option(help="Steps of a random policy to check it on.")] = 2000,
    file: Annotated[Path | None, typer.Option("--from", help="A Python file of yours with @spie.reward.")] = None,
) -> None:
    """Check an intrinsic reward: numbers, episode edges, order of environments, scale, whether it fades, speed."""
    from spie.dropin.check import check_reward
    from spie.dropin.environments import make_environment
    from spie.runs.user_code import load_rewards

    if file is not None:
        load_rewards(file)
    if steps < 100:
        raise ValueError(f"--steps must be 100 or more, not {steps}")
    check_reward(name, None if env is None else make_environment(env), steps, beta=parse_beta(beta))
