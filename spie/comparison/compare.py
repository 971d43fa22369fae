"""`spie.compare`: choose the settings of every arm on some seeds, confirm them on fresh ones, say what that shows."""

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spie.comparison.arms import (
    OPTIMISTIC,
    Q_LEARNING,
    Arm,
    check_agent,
    check_bonus,
    make_arms,
    usual_agent,
    usual_bonuses,
)
from spie.comparison.calibration import Calibration, calibrate, measure
from spie.comparison.outcome import BonusComparison, Trained
from spie.dropin.environments import MadeTask, made_task
from spie.dropin.spaces import numbering
from spie.errors import as_names, check_whole, is_among, is_name, is_number, told, unknown
from spie.notebook import progress_below
from spie.numbers import duration
from spie.runs.backends import BACKENDS
from spie.runs.estimate import cores as usable_cores
from spie.runs.estimate import slowness
from spie.runs.run import Run, load
from spie.runs.store import Store
from spie.search.select import Choice, Round, Search, fresh
from spie.search.sweep import OutOfTime, Progress, finish

USUAL = {True: (20_000, 10, 3), False: (50_000, 5, 2)}  # Q-learning or not: steps, seeds that confirm, that choose
TIMED = {True: 1_000, False: 4_096}  # steps that are timed: of bare Q-learning, and of every arm of a deep agent
LEAST_SEEDS = 3  # with fewer a comparison that ran out of time says nothing


@dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """What is going to be run."""

    agent: str
    steps: int
    seeds: int
    choice_seeds: int
    calibration: Calibration
    arms: list[Arm]
    step_seconds: dict[str, float]  # by arm, of one core
    again: int = 0  # which set of seeds

    @property
    def task(self) -> MadeTask:
        return self.calibration.task

    @property
    def tried(self) -> int:
        """Settings in all."""
        return sum(len(arm.grid) for arm in self.arms)

    def seconds(self, arm: Arm) -> float:
        """About how long a seed takes, of one core."""
        return self.steps * self.step_seconds[arm.name]

    def choice(self, arm: Arm) -> Choice:
        search = Search(self.task.name, arm.name, (arm.grid,), self.task, self.steps)
        seeds = fresh(self.choice_seeds, 2 * self.again) if self.again else self.choice_seeds
        return Choice((search,), (Round(seeds, 1),), self.fresh_seeds)

    @property
    def fresh_seeds(self) -> tuple[int, ...]:
        """Those that confirm."""
        return fresh(self.seeds, 2 * self.again + 1)

    def search_seconds(self) -> float:
        return sum(len(arm.grid) * self.choice_seeds * self.seconds(arm) for arm in self.arms if arm.is_chosen)

    def seed_seconds(self) -> float:
        """Of a seed of every arm."""
        return sum(map(self.seconds, self.arms))

    def about(self, cores: int, search: float, fresh_seeds: float) -> str:
        """What will be done, and how long that takes. search, fresh_seeds: shares of them that are not stored yet."""
        seconds = search * self.search_seconds() + fresh_seeds * self.seeds * self.seed_seconds()
        seconds *= slowness(busy_only=True) / cores
        chosen = f"{self.tried} settings x {self.choice_seeds} seeds, then"
        shape = f"{chosen} {len(self.arms)} arms x {self.seeds} fresh seeds, {self.steps:,} steps each"
        if search + fresh_seeds == 0:
            return f"{shape}: all stored"
        return f"{shape}: about {duration(max(1.0, seconds))} on {cores} core{'s' * (cores > 1)}"


