"""Means with their intervals."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from spie.page.plots.style import INK, STYLE, line_style, new_figure, number, settled
from spie.paper.sections import Curve, Look, Panel

TITLE_WIDTH = 38  # letters
MOST_POINTS = 200  # of a curve: a panel shows no more


class LegendEntry(NamedTuple):
    """An agent, and its line in the terms of SVG."""

    agent: str
    colour: str
    dashes: str
    width: float


@matplotlib.rc_context(STYLE)
def curve_panel(panel: Panel, styles: Mapping[str, dict[str, Any]] | None = None) -> Figure:
    """Curves with their intervals; the legend is the page's, for panels stand side by side or one below the other.

    styles: the `curve_styles` of all panels that share the legend; by default of this one.
    """
    figure = new_figure(3.1, 2.4)  # about a quarter of a wide page, or the whole of a phone
    of = f", of {', '.join(panel.curves)}" if panel.curves else ""
    figure.set_label(f"{panel.title}: {panel.y_label} by {panel.x_label}{of}")
    ax = figure.add_subplot()
    _draw_panel(ax, panel, styles or curve_styles([panel]))
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label, rotation_mode="anchor")
    return settled(figure)


def curve_styles(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """How the curves of some panels look, by name; no two variants of an agent alike, in the order of their names."""
    looks = {name: curve.look or Look(name) for panel in panels for name, curve in panel.curves.items()}
    variants = sorted({look for look in looks.values() if look.variant})
    numbers = {look: 1 + sum(other.agent == look.agent for other in variants[:i]) for i, look in enumerate(variants)}
    return {name: line_style(look.agent, numbers.get(look, 0)) for name, look in looks.items()}


def legend(panels: Sequence[Panel]) -> list[LegendEntry]:
    """Every agent of some panels once, as its curves look."""
    found = []
    for agent, style in curve_styles(panels).items():
        dashes = style["linestyle"][1] if isinstance(style["linestyle"], tuple) else ()
        width = style["linewidth"]
        found.append(LegendEntry(agent, style["color"], " ".join(f"{width * dash:g}" for dash in dashes), width))
    return found


def _draw_panel(ax: Axes, panel: Panel, styles: Mapping[str, dict[str, Any]]) -> None:
    ax.set_title(textwrap.fill(panel.title, TITLE_WIDTH), loc="left")
    ax.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
    for axis, letter in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        if letter in panel.log:
            ax.set(**{f"{letter}scale": "log"})
            axis.set_minor_locator(NullLocator())
        ends = [(curve.x[0], curve.x[-1]) for curve in panel.curves.values() if letter == "x"]
        if panel.points is not None:
            ends = [(panel.points.min(), panel.points.max())]
        ticks = LogLocator(subs=(1,) if any(_is_wide(*pair) for pair in ends) else (1, 3))
        axis.set_major_locator(ticks if letter in panel.log else MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(number))
    for at in panel.vertical:
        ax.axvline(at, color=INK, alpha=0.35, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    for agent, curve in panel.curves.items():
        x, mean, low, high, _ = _thinned(curve, "x" in panel.log)
        style = styles[agent]
        ax.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)
        ax.plot(x, mean, marker="o" if len(mean) == 1 else "", **style)
    for name, y in panel.horizontal.items():
        ax.axhline(y, color=INK, alpha=0.55, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
        ax.annotate(
            name, (1, y), (-2, 2), ("axes fraction", "data"), "offset points", ha="right", va="bottom", fontsize=8.5
        )
    if panel.points is not None:
        x, y = panel.points.T
        ax.axline((x.min(), x.min()), (x.max(), x.max()), color=INK, alpha=0.35, linewidth=0.8, zorder=1)
        ax.plot(x, y, "o", color=INK, markersize=4, alpha=0.7, clip_on=False, zorder=3)
    elif "y" not in panel.log and all(np.nanmin(curve.low) >= 0 for curve in panel.curves.values()):
        nothing = all(np.nanmax(curve.high) == 0 for curve in panel.curves.values())
        ax.set_ylim(0, 1 if nothing else None)  # or a line of zeros would have a scale of some hundredths


def _is_wide(first: float, last: float) -> bool:
    """Whether the labels 1, 3, 10, ... of a logarithmic axis would run into each other; "1,000" is a long one."""
    return last > (1e3 if last < 1e3 else 250) * first > 0


def _thinned(curve: Curve, log: bool) -> Curve:
    """At most MOST_POINTS points of a curve, evenly spread over its axis, both ends among them."""
    x = np.asarray(curve.x)
    if len(x) <= MOST_POINTS:
        return curve
    spread = np.geomspace(x[x > 0][0], x[-1], MOST_POINTS) if log else np.linspace(x[0], x[-1], MOST_POINTS)
    keep = np.unique(np.append(np.searchsorted(x, spread[:-1]), len(x) - 1))
    return Curve(*(np.asarray(values)[keep] for values in curve[:4]))._replace(look=curve.look)
