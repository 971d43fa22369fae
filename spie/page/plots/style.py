"""How every figure looks: colours, dashes, fonts and numbers."""

import hashlib
import math
from typing import Any

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from spie.numbers import MINUS as MINUS

INK = "#1f2328"  # in a page: the colour of its text
ON_MAP = "#22222c"  # writing on a map, whose floor is light in any page
WALL, FLOOR, START, GOAL = "#3a3d46", "#efeee8", "#a9cdf5", "#f5c451"
HEAT = LinearSegmentedColormap.from_list("heat", ["#fde9a9", "#9fd3a8", "#3fa7b5", "#2f6fae", "#2b3f8c"])  # low to high
DIVERGING = LinearSegmentedColormap.from_list("diverging", ["#2b3f8c", "#7fb0d8", "#f7f5ee", "#e8a37c", "#9c2a1a"])
COLOURS = {  # chosen so that colour-blind readers tell the first ones apart; the dashes help
    "sarsa": "#a0409b",
    "sarsa-sr": "#2563eb",
    "sarsa-fr": "#3a9d86",
    "sarsa-srr": "#cc3d12",
    "sarsa-sr-pr": "#c08a10",
    "sarsa-srr-a": "#4c93c4",
    "sarsa-srr-b": "#8a7bd0",
    "sarsa-srr-c": "#a8744f",
    "planner": "#7b8a1a",
    "spie": "#2f8f4e",
    "sarsa-sp-novelty": "#0f8a8f",
    "sarsa-etd": "#b0577d",
    "linear-q": "#a0409b",
    "linear-q-sf": "#2563eb",
    "linear-q-sf-pf": "#cc3d12",
    "constant": "#6f7f99",
    "optimistic": "#93806f",
    "count": "#748a6e",
    "random": "#858585",
}
FIXED = {  # an agent with a fixed representation has the colour of the one that learns it, and this dash
    f"{agent}-fixed": agent
    for agent in ("sarsa-sr", "sarsa-fr", "sarsa-srr", "sarsa-srr-a", "sarsa-srr-b", "sarsa-srr-c", "sarsa-sr-pr")
}
FIXED_DASH = (1, 1.2)
LIKE = FIXED | {  # a deep agent looks like the tabular one of its kind
    "dqn": "sarsa",
    "dqn-mmc": "sarsa-sr-pr",
    "rnd": "sarsa-fr",
    "dqn-sr": "sarsa-sr",
    "dqn-sf-pf": "sarsa-srr",
    "novelty": "sarsa-etd",  # stands beside SF and SPIE, never beside ETD
}
CONTROL_DASHES = {"constant": (4, 1.5), "optimistic": (2, 1.2), "count": (7, 2), "random": (1.5, 2.5)}
VARIANT_DASHES = ((5, 1), (3, 1, 1, 1), (8, 1.5), (6, 1.5, 1, 1.5, 1, 1.5))
HEROES = ("sarsa-srr", "linear-q-sf-pf", "dqn-sf-pf")  # SPIE as the paper has it
STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.xmargin": 0.01,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "spie",
    "text.parse_math": False,  # a name with dollars is no formula
} | dict.fromkeys("text.color axes.edgecolor axes.labelcolor xtick.color ytick.color".split(), INK)


def line_style(agent: str, variant: int = 0) -> dict[str, Any]:
    """Colour, dash and width of an agent: SPIE's stands out, variants are dashed or dash-dotted, controls quiet.

    variant: 0 for the agent itself, k for the k-th of its variants in a figure.
    """
    dashes: tuple[float, ...] = VARIANT_DASHES[(variant - 1) % len(VARIANT_DASHES)]
    if agent in CONTROL_DASHES:  # in front, to be seen where they are as good as SARSA-SRR
        # A control is dashed itself: the first of its variants is dash-dotted.
        dashes = VARIANT_DASHES[variant % len(VARIANT_DASHES)] if variant else CONTROL_DASHES[agent]
        return {"color": COLOURS[agent], "linestyle": (0, dashes), "linewidth": 1.2, "zorder": 5}
    name = LIKE.get(agent, agent)
    agents = list(COLOURS)[: -len(CONTROL_DASHES)]
    # An agent that has no colour yet gets one by its name alone, so that it too keeps it from figure to figure.
    i = agents.index(name) if name in agents else int(hashlib.sha256(name.encode()).hexdigest(), 16) % len(agents)
    dash: Any = (1.1 * i, FIXED_DASH) if agent in FIXED else "-"  # shifted, so that equal curves show in turn
    if variant:
        dash = (0, dashes)
    hero = agent in HEROES and not variant
    return {"color": COLOURS[agents[i]], "linestyle": dash, "linewidth": 2.4 if hero else 1.6, "zorder": 3 + hero}


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.05, h_pad=0.05)
    return figure


def settled(figure: Figure) -> Figure:
    """The figure with its layout done for good: done again at each drawing, no two drawings would be the same."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def number(x: float, position: int | None = None, sign: str = "-") -> str:
    return f"{x:{sign},.10g}".replace("-", MINUS)


def short(x: float) -> str:
    return number(float(f"{x:.3g}")) if math.isfinite(x) else "-"
