"""How fast the deep agent is on this machine: `make bench-deep`, some minutes.

One process, one thread, CPU time; what is compared runs in turn, and the best time counts.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from bench import race, spread, table
from stable_baselines3 import DQN as TheirDQN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecTransposeImage
from torch.utils.flop_counter import FlopCounterMode

from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
from spie.agents.dqn.learner import Learner
from spie.tasks.atari import AtariTask, make_atari

GAME = "MontezumaRevenge"
TARGET_RATIO, TARGET_SHARE = 1.3, 0.65


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


def paper_network(rounds: int = 15, **settings: Any) -> float:
    """The share of the best 1024^3 SGEMM rate that an update of the paper's network reaches."""
    learner = warmed(DQN(learning_starts=10**6, replay=500, device="cpu", **settings), 100)
    with FlopCounterMode(display=False) as counter:
        learner.update()
    flops = counter.get_total_flops()
    a, b = torch.rand(2, 1024, 1024)
    times = race({"update": learner.update, "SGEMM": lambda: a @ b}, rounds)
    for _ in range(50):  # it is over in 15 ms: more chances for its best
        begin = time.process_time()
        a @ b
        times["SGEMM"].append(time.process_time() - begin)
    best = 2 * 1024**3 / min(times["SGEMM"])
    rate = flops / times["update"][0]
    table(
        "An update of DQN-SF-PF with the paper's network, batch 32",
        ("GFLOP", "ms", "spread", "GFLOP / s", "SGEMM GFLOP / s", "share", "target"),
        (
            f"{flops / 1e9:.1f}",
            f"{1e3 * times['update'][0]:.0f}",
            spread(times["update"]),
            f"{rate / 1e9:.0f}",
            f"{best / 1e9:.0f}",
            f"{rate / best:.2f}",
            TARGET_SHARE,
        ),
    )
    return rate / best


if __name__ == "__main__":
    torch.set_num_threads(1)
    paper_network()
    against_stable_baselines3()
