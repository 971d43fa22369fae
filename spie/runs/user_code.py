"""Users' own files that define rewards: workers in other processes get their text, and it is part of a run's id."""

import linecache
import traceback
import types
from collections.abc import Mapping
from pathlib import Path

from spie.rewards import REWARDS

_FILES: dict[str, str] = {}  # name and text


def load_rewards(file: str | Path) -> None:
    """Run a file of yours that defines rewards; workers in other processes and on other machines get it, too."""
    name = str(Path(file).resolve())
    try:
        text = Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file} cannot be loaded: it is no text in UTF-8") from None
    try:
        register_files({name: text})
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever somebody's file does
        raise ValueError(f"{file} cannot be loaded: {_place(error, name)}{_words(error)}") from error


def complaint(error: BaseException) -> str:
    """In one line what a file of the user's did, if an error comes out of one; else nothing."""
    for name in _FILES:
        if place := _place(error, name):
            return f"{name}: {place}{_words(error)}"
    return ""


def _place(error: BaseException, file: str) -> str:
    """The last line of a file that an error went through, in words; empty where it went through none."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"line {error.lineno}, "
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
    return f"line {lines[-1]}, " if lines else ""


def _words(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def register_files(files: Mapping[str, str]) -> None:
    """Run files with rewards, given by name and text, in this process, each once."""
    for name, text in files.items():
        if _FILES.get(name) == text:
            continue
        # Where a function's text is looked up, so that it can be compiled where there is no such file.
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        module = types.ModuleType(Path(name).stem)
        exec(compile(text, name, "exec"), module.__dict__)
        _FILES[name] = text


def loaded_files() -> dict[str, str]:
    """The files that were run in this process, name and text."""
    return dict(_FILES)


def source_of(reward: str) -> str:
    """What defines a reward that is not built in: the text of its file, or else its code. Empty for a built-in one."""
    if reward not in REWARDS or REWARDS.get(reward).built_in:
        return ""
    code = REWARDS.get(reward).function.__code__
    return "".join(linecache.getlines(code.co_filename)) or repr((code.co_code, code.co_consts))
