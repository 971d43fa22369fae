"""Paths as datasets of Minari, an episode for each trial, and back: extra `minari`."""

from typing import Any

import numpy as np

from spie.behaviour.paths import Paths
from spie.behaviour.reading import Trial
from spie.tasks.mdp import MDP


def _minari() -> Any:
    try:
        import minari
    except ModuleNotFoundError:
        raise ImportError('datasets of Minari need minari: pip install "spie-rl[minari]"') from None
    return minari


def write_minari(paths: Paths, dataset_id: str) -> Any:
    """Paths as a new dataset on this machine: observations are states, and each trial is an episode.

    paths: of one maze, every action known; those of a run are `spie.Paths.from_trace(trace, maze)`.
    dataset_id: such as "maze/walks-v0". Returns the dataset. Raises ValueError for several mazes or unknown actions.
    """
    import gymnasium as gym

    minari = _minari()
    from minari.data_collector import EpisodeBuffer

    if len(paths.mazes) > 1:
        raise ValueError(f"{len(paths.mazes)} mazes; a dataset of Minari has one environment, so write them one by one")
    (maze,) = paths.mazes
    episodes = []
    for i, trial in enumerate(paths.trials):
        if (trial.actions < 0).any():
            step = int((trial.actions < 0).argmax()) + 1
            raise ValueError(
                f"{trial.at(step)}: its action is not known, and Minari keeps actions; leave the trial out"
            )
        n = len(trial.actions)
        ended = bool(maze.terminal[0, trial.states[-1]])
        last = np.arange(n) == n - 1
        episodes.append(
            EpisodeBuffer(
                id=i,
                observations=trial.states.astype(np.int64),
                actions=trial.actions.astype(np.int64),
                rewards=list(_rewards(trial, maze)),
                terminations=list(last & ended),
                truncations=list(last & (not ended)),
                infos=None,
            )
        )
    return minari.create_dataset_from_buffers(
        dataset_id,
        episodes,
        observation_space=gym.spaces.Discrete(maze.n_states),
        action_space=gym.spaces.Discrete(maze.n_actions),
        algorithm_name="spie",
        description=f"walks through {maze.name}, {len(paths.subjects)} subjects",
    )


def _rewards(trial: Trial, maze: MDP) -> Any:
    """What was paid; else what the maze pays for such a move."""
    if trial.rewards is not None:
        return trial.rewards
    s, a = trial.states[:-1], trial.actions
    leads = (maze.next[s, a] == trial.states[1:, None]) & (maze.prob[s, a] > 0)
    return maze.reward[0, s, a][np.arange(len(s)), leads.argmax(axis=1)]


def read_minari(dataset: Any, maze: MDP) -> Paths:
    """A dataset of Minari whose observations are states of a maze: one subject, a trial for each episode.

    dataset: its id, or itself. Raises ValueError where observations are not numbers of states, or moves not the maze's.
    """
    minari = _minari()
    found = minari.load_dataset(dataset) if isinstance(dataset, str) else dataset
    trials = []
    for i, episode in enumerate(found.iterate_episodes(), start=1):
        states = np.asarray(episode.observations)
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise ValueError(f"episode {i}: observations of shape {list(states.shape)} are no numbers of states")
        actions, rewards = np.asarray(episode.actions, np.int32), np.asarray(episode.rewards, np.float64)
        trials.append(Trial("1", "1", str(i), 0, states.astype(np.int32), actions, rewards))
    return Paths((maze,), tuple(trials))
