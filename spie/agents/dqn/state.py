"""All of a learner that changes, for checkpoints: weights as tensors, the rest as arrays and plain values."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spie.agents.dqn.learner import TENTHS, Learner
from spie.tasks import vector

_ARRAYS = "stacks starts reward length visits first_visit total_bonus first_reward loss_sums loss_counts".split()


def weights_of(learner: Learner) -> dict[str, NDArray[Any]]:
    """Weights of both networks, of the optimiser, of the bonus, and what it looks ahead with."""
    parts: dict[str, Mapping[str, Tensor]] = {
        "online": learner.online.state_dict(),
        "target": learner.target.state_dict(),
        "optimiser": learner.optimiser.state(),
        "bonus": {} if learner.bonus is None else learner.bonus.state(),
        "outlook": {} if learner.outlook is None else learner.outlook.state(),
    }
    tensors = {f"{part}.{name}": p for part, of_part in parts.items() for name, p in of_part.items()}
    return {name: p.detach().cpu().numpy() for name, p in tensors.items()}


def load_weights(learner: Learner, arrays: Mapping[str, NDArray[Any]]) -> None:
    """The inverse of `weights_of`."""
    parts: dict[str, dict[str, Tensor]] = {"online": {}, "target": {}, "bonus": {}, "optimiser": {}, "outlook": {}}
    for name, array in arrays.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = torch.tensor(array)
    learner.online.load_state_dict(parts["online"])
    learner.target.load_state_dict(parts["target"])
    learner.optimiser.load(parts["optimiser"])
    if learner.bonus is not None:
        learner.bonus.load(parts["bonus"])
    if learner.outlook is not None:
        learner.outlook.load(parts["outlook"])


def state_of(learner: Learner) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """All but the weights and the frames: arrays, and plain values."""
    arrays = {name: getattr(learner, name) for name in _ARRAYS}
    arrays |= {f"scale.{name}": array for name, array in learner.scale.arrays().items()}
    if learner.phi is not None:
        arrays["phi"] = learner.phi.cpu().numpy()
    values: dict[str, Any] = {"step": learner.step, "updates": learner.updates, "scale": learner.scale.count}
    values["random"] = [rng.bit_generator.state for rng in learner.rngs]
    values["replays"] = []
    for lane, replay in enumerate(learner.replays):
        replay_arrays, replay_values = replay.fields()
        arrays |= {f"replay{lane}.{name}": array for name, array in replay_arrays.items()}
        values["replays"].append(replay_values)
    if learner.env_is_saved:
        arrays |= {f"env.{name}": array for name, array in learner.env.get_state().items()}
    return arrays, values


def restore(
    learner: Learner,
    arrays: Mapping[str, NDArray[Any]],
    values: Mapping[str, Any],
    frames: Sequence[Path],
    segments: Sequence[Sequence[Mapping[str, Any]]],
) -> str:
    """The inverse of `state_of`, with the frames from a folder for each lane.

    Returns why the episodes under way could not be brought back, and new ones begin; empty where all is as it was.
    """
    for name in _ARRAYS:
        getattr(learner, name)[...] = arrays[name]
    for name, array in learner.scale.arrays().items():
        array[...] = arrays[f"scale.{name}"]
    learner.scale.count, learner.step, learner.updates = (int(values[name]) for name in ("scale", "step", "updates"))
    if learner.phi is not None:
        learner.phi.copy_(torch.from_numpy(arrays["phi"]))
    for rng, state in zip(learner.rngs, values["random"], strict=True):
        rng.bit_generator.state = state
    for lane, replay in enumerate(learner.replays):
        prefix = f"replay{lane}."
        fields = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        replay.restore(fields, values["replays"][lane], frames[lane], segments[lane])
    why = "this environment cannot be saved"
    if learner.env_is_saved:
        try:
            learner.env.set_state({name[4:]: array for name, array in arrays.items() if name.startswith("env.")})
            return ""
        except vector.CannotGoOnError as error:
            why = str(error)
    learner.end_episodes()
    frames_now, info = learner.env.reset()
    learner.begin(frames_now, info, np.ones(learner.env.num_envs, np.bool_))
    return why


def stretch_losses(learner: Learner, steps: int) -> None:
    """Move the losses of each tenth of a run of `steps` steps to the tenth of the learner's longer one around it."""
    if steps == learner.steps:
        return
    sums, counts = learner.loss_sums.copy(), learner.loss_counts.copy()
    learner.loss_sums[...], learner.loss_counts[...] = 0.0, 0
    for tenth in range(TENTHS):
        now = min((2 * tenth + 1) * steps // (2 * learner.steps), TENTHS - 1)  # where its middle lies
        learner.loss_sums[:, now] += sums[:, tenth]
        learner.loss_counts[now] += counts[tenth]
