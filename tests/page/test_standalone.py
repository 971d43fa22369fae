"""Pages show names as text, and may load nothing."""

import dataclasses
import html.parser
import re
from pathlib import Path

import numpy as np
import pytest

import spie
import spie.page
from spie.page import report
from spie.page.standalone import page
from spie.paper.experiment import Experiment
from spie.paper.results import Results
from spie.paper.sections import (
    Curve,
    CurvePanels,
    Diagrams,
    Film,
    HeadLayers,
    HeatMaps,
    LayerBox,
    Maps,
    NetworkDiagram,
    Panel,
    Row,
    SpaceMaps,
    Table,
    Text,
)
from spie.runs.store import Store

TEMPLATES = Path(spie.page.__file__).parent / "templates"
HOSTILE = (
    "<script>document.title='in'</script>", "</script><img src=x onerror=document.title='in'>", "javascript:alert(1)",
    "'\" onload=\"document.title='in'", "</title></style></textarea><svg onload=alert(1)>",
    "<!-- {{ 7 * 7 }}{% raw %} --><b>]]>", r"$x^$ \u003cb\u003e &lt;b>",
)  # fmt: skip


class Markup(html.parser.HTMLParser):
    """The elements of a page with their attributes' names, in order, and the values that could be an address."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.addresses = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, sorted(name for name, _ in attributes)))
        self.addresses += [value for name, value in attributes if name in ("href", "src", "xlink:href", "action")]


def parts(name):
    """Everything that a section may hold, with a name of a user's wherever one can be."""
    line = np.arange(3.0)
    curve = Curve(line, line, line, line)
    places = ("a", "b", "c")
    graph = spie.graph([[name, "b"], ["b", "c"], ["c", name]], name=name)
    maze = dataclasses.replace(spie.grid("S..\n..."), name=name)
    panel = Panel(name, {name: curve}, name, name, horizontal={name: 1.0})
    layers = [LayerBox(name, (3,))]
    return [
        Text(name, [name]),
        Table(name, (name, "steps", "verdict"), [Row((name, name, name), "control"), Row((name, 1, name))]),
        CurvePanels(name, [panel]),
        Maps(name, {name: maze}),
        Diagrams(name, {name: graph}),
        HeatMaps(name, maze, {name: np.ones((1, 6))}, [name]),
        SpaceMaps(name, {name: np.ones((2, 2))}, ((0, 1), (0, 1)), (name, name)),
        NetworkDiagram(name, layers, [HeadLayers(name, layers)], layers),
        *([Text(place, [place]) for place in places]),
    ]


def a_film(name):
    maze, states = spie.grid("S..\n..."), np.array([0, 1, 2])
    return Film(name, name, maze, states, np.ones(2), np.zeros(6, int), 3)


def harmless(name):
    """Letters in the same places, so that lines break alike."""
    return re.sub(r"\S", "x", name)


def standalone(name):
    return page(name, [name], [(name, parts(name))], name)


def whole_report(name, folder, monkeypatch):
    experiment = Experiment("hostile", name, lambda e, results: [*parts(name), a_film(name)])
    monkeypatch.setattr(report, "shown_experiments", lambda results, shipped=(): [experiment])
    monkeypatch.setattr(report, "judge", lambda results, claims: [])
    monkeypatch.setattr(report, "available", lambda: ({}, [name]))
    with Store(folder / "results.db") as store:
        return report.page(Results(store))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text_and_never_markup(name):
    found, expected = Markup(standalone(name)), Markup(standalone(harmless(name)))
    assert found.elements == expected.elements
    assert all(address.startswith(("#", "data:image/png")) for address in found.addresses)


def test_a_name_in_the_report_and_in_the_data_of_its_films_is_text(tmp_path, monkeypatch):
    name = "</script><script>alert(1)"
    text = whole_report(name, tmp_path, monkeypatch)
    found, expected = Markup(text), Markup(whole_report(harmless(name), tmp_path, monkeypatch))
    assert found.elements == expected.elements
    assert all(address.startswith(("#", "data:image/png")) for address in found.addresses)
    assert text.count("</script>") == 2  # the film's data and what plays it


def test_names_would_be_markup_if_they_were_not_escaped(monkeypatch):
    """So that the tests above can fail."""
    monkeypatch.setattr("html.escape", lambda text, quote=True: text)
    assert Markup(standalone(HOSTILE[3])).elements != Markup(standalone(harmless(HOSTILE[3]))).elements


@pytest.mark.parametrize("template", ["report.html", "standalone.html"])
def test_pages_may_load_nothing_and_send_nothing(template):
    text = (TEMPLATES / template).read_text()
    policy = text.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "connect-src" not in policy
    assert "form-action 'none'" in policy
