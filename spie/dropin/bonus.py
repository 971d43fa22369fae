"""A bonus: an intrinsic reward that learns from the steps of environments, whoever takes them.

What can be counted (a Discrete observation) gets tables, what cannot (a Box, or whatever `features` can read) gets
features. A `Bonus` is all of a wrapper but the environment: the `IntrinsicReward` of Gymnasium and that of
Stable-Baselines3 feed it with steps.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.agents.base import pr_rates
from spie.dropin.learners import BonusLearner, DistillationLearner, FeatureLearner, Rates, TableLearner
from spie.dropin.observations import reader
from spie.dropin.teacher import NAMES, TEACHER, TeacherLearner
from spie.files import content_hash, write_whole
from spie.rewards import Reward, get_reward

Array = NDArray[Any]
RND = Reward("rnd", lambda prediction_error: prediction_error, ("prediction_error",))


@dataclass(frozen=True)
class Settings:
    """What an IntrinsicReward may be told; M, F and N learn as those of `Sarsa` do."""

    reward: str
    beta: float = 1.0  # scale of the intrinsic reward
    eta: float = 0.1  # learning rate of M, F and psi
    gamma_sr: float = 0.95  # discount of M, F and psi
    eta_pr: float | None = None  # learning rate of N and xi; None: eta
    gamma_pr: float | None = None  # discount of N and xi; None: gamma_sr
    replace: bool = False  # pure exploration: the environment's reward is left out
    normalise: bool = False  # divide the intrinsic reward by its root mean square so far
    anneal: int | None = None  # beta falls to 0 within this many steps, counted over all environments

    def __post_init__(self) -> None:
        if self.reward in NAMES:
            object.__setattr__(self, "replace", True)  # a teacher's pay has the environment's reward in it
        if not math.isfinite(self.beta):
            raise ValueError(f"IntrinsicReward: beta must be a finite number, not {self.beta}")
        for name, rate in {"eta": self.eta, "eta_pr": self.eta_pr}.items():
            if rate is not None and not 0 < rate <= 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in (0, 1], not {rate}")
        for name, gamma in {"gamma_sr": self.gamma_sr, "gamma_pr": self.gamma_pr}.items():
            if gamma is not None and not 0 <= gamma < 1:
                raise ValueError(f"IntrinsicReward: {name} must lie in [0, 1), not {gamma}")
        if self.anneal is not None and self.anneal < 1:
            raise ValueError(f"IntrinsicReward: anneal must be a number of steps, 1 or more, not {self.anneal}")

    @property
    def rates(self) -> Rates:
        """What the learner takes of it."""
        return Rates(self.eta, self.gamma_sr, *pr_rates(self))


class Bonus:
    """An intrinsic reward that learns from the steps of `n` environments, which may run in any order.

    settings: see `Settings`.
    features: a function of an observation that returns numbers; default: random Fourier features of a low-dimensional
        Box, a fixed random convolution of an image.
    learn: False leaves everything as it is; what a step pays is then the same whenever it is taken.
    """

    def __init__(
        self,
        env: str,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        n: int,
        settings: Settings,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
    ) -> None:
        self.env, self.settings, self.features, self.learn = env, settings, features, learn
        self.discrete_actions = isinstance(action_space, gym.spaces.Discrete)
        self.first_action = int(action_space.start) if isinstance(action_space, gym.spaces.Discrete) else 0
        n_actions = int(action_space.n) if isinstance(action_space, gym.spaces.Discrete) else 1
        self.reward, self.learner = _reward_and_learner(
            env, observation_space, n_actions, settings, features, self.discrete_actions
        )
        self.states: list[Any] = [None] * n
        self.steps = 0  # of all environments, that were learned from
        self.sum_of_squares = 0.0  # of their intrinsic rewards
        self.beta = settings.beta  # at the last step
        self.raw = [0.0] * n  # the reward's own numbers at the last step, before they are scaled

    def encode(self, observation: Any) -> Any:
        try:
            return self.learner.encode(observation)
        except ValueError as error:
            raise ValueError(f"{self.env}, after step {self.steps}: {error}") from error

    def encode_all(self, observations: Any, n: int) -> list[Any]:
        try:
            return self.learner.encode_all(observations, n)
        except ValueError as error:
            raise ValueError(f"{self.env}, after step {self.steps}: {error}") from error

    def begin(self, i: int, s: Any) -> None:
        """Environment i begins an episode in s."""
        self.states[i] = s
        if self.learn:
            self.learner.begin(s)

    def step(self, i: int, action: Any, s_next: Any, terminated: bool, r: float = 0.0) -> float:
        """r_int of a step of environment i, as it is multiplied with beta; r: the environment's own reward."""
        s = self.states[i]
        if s is None:
            raise ValueError(f"{self.env}: no episode is under way; call reset() first")
        self._anneal()
        if self.learn:
            values = self.learner.step(s, self.action(action), s_next, 0.0 if terminated else 1.0, r)
            self.steps += 1
        else:
            values = self.learner.query(s, self.action(action), s_next)
        raw = self._pay(i, s_next, values)
        if not self.settings.normalise:
            return raw
        if self.learn:
            self.sum_of_squares += raw**2
        return raw / self.rms

    def steps_of(
        self,
        envs: Sequence[int],
        actions: Sequence[Any],
        next_states: Sequence[Any],
        terminated: Sequence[bool],
        rewards: Sequence[float],
    ) -> list[float]:
        """The same for a step of each of some environments.

        All are learned from before any is paid, in an order that depends on the steps and not on their numbers.
        """
        if not envs:
            return []
        if len(envs) == 1:
            return [self.step(envs[0], actions[0], next_states[0], terminated[0], rewards[0])]
        self._anneal()
        steps = [
            (self.states[i], self.action(action), s_next, 0.0 if ends else 1.0, r)
            for i, action, s_next, ends, r in zip(envs, actions, next_states, terminated, rewards, strict=True)
        ]
        if self.learn:
            self.learner.learn(steps)
            self.steps += len(steps)
        query = self.learner.query_learned if self.learn else self.learner.query
        raw = [self._pay(i, s_next, query(s, a, s_next)) for i, (s, a, s_next, *_) in zip(envs, steps, strict=True)]
        if not self.settings.normalise:
            return raw
        if self.learn:
            self.sum_of_squares += math.fsum(number**2 for number in raw)
        return [number / self.rms for number in raw]

    def _pay(self, i: int, s_next: Any, values: Sequence[float]) -> float:
        """r_int from the quantities of a step of environment i, which is now in s_next."""
        self.states[i] = s_next
        try:
            raw = float(self.reward.function(*values))
        except ZeroDivisionError:
            raw = math.nan
        if not math.isfinite(raw):
            self._refuse(i, raw, values)
        self.raw[i] = raw
        return raw

    @property
    def told(self) -> dict[str, Any]:
        """What `info` says of each step beside the numbers, where the environment's reward is not what is paid."""
        return {"reward_replaced_by": self.reward.name} if self.settings.replace else {}

    def action(self, action: Any) -> int:
        """The number of an action; 0 where they cannot be counted."""
        return int(action) - self.first_action if self.discrete_actions else 0

    def _anneal(self) -> None:
        if self.settings.anneal is not None:
            self.beta = self.settings.beta * max(0.0, 1 - self.steps / self.settings.anneal)

    @property
    def rms(self) -> float:
        """Root mean square of the intrinsic rewards so far; 1 while all are 0."""
        return math.sqrt(self.sum_of_squares / self.steps) if self.sum_of_squares > 0 else 1.0

    def total(self, r: float, r_int: float) -> float:
        """What the agent is paid."""
        if not math.isfinite(r):
            raise ValueError(f"{self.env}: the environment's own reward is {r} at step {self.steps}")
        return self.beta * r_int if self.settings.replace else r + self.beta * r_int

    def query(self, observations: Any, actions: Any, next_observations: Any) -> NDArray[np.float64]:
        """beta r_int of n steps from anywhere, as of now and without learning [n]."""
        values = self.learner.query_all(observations, [self.action(action) for action in actions], next_observations)
        raw = np.array([self.reward.function(*value) for value in values], np.float64)
        if not np.isfinite(raw).all():
            i = int(np.argmin(np.isfinite(raw)))
            self._refuse(None, raw[i], values[i])
        return self.beta * (raw / self.rms if self.settings.normalise else raw)

    def _refuse(self, i: int | None, raw: float, values: Sequence[float]) -> NoReturn:
        where = "" if i is None or len(self.states) == 1 else f", environment {i}"
        of = ", ".join(f"{need} = {value:g}" for need, value in zip(self.reward.needs, values, strict=True))
        raise ValueError(f'reward "{self.reward.name}" is {raw} at step {self.steps} of {self.env}{where}: {of}')

    def state_dict(self) -> dict[str, Any]:
        """All that it needs to go on from here: plain settings and copies of arrays."""
        arrays = self.learner.state() | self.learner.pack(self.states)
        arrays |= {"steps": np.array(self.steps), "sum_of_squares": np.array(self.sum_of_squares)}
        settings = dataclasses.asdict(self.settings) | {"learner": self.learner.name}
        return {"settings": settings, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, by an equal Bonus."""
        mine = self.state_dict()
        for name, value in mine["settings"].items():
            if state["settings"].get(name) != value:
                raise ValueError(
                    f"{self.env}: the state was saved with {name} = {state['settings'].get(name)}, "
                    f"but this wrapper has {name} = {value}; build it as the saved one"
                )
        arrays: dict[str, Array] = state["arrays"]
        for name, array in mine["arrays"].items():
            if name.startswith(self.learner.growing):
                continue
            if name not in arrays or array.shape != arrays[name].shape:
                found = list(arrays[name].shape) if name in arrays else "missing"
                raise ValueError(
                    f"{self.env}: {name} of the saved state is {found}, not {list(array.shape)}; "
                    "it belongs to another environment, or to another number of them"
                )
        self.learner.load(arrays)
        self.states = self.learner.unpack(arrays)
        self.steps, self.sum_of_squares = int(arrays["steps"]), float(arrays["sum_of_squares"])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file: safetensors, the settings as JSON in its header. Whole, or not at all."""
        import safetensors.numpy

        state = self.state_dict()
        settings = json.dumps(state["settings"])
        known = {"spie": settings, "sha256": _hash(settings, state["arrays"])}
        write_whole(path, safetensors.numpy.save(state["arrays"], known))

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote."""
        import safetensors

        try:
            with safetensors.safe_open(path, "np") as file:
                known = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
            if _hash(known["spie"], arrays) != known["sha256"]:
                raise ValueError("its content does not fit its hash")
            settings = json.loads(known["spie"])
        except FileNotFoundError:
            raise
        except (safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, MemoryError) as error:
            raise ValueError(f"{os.fspath(path)} was not written by IntrinsicReward.save, or is damaged") from error
        self.load_state_dict({"settings": settings, "arrays": arrays})


def _hash(settings: str, arrays: Mapping[str, Array]) -> str:
    """Of all that a file holds."""
    found = sorted(arrays.items())
    layout = (f"{name} {array.dtype.str} {array.shape}" for name, array in found)
    return content_hash((settings, *layout), b"".join(array.tobytes() for _, array in found)).hex()


def _reward_and_learner(
    env: str,
    space: gym.Space[Any],
    n_actions: int,
    settings: Settings,
    features: Callable[[Any], Any] | None,
    discrete_actions: bool,
) -> tuple[Reward, BonusLearner[Any]]:
    """A reward by name, and what learns for it from observations of a space."""
    if settings.reward == RND.name:
        return RND, DistillationLearner(space, features)
    if settings.reward in NAMES:
        if features is not None or not isinstance(space, gym.spaces.Discrete) or not discrete_actions:
            raise ValueError(
                f'{env}: "{settings.reward}" needs observations and actions that can be counted (Discrete) as yet; use '
                "sf-pf, count or rnd"
            )
        return TEACHER, TeacherLearner(space, n_actions)
    if features is None and isinstance(space, gym.spaces.Discrete):
        reward = get_reward(settings.reward, on="tables")
        return reward, TableLearner(space, reward.needs, settings.rates)
    observations = reader(env, space, features)
    reward = get_reward(settings.reward, on="features")
    return reward, FeatureLearner(observations, n_actions, reward.needs, settings.rates)


def env_name(env: Any) -> str:
    """What to call an environment in a message."""
    first = getattr(env.unwrapped, "envs", [env])[0]  # of a vector in this process
    return first.spec.id if getattr(first, "spec", None) else type(first.unwrapped).__name__


class WithBonus:
    """What every wrapper with a bonus shares: its arguments, and saving the state of its bonus.

    To be inherited from before the wrapper of Gymnasium or Stable-Baselines3, which takes the environment alone.
    """

    bonus: Bonus

    def __init__(
        self,
        env: Any,
        reward: str,
        beta: float = Settings.beta,
        *,
        eta: float = Settings.eta,
        gamma_sr: float = Settings.gamma_sr,
        eta_pr: float | None = Settings.eta_pr,
        gamma_pr: float | None = Settings.gamma_pr,
        replace: bool = Settings.replace,
        normalise: bool = Settings.normalise,
        anneal: int | None = Settings.anneal,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
    ) -> None:
        super().__init__(env)  # type: ignore[call-arg]  # of the wrapper that comes next
        settings = Settings(reward, beta, eta, gamma_sr, eta_pr, gamma_pr, replace, normalise, anneal)
        self.bonus = Bonus(env_name(env), *self._spaces(), settings, features, learn)

    def _spaces(self) -> tuple[gym.Space[Any], gym.Space[Any], int]:
        """Observation and action space of one environment, and how many there are."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """All that the bonus needs to go on from here: settings and copies of arrays."""
        return self.bonus.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, by an equal wrapper."""
        self.bonus.load_state_dict(state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the bonus to a file: safetensors with JSON, no pickle."""
        self.bonus.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote."""
        self.bonus.load(path)
