"""What a section of the page consists of, as data: `spie.page` draws it. Numbers for reading are written here, too."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from spie.tasks.mdp import MDP

THIN = "\N{NARROW NO-BREAK SPACE}"
CONTROL = "control, not in the paper"


class Span(NamedTuple):
    """A word in place of several cells."""

    text: str
    columns: int


class Row(NamedTuple):
    """A row of a table."""

    values: Sequence[Any]
    kind: str = ""  # "control" or "total"


class Table(NamedTuple):
    """Rows under their headings; a column "verdict" is coloured."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Row]
    texts: int = 1  # how many columns are text; the others are numbers


class Text(NamedTuple):
    """Sentences: a list under a title, or paragraphs where there is none."""

    title: str
    lines: Sequence[str]


class Curve(NamedTuple):
    """A mean with its interval."""

    x: NDArray[Any]  # [n], rising
    mean: NDArray[Any]  # [n]
    low: NDArray[Any]  # [n]
    high: NDArray[Any]  # [n]


class Panel(NamedTuple):
    """One set of axes: a curve per agent, horizontal lines with their names, vertical ones without."""

    title: str
    curves: Mapping[str, Curve]
    x_label: str
    y_label: str
    horizontal: Mapping[str, float] = {}
    vertical: Sequence[float] = ()
    log: Literal["", "x", "y", "xy"] = ""  # which axes are logarithmic


class CurvePanels(NamedTuple):
    """Panels with one legend."""

    caption: str
    panels: Sequence[Panel]


class Maps(NamedTuple):
    """Environments as they are, a picture each, by name."""

    caption: str
    mdps: Mapping[str, MDP]


class Diagrams(NamedTuple):
    """Environments as states and arrows, a picture each, by name."""

    caption: str
    mdps: Mapping[str, MDP]


class HeatMaps(NamedTuple):
    """A number of every state, at several times: a row of maps for each agent."""

    caption: str
    mdp: MDP
    values: Mapping[str, NDArray[Any]]  # by agent [times, S]
    times: Sequence[str]


class SpaceMaps(NamedTuple):
    """Functions of a two-dimensional state."""

    caption: str
    values: Mapping[str, NDArray[Any]]  # [rows, columns] each, over the view
    view: Sequence[tuple[float, float]]
    labels: Sequence[str]


class LayerBox(NamedTuple):
    """A layer of a network: what it is, and the shape of what it gives."""

    name: str
    shape: tuple[int, ...]


class NetworkDiagram(NamedTuple):
    """A network: trunk, heads by name (one that ends in `|` passes no gradient back), and decoder."""

    caption: str
    trunk: Sequence[LayerBox]
    heads: Mapping[str, Sequence[LayerBox]]
    decoder: Sequence[LayerBox]


class Picture(NamedTuple):
    """A drawing that depends on no result, by its name."""

    caption: str
    name: Literal["mountain-car"]


class Animation(NamedTuple):
    """A path through rooms, in a section of its own after the one that it belongs to."""

    title: str
    text: str  # what it shows
    mdp: MDP
    states: NDArray[Any]  # [steps + 1] the path
    rooms: NDArray[Any]  # [S] the room of each state, -1 for a door
    fade: int  # steps after which a visit is a third as bright


SectionPart: TypeAlias = (
    Table | Text | CurvePanels | Maps | Diagrams | HeatMaps | SpaceMaps | NetworkDiagram | Picture | Animation
)


def agent_row(values: Sequence[Any], is_control: bool) -> Row:
    """The row of an agent, where there is no verdict; a control is marked in its name."""
    return Row((f"{values[0]} ({CONTROL})", *values[1:]), "control") if is_control else Row(values)


def number(value: Any, digits: int | None = None, *, significant: int | None = None, thousands: str = THIN) -> str:
    """A number for reading; a dash for none; text stays as it is.

    digits: after the point; by default fewer for larger numbers. significant: that many digits in all, below 1000.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if not isinstance(value, int | float) or isinstance(value, bool) or math.isinf(value):
        return str(value)
    if significant is not None and abs(value) < 1000:
        return f"{value:.{significant}g}"
    if digits is None:
        digits = 0 if float(value).is_integer() or abs(value) >= 1000 else 1 if abs(value) >= 10 else 2
    text = f"{value:,.{digits}f}".replace(",", thousands)
    return text.replace("-", "\N{MINUS SIGN}") if thousands == THIN else text


def between(low: float, high: float, digits: int | None = None) -> str:
    """An interval."""
    return f"{number(low, digits)} – {number(high, digits)}"


def percent(share: float, digits: int = 0) -> str:
    """A share of 1 in percent."""
    return f"{100 * share:.{digits}f}{THIN}%"
