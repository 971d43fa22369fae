"""Intrinsic rewards in Stable-Baselines3: a wrapper of vector environments, a callback that logs, a replay buffer.

    env = spie.sb3.IntrinsicReward(make_vec_env("MountainCar-v0", 8), "sf-pf", beta=0.1)
    PPO("MlpPolicy", env).learn(100_000, callback=spie.sb3.LogIntrinsicReward())

An off-policy agent may keep the environment's own rewards and compute the bonus whenever a batch is drawn:

    model = DQN("MlpPolicy", env, replay_buffer_class=spie.sb3.ReplayBuffer)
    env.attach(model)  # again after DQN.load
"""

import time
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

try:
    from stable_baselines3 import DQN as PlainDQN
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.buffers import DictReplayBuffer as PlainDictReplayBuffer
    from stable_baselines3.common.buffers import ReplayBuffer as PlainReplayBuffer
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
    from stable_baselines3.common.policies import ActorCriticPolicy
    from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
    from stable_baselines3.common.vec_env import (
        DummyVecEnv,
        VecEnv,
        VecEnvWrapper,
        VecMonitor,
        VecNormalize,
        unwrap_vec_wrapper,
    )
except ImportError as error:
    raise ImportError('spie.sb3 needs Stable-Baselines3: pip install "spie-rl[sb3]"') from error

from spie.dropin.bonus import Bonus, WithBonus
from spie.dropin.gymnasium import IntrinsicReward as GymnasiumIntrinsicReward

NOT_ATTACHED = "spie.sb3.ReplayBuffer has no bonus: call env.attach(model) once the model is built or loaded"


class VecIntrinsicReward(WithBonus, VecEnvWrapper):
    """`spie.sb3.IntrinsicReward`: what `spie.IntrinsicReward` is for Gymnasium, with the same arguments.

    Agents learn on the sum of both rewards; rollout/ep_rew_mean stays the environment's own. Put it below VecNormalize
    and above VecMonitor; the other way round is refused where it can be seen.

    >>> import spie.sb3
    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = spie.sb3.IntrinsicReward(make_vec_env("MountainCar-v0", 2), "sf", beta=0.01)
    >>> env.reset().shape
    (2, 2)
    """

    began = 0.0  # when the environments were first reset
    intrinsic_reward: NDArray[np.float64]  # of each environment at the last step, before beta
    returns: NDArray[np.float64]  # of the episodes that are under way, without the bonus
    lengths: NDArray[np.int64]

    @staticmethod
    def _accepted(env: Any) -> Any:
        if not isinstance(env, VecEnv):
            raise ValueError(
                f"spie.sb3.IntrinsicReward wraps a VecEnv of Stable-Baselines3, not {type(env).__name__}; make one "
                "with make_vec_env or DummyVecEnv, or take spie.IntrinsicReward"
            )
        if unwrap_vec_wrapper(env, VecNormalize) is not None:
            raise ValueError(
                "spie.sb3.IntrinsicReward above VecNormalize would see rewards and observations that change their "
                "scale; write VecNormalize(spie.sb3.IntrinsicReward(env, ...))"
            )
        return env

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

    def follow(self, model: BaseAlgorithm) -> None:
        """Let psi look ahead by the policy that a model has at each step, instead of the mean over all actions."""
        if not isinstance(model, PlainDQN) and not isinstance(model.policy, ActorCriticPolicy):
            cure = "give policy=, a function of an observation that returns the chances of each action"
            raise ValueError(f"follow: the policy of {type(model).__name__} is not known; {cure}")
        self.bonus.follow(lambda observation: chances(model, observation))

    def attach(self, model: BaseAlgorithm) -> None:
        """Let the replay buffer of a model compute its bonuses here."""
        buffer = getattr(model, "replay_buffer", None)
        if not isinstance(buffer, _FreshBonus):
            raise ValueError(
                f"attach: {type(model).__name__} has no replay buffer of spie; build it with replay_buffer_class=spie."
                f"sb3.{_fresh_buffer(self.observation_space)}, or leave attach out"
            )
        if (n_steps := getattr(model, "n_steps", 1)) > 1:
            raise ValueError(f"attach: n_steps = {n_steps} has no effect with this replay buffer; use n_steps=1")
        check_order(model.env)
        buffer.bonus = self.bonus
        buffer.shapes = _shapes(self.observation_space)


