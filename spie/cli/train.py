"""`spie train`, `resume`, `evaluate`, `play`: deep agents."""

import dataclasses
import json
import re
import shlex
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli import completion
from spie.cli.terminal import (
    CONTINUES,
    ResultsFile,
    a_name,
    app,
    check_output,
    duration,
    error_console,
    parse_assignments,
    progress_bar,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

Track = Annotated[
    str | None,
    typer.Option(
        help="Where curves go besides TensorBoard, commas between: csv, wandb, mlflow (both offline by default)."
    ),
]
ENVIRONMENT_HELP = "A game, four-rooms, deep-sea-10, a map, or a Gymnasium id with images."


@app.command()
def train(
    environment: Annotated[str, a_name("ENV", ENVIRONMENT_HELP, completion.image_task_names)],
    assignments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Settings of the agent or options of the environment."),
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            help="An agent that sees images: dqn, rnd, dqn-sf-pf, ... (spie list has all).",
            autocompletion=completion.image_agent_names,
        ),
    ] = "dqn-sf-pf",
    preset: Annotated[
        str | None, typer.Option(help="paper, nature or small (default: paper for games, else small).")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of the agent (default: 30,000).")] = None,
    frames: Annotated[int | None, typer.Option(help="Frames of the emulator, instead of steps.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: runs/ENV-AGENT-SEED).")] = None,
    track: Track = None,
    results: ResultsFile = None,
) -> None:
    """Train a deep agent; stop it as you like, spie resume goes on."""
    from spie.agents.dqn import folder
    from spie.agents.dqn.agent import as_dqn, need_torch
    from spie.agents.dqn.settings import steps_of
    from spie.agents.registry import agent as named
    from spie.engine.lanes import seed_array
    from spie.runs.estimate import slowness
    from spie.tasks.registry import task as find_task
    from spie.trackers import check_sinks

    seed_array([seed])  # is it one?
    settings, options = _split(parse_assignments(assignments or []), agent, environment)
    task = find_task(environment, "images", **options)
    n = steps_of(30_000 if steps is None and frames is None else steps, frames, task.frame_skip)
    made = as_dqn(named(agent, task, **settings | ({"preset": preset} if preset else {})))
    path = out or Path("runs") / f"{re.sub('[^A-Za-z0-9]+', '-', environment).strip('-')}-{agent}-{seed}"
    folder.check_new(path)
    need_torch()
    trackers = check_sinks(track)
    console = error_console()
    console.print(f"{environment}: {agent} ({made.preset}), {n:,} steps, seed {seed}, into {path}")
    from spie.agents.dqn import session as training  # loads torch

    def announce(needed: int) -> None:
        takes = duration(max(1.0, made.seconds(task, n, 1) * slowness()))
        console.print(f"needs {needed / 1e9:.2f} GB of memory and about {takes} on one core; Ctrl-C saves and stops")

    CONTINUES.append(shlex.join(["spie", "resume", str(path)]))
    with _watch(console) as show, _tracked(show, trackers, path, made.changed_settings()) as progress:
        where: dict[str, Any] = {"threads": made.usual_threads, "recipe": (environment, options)}
        where |= {"progress": progress, "announce": announce}
        trace = training.train(made, task, n, seed, path, **where)
    _finish(path, trace, results, console)


