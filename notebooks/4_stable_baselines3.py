# %% [markdown]
# # A bonus in Stable-Baselines3
#
# MountainCar with a reward at the flag only. One line adds a bonus, another word the control that any bonus has to beat. So
# few steps find no flag, with or without a bonus (50,000 did not, either): this shows how things are put together.
# Needs `pip install "spie-rl[sb3]"`.

# %%
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import spie.sb3

STEPS, ENVS = 20_480, 8

# %% [markdown]
# `sf-pf` is SPIE where states cannot be counted: successor and predecessor features on 128 random Fourier features of
# position and speed. `beta` is its scale; `anneal` lets it fall to 0 in the course of the run.

# %%
models = {}
for reward in ("none", "sf-pf", "constant"):
    cars = make_vec_env("spie/SparseMountainCar-v0", n_envs=ENVS, seed=0)
    env = spie.sb3.IntrinsicReward(cars, reward, beta=0.01, anneal=STEPS)
    model = PPO("MlpPolicy", env, n_steps=256, batch_size=256, seed=0, device="cpu")
    models[reward] = model.learn(STEPS, callback=spie.sb3.LogIntrinsicReward())
    episodes = model.ep_info_buffer
    flags = sum(episode["r"] for episode in episodes)
    print(f"{reward:9} flag reached in {flags:.0f} of the last {len(episodes)} episodes")

# %% [markdown]
# The rewards of episodes in the log stay the environment's own; `LogIntrinsicReward` adds `intrinsic/raw_mean`,
# `intrinsic/beta` and others beside them. One seed decides nothing: this does the same with several seeds, chooses
# beta on some of them, judges on others, and says in sentences whether a bonus helped.
#
# ```
# spie compare --env spie/SparseMountainCar-v0 --agent ppo --steps 50000 --budget 30m
# ```
#
# ## What the bonus looks like
#
# The wrapper keeps what it learned. A bonus that no longer changes from step to step has nothing to say.

# %%
env = models["sf-pf"].get_env()
observations = env.reset()
for _ in range(3):
    actions, _ = models["sf-pf"].predict(observations)
    observations, rewards, dones, infos = env.step(actions)
print("bonus of the last step in each car:", [round(float(info["intrinsic_reward"]), 3) for info in infos])

# %% [markdown]
# ## Off-policy agents
#
# A DQN keeps steps for long, and a stored bonus goes stale. `spie.sb3.ReplayBuffer` stores the environment's reward and pays
# the bonus as of the moment when a batch is drawn: [use it in your code](../docs/dropin.md) has it. Next:
# [fitting behaviour](5_behaviour.py).