def chances(model: BaseAlgorithm, observation: Any) -> NDArray[np.float64]:
    """With which a model takes each action in an observation of its environments, now, when it learns."""
    normalise = model.get_vec_normalize_env()
    seen, _ = model.policy.obs_to_tensor(observation if normalise is None else normalise.normalize_obs(observation))
    if isinstance(model.policy, ActorCriticPolicy):
        spread: Any = model.policy.get_distribution(seen).distribution
        found = spread.probs[0].detach().cpu().numpy().astype(np.float64)
        return np.asarray(found / found.sum())
    assert isinstance(model, PlainDQN)
    q = model.q_net(seen)[0].detach().cpu().numpy()
    epsilon = 1.0 if model.num_timesteps < model.learning_starts else model.exploration_rate
    found = np.full(len(q), epsilon / len(q))
    found[q.argmax()] += 1 - epsilon
    return found


def _fresh_buffer(space: gym.Space[Any]) -> str:
    return "DictReplayBuffer" if isinstance(space, gym.spaces.Dict) else "ReplayBuffer"


def _shapes(space: gym.Space[Any]) -> dict[str, tuple[int, ...] | None]:
    """Of an observation, or of each part of a Dict."""
    return {k: part.shape for k, part in space.items()} if isinstance(space, gym.spaces.Dict) else {"": space.shape}


def check_order(env: VecEnv | None) -> None:
    """Refuse a VecMonitor above the bonus: it would report the sum of both rewards as the environment's."""
    while isinstance(env, VecEnvWrapper) and not isinstance(env, VecIntrinsicReward):
        if isinstance(env, VecMonitor) and unwrap_vec_wrapper(env, VecIntrinsicReward) is not None:
            raise ValueError(
                "VecMonitor above spie.sb3.IntrinsicReward would report the sum of both rewards as the environment's; "
                "write spie.sb3.IntrinsicReward(VecMonitor(env), ...)"
            )
        env = env.venv


class _FreshBonus(PlainReplayBuffer):
    """Keeps the environment's own reward; the bonus is computed when a batch is drawn, by what is known by then."""

    bonus: Bonus | None = None  # given by `VecIntrinsicReward.attach`, like the shapes of what the environment shows
    shapes: dict[str, tuple[int, ...] | None]

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: list[dict[str, Any]]) -> None:
        if self.bonus is None:
            raise ValueError(NOT_ATTACHED)
        if not self.bonus.knows_episodes:  # else as it was paid: which episode it was, nobody can tell later
            reward = np.array([info["extrinsic_reward"] for info in infos])
        super().add(obs, next_obs, action, reward, done, infos)

    def _as_the_environment_shows(self, key: str, images: Any) -> Any:
        """Agents put the channels of an image first."""
        turned = images.ndim == 4 and images.shape[1:] != self.shapes[key]
        return np.moveaxis(images, 1, -1) if turned else images

    def _seen(self, stored: Any) -> Any:
        if isinstance(stored, dict):
            return {key: self._as_the_environment_shows(key, part) for key, part in stored.items()}
        return self._as_the_environment_shows("", stored)

    def _get_samples(self, batch_inds: NDArray[Any], env: VecNormalize | None = None) -> Any:
        if self.bonus is None:
            raise ValueError(NOT_ATTACHED)
        envs = np.random.randint(0, self.n_envs, len(batch_inds))  # noqa: NPY002 (the generator that agents seed)
        at, after = (batch_inds, envs), ((batch_inds + 1) % self.buffer_size, envs)
        obs, actions = _picked(self.observations, at), self.actions[at]
        reuses = self.optimize_memory_usage
        next_obs = _picked(self.observations, after) if reuses else _picked(self.next_observations, at)
        terminated = self.dones[at] * (1 - self.timeouts[at])
        rewards = self._rewards(at, obs, actions, next_obs, terminated)
        data: tuple[Any, ...] = (
            self._normalize_obs(obs, env),
            actions,
            self._normalize_obs(next_obs, env),
            terminated.reshape(-1, 1),
            self._normalize_reward(rewards.astype(np.float32).reshape(-1, 1), env),
        )
        if isinstance(obs, dict):
            return DictReplayBufferSamples(*map(self._tensors, data))
        return ReplayBufferSamples(*map(self._tensors, data))

    def _rewards(self, at: Any, obs: Any, actions: Any, next_obs: Any, terminated: Any) -> NDArray[np.float64]:
        """What the drawn steps pay [n], by now."""
        assert self.bonus is not None
        stored: NDArray[np.float64] = self.rewards[at].astype(np.float64)
        if self.bonus.knows_episodes:
            return stored
        fresh = self.bonus.query(self._seen(obs), actions[:, 0], self._seen(next_obs), terminated)
        return fresh if self.bonus.settings.replace else fresh + stored

    def _tensors(self, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: self.to_torch(part) for key, part in data.items()}
        return self.to_torch(data)

    def __getstate__(self) -> dict[str, Any]:
        """Without the bonus, which keeps its own state: `VecIntrinsicReward.save`."""
        return {name: value for name, value in self.__dict__.items() if name != "bonus"}


