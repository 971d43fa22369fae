"""Figure 3: goal tasks, with the goal in one place and with goals that move."""

import functools
import itertools
from collections.abc import Callable

import numpy as np

from spie import stats
from spie.agents.sarsa.settings import Sarsa
from spie.paper.claims import Claim, Evidence, Measure, Runs
from spie.paper.contenders import Contender, of
from spie.paper.experiment import Experiment, episode_steps
from spie.paper.grid_worlds import controls, settings
from spie.paper.measures import compare, double_ratio, episode, off_average, ratio, roughness, together
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.rules import LESS, MORE, MUCH_LESS, MUCH_MORE
from spie.paper.sections import CurvePanels, Panel, SectionPart, Table, agent_row, between, mean_curve, number
from spie.runs.run import Role, Run
from spie.tasks import grid
from spie.tasks.mdp import MDP

MAPS = ("of-small", "cluster-hard")
EPISODES = {"goal": 100, "moving-goal": 180}
EPISODE_CAP = 5_000
EACH = 30  # episodes before a goal moves

SARSA, SR, SRR = of("figure3", "sarsa", "sarsa-sr", "sarsa-srr")
OTHERS = (SARSA, SR)


def environment(name: str, task: str) -> str:
    """For people: the map and the task on it."""
    return f"{name}/{task}"


GOALS, MOVING = (tuple(environment(name, task) for name in MAPS) for task in EPISODES)


def runs(seeds: int) -> list[Run]:
    """Every agent on every map, with either task."""
    planned = []
    for name, task in itertools.product(MAPS, EPISODES):
        run = functools.partial(_run, seeds, name, task)
        planned += [run(agent, settings(agent)) for agent in ("sarsa", "sarsa-sr", "sarsa-srr")]
        # No reward is above 0 here, so plain SARSA's Q = 0 is optimistic already.
        planned += [run(agent, s, role="control") for agent, s in controls().items() if agent != "optimistic"]
    return planned


def _run(seeds: int, name: str, task: str, agent: str, s: Sarsa, role: Role = "paper") -> Run:
    mdp, episodes = grid(name, task=task), EPISODES[task]
    return Run(environment(name, task), agent, s, mdp, EPISODE_CAP, seeds, episodes=episodes, role=role)


# Measures


def larger_gain(runs: Runs) -> list[Evidence]:
    """Gain of SARSA-SRR on the goal task of OF-small over that of Cluster-hard."""
    parts = []
    for other in OTHERS:
        cells = itertools.product(GOALS, (other, SRR))
        parts.append(double_ratio(other.label, *(episode(runs(agent, env)) for env, agent in cells), **MORE))
    return parts


def second_round(*agents: Contender) -> Measure:
    """Steps when a goal comes the second time over those of the first time, and this over another agent's."""

    def measure(runs: Runs) -> list[Evidence]:
        parts = []
        for (name, env), goal, n in itertools.product(zip(MAPS, MOVING, strict=True), range(3), (1, EACH)):
            windows = [slice(first, first + n) for first in (EACH * (goal + 3), EACH * goal)]
            traces = [runs(agent, env) for agent in agents]
            samples = [episode(trace, window) for trace in traces for window in windows]
            label = f"{name} {('G', 'G1', 'G2')[goal]} {'first episode' if n == 1 else 'all episodes'}"
            two_or_four: Callable[..., Evidence] = ratio if len(agents) == 1 else double_ratio
            parts.append(two_or_four(label, *samples, **LESS))
        return parts

    return measure