def _split(values: "dict[str, Any]", agent: str, environment: str) -> "tuple[dict[str, Any], dict[str, Any]]":
    """KEY=VALUE words as settings of the agent and as options of the task."""
    from spie.agents.dqn.settings import DQNSettings
    from spie.agents.registry import AGENTS, names
    from spie.errors import unknown
    from spie.tasks.registry import find

    AGENTS.get(agent)  # is there one?
    if agent not in names("images"):
        raise ValueError(f"{agent} does not see images; agents to train: {', '.join(names('images'))}")
    known = {field.name for field in dataclasses.fields(DQNSettings)} - {"preset"}
    entry = find(environment, "images")
    settings = {name: value for name, value in values.items() if name in known}
    options = {name: value for name, value in values.items() if name not in known}
    for name in options:
        if name not in entry.options and "options" not in entry.options:
            raise unknown("setting or option", name, known | set(entry.options))
    return settings, options


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    steps: Annotated[int | None, typer.Option(help="Steps in all, to make a run longer, even a finished one.")] = None,
    track: Track = None,
    results: ResultsFile = None,
) -> None:
    """Go on with a run that was stopped, or killed, as if nothing had happened; or make it longer."""
    from spie.agents.dqn.agent import need_torch

    need_torch()
    from spie.agents.dqn import session as training
    from spie.trackers import check_sinks

    trackers = check_sinks(track)
    console = error_console()
    with _watch(console) as show, _tracked(show, trackers, folder, {}, goes_on=True) as progress:
        trace = training.resume(folder, steps=steps, progress=progress, warn=console.print)
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

    from spie.agents.dqn.agent import need_torch

    _between("--episodes", episodes, 1, 100_000)
    _between("--epsilon", epsilon, 0, 1)
    need_torch()
    from spie.agents.dqn import session as training

    rewards = np.array(training.evaluate(folder, episodes, epsilon, error_console().print))
    if as_json:
        print(json.dumps({"episodes": rewards.tolist(), "mean": rewards.mean(), "sd": rewards.std(ddof=episodes > 1)}))
    else:
        spread = f", sd {rewards.std(ddof=1):,.2f}" if episodes > 1 else ""
        print(f"{episodes} episodes: mean reward {rewards.mean():,.2f}{spread}, best {rewards.max():,.2f}")


@app.command()
def play(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The film, .gif or .mp4.")] = Path("play.gif"),
    epsilon: Annotated[float, typer.Option(help="Chance of an action at random.")] = 0.05,
    steps: Annotated[int, typer.Option(help="At most.")] = 300,
) -> None:
    """Film an episode: frame, expected frame, Q and bonus side by side."""
    from spie.agents.dqn.agent import need_torch

    _between("--steps", steps, 1, 10_000)
    _between("--epsilon", epsilon, 0, 1)
    from spie.page import plots

    plots.check_film(output)
    check_output(output)
    need_torch()
    from spie.agents.dqn import session as training

    console = error_console()
    console.print(f"{folder}: an episode, at most {steps:,} steps, into {output}")
    with progress_bar(console, "{task.percentage:3.0f} %") as progress:
        taken = training.played_episode(folder, epsilon, steps, console.print, lambda t: progress(t, 2 * steps))
        n = len(taken)
        plots.film(
            [step.frame for step in taken],
            [step.q for step in taken],
            [step.action for step in taken],
            [step.bonus for step in taken],
            [step.predicted for step in taken],
            output,
            lambda t: progress(n + t, 2 * n),
        )
    print(f"wrote {output}: {len(taken)} steps, reward {sum(step.reward for step in taken):,.2f}")


def _between(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{name} must lie between {low} and {high:,}, not {value}")


@contextmanager
def _tracked(
    show: "Callable[[Any], None]", names: list[str], folder: Path, settings: "dict[str, Any]", goes_on: bool = False
) -> "Iterator[Callable[[Any], None]]":
    """What hears of a run and hands its curves on; opened at the first report, when the run's folder is there."""
    from contextlib import ExitStack

    from spie.trackers import open_sinks

    with ExitStack() as opened:
        adds: list[Any] = []

        def tell(report: Any) -> None:
            show(report)
            if names and not adds:
                adds.append(opened.enter_context(open_sinks(names, folder, report.step * goes_on, settings)))
            for add in adds:
                add(report.step, report.curves)

        yield tell


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
    from spie.agents.dqn.agent import DQN
    from spie.agents.dqn.folder import read_run, task_of
    from spie.agents.dqn.session import seconds_of
    from spie.runs.run import Run, save
    from spie.runs.store import Store

    spec = read_run(folder)
    settings, task = DQN(**dataclasses.asdict(spec.settings)), task_of(spec, folder)
    env = spec.task if spec.recipe is None else spec.recipe[0]
    run = Run(env, settings.name, settings, task, spec.steps, (spec.seed,))
    with Store(results) as store:
        save(store, run, trace, seconds_of(folder))
    last = trace.episode_rewards[0][-100:]
    mean = f", mean reward of the last {len(last)} {last.mean():,.2f}" if len(last) else ""
    print(f"{run.env} {run.agent}: {int(trace.steps[0]):,} steps, {trace.episode_steps.shape[1]} episodes{mean}")
    console.print(f"next: spie evaluate {folder}; spie play {folder}; tensorboard --logdir {folder}")
