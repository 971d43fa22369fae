"""Deep agents: small image tasks, many seeds side by side; Atari (Table 2, Appendix D) within a budget of frames."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.dqn.agent import DQN
from spie.agents.registry import agent as named
from spie.paper import published as paper
from spie.runs.run import Run
from spie.tasks.atari import AtariTask
from spie.tasks.registry import task as find_task
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.dqn.networks import NetworkLayer

ATARI_SHAPE: tuple[int, int, int] = (4, 84, 84)
PAPER_FRAMES = 10**8
SMALL_TIER, LEAST_FRAMES = 20_000, 1_000
RECON_GAME = "montezuma-revenge"
PIXEL_STEPS = {"four-rooms": 30_000, "cluster-hard": 40_000}
PAPER_BONUS = "dqn-sf-pf paper's bonus"  # its beta, not scaled, clipped
PIXEL_AGENTS = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")


def pixels(seeds: int) -> list[Run]:
    """The paper's five agents and two controls, with the settings for small tasks."""
    agents = {name: named(name, preset="small") for name in PIXEL_AGENTS}
    agents |= {name: named(f"dqn-{name}", preset="small") for name in ("constant", "count")}
    return on_pixels(agents, seeds)


def paper_bonus(seeds: int) -> list[Run]:
    """SF-PF with the bonus as the paper pays it, beside some agents of `pixels`, whose runs these are."""
    paid = {PAPER_BONUS: named("dqn-sf-pf", preset="small", beta=0.07, scale="none", clip=True)}
    shared = [run for run in pixels(seeds) if run.agent in ("dqn-mmc", "dqn-sf-pf", "constant", "count")]
    return sorted(shared + on_pixels(paid, seeds), key=lambda run: list(PIXEL_STEPS).index(run.env))


def on_pixels(agents: Mapping[str, DQN], seeds: int) -> list[Run]:
    tasks = {name: find_task(name, "images") for name in PIXEL_STEPS}
    return [
        Run(env, name, agent, task, PIXEL_STEPS[env], seeds)
        for env, task in tasks.items()
        for name, agent in agents.items()
    ]


def late_success(trace: Trace) -> NDArray[np.float64]:
    """Of the episodes that end in the last fifth of the steps, the share that reach the goal [seeds]."""
    assert trace.episode_rewards is not None
    ends = np.cumsum(trace.episode_steps, axis=1)
    late = (trace.episode_steps > 0) & (ends > 0.8 * trace.steps[:, None])
    return np.asarray((late & (trace.episode_rewards > 0)).sum(axis=1) / np.maximum(late.sum(axis=1), 1))


def goals(trace: Trace, steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Goals reached by each of the given steps [seeds, len(steps)]."""
    assert trace.episode_rewards is not None
    ends = np.where(trace.episode_rewards > 0, np.cumsum(trace.episode_steps, axis=1), np.inf)
    return np.array([np.searchsorted(np.sort(row), steps, side="right") for row in ends], np.float64)


def atari_settings(agent: str, frames: int, **changes: Any) -> DQN:
    """The paper's settings for its 10^8 frames; for less, a smaller network and schedules that fit into the budget."""
    if frames >= PAPER_FRAMES:
        at_paper: DQN = named(agent, preset="paper", **changes)
        return at_paper
    steps = frames // AtariTask.frame_skip
    schedule = {
        "learning_starts": min(50_000, steps // 20),
        "target_every": min(40_000, steps // 20),
        "epsilon_frames": min(10**6, frames // 10),
        "replay": min(10**6, 2 * steps),
    }
    s: DQN = named(agent, preset="nature", **schedule | changes)
    return s


def table_2(seeds: int, frames: int = SMALL_TIER) -> list[Run]:
    """Six games, five agents."""
    return [
        Run(game, agent, atari_settings(agent, frames), AtariTask(game), frames // AtariTask.frame_skip, seeds)
        for game, agent in paper.TABLE_2
    ]


def reconstruction(seeds: int, frames: int = SMALL_TIER) -> list[Run]:
    """The ablation of Appendix D: with and without the auxiliary task."""
    agents = {"dqn-sf-pf": atari_settings("dqn-sf-pf", frames)}
    for agent in ("dqn-sf-pf", "dqn-sr"):
        agents[f"{agent} reconstruction=False"] = atari_settings(agent, frames, reconstruction=False)
    steps = frames // AtariTask.frame_skip
    return [Run(RECON_GAME, name, agent, AtariTask(RECON_GAME), steps, seeds) for name, agent in agents.items()]


def score(trace: Trace) -> NDArray[np.float64]:
    """Mean reward of the last 100 episodes that ended [seeds]; not a number where none did."""
    assert trace.episode_rewards is not None
    found = []
    for steps, rewards in zip(trace.episode_steps, trace.episode_rewards, strict=True):
        ended = rewards[steps > 0][-100:]
        found.append(ended.mean() if len(ended) else np.nan)
    return np.array(found)


def network() -> "Mapping[str, NetworkLayer]":
    """The layers of the paper's network (Figure 2), for Atari."""
    from spie.agents.dqn.networks import layers  # loads torch

    return layers("paper", ATARI_SHAPE, actions=18)
