"""A trained agent at play: it acts, and learns nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from spie.agents.dqn.learner import Learner


@dataclass(frozen=True)
class PlayedStep:
    """A step of the first environment of the first lane."""

    frame: NDArray[np.uint8]  # [H, W] seen before it
    q: NDArray[np.float32]  # [A]
    action: int
    reward: float
    bonus: float  # raw
    predicted: NDArray[np.uint8] | None  # [H, W] the frame that the decoder expected after it
    over: bool


def play(learner: Learner, epsilon: float, rng: np.random.Generator) -> Iterator[PlayedStep]:
    """Act from the current state of the environment on, over and over."""
    learner.look_again()
    while True:
        with torch.no_grad(), learner.precision():
            phi = learner.online.phi(learner.images(learner.stacks))
            q = learner.online.q(phi)[0, 0].float().cpu().numpy()
        a = int(rng.integers(learner.actions)) if rng.random() < epsilon else int(q.argmax())
        frame = learner.stacks[0, 0, -1].copy()
        frames, reward, terminated, truncated, info = learner.env.step(np.array([a]))
        next_stacks = np.concatenate([learner.stacks[:, :, 1:], frames[None, :, None]], axis=2)
        states = learner.count(info, np.ones((1, 1), np.bool_))
        bonus = float(learner.collected_bonus(np.array([[a]]), next_stacks, states)[0, 0])
        learner.stacks = next_stacks
        predicted = None
        if learner.online.decoder is not None:
            with torch.no_grad(), learner.precision():
                expected = learner.online.decoder(phi, torch.tensor([[a]], device=learner.device))
            predicted = (255 * expected[0, 0].float()).clamp(0, 255).byte().cpu().numpy()
        over = bool(terminated[0] or truncated[0])
        yield PlayedStep(frame, q, a, float(reward[0]), bonus, predicted, over)
        if over:
            whole = np.ones(1, np.bool_)
            frames, info = learner.env.reset(options={"reset_mask": whole})
            learner.begin(frames, info, whole)
