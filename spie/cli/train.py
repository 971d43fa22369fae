"""`spie train`, `resume`, `evaluate`, `play`: deep agents."""

import dataclasses
import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli.terminal import ResultsFile, app, duration, error_console, parse_assignments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


@app.command()
def train(
    environment: Annotated[
        str,
        typer.Argument(metavar="ENV", help="A game, four-rooms, deep-sea-10, a map, or a Gymnasium id with images."),
    ],
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings of the agent or options of the environment."),
    ] = None,
    agent: Annotated[
        str, typer.Option(help="dqn, dqn-mmc, rnd, dqn-sr, dqn-sf-pf, dqn-constant, dqn-count.")
    ] = "dqn-sf-pf",
    preset: Annotated[
        str | None, typer.Option(help="paper, nature or small (default: paper for games, else small).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of the agent (default: 30,000).")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the emulator, instead of steps.")] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: runs/ENV-AGENT-SEED).")] = None,
    results: ResultsFile = None,
) -> None:
    """Train a deep agent; stop it as you like, spie resume goes on."""
    import re

    from spie.agents.dqn import session as training
    from spie.agents.dqn.settings import DQN, steps_of
    from spie.agents.registry import agent as named
    from spie.errors import unknown
    from spie.tasks.gymnasium import options_of

    known = {field.name for field in dataclasses.fields(DQN)} - {"bonus", "preset"}
    values = parse_assignments(assignments or [])
    options = {name: values.pop(name) for name in list(values) if name not in known}
    theirs = options_of(environment)
    for name in options:
        if theirs and name not in theirs:
            raise unknown("setting or option", name, known | set(theirs))
    task = training.Task(environment, options)
    env = task.make(1)
    default = "paper" if hasattr(env, "frame_skip") else "small"
    settings = named(agent, preset=preset or default, **values)
    n = steps_of(30_000 if steps is None and frames is None else steps, frames, env)
    folder = out or Path("runs") / f"{re.sub('[^A-Za-z0-9]+', '-', environment).strip('-')}-{agent}-{seed}"
    training.check_new(folder)
    console = error_console()
    console.print(f"{environment}: {agent} ({settings.preset}), {n:,} steps, seed {seed}, into {folder}")
    cost = training.cost(settings, task, n, training.default_threads(settings))
    console.print(
        f"needs {cost.bytes / 1e9:.2f} GB of memory and about {duration(cost.seconds)} here; Ctrl-C saves and stops"
    )
    with _watch(console) as progress:
        trace = training.train(settings, environment, n, seed, folder, options=options, progress=progress)
    _finish(folder, trace, results, console)


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")], results: ResultsFile = None
) -> None:
    """Go on with a run that was stopped, or killed, as if nothing had happened."""
    from spie.agents.dqn import session as training

    console = error_console()
    with _watch(console) as progress:
        trace = training.resume(folder, progress=progress, warn=console.print)
    _finish(folder, trace, results, console)


@app.command()
def evaluate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    episodes: Annotated[int, typer.Option(help="To play.")] = 10,
    epsilon: Annotated[float, typer.Option(help="Chance of an action at random.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="The numbers as JSON.")] = False,
) -> None:
    """Play episodes without learning, and say what they pay."""
    import numpy as np

    from spie.agents.dqn import session as training

    _between("--episodes", episodes, 1, 100_000)
    _between("--epsilon", epsilon, 0, 1)
    rewards = np.array(training.evaluate(folder, episodes, epsilon, error_console().print))
    if as_json:
        print(json.dumps({"episodes": rewards.tolist(), "mean": rewards.mean(), "sd": rewards.std(ddof=episodes > 1)}))
    else:
        spread = f", sd {rewards.std(ddof=1):,.2f}" if episodes > 1 else ""
        print(f"{episodes} episodes: mean reward {rewards.mean():,.2f}{spread}, best {rewards.max():,.2f}")


@app.command()
def play(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The film, .gif.")] = Path("play.gif"),
    epsilon: Annotated[float, typer.Option(help="Chance of an action at random.")] = 0.05,
    steps: Annotated[int, typer.Option(help="At most so many.")] = 300,
) -> None:
    """Film an episode: frame, expected frame, Q and bonus side by side."""
    import numpy as np

    from spie.agents.dqn import session as training
    from spie.page import plots

    _between("--steps", steps, 1, 10_000)
    _between("--epsilon", epsilon, 0, 1)
    if output.suffix != ".gif":
        raise ValueError(f"{output}: a film is a .gif; choose such a name with -o")
    taken = []
    for step in training.player(folder, error_console().print).play(epsilon, np.random.default_rng(0)):
        taken.append(step)
        if step.over or len(taken) == steps:
            break
    plots.film(
        [step.frame for step in taken],
        [step.q for step in taken],
        [step.action for step in taken],
        [step.bonus for step in taken],
        [step.predicted for step in taken],
        output,
    )
    print(f"wrote {output}: {len(taken)} steps, reward {sum(step.reward for step in taken):,.2f}")


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low} and {high:,}, not {value}")


@contextmanager
def _watch(console: "Console") -> "Iterator[Any]":
    """How a run stands: one line on a terminal, elsewhere a line for every tenth of the run."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = TextColumn("{task.percentage:3.0f} %"), BarColumn(bar_width=20), TextColumn("{task.description}")
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        tenth = -1

        def show(report: Any) -> None:
            nonlocal tenth
            words = [f"{report.step:,} steps", f"{report.rate:,.0f}/s"]
            if (reward := report.curves.get("rollout/ep_rew_mean")) is not None:
                words.append(f"return {reward:,.2f}")
            if (bonus := report.curves.get("intrinsic/raw_mean")) is not None:
                words.append(f"bonus {bonus:.3g}")
            words.append(f"{duration(report.seconds_left)} left")
            bar.update(task, total=report.steps, completed=report.step, description="  ".join(words))
            if not console.is_terminal and 10 * report.step // report.steps > tenth:
                tenth = 10 * report.step // report.steps
                console.print("  ".join(words))

        yield show


def _finish(folder: Path, trace: Any, results: Path | None, console: "Console") -> None:
    """Keep a finished run in the store as well, and say how it ended."""
    from spie.agents.dqn import checkpoint
    from spie.agents.dqn import session as training
    from spie.runs.run import Run, save
    from spie.runs.store import Store

    spec = training.read_run(folder)
    settings, task = spec["settings"], training.Task(spec["env"], spec["options"])
    run = Run(spec["env"], settings.name, settings, task, spec["steps"], (spec["seed"],))
    last_checkpoint = checkpoint.read_manifest(checkpoint.checkpoints(folder / "checkpoints")[0])
    with Store(results) as store:
        save(store, run, trace, last_checkpoint["values"]["seconds"])
    last = trace.episode_rewards[0][-100:]
    mean = f", mean reward of the last {len(last)} {last.mean():,.2f}" if len(last) else ""
    print(f"{run.env} {run.agent}: {int(trace.steps[0]):,} steps, {trace.episode_steps.shape[1]} episodes{mean}")
    console.print(f"next: spie evaluate {folder}; spie play {folder}; tensorboard --logdir {folder}")
