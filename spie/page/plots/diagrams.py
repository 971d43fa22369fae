"""Circles and arrows: small MDPs, networks, and the hill of MountainCar."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, FancyArrowPatch, Polygon, Rectangle
from matplotlib.path import Path as Bezier

from spie.page.plots.style import COLOURS, FLOOR, GOAL, INK, MINUS, START, STYLE, new_figure, number, settled
from spie.paper.sections import HeadLayers, LayerBox
from spie.tasks.mdp import MDP

MOST_NODES = 12  # of a diagram
ACTION_STYLES: list[dict[str, Any]] = [
    {"color": COLOURS["sarsa-sr"], "linewidth": 1.3},
    {"color": COLOURS["sarsa-srr"], "linewidth": 1.3, "linestyle": (0, (3, 1.5))},
]
ARROW: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}
BELOW: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "borderaxespad": 0}


@matplotlib.rc_context(STYLE)
def mdp_diagram(mdp: MDP) -> Figure:
    """A small MDP as circles and arrows (Figure 5): a chain in a line, a hub amid its rooms, any other in a ring."""
    if mdp.n_states > MOST_NODES:
        raise ValueError(f"{mdp.name}: a diagram holds {MOST_NODES} states, not {mdp.n_states}; use state_maps")
    width = 7.4 if layout(mdp).kind == "chain" else 6.4
    figure = new_figure(width, layout(mdp).height(width))
    figure.set_label(f"{mdp.name}: states, actions, probabilities and rewards")
    draw_diagram(figure.add_subplot(), mdp)
    return settled(figure)


def is_small(mdp: MDP) -> bool:
    """No word of where states lie, and few enough of them for a diagram and for boxes that hold their numbers."""
    return mdp.cells is None and mdp.places is None and mdp.n_states <= MOST_NODES


class _Layout(NamedTuple):
    """Where the states of a diagram are, with radius 0.5, and on which side of each an arrow to itself has room."""

    kind: Literal["chain", "hub", "ring"]
    places: Any  # [S, 2]
    outward: Any  # [S], an angle
    x: tuple[float, float]
    y: tuple[float, float]

    def height(self, width: float) -> float:
        return width * (self.y[1] - self.y[0]) / (self.x[1] - self.x[0]) + 0.5


def layout(mdp: MDP) -> _Layout:
    S, up = mdp.n_states, np.pi / 2
    s, a, k = np.nonzero(mdp.prob)
    s_next = mdp.next[s, a, k]
    if (abs(s - s_next) <= 1).all() and mdp.n_actions <= 2:
        places = np.stack([2.2 * np.arange(S), np.zeros(S)], axis=1)
        return _Layout("chain", places, np.full(S, up), (-1.2, 2.2 * S - 1), (-1.6, 1.7))
    for hub in range(S if S > 3 else 0):
        if ((s == s_next) | (s == hub) | (s_next == hub)).all():  # rooms clockwise, with a gap above the hub
            turn = np.insert(up - np.linspace(-0.86, 0.86 - 2 * np.pi, S - 1)[::-1] - 2 * np.pi, hub, up)
            return _Layout("hub", 3.5 * (np.arange(S) != hub)[:, None] * _towards(turn), turn, (-5.4, 5.4), (-4.6, 3.4))
    turns = up - 2 * np.pi / S * np.arange(S)
    return _Layout("ring", 3.4 * _towards(turns), turns, (-5.3, 5.3), (-4.9, 4.9))


def _towards(turn: Any) -> Any:
    """The point(s) at distance 1 in the direction of an angle."""
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1)


def draw_diagram(ax: Axes, mdp: MDP) -> None:
    kind, places, outward, x, y = layout(mdp)
    ax.set(xlim=x, ylim=y, aspect="equal")
    ax.axis("off")
    for s, place in enumerate(places):
        if mdp.start[s] > 0:
            ax.add_patch(Circle(place, 0.5, facecolor=START, alpha=0.5))
        for radius in (0.5, 0.42) if mdp.terminal[0, s] else (0.5,):
            ax.add_patch(Circle(place, radius, fill=False, edgecolor=INK, linewidth=1.1))
        ax.text(place[0], place[1], mdp.labels[s], ha="center", va="center")
    disc: dict[str, Any] = {"marker": "o", "markersize": 9, "color": "none", "markeredgecolor": INK}
    notes = [Line2D([], [], label="start", markerfacecolor=START, **disc)]
    if kind == "chain":  # every action has its own arrows, else they share them
        for a in range(mdp.n_actions):
            for (s, s_next), text in _arrows(mdp, [a]).items():
                if s == s_next:
                    _loop(ax, places[s], outward[s] + np.pi * a, text, ACTION_STYLES[a])
                else:
                    _arc(ax, places[s], places[s_next], 0.28 + 0.42 * a, text, ACTION_STYLES[a])
        notes = [Line2D([], [], label=f"action {a}", **ACTION_STYLES[a]) for a in range(mdp.n_actions)] + notes
    else:
        for (s, s_next), text in _arrows(mdp, list(range(mdp.n_actions))).items():
            if s == s_next:
                _loop(ax, places[s], outward[s], text, {"color": INK})
            else:
                bend = 0.55 / math.dist(places[s], places[s_next])  # all bow alike, long or short
                _arc(ax, places[s], places[s_next], bend, text, {"color": INK}, out=1.15 if kind == "hub" else 1.0)
    reading = ("" if kind == "chain" else "action: ") + "probability if below 1, reward in bold"
    reading += ", double ring where it ends" if mdp.terminal[0].any() else ""
    ax.legend(handles=notes, ncols=4, fontsize=8.5, title=reading, title_fontsize=8.5, **BELOW)


def _arrows(mdp: MDP, actions: list[int]) -> dict[tuple[int, int], str]:
    """What to write at the one arrow from s to s' for all these actions; a text with a sign has a reward in it."""
    found: dict[tuple[int, int], dict[str, list[int]]] = {}
    for s, a, k in np.argwhere(mdp.prob > 0).tolist():
        if a in actions and not mdp.terminal[0, s]:
            p, r = mdp.prob[s, a, k], mdp.reward[0, s, a, k]
            numbers = ", ".join(filter(None, (f"{p:.3g}" if p < 1 else "", number(r, sign="+") if r else "")))
            found.setdefault((s, int(mdp.next[s, a, k])), {}).setdefault(numbers, []).append(a)
    texts = {}
    for pair, cases in found.items():
        parts = [numbers if len(actions) == 1 else _who(takers, actions, numbers) for numbers, takers in cases.items()]
        stays = len(parts) > 3 and pair[0] == pair[1] and not {"+", MINUS} & set("".join(parts))
        texts[pair] = "otherwise" if stays else ", ".join(parts)  # what is left of 1 needs no list
    return texts


