"""Tables 1, 3 and 4 under every other reading of the points that the paper leaves open, and with rows exchanged."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.chains import CELLS, CHAINS, ROW, row_of, settings
from spie.paper.comparison import Comparison, comparisons
from spie.paper.contenders import words
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.rules import AGREES, DIFFERS
from spie.paper.sections import Row, SectionPart, Table, Text, number
from spie.runs.run import Run

INTRODUCTION = (
    "Do other readings explain it? The paper leaves points open; each is an option of the agent, and its default is "
    "what the text says. Here every cell is run under every other reading that touches it. Nothing was chosen by its "
    "result: a reading that explains one cell and breaks others explains nothing."
)


def other_readings(s: Sarsa) -> dict[str, Any]:
    """The options of the open points that make a difference to an agent, each with its other reading."""
    options: dict[str, Any] = {"next_action": "carry", "ties": "first"}
    if s.learned and s.reward != "none":
        options["m0"] = 1.0
    if s.learned and s.reward not in ("none", "sr", "sr-r"):
        options["bonus_from"] = "previous"  # 1 / |M[s, :]| would be infinite at first; in SR-R the update cancels
    if s.reward == "fr":
        options["reward"] = "fr-next"
    if not s.learned:
        options["alpha"] = 0.0  # the released code learns no Q with a fixed representation
    return options


def variants(s: Sarsa) -> Iterator[tuple[dict[str, Any], Sarsa]]:
    """An agent as read here, then under each other reading."""
    yield {}, s
    for option, value in other_readings(s).items():
        yield {option: value}, dataclasses.replace(s, **{option: value})


def other_rows(env: str, agent: str) -> dict[str, Sarsa]:
    """The agent with each other row of Table 5 for the same chain that has all the settings of its own row."""
    own = settings(env, agent)
    needs = set(paper.TABLE_5[env, row_of(agent)])
    found: dict[str, Sarsa] = {}
    for (chain, row), values in paper.TABLE_5.items():
        if chain == env and row != row_of(agent) and needs <= set(values):
            s: Sarsa = named(agent, **{name: values[name] for name in needs})
            if s != own and s not in found.values():  # rows may be alike
                found[row] = s
    return found


def runs(seeds: int) -> list[Run]:
    """Every cell as read here, which is the run of the table, under each other reading, with each other row."""
    planned = []
    for env, agent in CELLS:
        rows = (({ROW: row}, s) for row, s in other_rows(env, agent).items())
        for variant, s in (*variants(settings(env, agent)), *rows):
            role: Any = "reading" if variant else "paper"
            run = Run(env, agent, s, CHAINS[env](), paper.CHAIN_STEPS, seeds, role=role, variant=variant)
            planned.append(run)
    return planned


# The page


Cells = dict[tuple[str, str], Comparison]  # by chain and agent


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The published cells under every reading and with every row, and how many agree under each."""
    by_reading: dict[str, Cells] = {}
    rows: dict[str, Cells] = {}  # by the agent whose row of Table 5 it is
    for c in comparisons(results, experiment.name):
        variant = c.run.variant
        there = rows.setdefault(variant[ROW], {}) if ROW in variant else by_reading.setdefault(words(variant), {})
        there[c.run.env, c.run.agent] = c
    here = by_reading.pop("", {})
    return [
        Text("", [INTRODUCTION]),
        Table(
            "Do other readings explain it? Cells that agree with the paper",
            ("reading", "cells it touches", "agree as read here", "agree under it", "explained", "broken"),
            [Row((name, *_counted(here, there))) for name, there in by_reading.items()],
        ),
        *(_beside(chain, "reading", here, by_reading) for chain in CHAINS),
        Text("Did rows of Table 5 change places?", exchange_lines(here, rows)),
        *(_beside(chain, "row of Table 5", here, rows) for chain in CHAINS),
    ]


def _counted(here: Cells, there: Cells) -> tuple[int, ...]:
    """Cells touched, that agree as read here, under another reading, and only under the one or the other."""
    both = [(here[cell].verdict == AGREES, c.verdict == AGREES) for cell, c in there.items()]
    agree = map(sum, zip(*both, strict=True))
    return (len(both), *agree, both.count((False, True)), both.count((True, False)))


def _beside(chain: str, what: str, here: Cells, others: dict[str, Cells]) -> Table:
    """A chain's cells as read here and under others, a column each."""
    rows = []
    for env, agent in CELLS:
        if env == chain:
            found = (_shown(cells.get((env, agent))) for cells in (here, *others.values()))
            rows.append(Row((agent, CELLS[env, agent].mean, *found)))
    header = ("agent", "paper", "as read here", *others)
    return Table(f"{chain}, by {what}: mean (standard errors apart), ✓ agrees", header, rows)


def exchange_lines(here: Cells, rows: dict[str, Cells]) -> list[str]:
    """What cells that differ become with the row of another agent; whether it goes both ways; and the luck in it."""
    tried = {(*cell, row): c for row, cells in rows.items() for cell, c in cells.items()}
    differing = {key: c for key, c in tried.items() if here[key[:2]].verdict == DIFFERS}
    agreeing = {key: c for key, c in differing.items() if c.verdict == AGREES}
    lines = []
    for (env, agent, row), c in agreeing.items():
        back = tried.get((env, row, agent))
        said = f"{agent} on {env} agrees with the row of {row}: {_number(c)}, printed {number(c.published.mean)}."
        if back is not None:
            said += f" The other way round, {row} with the row of {agent}: {_number(back)}, {back.verdict}."
        lines.append(said)
    apart = sum(c.verdict == AGREES for key, c in tried.items() if key not in differing)
    others = len(tried) - len(differing)
    lines.append(
        f"{len(differing)} exchanges were tried on cells that differ, and {len(agreeing)} make one agree. On the cells "
        f"that do not differ, where nothing is to be explained, {apart} of {others} exchanges agree as well."
    )
    return lines


def _number(c: Comparison) -> str:
    return f"{number(c.ours.mean)} ({number(c.as_sd.z, 1)} standard errors apart)"


def _shown(c: Comparison | None) -> str | None:
    if c is None:
        return None
    return f"{number(c.ours.mean)} ({number(c.as_sd.z, 1)}){' ✓' * (c.verdict == AGREES)}"


register_experiment(
    Experiment(
        "readings",
        "Tables 1, 3, 4 under other readings, and with rows of Table 5 exchanged",
        section,
        runs,
        seeds=1000,  # as the tables: the cells as read here are then the same runs
        published=CELLS,
        counted=False,
    )
)
