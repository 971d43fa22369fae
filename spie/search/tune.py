"""Tuning by Optuna, for agents whose settings are too many or whose runs are too long for a grid.

A trial runs its seeds one after the other and is given up once its mean falls behind the other trials'. The best one is
run again on fresh seeds, beside the settings it started from: what a search says about its own best is too good.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spie.agents.registry import agent as named
from spie.agents.sarsa.batch import AGENTS
from spie.errors import unknown
from spie.paper import chains, figure4
from spie.paper import published as paper
from spie.paper.beyond.pixels import STEPS as PIXEL_STEPS
from spie.rewards import get_reward
from spie.search.grid import used
from spie.search.select import FRESH

Range = tuple[float, float, bool]  # from, to, whether on a logarithmic scale


@dataclass(frozen=True)
class Tunable:
    """An agent on a task: where its settings may lie, and how a seed of it is scored; more is better.

    To make another kind of agent tunable, return one of these from `tunable`.
    """

    settings: Any  # a frozen dataclass: what is not tuned stays as it is here
    ranges: dict[str, Range]
    score: Callable[[Any, int], float]  # of (settings, seed)


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


def tunable(agent: str, env: str, steps: int | None = None, episodes: int = 300) -> Tunable:
    """An agent by name, on RiverSwim, SixArms, MountainCar, the pendulum or an image task."""
    if env in figure4.TASKS:
        known = (*figure4.AGENTS, "constant", "count")
        if agent not in known:
            raise unknown(f"agent on {env}", agent, known)
        return _linear(agent, env, steps, episodes)
    if env in PIXEL_STEPS:
        return _deep(agent, env, steps)
    if env not in chains.CHAINS:
        raise unknown("task to tune on", env, [*chains.CHAINS, *figure4.TASKS, *PIXEL_STEPS])
    return _tabular(agent, env, steps)


def _linear(agent: str, env: str, steps: int | None, episodes: int) -> Tunable:
    s = figure4.settings(agent)
    needs = get_reward(s.reward).needs
    ranges: dict[str, Range] = {"alpha": (0.001, 0.5, True), "epsilon": (0.01, 0.5, True)}
    ranges["length_scale"] = (0.05, 0.5, True)
    if s.reward != "none":
        ranges["beta"] = (1e-5, 1e3, True)
    for need, eta, gamma in (("psi_norm", "eta", "gamma_sr"), ("xi_norm_next", "eta_pr", "gamma_pr")):
        if need in needs:
            ranges |= {eta: (0.01, 1.0, True), gamma: (0.5, 0.99, False)}
    task = figure4.TASKS[env]()

    def score(settings: Any, seed: int) -> float:
        trace = settings.run(task, steps or figure4.CAP[env], [seed], episodes=episodes)
        return float(trace.episode_rewards.mean())

    return Tunable(s, ranges, score)


def _deep(agent: str, env: str, steps: int | None) -> Tunable:
    s = named(agent, preset="small")
    ranges: dict[str, Range] = {"rate": (1e-5, 1e-2, True), "epsilon": (0.01, 0.3, True), "polyak": (0.001, 0.1, True)}
    if s.bonus != "none":
        ranges["beta"] = (1e-4, 1.0, True)

    def score(settings: Any, seed: int) -> float:
        return float(settings.run(env, steps or PIXEL_STEPS[env], [seed]).total_reward[0])

    return Tunable(s, ranges, score)


def _tabular(agent: str, env: str, steps: int | None) -> Tunable:
    controls = chains.controls(env)
    if agent not in AGENTS and agent not in controls:
        raise unknown(f"agent on {env}", agent, [*AGENTS, *controls])
    s = controls.get(agent) or named(agent)
    ranges = {name: (min(paper.SWEEP[name]), max(paper.SWEEP[name]), not name.startswith("gamma")) for name in used(s)}
    mdp = chains.CHAINS[env]()

    def score(settings: Any, seed: int) -> float:
        return float(settings.run(mdp, steps or paper.CHAIN_STEPS, [seed]).total_reward[0])

    return Tunable(s, ranges, score)


def tune(
    agent: str,
    env: str,
    trials: int = 30,
    *,
    seeds: int = 5,
    confirm: int = 20,
    steps: int | None = None,
    episodes: int = 300,
    journal: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Tune an agent until the journal holds `trials` finished trials; a journal that is there already is continued."""
    for name, number in (("trials", trials), ("seeds", seeds), ("confirm", confirm), ("episodes", episodes)):
        if not 1 <= number <= FRESH:
            raise ValueError(f"{name} must lie between 1 and {FRESH:,}, not {number}")
    what = tunable(agent, env, steps, episodes)
    what_is_scored = f"{agent} on {env}: {seeds} seeds, steps {steps}, episodes {episodes}"  # one study each
    study, finished = _study(what_is_scored, Path(journal or f"tune-{agent}-{env}.journal"))
    while len(done := finished()) < trials:
        if progress is not None:
            progress(len(done), trials)
        study.optimize(functools.partial(_trial, what=what, seeds=seeds), n_trials=1)
    best = dataclasses.replace(what.settings, **study.best_params)
    means, errors = zip(*(_estimate(what, s, confirm) for s in (best, what.settings)), strict=True)
    pruned = sum(trial.state.name == "PRUNED" for trial in done)
    return Tuned(best, study.best_value, means[0], errors[0], means[1], errors[1], len(done), pruned)


def _study(name: str, journal: Path) -> tuple[Any, Callable[[], list[Any]]]:
    """The study in a journal, which is made if it is not there, and a function that gives its finished trials."""
    try:
        import optuna
    except ImportError:
        raise ValueError('spie tune needs Optuna: pip install "spie-rl[tune]"') from None
    from optuna.storages.journal import JournalFileBackend, JournalStorage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
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

    study.sampler = optuna.samplers.TPESampler(seed=len(finished()))  # a continued search does not repeat itself
    return study, finished


def _trial(trial: Any, what: Tunable, seeds: int) -> float:
    import optuna

    drawn = {name: trial.suggest_float(name, low, high, log=log) for name, (low, high, log) in what.ranges.items()}
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
        total += what.score(settings, seed)
        yield total / (seed + 1)


def _estimate(what: Tunable, settings: Any, n: int) -> tuple[float, float]:
    """Mean and standard error over fresh seeds."""
    scores = np.array([what.score(settings, seed) for seed in range(FRESH, FRESH + n)])
    return float(scores.mean()), float(scores.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
