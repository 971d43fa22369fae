"""`spie fit`: behavioural models of recorded paths."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli.terminal import app, duration

if TYPE_CHECKING:
    from spie.behaviour.fit import Progress

EVALUATIONS = 3.5e-7 * 160  # seconds of a step and a start: about 160 evaluations of .35 microseconds


@app.command()
def fit(
    paths: Annotated[
        Path,
        typer.Argument(
            metavar="PATHS",
            help="A CSV or TSV file: subject, step, state or x and y, ...; or a dataset: tartarus, labyrinth.",
        ),
    ],
    maze: Annotated[
        list[str] | None,
        typer.Option(help="A map or its file; name=file for several (default: the moves in the data)."),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Commas between: count,sr-r+turn-back (default: all that suit the data).")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables and the page.")] = Path("fit"),
    method: Annotated[str, typer.Option(help="mle, map or hierarchical.")] = "mle",
    starts: Annotated[int, typer.Option(help="Starts of each search.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of searches and simulations.")] = 0,
    stays: Annotated[str | None, typer.Option(help="drop or keep steps without a move.")] = None,
    jumps: Annotated[str | None, typer.Option(help="cut a trial at an impossible move, or refuse it.")] = None,
    missing: Annotated[str, typer.Option(help="drop or refuse rows without a place.")] = "refuse",
    cell: Annotated[float, typer.Option(help="Side of a cell, in the unit of x and y.")] = 1.0,
    check: Annotated[bool, typer.Option(help="Recovery and confusion, too; longer.")] = False,
    choices: Annotated[bool, typer.Option(help="Write the log-probability of every choice, too.")] = False,
) -> None:
    """Fit behavioural models to recorded paths, compare them, and write tables and a page. Stopped, it goes on."""
    from spie.behaviour.fit import fit as fit_models
    from spie.behaviour.model import find_model, shipped_models

    read = _read(paths, maze, {"stays": stays, "jumps": jumps, "missing": missing, "cell": cell})
    names = models.split(",") if models else shipped_models(read)[0]
    for name in names:
        find_model(name)
    steps = sum(len(trial.actions) for trial in read.trials)
    seconds = steps * starts * len(names) * EVALUATIONS * 2 + 15 * len(names)
    counted = {"subject": len(read.subjects), "step": steps, "model": len(names)}
    counts = ", ".join(f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in counted.items())
    print(f"{counts}: about {duration(seconds)} on one core")
    for note in read.notes:
        print(note)
    out.mkdir(parents=True, exist_ok=True)
    progress = _progress()
    chosen: Any = models.split(",") if models else None
    how: Any = method
    found = fit_models(read, chosen, how, starts=starts, seed=seed, folder=out / "parts", progress=progress)
    _write(found, out, check, choices)


def _read(paths: Path, maze: list[str] | None, options: dict[str, Any]) -> Any:
    """The paths of a file, or of a public dataset that is asked for by name."""
    from spie import data
    from spie.behaviour.paths import Paths

    if paths.exists() or str(paths) not in data.DATASETS:
        return Paths.from_csv(paths, _mazes(maze), **options)
    if maze:
        raise ValueError(f"{paths} comes with its mazes; leave out --maze")
    return data.tartarus() if str(paths) == "tartarus" else data.labyrinth()


def _mazes(words: list[str] | None) -> Any:
    """One map, or several by name."""
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        return words[0]
    named = dict(word.partition("=")[::2] for word in words)
    if len(named) < len(words) or not all(named.values()):
        raise ValueError("several mazes need names, each its own: --maze a=one.txt --maze b=two.txt")
    return named


def _progress() -> "Progress":
    """A line when something new begins, with the time so far."""
    began, last = time.monotonic(), ""

    def say(what: str, share: float) -> None:
        nonlocal last
        if what != last:
            print(f"{duration(time.monotonic() - began):>10}  {what}", file=sys.stderr, flush=True)
            last = what

    return say


def _write(found: Any, out: Path, check: bool, choices: bool) -> None:
    """All tables, then the page."""
    from spie.page import behaviour  # matplotlib: seconds

    found.rows().to_csv(out / "fits.csv")
    compared = found.compare()
    compared.to_csv(out / "comparison.csv")
    print(compared)
    parts: dict[str, Any] = {"predictive": found.simulate()}
    try:
        parts["heldout"] = found.crossvalidate()
        parts["heldout"].to_csv(out / "heldout.csv")
        print(parts["heldout"])
    except ValueError as error:
        print(f"no cross-validation: {error}")
    if check:
        free = [name for name, one in found.fits.items() if one.k]
        best = next((row["model"] for row in compared if row["model"] in free), None)
        if best is not None:
            parts["recovery"] = found.recover(model=best)
            print(parts["recovery"].rows())
        if len(found.fits) > 1:
            parts["confusion"] = found.confusion()
            print(parts["confusion"].rows())
    if choices:
        found.choice_rows().to_csv(out / "choices.csv")
    behaviour.write(out / "index.html", found, " ".join(["spie", *sys.argv[1:]]), **parts)
    print((out / "index.html").resolve())
