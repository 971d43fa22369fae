"""What the claims on Atari are measured by, on whatever budget is stored; comparable only at the paper's.

Of several budgets the largest counts of which anything is stored, and of that all games and agents that there are.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.dqn.settings import LOSSES
from spie.paper.atari import PAPER_FRAMES, saturation, score, settings
from spie.paper.claims import Evidence, Measure, Missing, Runs, Traces
from spie.paper.contenders import Contender
from spie.paper.measures import bootstrapped, ratio
from spie.paper.registry import experiment_of
from spie.paper.rules import LESS, SIMILAR
from spie.trace import Trace

SCALES: dict[str, Any] = {"floor": 0.1, "ceiling": 10.0}  # losses of similar scale: within a factor of ten

Cell = tuple[str, str, dict[str, Any]]  # game, agent, variant


def best_key(results: Traces, name: str) -> str | None:
    """The largest budget of an experiment of which anything is stored."""
    keys = sorted(results.keys(name), key=lambda key: experiment_of(key).frames, reverse=True)
    for key in keys:
        if any(results.trace(key, run.env, run.agent, **run.variant) is not None for run in experiment_of(key).runs(1)):
            return key
    return None


def less(name: str) -> Callable[[Traces], str]:
    """How what is stored falls short of the paper's budget; empty where it does not, or where nothing is stored."""

    def found(results: Traces) -> str:
        key = best_key(results, name)
        frames = PAPER_FRAMES if key is None else experiment_of(key).frames
        return "" if frames >= PAPER_FRAMES else f"{frames:,} frames, the paper has {PAPER_FRAMES:,}"

    return found


def _pairs(
    runs: Runs, name: str, pairs: Sequence[tuple[Cell, Cell]], values: Callable[[Trace], NDArray[np.float64]]
) -> list[tuple[str, NDArray[np.float64], NDArray[np.float64]]]:
    """What both cells of each pair left, by a label, where both are stored; `Missing` where none is."""
    key = best_key(runs.results, name)
    found = []
    for (game, agent, variant), (other_game, rival, other_variant) in pairs if key else ():
        try:
            both = (
                runs(Contender(key or "", agent, variant), game),
                runs(Contender(key or "", rival, other_variant), other_game),
            )
        except Missing:
            continue
        samples = [x[~np.isnan(x)] for x in map(values, both)]
        if all(map(len, samples)):
            found.append((f"{game} {rival}", samples[0], samples[1]))
    if not found:
        raise Missing(name)
    return found


def above(name: str, agent: str, rivals: Sequence[str], games: Sequence[str], **variant: Any) -> Measure:
    """The score less that of each rival, in each game: above 0."""
    pairs = [((game, agent, variant), (game, rival, variant)) for game, rival in itertools.product(games, rivals)]

    def measure(runs: Runs) -> list[Evidence]:
        apart = lambda x, y: x.mean(axis=-1) - y.mean(axis=-1)  # noqa: E731
        return [bootstrapped(label, apart, a, b, floor=0) for label, a, b in _pairs(runs, name, pairs, score)]

    return measure


def above_itself(name: str, game: str, agent: str, without: dict[str, Any]) -> Measure:
    """The score of an agent less that of its ablation: above 0."""

    def measure(runs: Runs) -> list[Evidence]:
        pairs: list[tuple[Cell, Cell]] = [((game, agent, {}), (game, agent, without))]
        apart = lambda x, y: x.mean(axis=-1) - y.mean(axis=-1)  # noqa: E731
        return [bootstrapped(label, apart, a, b, floor=0) for label, a, b in _pairs(runs, name, pairs, score)]

    return measure


def similar(name: str, agent: str, rival: str, games: Sequence[str]) -> Measure:
    """The score over that of a rival: similar."""
    pairs: list[tuple[Cell, Cell]] = [((game, agent, {}), (game, rival, {})) for game in games]
    return lambda runs: [ratio(label, a, b, **SIMILAR) for label, a, b in _pairs(runs, name, pairs, score)]


def saturates(name: str, game: str, agent: str, rival: str, printed: float) -> Measure:
    """Frames until the score is near its final one, over those of a rival: less, and similar to what is printed."""
    pairs: list[tuple[Cell, Cell]] = [((game, agent, {}), (game, rival, {}))]

    def measure(runs: Runs) -> list[Evidence]:
        ((_, a, b),) = _pairs(runs, name, pairs, saturation)
        near = {end: printed * SIMILAR[end] for end in ("floor", "ceiling")}
        return [ratio("fewer frames", a, b, **LESS), ratio("as few as printed", a, b, **near)]

    return measure


def scales(name: str, agent: str, games: Sequence[str]) -> Measure:
    """Each weighted loss of eq. 18 over that of Q, in the second half of the run: within a factor of ten."""
    s = settings(agent, PAPER_FRAMES)
    weights = np.array([s.w_q, s.w_sf, s.w_pf, s.w_recon])

    def weighted(trace: Trace) -> NDArray[np.float64]:
        assert trace.losses is not None
        return np.asarray(weights * np.nanmean(trace.losses[:, 5:], axis=1))  # [seeds, losses]

    def measure(runs: Runs) -> list[Evidence]:
        key, parts = best_key(runs.results, name), []
        for game in games if key else ():
            try:
                trace = runs(Contender(key or "", agent), game)
            except Missing:
                continue
            if trace.losses is not None:
                q, *others = weighted(trace).T
                parts += [ratio(f"{game} {loss}", x, q, **SCALES) for loss, x in zip(LOSSES[1:], others, strict=True)]
        if not parts:
            raise Missing(name)
        return parts

    return measure
