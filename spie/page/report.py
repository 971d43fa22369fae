"""One self-contained HTML page from a results file: ours beside theirs, verdicts, figures and the commands.

Experiments say what their sections consist of (`spie.paper.sections`); here it is drawn, and the template lays it out.
What is unfinished or was not run is shown as such and gives no number.
"""

import base64
import dataclasses
import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from spie.files import replacing
from spie.page import plots
from spie.paper import published as paper
from spie.paper import registry, rules
from spie.paper.claims import judge
from spie.paper.coin import luck
from spie.paper.comparison import tally
from spie.paper.contenders import label
from spie.paper.experiment import Experiment, no_runs
from spie.paper.findings import findings
from spie.paper.results import Results
from spie.paper.sections import (
    CurvePanels,
    Diagrams,
    Film,
    HeatMaps,
    Maps,
    NetworkDiagram,
    Picture,
    Row,
    SectionPart,
    SpaceMaps,
    Table,
    Text,
    number,
)
from spie.paper.shipped import SAME, Shipped, available
from spie.representations import sr
from spie.runs.run import Run, load


class Drawing(NamedTuple):
    """Pictures, as they stand in the page."""

    caption: str
    svgs: Sequence[str]
    kind: str  # how they stand: "panels", "maps" and "figures" side by side as there is room; "wide" does not shrink
    legend: Sequence[plots.LegendEntry] = ()


class ShippedSection(NamedTuple):
    """What ships of an experiment."""

    mark: str  # when and from what it was made, and why it no longer counts, if so
    facts: str
    command: str  # that checks it
    parts: Sequence[Table | Text | Drawing] = ()


class Section(NamedTuple):
    """An experiment on the page."""

    name: str
    title: str
    command: str
    state: str  # "finished", "not run" or "unfinished: ..."
    facts: str = ""  # runs, seeds, time
    parts: Sequence[Table | Text | Drawing] = ()
    films: Sequence[dict[str, Any]] = ()
    settings: Table | None = None
    shipped: ShippedSection | None = None


# What a section consists of, drawn


def _curve_panels(part: CurvePanels) -> list[Any]:
    styles = plots.curve_styles(part.panels)
    return [plots.curve_panel(panel, styles) for panel in part.panels]


def _maps(part: Maps) -> list[Any]:
    return [plots.state_maps(mdp, {name: None}) for name, mdp in part.mdps.items()]


def _diagrams(part: Diagrams) -> list[Any]:
    return [plots.mdp_diagram(mdp) for mdp in part.mdps.values()]


def _heat_maps(part: HeatMaps) -> list[Any]:
    """In groups of times, so that a narrow page shows them one below the other."""
    groups = [slice(first, first + MAPS_ACROSS) for first in range(0, len(part.times), MAPS_ACROSS)]
    return [plots.heat_maps(part.mdp, part.values, part.times, shown=group, room=MAPS_ACROSS) for group in groups]


def _space_maps(part: SpaceMaps) -> list[Any]:
    most = max(float(np.abs(values).max()) for values in part.values.values())
    maps = list(part.values.items())
    groups = (dict(maps[first : first + MAPS_ACROSS]) for first in range(0, len(maps), MAPS_ACROSS))
    return [plots.space_maps(group, part.view, part.labels, columns=2, most=most) for group in groups]


def _network(part: NetworkDiagram) -> list[Any]:
    return [plots.network_diagram(part.trunk, part.heads, part.decoder)]


def _picture(part: Picture) -> list[Any]:
    return [{"mountain-car": plots.mountain_car}[part.name]()]


MAPS_ACROSS = 4  # of a group of maps
FIGURES: dict[type[Any], tuple[str, Callable[[Any], list[Any]]]] = {  # and how they stand
    CurvePanels: ("panels", _curve_panels),
    Maps: ("maps", _maps),
    Diagrams: ("wide", _diagrams),
    HeatMaps: ("figures", _heat_maps),
    SpaceMaps: ("figures", _space_maps),
    NetworkDiagram: ("wide", _network),
    Picture: ("figures", _picture),
}


def draw(part: Any) -> Table | Text | Drawing:
    """A part as the template takes it."""
    if isinstance(part, Table | Text):
        return part
    kind, figures = FIGURES[type(part)]
    legend = plots.legend(part.panels) if isinstance(part, CurvePanels) else ()
    return Drawing(part.caption, [plots.svg(figure) for figure in figures(part)], kind, legend)


