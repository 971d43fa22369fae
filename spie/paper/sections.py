"""What a section of the page consists of, as data: `spie.page` draws it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from spie import stats
from spie.numbers import between as between
from spie.numbers import number as number
from spie.numbers import percent as percent
from spie.tasks.mdp import MDP

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


class Look(NamedTuple):
    """Whose colour a curve has; a variant of that agent has a dash of its own."""

    agent: str
    variant: str = ""


class Curve(NamedTuple):
    """A mean with its interval."""

    x: NDArray[Any]  # [n], rising
    mean: NDArray[Any]  # [n]
    low: NDArray[Any]  # [n]
    high: NDArray[Any]  # [n]
    look: Look | None = None  # None: that of the agent whose name the curve has


class Panel(NamedTuple):
    """One set of axes: a curve per agent, horizontal lines with their names, vertical ones without; or points."""

    title: str
    curves: Mapping[str, Curve]
    x_label: str
    y_label: str
    horizontal: Mapping[str, float] = {}
    vertical: Sequence[float] = ()
    log: Literal["", "x", "y", "xy"] = ""  # which axes are logarithmic
    points: NDArray[Any] | None = None  # [n, 2] x and y, held against y = x


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


class HeadLayers(NamedTuple):
    """A head of a network."""

    name: str
    layers: Sequence[LayerBox]
    is_cut: bool = False  # it passes no gradient back


class NetworkDiagram(NamedTuple):
    """A network: trunk, heads, and decoder."""

    caption: str
    trunk: Sequence[LayerBox]
    heads: Sequence[HeadLayers]
    decoder: Sequence[LayerBox]


class Picture(NamedTuple):
    """A drawing that depends on no result, by its name."""

    caption: str
    name: Literal["mountain-car"]


class Film(NamedTuple):
    """An agent on its way through a grid: where it goes, what it is paid, what its representation says from there."""

    title: str
    text: str  # what it shows
    mdp: MDP
    states: NDArray[Any]  # [steps + 1] the path
    bonuses: NDArray[Any]  # [steps] intrinsic, before beta
    rooms: NDArray[Any]  # [S] the room of each state, -1 for a door
    fade: int  # steps after which a visit is a third as bright
    matrix: Literal["M", "F", ""] = ""  # the representation, if there is one
    gamma: float = 0.0  # its discount
    eta: float | None = None  # its learning rate; None: fixed, that of the random walk


SectionPart: TypeAlias = (
    Table | Text | CurvePanels | Maps | Diagrams | HeatMaps | SpaceMaps | NetworkDiagram | Picture | Film
)


def mean_curve(x: NDArray[Any], values: NDArray[Any], look: Look | None = None) -> Curve:
    """The mean of values [seeds, n] over seeds, with its 95 % interval."""
    mean, low, high = stats.mean_curve(values)
    return Curve(x, mean, low, high, look)


def agent_row(values: Sequence[Any], is_control: bool) -> Row:
    """The row of an agent, where there is no verdict; a control is marked in its name."""
    return Row((f"{values[0]} ({CONTROL})", *values[1:]), "control") if is_control else Row(values)
