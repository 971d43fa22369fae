"""How large a bonus is beside the environment's own reward: `beta="auto"`, and an account of what was paid."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

HORIZON = 100  # steps that the average of |r| looks back over
UNSEEN = 0.01  # the scale as long as every reward was 0: a goal of 1 within HORIZON steps has just this average
LAST_REWARD = 1_000  # the scale of the reward is final after that many steps with a reward other than 0
LAST_STEP = 10_000  # the size of the bonus is final after that many steps


class AverageReward:
    """The largest average of |r| so far, over the last HORIZON steps or so: what a step is worth here.

    A goal of 1 gives .01, a cost of 1 a step gives 1. It only grows, and is final after LAST_REWARD rewards.
    """

    def __init__(self) -> None:
        self.average = self.largest = 0.0
        self.rewards = 0  # steps on which one was other than 0

    @property
    def scale(self) -> float:
        return self.largest or UNSEEN

    def observe(self, rewards: Sequence[float]) -> None:
        """Rewards of environments that run side by side."""
        self.average += (math.fsum(map(abs, rewards)) / len(rewards) - self.average) / HORIZON
        if self.rewards < LAST_REWARD:
            self.largest = max(self.largest, self.average)
            self.rewards += any(r != 0 for r in rewards)


class AutoBeta:
    """A beta by which the bonus is, in root mean square, as large as the average reward of the environment.

    reward_scale: what to take for that average; without it the one seen so far, UNSEEN before any.
    """

    def __init__(self, reward_scale: float | None) -> None:
        self.given = reward_scale
        self.reward = AverageReward()
        self.steps, self.sum_of_squares = 0, 0.0  # of bonuses

    def observe(self, rewards: Sequence[float], bonuses: Sequence[float]) -> None:
        """Steps of environments side by side."""
        self.reward.observe(rewards)
        if self.steps < LAST_STEP:
            self.steps += len(bonuses)
            self.sum_of_squares += math.fsum(r_int * r_int for r_int in bonuses)

    @property
    def beta(self) -> float:
        """Never 0, infinite or NaN."""
        scale = self.reward.scale if self.given is None else self.given
        size = math.sqrt(self.sum_of_squares / self.steps) if self.sum_of_squares > 0 else 1.0
        return min(max(scale / size, sys.float_info.min), sys.float_info.max)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What changes."""
        numbers = (self.reward.average, self.reward.largest, self.reward.rewards, self.steps, self.sum_of_squares)
        return {"auto_beta": np.array(numbers, np.float64)}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Take over what `arrays` gave."""
        average, largest, rewards, steps, self.sum_of_squares = arrays["auto_beta"].tolist()
        self.reward.average, self.reward.largest, self.reward.rewards = average, largest, int(rewards)
        self.steps = int(steps)


class Account:
    """What a bonus paid beside the environment's own rewards, summed up step by step."""

    def __init__(self) -> None:
        self.steps = self.positive = self.negative = self.outweighed = 0
        self.total = self.squares = 0.0

    @property
    def numbers(self) -> list[float]:
        """As `spie.trace.ACCOUNT` names them."""
        return [self.steps, self.positive, self.negative, self.outweighed, self.total, self.squares]

    def note(self, r: float, paid: float) -> None:
        """A step that the environment paid r for, and the bonus `paid`, beta in it."""
        self.steps += 1
        self.total += paid
        self.squares += paid * paid
        if paid > 0:
            self.positive += 1
        elif paid < 0:
            self.negative += 1
        if abs(paid) > abs(r):
            self.outweighed += 1
