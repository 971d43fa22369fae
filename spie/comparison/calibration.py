"""What a random policy meets in an environment: the scale of its rewards, the size of each bonus and its cost."""

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spie.dropin.bonus import Bonus, env_name
from spie.dropin.environments import MadeTask, missing_bounds
from spie.dropin.scale import AverageReward
from spie.dropin.settings import Settings

STEPS = 2_000  # of random play: always as many, so that the same command finds the same betas


class BonusSize(NamedTuple):
    """A bonus as a random policy gets it."""

    rms: float
    seconds: float  # a step, of one core


class RandomStep(NamedTuple):
    """A step of the random policy; `first` where an episode began with it."""

    first: Any  # the observation before it, None within an episode
    action: Any
    observation: Any
    reward: float
    terminated: bool
    truncated: bool


@dataclass(frozen=True, eq=False)
class Calibration:
    """An environment as a random policy finds it."""

    task: MadeTask  # with bounds of its numbers
    observation_space: Any
    action_space: Any
    steps: list[RandomStep]
    scale: float  # the largest average of |reward| over 100 steps or so
    seen_reward: bool  # other than 0; else the scale is a guess
    episodes: int  # that ended
    reward: float  # an episode, on average; of all steps where none ended
    sizes: dict[str, BonusSize]  # by bonus

    def beta(self, reward: str, share: float) -> float:
        """What makes the bonus, in root mean square, that share of the scale of the environment's reward."""
        return float(f"{share * self.scale / (self.sizes[reward].rms or 1.0):.2g}")


def calibrate(task: MadeTask, seed: int = 0) -> Calibration:
    """Play at random; nothing is learned yet about any bonus."""
    env = task.make()
    env.action_space.seed(seed)
    steps: list[RandomStep] = []
    options: dict[str, Any] = {"seed": seed}
    first = None
    while len(steps) < STEPS:
        if first is None and (not steps or steps[-1].terminated or steps[-1].truncated):
            first, _ = env.reset(**options)
            options = {}
        action = env.action_space.sample()
        observation, r, terminated, truncated, _ = env.step(action)
        if not math.isfinite(float(r)):
            raise ValueError(f"{task.name}: the environment's own reward is {r} at step {len(steps) + 1}")
        steps.append(RandomStep(first, action, observation, float(r), bool(terminated), bool(truncated)))
        first = None
    env.close()
    bounds = missing_bounds(env.observation_space, [step.observation for step in steps])
    bounded = dataclasses.replace(task, bounds=bounds)
    average = AverageReward()
    for step in steps:
        average.observe([step.reward])
    returns = _returns(steps)
    rewards = [step.reward for step in steps]
    made = bounded.make()
    return Calibration(
        bounded,
        made.observation_space,
        made.action_space,
        steps,
        average.scale,
        any(rewards),
        len(returns),
        float(np.mean(returns)) if returns else float(np.sum(rewards)),
        {},
    )


def _returns(steps: Sequence[RandomStep]) -> list[float]:
    """Rewards of the episodes that ended."""
    found, total = [], 0.0
    for step in steps:
        total += step.reward
        if step.terminated or step.truncated:
            found.append(total)
            total = 0.0
    return found


def measure(calibration: Calibration, reward: str) -> BonusSize:
    """The size of a bonus on the steps of the random policy, and what it costs."""
    env = calibration.task.make()
    bonus = Bonus(env_name(env), calibration.observation_space, calibration.action_space, 1, Settings(reward))
    env.close()
    steps, squares, s = calibration.steps, 0.0, None
    most = len(steps) if reward != "rnd" else min(len(steps), 300)  # a millisecond or so a step
    began = time.process_time()
    for step in steps[:most]:
        if step.first is not None:
            s = bonus.encode(step.first)
            bonus.begin(0, s)
        bonus.step(0, step.action, bonus.encode(step.observation), step.terminated, step.reward)
        squares += bonus.raw[0] ** 2
    return BonusSize(math.sqrt(squares / most), (time.process_time() - began) / most)
