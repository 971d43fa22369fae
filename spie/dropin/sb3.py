"""Intrinsic rewards in Stable-Baselines3: a wrapper of vector environments, a callback that logs, a replay buffer.

    env = spie.sb3.IntrinsicReward(make_vec_env("MountainCar-v0", 8), "sf-pf", beta=0.1)
    PPO("MlpPolicy", env).learn(100_000, callback=spie.sb3.LogIntrinsicReward())

An off-policy agent may keep the environment's own rewards and compute the bonus whenever a batch is drawn:

    model = DQN("MlpPolicy", env, replay_buffer_class=spie.sb3.ReplayBuffer)
    env.attach(model)  # again after DQN.load
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    from stable_baselines3 import DQN as PlainDQN
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.buffers import ReplayBuffer as PlainReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.type_aliases import ReplayBufferSamples
    from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper, VecNormalize, unwrap_vec_wrapper
except ImportError as error:
    raise ImportError('spie.sb3 needs Stable-Baselines3: pip install "spie-rl[sb3]"') from error

from spie.dropin.bonus import Bonus, WithBonus

NOT_ATTACHED = "spie.sb3.ReplayBuffer has no bonus: call env.attach(model) once the model is built or loaded"


class VecIntrinsicReward(WithBonus, VecEnvWrapper):
    """`spie.sb3.IntrinsicReward`: what `spie.IntrinsicReward` is for Gymnasium, with the same arguments.

    Agents learn on the sum of both rewards; rollout/ep_rew_mean stays the environment's own. Put it below VecNormalize
    and other wrappers that change observations or rewards.
    """

    began = 0.0  # when the environments were first reset
    intrinsic_reward: NDArray[np.float64]  # of each environment at the last step, before beta
    returns: NDArray[np.float64]  # of the episodes that are under way, without the bonus
    lengths: NDArray[np.int64]

    def _spaces(self) -> tuple[Any, Any, int]:
        return self.observation_space, self.action_space, self.num_envs

    def reset(self) -> Any:
        observations = self.venv.reset()
        for i, s in enumerate(self.bonus.encode_all(observations, self.num_envs)):
            self.bonus.begin(i, s)
        self.intrinsic_reward, self.returns = np.zeros((2, self.num_envs))
        self.lengths = np.zeros(self.num_envs, np.int64)
        self.began = self.began or time.time()
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        self.taken = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        observations, rewards, dones, infos = self.venv.step_wait()
        bonus, envs = self.bonus, range(self.num_envs)
        now = bonus.encode_all(observations, self.num_envs)
        next_states = [bonus.encode(infos[i]["terminal_observation"]) if dones[i] else now[i] for i in envs]
        terminated = [bool(dones[i]) and not infos[i].get("TimeLimit.truncated", False) for i in envs]
        paid = bonus.steps_of(envs, list(self.taken), next_states, terminated, rewards.tolist())
        self.intrinsic_reward = np.array(paid)
        self.returns += rewards
        self.lengths += 1
        totals = np.empty(self.num_envs, np.float32)
        told = []
        for i, (r, r_int) in enumerate(zip(rewards.tolist(), self.intrinsic_reward.tolist(), strict=True)):
            totals[i] = bonus.total(r, r_int)
            told.append({**infos[i], **bonus.told, "extrinsic_reward": r, "intrinsic_reward": r_int})
            if dones[i]:
                bonus.begin(i, now[i])
                elapsed = round(time.time() - self.began, 6)
                episode = {"r": float(self.returns[i]), "l": int(self.lengths[i]), "t": elapsed}
                told[i].setdefault("episode", episode)  # a Monitor below has written its own
                self.returns[i] = self.lengths[i] = 0
        return observations, totals, dones, told

    def attach(self, model: BaseAlgorithm) -> None:
        """Let the replay buffer of a model compute its bonuses here."""
        buffer = getattr(model, "replay_buffer", None)
        if not isinstance(buffer, ReplayBuffer):
            raise ValueError(
                f"attach: {type(model).__name__} has no replay buffer of spie; "
                "build it with replay_buffer_class=spie.sb3.ReplayBuffer, or leave attach out"
            )
        if (n_steps := getattr(model, "n_steps", 1)) > 1:
            raise ValueError(f"attach: n_steps = {n_steps} has no effect with this replay buffer; use n_steps=1")
        buffer.bonus = self.bonus
        buffer.transposed = len(buffer.obs_shape) == 3 and buffer.obs_shape != self.observation_space.shape


class ReplayBuffer(PlainReplayBuffer):
    """Keeps the environment's own reward; the bonus is computed when a batch is drawn, by what is known by then."""

    bonus: Bonus | None = None  # given by `VecIntrinsicReward.attach`
    transposed = False  # agents put the channels of an image first

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]) -> None:
        if self.bonus is None:
            raise ValueError(NOT_ATTACHED)
        super().add(obs, next_obs, action, np.array([info["extrinsic_reward"] for info in infos]), done, infos)

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> ReplayBufferSamples:
        if self.bonus is None:
            raise ValueError(NOT_ATTACHED)
        envs = np.random.randint(0, self.n_envs, len(batch_inds))  # noqa: NPY002 (the generator that agents seed)
        at, after = (batch_inds, envs), ((batch_inds + 1) % self.buffer_size, envs)
        obs, actions = self.observations[at], self.actions[at]
        next_obs = self.observations[after] if self.optimize_memory_usage else self.next_observations[at]
        seen = [np.moveaxis(images, 1, -1) if self.transposed else images for images in (obs, next_obs)]
        rewards = self.bonus.query(seen[0], actions[:, 0], seen[1])
        if not self.bonus.settings.replace:
            rewards += self.rewards[at]
        data = (
            self._normalize_obs(obs, env),
            actions,
            self._normalize_obs(next_obs, env),
            (self.dones[at] * (1 - self.timeouts[at])).reshape(-1, 1),
            self._normalize_reward(rewards.astype(np.float32).reshape(-1, 1), env),
        )
        return ReplayBufferSamples(*map(self.to_torch, data))

    def __getstate__(self) -> dict[str, Any]:
        """Without the bonus, which keeps its own state: `VecIntrinsicReward.save`."""
        return {name: value for name, value in self.__dict__.items() if name != "bonus"}


