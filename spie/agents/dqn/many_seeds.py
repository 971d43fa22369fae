"""Many seeds of a deep agent: side by side in one process, and what they leave as a trace."""

import dataclasses
import functools
import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import changed
from spie.agents.dqn import checkpoint
from spie.agents.dqn.build import build
from spie.agents.dqn.cost import check_fits
from spie.agents.dqn.folder import locked
from spie.agents.dqn.hardware import on_threads
from spie.agents.dqn.learner import Learner
from spie.agents.dqn.parts import Episode
from spie.agents.dqn.settings import VERSION, DQNSettings
from spie.agents.dqn.state import load_weights, restore, state_of, weights_of
from spie.tasks.base import ImageTask
from spie.tasks.gymnasium import image_shape
from spie.trace import Trace, curve_of_episodes

PAUSE = 30.0  # seconds between two checkpoints, at least
PATIENCE = 20.0  # and as many times as long as one takes


def side_by_side(
    settings: DQNSettings,
    task: ImageTask,
    seeds: Sequence[int],
    steps: int,
    threads: int = 1,
    progress: Callable[[float], None] | None = None,
    folder: Path | None = None,
) -> Trace:
    """Run each seed for `steps` steps in environments of its own; a seed learns what it would learn alone.

    progress: called with the share that is done, a thousand times or less. folder: for checkpoints until it is done,
    from which a run that was killed goes on.
    """
    run = functools.partial(_attempt, settings, task, seeds, steps, threads, progress, folder)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with nullcontext() if folder is None else locked(folder):
        while (
            trace := run()
        ) is None:  # a checkpoint that could not be used is gone: from the one before, or the start
            pass
    return trace


def _attempt(
    settings: DQNSettings,
    task: ImageTask,
    seeds: Sequence[int],
    steps: int,
    threads: int,
    progress: Callable[[float], None] | None,
    folder: Path | None,
) -> Trace | None:
    """A run from its newest checkpoint on; None where half of one was restored and turned out to be of no use."""
    env = task.make(settings.envs * len(seeds))
    try:
        check_fits(settings, image_shape(env), steps, len(seeds))
        episodes: list[list[Episode]] = [[] for _ in seeds]
        with on_threads(threads):
            learner = build(settings, env, seeds, steps, frame_skip=task.frame_skip)
            kept = None
            if folder is not None and learner.env_is_saved:
                # By what differs from the defaults: an option that is added later leaves it the same run.
                known = [VERSION, changed(settings), task.digest, steps, list(seeds)]
                who = json.dumps(known, sort_keys=True, default=str)
                kept = LaneCheckpoints(folder / "lanes", learner, episodes, who)
                if not kept.restore():
                    return None
            for ended in learner.loop():
                for episode in ended:
                    episodes[episode.lane].append(episode)
                if kept is not None:
                    kept.save_now_and_then()
                if progress is not None and (learner.step % (steps // 1000 + 1) == 0 or learner.step >= steps):
                    progress(min(1.0, learner.step / steps))
        if kept is not None:
            shutil.rmtree(kept.folder, ignore_errors=True)
        return trace_of(learner, seeds, episodes)
    finally:
        env.close()


class LaneCheckpoints:
    """Checkpoints of seeds that run side by side: those of a single run, with a folder of frames for every lane."""

    def __init__(self, folder: Path, learner: Learner, episodes: list[list[Episode]], who: str) -> None:
        """who: all that determines the run."""
        self.folder, self.learner, self.episodes, self.who = folder, learner, episodes, who
        self.frames = [folder / f"frames-{lane}" for lane in range(learner.lanes)]
        self._saved, self._pause = time.monotonic(), PAUSE

    def restore(self) -> bool:
        """Back to the newest checkpoint that can be read, or to the start.

        False where the learner is left with half of one, which is gone then; or with all but the episodes under way,
        and then all are gone: a run of several seeds comes out as if unbroken, or begins again.
        """
        for path in checkpoint.checkpoints(self.folder):
            try:
                content = checkpoint.load(path)
            except checkpoint.NewerError:
                raise
            except checkpoint.CheckpointError:
                checkpoint.discard(path)
                continue
            if content.values["who"] != self.who:
                raise ValueError(f"{self.folder.parent} holds another run; give another folder")
            try:
                load_weights(self.learner, content.weights)
                why = restore(self.learner, content.arrays, content.values, self.frames, content.values["segments"])
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError):
                checkpoint.discard(path)
                return False
            if why:
                shutil.rmtree(self.folder)
                return False
            for a, b, c, r, d, e in content.arrays["episodes"].tolist():
                self.episodes[int(a)].append(Episode(int(a), int(b), int(c), r, int(d), bool(e)))
            return True
        return True

    def save_now_and_then(self) -> None:
        """Twice a minute, or less often where that would take more than a twentieth of the time."""
        began = time.monotonic()
        if began - self._saved < self._pause:
            return
        arrays, values = state_of(self.learner)
        segments = [
            replay.save_frames(frames) for replay, frames in zip(self.learner.replays, self.frames, strict=True)
        ]
        rows = [dataclasses.astuple(episode) for ended in self.episodes for episode in ended]
        arrays["episodes"] = np.array(rows, np.float64).reshape(-1, 6)
        content = checkpoint.Checkpoint(
            weights_of(self.learner), arrays, values | {"segments": segments, "who": self.who}
        )
        checkpoint.save(self.folder, self.learner.step, content, self.frames[0])
        self._saved = time.monotonic()
        self._pause = max(PAUSE, PATIENCE * (self._saved - began))


def trace_of(learner: Learner, seeds: Sequence[int], episodes: Sequence[Sequence[Episode]]) -> Trace:
    """What a learner leaves, given the seeds of its lanes and the episodes of each."""
    most = max(map(len, episodes))
    lengths, rewards = np.zeros((len(seeds), most), np.int32), np.zeros((len(seeds), most))
    for lane, ended in enumerate(episodes):
        lengths[lane, : len(ended)] = [episode.length for episode in ended]
        rewards[lane, : len(ended)] = [episode.reward for episode in ended]
    totals = rewards.sum(axis=1) + learner.reward.sum(axis=1)
    curves = [
        curve_of_episodes([e.step for e in ended], [e.reward for e in ended], learner.step, total)
        for ended, total in zip(episodes, totals.tolist(), strict=True)
    ]
    return Trace(
        seeds=np.array(seeds, np.int64),
        total_reward=totals,
        total_bonus=learner.total_bonus.copy(),
        steps=np.full(len(seeds), learner.step),
        visits=learner.visits.astype(np.int32),
        first_visit=learner.first_visit.astype(np.int32),
        episode_steps=lengths,
        truncated=np.array([sum(not episode.terminal for episode in ended) for ended in episodes], np.int32),
        snapshots=np.zeros((len(seeds), 0, learner.n_states), np.int32),
        episode_rewards=rewards,
        first_reward=learner.first_reward.copy(),
        losses=_mean_losses(learner),
        reward_curve=np.array(curves),
    )


def _mean_losses(learner: Learner) -> NDArray[np.float64]:
    """Means of each tenth of the run, unweighted; not a number where there is no such loss or was no update."""
    counts = np.where(learner.loss_counts, learner.loss_counts, np.nan)
    means = learner.loss_sums / counts[:, None]
    there = [True, learner.online.psi is not None, learner.online.xi is not None, learner.online.decoder is not None]
    return np.where(there, means, np.nan)
