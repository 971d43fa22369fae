"""The `spie` command. Heavy imports stand inside the commands, so that `spie --help` is instant."""

import sys
from typing import NoReturn

import typer

from spie.cli import check, data, repair, report, run, show, studio, sweep, train
from spie.cli.terminal import app

__all__ = ["app", "check", "data", "main", "repair", "report", "run", "show", "studio", "sweep", "train"]


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    try:
        code = app(standalone_mode=False)  # Typer hands back 130 for Ctrl-C
    except (ValueError, OSError) as error:
        _fail(str(error))
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):  # a fault of ours; what is not installed, we say ourselves
            raise
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Exception as error:
        if hasattr(error, "format_message"):  # how the command line's own errors tell themselves
            _fail(error.format_message())
        raise
    if code == 130:
        print("stopped; what is stored stays, run again to continue", file=sys.stderr)
    sys.exit(code or 0)


def _fail(message: str) -> NoReturn:
    print(f"spie: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
