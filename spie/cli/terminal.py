"""What commands share: the application, options, consoles, times and KEY=VALUE words."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


app = typer.Typer(
    help="Successor-Predecessor Intrinsic Exploration: run the paper's experiments, see how ours compare.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ResultsFile = Annotated[
    Path | None, typer.Option("--results", help="Where results are kept (default: $SPIE_RESULTS or results.db).")
]
Backend = Annotated[str, typer.Option("--on", help="Where to run: serial (threads), processes or ray.")]
Rewards = Annotated[list[Path] | None, typer.Option(help="A file of yours that defines rewards; workers get it, too.")]
Address = Annotated[str | None, typer.Option(help="Of a Ray cluster (default: Ray on this machine).")]


def parse_assignments(words: list[str]) -> dict[str, Any]:
    """key=value ..., with numbers, true, false and null as JSON has them."""
    values = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f'"{word}" is no setting; settings are key=value, such as beta=0.1')
        try:
            values[key] = json.loads(text)
        except json.JSONDecodeError:
            values[key] = text
    return values


def error_console() -> "Console":
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
