"""How fast the deep agent is on this machine: `make bench-deep`, some minutes.

One process, one thread, CPU time; what is compared runs in turn, and the best time counts.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
import torch
from bench import race, spread, table
from stable_baselines3 import DQN as TheirDQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage
from torch.utils.flop_counter import FlopCounterMode

from spie.agents.dqn import products
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
from spie.agents.dqn.learner import Learner
from spie.tasks.atari import AtariTask, make_atari

GAME = "MontezumaRevenge"
TARGET_RATIO, TARGET_SHARE = 1.5, 0.75


class SingleGame(gym.Env[Any, Any]):
    """Our emulator as a plain environment, so that both agents play on the same one; frames [84, 84, 1]."""

    def __init__(self) -> None:
        self.env = make_atari(GAME)
        self.observation_space = gym.spaces.Box(0, 255, (84, 84, 1), np.uint8)
        self.action_space = self.env.single_action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        frames, info = self.env.reset(seed=seed)
        return frames[0, :, :, None], info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        frames, rewards, terminated, truncated, info = self.env.step(np.array([action]))
        return frames[0, :, :, None], float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info


def warmed(settings: DQN, steps: int, env: Any = None) -> Learner:
    """A learner with these steps in its replay, some of them in finished episodes, that may learn from now on."""
    learner = build(settings, env or make_atari(GAME), [0], 10**9, frame_skip=AtariTask.frame_skip)
    while learner.step < steps:
        learner.advance()
    learner.end_episodes()
    return learner


def against_stable_baselines3(steps: int = 200, rounds: int = 8) -> None:
    """Steps per second of DQN with the Nature network, ours over theirs: batch 32, an update every 4 steps, fp32."""
    warm = 1000
    shared: dict[str, Any] = {"batch": 32, "train_every": 4, "learning_starts": warm, "replay": 10_000}

    def ours(**options: Any) -> Callable[[], None]:
        settings = DQN(
            bonus="none", preset="nature", reconstruction=False, optimiser="adam", rate=1e-4, loss="huber",
            epsilon_frames=1, device="cpu", **shared, **options,
        )  # fmt: skip
        learner = warmed(settings, warm)

        def run() -> None:
            for _ in range(steps):
                learner.advance()

        return run

    env = VecTransposeImage(VecFrameStack(DummyVecEnv([SingleGame]), 4))
    theirs = TheirDQN(
        "CnnPolicy", env, learning_rate=1e-4, buffer_size=10_000, learning_starts=warm, batch_size=32, train_freq=4,
        target_update_interval=10_000, exploration_fraction=1e-6, exploration_final_eps=0.1, device="cpu",
    )  # fmt: skip
    theirs.learn(warm)

    runs: dict[str, Callable[[], Any]] = {
        "spie": ours(),
        "spie, products=onednn": ours(products="onednn"),
        "Stable-Baselines3": lambda: theirs.learn(steps, reset_num_timesteps=False),
    }
    times = race(runs, rounds)
    theirs_best = times["Stable-Baselines3"][0]
    rows = [
        (name, f"{steps / t[0]:.0f}", f"{1e3 * t[0] / steps:.2f}", spread(t), f"{theirs_best / t[0]:.2f}", TARGET_RATIO)
        for name, t in times.items()
    ]
    header = ("agent", "steps / s", "ms / step", "spread", "times SB3's steps", "at least")
    table(f"DQN on {GAME}, Nature network, update every 4 steps", header, *rows)


def paper_network(rounds: int = 10) -> None:
    """The share of the best rate of a product of two 1024 x 1024 that an update of the paper's network reaches.

    That is the better of torch's, by MKL, and oneDNN's: on AMD, MKL's is less than half of what the core can do.
    """
    learners = {
        name: warmed(DQN(learning_starts=10**6, replay=500, device="cpu", products=name), 100)
        for name in ("torch", "onednn")
    }
    # Torch counts its own products and not those that oneDNN does in their place.
    with FlopCounterMode(display=False) as counter, mock.patch.object(products, "has_onednn", return_value=False):
        learners["torch"].update()
    flops = counter.get_total_flops()
    a, b = torch.rand(2, 1024, 1024)
    runs: dict[str, Callable[[], Any]] = {name: learner.update for name, learner in learners.items()}
    times = race(runs, rounds)
    single = {"MKL": lambda: a @ b}
    if products.has_onednn():
        single["oneDNN"] = lambda: products._onednn(a, b, None)
    rates = {name: 2 * 1024**3 / seconds[0] for name, seconds in race(single, 60).items()}
    best = max(rates.values())
    said = ", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in rates.items())
    header = ("products by", "GFLOP", "ms", "spread", "GFLOP / s", "share", "at least")
    rows = []
    for name, seconds in times.items():
        rate = flops / seconds[0]
        row = (name, f"{flops / 1e9:.1f}", f"{1e3 * seconds[0]:.0f}", spread(seconds), f"{rate / 1e9:.0f}")
        rows.append((*row, f"{rate / best:.2f}", TARGET_SHARE))
    table(f"An update of DQN-SF-PF with the paper's network, batch 32; SGEMM, GFLOP / s: {said}", header, *rows)


def several_environments(rounds: int = 3) -> None:
    """What a step costs when bonus and actions of several environments are computed together; no updates in it."""
    counts = (1, 2, 4, 8)
    rows: list[tuple[Any, ...]] = [("environments", "ms per step of one", "of one environment's")]
    learners = {
        n: warmed(
            DQN(learning_starts=16, train_every=10**9, replay=500, envs=n, epsilon_frames=1, device="cpu"),
            16,
            make_atari(GAME, n),
        )
        for n in counts
    }

    def steps(n: int) -> None:
        for _ in range(16 // n):
            learners[n].advance()

    times = race({n: partial(steps, n) for n in counts}, rounds)
    for n, seconds in times.items():
        rows.append((n, f"{1e3 * seconds[0] / 16:.2f}", f"{seconds[0] / times[1][0]:.2f}"))
    table("DQN-SF-PF acting in several environments, the paper's network: action, emulator and bonus", *rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    paper_network()
    several_environments()
    against_stable_baselines3()
