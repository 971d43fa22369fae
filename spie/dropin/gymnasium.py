"""Intrinsic rewards in other people's code: a wrapper for any Gymnasium environment, single or vector.

    env = spie.IntrinsicReward(gym.make("FrozenLake-v1"), "sr-r", beta=0.1)

All that is learned and paid is in `env.bonus`; see `spie.dropin.bonus`.
"""

import functools
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.bonus import WithBonus

Array = NDArray[Any]


class IntrinsicReward(WithBonus, gym.Wrapper[Any, Any, Any, Any]):
    """Adds beta times an intrinsic reward to the reward of an environment; of a vector environment likewise.

    info["extrinsic_reward"] is the environment's own reward, info["intrinsic_reward"] what was added before beta.
    The bonus of a step is read after the step was learned from. Termination ends the future that M, F and psi look
    into, truncation does not, and no step leads from one episode into the next. `env.bonus` is the learner.

    reward: a name of `spie list`, of your own `@spie.reward`, or "rnd" (random network distillation, needs torch); or,
        where observations and actions can be counted, "teacher": a planner that learns from the same steps pays each
        by its bounded advantage, between -2 and 0. That REPLACES the environment's reward, which the planner has in
        its values and info["extrinsic_reward"] still tells; info["reward_replaced_by"] says so. "spie" is the best we
        have, which is the teacher.
    beta: its scale.
    eta, gamma_sr: learning rate and discount of M, F and psi.
    eta_pr, gamma_pr: of N and xi; by default the same.
    replace: pure exploration, the environment's own reward is left out.
    normalise: divide the bonus by its root mean square so far.
    anneal: beta falls to 0 within this many steps, counted over all environments.
    features: a function of an observation that returns numbers; default: random Fourier features of a few numbers, a
        fixed random convolution of an image.
    learn: False leaves everything as it is.
    """

    if not TYPE_CHECKING:  # type checkers and editors see the arguments of __init__ alone, and so does `help`

        @functools.wraps(WithBonus.__init__, assigned=(), updated=())
        def __new__(cls, env=None, *arguments, **options):
            if isinstance(env, gym.vector.VectorEnv):
                return VectorIntrinsicReward(env, *arguments, **options)
            return super().__new__(cls)

    def _spaces(self) -> tuple[gym.Space[Any], gym.Space[Any], int]:
        return self.observation_space, self.action_space, 1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self.bonus.begin(0, self.bonus.encode(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, r, terminated, truncated, info = self.env.step(action)
        bonus, r = self.bonus, float(r)
        r_int = bonus.step(0, action, bonus.encode(observation), terminated, r)
        info = {**info, **bonus.told, "extrinsic_reward": r, "intrinsic_reward": r_int}
        return observation, bonus.total(r, r_int), terminated, truncated, info


class VectorIntrinsicReward(WithBonus, gym.vector.VectorWrapper):
    """What IntrinsicReward makes of a vector environment, in any of its autoreset modes.

    All environments share one representation. In the step that only resets an environment there is no bonus, and
    infos["_intrinsic_reward"] is False.
    """

    def _spaces(self) -> tuple[gym.Space[Any], gym.Space[Any], int]:
        return self.single_observation_space, self.single_action_space, self.num_envs

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        everyone = np.ones(self.num_envs, np.bool_)
        chosen = (options or {}).get("reset_mask", everyone)
        observations, infos = self.env.reset(seed=seed, options=options)
        states = self.bonus.encode_all(observations, self.num_envs)
        for i in np.flatnonzero(chosen).tolist():
            self.bonus.begin(i, states[i])
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        bonus, n = self.bonus, self.num_envs
        now = bonus.encode_all(observations, n)
        only_reset = np.array([s is None for s in bonus.states])
        ended = infos.get("_final_obs", np.zeros(n, np.bool_))  # and began anew, within this step
        stepped = np.flatnonzero(~only_reset).tolist()
        next_states = [bonus.encode(infos["final_obs"][i]) if ended[i] else now[i] for i in stepped]
        r_int = np.zeros(n)
        own = rewards[stepped].tolist()
        r_int[stepped] = bonus.steps_of(stepped, [actions[i] for i in stepped], next_states, terminated[stepped], own)
        for i in np.flatnonzero(only_reset | ended).tolist():
            bonus.begin(i, now[i])
        for i in np.flatnonzero((terminated | truncated) & ~ended).tolist():
            bonus.states[i] = None  # its next step, or the user, resets it
        added = {"extrinsic_reward": rewards, "intrinsic_reward": r_int}
        infos = {**infos, **bonus.told, **added, **{f"_{name}": ~only_reset for name in added}}
        totals = np.array([bonus.total(*pair) for pair in zip(rewards.tolist(), r_int.tolist(), strict=True)])
        return observations, totals, terminated, truncated, infos
