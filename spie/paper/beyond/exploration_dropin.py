"""Which bonus helps agents of Stable-Baselines3: PPO on MiniGrid, PPO and DQN on sparse MountainCar.

Every bonus is scaled by the same rule, beta="auto", so that none is tuned: in root mean square it is as large as what a
step is worth in the environment, and falls to 0 in the course of a run. What the agents share was settled on the bare
agent and two bonuses, seeds 1000 and 1001, which are not among those reported. sp-novelty is what the wrappers know as
"spie" where observations cannot be counted. A seed is a run, and the first seed of all comes before the second of any.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.dropin.environments import MadeTask
from spie.dropin.made_agents import SB3DQN, SB3PPO
from spie.paper.atari_measures import best_key
from spie.paper.beyond.dropin import GoalTask
from spie.paper.claims import Claim, Evidence, Measure, Missing, Runs
from spie.paper.contenders import Contender
from spie.paper.experiment import Experiment, Tier, in_blocks
from spie.paper.measures import combined
from spie.paper.registry import experiment_of, register_experiment
from spie.paper.results import Results
from spie.paper.sections import Row, SectionPart, Table, Text, number
from spie.runs.run import Role, Run
from spie.trace import EpisodeTrace

NAME = "exploration-dropin"
LATE = 0.2  # of a run's steps: its end
STEPS = 60_000  # of a run of PPO in the smallest tier; DQN has a third
CAR = GoalTask("spie/SparseMountainCar-v0", (("max_episode_steps", 200),), kind="continuous")
MINIGRID = {
    "doorkey-5x5": "MiniGrid-DoorKey-5x5-v0",
    "multiroom-n2-s4": "MiniGrid-MultiRoom-N2-S4-v0",
    "doorkey-8x8": "MiniGrid-DoorKey-8x8-v0",
    "keycorridor-s3r1": "MiniGrid-KeyCorridorS3R1-v0",
}
DQN_CAR = "mountain-car, DQN"
SMALL = ("doorkey-5x5", "multiroom-n2-s4")
LARGE = ("doorkey-8x8", "keycorridor-s3r1")  # with few bonuses, and in the full tier alone

BONUSES: dict[str, dict[str, Any]] = {
    "bare": {"reward": "none"},
    "constant": {"reward": "constant"},
    "count": {"reward": "count"},
    "e3b": {"reward": "e3b"},
    "sp-novelty": {"reward": "sp-novelty"},
    "novelty": {"reward": "novelty"},
    "count x e3b": {"reward": "count", "times": "e3b"},
    "novelty, episodic": {"reward": "novelty", "episodic": True},
    "rnd": {"reward": "rnd"},
}
SLOW: dict[str, Any] = {"n_steps": 16, "learning_rate": 3e-4, "ent_coef": 0.0}  # of PPO on MountainCar
PLAIN = {"VecNormalize": "none"}
ON_LARGE = ("bare", "count", "e3b", "sp-novelty")
CONTROLS = ("constant", "count", "e3b", "rnd")
JUDGED = (DQN_CAR, "mountain-car, PPO", *SMALL)  # where all bonuses run


def steps_on(env: str, frames: int) -> int:
    """Steps of a seed: DQN has a third of PPO's."""
    return frames // 3 if env == DQN_CAR else frames


def runs(seeds: int, frames: int = STEPS) -> list[Run]:
    """DQN and PPO on MountainCar, PPO on two levels of MiniGrid; `frames` are steps of PPO. RND comes last."""
    planned = []
    for name, bonus in BONUSES.items():
        planned.append(_run(DQN_CAR, name, SB3DQN(beta="auto", **bonus), CAR, steps_on(DQN_CAR, frames), seeds))
        planned.append(_run("mountain-car, PPO", name, SB3PPO(beta="auto", **SLOW, **bonus), CAR, frames, seeds))
    for name in ("bare", "novelty"):
        plain = SB3PPO(beta="auto", normalised=False, **SLOW, **BONUSES[name])
        planned.append(_run("mountain-car, PPO", name, plain, CAR, frames, seeds, PLAIN))
    for env in SMALL:
        planned += [_on_minigrid(env, name, frames, seeds) for name in BONUSES]
    return sorted(planned, key=lambda run: run.agent == "rnd")


def _on_minigrid(env: str, name: str, steps: int, seeds: int) -> Run:
    return _run(env, name, SB3PPO(beta="auto", **BONUSES[name]), MadeTask(MINIGRID[env]), steps, seeds)


def full_runs(seeds: int) -> list[Run]:
    """The same for longer, and two larger levels."""
    planned = runs(seeds, FULL)
    return planned + [_on_minigrid(env, name, FULL, seeds) for env in LARGE for name in ON_LARGE]


JUDGE, FULL = 150_000, 300_000
TIERS = {"minutes": Tier(STEPS, 5), "hours": Tier(JUDGE, 5), "full": Tier(FULL, 10, in_blocks(full_runs, 1))}


