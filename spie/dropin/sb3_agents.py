"""Agents of Stable-Baselines3, and those that a user makes, trained on an environment with a bonus."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym

try:
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim, is_image_space
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize
except ImportError as error:
    raise ImportError('agents of Stable-Baselines3 need it: pip install "spie-rl[sb3]"') from error

from spie.dropin.environments import named_function
from spie.dropin.sb3 import DictReplayBuffer, ReplayBuffer, VecIntrinsicReward
from spie.dropin.scale import Account
from spie.dropin.settings import Beta
from spie.dropin.spaces import leaves
from spie.dropin.training import BARE, Log, Played, options_of, with_bonus

LEAST_SIDE = 36  # of an image that a convolutional network reads; smaller ones are rows of numbers
MOST_KEPT = 100_000  # steps in a replay buffer


def train(agent: Any, task: Any, steps: int, seed: int) -> Played:
    """A seed of an agent with `algorithm`, `reward`, `beta`, `ends`, `gamma` and `options`, on one thread."""
    from spie.agents.dqn.hardware import on_threads

    env = Recorder(without_text(task.make()), steps)
    with on_threads(1):
        if agent.algorithm == "dqn":
            model, account = _dqn(env, agent, steps, seed)
        else:
            wrapped, account = with_bonus(env, agent, steps)
            model = _built(agent, wrapped, seed)
        if agent.algorithm in ALGORITHMS:
            be_quiet(model)
        model.learn(steps)
    return Played(env.log.episodes, env.log.under_way, account)


def be_quiet(model: Any) -> None:
    """Let a model log nothing: its own logger makes a folder among the temporary ones for every run."""
    model.set_logger(Logger(None, []))


def _built(agent: Any, env: gym.Env[Any, Any], seed: int) -> Any:
    if agent.algorithm in ALGORITHMS:
        return _algorithm(agent, env, seed)
    try:
        model = named_function(agent.algorithm)(env, seed)
    except Exception as error:  # whatever the user's function does
        raise ValueError(f"{agent.algorithm}(env, seed) failed: {type(error).__name__}: {error}") from error
    if not callable(getattr(model, "learn", None)):
        raise ValueError(
            f"{agent.algorithm}(env, seed) returned {type(model).__name__}; it must return an agent with learn(steps)"
        )
    return model


def _dqn(env: gym.Env[Any, Any], agent: Any, steps: int, seed: int) -> tuple[Any, Account | None]:
    """DQN, with a bonus that is computed afresh whenever a batch is drawn."""
    if not isinstance(env.action_space, gym.spaces.Discrete):
        raise ValueError(f"dqn needs actions that can be counted, not {env.action_space}; take --agent ppo")
    size = {"buffer_size": min(steps, MOST_KEPT)}
    if agent.reward == BARE:
        return _algorithm(agent, env, seed, **size), None
    venv = VecIntrinsicReward(DummyVecEnv([lambda: env]), **options_of(agent, steps))
    venv.bonus.account = Account()
    kind = DictReplayBuffer if isinstance(env.observation_space, gym.spaces.Dict) else ReplayBuffer
    model = _algorithm(agent, venv, seed, **size, replay_buffer_class=kind)
    venv.attach(model)
    return model, venv.bonus.account


def _algorithm(agent: Any, env: Any, seed: int, **more: Any) -> Any:
    space = env.observation_space
    if isinstance(space, gym.spaces.Tuple):
        raise ValueError("Stable-Baselines3 takes no Tuple of observations; make it a Dict, or take --agent q-learning")
    options = {"gamma": agent.gamma, "seed": seed, "device": "cpu"} | more | dict(agent.options)
    if isinstance(space, gym.spaces.Dict) or (isinstance(space, gym.spaces.Box) and is_image_space(space)):
        own = {"features_extractor_class": FlatOrConvolved, "normalize_images": False}
        options["policy_kwargs"] = own | options.get("policy_kwargs", {})
    policy = "MultiInputPolicy" if isinstance(space, gym.spaces.Dict) else "MlpPolicy"
    try:
        return ALGORITHMS[agent.algorithm](policy, env, **options)
    except (TypeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"{agent.algorithm} cannot be built: {str(error).partition(chr(10))[0]}") from error


ALGORITHMS: dict[str, Any] = {"ppo": PPO, "a2c": A2C, "dqn": DQN}


class Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Notes the episodes within the first `steps` steps, by what the environment itself pays."""

    def __init__(self, env: gym.Env[Any, Any], steps: int) -> None:
        super().__init__(env)
        self.log, self.left = Log(), steps

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        if self.left > 0:
            self.left -= 1
            _, r, terminated, truncated, _ = result
            self.log.step(float(r), terminated, truncated, {})
        return result