def _who(takers: list[int], actions: list[int], numbers: str) -> str:
    others = [a for a in actions if a not in takers]
    few, words = (others, "all but ") if len(takers) > len(others) else (takers, "")
    who = words + ", ".join(f"a{a}" for a in few) if others else "any"
    return f"{who}: {numbers}" if numbers else who


def _font(text: str) -> dict[str, Any]:
    return {"fontsize": 8.5, "fontweight": "bold" if {"+", MINUS} & set(text) else "normal"}


def _arc(ax: Axes, here: Any, there: Any, bend: float, text: str, style: dict[str, Any], out: float = 0.0) -> None:
    """An arrow that bows to its left, its text over the crest.

    out: a factor by which the text is moved away from the middle of the diagram; it is then turned along the arrow.
    """
    ends = [Circle(place, 0.54, transform=ax.transData) for place in (here, there)]
    arc = f"arc3,rad={-bend}"
    ax.add_patch(FancyArrowPatch(here, there, connectionstyle=arc, patchA=ends[0], patchB=ends[1], **ARROW, **style))
    dx, dy = there - here
    x, y = (out or 1) * (here + there) / 2 + np.array([-dy, dx]) * (bend / 2 + 0.24 / math.hypot(dx, dy))
    angle = (math.degrees(math.atan2(dy, dx)) + 90.01) % 180 - 90.01 if out else 0.0  # never upside down
    ax.text(x, y, text, ha="center", va="center", rotation=angle, rotation_mode="anchor", **_font(text))


def _loop(ax: Axes, place: Any, turn: float, text: str, style: dict[str, Any]) -> None:
    """An arrow from a state to itself."""
    corners = ((0.5, -0.5), (1.45, -0.6), (1.45, 0.6), (0.54, 0.5))  # distance and angle from the middle of the state
    path = Bezier(
        [place + far * _towards(turn + aside) for far, aside in corners], [Bezier.MOVETO, *[Bezier.CURVE4] * 3]
    )
    ax.add_patch(FancyArrowPatch(path=path, **ARROW, **style))
    x, y = place + 1.15 * _towards(turn)
    cos, sin = _towards(turn)
    aside = abs(cos) > 0.5
    ha: Any = ("left" if cos > 0 else "right") if aside else "center"
    va: Any = "center" if aside else "bottom" if sin > 0 else "top"
    ax.text(x, y, text, ha=ha, va=va, **_font(text))


