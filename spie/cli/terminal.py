"""What commands share: the application, options, consoles, times and KEY=VALUE words."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from spie import numbers
from spie.errors import printable, told
from spie.numbers import duration as duration

if TYPE_CHECKING:
    from rich.console import Console

    from spie.behaviour.rows import Rows


app = typer.Typer(
    help="Successor-Predecessor Intrinsic Exploration: run the paper's experiments, see how ours compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"spie {version('spie-rl')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_say_version)
    ] = False,
) -> None:
    """Options of spie itself, before any command."""


ResultsFile = Annotated[
    Path | None, typer.Option("--results", help="Where results are kept (default: $SPIE_RESULTS or results.db).")
]
Backend = Annotated[str, typer.Option("--on", help="Where to run: serial (threads), processes or ray.")]
Rewards = Annotated[list[Path] | None, typer.Option(help="A file of yours that defines rewards; workers get it, too.")]
Ends = Annotated[
    str | None,
    typer.Option(help="Of a map with ends a to h: what each of them pays, such as a=1,b=0.2; a trial ends there."),
]
Who = Annotated[
    str | None,
    typer.Option(
        help="Subjects by name, separated by commas; of a dataset also rats, people; all, rewarded, unrewarded."
    ),
]
Address = Annotated[str | None, typer.Option(help="Address of a Ray cluster (default: Ray on this machine).")]


CONTINUES: list[str] = []  # the command that goes on with what is under way, where it is not the same one again


def a_name(metavar: str, help: str, completion: Callable[[str], list[str]]) -> Any:
    """An argument that the shell completes."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=completion)


def parse_assignments(words: Iterable[str], example: str = "beta=0.1") -> dict[str, Any]:
    """key=value ...: a number, true, false, null, a list such as [1, 2], or else a word."""
    return {key: _value(text) for key, text in _pairs(words, example)}


def parse_ends(text: str | None) -> dict[str, Any] | None:
    """a=1,b=0.2: what the ends of a map pay; the map itself says which there are."""
    return None if text is None else parse_assignments(filter(None, map(str.strip, text.split(","))), "a=1,b=0.2")


def parse_choices(words: Iterable[str], example: str = "alpha=0.1,0.5") -> dict[str, tuple[Any, ...]]:
    """key=value,value ...: for each key its values, as above, each once."""
    return {
        key: _each_once(_value(part.strip()) for part in text.split(",") if part.strip())
        for key, text in _pairs(words, example)
    }


def _each_once(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values without those that came before; a list is no key, so they are compared as text."""
    return tuple({json.dumps(value): value for value in values}.values())


def _pairs(words: Iterable[str], example: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f'"{told(word)}" is not a setting; settings are key=value, such as {example}')
        if key in seen:
            raise ValueError(f"{key} is given twice; write it once, such as {example}")
        seen.add(key)
        yield key, text


def _value(text: str) -> Any:
    for read in (json.loads, int, float):  # JSON has no .5
        try:
            return read(text)
        except (ValueError, RecursionError):
            pass
    return {"true": True, "false": False, "null": None}.get(text.lower(), text)


def parse_beta(text: str) -> "float | Literal['auto']":
    """A number, or auto."""
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'--beta must be a number or auto, not "{text}"') from None


def parse_duration(text: str) -> float:
    """Seconds in 90s, 10m or 2h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    try:
        seconds = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f'"{told(text)}" is not a time; write it as 90s, 10m or 2h')
    return seconds


def check_output(path: Path) -> None:
    """Refuse a file that cannot be written, before the work that is to fill it."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file itself")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {path.parent}; make it first, or name another file")


def check_table(path: Path) -> None:
    """Refuse a file of rows of another kind, or without what writes it, before the work that is to fill it."""
    check_output(path)
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"{path}: rows are written as .csv or .parquet; give a name that ends so")
    if path.suffix.lower() == ".parquet":
        import importlib.util

        if not all(importlib.util.find_spec(name) for name in ("pandas", "pyarrow")):
            raise ImportError(f"{path} needs pandas and pyarrow: pip install pandas pyarrow; or give a .csv file")


def write_table(path: Path, rows: "Sequence[Mapping[str, Any]]") -> None:
    """Rows as a CSV or Parquet file, whole or not at all."""
    from spie.behaviour.rows import Rows

    if path.suffix.lower() == ".csv":
        Rows(rows).to_csv(path)
        return
    import importlib
    import io

    from spie.files import write_whole

    content = io.BytesIO()
    importlib.import_module("pandas").DataFrame(list(rows)).to_parquet(content)
    write_whole(path, content.getvalue())


def show(table: "Rows | str") -> None:
    """Print a table, or a sentence: on a terminal no wider than it, elsewhere each row and each note in a line."""
    import shutil
    import sys

    from spie.behaviour.rows import wrapped

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print("\n".join(wrapped(table, width)) if isinstance(table, str) else table.shown(width))


def plain(text: object) -> str:
    """A user's text for a console that reads markup: it is shown as it is, brackets included."""
    from rich.markup import escape

    return escape(printable(str(text)))


def error_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


@contextmanager
def progress_bar(console: "Console", text: str) -> "Iterator[Callable[[float, float], None]]":
    """A bar on a terminal; gives what is to be told how much is done, and of how much."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(f"  {text}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("")
        yield lambda done, total: progress.update(bar, completed=done, total=total)


def number(x: float) -> str:
    """As the page has it, with plain commas: whole from a thousand on, below with three significant digits."""
    return numbers.number(x, significant=3, thousands=",")