SCALES = {"M": (0.001, 10), "F": (0.001, 1)}  # of a film's representation, logarithmic
WAYS = {"u": (-1, 0), "r": (0, 1), "d": (1, 0), "l": (0, -1), ".": (0, 0)}  # a step, down and to the right


def film(part: Film) -> dict[str, Any]:
    """The map, the path and what was paid on it, as small as they can be written; film.js makes the film of it."""
    mdp, s, room = part.mdp, part.states, part.rooms
    assert mdp.cells is not None
    letters = {way: letter for letter, way in WAYS.items()}
    cuts = [0, *(np.flatnonzero(np.diff(room[s])) + 1).tolist(), len(s)]
    least, most = float(part.bonuses.min()), float(part.bonuses.max())
    varies = not plots.is_constant(part.bonuses)
    paid = np.rint(255 * (part.bonuses - least) / (most - least if varies else math.inf)).astype(np.uint8)
    fixed_fr = part.matrix == "F" and part.eta is None
    diagonal = sr(mdp.transition(), part.gamma).diagonal().round(4).tolist() if fixed_fr else None
    return {
        "title": part.title,
        "text": part.text,
        "shape": mdp.shape,
        "cells": mdp.cells.tolist(),
        "rooms": room.tolist(),
        "ways": WAYS,
        "start": int(s[0]),
        "path": "".join(letters[row, column] for row, column in np.diff(mdp.cells[s], axis=0).tolist()),
        "stays": [(int(room[s[a]]), a, b - a) for a, b in itertools.pairwise(cuts)],  # room, first step, length
        "bonuses": base64.b64encode(paid.tobytes()).decode(),
        "captions": _captions(part, (least, most) if varies else (least,)),
        "fade": part.fade,
        "matrix": part.matrix,
        "eta": part.eta,
        "gamma": part.gamma,
        "diagonal": diagonal,
        "scale": SCALES.get(part.matrix),
        "heat": [[round(255 * x) for x in plots.HEAT(i / 4)[:3]] for i in range(5)],
    }


class MapCaption(NamedTuple):
    """What a map of a film shows, and between which numbers its colours run."""

    name: str
    ends: Sequence[str] = ()


def _captions(part: Film, bonuses: Sequence[float]) -> list[MapCaption]:
    """Of the two maps of a film, or of three where there is a representation."""
    shown = [number(x, significant=3) for x in bonuses]
    paid = MapCaption("bonus", shown) if len(shown) > 1 else MapCaption(f"bonus: always {shown[0]}")
    found = [MapCaption("where it was recently"), paid]
    if part.matrix:
        kind = "fixed" if part.eta is None else "learned"
        found.append(MapCaption(f"{part.matrix}[s, :], {kind}", [f"{x:g}" for x in SCALES[part.matrix]]))
    return found


def settings_table(runs: Sequence[Run]) -> Table:
    """The settings that differ between the runs, and in the caption those that do not."""
    rows = [_flat(dataclasses.asdict(run.settings)) | {"steps": run.steps, "episodes": run.episodes} for run in runs]
    names = dict.fromkeys(name for row in rows for name in row)  # kinds of agents have settings of their own
    varied = [name for name in names if len({repr(row.get(name)) for row in rows}) > 1]
    shared = ", ".join(f"{name} = {value}" for name, value in rows[0].items() if name not in varied)
    shown = []
    for run, row in zip(runs, rows, strict=True):
        values = (f"{v:g}" if isinstance(v := row.get(name), float) else v for name in varied)
        shown.append(Row((run.env, label(run.agent, run.variant), *values)))
    return Table(f"All runs: {shared}", ("environment", "agent", *varied), shown, texts=2)