def without_text(env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """The environment without the texts in its Dict of observations, which these agents cannot read."""
    space = env.observation_space
    if not isinstance(space, gym.spaces.Dict):
        return env
    read = [key for key, part in space.items() if not any(isinstance(leaf.sample(), str) for _, leaf in leaves(part))]
    return env if len(read) == len(space) else gym.wrappers.FilterObservation(env, read)


class FlatOrConvolved(BaseFeaturesExtractor):
    """Large images by the network of Nature's DQN, all else, small images among it, as rows of numbers."""

    def __init__(self, observation_space: Any, features: int = 256) -> None:
        is_dict = isinstance(observation_space, gym.spaces.Dict)
        parts: dict[str, Any] = observation_space.spaces if is_dict else {"": observation_space}
        large = [key for key, part in parts.items() if is_image_space(part) and min(part.shape[1:]) >= LEAST_SIDE]
        flat = sum(get_flattened_obs_dim(part) for key, part in parts.items() if key not in large)
        super().__init__(observation_space, flat + features * len(large))
        self.large = large
        for key in large:
            self.add_module(f"image_{key}", NatureCNN(parts[key], features))

    def forward(self, observations: Any) -> Any:
        from spie.agents.dqn.networks import concatenated

        parts = observations if isinstance(observations, dict) else {"": observations}
        return concatenated(
            [
                self.get_submodule(f"image_{key}")(part / 255) if key in self.large else part.flatten(1)
                for key, part in parts.items()
            ]
        )


def dqn_with_bonus(make: Callable[[], Any], reward: str, beta: Beta, bonus: dict[str, Any], **settings: Any) -> DQN:
    """DQN of Stable-Baselines3 on one environment, with a bonus that is computed afresh whenever a batch is drawn.

    bonus: its options. settings: of DQN.
    """
    env = VecIntrinsicReward(DummyVecEnv([make]), reward, beta, **bonus)
    model = DQN("MlpPolicy", env, replay_buffer_class=ReplayBuffer, **settings)
    env.attach(model)
    return model


def ppo_with_bonus(agent: Any, task: Any, steps: int, seed: int) -> PPO:
    """PPO on copies of a task with a bonus: settings of an `SB3PPO`."""

    def make() -> gym.Env[Any, Any]:
        return without_text(task.make())

    options = {"anneal": steps, "episodic": agent.episodic, "times": agent.times}
    env: Any = VecIntrinsicReward(DummyVecEnv([make] * agent.envs), agent.reward, agent.beta, **options)
    if agent.normalised:
        numbers = isinstance(env.observation_space, gym.spaces.Box) and not is_image_space(env.observation_space)
        env = VecNormalize(env, norm_obs=numbers, gamma=agent.gamma)
    env.seed(seed)
    more = {"n_steps": agent.n_steps, "batch_size": 256, "n_epochs": 4}
    more |= {"learning_rate": agent.learning_rate, "ent_coef": agent.ent_coef}
    model: PPO = _algorithm(agent, env, seed, **more)
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


def image_dqn(make: Callable[[], Any], network: str, seed: int, **settings: Any) -> DQN:
    """DQN of Stable-Baselines3 on one environment of images [channels, H, W], with the layers of `spie.DQN`.

    settings: of DQN.
    """
    layers = {"features_extractor_class": OurLayers, "features_extractor_kwargs": {"network": network, "seed": seed}}
    policy = layers | {"net_arch": [], "optimizer_kwargs": {"eps": settings.pop("eps")}}
    return DQN("CnnPolicy", DummyVecEnv([make]), policy_kwargs=policy, seed=seed, device="cpu", **settings)
