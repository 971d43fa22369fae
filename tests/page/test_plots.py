import itertools
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import Normalize, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.testing import assert_allclose, assert_array_equal

import spie
from spie import MDP, grid, riverswim, sixarms
from spie.agents.registry import names
from spie.cli import main
from spie.page import plots
from spie.page.plots import Curve, Panel
from spie.paper.beyond import exploration_linear
from spie.paper.sections import Look

MAIN_AGENTS = ("sarsa", "sarsa-sr", "sarsa-fr", "sarsa-srr", "sarsa-sr-pr")
LIGHT, DARK = "#ffffff", "#16181d"  # pages
SEEN_BY = {  # linear RGB as people without green- or red-sensitive cones see it (Machado, Oliveira and Fernandes 2009)
    "all cones": np.eye(3),
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    """Contrast of two colours as web accessibility guidelines define it, 1 to 21."""
    low, high = sorted(linear(colour) @ [0.2126, 0.7152, 0.0722] for colour in (a, b))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE L*a*b* of a linear RGB colour; 2.3 is the least difference that is noticed."""
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ np.clip(rgb, 0, 1)
    t = xyz / [0.9505, 1, 1.089]
    x, y, z = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def curve(x, mean, half=0.1):
    x, mean = np.asarray(x, float), np.asarray(mean, float)
    return Curve(x, mean, mean - half, mean + half)


def texts(figure):
    return [text.get_text() for ax in figure.axes for text in ax.texts]


def picture(ax):
    """Colours of the cells of a map [rows, columns, 4]."""
    return np.asarray(ax.images[0].get_array())


# curves


def test_no_two_agents_look_alike():
    looks = {str(plots.line_style(agent)) for agent in names("table")}
    assert len(looks) == len(names("table")) > 20


def test_no_two_contenders_on_linear_features_have_one_colour():
    contenders = exploration_linear.grids()
    assert len({plots.line_style(name)["color"] for name in contenders}) == len(contenders) > 7


def test_an_agent_with_a_fixed_representation_has_the_colour_of_the_one_that_learns_it():
    for agent in names("table"):
        if (fixed := f"{agent}-fixed") in names("table"):
            assert plots.line_style(agent)["color"] == plots.line_style(fixed)["color"]
            assert plots.line_style(agent)["linestyle"] == "-" != plots.line_style(fixed)["linestyle"]


def test_variants_have_the_colour_of_their_agent_and_dashes_of_their_own():
    looks = [Look("count", "k=2"), Look("sarsa", "k=3"), Look("sarsa", "k=2"), Look("count"), Look("sarsa")]
    panels = [
        Panel("", {f"curve {i}": curve([0, 1], [0, 1])._replace(look=look)}, "", "") for i, look in enumerate(looks)
    ]
    styles = plots.curve_styles(panels)
    assert [styles[f"curve {i}"]["color"] for i in range(5)] == [plots.COLOURS[look.agent] for look in looks]
    assert len({str(style) for style in styles.values()}) == 5
    for i, agent in ((3, "count"), (4, "sarsa")):  # the agent itself looks as it does alone
        assert styles[f"curve {i}"] == plots.line_style(agent)
    (ax,) = plots.curve_panel(panels[2], styles).axes
    assert ax.lines[0].get_color() == plots.COLOURS["sarsa"]
    assert plots.curve_styles(panels[::-1]) == styles  # whatever the order


def test_a_space_in_a_name_means_nothing():
    panel = Panel("", {"count as reward": curve([0], [1]), "count as optimism": curve([0], [1])}, "", "")
    assert len({str(style) for style in plots.curve_styles([panel]).values()}) == 2


@pytest.mark.slow
def test_an_agent_without_a_colour_of_its_own_looks_the_same_in_every_process():
    names = [f"my-agent-{i}" for i in range(6)]
    program = f"from spie.page import plots; print(*(plots.line_style(name)['color'] for name in {names}))"
    # Python's own hash of a text differs from process to process, unless it is told not to.
    colours = [
        subprocess.check_output([sys.executable, "-c", program], text=True, env={**os.environ, "PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    ]
    assert colours[0] == colours[1]
    assert set(colours[0].split()) <= set(plots.COLOURS.values())


@pytest.mark.parametrize("page", [LIGHT, DARK])
@pytest.mark.parametrize("agent", plots.COLOURS)
def test_agents_stand_out_from_light_and_dark_pages(agent, page):
    assert contrast(plots.COLOURS[agent], page) >= 3  # the guidelines' bound for graphics


@pytest.mark.parametrize("eyes", SEEN_BY)
def test_colour_blind_readers_tell_the_agents_apart(eyes):
    for a, b in itertools.combinations(MAIN_AGENTS, 2):
        seen = [lab(SEEN_BY[eyes] @ linear(plots.COLOURS[agent])) for agent in (a, b)]
        assert np.linalg.norm(seen[0] - seen[1]) > 10, f"{a} and {b}"


def test_a_panel_holds_means_intervals_and_lines():
    panel = Panel("a map", {"sarsa": curve([0, 10], [1, 3], half=0.5)}, "steps", "seen", {"ceiling": 4.0}, (5.0,))
    (ax,) = plots.curve_panel(panel).axes
    lines = {tuple(map(tuple, line.get_xydata())) for line in ax.lines}
    assert ((0.0, 1.0), (10.0, 3.0)) in lines
    assert ((5.0, 0.0), (5.0, 1.0)) in lines  # vertical, its ends in fractions of the axis
    assert ((0.0, 4.0), (1.0, 4.0)) in lines
    assert [text.get_text() for text in ax.texts] == ["ceiling"]
    band = ax.collections[0].get_paths()[0].vertices
    assert {(0, 0.5), (0, 1.5), (10, 2.5), (10, 3.5)} <= {tuple(point) for point in band.tolist()}
    assert ax.get_title(loc="left") == "a map"
    assert ax.get_ylim()[0] == 0


def test_every_panel_names_its_axes_and_the_legend_has_every_agent_once():
    names = ("sarsa", "sarsa-sr", "sarsa-srr", "count", "random")
    panels = [Panel(f"map {i}", {name: curve([0, 1], [0, i]) for name in names[i:]}, "steps", "seen") for i in range(4)]
    (ax,) = plots.curve_panel(panels[3]).axes  # panels stand side by side or one below the other, as there is room
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("steps", "seen")
    entries = plots.legend(panels)
    assert [entry.agent for entry in entries] == list(names)
    assert [bool(entry.dashes) for entry in entries] == [False, False, False, True, True]
    for entry in entries:
        assert entry.colour == plots.COLOURS[entry.agent]


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_axes_are_logarithmic_where_asked(log):
    (ax,) = plots.curve_panel(Panel("", {"sarsa": curve([1, 10], [1, 100])}, "", "", log=log)).axes
    assert (ax.get_xscale() == "log", ax.get_yscale() == "log") == ("x" in log, "y" in log)


@pytest.mark.parametrize("log", ["", "x"])
def test_a_long_curve_is_thinned_to_points_of_its_own_with_both_ends(log):
    x = np.arange(1.0, 8001)
    (ax,) = plots.curve_panel(Panel("", {"sarsa": curve(x, x**2)}, "", "", log=log)).axes
    points = ax.lines[0].get_xydata()
    assert len(points) <= plots.MOST_POINTS
    assert points[[0, -1], 0].tolist() == [1, 8000]
    assert_array_equal(points[:, 1], points[:, 0] ** 2)
    steps = np.diff(np.log(points[:, 0]) if log else points[:, 0])
    assert steps.max() < (0.7 if log else 42)  # ln 2 from 1 to 2; 8000 / 200, rounded up


# maps

ROOM = "S.\n.#"  # states 0,0  0,1  1,0 and a wall


def test_heat_maps_share_one_scale_and_leave_unvisited_cells_blank():
    few, many = [[1, 10, 0], [10, 100, 1]], [[1000, 10, 0], [0, 0, 1]]
    figure = plots.heat_maps(grid(ROOM), {"few": np.array(few), "many": np.array(many)}, ["50", "100"])
    ax = figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["few", "many"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "100"]
    mosaic = picture(ax)
    assert mosaic.shape == (5, 5, 4)  # 2 x 2 maps of 2 x 2 cells, one cell apart
    wall, floor = (np.array(to_rgba(colour)) for colour in (plots.WALL, plots.FLOOR))
    for i, j in itertools.product((0, 3), (0, 3)):
        assert_allclose(mosaic[i + 1, j + 1], wall)
    assert_allclose(mosaic[1, 0], floor)  # 0 visits
    assert_allclose(mosaic[0, 1], mosaic[3, 1])  # 10 visits in one row and in the other
    assert_allclose(mosaic[0, 0], plots.HEAT(0.0))  # the least above 0
    assert_allclose(mosaic[3, 0], plots.HEAT(1.0))
    assert_allclose(mosaic[0, 4], plots.HEAT(2 / 3))  # 100 on the way from 1 to 1000
    assert (mosaic[2] == 0).all()  # nothing between the maps


def test_a_part_of_the_heat_maps_keeps_the_scale_of_all():
    values = {"few": np.array([[1, 10, 0], [10, 1000, 1]])}
    whole, part = (
        picture(plots.heat_maps(grid(ROOM), values, ["50", "100"], shown=shown).axes[0])
        for shown in (slice(None), slice(0, 1))
    )
    assert_allclose(part, whole[:, :2])


def test_a_row_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=re.escape('heat_maps: "sarsa" has shape [3, 3], not [2, 3]')):
        plots.heat_maps(grid(ROOM), {"sarsa": np.ones((3, 3))}, ["1", "2"])


def test_a_map_has_its_own_linear_scale():
    figure = plots.state_maps(grid(ROOM), {"v": np.array([-2.0, 0.0, 2.0])})
    cells = picture(figure.axes[0])
    for cell, height in {(0, 0): 0.0, (0, 1): 0.5, (1, 0): 1.0}.items():
        assert_allclose(cells[cell], plots.HEAT(height))
    assert_allclose(cells[1, 1], to_rgba(plots.WALL))


def test_values_of_many_sizes_get_a_logarithmic_scale_and_0_stays_blank():
    cells = picture(plots.state_maps(grid(ROOM + "\n.."), {"v": np.array([1.0, 10.0, 100.0, 0.0, 1.0])}).axes[0])
    for cell, colour in {(0, 0): plots.HEAT(0.0), (0, 1): plots.HEAT(0.5), (2, 0): to_rgba(plots.FLOOR)}.items():
        assert_allclose(cells[cell], colour)


def test_rounding_is_not_drawn_as_a_pattern():
    figure = plots.state_maps(grid(ROOM), {"sums": np.array([20, 20 + 4e-15, 20 - 4e-15])})
    (ax,) = figure.axes  # no colour bar
    assert ax.get_xlabel() == "20 in every state"
    assert_allclose(picture(ax)[0, 0], picture(ax)[0, 1])


def test_a_state_without_value_is_blank():
    cells = picture(plots.state_maps(grid(ROOM), {"v": np.array([1.0, np.nan, 2.0])}).axes[0])
    assert_allclose(cells[0, 1], to_rgba(plots.FLOOR))


def test_a_chain_is_a_strip_of_boxes_with_their_numbers():
    figure = plots.state_maps(riverswim(), {"v": np.array([0, 1.5, -2, 1234, 0.000123456, 1])})
    assert texts(figure) == ["0", "1.5", "\N{MINUS SIGN}2", "1,230", "0.000123", "1"]
    assert picture(figure.axes[0]).shape == (1, 6, 4)


def test_the_map_itself_shows_start_and_the_goals_of_all_phases():
    figure = plots.state_maps(grid("cluster-simple", task="moving-goal"), {"map": None})
    (ax,) = figure.axes
    assert {text.get_text(): text.get_position() for text in ax.texts} == {
        "S": (0, 0), "G": (9, 9), "1": (9, 0), "2": (0, 9)
    }  # fmt: skip
    assert_allclose(picture(ax)[0, 0], to_rgba(plots.START))
    assert_allclose(picture(ax)[9, 9], to_rgba(plots.GOAL))


def test_a_start_anywhere_marks_nothing():
    assert texts(plots.state_maps(grid("...\n..."), {"map": None})) == []


def test_the_state_asked_for_is_framed_in_every_map():
    mdp = grid("of-small")
    figure = plots.state_maps(mdp, {"map": None, "v": np.arange(100.0)}, of=23)
    for ax in (ax for ax in figure.axes if ax.images):
        assert {frame.get_xy() for frame in ax.patches} == {(2.5, 1.5)}  # row 2, column 3


def test_values_of_another_size_are_refused():
    with pytest.raises(ValueError, match=re.escape('state_maps: "M" has shape [3], not [6]')):
        plots.state_maps(riverswim(), {"M": np.ones(3)})


@pytest.mark.parametrize("name", ["hexgrid", "tree", "t-maze"])
def test_hexagons_nodes_and_squares_are_filled_alike(name):
    mdp = spie.task(name)
    values = np.arange(mdp.n_states, dtype=float)
    ax = spie.plot.values(mdp, values, norm=Normalize(0, mdp.n_states - 1), bar=False)
    if ax.images:
        shown = picture(ax)[tuple(mdp.cells.T)]
    else:
        shown = ax.collections[0 if name == "hexgrid" else 1].get_facecolors()
    assert_allclose(shown, plots.HEAT(values / values.max()))


def test_plots_draw_on_the_axes_that_they_are_given_and_return_them():
    figure = Figure()
    mdp = spie.hexgrid(3, 3)
    for ax, draw in zip(
        figure.subplots(1, 3),
        [
            lambda ax: spie.plot.maze(mdp, ax=ax),
            lambda ax: spie.plot.values(mdp, np.arange(9.0), ax=ax),
            lambda ax: spie.plot.path(mdp, [0, 1, 2], ax=ax),
        ],
        strict=True,
    ):
        assert draw(ax) is ax
    with pytest.raises(ValueError, match=re.escape("values have shape [3], not [9]")):
        spie.plot.values(mdp, np.ones(3))
    with pytest.raises(ValueError, match=re.escape("a path is a sequence of states, 0..8")):
        spie.plot.path(mdp, [0.5])


def test_thin_walls_and_one_way_doors_are_drawn():
    mdp = grid("+-+-+-+\n|S>   |\n+-+ + +\n|   | |\n+-+-+-+")
    ax = spie.plot.maze(mdp)
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert sorted(len(c.get_segments()) for c in lines) == [1, 2]  # the side of the door; two walls
    (door,) = (c for c in ax.collections if isinstance(c, PolyCollection))
    x, y = door.get_paths()[0].vertices[0]
    assert (x > 0.5, y) == (True, 0)  # its tip points from 0,0 to 0,1


def test_maps_of_a_group_share_one_labelled_scale_and_two_colours_meet_at_0():
    mdp = grid(ROOM)
    groups = [
        plots.MapGroup("visits", {"a": np.array([0.0, 1, 2]), "b": np.array([2.0, 3, 4])}),
        plots.MapGroup("entry", {"c": np.array([-1.0, 0, 0.5])}, diverging=True),
    ]
    figure = plots.panel_maps(mdp, groups)
    shown = {ax.get_title(loc="left"): picture(ax) for ax in figure.axes if ax.images and ax.get_title(loc="left")}
    assert_allclose(shown["a"][1, 0], shown["b"][0, 0])  # 2 in both
    assert_allclose(shown["c"][0, 1], plots.DIVERGING(0.5))
    assert_allclose(shown["c"][0, 0], plots.DIVERGING(0.0))
    labels = [ax.get_xlabel() for ax in figure.axes if ax.get_xlabel()]
    assert sorted(labels) == ["entry", "visits"]


# diagrams


def arrows(figure):
    return [patch for ax in figure.axes for patch in ax.patches if isinstance(patch, FancyArrowPatch)]


@pytest.mark.slow
def test_riverswim_is_drawn_from_its_tables():
    figure = plots.mdp_diagram(riverswim())
    written = texts(figure)
    assert len(arrows(figure)) == 2 + 4 * 3 + 2 + 6  # right: two ends and four states between; left
    assert [written.count(number) for number in ("0.3", "0.6", "0.1", "0.7")] == [5, 4, 4, 2]
    assert {"0.3, +10,000", "+5", *"012345"} <= set(written)


def test_sixarms_is_drawn_from_its_tables():
    figure = plots.mdp_diagram(sixarms())
    written = texts(figure)
    assert len(arrows(figure)) == 6 + 1 + 6 + 6  # out, staying in the hub, back, staying in a room
    assert {"a0", "a1: 0.15", "a2: 0.1", "a3: 0.05", "a4: 0.03", "a5: 0.01"} <= set(written)
    assert {"all but a4: +50", "a1: +133", "a2: +300", "a3: +800", "a4: +1,666", "a5: +6,000"} <= set(written)
    assert {"a4", "all but a1", "all but a5", "otherwise"} <= set(written)


def test_other_small_mdps_are_drawn_in_a_ring():
    successors = np.array([[[1], [2]], [[2], [2]], [[0], [3]], [[3], [1]]])  # no chain, no hub
    reward = np.zeros((4, 2, 1))
    reward[0, 1] = -2
    mdp = MDP("ring", successors, np.ones((4, 2, 1)), reward, start=np.eye(4)[0])
    figure = plots.mdp_diagram(mdp)
    assert len(arrows(figure)) == 7  # state 1 has one for both actions
    assert sorted(texts(figure)) == sorted(
        ["0", "1", "2", "3", "a0", "a1: \N{MINUS SIGN}2", "any", "a0", "a1", "a0", "a1"]
    )


def test_no_arrow_leaves_the_end_of_an_episode():
    figure = plots.mdp_diagram(grid("SG", task="goal"))
    assert len(arrows(figure)) == 2  # from S to itself and to G
    assert sorted(texts(figure)) == ["0,0", "0,1", "a1", "all but a1: \N{MINUS SIGN}1"]


def test_a_network_is_drawn_with_every_shape_and_where_gradients_stop():
    layer = plots.LayerBox
    trunk, decoder = [layer("frames", (4, 8, 8)), layer("FC", (5,))], [layer("FC", (64,)), layer("next frame", (8, 8))]
    heads = [plots.HeadLayers("Q", [layer("FC", (3,))]), plots.HeadLayers("psi", [layer("FC", (5,))], is_cut=True)]
    figure = plots.network_diagram(trunk, heads, decoder)
    assert sorted(texts(figure)) == sorted([*"frames FC FC FC FC 4×8×8 5 3 5 64 8×8 Q psi ‖".split(), "next frame"])
    assert sum(isinstance(patch, FancyArrowPatch) for patch in figure.axes[0].patches) == 5  # into all but the frames


def test_a_large_mdp_has_no_diagram():
    with pytest.raises(ValueError, match="a diagram holds 12 states, not 100; use state_maps"):
        plots.mdp_diagram(grid("of-small"))


# files and pages

DRAWINGS = {
    "curves": lambda: plots.curve_panel(Panel("a < b", {"sarsa-srr": curve([0, 1], [0, 1])}, "steps", "seen")),
    "heat maps": lambda: plots.heat_maps(grid(ROOM), {"sarsa": np.ones((2, 3))}, ["1", "2"]),
    "state maps": lambda: plots.state_maps(grid(ROOM), {"map": None, "v": np.arange(3.0)}),
    "diagram": lambda: plots.mdp_diagram(riverswim()),
}


@pytest.mark.slow
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_an_svg_is_the_same_text_every_time(drawing):
    figure = DRAWINGS[drawing]()
    assert plots.svg(figure) == plots.svg(figure) == plots.svg(DRAWINGS[drawing]())


@pytest.mark.slow
@pytest.mark.parametrize("drawing", DRAWINGS)
def test_an_svg_fits_into_a_page(drawing):
    text = plots.svg(DRAWINGS[drawing]())
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "width" not in root.attrib  # the page decides, through the style
    assert "currentColor" in text
    assert plots.INK not in text
    assert "<style" not in text  # it would apply to the whole page
    assert "http://" not in re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)  # nothing to load
    names = re.findall(r' id="([^"]+)"', text)
    assert len(names) == len(set(names))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text)) == set(names)


def test_text_in_an_svg_is_text():
    text = plots.svg(DRAWINGS["curves"]())
    words = {element.text for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")}
    assert {"a < b", "steps", "seen"} <= words


@pytest.mark.slow
def test_pictures_of_one_page_share_no_names():
    names = [set(re.findall(r' id="([^"]+)"', plots.svg(draw()))) for draw in DRAWINGS.values()]
    assert all(names)
    assert sum(map(len, names)) == len(set.union(*names))


@pytest.mark.slow
def test_figures_are_saved_by_suffix(tmp_path):
    figure = DRAWINGS["diagram"]()
    plots.save(figure, tmp_path / "a.PNG")
    plots.save(figure, tmp_path / "a.svg")
    plots.save(figure, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert ElementTree.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")
    with pytest.raises(ValueError, match=r"a\.jpg: cannot write a picture of this kind.*\.png, \.svg or \.pdf"):
        plots.save(figure, tmp_path / "a.jpg")


# spie show


@pytest.fixture
def show(monkeypatch, capsys, tmp_path):
    """Run `spie show` in an empty folder; returns exit code, output and error output."""
    monkeypatch.chdir(tmp_path)

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["spie", "show", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return command


@pytest.fixture
def drawn(monkeypatch):
    """What the command has drawn: an MDP, its maps by title, and the state with a frame."""
    calls = []

    def panel_maps(mdp, groups, of=None):
        calls.append((mdp, {title: values for group in groups for title, values in group.maps.items()}, of))

    monkeypatch.setattr(plots, "panel_maps", panel_maps)
    monkeypatch.setattr(plots, "state_maps", lambda mdp, values, of=None: calls.append((mdp, values, of)))
    monkeypatch.setattr(plots, "save", lambda figure, path: None)
    return calls


@pytest.mark.slow
def test_show_prints_the_map_and_writes_a_picture(show, tmp_path):
    code, out, err = show("cluster-hard")
    assert (code, err) == (0, "")
    assert "cluster-hard: 85 states on 10 x 10 cells, 4 actions" in out
    assert "start 0,0; no goal; 4 doors (2,5 5,2 5,7 7,5)" in out
    assert "P of the uniform random policy is symmetric" in out
    assert "\nS . . . . ##. . . . \n" in out
    assert "\n. . . . . @ . . . . \n" in out  # the door at 2,5
    assert "wrote cluster-hard.png" in out
    assert (tmp_path / "cluster-hard.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_show_writes_where_it_is_told(show, tmp_path):
    code, out, _ = show("riverswim", "-o", "river.svg")
    assert code == 0
    assert "is not symmetric" in out
    assert " 0  1  2  [3]  4  5 " in out
    assert [path.name for path in tmp_path.iterdir()] == ["river.svg"]


def test_show_draws_the_closed_forms_and_the_reward(show, drawn, tmp_path):
    # Two cells: each of four actions moves or bumps, P = [[3, 1], [1, 3]] / 4, so with gamma 1/2
    # M = N = [[5, 1], [1, 5]] / 3. SR-R pays 5/3 - 2 for staying (3 of 4) and 1/3 - 2 for moving: -2/3 on average.
    (tmp_path / "two.txt").write_text("S.")
    code, out, _ = show("two.txt", "--gamma", 0.5, "--of", "0,0", "--panels", "maze,M,F,N,sr-r,sums")
    assert code == 0
    ((mdp, values, of),) = drawn
    assert (mdp.name, of) == ("two", 0)
    assert values.pop("two") is None
    expected = {
        "M[:, s], s = 0,0": [5 / 3, 1 / 3],
        "N[:, s], s = 0,0": [5 / 3, 1 / 3],
        "F[:, s], s = 0,0": [1, 1 / 5],
    }
    assert list(values) == list(expected)
    for name, numbers in expected.items():
        assert_allclose(values[name], numbers, err_msg=name)
    assert "fixed SR-R reward is not drawn: -0.6667 in every state\n" in out  # no picture says what a line can
    assert "column sums of N is not drawn: 2 in every state\n" in out


def test_show_respects_the_end_of_an_episode(show, drawn, tmp_path):
    # Cell, goal: nothing follows the goal. From the cell, M = 1 / (1 - gamma 3/4) = 8/5; a step into the goal
    # (1 of 4) pays 0 - 1 and staying pays 8/5 - 8/5 = 0.
    (tmp_path / "two.txt").write_text("SG")
    assert show("two.txt", "--gamma", 0.5, "--of", 0, "--task", "goal", "--panels", "sums,M")[0] == 0
    values = drawn[0][1]
    assert_allclose(values["row sums of M"], [8 / 5, 1])
    assert_allclose(values["M[:, s], s = 0,0"], [8 / 5, 0])


def test_the_fixed_reward_knows_the_end_of_an_episode(show, drawn, tmp_path):
    (tmp_path / "three.txt").write_text("S.G")
    assert show("three.txt", "--gamma", 0, "--task", "goal", "--panels", "sr-r")[0] == 0
    # M is the identity: staying (3 of 4 at the start, 2 of 4 beside the goal) pays 1 - 1, each move 0 - 1
    assert_allclose(drawn[0][1]["fixed SR-R reward"], [-1 / 4, -1 / 2, np.nan])


@pytest.mark.parametrize(
    ("name", "state"),
    [("cluster-simple", "5,5"), ("of-small", "4,4"), ("cluster-simple-large", "10,10"), ("riverswim", "3")],
)
def test_show_takes_a_door_or_else_the_middle(show, drawn, name, state):
    assert show(name)[0] == 0
    mdp, _, of = drawn[0]
    assert mdp.labels[of] == state


@pytest.mark.parametrize("name", ["2,3", "23"])
def test_a_state_is_given_by_number_or_place(show, drawn, name):
    assert show("of-small", "--of", name)[0] == 0
    assert drawn[0][2] == 23


def test_a_map_in_two_pieces_is_drawn_without_N(show, drawn, tmp_path):
    (tmp_path / "pieces.txt").write_text(".#.\n.#.")
    code, out, _ = show("pieces.txt")
    assert code == 0
    assert "N is not drawn: P has no unique stationary distribution: states 0 and 1 are in two closed classes\n" in out
    names = list(drawn[0][1])
    assert any(name.startswith("M[:, s]") for name in names)
    assert not any("N[" in name for name in names)


def test_a_large_maze_is_drawn_as_a_map_alone(show, drawn, tmp_path):
    (tmp_path / "large.txt").write_text("\n".join(["." * 71] * 71))
    code, out, _ = show("large.txt")
    assert code == 0
    assert "above 5,000 states only the map is drawn; spie.sr_row_sums" in out
    assert drawn[0][1] == {"large": None}


@pytest.mark.slow
def test_windows_line_ends_and_odd_names_are_fine(show, tmp_path):
    (tmp_path / "[bold]own.txt").write_bytes(b"S..\r\n.#.\r\n..G\r\n")
    code, out, _ = show("[bold]own.txt")
    assert code == 0
    assert "[bold]own: 8 states on 3 x 3 cells" in out
    assert "wrote [bold]own.png" in out
    assert (tmp_path / "[bold]own.png").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (".x\n..", 'unknown character "x" in line 1, column 2'),
        ("..\n...", "line 2 has 3 characters, line 1 has 2"),
        ("##\n##", "no free cell"),
        ("", "the map is empty"),
        ("S#G", "goal G at row 0, column 2 cannot be reached"),
    ],
)
def test_a_map_that_is_none_is_one_line_and_exit_code_2(show, tmp_path, text, message):
    (tmp_path / "own.txt").write_text(text)
    code, out, err = show("own.txt", "--task", "goal")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("spie: own: ")
    assert message in err
    assert not (tmp_path / "own.png").exists()


@pytest.mark.slow
def test_an_agent_learns_before_its_policy_and_values_are_drawn(show, drawn):
    code, _, err = show("cluster-simple", "--task", "goal", "--policy", "planner", "--steps", 2000, "--panels", "z")
    assert (code, err) == (0, "")
    mdp, maps, _ = drawn[0]
    Q = spie.agent("planner").run(mdp, 2000, keep=spie.Keep(matrices=("Q",))).Q[0]
    ends = mdp.terminal[0]
    assert_array_equal(maps["V of planner"][~ends], Q[~ends].max(axis=1))
    assert np.isnan(maps["V of planner"][ends]).all()
    assert (maps["z"] > 0).sum() < 30  # it goes straight to the goal, which a random walk does not


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["of-small", "--policy", "dqn"], "dqn does not run on of-small; agents that do: sarsa,"),
        (["of-small", "--policy", "planner", "--steps", "0"], "--steps must be a whole number of at least 1"),
        (["rivrswim"], 'no task, map or file "rivrswim"; did you mean "riverswim"?'),
        (["none.txt"], 'no task, map or file "none.txt"'),
        (["."], ". is a folder; give the text file of a map"),
        (["riverswim", "--task", "goal"], "riverswim has no tasks"),
        (["of-small", "--task", "gaol"], 'no task "gaol"; did you mean "goal"?'),
        (["of-small", "--of", "10,10"], 'of-small: no state "10,10"; give a number 0..99 or the row,column'),
        (["of-small", "--of", "100"], 'of-small: no state "100"'),
        (["of-small", "--of", "-1"], 'of-small: no state "-1"'),
        (["riverswim", "--of", "6"], 'riverswim: no state "6"; give a number 0..5\n'),
        (["of-small", "--gamma", "1"], "gamma is 1.0, not in [0, 1)"),
        (["of-small", "--panels", "M,P"], 'no panel "P". Known: F, M, M-row, N, betweenness, default, eigenvectors'),
        (["of-small", "--panels", ","], "--panels names nothing to draw; give maze, for example"),
        (
            ["of-small", "--policy", "best"],
            'no policy "best"; give random, an agent of spie list, or a .npy file of numbers [100, 4]',
        ),
        (["riverswim", "--no-bumps"], "riverswim has no bumps; --bumps and --no-bumps are for maps"),
        (["of-small", "-o", "map.jpg"], "map.jpg: cannot write a picture of this kind"),
        (["of-small", "-o", "map"], "map: cannot write a picture of this kind"),
        (["of-small", "-o", "no/such/folder/map.png"], "there is no folder no/such/folder"),
    ],
)
def test_a_wrong_word_is_one_line_and_exit_code_2(show, tmp_path, words, message):
    code, _, err = show(*words)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_map_is_never_overwritten_by_its_picture(show, tmp_path):
    (tmp_path / "own.png").write_text("S.")
    code, _, err = show("own.png")
    assert (code, err) == (2, "spie: own.png is the map itself; choose another name for the picture with -o\n")
    assert (tmp_path / "own.png").read_text() == "S."


@pytest.mark.parametrize(("first", "last"), [(1, 100), (1, 999), (10, 2400), (10, 8000), (1, 100_000), (0.005, 0.5)])
def test_labels_of_a_logarithmic_axis_stand_apart(first, last):
    panel = Panel("map", {"sarsa": curve([first, last], [0, 100])}, "steps", "states seen, %", log="x")
    figure = plots.curve_panel(panel)
    figure.canvas.draw()
    low, high = figure.axes[0].get_xlim()
    shown = [label for label in figure.axes[0].get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in shown]
    width = boxes[0].width / len(shown[0].get_text())  # of a letter
    assert len(boxes) >= 2
    assert all(right.x0 - left.x1 > 0.7 * width for left, right in itertools.pairwise(boxes))
