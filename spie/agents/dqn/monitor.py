"""How a training run stands: episodes as lines, curves for TensorBoard, a report now and then."""

import json
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spie.agents.dqn.learner import Learner
from spie.agents.dqn.parts import Episode


@dataclass(frozen=True)
class TrainingReport:
    """How a run stands."""

    step: int
    steps: int
    rate: float  # recent steps per second
    curves: dict[str, float]  # by TensorBoard's tag

    @property
    def seconds_left(self) -> float:
        return (self.steps - self.step) / self.rate if self.rate else float("inf")


class Pace:
    """Recent steps per second."""

    def __init__(self, step: int) -> None:
        self._times: deque[tuple[float, int]] = deque([(time.monotonic(), step)], maxlen=20)

    def at(self, step: int) -> float:
        self._times.append((time.monotonic(), step))
        began, first = self._times[0]
        return (step - first) / max(time.monotonic() - began, 1e-9)


@contextmanager
def monitor_file(path: Path, task: str, episodes: Sequence[Episode], written: int) -> Iterator[tuple[Any, int]]:
    """monitor.csv, cut back to the bytes that the checkpoint knew of, and how many there are now.

    It has Stable-Baselines3's columns, but t counts steps. Where it does not say what the checkpoint knows of the
    episodes, because there is none yet or it is damaged, it is written again.
    """
    header = json.dumps({"t_start": 0, "env_id": task, "t": "steps"})
    known = "".join([f"#{header}\nr,l,t\n", *map(line_of, episodes)])
    with open(path, "a+", newline="", errors="replace") as file:
        file.seek(0)
        if written == 0 or file.read(len(known)) != known:
            file.truncate(0)
            written = file.write(known)
        else:
            file.truncate(written)
        file.seek(0, os.SEEK_END)
        yield file, written


def line_of(episode: Episode) -> str:
    return f"{episode.reward:.10g},{episode.length},{episode.step}\n"


OF_BONUS = ("bonus", "scaled_bonus", "log_visits")  # drawn by their moments; all else that a learner notes as it is


def curves_of(learner: Learner, episodes: Sequence[Episode], rate: float) -> dict[str, float]:
    """What there is to draw now, by TensorBoard's tag: Stable-Baselines3's where it has one."""
    recent = {name: np.array(values) for name, values in learner.recent.items() if values}
    learner.recent.clear()
    curves = {"time/fps": rate, "rollout/exploration_rate": learner.epsilon}
    if episodes:
        last = episodes[-100:]
        curves["rollout/ep_rew_mean"] = float(np.mean([episode.reward for episode in last]))
        curves["rollout/ep_len_mean"] = float(np.mean([episode.length for episode in last]))
    if learner.updates:
        curves |= {"train/n_updates": learner.updates, "train/learning_rate": learner.settings.rate}
    for name, values in recent.items():
        if name not in OF_BONUS:
            curves[f"train/{name}"] = float(values.mean())
    if "bonus" in recent:
        bonus = recent["bonus"]
        curves |= {"intrinsic/raw_mean": float(bonus.mean()), "intrinsic/raw_std": float(bonus.std())}
        scaled = recent["scaled_bonus"]
        curves |= {"intrinsic/scaled_mean": float(scaled.mean()), "intrinsic/scaled_std": float(scaled.std())}
        if "log_visits" in recent and bonus.std() > 0 and recent["log_visits"].std() > 0:
            curves["intrinsic/log_visits_corr"] = float(np.corrcoef(bonus, recent["log_visits"])[0, 1])
    if learner.n_states:
        curves["explore/coverage"] = float((learner.first_visit >= 0).mean())
    return curves
