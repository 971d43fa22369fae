"""Figure 4: Q-learning on random Fourier features, with the paper's settings and with those that keep the flag."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.agents.base import Keep
from spie.agents.linear_q.settings import LinearQ
from spie.agents.registry import agent as named
from spie.paper import published as paper
from spie.paper.claims import Claim, Evidence, Missing, Runs
from spie.paper.contenders import Contender, label, words
from spie.paper.experiment import Array, Experiment, episode_steps
from spie.paper.measures import compare, episode, ratio, together
from spie.paper.registry import register_experiment
from spie.paper.results import Results, Stored
from spie.paper.rules import LESS, MUCH_LESS, NO_LESS, SIMILAR
from spie.paper.sections import (
    Curve,
    CurvePanels,
    Panel,
    Picture,
    SectionPart,
    SpaceMaps,
    Table,
    Text,
    agent_row,
    between,
    mean_curve,
    number,
    percent,
)
from spie.runs.run import Role, Run
from spie.tasks import mountain_car, pendulum
from spie.trace import EpisodeTrace

TASKS = {"mountain-car": mountain_car, "pendulum": pendulum}
CAP = {"mountain-car": 1000, "pendulum": 200}  # steps of an episode
AGENTS = ("linear-q", "linear-q-sf", "linear-q-sf-pf")
CONTROLS = ("constant", "count", "random")

# The paper's beta of 1000 drowns the reward at the flag, which is 1: agents find the flag and lose it again. Each agent
# gets the same search over smaller ones, on seeds that are used for nothing else; the best is shown on the usual seeds.
SMALL_BETAS = (0.01, 0.001, 0.0001)
TUNED = ("linear-q-sf", "linear-q-sf-pf", "constant", "count")
TUNING, TUNING_SEEDS, TUNING_EPISODES = "mountain-car, search", tuple(range(10**6, 10**6 + 5)), 300
PENDULUM_EPISODES = 300
NORMS, NORMS_EPISODES = "mountain-car, norms", 100  # where what SF and PF have learned is kept
BLOCK = 20  # episodes that a point of the curves averages

Cells = Mapping[str, Stored]
SF, SF_PF = Contender("figure4", "linear-q-sf"), Contender("figure4", "linear-q-sf-pf")


def settings(agent: str, **changes: Any) -> LinearQ:
    """An agent, or a control, with the paper's settings for MountainCar."""
    if agent in AGENTS:
        s: LinearQ = named(agent, **paper.MOUNTAIN_CAR | changes)
        return s
    control = {"reward": "none", "epsilon": 1.0} if agent == "random" else {"reward": agent}
    return LinearQ(**paper.MOUNTAIN_CAR | control | changes)


def readings() -> list[dict[str, Any]]:
    """How SF-PF changes under its other readings: eq. 16 as printed, its other sign, norms in place of reciprocals."""
    return [{"reward": "sf-pf-printed"}, {"beta": -paper.MOUNTAIN_CAR["beta"]}, {"reward": "sf-pf-norms"}]


def runs(seeds: int) -> list[Run]:
    """MountainCar for 1000 episodes, the search over beta, and a pendulum to show that it is not one task."""
    plain: list[tuple[str, dict[str, Any]]] = [(agent, {}) for agent in AGENTS]
    controls: list[tuple[str, dict[str, Any]]] = [(agent, {}) for agent in CONTROLS]
    other = [("linear-q-sf-pf", changes) for changes in readings()]
    small = [(agent, {"beta": beta}) for agent in TUNED for beta in SMALL_BETAS]
    largest = [(agent, {"beta": SMALL_BETAS[0]}) for agent in TUNED]
    car, swing = "mountain-car", "pendulum"
    return [
        *(_run(car, *who, seeds, paper.MOUNTAIN_CAR_EPISODES) for who in [*plain, *other, *controls, *small]),
        *(
            dataclasses.replace(_run(car, *who, TUNING_SEEDS, TUNING_EPISODES), env=TUNING, role="search")
            for who in small
        ),
        *(_run(swing, *who, seeds, PENDULUM_EPISODES) for who in [*plain, *controls, *largest]),
        dataclasses.replace(
            _run(car, "linear-q-sf-pf", {}, seeds, NORMS_EPISODES), env=NORMS, keep=Keep(matrices=("Psi", "Xi"))
        ),
    ]


