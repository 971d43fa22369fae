"""What commands share: the application, options, consoles, times and KEY=VALUE words."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(
    help="Successor-Predecessor Intrinsic Exploration: run the paper's experiments, see how ours compare.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
ResultsFile = Annotated[
    Path | None, typer.Option("--results", help="Where results are kept (default: $SPIE_RESULTS or results.db).")
]
Backend = Annotated[str, typer.Option("--on", help="Where to run: serial (threads), processes or ray.")]
Rewards = Annotated[list[Path] | None, typer.Option(help="A file of yours that defines rewards; workers get it, too.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster (default: Ray on this machine).")]


def parse_assignments(words: Iterable[str], example: str = "beta=0.1") -> dict[str, Any]:
    """key=value ...: a number, true, false, null, a list such as [1, 2], or else a word."""
    return {key: _value(text) for key, text in _pairs(words, example)}


def parse_choices(words: Iterable[str], example: str = "alpha=0.1,0.5") -> dict[str, tuple[Any, ...]]:
    """key=value,value ...: for each key its values, as above, each once."""
    return {
        key: tuple(dict.fromkeys(_value(part.strip()) for part in text.split(",") if part.strip()))
        for key, text in _pairs(words, example)
    }


def _pairs(words: Iterable[str], example: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f'"{word}" is no setting; settings are key=value, such as {example}')
        if key in seen:
            raise ValueError(f"{key} is given twice; write it once, such as {example}")
        seen.add(key)
        yield key, text


def _value(text: str) -> Any:
    for read in (json.loads, int, float):  # JSON has no .5
        try:
            return read(text)
        except ValueError:
            pass
    return {"true": True, "false": False, "null": None}.get(text.lower(), text)


def parse_duration(text: str) -> float:
    """Seconds in 90s, 10m or 2h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    try:
        seconds = float(text[:-1] if unit else text) * (unit or 1)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f'"{text}" is no time; write it as 90s, 10m or 2h')
    return seconds


def error_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def number(x: float) -> str:
    """As the page has it, with plain commas: whole from a thousand on, below with three significant digits."""
    from spie.paper import sections

    return sections.number(x, significant=3, thousands=",")
