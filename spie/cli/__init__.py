"""The `spie` command. Heavy imports stand inside the commands, so that `spie --help` is instant."""

import signal
import sys
import threading
from typing import NoReturn

import typer

from spie.cli import check, data, film, fit, repair, report, run, show, sweep, train
from spie.cli.terminal import app

__all__ = ["app", "check", "data", "film", "fit", "main", "repair", "report", "run", "show", "sweep", "train"]


def main() -> None:
    """Run the command; a user's mistake is one line and exit code 2."""
    heard = _stop_at_signals()
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
        by = f" by {signal.Signals(heard[0]).name}" if heard else ""
        print(f"stopped{by}; what is stored stays, run again to continue", file=sys.stderr)
        code = 128 + heard[0] if heard else code
    sys.exit(code or 0)


def _stop_at_signals() -> list[int]:
    """Have SIGTERM and SIGHUP, which clusters and closed terminals send, do what Ctrl-C does. Returns which came."""
    heard: list[int] = []

    def stop(number: int, frame: object) -> None:
        heard.append(number)
        signal.raise_signal(signal.SIGINT)  # to whoever saves before it stops

    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = vars(signal).get(name)  # Windows has no SIGHUP
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores it
                signal.signal(number, stop)
    return heard


def _fail(message: str) -> NoReturn:
    print(f"spie: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
