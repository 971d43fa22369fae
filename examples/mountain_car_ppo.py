"""PPO of Stable-Baselines3 on MountainCar with a reward at the flag only, with and without SF-PF."""

import sys

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import spie.sb3

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000

for reward in ("none", "sf-pf"):
    env = make_vec_env("spie/SparseMountainCar-v0", n_envs=8, seed=0)
    env = spie.sb3.IntrinsicReward(env, reward, beta=0.01)
    model = PPO("MlpPolicy", env, n_steps=min(256, STEPS // 8), batch_size=min(256, STEPS // 8), seed=0, device="cpu")
    model.learn(STEPS, callback=spie.sb3.LogIntrinsicReward())  # intrinsic/... in the agent's log
    flags = sum(episode["r"] for episode in model.ep_info_buffer)  # rewards of episodes stay the environment's own
    print(f"{reward:6} flag reached in {flags:.0f} of the last {len(model.ep_info_buffer)} episodes")
