"""From settings to a learner: networks, optimiser, bonus and replays, each drawn from the seed of its lane."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spie.agents.dqn.bonuses import Scale, Surroundings, make_bonus
from spie.agents.dqn.hardware import check_bf16, device_of, keep_memory
from spie.agents.dqn.inverse import LearnedFeatures
from spie.agents.dqn.learner import Learner
from spie.agents.dqn.networks import Network, NetworkOptions, architecture
from spie.agents.dqn.optimisers import Adam, RMSprop
from spie.agents.dqn.outlook import FrameFeatures, LaneMatrices, Outlook
from spie.agents.dqn.parts import Parts
from spie.agents.dqn.products import check_onednn
from spie.agents.dqn.replay import FrameReplay
from spie.agents.dqn.settings import DQNSettings
from spie.tasks import vector
from spie.tasks.gymnasium import image_shape


def build(
    settings: DQNSettings,
    env: Any,
    seeds: Sequence[int],
    steps: int,
    *,
    frame_skip: int = 1,
    folder: Path | None = None,
) -> Learner:
    """A learner for some seeds, at the beginning of its first episodes.

    env: a VectorEnv with the environments of all seeds, seed by seed. steps: of each seed. folder: of a replay on disk.
    """
    keep_memory()
    shape, envs = image_shape(env), env.num_envs // len(seeds)
    device = device_of(settings.device)
    if settings.replay_on_disk and folder is None:
        raise ValueError("replay_on_disk needs a folder: give session=spie.Session(folder=...), or leave it off")
    if settings.precision == "bf16" and device == "cpu":
        check_bf16()
    if settings.products == "onednn":
        check_onednn(device, settings.precision)
    words = [np.random.SeedSequence(seed).generate_state(3, np.uint64) >> np.uint64(1) for seed in seeds]
    surroundings = Surroundings(settings, shape, [int(word[2]) for word in words], device, tiled=True)
    bonus = make_bonus(surroundings)
    uses = () if bonus is None else bonus.uses
    heads = [head for head, use in (("psi", "psi"), ("xi", "xi_next")) if use in uses]
    online, target = (_network(settings, env, shape, heads, words).to(device) for _ in range(2))
    target.decoder = None
    target.requires_grad_(False)
    on_disk = folder if settings.replay_on_disk else None
    replay: dict[str, Any] = {"envs": envs, "stack": settings.stack, "gamma": settings.gamma, "folder": on_disk}
    parts = Parts(
        env=env,
        online=online,
        target=target,
        optimiser=_optimiser(settings, online),
        bonus=bonus,
        scale=Scale(settings.scale, len(seeds), settings.offset, envs, settings.gamma_bonus),
        replays=[FrameReplay(settings.replay, shape, **replay) for _ in seeds],
        rngs=[np.random.default_rng(int(word[0])) for word in words],
        device=device,
        frame_skip=frame_skip,
        outlook=_outlook(surroundings, envs, int(env.single_action_space.n))
        if settings.potential or "novelty_next" in uses
        else None,
    )
    learner = Learner(settings, parts, steps)
    of_envs = [int(np.random.SeedSequence([seed, i]).generate_state(1)[0]) for seed in seeds for i in range(envs)]
    frames, info = env.reset(seed=of_envs)
    learner.begin(frames, info, np.ones(env.num_envs, np.bool_))
    return learner


def _outlook(around: Surroundings, envs: int, actions: int) -> Outlook:
    s, lanes = around.settings, len(around.seeds)
    own = dataclasses.replace(around, seeds=[seed ^ 1 for seed in around.seeds])  # another draw than that of a bonus
    features = FrameFeatures(own) if s.novelty_encoder == "untrained" else LearnedFeatures(own, actions)
    return Outlook(features, LaneMatrices(lanes, s.novelty_features, s.potential_gamma, around.device), envs)


def _network(
    settings: DQNSettings, env: Any, shape: tuple[int, int], heads: Sequence[str], words: Sequence[Any]
) -> Network:
    options = NetworkOptions(
        settings.relu_features,
        settings.deconv_relu,
        settings.value_heads == "two",
        vector.planes(env),
        settings.products == "onednn",
    )
    return Network(
        (settings.stack, *shape),
        int(env.single_action_space.n),
        architecture(settings.network),
        [torch.Generator().manual_seed(int(word[1])) for word in words],
        heads=heads,
        decoder=settings.reconstruction,
        psi_actions=settings.psi == "state-action",
        tiled=True,
        options=options,
    )


def _optimiser(settings: DQNSettings, network: Network) -> RMSprop | Adam:
    parameters = list(network.parameters())
    if settings.optimiser == "rmsprop":
        return RMSprop(parameters, settings.rate, settings.decay, settings.eps)
    return Adam(parameters, settings.rate, settings.eps)