def _flat(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings within settings beside the others."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


def write_figures(results: Results, folder: Path, kinds: Sequence[str]) -> list[Path]:
    """Every figure of the experiments that are finished, and of what ships, as files of some kinds (svg, pdf, png)."""
    folder.mkdir(parents=True, exist_ok=True)
    shipped, _ = available()
    written = []
    for e in shown_experiments(results, shipped):
        finished = not e.runs(1) or results.finished(e.key)
        parts = e.section(e, results) if finished else shipped[e.key].parts if e.key in shipped else ()
        drawn = [figure for part in parts if type(part) in FIGURES for figure in FIGURES[type(part)][1](part)]
        for i, figure in enumerate(drawn, 1):
            for kind in kinds:
                written.append(folder / f"{e.key.replace('/', '-')}-{i}.{kind}")
                plots.save(figure, written[-1])
    return written


# The page


def section(results: Results, e: Experiment, shipped: Shipped | None = None) -> Section:
    """An experiment with its parts, or the command that is still to be run; and what ships of it."""
    show = functools.partial(Section, e.key, e.title, shipped=_shipped(shipped, results) if shipped else None)
    if e.runs is no_runs:
        return show("", "finished", "", *_drawn(e.section(e, results)))
    runs, missing = results.runs(e.key), results.missing(e.key)
    command = f"spie run {e.name}{e.options} --seeds {results.seeds.get(e.key, e.seeds)}"
    if not runs:
        return show(command, "not run")
    if missing:
        return show(command, f"unfinished: {len(runs) - missing} of {len(runs)} runs stored, continue with")
    seconds = sum(results.store.info(run.id)["seconds"] for run in runs)
    single = [run for run in runs if run.role != "search"]
    facts = f"{len(single)} runs of {number(single[0].n_seeds)} seeds, {number(seconds, 1)} s"
    if len(single) < len(runs):
        tried = sum(run.settings.n_settings for run in runs if run.role == "search")
        facts += f", the search over {number(tried)} settings included"
    return show(command, "finished", facts, *_drawn(e.section(e, results)), settings_table(single))


def _shipped(found: Shipped, results: Results) -> ShippedSection:
    """What ships; where the user has the same runs, only whether they came out alike."""
    e = found.experiment
    mark = f"{found.stale} ({found.mark})" if found.stale else found.mark
    facts = f"{found.facts}; {found.unfinished}" if found.unfinished else found.facts
    show = functools.partial(ShippedSection, mark, command=f"spie run {e.name}{e.options} --check")
    runs = results.runs(e.key)
    if results.finished(e.key) and {run.id for run in runs} == found.ids:
        same = sum(found.confirm(run, load(results.store, run)) == SAME for run in runs)
        return show(f"{found.facts}. The runs above are these: {same} of {len(runs)} came out with the same bits")
    return show(facts, parts=[draw(part) for part in found.parts])


def _drawn(parts: Sequence[SectionPart]) -> tuple[list[Table | Text | Drawing], list[dict[str, Any]]]:
    """The parts as the template takes them; films apart, because they are sections of their own."""
    still = [draw(part) for part in parts if not isinstance(part, Film)]
    return still, [film(part) for part in parts if isinstance(part, Film)]


def shown_experiments(results: Results, shipped: Iterable[str] = ()) -> list[Experiment]:
    """All experiments, then those that were asked for, or ship, with a budget of their own."""
    known = registry.experiments()
    names = {e.key for e in known}
    return known + [
        registry.experiment_of(key) for key in dict.fromkeys((*results.seeds, *shipped)) if key not in names
    ]


def page(results: Results) -> str:
    """The whole page as text."""
    shipped, refused = available()
    judgements = judge(results, registry.claims())
    for found in sorted(shipped.values(), key=lambda found: -found.experiment.frames):  # of budgets the largest counts
        judgements = [found.judged(judgement) for judgement in judgements]
    counted = Counter(judgement.verdict for judgement in judgements)
    shown = shown_experiments(results, shipped)
    stored = [run for e in shown if results.finished(e.key) for run in results.runs(e.key)]
    versions = {tuple(sorted(results.store.info(run.id)["versions"].items())) for run in stored}
    sections = [section(results, e, shipped.get(e.key)) for e in shown]
    for i, moving in enumerate(moving for s in sections for moving in s.films):
        moving["id"] = f"film-{i + 1}"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spie.page"), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["number"] = number
    return environment.get_template("report.html").render(
        findings=findings(results, judgements),
        rules=rules.tables(),
        luck=luck(judgements),
        tally=tally(results),
        verdicts=[(verdict, counted[verdict]) for verdict in rules.VERDICTS if counted[verdict]],
        sections=[s for s in sections if s.state != "not run" or s.shipped],
        not_run=[s for s in sections if s.state == "not run" and not s.shipped],
        judgements=judgements,
        paper_seeds=paper.SEEDS_OF_TABLES_1_AND_3,
        refused=refused,
        ramp=plots.shades(np.linspace(0, 1, 5)),
        versions=[", ".join(map(" ".join, found)) for found in sorted(versions)],
    )


def write(results: Results, path: Path) -> None:
    """Write the page whole, or leave what was there."""
    try:
        with replacing(path) as file:  # opened first, so that a wrong path is no waste of time
            file.write(page(results).encode())
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}); give another with -o") from error
