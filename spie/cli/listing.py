"""`spie list`: whatever has a name."""

from typing import TYPE_CHECKING

from spie.cli.terminal import app

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from spie.paper.experiment import Experiment


@app.command("list")
def list_() -> None:
    """What there is: experiments, rewards and bonuses, agents, tasks, models of behaviour, datasets."""
    from rich.console import Console
    from rich.padding import Padding

    from spie.paper.registry import experiments

    console = Console(highlight=False, markup=False)
    sizes = {"name": "left", "what it reproduces": "left", "runs x seeds": "left", "million\nsteps": "right"}
    _print(console, "experiments (spie run NAME)", sizes, ((e.name, e.title, *_size(e)) for e in experiments()))
    for title, rows in _rewards().items():
        _print(console, title, {"name": "left", "what it pays for a step from s to s'": "left"}, rows)
    for title, names in _names().items():
        console.print(title, style="bold")
        console.print(Padding(", ".join(names), (0, 0, 0, 2)))


def _print(console: "Console", title: str, columns: "Mapping[str, str]", rows: "Iterable[tuple[str, ...]]") -> None:
    """A table in which nothing is shortened: words that do not fit go on in the next line."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for name, justify in columns.items():
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name == "name")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print("")


def _size(e: "Experiment") -> tuple[str, str]:
    """Runs and seeds of an experiment, and its steps in millions."""
    runs = e.runs(e.seeds)
    if not runs:
        return "-", "0"
    steps = sum(run.steps * (run.episodes or 1) * run.n_seeds * run.settings.n_settings for run in runs)
    n = sum(run.settings.n_settings for run in runs)  # a run of a search is many
    shape = f"{n:,} x {runs[0].n_seeds}{f', best x {e.seeds}' if e.then else ''}"
    millions = f"{steps / 1e6:,.0f}" if steps >= 1e6 else f"{steps / 1e6:.2g}"
    return shape, f"{'up to ' if any(r.episodes for r in runs) else ''}{millions}"


def _rewards() -> "dict[str, list[tuple[str, ...]]]":
    """Names and what they pay, by who knows them."""
    from spie.agents.dqn.settings import BONUSES
    from spie.dropin.known import SUMMARIES
    from spie.rewards import get_reward, reward_names

    own = "a bonus of a plug-in, with a network of its own"
    return {
        "intrinsic rewards (of agents, wrappers and spie compare)": [
            (name, get_reward(name).summary) for name in reward_names()
        ],
        "further bonuses of wrappers (spie.IntrinsicReward) and spie compare": list(SUMMARIES.items()),
        "further bonuses of the deep agent": [(name, SUMMARIES.get(name, own)) for name in BONUSES.names()],
    }


def _names() -> "dict[str, list[str]]":
    """Names without further words, by what they are."""
    from spie.agents.registry import names as agents
    from spie.behaviour.model import MODELS
    from spie.comparison.arms import DEEP, Q_LEARNING
    from spie.data import DATASETS
    from spie.tasks.registry import KINDS
    from spie.tasks.registry import names as tasks

    kinds = {"table": "tables", "continuous": "linear features", "images": "images"}
    more = {"table": ["any map of yours in a text file"], "images": ["any Gymnasium id with images"]}
    found = {f"agents on {kinds[kind]}": agents(kind) for kind in KINDS}
    found["agents of spie compare"] = [Q_LEARNING, *DEEP, "a function of yours"]
    found |= {f"tasks for agents on {kinds[kind]}": [*tasks(kind), *more.get(kind, ())] for kind in KINDS}
    found["models of behaviour (spie fit --models)"] = list(MODELS.names())
    found["datasets of behaviour (spie data)"] = list(DATASETS)
    return found