# fmt: off
CLAIMS = (
    Claim("goal-efficiency", "Section 4", "Figure 3a, 3b", "SARSA-SRR learns the goal tasks in fewer steps.",
          "mean steps of all episodes over SARSA's and SARSA-SR's: less",
          compare(episode, SRR, OTHERS, GOALS, **LESS)),
    Claim("goal-strong", "Section 4", "Figure 3a, 3b", "Its gain on the goal tasks is strong and consistent.",
          "mean steps of all episodes over SARSA's and SARSA-SR's: much less",
          compare(episode, SRR, OTHERS, GOALS, **MUCH_LESS)),
    Claim("goal-steady", "Section 4", "Figure 3a, 3b",
          "SARSA-SRR learns more steadily, with less difference between seeds.",
          "steps between one episode and the next, and between a seed and the average of seeds, over SARSA's and "
          "SARSA-SR's: less",
          together(compare(roughness, SRR, OTHERS, GOALS, "episodes", **LESS),
                   compare(off_average, SRR, OTHERS, GOALS, "seeds", **LESS))),
    Claim("sr-unstable", "Section 4", "Figure 3a, 3b", "SARSA-SR is highly unstable while it learns.",
          "steps between one episode and the next over SARSA's and SARSA-SRR's: much more",
          compare(roughness, SR, (SARSA, SRR), GOALS, **MUCH_MORE)),
    Claim("larger-gain-in-the-open", "Section 4", "Figure 3a, 3b", "On goal tasks SARSA-SRR gains more in OF-small.",
          "others' steps over SARSA-SRR's, on OF-small over Cluster-hard: more", larger_gain),
    Claim("moving-goals", "Section 4", "Figure 3c, 3d", "Where the goal moves, SARSA-SRR does better throughout.",
          "mean steps of all episodes over SARSA's and SARSA-SR's: less",
          compare(episode, SRR, OTHERS, MOVING, **LESS)),
    Claim("ever-shorter", "Section 4", "Figure 3c, 3d", "SARSA-SRR reaches new goals in less and less time.",
          "steps when a goal comes the second time over the first, to reach it once and in its 30 episodes: less",
          second_round(SRR)),
    Claim("ever-shorter-than-sarsa", "Section 4", "Figure 3c, 3d",
          "It gains more from one round to the next than SARSA.",
          "that ratio over SARSA's: less", second_round(SRR, SARSA), ours=True),
    Claim("asymptote", "Section 1", "", "After learning, SARSA-SRR does better as well.",
          "mean steps of the last 10 episodes over SARSA's and SARSA-SR's: less",
          compare(functools.partial(episode, episodes=slice(-10, None)), SRR, OTHERS, GOALS + MOVING, **LESS)),
)
# fmt: on


# The page


def shortest_paths(mdp: MDP) -> list[float]:
    """Expected steps of the shortest path from the start to the goal, in each phase."""
    lengths = []
    for ends in mdp.terminal:
        steps = np.where(ends, 0.0, np.inf)
        for _ in range(mdp.n_states):
            steps = np.minimum(steps, 1 + steps[mdp.next].min(axis=(1, 2)))
        lengths.append(float(mdp.start[mdp.start > 0] @ steps[mdp.start > 0]))
    return lengths


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Steps against episodes; then their means, and the episodes that were truncated."""
    found = results.found(experiment.name)
    caption = "Mean steps to the goal and 95 % interval; vertical lines: the goal moves"
    panels = [_panel(env, cells) for env, cells in found.items()]
    return [CurvePanels(caption, panels), *(_table(env, cells) for env, cells in found.items())]


def _panel(env: str, cells: dict[str, Stored]) -> Panel:
    run = next(iter(cells.values())).run
    episodes, every = run.episodes or 0, run.task.episodes_per_phase
    x = np.arange(1, episodes + 1.0)
    curves = {label: mean_curve(x, stored.trace.episode_steps, stored.look) for label, stored in cells.items()}
    lengths = sorted(set(shortest_paths(run.task)))
    names = ["", "shortest path " + ", ".join(map(number, lengths))]  # one label, at the uppermost
    paths = {" " * k + names[length == lengths[-1]]: length for k, length in enumerate(lengths)}
    moves = [k + 0.5 for k in range(every, episodes, every)] if every else []
    return Panel(env, curves, "episode", "steps", paths, moves, log="y")


def _table(env: str, cells: dict[str, Stored]) -> Table:
    columns = ("agent", "steps per episode", "95 % interval", "sd", "median", "first 10", "last 10", "truncated", "n")
    rows = []
    for label, (run, trace) in cells.items():
        steps = trace.episode_steps
        e = stats.estimate(steps.mean(axis=1))
        ends = (float(steps[:, :10].mean()), float(steps[:, -10:].mean()))
        truncated = f"{number(int(trace.truncated.sum()))} of {number(steps.size)}"
        values = (label, e.mean, between(e.low, e.high), e.sd, e.median, *ends, truncated, e.n)
        rows.append(agent_row(values, run.role == "control"))
    return Table(f"{env}: {run.episodes} episodes, truncated after {number(run.steps)} steps", columns, rows)


register_experiment(
    Experiment(
        "figure3",
        "Figure 3: goal tasks, goals that move",
        section,
        runs,
        seeds=100,
        claims=CLAIMS,
        measure=episode_steps,
    )
)
