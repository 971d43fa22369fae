"""What Table 2 and the ablation of Appendix D share: deep agents on Atari games, within a budget of frames."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.agents.dqn.agent import DQN
from spie.agents.registry import agent as named
from spie.paper.contenders import label
from spie.paper.experiment import Experiment, in_blocks
from spie.paper.published import Cell
from spie.paper.results import Results
from spie.paper.sections import CurvePanels, Panel, Row, SectionPart, Table, mean_curve, number
from spie.runs.run import Run
from spie.tasks.atari import AtariTask
from spie.trace import Trace

SHAPE: tuple[int, int, int] = (4, 84, 84)  # of a state
PAPER_FRAMES = 10**8
SMALL_TIER = 20_000  # frames, by default
NETWORKS = ("paper", "nature")
CURVE_EPISODES = 20  # of a run that has a curve: fewer are a step or two


def settings(agent: str, frames: int, network: str | None = None, **changes: Any) -> DQN:
    """The paper's settings for its 10^8 frames; for less, schedules that fit into the budget.

    network: by default the paper's for its budget and "nature", which is smaller, for less.
    """
    if frames >= PAPER_FRAMES:
        at_paper: DQN = named(agent, preset=network or "paper", **changes)
        return at_paper
    steps = frames // AtariTask.frame_skip
    schedule = {
        "learning_starts": min(50_000, steps // 20),
        "target_every": min(40_000, steps // 20),
        "epsilon_frames": min(10**6, frames // 10),
        "replay": min(10**6, 2 * steps),
    }
    s: DQN = named(agent, preset=network or "nature", **schedule | changes)
    return s


def game_run(game: str, agent: str, frames: int, seeds: int, network: str | None = None, **variant: Any) -> Run:
    """An agent on a game. variant: settings of its own."""
    s = settings(agent, frames, network, **variant)
    return Run(game, agent, s, AtariTask(game), frames // AtariTask.frame_skip, seeds, variant=variant)


def score(trace: Trace) -> NDArray[np.float64]:
    """Mean reward of the last 100 episodes that ended [seeds]; not a number where none did."""
    assert trace.episode_rewards is not None
    found = []
    for steps, rewards in zip(trace.episode_steps, trace.episode_rewards, strict=True):
        ended = rewards[steps > 0][-100:]
        found.append(ended.mean() if len(ended) else np.nan)
    return np.array(found)


def saturation(trace: Trace) -> NDArray[np.float64]:
    """Frames until the mean of the last 100 episodes is first within a tenth of its final value [seeds]; else NaN.

    Only means of 100 whole episodes count, so that one lucky episode is no end of learning.
    """
    assert trace.episode_rewards is not None
    found = np.full(len(trace.seeds), np.nan)
    for i, (steps, rewards) in enumerate(zip(trace.episode_steps, trace.episode_rewards, strict=True)):
        ended = rewards[steps > 0]
        if len(ended) < 100:
            continue
        means = np.convolve(ended, np.full(100, 0.01), "valid")
        if means[-1] > 0:
            first = int(np.argmax(means >= 0.9 * means[-1]))
            found[i] = float(AtariTask.frame_skip * np.cumsum(steps[steps > 0])[99 + first])
    return found


def scored(run: Run, trace: Any) -> tuple[str, NDArray[np.float64]]:
    """For the terminal."""
    return "mean reward of the last 100 episodes that ended", score(trace)


Printed = Callable[[Run], Cell | None]  # what the paper has for a run; None where that is ours alone


def beside(printed: Printed) -> Callable[[Experiment, Run, stats.Estimate], dict[str, Any]]:
    """The printed score of a cell, and whether ours is of the same budget."""

    def compared(experiment: Experiment, run: Run, ours: stats.Estimate) -> dict[str, Any]:
        cell, less = printed(run), experiment.frames < PAPER_FRAMES
        if cell is None:
            return {"paper_mean": None, "paper_spread": None, "verdict": "not in the paper"}
        verdict = f"not comparable: {experiment.frames:,} frames" if less else "the paper's budget"
        return {"paper_mean": cell.mean, "paper_spread": cell.spread, "verdict": verdict}

    return compared


def section(printed: Printed) -> Callable[[Experiment, Results], list[SectionPart]]:
    """Our scores within a budget beside those of the paper, which are of another."""
    columns = ("game", "agent", "ours", "sd", "episodes", "first reward, frame", "rooms", "n", "paper", "± printed")

    def table(experiment: Experiment, results: Results) -> list[SectionPart]:
        rows = []
        for cells in results.found(experiment.key).values():
            for run, trace in cells.values():
                values, cell = score(trace), printed(run)
                ours = stats.estimate(values[~np.isnan(values)]) if not np.isnan(values).all() else None
                mean = (None, None) if ours is None else (ours.mean, ours.sd)
                episodes = float((trace.episode_steps > 0).sum(axis=1).mean())
                who = (run.env, label(run.agent, run.variant))
                first = trace.first_reward
                found = None if first is None else first[first >= 0] * AtariTask.frame_skip
                reward = None if found is None else (float(np.median(found)) if len(found) else "none")
                rooms = int((trace.first_visit >= 0).sum(axis=1).max()) if trace.first_visit.shape[1] > 1 else None
                rest = (episodes, reward, rooms, len(values), *(cell or (None, None)))
                rows.append(Row((*who, *mean, *rest)))
        budget = f"{number(experiment.frames)} frames, n seeds; score: mean of the last 100 episodes."
        less = f" Not comparable: the paper's agents had {number(PAPER_FRAMES)} frames."
        scores = Table(budget + less * (experiment.frames < PAPER_FRAMES), columns, rows, texts=2)
        return [scores, *learning_curves(experiment, results)]

    return table


def learning_curves(experiment: Experiment, results: Results) -> list[SectionPart]:
    """Mean reward of the last 100 episodes against frames, where a run is long enough to have a curve."""
    x = np.linspace(0, experiment.frames, 101)
    panels = []
    for game, cells in results.found(experiment.key).items():
        if max((one.trace.episode_steps > 0).sum(axis=1).max() for one in cells.values()) < CURVE_EPISODES:
            continue
        curves = {name: mean_curve(x, reward_curve(one.trace, x), one.look) for name, one in cells.items()}
        panels.append(Panel(game, curves, "frames", "reward of an episode"))
    return [CurvePanels("Mean reward of the last 100 episodes that ended", panels)] if panels else []


def reward_curve(trace: Trace, frames: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean reward of the last 100 episodes that ended by each of these frames [seeds, len(frames)]; 0 before any."""
    assert trace.episode_rewards is not None
    curves = np.zeros((len(trace.seeds), len(frames)))
    for curve, steps, rewards in zip(curves, trace.episode_steps, trace.episode_rewards, strict=True):
        ends = np.cumsum(steps[steps > 0]) * AtariTask.frame_skip
        total = np.concatenate([[0.0], np.cumsum(rewards[steps > 0])])
        n = np.searchsorted(ends, frames, side="right")
        first = np.maximum(n - 100, 0)
        curve[:] = (total[n] - total[first]) / np.maximum(n - first, 1)
    return curves


def game_experiment(name: str, title: str, printed: Printed, runs: Callable[..., list[Run]], **more: Any) -> Experiment:
    """An experiment on Atari games, whose runs take hours: what ships of it grows."""
    return Experiment(
        name,
        title,
        section(printed),
        in_blocks(runs, 1),
        measure=scored,
        compared=beside(printed),
        long=True,
        on="processes",
        ships=section(printed),
        grows=True,
        frames=SMALL_TIER,
        networks=NETWORKS,
        **more,
    )
