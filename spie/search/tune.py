"""Tuning by Optuna, for agents whose settings are too many or whose runs are too long for a grid.

A trial runs its seeds one after the other and is stopped early once its mean falls behind the other trials'. The best
one is run again on fresh seeds, beside the settings it started from: what a search says about its own best is too good.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Range
from spie.agents.registry import agent as named
from spie.notebook import progress_below
from spie.search.grid import SettingsGrid, usual_measure
from spie.search.select import FRESH, Search, fresh, mean_and_error, usual_length
from spie.tasks.registry import find
from spie.tasks.registry import task as named_task

USUAL_TASKS = {"table": "riverswim", "continuous": "mountain-car", "images": "four-rooms"}


@dataclass(frozen=True)
class Tunable:
    """An agent on a task: where its settings may lie, and how they are scored; more is better."""

    settings: Any  # an Agent: what is not tuned stays as it is here
    ranges: Mapping[str, Range]
    score: Callable[[Any, Sequence[int]], NDArray[np.float64]]  # of (settings, seeds), one number per seed


@dataclass(frozen=True)
class Tuned:
    """What came of it; means and standard errors are over fresh seeds."""

    settings: Any
    searched: float  # mean over the seeds of the search
    mean: float
    se: float
    default_mean: float  # of the settings before tuning
    default_se: float
    finished: int  # trials
    pruned: int  # of them


def usual_task(agent: str) -> str:
    """The name of a task that an agent can be tuned on."""
    return USUAL_TASKS[named(agent).kind]


def tunable(agent: str, env: str, steps: int | None = None, episodes: int | None = None, **settings: Any) -> Tunable:
    """An agent by name, with further settings, on a task by name."""
    kind = named(agent, **settings).kind
    cap, task = find(env, kind).max_steps, named_task(env, kind)
    start = named(agent, task, **settings)
    ranges = {name: r for name, r in start.tuning_ranges(task).items() if name not in settings}
    if not ranges:
        raise ValueError(f"{agent} names no settings to tune (tuning_ranges), or all of them were given")
    steps, episodes = usual_length(kind, cap, steps, episodes)
    measure = usual_measure(task, episodes)
    return Tunable(
        start, ranges, Search(env, agent, (SettingsGrid(start, measure=measure),), task, steps, episodes).score
    )


def tune(
    agent: str,
    env: str | None = None,
    trials: int = 30,
    *,
    seeds: int = 5,
    confirm: int = 20,
    steps: int | None = None,
    episodes: int | None = None,
    journal: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Tuned:
    """Tune an agent until the journal holds `trials` finished trials; a journal that is there already is continued.

    settings: of the agent, which are not tuned, such as preset="small".
    """
    lengths = {"steps": 1 if steps is None else steps, "episodes": 1 if episodes is None else episodes}
    for name, number in ({"trials": trials, "seeds": seeds, "confirm": confirm} | lengths).items():
        if not 1 <= number <= (FRESH if name != "steps" else math.inf):
            raise ValueError(f"{name} must lie between 1 and {FRESH:,}, not {number}")
    env = usual_task(agent) if env is None else env
    progress = progress or progress_below(f"tuning {agent}")
    what = tunable(agent, env, steps, episodes, **settings)
    given = "".join(f", {name} {value}" for name, value in settings.items())
    what_is_scored = f"{agent} on {env}: {seeds} seeds, steps {steps}, episodes {episodes}{given}"  # one study each
    study, finished, sampler = _study(what_is_scored, Path(journal or f"tune-{agent}-{env}.journal"))
    while len(done := finished()) < trials:
        if progress is not None:
            progress(len(done), trials)
        study.sampler = sampler(len(done))  # each trial by its number: a continued search is the unbroken one
        study.optimize(functools.partial(_trial, what=what, seeds=seeds), n_trials=1)
    best = dataclasses.replace(what.settings, **study.best_params)
    again = np.array([what.score(s, fresh(confirm)) for s in (best, what.settings)])
    (mean, default_mean), (se, default_se), _ = (x.tolist() for x in mean_and_error(again))
    pruned = sum(trial.state.name == "PRUNED" for trial in done)
    return Tuned(best, study.best_value, mean, se, default_mean, default_se, len(done), pruned)


def _study(name: str, journal: Path) -> tuple[Any, Callable[[], list[Any]], Callable[[int], Any]]:
    """The study in a journal, which is made if it is not there, its finished trials, and a sampler by its seed."""
    try:
        import optuna
    except ImportError:
        raise ValueError('spie tune needs Optuna: pip install "spie-rl[tune]"') from None
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        _mend_last_line(journal)
        storage = JournalStorage(JournalFileBackend(str(journal)))
        study = optuna.create_study(
            storage=storage,
            study_name=name,
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=0),
        )
    except (ValueError, OSError, KeyError, AttributeError) as error:  # not a journal
        raise ValueError(f"{journal} cannot be used as a journal ({error}); give another with --journal") from error

    def finished() -> list[Any]:
        return [trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "PRUNED")]

    # A trial that was killed stays "running" in the journal: with a constant liar it would count.
    return study, finished, lambda seed: optuna.samplers.TPESampler(seed=seed, constant_liar=False)


def _mend_last_line(journal: Path) -> None:
    """Remove what a command that was killed had written of a line: the next would else go on in it."""
    if not journal.is_file():
        return
    text = journal.read_bytes()
    if text and not text.endswith(b"\n"):
        os.truncate(journal, text.rfind(b"\n") + 1)


def _trial(trial: Any, what: Tunable, seeds: int) -> float:
    import optuna

    drawn = {name: trial.suggest_float(name, r.low, r.high, log=r.log) for name, r in what.ranges.items()}
    settings = dataclasses.replace(what.settings, **drawn)
    mean = math.nan
    for n, mean in enumerate(_means(what, settings, seeds), start=1):
        trial.report(mean, n)
        if n < seeds and trial.should_prune():
            raise optuna.TrialPruned
    return mean


def _means(what: Tunable, settings: Any, seeds: int) -> Iterator[float]:
    """The mean score so far, seed by seed."""
    total = 0.0
    for seed in range(seeds):
        total += float(what.score(settings, [seed])[0])
        yield total / (seed + 1)
