"""Figures, drawn from estimates and never from raw runs. The only place that imports matplotlib.

`svg` is for a page: no background, and the ink is the colour of the text around it, so that one picture serves light,
dark and print; the colours of agents keep a contrast of 3 to both. `save` is for a file: on white.
An agent has the same colour and dash wherever it appears.
"""

from spie.page.plots.curves import MOST_POINTS, LegendEntry, curve_panel, curve_styles, legend
from spie.page.plots.diagrams import MOST_NODES, mdp_diagram, mountain_car, network_diagram
from spie.page.plots.files import picture_format, save, svg
from spie.page.plots.frames import check_film, write_film
from spie.page.plots.gif import film
from spie.page.plots.maps import MapGroup, heat_maps, panel_maps, shades, space_maps, state_maps
from spie.page.plots.states import is_constant, plot_maze, plot_path, plot_values
from spie.page.plots.style import COLOURS, DIVERGING, FLOOR, GOAL, HEAT, INK, START, WALL, line_style
from spie.paper.sections import Curve, HeadLayers, LayerBox, Panel

__all__ = [
    "COLOURS", "DIVERGING", "FLOOR", "GOAL", "HEAT", "INK", "MOST_NODES", "MOST_POINTS", "START", "WALL",
    "Curve", "HeadLayers", "LayerBox", "LegendEntry", "MapGroup", "Panel",
    "check_film", "curve_panel", "curve_styles", "film", "heat_maps", "is_constant", "legend", "line_style",
    "mdp_diagram", "mountain_car", "network_diagram", "panel_maps", "picture_format", "plot_maze", "plot_path",
    "plot_values", "save", "shades", "space_maps", "state_maps", "svg", "write_film",
]  # fmt: skip
