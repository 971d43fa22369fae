"""MountainCar and a pendulum, each with a reward at its goal alone."""

import math
from typing import Any

from spie.tasks.continuous import ContinuousTask
from spie.tasks.registry import register_task


def drive(x: Any, a: int) -> tuple[float, bool]:
    """One step of the car: the dynamics of Gymnasium's MountainCar-v0; it pays 1 at the flag and else nothing."""
    position, velocity = x[0], x[1]
    velocity += (a - 1) * 0.001 + math.cos(3 * position) * (-0.0025)
    velocity = min(max(velocity, -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.6)
    if position == -1.2 and velocity < 0.0:
        velocity = 0.0
    x[0], x[1] = position, velocity
    at_flag = position >= 0.5 and velocity >= 0.0
    return (1.0 if at_flag else 0.0), at_flag


@register_task("mountain-car", "continuous", gymnasium="SparseMountainCar", max_steps=1000)
def mountain_car() -> ContinuousTask:
    """Sparse MountainCar (Figure 4): the motor is too weak for the hill, and nothing is paid until the flag.

    >>> car = spie.mountain_car()
    >>> car.n_actions, [float(x) for x in car.low]
    (3, [-1.2, -0.07])
    """
    return ContinuousTask(
        "mountain-car",
        low=(-1.2, -0.07),
        high=(0.6, 0.07),
        actions=("left", "coast", "right"),
        start_low=(-0.6, 0.0),
        start_high=(-0.4, 0.0),
        step=drive,
        labels=("position", "velocity"),
        view=((-1.2, 0.6), (-0.07, 0.07)),
    )


def swing(x: Any, a: int) -> tuple[float, bool]:
    """One step of the pendulum: Gymnasium's Pendulum-v1 under a torque of -2, 0 or 2; it pays 1 upright and slow."""
    angle, speed = x[0], x[1]
    speed += (3 * 10.0 / (2 * 1.0) * math.sin(angle) + 3.0 / (1.0 * 1.0**2) * (2.0 * (a - 1))) * 0.05
    speed = min(max(speed, -8.0), 8.0)
    angle += speed * 0.05
    x[0], x[1] = angle, speed
    is_up = math.cos(angle) > 0.95 and abs(speed) < 1.0
    return (1.0 if is_up else 0.0), is_up


def see_pendulum(x: Any, observation: Any) -> None:
    """Where its tip is and how fast it turns."""
    observation[0], observation[1], observation[2] = math.cos(x[0]), math.sin(x[0]), x[1]


@register_task("pendulum", "continuous", gymnasium="SparsePendulum", max_steps=200)
def pendulum() -> ContinuousTask:
    """A pendulum to be swung up and held slow, which its torque can do only by swinging; it starts at the bottom.

    >>> spie.pendulum().n_actions
    3
    """
    return ContinuousTask(
        "pendulum",
        low=(-1.0, -1.0, -8.0),
        high=(1.0, 1.0, 8.0),
        actions=("left", "none", "right"),
        start_low=(math.pi - 0.1, -0.1),
        start_high=(math.pi + 0.1, 0.1),
        step=swing,
        observe=see_pendulum,
        labels=("angle", "speed"),
        view=((-math.pi, math.pi), (-8.0, 8.0)),
    )
