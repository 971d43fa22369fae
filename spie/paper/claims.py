"""Claims, and how they are judged.

A claim is measured in parts (environments, agents, levels). A part is a number with a 95 % bootstrap interval and the
range that the claim's word gives it; `spie.paper.rules` has the words, their ranges and what follows from the parts.
Where the paper's own tables contradict its sentence, that is the verdict, and our outcome is in the reason.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from spie.paper import rules
from spie.paper.contenders import Contender
from spie.paper.published import Cell
from spie.paper.rules import CONTRADICTED, HOLDS, NOT_RUN, OUTCOMES, REPRODUCED, WORDS
from spie.paper.sections import number


@dataclass(frozen=True)
class Evidence:
    """One number that a claim is about, its interval, and the range in which the claim says it lies."""

    label: str
    value: float
    low: float
    high: float
    floor: float = -math.inf
    ceiling: float = math.inf
    word: str = ""  # of `rules.WORDS`, where the range is that of a word

    @property
    def outcome(self) -> str:
        return rules.outcome(self.low, self.high, self.floor, self.ceiling, self.word)

    @property
    def strength(self) -> tuple[int, float]:
        """For sorting: the outcome, then how far the interval is inside the range."""
        margin = min(self.low - self.floor, self.ceiling - self.high)
        return (rules.FAILS, rules.TOO_SMALL, rules.UNDECIDED, HOLDS).index(self.outcome), margin

    @property
    def in_plain_words(self) -> "Evidence":
        """The same under the plain word, where its own is a strong one."""
        if self.word and (plain := WORDS[self.word].plain):
            return replace(self, word=plain, floor=WORDS[plain].floor, ceiling=WORDS[plain].ceiling)
        return self

    def __str__(self) -> str:
        interval = f" [{_short(self.low)}, {_short(self.high)}]" if self.low != self.high else ""
        return f"{self.label}: {_short(self.value)}{interval}"


def _short(x: float) -> str:
    return "nan" if math.isnan(x) else number(x, significant=3, thousands=",")


NO_FIGURE = "-"  # of a claim on which nothing is stored


class Missing(LookupError):
    """An experiment that a claim needs is not stored."""


class Traces(Protocol):
    """Where traces come from; `spie.paper.results.Results` is one."""

    def trace(self, experiment: str, env: str, agent: str, **variant: Any) -> Any: ...

    def keys(self, name: str) -> list[str]:
        """The budgets of an experiment that were asked for, by the keys under which a store notes them."""


class Runs:
    """Traces by contender and environment; notes the fewest seeds that any of them has."""

    def __init__(self, results: Traces) -> None:
        self.results, self.seeds = results, math.inf

    def __call__(self, who: Contender, env: str) -> Any:
        trace = self.results.trace(who.experiment, env, who.agent, **who.variant)
        if trace is None:
            raise Missing(who.experiment)
        self.seeds = min(self.seeds, len(trace.seeds))
        return trace


Measure = Callable[[Runs], list[Evidence]]


@dataclass(frozen=True)
class Claim:
    """An empirical sentence of the paper, or a question of ours that it raises."""

    id: str
    section: str  # of the paper
    shown: str  # the equations, tables and figures there that it is about: "Figure 1, Table 4"; may be empty
    text: str  # in our words
    measured: str
    measure: Measure | None = None
    printed: Callable[[], list[str]] = list  # where the paper's tables say otherwise
    same_as: tuple[str, ...] = ()  # a restatement: the parts of these claims
    plain: bool = False  # of a restatement: it says "more" where those say "much more"
    unmeasured: str = NOT_RUN  # the verdict where nothing is stored that it could be measured on
    less: Callable[[Traces], str] = lambda results: (
        ""
    )  # how what is stored falls short of the paper's budget, if it does
    ours: bool = False
    controls: bool = False  # whether it compares with agents that have no representation

    @property
    def where(self) -> str:
        return f"{self.section}, {self.shown}" if self.shown else self.section


@dataclass(frozen=True)
class Judgement:
    """A claim with our figure, the verdict and one line of reason."""

    claim: Claim
    figure: str
    verdict: str
    reason: str
    parts: tuple[Evidence, ...] = ()


def judge(results: Traces, claims: Sequence[Claim], known: Sequence[Claim] = ()) -> list[Judgement]:
    """Claims with our figure and the verdict. known: more claims, which those may restate."""
    by_id = {claim.id: claim for claim in (*known, *claims)}

    @functools.cache
    def measured(claim: Claim) -> tuple[list[Evidence], float]:
        runs = Runs(results)
        return (claim.measure(runs) if claim.measure else []), runs.seeds

    return [
        _judge(claim, [by_id[name] for name in claim.same_as] or [claim], measured, claim.less(results))
        for claim in claims
    ]


def _judge(
    claim: Claim, sources: Sequence[Claim], measured: Callable[[Claim], tuple[list[Evidence], float]], less: str
) -> Judgement:
    parts: list[Evidence] = []
    try:
        seeds = min(measured(source)[1] for source in sources)
        for source in sources:
            name = f"{source.id}: " if len(sources) > 1 else ""
            found = [part.in_plain_words if claim.plain else part for part in measured(source)[0]]
            parts += [replace(part, label=name + part.label) for part in found]
        if not parts:
            verdict, reason = claim.unmeasured, "no experiment of ours measures it"
        elif less:
            seen = verdict_of(parts)[1]
            verdict, reason = claim.unmeasured, f"{less}, {seeds} seed(s): not comparable; there it {seen}"
        elif seeds < rules.FEWEST_SEEDS:
            verdict, reason = NOT_RUN, f"{seeds} seeds decide nothing, {rules.FEWEST_SEEDS} are the least"
        else:
            verdict, reason = verdict_of(parts)
    except Missing as missing:
        verdict, reason = claim.unmeasured, f"no stored results; spie run {missing}"
    printed = [sentence for source in sources for sentence in source.printed()]
    if printed:
        verdict, reason = CONTRADICTED, f"{'; '.join(printed)}. Ours: {verdict} ({reason})"
    figure = "; ".join(map(str, parts)) or NO_FIGURE
    if len(parts) > 3:
        figure = f"{min(parts, key=lambda part: part.strength)} (weakest of {len(parts)})"
    return Judgement(claim, figure, verdict, reason, tuple(parts))


def verdict_of(parts: Sequence[Evidence]) -> tuple[str, str]:
    """The verdict, and which parts made it."""
    labels = {outcome: [p.label for p in parts if p.outcome == outcome] for outcome in OUTCOMES}
    verdict, n = rules.claim_verdict([p.outcome for p in parts]), len(labels.pop(HOLDS))
    if verdict == REPRODUCED:
        return verdict, f"holds in all {n} parts" if n > 1 else "holds"
    why = [f"holds in {n} of {len(parts)}"] if len(parts) > 1 else []
    for outcome, found in labels.items():
        some, more = found[:6], len(found) - 6
        if some:
            why.append(f"{outcome}: {', '.join(some)}{f' and {more} more' if more > 0 else ''}")
    return verdict, "; ".join(why)


def printed_above(
    a: str,
    others: Sequence[str],
    envs: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    seeds: float = math.inf,
) -> Callable[[], list[str]]:
    """Where a is not printed above another; with `seeds`, not by 2 standard errors, the spread read as an sd."""

    def found() -> list[str]:
        against = []
        for env, other in itertools.product(envs, others):
            x, y = cells[env, a], cells[env, other]
            error = math.hypot(x.spread, y.spread) / math.sqrt(seeds)
            if x.mean - y.mean <= 2 * error:
                apart = f", {(x.mean - y.mean) / error:.1f} standard errors" if x.mean > y.mean else ""
                against.append(f"{_short(x.mean)} against {_short(y.mean)} of {other} on {env}{apart}")
        return [f"printed for {a}: {', '.join(against)}"] if against else []

    return found
