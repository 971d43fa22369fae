"""Many seeds of a deep agent side by side in one process, and what they leave as a trace."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from spie.agents.dqn.learner import Episode, Learner, on_threads
from spie.agents.dqn.settings import DQN
from spie.engine.lanes import seed_array
from spie.trace import Trace


def run_stacked(
    settings: DQN,
    env: VectorEnv[Any, Any, Any],
    seeds: int | Sequence[int],
    steps: int,
    progress: Callable[[float], None] | None = None,
) -> Trace:
    """Run a seed on each copy of `env` for `steps` steps; a seed learns what it would learn alone.

    On one thread, so that a result does not depend on how many there are: small matrices gain nothing from a second.
    progress: called with the share that is done, a thousand times or less.
    """
    lanes = seed_array(seeds)
    episodes: list[list[Episode]] = [[] for _ in lanes]
    with on_threads(1):
        learner = Learner(settings, env, lanes.tolist(), steps)
        for ended in learner.loop():
            for episode in ended:
                episodes[episode.lane].append(episode)
            if progress is not None and learner.step % (steps // 1000 + 1) == 0:
                progress(min(1.0, learner.step / steps))
    return trace_of(learner, lanes, episodes)


def trace_of(learner: Learner, lanes: NDArray[np.int64], episodes: Sequence[Sequence[Episode]]) -> Trace:
    """What a learner leaves, given the seeds of its lanes and the episodes of each."""
    most = max(map(len, episodes))
    lengths, rewards = np.zeros((len(lanes), most), np.int32), np.zeros((len(lanes), most))
    for lane, ended in enumerate(episodes):
        lengths[lane, : len(ended)] = [episode.length for episode in ended]
        rewards[lane, : len(ended)] = [episode.reward for episode in ended]
    return Trace(
        seeds=lanes,
        total_reward=rewards.sum(axis=1) + learner.reward.sum(axis=1),
        total_bonus=learner.scale.mean * learner.scale.count * learner.envs,
        steps=np.full(len(lanes), learner.step),
        visits=learner.visits.astype(np.int32),
        first_visit=learner.first_visit.astype(np.int32),
        episode_steps=lengths,
        truncated=np.array([sum(not episode.terminal for episode in ended) for ended in episodes], np.int32),
        snapshots=np.zeros((len(lanes), 0, learner.n_states), np.int32),
        episode_rewards=rewards,
    )