def compare(
    env: Any,
    agent: str | None = None,
    bonuses: str | Iterable[str] | None = None,
    *,
    steps: int | None = None,
    seeds: int | None = None,
    choose: int | None = None,
    again: int = 0,
    budget: float | None = None,
    on: str = "serial",
    address: str | None = None,
    results: str | Path | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> BonusComparison:
    """Does a bonus help here? The bare agent, controls and bonuses, each at its best beta, on fresh seeds.

        spie.compare("FrozenLake-v1")
        spie.compare(lambda: MyMaze(), "ppo", ["count", "sf-pf"], steps=100_000, n_steps=128)

    env: a Gymnasium id, a task or map of spie, MiniGrid-..., ALE/..., "module:function", or a function that makes one.
    agent: q-learning, ppo, dqn, a2c, or "module:function" of (env, seed) that returns an agent with `learn(steps)`; by
        default Q-learning where states can be counted, else PPO.
    bonuses: by default a constant cost, an optimistic start (of a table), counts, RND, and SPIE's.
    steps, seeds: of a run, and how many confirm. choose: seeds on which betas and ends of episodes are chosen.
    again: 1, 2, ... repeats everything on other seeds: does the verdict stay?
    budget: seconds. Too few for the search are refused at once; else as many fresh seeds are run as fit, and the same
        call later runs the rest.
    on, address, results: as for `spie.sweep`; what is stored is not run again.
    say: told what is going to be done. options: settings of the agent, such as alpha=0.5 or n_steps=128.

    progress: told how much is done. Returns an outcome that prints itself. Raises ValueError for what is not there.

    >>> found = spie.compare(
    ...     "FrozenLake-v1", bonuses=["count"], steps=200, seeds=4, choose=2, say=lambda line: None
    ... )
    >>> "FrozenLake-v1" in str(found)
    True
    """
    _check(budget, again, on)
    progress = progress or progress_below("compare")
    names = None if bonuses is None else as_names("bonuses", bonuses)
    until = math.inf if budget is None else time.monotonic() + budget
    plan = dataclasses.replace(make_plan(env, agent, names, steps, seeds, choose, options), again=again)
    with Store(results) as store:
        how = (store, until, on, address, progress)
        settings = _choose(plan, how, say, budget)
        confirmed, notes = _confirm(plan, settings, how)
        trained = [_trained(plan, arm, settings, confirmed, store) for arm in plan.arms]
    return BonusComparison(
        plan.task.name, plan.agent, plan.steps, plan.calibration, tuple(trained), plan.tried, plan.choice_seeds, notes
    )


def _check(budget: float | None, again: int, on: str) -> None:
    check_whole("again", again, 0, 1000)
    if budget is not None and (not is_number(budget) or not 0 < budget < math.inf):
        raise ValueError(f"budget must be a number of seconds above 0, not {told(budget)}")
    if not is_among(on, BACKENDS):
        raise unknown("backend", on, BACKENDS)


def _choose(
    plan: ComparisonPlan, how: tuple[Any, ...], say: Callable[[str], None], budget: float | None
) -> dict[str, Any]:
    """Say what everything will take, then try all settings; those of every arm that did best."""
    store, on = how[0], how[2]
    stored, cores = partial(load, store), 1 if on == "serial" else usable_cores()
    choices = {arm.name: plan.choice(arm) for arm in plan.arms if arm.is_chosen}
    search = [run for choice in choices.values() for run in choice.runs(0, stored)]
    missing = [run for run in search if run.id not in store]
    left = 1.0 if missing else _left(plan, choices, stored, store)
    say(plan.about(cores, len(missing) / max(1, len(search)), left))
    _refuse_small_budget(plan, missing, budget, cores)
    finish(search, *how)
    return {arm.name: _chosen(arm, choices, stored) for arm in plan.arms}


def _chosen(arm: Arm, choices: dict[str, Choice], stored: Callable[[Run], Any]) -> Any:
    """The settings of an arm that did best on the seeds that choose."""
    if not arm.is_chosen:
        return arm.grid.base
    choice = choices[arm.name]
    return choice.settings(int(choice.best(1, stored)[0]))


def _left(plan: ComparisonPlan, choices: dict[str, Choice], stored: Callable[[Run], Any], store: Store) -> float:
    """The share of the fresh seeds that is not stored yet, once the search is."""
    settings = {arm.name: _chosen(arm, choices, stored) for arm in plan.arms}
    runs = [_run(plan, arm, settings, seed) for seed in plan.fresh_seeds for arm in plan.arms]
    return sum(run.id not in store for run in runs) / len(runs)


def _confirm(
    plan: ComparisonPlan, settings: dict[str, Any], how: tuple[Any, ...]
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Run all arms seed by seed; the seeds that all of them have, and what is to be said where those are not all."""
    seeds, store = plan.fresh_seeds, how[0]
    try:
        finish([_run(plan, arm, settings, seed) for seed in seeds for arm in plan.arms], *how)
    except OutOfTime:
        done = tuple(s for s in seeds if all(_run(plan, arm, settings, s).id in store for arm in plan.arms))
        if len(done) < min(LEAST_SEEDS, plan.seeds):
            raise
        return done, (f"The budget is used up: {len(done)} of {plan.seeds} seeds; run again for the rest.",)
    return seeds, ()


def make_plan(
    env: Any,
    agent: str | None,
    bonuses: Sequence[str] | None,
    steps: int | None,
    seeds: int | None,
    choose: int | None,
    options: dict[str, Any],
) -> ComparisonPlan:
    """Check everything, play at random for the scales, and time the bare agent."""
    for name, value, least, most in (
        ("steps", steps, 100, 10**9), ("seeds", seeds, 1, 10_000), ("choose", choose, 1, 1_000),
    ):  # fmt: skip
        if value is not None:
            check_whole(name, value, least, most)
    if agent is not None and not is_name(agent):
        raise ValueError(f"agent must be a name, not {told(agent)}")
    calibration = calibrate(made_task(env))
    agent = agent or usual_agent(calibration)
    check_agent(agent, calibration)
    usual_steps, usual_seeds, usual_choose = USUAL[agent == Q_LEARNING]
    tables = numbering(calibration.observation_space) is not None
    chosen = tuple(dict.fromkeys(bonuses or usual_bonuses(calibration)))
    if bonuses is None and agent == Q_LEARNING and tables:
        chosen = (chosen[0], OPTIMISTIC, *chosen[1:])
    for name in chosen:
        check_bonus(name, agent, calibration)
    make_arms(agent, options, (), calibration)  # refuses wrong settings, before bonuses are loaded and measured
    sizes = {name: measure(calibration, name) for name in chosen if name != OPTIMISTIC}
    calibration = dataclasses.replace(calibration, sizes=sizes)
    arms = make_arms(agent, options, chosen, calibration)
    steps = steps or usual_steps
    seconds = _timed(arms, calibration, min(steps, TIMED[agent == Q_LEARNING]), agent == Q_LEARNING)
    return ComparisonPlan(agent, steps, seeds or usual_seeds, choose or usual_choose, calibration, arms, seconds)


def _timed(arms: Sequence[Arm], calibration: Calibration, steps: int, bare_only: bool) -> dict[str, float]:
    """Seconds of a step by arm: timed, or those of the bare agent and of the bonus by itself.

    A deep agent may compute a bonus once more whenever it draws a step from replay, so that all of its arms are timed.
    """
    found: dict[str, float] = {}
    arms[0].grid.base.train(calibration.task, 10, 0)  # what is loaded on first use takes its time
    for arm in arms[:1] if bare_only else arms:
        began = time.process_time()
        arm.grid.base.train(calibration.task, steps, 0)
        found[arm.name] = (time.process_time() - began) / steps
    own = {arm.name: calibration.sizes.get(arm.grid.base.reward) for arm in arms}
    return {name: found["bare"] + (size.seconds if size else 0.0) for name, size in own.items()} | found


def _refuse_small_budget(plan: ComparisonPlan, missing: Sequence[Run], budget: float | None, cores: int) -> None:
    """Say at once that a budget is too small for the search and a few seeds, instead of using it up."""
    if budget is None or not missing:
        return
    needed = (plan.search_seconds() + LEAST_SEEDS * plan.seed_seconds()) / cores
    if needed > 2 * budget:  # an estimate is honest within a factor of two
        fewer = "name fewer --bonuses, give fewer --steps, or --on processes"
        takes = f"the search and {LEAST_SEEDS} seeds take about {duration(needed)} even where nothing else runs"
        raise ValueError(f"{takes}, the budget is {duration(budget)}; {fewer}")


def _run(plan: ComparisonPlan, arm: Arm, settings: dict[str, Any], seed: int) -> Run:
    return Run(plan.task.name, arm.name, settings[arm.name], plan.task, plan.steps, (seed,))


def _trained(plan: ComparisonPlan, arm: Arm, settings: dict[str, Any], seeds: Sequence[int], store: Store) -> Trained:
    runs = [_run(plan, arm, settings, seed) for seed in seeds]
    cpu = [store.info(run.id)["cpu_seconds"] or 0.0 for run in runs]
    seconds = sum(cpu) / (plan.steps * len(runs))
    return Trained(arm, settings[arm.name], tuple(load(store, run) for run in runs), seconds)