def _run(env: str, agent: str, changes: dict[str, Any], seeds: int | tuple[int, ...], episodes: int) -> Run:
    role: Role = "control" if agent in CONTROLS else "reading" if changes else "paper"
    s = dataclasses.replace(settings(agent), **changes)
    return Run(env, agent, s, TASKS[env](), CAP[env], seeds, episodes=episodes, role=role, variant=changes)


# Measures


BETAS: Sequence[dict[str, Any]] = [{}, *({"beta": beta} for beta in SMALL_BETAS)]
CAR = ("mountain-car",)


def beta_of(variant: Mapping[str, Any]) -> str:
    """For people."""
    return words(variant) or f"beta={paper.MOUNTAIN_CAR['beta']:g}"


def flag_is_kept(runs: Runs) -> list[Evidence]:
    """At the paper's beta and at the largest small one."""
    parts = []
    for beta in BETAS[:2]:
        ends = runs(Contender("figure4", "linear-q-sf-pf", beta), "mountain-car").terminated
        share = ends[:, -100:].mean(axis=1), ends[:, :100].mean(axis=1)
        parts.append(ratio(beta_of(beta), *share, **NO_LESS))
    return parts


def norms(trace: EpisodeTrace) -> tuple[Array, Array]:
    """Mean norms |psi(s, a)| and |xi(s)| [seeds] over a grid of the states of MountainCar, and over the actions."""
    if trace.Psi is None or trace.Xi is None:
        raise Missing("figure4")
    task, s = TASKS["mountain-car"](), settings("linear-q-sf-pf")
    found = []
    for seed, Psi, Xi in zip(trace.seeds.tolist(), trace.Psi, trace.Xi, strict=True):
        phi = s.features(task, seed)(task.seen_over_view(40)).reshape(-1, s.dimension)
        found.append([np.abs(phi @ np.swapaxes(A, -1, -2)).sum(axis=-1).mean() for A in (Psi, Xi)])
    psi, xi = np.array(found).T
    return psi, xi


def norms_are_alike(runs: Runs) -> list[Evidence]:
    return [ratio("|SF| / |PF|", *norms(runs(SF_PF, NORMS)), **SIMILAR)]


# fmt: off
CLAIMS = (
    Claim("unit-features", "Section 3", "eq. 15", "Features of unit length bring SF and PF to similar scales.",
          f"MountainCar after {NORMS_EPISODES} episodes: mean norm of SF over that of PF, all states: similar",
          norms_are_alike),
    Claim("reciprocal-norms", "Section 3", "eq. 16",
          "In continuous spaces a difference of reciprocal norms works better than one of norms.",
          "MountainCar, steps of an episode with SF-PF over those with norms, 1000 episodes, printed settings: less",
          compare(episode, SF_PF, [Contender("figure4", "linear-q-sf-pf", {"reward": "sf-pf-norms"})], CAR,
                  what="reciprocals", **LESS)),
    Claim("mountain-car", "Section 4", "Figure 4c",
          "With linear features, r_SF-PF does significantly better than r_SF.",
          "MountainCar, steps of an episode with SF-PF over those with SF, 1000 episodes, printed settings: much less",
          compare(episode, SF_PF, [SF], CAR, what="SF-PF", **MUCH_LESS)),
    Claim("mountain-car-keeps", "Section 4", "Figure 4c", "With r_SF-PF the flag, once found, is kept.",
          "MountainCar, share of episodes at the flag: last 100 over first 100, at printed beta and at .01: no less",
          flag_is_kept, ours=True),
    Claim("mountain-car-constant", "Section 4", "Figure 4c",
          "r_SF-PF does better than a cost of the same scale that is the same everywhere.",
          "MountainCar, steps of an episode with SF-PF over those with a constant cost, at each beta: less",
          together(*(compare(episode, Contender("figure4", "linear-q-sf-pf", beta),
                             [Contender("figure4", "constant", beta)], CAR, what=beta_of(beta), **LESS)
                     for beta in BETAS)), ours=True, controls=True),
)
# fmt: on


# The page


def blocks(values: Any) -> Any:
    """Means over blocks of episodes, [seeds, episodes] to [seeds, blocks]."""
    return np.asarray(values, np.float64).reshape(len(values), -1, BLOCK).mean(axis=2)


def best_betas(searched: Sequence[Stored]) -> list[str]:
    """Of every agent that was searched, the beta with the most episodes that reached the flag on the tuning seeds."""
    best = []
    for agent in TUNED:
        tried = [stored for stored in searched if stored.run.agent == agent]
        run = max(tried, key=lambda stored: float(stored.trace.terminated.mean())).run
        best.append(label(run.agent, run.variant))
    return best


