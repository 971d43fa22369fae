"""Means with their intervals."""

import math
from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from spie.page.plots.style import INK, STYLE, line_style, new_figure, number, settled
from spie.paper.sections import Curve, Panel

MOST_POINTS = 200  # of a curve: a panel shows no more


@matplotlib.rc_context(STYLE)
def curve_panels(panels: Sequence[Panel], columns: int = 2) -> Figure:
    """Curves with their intervals, a panel each, and one legend for all."""
    if not panels:
        raise ValueError("curve_panels: nothing to draw; give at least one panel")
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    agents = list(dict.fromkeys(agent for panel in panels for agent in panel.curves))
    across = 2 if columns == 1 else 4 if all(len(agent) < 18 for agent in agents) else 3
    legend_rows = math.ceil(len(agents) / across)
    figure = new_figure(3.7 * columns + 0.6 * (columns == 1), 2.35 * rows + 0.2 * legend_rows + 0.2)
    figure.set_label("; ".join(panel.title for panel in panels))
    for i, panel in enumerate(panels):
        ax = figure.add_subplot(rows, columns, i + 1)
        _draw_panel(ax, panel)
        if i + columns >= len(panels) or panels[i + columns].x_label != panel.x_label:
            ax.set_xlabel(panel.x_label)
        if i % columns == 0 or panels[i - 1].y_label != panel.y_label:
            ax.set_ylabel(panel.y_label, rotation_mode="anchor")
    lines = [Line2D([], [], label=agent, **line_style(agent)) for agent in agents]
    by_rows = [line for column in range(across) for line in lines[column::across]]  # a legend fills its columns first
    if agents:
        figure.legend(handles=by_rows, loc="outside upper left", ncols=across, fontsize=9)
    return settled(figure)


def _draw_panel(ax: Axes, panel: Panel) -> None:
    ax.set_title(panel.title, loc="left")
    ax.grid(axis="y", color=INK, alpha=0.12, linewidth=0.6)
    for axis, letter in ((ax.xaxis, "x"), (ax.yaxis, "y")):
        if letter in panel.log:
            ax.set(**{f"{letter}scale": "log"})
            axis.set_minor_locator(NullLocator())
        wide = letter == "x" and any(curve.x[-1] > 1e3 * curve.x[0] > 0 for curve in panel.curves.values())
        ticks = LogLocator(subs=(1,) if wide else (1, 3))  # so that their labels do not run into each other
        axis.set_major_locator(ticks if letter in panel.log else MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(number))
    for at in panel.vertical:
        ax.axvline(at, color=INK, alpha=0.35, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    for agent, curve in panel.curves.items():
        x, mean, low, high = _thinned(curve, "x" in panel.log)
        style = line_style(agent)
        ax.fill_between(x, low, high, color=style["color"], alpha=0.16, linewidth=0, zorder=2)
        ax.plot(x, mean, marker="o" if len(mean) == 1 else "", **style)
    for name, y in panel.horizontal.items():
        ax.axhline(y, color=INK, alpha=0.55, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
        ax.annotate(
            name, (1, y), (-2, 2), ("axes fraction", "data"), "offset points", ha="right", va="bottom", fontsize=8.5
        )
    if "y" not in panel.log and all(np.nanmin(curve.low) >= 0 for curve in panel.curves.values()):
        ax.set_ylim(bottom=0)


def _thinned(curve: Curve, log: bool) -> Curve:
    """At most MOST_POINTS points of a curve, evenly spread over its axis, both ends among them."""
    x = np.asarray(curve.x)
    if len(x) <= MOST_POINTS:
        return curve
    spread = np.geomspace(x[x > 0][0], x[-1], MOST_POINTS) if log else np.linspace(x[0], x[-1], MOST_POINTS)
    keep = np.unique(np.append(np.searchsorted(x, spread[:-1]), len(x) - 1))
    return Curve(*(np.asarray(values)[keep] for values in curve))
