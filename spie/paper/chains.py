"""What Tables 1, 3 and 4 share: RiverSwim and SixArms, their settings, controls that the paper lacks, their section."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.paper.claims import Claim, Measure
from spie.paper.comparison import Comparison, comparisons
from spie.paper.contenders import Contender, words
from spie.paper.experiment import Experiment
from spie.paper.measures import compare, reward
from spie.paper.results import Results
from spie.paper.rules import AGREES, DIFFERS, NOT_TOLD_APART
from spie.paper.sections import CONTROL, Row, SectionPart, Span, Table, Text, between, number
from spie.runs.run import Run
from spie.tasks import riverswim, sixarms
from spie.tasks.mdp import MDP

CHAINS = {"riverswim": riverswim, "sixarms": sixarms}
ROW = "row"  # the variant of an agent that has another agent's row of Table 5
CELLS = paper.TABLE_1 | paper.TABLE_3 | paper.TABLE_4


def settings(env: str, agent: str) -> Sarsa:
    """An agent with the settings of Table 5."""
    s: Sarsa = named(agent, **paper.TABLE_5[env, row_of(agent)])
    return s


def row_of(agent: str) -> str:
    """An agent's row of Table 5; the ablations have none there and use that of SARSA-SRR."""
    return "sarsa-srr" if agent in ("sarsa-srr-a", "sarsa-srr-b", "sarsa-srr-c") else agent


def controls(env: str) -> dict[str, Sarsa]:
    """What the paper does not compare with: agents with no representation, else with SARSA-SRR's settings.

    A cost of -1 a step times beta; no bonus but a Q that starts at the most an agent can earn; a count bonus with a Q
    that starts at the most it can pay; and a uniform random walk.
    """
    s = settings(env, "sarsa-srr")
    common: dict[str, Any] = {"alpha": s.alpha, "gamma": s.gamma, "epsilon": s.epsilon}
    most = float(CHAINS[env]().reward.max()) / (1 - s.gamma)
    return {
        "constant": Sarsa(reward="constant", beta=s.beta, **common),
        "optimistic": Sarsa(reward="none", q0=most, **common),
        "count": Sarsa(reward="count", beta=s.beta, q0=s.beta / (1 - s.gamma), **common),
        "random": Sarsa(reward="none", epsilon=1.0),
    }


def runs(cells: Mapping[tuple[str, str], paper.Cell], seeds: int) -> list[Run]:
    """The runs of a table: its cells, then the controls."""
    planned = [
        Run(env, agent, settings(env, agent), CHAINS[env](), paper.CHAIN_STEPS, seeds, role="paper")
        for env, agent in cells
    ]
    return planned + [
        Run(env, agent, s, CHAINS[env](), paper.CHAIN_STEPS, seeds, role="control")
        for env in CHAINS
        for agent, s in controls(env).items()
    ]


def earns(agent: Contender, *others: Contender, what: str = "", **ends: Any) -> Measure:
    """Mean reward of an agent over others', on both chains."""
    return compare(reward, agent, others, tuple(CHAINS), what, **ends)


def best_return(mdp: MDP, steps: int) -> float:
    """Expected undiscounted reward of the best policy for `steps` steps, by dynamic programming: the ceiling."""
    if mdp.terminal.any() or mdp.n_phases > 1:
        raise ValueError(f"{mdp.name}: the ceiling is for one phase without end")
    expected = (mdp.prob * mdp.reward[0]).sum(axis=2)
    expected[~mdp.available] = -np.inf
    value = np.zeros(mdp.n_states)
    for _ in range(steps):
        value = (expected + (mdp.prob * value[mdp.next]).sum(axis=2)).max(axis=1)
    return float(mdp.start @ value)


COLUMNS = "agent;verdict;mean;paper;times;apart, sd;apart, se;± printed;sd;se;median;IQM;95 % interval".split(";")


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """A table for each chain: the cells, the controls, the ceiling; then why cells may differ."""
    compared = {c.run.id: c for c in comparisons(results, experiment.name)}
    parts: list[SectionPart] = []
    for env, cells in results.found(experiment.name).items():
        rows = []
        for run, trace in cells.values():
            e = stats.estimate(trace.total_reward)
            verdict = ""
            theirs: tuple[Any, ...] = (Span(CONTROL, 5),)
            if (c := compared.get(run.id)) is not None:
                (mean, spread), apart = c.published, (number(z, 1) for z in (c.as_sd.z, c.as_se.z))
                verdict, theirs = c.verdict, (mean, f"{c.times:.2f}", *apart, spread)
            ours = (e.sd, e.se, e.median, e.iqm, between(e.low, e.high))
            rows.append(Row((run.agent, verdict, e.mean, *theirs, *ours), "control" if run.role == "control" else ""))
        ceiling = best_return(CHAINS[env](), paper.CHAIN_STEPS)
        rows.append(Row(("best policy", "", ceiling, Span("ceiling, by dynamic programming", 10)), "total"))
        steps, seeds = number(paper.CHAIN_STEPS), number(run.n_seeds)
        parts.append(Table(f"{env}: total reward in {steps} steps, {seeds} seeds", COLUMNS, rows))
    lines = [reason(results, c) for c in compared.values() if c.verdict == DIFFERS]
    wide = [_too_wide(c) for c in compared.values() if c.verdict == NOT_TOLD_APART]
    if lines:
        parts.append(Text("Where ours differ", lines))
    if wide:
        parts.append(Text("Where the two cannot be told apart", wide))
    return parts


def _too_wide(c: Comparison) -> str:
    """Why a cell that is far off is not one that differs."""
    apart = f"that is {number(c.as_sd.z, 1)} standard errors apart, for ± {number(c.published.spread)} is printed"
    return f"{c.run.agent} on {c.run.env}: ours is {c.times:.2g} times the paper's; {apart}."


def reason(results: Results, cell: Comparison) -> str:
    """What the other readings of the open points, and other rows of Table 5, do to a cell that differs."""
    mean, spread = cell.published
    said = f"{cell.run.agent} on {cell.run.env}: ours is {cell.times:.2g} times the paper's."
    if cell.as_se.agrees:
        said += f" It agrees if ± {number(spread)} is a standard error."
    where = (cell.run.env, cell.run.agent)
    tried = [c for c in comparisons(results, "readings") if c.run.variant and (c.run.env, c.run.agent) == where]
    if not tried:
        return f"{said} Other readings are not compared yet: spie run readings."
    others, rows = ([c for c in tried if (ROW in c.run.variant) == exchanged] for exchanged in (False, True))
    if agreeing := [shown(c) for c in others if c.verdict == AGREES]:
        said += f" Another reading agrees: {'; '.join(agreeing)}."
    else:
        nearest = min(others, key=lambda c: abs(c.ours.mean - mean))
        said += f" None of {len(others)} other readings agrees; nearest: {shown(nearest)}."
    if agreeing := [shown(c) for c in rows if c.verdict == AGREES]:
        said += f" With another row of Table 5 it agrees: {'; '.join(agreeing)}, of {len(rows)} tried."
    return said


def shown(c: Comparison) -> str:
    """A reading and what it gives."""
    return f"{words(c.run.variant)} ({number(c.ours.mean)}, {number(c.as_sd.z, 1)} apart)"


def chain_table(
    name: str, title: str, cells: Mapping[tuple[str, str], paper.Cell], claims: Sequence[Claim]
) -> Experiment:
    """The experiment of a table of the paper on the two chains."""
    planned = functools.partial(runs, cells)
    return Experiment(name, title, section, planned, seeds=1000, claims=claims, published=cells)