def flag_table(title: str, cells: Cells) -> Table:
    columns = "agent;goals, %;95 % interval;first 100;last 100;steps per episode;first goal;seeds without;mean bonus"
    rows = []
    for name, (run, trace) in cells.items():
        e = stats.estimate(100 * trace.terminated.mean(axis=1))
        first = trace.first_success[trace.first_success >= 0] + 1
        bonus = float(trace.episode_bonuses.sum() / max(1, trace.episode_steps.sum()))
        values = (
            name, number(e.mean, 1), between(e.low, e.high, 1), percent(float(trace.terminated[:, :100].mean())),
            percent(float(trace.terminated[:, -100:].mean())), number(float(trace.episode_steps.mean()), 0),
            number(float(np.median(first)), 0) if len(first) else "never", len(trace.seeds) - len(first),
            f"{bonus:.2g}",
        )  # fmt: skip
        rows.append(agent_row(values, run.agent in CONTROLS))
    episodes, seeds = trace.episode_steps.shape[1], len(trace.seeds)
    caption = f"{title}: {episodes} episodes of at most {number(run.steps)} steps, {seeds} seeds"
    return Table(caption, columns.split(";"), rows)


def flag_curves(caption: str, cells: Cells) -> CurvePanels:
    """Steps, success and the sign and size of the bonus, against episodes."""
    curves: tuple[dict[str, Curve], ...] = ({}, {}, {})
    for name, stored in cells.items():
        run, trace = stored
        x = BLOCK * np.arange(1, trace.episode_steps.shape[1] // BLOCK + 1)
        shown = [trace.episode_steps, 100.0 * trace.terminated]
        if run.agent in AGENTS[1:]:
            shown.append(trace.episode_bonuses / np.maximum(1, trace.episode_steps))
        for of, values in zip(curves, shown, strict=False):
            of[name] = mean_curve(x, blocks(values), stored.look)
    titles = ("steps of an episode", "episodes that reach the flag", "mean intrinsic reward of a step, before beta")
    labels = ("steps", "%", "r_int")
    panels = [Panel(title, of, "episode", y) for title, of, y in zip(titles, curves, labels, strict=True)]
    return CurvePanels(caption, panels)


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The car, example features, curves with the paper's settings and with a beta that keeps the flag; the pendulum."""
    found, searched = results.found(experiment.name), results.searched(experiment.name)
    car = found["mountain-car"]
    kept = {name: car[name] for name in best_betas(searched)}
    printed = {name: cell for name, cell in car.items() if cell.run.variant.get("beta") not in SMALL_BETAS}
    betas = ", ".join(f"{beta:g}" for beta in SMALL_BETAS)
    everything = [stored for cells in found.values() for stored in cells.values()] + searched
    failures = [line for stored in everything for line in stored.trace.failures]
    search = {label(run.agent, run.variant): Stored(run, trace) for run, trace in searched}
    return [
        Picture("(a) The task: rock up the hill to the flag; nothing is paid before", "mountain-car"),
        features(),
        flag_curves(
            f"(c) With the paper's beta of {number(paper.MOUNTAIN_CAR['beta'])}: mean of {BLOCK} episodes and "
            "95 % interval",
            {name: car[name] for name in (*AGENTS, "constant", "count")},
        ),
        flag_table("The paper's settings, other readings and controls", printed),
        flag_curves(f"With the best beta of {betas} for each, chosen on other seeds", kept),
        flag_table("Each with the best small beta", kept),
        flag_table("The search for it", search),
        flag_table("Another task, the pendulum", found["pendulum"]),
        Text("Runs that overflowed", failures or ["none"]),
    ]


def features() -> SpaceMaps:
    """Some of the features of one seed, over the states."""
    task = TASKS["mountain-car"]()
    phi = settings("linear-q-sf-pf").features(task, 0)(task.seen_over_view(40))
    maps = {f"feature {i}": phi[:, :, i] for i in range(8)}
    return SpaceMaps("(b) Eight of 128 random Fourier features, seed 0", maps, task.view, task.labels)


register_experiment(
    Experiment(
        "figure4",
        "Figure 4: MountainCar with linear features",
        section,
        runs,
        seeds=10,
        claims=CLAIMS,
        measure=episode_steps,
    )
)
