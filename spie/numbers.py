"""Numbers for reading: on the page with narrow spaces and a minus sign, in a terminal with commas and a hyphen.

Axes of figures have their own, in `spie.page.plots.style`: a tick shows every digit, wherever it lies.
"""

import math
from typing import Any

THIN, MINUS = "\N{NARROW NO-BREAK SPACE}", "\N{MINUS SIGN}"


def number(value: Any, digits: int | None = None, *, significant: int | None = None, thousands: str = THIN) -> str:
    """A number for reading; a dash for none; text stays as it is.

    digits: after the point; by default fewer for larger numbers. significant: that many digits in all, below 1000.
    """
    on_page = thousands == THIN
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\N{EN DASH}" if on_page else "-"
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isinf(value):
        return str(value)
    if significant is not None and abs(value) < 1000:
        text = f"{value:.{significant}g}"
    else:
        if digits is None:
            digits = 0 if float(value).is_integer() or abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
        text = f"{value:,.{digits}f}".replace(",", thousands)
    return text.replace("-", MINUS) if on_page else text


def duration(seconds: float) -> str:
    """A time for reading: 40 s, 12 minutes, 3 hours, 5 days."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"


def between(low: float, high: float, digits: int | None = None) -> str:
    """An interval."""
    return f"{number(low, digits)} \N{EN DASH} {number(high, digits)}"


def percent(share: float, digits: int = 0) -> str:
    """A share of 1 in percent."""
    return f"{100 * share:.{digits}f}{THIN}%"


def counted(n: int, what: str) -> str:
    """How many there are, in words: 1 maze, 1,150 steps."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
