"""Tables 1, 3 and 4 under every other reading of the points that the paper leaves open."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.chains import CELLS, CHAINS, settings
from spie.paper.comparison import Comparison, comparisons
from spie.paper.contenders import words
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
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


def runs(seeds: int) -> list[Run]:
    """Every cell of the tables as read here, which is the run of the table, then under each other reading."""
    planned = []
    for env, agent in CELLS:
        for variant, s in variants(settings(env, agent)):
            role: Any = "reading" if variant else "paper"
            run = Run(env, agent, s, CHAINS[env](), paper.CHAIN_STEPS, seeds, role=role, variant=variant)
            planned.append(run)
    return planned


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The published cells under every reading, and how many agree under each."""
    compared = {(c.run.env, c.run.agent, words(c.run.variant)): c for c in comparisons(results, experiment.name)}
    options = list(dict.fromkeys(option for _, _, option in compared))
    agrees = {cell: c.verdict == "agrees" for cell, c in compared.items()}
    rows = []
    for option in options[1:]:
        both = [(agrees[env, agent, ""], found) for (env, agent, reading), found in agrees.items() if reading == option]
        here, there = map(sum, zip(*both, strict=True))
        rows.append(Row((option, len(both), here, there, both.count((False, True)), both.count((True, False)))))
    columns = ("reading", "cells it touches", "agree as read here", "agree under it", "explained", "broken")
    parts: list[SectionPart] = [
        Text("", [INTRODUCTION]),
        Table("Do other readings explain it? Cells that agree with the paper", columns, rows),
    ]
    for chain in CHAINS:
        rows = []
        for env, agent in CELLS:
            if env == chain:
                found = (_shown(compared.get((env, agent, option))) for option in options)
                rows.append(Row((agent, CELLS[env, agent].mean, *found)))
        header = ("agent", "paper", *(option or "as read here" for option in options))
        parts.append(Table(f"{chain}: mean (standard errors apart), ✓ agrees", header, rows))
    return parts


def _shown(c: Comparison | None) -> str | None:
    if c is None:
        return None
    return f"{number(c.ours.mean)} ({number(c.as_sd.z, 1)}){' ✓' * (c.verdict == 'agrees')}"


register_experiment(
    Experiment(
        "readings",
        "Tables 1, 3, 4 under other readings of the open points",
        section,
        runs,
        seeds=1000,  # as the tables: the cells as read here are then the same runs
        published=CELLS,
        counted=False,
    )
)
