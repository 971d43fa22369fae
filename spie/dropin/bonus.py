"""A bonus: an intrinsic reward that learns from the steps of environments, whoever takes them.

What can be counted (a Discrete observation, a few small ones together) gets tables, what cannot (a Box, a Dict, or
whatever `features` can read) gets features. A `Bonus` is all of a wrapper but the environment: the `IntrinsicReward`
of Gymnasium and that of Stable-Baselines3 feed it with steps.
"""

import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.episodes import Episodic, Product
from spie.dropin.known import ETD, Watched, reward_and_learners, usual_form
from spie.dropin.learners import BonusLearner, FeatureLearner
from spie.dropin.scale import Account, AutoBeta
from spie.dropin.settings import SINCE_0_1, Beta, Ends, Settings
from spie.errors import check_flag, told
from spie.files import content_hash, write_whole

Array = NDArray[Any]


class Bonus:
    """An intrinsic reward that learns from the steps of `n` environments, which may run in any order.

    settings: see `Settings`.
    features: a function of an observation that returns numbers; default: random Fourier features of a low-dimensional
        Box, a fixed random convolution of an image.
    learn: False leaves everything as it is; what a step pays is then the same whenever it is taken.
    policy: see `follow`.
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
        policy: Callable[[Any], Any] | None = None,
    ) -> None:
        check_flag("IntrinsicReward: learn", learn)
        for name, function in (("features", features), ("policy", policy)):
            if function is not None and not callable(function):
                raise ValueError(f"IntrinsicReward: {name} must be a function of an observation, not {told(function)}")
        self.env, self.settings, self.features, self.learn = env, settings, features, bool(learn)
        self.discrete_actions = isinstance(action_space, gym.spaces.Discrete)
        self.first_action = int(action_space.start) if isinstance(action_space, gym.spaces.Discrete) else 0
        n_actions = int(action_space.n) if isinstance(action_space, gym.spaces.Discrete) else None
        self.auto = AutoBeta(settings.reward_scale) if settings.beta == "auto" else None
        watched = Watched(env, observation_space, n_actions, n, features)
        self.reward, self.learners = reward_and_learners(watched, settings, lambda: self._full_beta)
        self.learner = self.learners[0]  # for what is the same for all copies of the environment
        self.states: list[Any] = [None] * n
        self.steps = 0  # of all environments, that were learned from
        self.sum_of_squares = 0.0  # of their intrinsic rewards
        self.beta = self._full_beta  # at the last step
        self.sum_of_bonuses = 0.0  # where ends are neutral: of the steps that were learned from
        self.account: Account | None = None  # notes what is paid, where one is given
        self.raw = [0.0] * n  # the reward's own numbers at the last step, before they are scaled
        self.paid = [0.0] * n  # what was multiplied with beta there
        if policy is not None:
            self.follow(policy)

    def follow(self, policy: Callable[[Any], Any]) -> None:
        """From now on psi looks ahead by this policy instead of the mean over all actions.

        policy: a function of an observation that returns the chances with which the agent takes each action there.
        """
        learner = _lasting(self.learner)
        if not isinstance(learner, FeatureLearner) or "psi_norm" not in self.reward.needs:
            why = f"{self.settings.reward} does not look ahead by features of actions"
            raise ValueError(f"{self.env}: policy= has no use here, because {why}; leave it out")
        if not self.discrete_actions:
            raise ValueError(f"{self.env}: policy= needs actions that can be counted (Discrete); leave it out")
        learner.policy = policy  # every copy's observations are encoded by the first learner

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
            self.learners[i].begin(s)

    def step(self, i: int, action: Any, s_next: Any, terminated: bool, r: float = 0.0) -> float:
        """r_int of a step of environment i, as it is multiplied with beta; r: the environment's own reward."""
        if (s := self.states[i]) is None:
            self.refuse_without_reset()
        share = self._share_of_beta
        if self.learn:
            values = self.learners[i].step(s, self.action(action), s_next, 0.0 if terminated else 1.0, r)
            self.steps += 1
        else:
            values = self.learners[i].query(s, self.action(action), s_next, 0.0 if terminated else 1.0)
        return self._scaled([i], [self._pay(i, s_next, values)], [terminated], [r], share)[0]

    def refuse_without_reset(self) -> NoReturn:
        """Where a step is taken after the end of an episode, or before the first."""
        above = "; a wrapper that resets by itself belongs above this one" if self.knows_episodes else ""
        raise ValueError(f"{self.env}: no episode is under way; call reset() first{above}")

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
        share = self._share_of_beta
        steps = [
            (self.states[i], self.action(action), s_next, 0.0 if ends else 1.0, r)
            for i, action, s_next, ends, r in zip(envs, actions, next_states, terminated, rewards, strict=True)
        ]
        raw = [
            self._pay(i, step[2], values)
            for i, step, values in zip(envs, steps, self._values(envs, steps), strict=True)
        ]
        return self._scaled(envs, raw, terminated, rewards, share)

    def _values(self, envs: Sequence[int], steps: list[tuple[Any, int, Any, float, float]]) -> list[list[float]]:
        """The quantities of steps side by side, each of an environment."""
        learners = [self.learners[i] for i in envs]
        if not self.learn:
            return [learner.query(*step[:4]) for learner, step in zip(learners, steps, strict=True)]
        self.steps += len(steps)
        if self.settings.episodic:  # there is nothing that they share
            return [learner.step(*step) for learner, step in zip(learners, steps, strict=True)]
        self.learner.learn(steps)
        return [learner.query_learned(*step[:4]) for learner, step in zip(learners, steps, strict=True)]

    def _scaled(
        self,
        envs: Sequence[int],
        raw: list[float],
        terminated: Sequence[bool],
        rewards: Sequence[float],
        share: float,
    ) -> list[float]:
        """r_int of steps side by side, as each is multiplied with beta, which is set here."""
        settings = self.settings
        if settings.normalise:
            if self.learn:
                self.sum_of_squares += math.fsum(number**2 for number in raw)
            raw = [number / self.rms for number in raw]
        if self.auto is not None and self.learn:
            self.auto.observe(rewards, raw)
        self.beta = share * self._full_beta
        if settings.ends == "neutral":
            if self.learn:
                self.sum_of_bonuses += math.fsum(raw)
            end = self.pay_of_an_end
            raw = [number + end if ends else number for number, ends in zip(raw, terminated, strict=True)]
        for i, number in zip(envs, raw, strict=True):
            self.paid[i] = number
        return raw

    @property
    def pay_of_an_end(self) -> float:
        """gamma / (1 - gamma) times the mean bonus so far: what an agent would get that stayed there for ever."""
        gamma, n = self.settings.gamma, self.steps
        if self.settings.ends != "neutral" or gamma is None or not n:
            return 0.0
        return gamma / (1 - gamma) * self.sum_of_bonuses / n

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
        """What `info` says of each step beside the rewards: who replaced them, and a beta that is set on the way."""
        replaced = {"reward_replaced_by": self.reward.name} if self.settings.replace else {}
        return replaced if self.auto is None else replaced | {"beta": self.beta}

    def action(self, action: Any) -> int:
        """The number of an action; 0 where they cannot be counted."""
        return int(action) - self.first_action if self.discrete_actions else 0

    @property
    def _full_beta(self) -> float:
        """Before it is annealed."""
        beta = self.settings.beta if self.auto is None else self.auto.beta
        return float(beta)

    @property
    def _share_of_beta(self) -> float:
        """What annealing leaves of it."""
        return 1.0 if self.settings.anneal is None else max(0.0, 1 - self.steps / self.settings.anneal)

    @property
    def rms(self) -> float:
        """Root mean square of the intrinsic rewards so far; 1 while all are 0."""
        return math.sqrt(self.sum_of_squares / self.steps) if self.sum_of_squares > 0 else 1.0

    def total(self, r: float, r_int: float) -> float:
        """What the agent is paid."""
        if not math.isfinite(r):
            raise ValueError(f"{self.env}: the environment's own reward is {r} at step {self.steps}")
        paid = self.beta * r_int
        if not math.isfinite(paid):
            of = f"beta {self.beta:g} times an intrinsic reward of {r_int:g}"
            raise ValueError(f"{self.env}: {of} is no finite number at step {self.steps}; give a smaller beta")
        if self.account is not None:
            self.account.note(r, paid)
        return paid if self.settings.replace else r + paid

    @property
    def knows_episodes(self) -> bool:
        """Whether what a step pays depends on the episode that it is part of, which no buffer of steps can tell."""
        return self.settings.episodic or self.settings.reward == ETD or self.settings.times is not None

    @property
    def coverage(self) -> float:
        """Share of the states that were visited, in this episode where all is forgotten; NaN where none is counted."""
        return math.fsum(learner.coverage for learner in self.learners) / len(self.learners)

    def query(
        self, observations: Any, actions: Any, next_observations: Any, terminated: Any = False
    ) -> NDArray[np.float64]:
        """beta r_int of n steps from anywhere, as of now and without learning [n]; terminated [n]: which ended."""
        if self.knows_episodes:
            raise ValueError(
                f'{self.env}: "{self.reward.name}" depends on the episode so far; it cannot score recorded steps'
            )
        taken = [self.action(action) for action in actions]
        discounts = 1.0 - np.broadcast_to(np.asarray(terminated, np.float64), len(taken))
        values = self.learner.query_all(observations, taken, next_observations, discounts.tolist())
        raw = np.array([self.reward.function(*value) for value in values], np.float64)
        if not np.isfinite(raw).all():
            i = int(np.argmin(np.isfinite(raw)))
            self._refuse(None, raw[i], values[i])
        scaled = raw / self.rms if self.settings.normalise else raw
        return np.asarray(self.beta * (scaled + self.pay_of_an_end * np.asarray(terminated)))

    def _refuse(self, i: int | None, raw: float, values: Sequence[float]) -> NoReturn:
        where = "" if i is None or len(self.states) == 1 else f", environment {i}"
        of = ", ".join(f"{need} = {value:g}" for need, value in zip(self.reward.needs, values, strict=True))
        raise ValueError(f'reward "{self.reward.name}" is {raw} at step {self.steps} of {self.env}{where}: {of}')

    def state_dict(self) -> dict[str, Any]:
        """All that it needs to go on from here: plain settings and copies of arrays."""
        arrays = self.learner.state() | self.learner.pack(self.states)
        if self.knows_episodes:
            for i, learner in enumerate(self.learners[1:], 1):
                arrays |= {f"{i}/{name}": array for name, array in learner.state().items()}
        arrays |= {"steps": np.array(self.steps), "sum_of_squares": np.array(self.sum_of_squares)}
        if self.auto is not None:
            arrays |= self.auto.arrays()
        if self.settings.ends == "neutral":
            arrays |= {"sum_of_bonuses": np.array(self.sum_of_bonuses)}
        settings = dataclasses.asdict(self.settings) | {"learner": self.learner.name}
        return {"settings": settings, "arrays": {name: array.copy() for name, array in arrays.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken, by an equal Bonus."""
        mine = self.state_dict()
        theirs = SINCE_0_1 | state["settings"]
        for name, value in mine["settings"].items():
            if theirs.get(name) != value:
                raise ValueError(
                    f"{self.env}: the state was saved with {name} = {theirs.get(name)}, "
                    f"but this wrapper has {name} = {value}; build it as the saved one"
                )
        arrays: dict[str, Array] = state["arrays"]
        for name, array in mine["arrays"].items():
            if name.rpartition("/")[2].startswith(self.learner.growing):
                continue
            if name not in arrays:  # the learner is the same: an older one, which knew less
                older = f'an older spie, whose "{self.settings.reward}" learned otherwise'
                raise ValueError(
                    f"{self.env}: the saved state has no {name}: it is of {older}; learn again from nothing"
                )
            if array.shape != arrays[name].shape:
                raise ValueError(
                    f"{self.env}: {name} of the saved state is {list(arrays[name].shape)}, not {list(array.shape)}; "
                    "it belongs to another environment, or to another number of them"
                )
        self.learner.load(arrays)
        if self.knows_episodes:
            for i, learner in enumerate(self.learners[1:], 1):
                of = f"{i}/"
                learner.load({k.removeprefix(of): array for k, array in arrays.items() if k.startswith(of)})
        self.states = self.learner.unpack(arrays)
        self.steps, self.sum_of_squares = int(arrays["steps"]), float(arrays["sum_of_squares"])
        if self.auto is not None:
            self.auto.load(arrays)
        if self.settings.ends == "neutral":
            self.sum_of_bonuses = float(arrays["sum_of_bonuses"])

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


def _lasting(learner: BonusLearner[Any]) -> BonusLearner[Any]:
    """The learner on the observations themselves, without what is of episodes."""
    if isinstance(learner, Product):
        return _lasting(learner.lasting)
    return _lasting(learner.inner) if isinstance(learner, Episodic) else learner


def _hash(settings: str, arrays: Mapping[str, Array]) -> str:
    """Of all that a file holds."""
    found = sorted(arrays.items())
    layout = (f"{name} {array.dtype.str} {array.shape}" for name, array in found)
    return content_hash((settings, *layout), b"".join(array.tobytes() for _, array in found)).hex()


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
        beta: Beta = Settings.beta,
        *,
        eta: float = Settings.eta,
        gamma_sr: float = Settings.gamma_sr,
        eta_pr: float | None = Settings.eta_pr,
        gamma_pr: float | None = Settings.gamma_pr,
        replace: bool = Settings.replace,
        normalise: bool = Settings.normalise,
        anneal: int | None = Settings.anneal,
        reward_scale: float | None = Settings.reward_scale,
        ends: Ends = Settings.ends,
        gamma: float | None = Settings.gamma,
        episodic: bool = Settings.episodic,
        times: str | None = Settings.times,
        features: Callable[[Any], Any] | None = None,
        learn: bool = True,
        policy: Callable[[Any], Any] | None = None,
        normalize: bool = False,
    ) -> None:
        super().__init__(self._accepted(env))  # type: ignore[call-arg]  # of the wrapper that comes next
        check_flag("IntrinsicReward: normalize", normalize)
        reward = usual_form(reward, *self._spaces()[:2], features)
        of_learning = (eta, gamma_sr, eta_pr, gamma_pr)
        of_ends: Any = (ends, gamma, episodic, times)
        settings = Settings(reward, beta, *of_learning, replace, normalize or normalise, anneal, reward_scale, *of_ends)
        self.bonus = Bonus(env_name(env), *self._spaces(), settings, features, learn, policy)

    @staticmethod
    def _accepted(env: Any) -> Any:
        """The environment, refused or changed where a bonus above it would not do what is meant."""
        return env

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