def _picked(stored: Any, at: tuple[NDArray[Any], NDArray[Any]]) -> Any:
    return {key: part[at] for key, part in stored.items()} if isinstance(stored, dict) else stored[at]


class ReplayBuffer(_FreshBonus):
    """For `replay_buffer_class=`: the bonus of a step is computed afresh whenever the step is drawn.

    >>> import spie.sb3
    >>> spie.sb3.ReplayBuffer(10, gym.spaces.Discrete(4), gym.spaces.Discrete(2), device="cpu").buffer_size
    10
    """

    def __init__(self, buffer_size: int, observation_space: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(observation_space, gym.spaces.Dict):
            raise ValueError("observations are a Dict; take replay_buffer_class=spie.sb3.DictReplayBuffer")
        super().__init__(buffer_size, observation_space, *arguments, **options)


class DictReplayBuffer(_FreshBonus, PlainDictReplayBuffer):
    """The same for observations that are a Dict.

    >>> import spie.sb3
    >>> space = gym.spaces.Dict(seen=gym.spaces.Box(0, 1, (3,)))
    >>> spie.sb3.DictReplayBuffer(10, space, gym.spaces.Discrete(2), device="cpu").buffer_size
    10
    """


class LogIntrinsicReward(BaseCallback):
    """Writes means of the bonus, its beta and explore/coverage to the agent's log.

    intrinsic/raw_mean is the bonus by its formula, scaled_mean as `normalise` and `ends` leave it, added_mean what was
    added to the reward: beta times that. Coverage is of tables.

    It finds `spie.sb3.IntrinsicReward`, or `spie.IntrinsicReward` in the environments of this process.

    >>> import spie.sb3
    >>> callback = spie.sb3.LogIntrinsicReward()  # model.learn(20_000, callback=callback)
    """

    def _on_training_start(self) -> None:
        check_order(self.training_env)
        found = unwrap_vec_wrapper(self.training_env, VecIntrinsicReward)
        self.bonuses = [found.bonus] if found is not None else _bonuses_below(self.training_env)
        if not self.bonuses:
            raise ValueError(
                "LogIntrinsicReward: the agent's environment has no spie.sb3.IntrinsicReward, and no "
                "spie.IntrinsicReward in this process"
            )
        off_policy = isinstance(self.model, OffPolicyAlgorithm)
        if off_policy and not isinstance(self.model.replay_buffer, _FreshBonus):  # type: ignore[attr-defined]
            warnings.warn(
                f"{type(self.model).__name__} keeps bonuses in its replay buffer, where they go stale; take "
                f"spie.sb3.IntrinsicReward and replay_buffer_class=spie.sb3."
                f"{_fresh_buffer(self.training_env.observation_space)}, then env.attach(model)",
                stacklevel=2,
            )

    def _on_step(self) -> bool:
        self.logger.record_mean("intrinsic/raw_mean", float(np.mean([bonus.raw for bonus in self.bonuses])))
        self.logger.record_mean("intrinsic/scaled_mean", float(np.mean([bonus.paid for bonus in self.bonuses])))
        added = [bonus.beta * np.asarray(bonus.paid) for bonus in self.bonuses]
        self.logger.record_mean("intrinsic/added_mean", float(np.mean(added)))
        self.logger.record("intrinsic/beta", float(np.mean([bonus.beta for bonus in self.bonuses])))
        coverage = float(np.mean([bonus.coverage for bonus in self.bonuses]))
        if not np.isnan(coverage):
            self.logger.record("explore/coverage", coverage)
        return True


def _bonuses_below(env: VecEnv) -> list[Bonus]:
    """Those of Gymnasium wrappers in the environments of this process."""
    while isinstance(env, VecEnvWrapper):
        env = env.venv
    found = []
    for one in env.envs if isinstance(env, DummyVecEnv) else ():
        while isinstance(one, gym.Wrapper):
            if isinstance(one, GymnasiumIntrinsicReward):
                found.append(one.bonus)
            one = one.env
    return found
