"""`spie fit`: behavioural models of recorded paths."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spie.cli.terminal import Who, app, duration, show
from spie.errors import unknown
from spie.numbers import counted

if TYPE_CHECKING:
    from spie.behaviour.fit import Progress

STEP, LANE = 2e-7, 2.5e-5  # seconds of a step of an evaluation, and of what each costs besides
COMPILED = 5.0  # seconds of a model's kernels, at first
FOLDS, RECOVERED, CONFUSED, FEW = 5, 20, 10, 4  # as the checks have them: folds, subjects, subjects of a model, starts


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
        str | None, typer.Option(help="Separated by commas: count,sr-r+turn-back (default: all that suit the data).")
    ] = None,
    who: Who = None,
    out: Annotated[Path, typer.Option(help="Folder for the tables and the page.")] = Path("fit"),
    method: Annotated[str, typer.Option(help="mle, map or hierarchical.")] = "mle",
    starts: Annotated[int, typer.Option(help="Starts of each search.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of searches and simulations.")] = 0,
    stays: Annotated[str | None, typer.Option(help="drop or keep steps without a move.")] = None,
    jumps: Annotated[str | None, typer.Option(help="cut a trial at an impossible move, or refuse it.")] = None,
    missing: Annotated[str, typer.Option(help="drop or refuse rows without a place.")] = "refuse",
    cell: Annotated[float, typer.Option(help="Side of a cell, in the unit of x and y.")] = 1.0,
    hold_out: Annotated[str, typer.Option(help="session or subject: what is held out at a time.")] = "session",
    check: Annotated[bool, typer.Option(help="Also study recovery and confusion, which takes longer.")] = False,
    choices: Annotated[bool, typer.Option(help="Also write the log-probability of every choice.")] = False,
) -> None:
    """Fit behavioural models to recorded paths, compare them, and write tables and a page. Stopped, it goes on."""
    from spie.behaviour.fit import fit as fit_models
    from spie.behaviour.heldout import WAYS
    from spie.behaviour.model import find_model, shipped_models

    if hold_out not in WAYS:
        raise unknown("way to hold out", hold_out, WAYS)
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder")
    read = _read(paths, maze, who, {"stays": stays, "jumps": jumps, "missing": missing, "cell": cell})
    chosen = [name.strip() for name in models.split(",") if name.strip()] if models is not None else None
    names = shipped_models(read)[0] if chosen is None else chosen
    for name in names:
        find_model(name)
    steps = sum(len(trial.actions) for trial in read.trials)
    counts = ", ".join(
        counted(n, what) for what, n in {"subject": len(read.subjects), "step": steps, "model": len(names)}.items()
    )
    seconds = _seconds(len(read.subjects), steps, len(names), starts, check)
    show(f"{counts}: about {duration(seconds)} on one core, and at first {duration(COMPILED * len(names))} to compile")
    for note in read.notes:
        show(note)
    parts = out / "parts"
    if parts.is_dir() and any(parts.iterdir()):
        print(f"what is finished in {parts} is not done again")
    progress = _progress()
    how: Any = method
    found = fit_models(read, chosen, how, starts=starts, seed=seed, folder=parts, progress=progress)
    _write(found, out, hold_out, check, choices)


def _seconds(subjects: int, steps: int, models: int, starts: int, check: bool) -> float:
    """About how long all of it takes; a search asks for some 85 evaluations a start, and 300 for those that go on."""

    def search(starts: int, subjects: int, steps: float) -> float:
        return (300 + 85 * starts) * (STEP * steps + LANE * subjects)

    whole = models * (search(starts, subjects, steps) + FOLDS * search(1, subjects, steps))
    if not check:
        return whole
    each = steps / subjects
    return whole + search(starts, RECOVERED, RECOVERED * each) + models**2 * search(FEW, CONFUSED, CONFUSED * each)


def _read(paths: Path, maze: list[str] | None, who: str | None, options: dict[str, Any]) -> Any:
    """The paths of a file, or of a public dataset that is asked for by name; of all its subjects, or of some."""
    from spie import data
    from spie.behaviour.paths import Paths

    if paths.exists() or str(paths) not in data.DATASETS:
        read = Paths.from_csv(paths, _mazes(maze), **options)
        return read if who is None else read.only(who)
    if maze:
        raise ValueError(f"{paths} comes with its mazes; leave out --maze")
    return data.read(str(paths), who=who)


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


def _write(found: Any, out: Path, hold_out: str, check: bool, choices: bool) -> None:
    """All tables, then the page."""
    from spie.page import behaviour  # matplotlib: seconds

    out.mkdir(parents=True, exist_ok=True)
    found.rows().to_csv(out / "fits.csv")
    compared = found.compare()
    compared.to_csv(out / "comparison.csv")
    show(compared)
    parts: dict[str, Any] = {"predictive": found.simulate()}
    try:
        parts["heldout"] = found.crossvalidate(hold_out)
        parts["heldout"].to_csv(out / "heldout.csv")
        show(parts["heldout"])
    except ValueError as error:
        show(f"no cross-validation: {error}")
    if check:
        parts |= _checks(found, compared)
    if choices:
        found.choice_rows().to_csv(out / "choices.csv")
    behaviour.write(out / "index.html", found, " ".join(["spie", *sys.argv[1:]]), **parts)
    print((out / "index.html").resolve())


def _checks(found: Any, compared: Any) -> dict[str, Any]:
    """Recovery of the best model that has parameters, and confusion; what cannot be done is said."""
    parts: dict[str, Any] = {}
    best = next((row["model"] for row in compared if found[row["model"]].k), None)
    if best is None:
        print("no recovery: no model has free parameters")
    else:
        parts["recovery"] = found.recover(RECOVERED, best)
        show(parts["recovery"].rows())
    if len(found.fits) < 2:
        print("no confusion: there is one model only")
    else:
        parts["confusion"] = found.confusion(CONFUSED, starts=FEW)
        show(parts["confusion"].rows())
    return parts
