"""The page of a comparison: verdict, table, learning curves of the environment's reward, and what each bonus did."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spie.behaviour.rows import Rows, short
from spie.comparison.outcome import BonusComparison
from spie.numbers import number
from spie.page import standalone
from spie.paper.sections import Curve, CurvePanels, Panel, Row, SectionPart, Table, Text

MOST_CURVES = 6  # of a panel, besides the bare agent


def _table(rows: Rows, roles: Mapping[str, str], texts: int) -> Table:
    shown = [
        Row([_cell(name, row.get(name)) for name in rows.columns], "control" if roles[row["arm"]] == "control" else "")
        for row in rows
    ]
    return Table("", rows.columns, shown, texts)


def _cell(name: str, value: Any) -> str:
    if value is not None and name in ("outweighs the reward", "episodes that end by themselves"):
        return f"{value:.0%}"
    if value is not None and name == "microseconds per step more than bare":
        return number(value, 1)
    if value is not None and name == "p":
        return f"{value:.2g}"
    return number(value, significant=3) if isinstance(value, float) else short(value)


def _curves(found: BonusComparison) -> CurvePanels:
    x, curves = found.curves()
    roles = {one.arm.name: one.arm.role for one in found.trained}
    groups: dict[str, list[str]] = {}
    for role, title in (("control", "controls"), ("bonus", "bonuses")):
        names = [name for name in curves if roles[name] == role]
        for first in range(0, len(names), MOST_CURVES):
            groups[f"{title}{', more' * (first > 0)}"] = names[first : first + MOST_CURVES]
    panels = []
    for title, names in (groups or {"": []}).items():
        shown = {name: Curve(x / 1000, *curves[name]) for name in ("bare", *names)}
        panels.append(Panel(title, shown, "thousand steps", "reward per episode"))
    return CurvePanels(
        "The environment's own reward per episode, mean and 95 % interval over seeds; more is better", panels
    )


def parts(found: BonusComparison) -> list[tuple[str, list[SectionPart]]]:
    """The sections of the page."""
    roles = {one.arm.name: one.arm.role for one in found.trained}
    table, bonuses = found.table(), found.bonuses()
    calibration = found.calibration
    seen = "" if calibration.seen_reward else " (no reward other than 0 was seen, so this is a guess)"
    random = (
        f"A random policy gets {number(found.random_reward, significant=4)} an episode; the largest average of "
        f"|reward| over 100 steps is {number(calibration.scale, significant=3)}{seen}. Betas make the bonus .1, 1 and "
        "10 times as large as that."
    )
    chosen = (
        f"{found.tried} settings were tried on {found.choice_seeds} seeds each; the best of each arm ran again on "
        f"{found.seeds} seeds that no choice saw, and only these are shown."
    )
    return [
        ("Reward", [_table(table, roles, 1), Text("", ("Grey rows are controls.", *table.notes))]),
        ("Learning", [_curves(found)]),
        ("What each bonus did", [_table(bonuses, roles, 1), Text("", bonuses.notes)]),
        ("How it was found", [Text("", (chosen, random))]),
    ]


def write(path: Path, found: BonusComparison, command: str) -> None:
    """Write the page whole, or leave what was there."""
    title = f"Does a bonus help {found.agent} on {found.env}?"
    standalone.write(path, title, found.verdict, parts(found), command)
