"""One self-contained HTML page of a fit: models side by side, held-out likelihood, estimates and checks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from spie.behaviour.fit import Fit
from spie.behaviour.predictive import SUBJECTS, Predictive
from spie.behaviour.recovery import Confusion, Recovery
from spie.behaviour.rows import Rows
from spie.files import write_whole
from spie.numbers import THIN, counted
from spie.page import standalone
from spie.paper.sections import Curve, CurvePanels, Look, Panel, Row, SectionPart, Table, Text, number

HOW = {"mle": "maximum likelihood", "map": "maximum a posteriori", "hierarchical": "hierarchical by EM"}
MEANINGS = {
    "alpha": "learning rate of values; in the SR agent, of M",
    "eta": "learning rate of the representation, M or F, and N",
    "gamma": "discount of values; in the SR agent, of M",
    "inverse_temperature": "how strongly values decide, 0 for not at all",
    "beta": "size of the bonus; what the task pays is paid as it is",
    "epsilon": "chance of an action at random",
    "turn_back": "weight for going back to the place before, negative where that is avoided",
    "heading": "weight for going straight on",
    "stickiness": "weight for the last action",
    "habit": "weight for what was done in a place before",
    "habit_rate": "learning rate of habits",
    "lapse": "chance of an action at random",
}
HEADINGS = {"bic": "BIC", "aic": "AIC", "rms_error": "RMS error"}
LOOKS = [Look(name) for name in ("sarsa-sr", "sarsa-fr", "sarsa-sr-pr", "sarsa", "sarsa-srr-b")]  # of the best models
NOTHING = 5e-5  # a difference per choice that is 0 in the tables
OURS, AT_RANDOM = Look("sarsa-srr"), Look("random")  # of the subjects, and of chance


def table(rows: Rows, caption: str = "", texts: int = 1) -> Table:
    """A table of ours as the page draws it."""
    shown = [Row(cells) for cells in rows.cells(THIN)]
    return Table(
        caption or rows.title, [HEADINGS.get(name, name.replace("_", " ")) for name in rows.columns], shown, texts
    )


def models(fit: Fit) -> Table:
    """What each model says, and what is free in it."""
    rows = []
    for name, one in fit.fits.items():
        free = ", ".join(parameter.replace("_", " ") for parameter in one.model.names)
        rows.append(Row((name, one.model.summary or "–", free or "none")))
    return Table("The models", ("model", "what it says", "free parameters"), rows, texts=3)


def meanings(fit: Fit) -> Text:
    """A sentence on the parameters that were fitted."""
    names = dict.fromkeys(name for one in fit.fits.values() for name in one.model.names)
    said = "; ".join(f"{name.replace('_', ' ')}: {MEANINGS[name]}" for name in names if name in MEANINGS)
    where = "Estimates of each subject, with their intervals, are in fits.csv."
    return Text("", [f"{said[0].upper()}{said[1:]}. {where}" if said else where])


def estimates(fit: Fit) -> Table:
    """Medians and ranges of the estimates over subjects."""
    rows = []
    for name, one in fit.fits.items():
        values = one.values()
        for j, parameter in enumerate(one.model.parameters):
            bounded = sum(parameter.name in one.at_bound(i) for i in range(len(values)))
            low, middle, high = (number(float(np.quantile(values[:, j], q)), significant=3) for q in (0, 0.5, 1))
            bounds = " – ".join(number(bound, significant=3) for bound in (parameter.low, parameter.high))
            rows.append(Row((name, parameter.name.replace("_", " "), middle, low, high, bounds, bounded)))
    columns = ("model", "parameter", "median", "least", "most", "bounds", "subjects at a bound")
    return Table("Estimates over subjects", columns, rows, texts=2)


def curves(found: Predictive, best: Sequence[str]) -> CurvePanels:
    """New places against steps, of the subjects and of simulated ones: of the best models, and of random walkers."""
    looks = {SUBJECTS: OURS} | dict(zip([name for name in best if name != "random"], LOOKS, strict=False))
    looks |= {"random": AT_RANDOM} if "random" in found.places else {}
    shown = {}
    for who, look in looks.items():
        places = found.places[who]
        error = places.std(axis=0, ddof=1) / np.sqrt(len(places)) if len(places) > 1 else np.zeros(places.shape[1])
        mean = places.mean(axis=0)
        shown[who] = Curve(found.steps, mean, mean - 1.96 * error, mean + 1.96 * error, look)
    panel = Panel("Places seen", shown, "steps", "places", log="x")
    caption = (
        "Places seen against steps, of the subjects and of simulated ones; bands are 95 % of the mean over subjects"
    )
    return CurvePanels(caption, [panel])


def scatter(found: Recovery) -> CurvePanels:
    """Estimates against the truth, a panel for each parameter."""
    panels = []
    for j, parameter in enumerate(found.model.parameters):
        points = np.stack([parameter.value(found.truth[:, j]), parameter.value(found.found[:, j])], axis=1)
        log: Literal["", "xy"] = "xy" if parameter.scale == "log" else ""
        panels.append(Panel(parameter.name.replace("_", " "), {}, "true", "estimate", log=log, points=points))
    return CurvePanels("Estimates against the truth; on the line they are equal", panels)


def page(
    fit: Fit,
    command: str,
    heldout: Rows | None = None,
    predictive: Predictive | None = None,
    recovery: Recovery | None = None,
    confusion: Confusion | None = None,
) -> str:
    """The whole page as text."""
    compared = fit.compare()
    sections: list[tuple[str, Sequence[SectionPart]]] = [
        ("Models side by side", [table(compared), Text("", compared.notes)])
    ]
    if heldout is not None:
        sections.append(("Held-out likelihood", [table(heldout), Text("", heldout.notes)]))
    sections.append(("Models and their parameters", [models(fit), estimates(fit), meanings(fit)]))
    if predictive is not None:
        rows = predictive.rows()
        sections.append(
            (
                "Do simulated subjects walk alike?",
                [curves(predictive, compared.column("model")), table(rows), Text("", rows.notes)],
            )
        )
    if recovery is not None:
        rows = recovery.rows()
        sections.append(("Would the parameters be found?", [scatter(recovery), table(rows), Text("", rows.notes)]))
    if confusion is not None:
        sections.append(("Would the models be told apart?", [table(confusion.rows())]))
    report = fit.paths.report()
    sections.append(("The data", [table(report), Text("", report.notes)]))
    best, n = compared[0], len(fit.paths.subjects)
    how = (
        f"{counted(n, 'subject')}, {counted(len(fit.fits), 'model')}, {HOW[fit.method]}, {counted(fit.starts, 'start')}"
    )
    introduction = (
        f"{how}. By summed BIC the best of these models is {best['model']}, with the lowest BIC in {best['best_for']} "
        f"of {counted(n, 'subject')}. {_held_out(heldout, n)} That a model is the best of these does not make it true."
    )
    missing = [name for name, part in {"recovery": recovery, "confusion": confusion}.items() if part is None]
    checked = f"Not studied: {' and '.join(missing)}, which say whether this could be found out; add --check."
    return standalone.page(
        "Behavioural models of recorded paths", [introduction, *([checked] if missing else [])], sections, command
    )


def _held_out(heldout: Rows | None, subjects: int) -> str:
    """Which model predicts best what it was not fitted to, and which are not told apart from it."""
    if heldout is None or len(heldout) < 2:
        return "Nothing was compared on held-out choices."
    said = f"On held-out choices {heldout[0]['model']} is the best"
    if subjects < 2:
        return f"{said}; of one subject, so there is no saying how sure this is."
    near = [row["model"] for row in heldout[1:] if row["behind_best"] < max(2 * row["standard_error"], NOTHING)]
    if near:
        return f"{said}; less than two standard errors behind it: {', '.join(near)}."
    return f"{said}, all others more than two standard errors (over {subjects} subjects) behind it."


def write(path: Path, fit: Fit, command: str, **parts: Any) -> None:
    """Write the page whole, or leave what was there."""
    write_whole(path, page(fit, command, **parts))
