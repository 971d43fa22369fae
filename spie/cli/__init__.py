"""The `spie` command. Heavy imports stand inside the commands, so that `spie --help` is instant."""

import sys
from typing import NoReturn

import typer

from spie.cli import check, compare, data, demo, film, fit, listing, repair, report, run, show, studio, sweep, train
from spie.cli.stopping import say_stopped, stopped_by_signals
from spie.cli.terminal import app
from spie.errors import printable

__all__ = [
    "app",
    "check",
    "compare",
    "data",
    "demo",
    "film",
    "fit",
    "listing",
    "main",
    "repair",
    "report",
    "run",
    "show",
    "studio",
    "sweep",
    "train",
]


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    with stopped_by_signals() as heard:
        _run(heard)


def _run(heard: list[int]) -> NoReturn:
    try:
        code = app(standalone_mode=False)  # Typer hands back 130 for Ctrl-C
    except (ValueError, OSError) as error:
        _fail(_complaint(error) or str(error))
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):  # a fault of ours; what is not installed, we say ourselves
            raise
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        if hasattr(error, "format_message"):  # how the command line's own errors tell themselves
            _fail(error.format_message())
        if told := _complaint(error):
            _fail(told)
        raise
    if code == 130:
        code = say_stopped(heard)
    sys.exit(code or 0)


def _complaint(error: Exception) -> str:
    """In one line what a file of the user's did, if an error comes out of one; else nothing."""
    from spie.runs.user_code import complaint

    return complaint(error)


def _fail(message: str) -> NoReturn:
    print(f"spie: {printable(message)}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