class LogIntrinsicReward(BaseCallback):
    """Writes intrinsic/raw_mean, intrinsic/scaled_mean, intrinsic/beta and explore/coverage to the agent's log."""

    def _on_training_start(self) -> None:
        found = unwrap_vec_wrapper(self.training_env, VecIntrinsicReward)
        if found is None:
            raise ValueError("LogIntrinsicReward: the agent's environment has no spie.sb3.IntrinsicReward")
        self.wrapper: VecIntrinsicReward = found

    def _on_step(self) -> bool:
        bonus = self.wrapper.bonus
        self.logger.record_mean("intrinsic/raw_mean", float(np.mean(bonus.raw)))
        self.logger.record_mean("intrinsic/scaled_mean", float(np.mean(self.wrapper.intrinsic_reward)))
        self.logger.record("intrinsic/beta", bonus.beta)
        if not np.isnan(bonus.learner.coverage):
            self.logger.record("explore/coverage", bonus.learner.coverage)
        return True


def dqn_with_bonus(make: Callable[[], Any], reward: str, beta: float, anneal: int | None, **settings: Any) -> PlainDQN:
    """DQN of Stable-Baselines3 on one environment, with a bonus that is computed afresh whenever a batch is drawn.

    anneal: in how many steps beta falls to 0. settings: of DQN.
    """
    env = VecIntrinsicReward(DummyVecEnv([make]), reward, beta, anneal=anneal)
    model = PlainDQN("MlpPolicy", env, replay_buffer_class=ReplayBuffer, **settings)
    env.attach(model)
    return model


class OurLayers(BaseFeaturesExtractor):
    """The layers of `spie.DQN` up to its features phi, for an agent of Stable-Baselines3 (whose own need 36 x 36)."""

    def __init__(self, observation_space: Any, network: str, seed: int) -> None:
        from spie.agents.dqn.networks import LoneEncoder

        encoder = LoneEncoder(observation_space.shape, network, seed)
        super().__init__(observation_space, encoder.features)
        self.layers = encoder

    def forward(self, observations: Any) -> Any:
        return self.layers(observations)


def image_dqn(make: Callable[[], Any], network: str, seed: int, **settings: Any) -> PlainDQN:
    """DQN of Stable-Baselines3 on one environment of images [channels, H, W], with the layers of `spie.DQN`.

    settings: of DQN.
    """
    layers = {"features_extractor_class": OurLayers, "features_extractor_kwargs": {"network": network, "seed": seed}}
    policy = layers | {"net_arch": [], "optimizer_kwargs": {"eps": settings.pop("eps")}}
    return PlainDQN("CnnPolicy", DummyVecEnv([make]), policy_kwargs=policy, seed=seed, device="cpu", **settings)
