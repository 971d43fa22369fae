"""MountainCar, a pendulum and Acrobot, each with a reward at its goal alone."""

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


def swing_two(x: Any, a: int) -> tuple[float, bool]:
    """One step of two links: Gymnasium's Acrobot-v1 under a torque of -1, 0 or 1 between them; it pays 1 at the top.

    Lengths and masses are 1, so are the moments of inertia about the middle of each link; g = 9.8. A step takes .2
    seconds, by one step of Runge and Kutta: h is how far along the last slope each of its four slopes is taken.
    """
    angle1, angle2, speed1, speed2 = 0.0, 0.0, 0.0, 0.0
    turn1, turn2, pull1, pull2 = 0.0, 0.0, 0.0, 0.0  # the four slopes, weighted 1, 2, 2, 1 and summed up
    force1, force2 = 0.0, 0.0  # accelerations
    for k in range(4):
        h, weight = (0.0 if k == 0 else 0.2 if k == 3 else 0.1), (2.0 if k == 1 or k == 2 else 1.0)
        angle1, angle2 = x[0] + h * speed1, x[1] + h * speed2
        speed1, speed2 = x[2] + h * force1, x[3] + h * force2
        bend = math.sin(angle2)
        inertia, coupling = 3.5 + math.cos(angle2), 1.25 + 0.5 * math.cos(angle2)
        weight2 = 4.9 * math.sin(angle1 + angle2)  # what gravity does to the second link, and to both
        weight1 = 14.7 * math.sin(angle1) + weight2 - (0.5 * speed2 + speed1) * speed2 * bend
        force2 = a - 1 + coupling / inertia * weight1 - 0.5 * speed1 * speed1 * bend - weight2
        force2 /= 1.25 - coupling * coupling / inertia
        force1 = -(coupling * force2 + weight1) / inertia
        turn1, turn2 = turn1 + weight * speed1, turn2 + weight * speed2
        pull1, pull2 = pull1 + weight * force1, pull2 + weight * force2
    angle1, angle2 = x[0] + 0.2 / 6 * turn1, x[1] + 0.2 / 6 * turn2
    x[0] = angle1 - 2 * math.pi * math.floor((angle1 + math.pi) / (2 * math.pi))
    x[1] = angle2 - 2 * math.pi * math.floor((angle2 + math.pi) / (2 * math.pi))
    x[2] = min(max(x[2] + 0.2 / 6 * pull1, -4 * math.pi), 4 * math.pi)
    x[3] = min(max(x[3] + 0.2 / 6 * pull2, -9 * math.pi), 9 * math.pi)
    is_up = -math.cos(x[0]) - math.cos(x[1] + x[0]) > 1.0
    return (1.0 if is_up else 0.0), is_up


@register_task("acrobot", "continuous", gymnasium="SparseAcrobot", max_steps=500)
def acrobot() -> ContinuousTask:
    """Two links that hang down and are to be swung up by a weak motor between them; nothing is paid until then.

    What is seen are both angles, from -pi to pi, and their speeds.

    >>> spie.acrobot().n_actions
    3
    """
    return ContinuousTask(
        "acrobot",
        low=(-math.pi, -math.pi, -4 * math.pi, -9 * math.pi),
        high=(math.pi, math.pi, 4 * math.pi, 9 * math.pi),
        actions=("left", "none", "right"),
        start_low=(-0.1,) * 4,
        start_high=(0.1,) * 4,
        step=swing_two,
        labels=("first angle", "second angle"),
        view=((-math.pi, math.pi), (-math.pi, math.pi)),
    )
