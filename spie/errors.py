"""One place for the wording of a wrong name or value, so that every part of spie answers it alike, in one line."""

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

ABSURD = 10**15  # a bound that no user means is not told
LONGEST = 80  # characters of a value that an error quotes


def printable(text: str) -> str:
    """A text without what would move the cursor of a terminal, colour it or begin a line: that is written out."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def told(value: object) -> str:
    """A value as an error quotes it: in one line, whatever the value is."""
    try:
        text = str(value) if isinstance(value, str | int | float | np.number | PurePath) else repr(value)
    except ValueError:  # Python writes no numbers of thousands of digits
        text = "a number of thousands of digits"
    text = printable(text[: LONGEST + 1])
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def unknown(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """The error for a name that is not `known`: what it is, the nearest known one, and the whole list."""
    names = sorted(set(known))
    close = difflib.get_close_matches(told(name).lower(), names, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else "."
    return ValueError(f'no {kind} "{told(name)}"{hint} Known: {", ".join(names)}')


def is_among(value: object, known: Iterable[Any]) -> bool:
    """Whether a value is one of the known ones and of their type: True is not 1. Any value may be asked for."""
    return any(
        isinstance(value, type(one)) and isinstance(value, bool) == isinstance(one, bool) and bool(value == one)
        for one in known
    )


def is_name(value: object) -> bool:
    """Whether a value may be looked up in a table of names."""
    return isinstance(value, str)


def as_names(what: str, value: object) -> list[str]:
    """One name or several as a list; refused where it is neither."""
    names: list[Any] = list(value) if is_row(value) else [value]  # type: ignore[call-overload]
    for name in names:
        if not is_name(name):
            raise ValueError(f"{what} must be a name or several, not {told(name)}")
    return names


def is_whole(value: object, least: int = 0, most: float = math.inf) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(least <= value <= most)


def is_row(value: object) -> bool:
    """Whether a value is several, one after the other: a list, a tuple or an array, and no text."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def is_number(value: object) -> bool:
    """Whether a value is a real number that a float can hold, or infinite, or not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def check_whole(what: str, value: object, least: int = 1, most: float = math.inf) -> None:
    """Refuse what is no whole number between two; `what` names it, such as "maze: rows"."""
    if not is_whole(value, least, most):
        upto = f" and at most {most:,}" if most < ABSURD else ""
        raise ValueError(f"{what} must be a whole number of at least {least}{upto}, not {told(value)}")


def check_number(what: str, value: object, interval: str = "(-inf, inf)") -> None:
    """Refuse what is no number in an interval such as "[0, 1)"."""
    if not is_number(value):
        raise ValueError(f"{what} must be a number in {interval}, not {told(value)}")
    low, high = map(float, interval[1:-1].split(", "))
    number = float(value)  # type: ignore[arg-type]
    above = low <= number if interval[0] == "[" else low < number
    below = number <= high if interval[-1] == "]" else number < high
    if not (above and below):
        raise ValueError(f"{what} must lie in {interval}, not {told(value)}")


def check_flag(what: str, value: object) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{what} must be true or false, not {told(value)}")


def check_rewards(what: str, rewards: object, of: str = "end") -> None:
    """Refuse what is no mapping from names to finite numbers; None is none."""
    if rewards is None:
        return
    if not isinstance(rewards, Mapping):
        raise ValueError(f'{what}: rewards must be given by name, such as {{"a": 1}}, not {told(rewards)}')
    for name, pays in rewards.items():
        if not is_number(pays) or not math.isfinite(pays):
            raise ValueError(f'{what}: the reward of {of} "{told(name)}" is {told(pays)}; give a finite number')


def as_array(what: str, value: object, dtype: type | None = None) -> Any:
    """A value as an array of such numbers; refused where NumPy can make none of it."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise ValueError
        return array if dtype is None else array.astype(dtype)
    except (ValueError, TypeError, OverflowError):
        kind = "an array of numbers" if dtype is not np.bool_ else "an array of true and false"
        raise ValueError(f"{what} must be {kind}, not {told(value)}") from None
