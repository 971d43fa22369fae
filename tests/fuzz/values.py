"""Values that no caller should give, and some that one may: what the fuzzers of doors draw from."""

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 100, 0.0, -0.0, 0.5, 1.0, 0.1, 0.95, 1e-9, 1e-300, 5e-324, 1e9, 1e300, 1e308, -1e308,
    float("nan"), float("inf"), -float("inf"), 10**18, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400,
    999_999_999_999,
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, False, "", "0.1", "x", "[/]", "\x1b[31m", "a\nb", "\0", "ä" * 50, b"bytes", (), [], {}, set(), [1],
    (0.1,),
    [[1, 2], [3]], {"a": 1}, 1j, Fraction(1, 3), object(), lambda: 1, int, Path("x"), np.float64(0.5), np.int64(3),
    np.float32(0.5), np.bool_(True), np.array(0.5), np.array([0.5, 0.1]), np.array([]), np.array([[1, 2], [3, 4]]),
    np.array(["a"]), np.array([None]), np.datetime64("2020-01-01"), np.array([np.nan]), range(3), iter([1]),
)  # fmt: skip
WORDS = (
    "",
    "x",
    "sr-r",
    "none",
    "random",
    "explore",
    "goal",
    "trials",
    "first",
    "max",
    "[/]",
    "a\nb",
    "\x1b[2J",
    "../x",
    "0",
    "ä",
)


def number(rng: random.Random) -> Any:
    """A number, seldom a usual one."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return rng.uniform(-2, 2)
    if kind == 2:
        return rng.randint(-3, 50)
    if kind == 3:
        return rng.random()
    return rng.choice((-1, 1)) * 10.0 ** rng.uniform(-320, 308)


def anything(rng: random.Random) -> Any:
    """Any value at all."""
    return rng.choice((number, lambda r: r.choice(ODD), lambda r: r.choice(WORDS), array))(rng)


def array(rng: random.Random) -> Any:
    """An array of a random shape and type."""
    shape = tuple(rng.randint(0, 4) for _ in range(rng.randint(0, 4)))
    kind = rng.choice(("f8", "i8", "u1", "?", "f4", "U3", "c16", "O"))
    bits = np.random.default_rng(rng.getrandbits(32))
    made = bits.integers(-3, 9, shape) if rng.random() < 0.5 else bits.normal(size=shape)
    with np.errstate(all="ignore"):
        made = np.asarray(made).astype(kind)
    if kind == "f8" and made.size and rng.random() < 0.3:
        made.flat[rng.randrange(made.size)] = rng.choice((np.nan, np.inf, -np.inf, 1e308))
    return made.tolist() if rng.random() < 0.3 else made


def short(value: Any) -> str:
    """A value in a few words."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write numbers of thousands of digits
        text = "a number of many digits"
    return text if len(text) < 200 else text[:200] + "..."


def call(name: str, function: Callable[..., Any], /, *args: Any, **options: Any) -> tuple[str, Callable[[], Any]]:
    """Words and attempt of a call."""
    words = ", ".join([*map(short, args), *(f"{key}={short(value)}" for key, value in options.items())])
    return f"{name}({words})", lambda: function(*args, **options)