def _run(
    env: str, name: str, agent: Any, task: Any, steps: int, seeds: int, variant: Mapping[str, Any] | None = None
) -> Run:
    role: Role = "control" if name in CONTROLS else "paper"
    return Run(env, name, agent, task, steps, seeds, role=role, variant=variant or {})


def reached(trace: EpisodeTrace) -> NDArray[np.bool_]:
    """Which episodes ended at the goal [seeds, episodes], the only place that pays."""
    return np.asarray(trace.episode_rewards > 0)


def late_success(trace: EpisodeTrace, steps: int) -> NDArray[np.float64]:
    """Share of the episodes that ended in the last fifth of the steps which reached the goal [seeds]."""
    ended = np.cumsum(trace.episode_steps, axis=1)
    late = (ended > (1 - LATE) * steps) & (trace.episode_steps > 0)
    return np.asarray((reached(trace) & late).sum(axis=1) / np.maximum(late.sum(axis=1), 1))


def first_goal(trace: EpisodeTrace) -> NDArray[np.int64]:
    """Steps of the episodes up to the first that reached the goal [seeds]; -1 for never."""
    found, ended = reached(trace), np.cumsum(trace.episode_steps, axis=1)
    return np.where(found.any(axis=1), ended[np.arange(len(ended)), found.argmax(axis=1)], -1)


def measure(run: Run, trace: Any) -> tuple[str, NDArray[np.float64]]:
    """For the terminal."""
    late = 100 * late_success(trace, run.steps)
    return f"late success, % of the episodes of the last {LATE:.0%} (more is better)", late


def more_success(rivals: Sequence[str]) -> Measure:
    """Late success with sp-novelty less that of the best rival, on each task, in the largest tier of which all ran."""

    def measure(runs: Runs) -> list[Evidence]:
        key = best_key(runs.results, NAME)
        if key is None:
            raise Missing(NAME)
        frames, parts = experiment_of(key).frames, []
        for env in JUDGED:
            found = {
                who: late_success(runs(Contender(key, who), env), steps_on(env, frames))
                for who in ("sp-novelty", *rivals)
            }
            best = max(rivals, key=lambda who: float(found[who].mean()))
            parts.append(combined(f"{env} {best}", np.subtract, found["sp-novelty"], found[best], floor=0.0))
        return parts

    return measure


# fmt: off
CLAIMS = (
    Claim("spie-dropin-beats-all-controls", "Beyond the paper", "",
          "In agents of Stable-Baselines3 sp-novelty beats no bonus, the constant, count, E3B and RND.",
          "late success less that of the best of them, each with beta = auto, on each of four tasks: above 0",
          more_success(("bare", *CONTROLS)), ours=True),
    Claim("spie-dropin-adds-to-novelty", "Beyond the paper", "",
          "In agents of Stable-Baselines3 the potential adds to novelty.",
          "late success less that of novelty without it, on each of four tasks: above 0",
          more_success(("novelty",)), ours=True),
)
# fmt: on

SAID = (
    f"Late success: of the episodes in the last {LATE:.0%} of the steps, the share that reached the goal; mean over "
    "seeds and its 95 % interval. Every bonus has beta = auto, which falls to 0 in the course of a run.",
    "count, novelty and rnd are over all episodes; e3b and what is called episodic forget when an episode begins; "
    "count x e3b is the product of one of each kind. VecNormalize stands above the bonus unless a row says otherwise.",
)


def rows_of(cells: Mapping[str, Any]) -> list[Row]:
    """A row an agent: late success, seeds that found the goal, and how soon."""
    rows = []
    for name, (run, trace) in cells.items():
        late, first = stats.estimate(late_success(trace, run.steps)), first_goal(trace)
        soon = number(float(np.median(first[first >= 0])), 0) if (first >= 0).any() else None
        interval = f"{late.mean:.2f} [{max(late.low, 0):.2f}, {min(late.high, 1):.2f}]"
        values = (name, interval, f"{(first >= 0).sum()} of {run.n_seeds}", soon, int(reached(trace).sum()))
        rows.append(Row(values, "control" if run.role == "control" else ""))
    return rows


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """A table for each task."""
    columns = ("agent", "late success", "seeds that found the goal", "steps until then, median", "goals, all seeds")
    parts: list[SectionPart] = []
    for env, cells in results.found(experiment.key).items():
        steps = next(iter(cells.values())).run.steps
        parts.append(Table(f"{env}: {number(steps)} steps per seed", columns, rows_of(cells)))
    return [*parts, Text("How to read it", SAID)]


register_experiment(
    Experiment(
        NAME,
        "Which bonus helps agents of Stable-Baselines3 (not in the paper)",
        section,
        in_blocks(runs, 1),
        seeds=5,
        claims=CLAIMS,
        measure=measure,
        long=True,
        on="processes",
        frames=STEPS,
        tiers=TIERS,
        ships=section,
        grows=True,
        keeps=False,
    )
)