@matplotlib.rc_context(STYLE)
def network_diagram(trunk: Sequence[LayerBox], heads: Sequence[HeadLayers], decoder: Sequence[LayerBox]) -> Figure:
    """A network (Figure 2): the trunk to the right, the heads on from its last layer, the decoder back to the left.

    A head that is cut sends no gradient back to the trunk, which a double stroke shows.
    """
    rows, columns = len(heads) + 1, max(len(trunk) + max(len(head.layers) for head in heads), len(decoder))
    figure = new_figure(7.4, 0.72 * rows + 0.2)
    figure.set_label("network: " + ", ".join(layer.name for layer in (*trunk, *decoder)))
    ax = figure.add_subplot()
    ax.set(xlim=(-0.45, columns - 0.3), ylim=(-rows + 0.5, 0.3))
    ax.axis("off")
    middle = -(len(heads) - 1) / 2
    for i, layer in enumerate(trunk):
        _draw_layer(ax, (i, middle), layer, (i - 1, middle) if i else None)
    phi = len(trunk) - 1, middle
    for row, (name, layers, is_cut) in enumerate(heads):
        for i, layer in enumerate(layers):
            before = (phi[0] + i, -row) if i else phi
            _draw_layer(ax, (phi[0] + i + 1, -row), layer, before, cut=i == 0 and is_cut)
        ax.text(phi[0] + len(layers) + 0.43, -row, name, va="center", fontweight="bold")
    for i, layer in enumerate(decoder):
        x = len(decoder) - 1 - i
        _draw_layer(ax, (x, 1 - rows), layer, (x + 1, 1 - rows) if i else phi)
    return settled(figure)


def _draw_layer(ax: Axes, place: Any, layer: LayerBox, before: Any = None, cut: bool = False) -> None:
    """A box with the shape in it and the name below, and the arrow from the layer before."""
    half, rise = 0.4, 0.15
    x, y = place
    ax.add_patch(Rectangle((x - half, y - rise), 2 * half, 2 * rise, facecolor="none", edgecolor=INK, linewidth=0.9))
    ax.text(x, y, "×".join(map(str, layer.shape)), ha="center", va="center", fontsize=8.5)
    ax.text(x, y - rise - 0.04, layer.name, ha="center", va="top", fontsize=7, alpha=0.8)
    if before is None:
        return
    here, there = (before[0] + half, before[1]), (x - half, y)
    if y == before[1] and x < before[0]:
        here, there = (before[0] - half, y), (x + half, y)
    elif y < before[1] - 1:  # down to the decoder
        here, there = (before[0], before[1] - rise - 0.2), (x, y + rise)
    ax.add_patch(FancyArrowPatch(here, there, color=INK, linewidth=0.9, **ARROW))
    if cut:
        at = (here[0] + there[0]) / 2, (here[1] + there[1]) / 2
        ax.text(*at, "‖", ha="center", va="center", color=COLOURS["sarsa-srr"], fontweight="bold")


@matplotlib.rc_context(STYLE)
def mountain_car() -> Figure:
    """Figure 4a: the valley, the car where an episode starts, and the flag."""
    figure = new_figure(4.2, 2.1)
    figure.set_label("MountainCar: a car in a valley, a flag on the right hill")
    ax = figure.add_subplot()
    ax.set_axis_off()
    ax.set_aspect("equal")

    def hill(x: Any) -> Any:
        return 0.45 * np.sin(3 * x) + 0.55

    x = np.linspace(-1.2, 0.6, 200)
    ax.fill_between(x, hill(x), -0.05, color=FLOOR, linewidth=0)
    ax.plot(x, hill(x), color=INK, linewidth=1.4)
    at = -0.5
    turn = np.arctan2(1.35 * np.cos(3 * at), 1)
    body = np.array([[-0.11, 0.05], [0.11, 0.05], [0.11, 0.1], [0.05, 0.15], [-0.06, 0.15], [-0.11, 0.1]])
    rotation = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    ax.add_patch(Polygon(body @ rotation + [at, hill(at)], closed=True, color=COLOURS["linear-q-sf-pf"]))
    for wheel in (-0.065, 0.065):
        ax.add_patch(Circle(tuple(np.array([wheel, 0.045]) @ rotation + [at, hill(at)]), 0.035, color=INK))
    ax.plot([0.5, 0.5], [hill(0.5), hill(0.5) + 0.24], color=INK, linewidth=1.4)
    flag = [(0.5, hill(0.5) + 0.24), (0.62, hill(0.5) + 0.19), (0.5, hill(0.5) + 0.14)]
    ax.add_patch(Polygon(flag, closed=True, color=GOAL))
    return settled(figure)
