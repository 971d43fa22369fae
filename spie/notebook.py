"""How things show themselves in a notebook: small HTML tables, in the colours of the page around them, and progress."""

import html
import importlib
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spie.numbers import duration

PATIENCE = 2.0  # seconds before a call says how far it is
BETWEEN = 0.5  # seconds between two looks at that


def progress_below(what: str) -> "CallProgress | None":
    """What shows below a notebook's cell how far a call is, by (done, in all) or a share; None outside notebooks."""
    loaded: Any = sys.modules.get("IPython")
    shell = None if loaded is None else loaded.get_ipython()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    return CallProgress(what, importlib.import_module("IPython.display"))


class CallProgress:
    """A line below a cell, from the third second of a call until it is done."""

    def __init__(self, what: str, shows: Any, now: Callable[[], float] = time.monotonic) -> None:
        self.what, self.shows, self.now = what, shows, now
        self.began = self.part_began = now()  # a call may have several parts, each from 0 to 1
        self.looked = -math.inf
        self.handle: Any = None

    def __call__(self, done: float, in_all: float = 1.0) -> None:
        now = self.now()
        taken, ended = now - self.began, done >= in_all
        passed = now - self.part_began
        if ended:
            self.part_began = now
        if taken < PATIENCE or (now - self.looked < BETWEEN and not ended):
            return
        self.looked = now
        if ended:
            self._show("")
            return
        left = f", about {duration(passed * (in_all - done) / done)} left" if done > 0 else ""
        self._show(f"{self.what}: {done / in_all:.0%} after {duration(taken)}{left}")

    def _show(self, said: str) -> None:
        line = self.shows.HTML(f"<small>{html.escape(said)}</small>" if said else "")
        if self.handle is not None:
            self.handle.update(line)
        elif said:
            self.handle = self.shows.display(line, display_id=True)


def html_table(
    title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = (), most: int = 20
) -> str:
    """Rows under their headings, the first `most` of them; numbers with four digits that count."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(shown(row.get(name)))}</td>" for name in columns) + "</tr>"
        for row in rows[:most]
    )
    left = f"<p>and {len(rows) - most:,} more rows</p>" if len(rows) > most else ""
    said = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
    caption = f"<caption style='text-align:left'><b>{html.escape(title)}</b></caption>" if title else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}{said}"


def html_curve(title: str, values: Sequence[float], width: int = 300, height: int = 50) -> str:
    """Numbers over time as a small line, with the least and the most of them; nothing where there are too few."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < 2 or len(finite) < len(values):
        return ""
    low, high = min(values), max(values)
    across, up = width / (len(values) - 1), (height - 4) / ((high - low) or 1.0)
    points = " ".join(f"{i * across:.1f},{height - 2 - (value - low) * up:.1f}" for i, value in enumerate(values))
    line = f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/>"
    said = f"{html.escape(title)}: from {shown(float(values[0]))} to {shown(float(values[-1]))}"
    most = f"least {shown(float(low))}, most {shown(float(high))}"
    return f"<p>{said} ({most})<br><svg width='{width}' height='{height}'>{line}</svg></p>"


def shown(value: Any) -> str:
    """A value for reading; a dash for none."""
    if value is None or value != value:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
