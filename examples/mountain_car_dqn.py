"""DQN of Stable-Baselines3 on the same car; replay pays the bonus of today, not of the day a step was stored."""

import sys
import tempfile
from pathlib import Path

from stable_baselines3 import DQN
from stable_baselines3.common.env_util import make_vec_env

import spie.sb3

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
BUFFER = {"replay_buffer_class": spie.sb3.ReplayBuffer, "buffer_size": STEPS}

for reward in ("none", "sf-pf", "count"):
    env = spie.sb3.IntrinsicReward(make_vec_env("spie/SparseMountainCar-v0", seed=0), reward, beta=0.01, anneal=STEPS)
    model = DQN("MlpPolicy", env, learning_rate=1e-3, learning_starts=STEPS // 20, seed=0, device="cpu", **BUFFER)
    env.attach(model)  # once the model is built
    model.learn(STEPS)
    flags = sum(episode["r"] for episode in model.ep_info_buffer)
    print(f"{reward:6} flag reached in {flags:.0f} of {len(model.ep_info_buffer)} episodes")

with tempfile.TemporaryDirectory() as folder:  # stop today, go on tomorrow: the model and the bonus are two files
    model.save(Path(folder, "model"))
    env.save(Path(folder, "bonus"))
    env.load(Path(folder, "bonus"))
    model = DQN.load(Path(folder, "model"), env=env)
    env.attach(model)
    model.learn(STEPS // 10)
