"""Intrinsic rewards in other people's code: a wrapper for any Gymnasium environment, single or vector.

    env = spie.IntrinsicReward(gym.make("FrozenLake-v1"), "sr-r", beta=0.1)

All that is learned and paid is in `env.bonus`; see `spie.dropin.bonus`.
"""

import functools
import sys
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.dropin.bonus import WithBonus
from spie.errors import told

Array = NDArray[Any]
COUNT_REWARDS = (gym.wrappers.RecordEpisodeStatistics.__name__, "Monitor")  # and tell of them in info["episode"]


def _instead(env: Any) -> str:
    """What was given that is no environment, and what to write."""
    if isinstance(env, str):
        return f'a text; write gym.make("{env[:80]}")'
    if isinstance(env, type):
        return f"a class; write {env.__name__}()"
    return f"{type(env).__name__}; for a VecEnv of Stable-Baselines3 take spie.sb3.IntrinsicReward"


class IntrinsicReward(WithBonus, gym.Wrapper[Any, Any, Any, Any]):
    """Adds beta times an intrinsic reward to the reward of an environment; of a vector environment likewise.

    info["extrinsic_reward"] is the environment's own reward, info["intrinsic_reward"] what was added before beta.
    The bonus of a step is read after the step was learned from. Termination ends the future that M, F and psi look
    into, truncation does not, and no step leads from one episode into the next. `env.bonus` is the learner.

    reward: a name of `spie list`, of your own `@spie.reward`, or "rnd" (random network distillation, needs torch);
        "novelty", which pays for states unlike those seen, or "sp-novelty", which also looks ahead to what is new or
        pays, by successor features (gamma= is your agent's discount, .99 if you do not say); or,
        where observations and actions can be counted, "teacher": a planner that learns from the same steps pays each
        by its bounded advantage, between -2 and 0. That REPLACES the environment's reward, which the planner has in
        its values and info["extrinsic_reward"] still tells; info["reward_replaced_by"] says so. "spie" is the best we
        have: the teacher, and sp-novelty where something cannot be counted.
    beta: its scale; "auto" sets it against the environment's own reward: the bonus is then, in root mean square, as
        large as the largest average of |r| over 100 steps so far (.01 while every reward was 0, or `reward_scale`),
        final after 1,000 steps with a reward other than 0. info["beta"] tells it.
    eta, gamma_sr: learning rate and discount of M, F and psi.
    eta_pr, gamma_pr: of N and xi; by default the same.
    replace: pure exploration, the environment's own reward is left out.
    normalise: divide the bonus by its root mean square so far.
    anneal: beta falls to 0 within this many steps, counted over all environments.
    ends: "neutral", with the agent's discount as gamma: a step that ends an episode also pays gamma / (1 - gamma)
        times the mean bonus so far, as if the agent had stayed for ever at the average, so that a bonus makes ends
        neither welcome nor feared.
    episodic: all that was learned is forgotten when an episode begins, by each copy of a vector environment for itself:
        for levels that change from episode to episode. "e3b" (phi^T C^-1 phi, C over this episode) is always so.
    times: "e3b" or "count": the bonus is multiplied with this one, which starts over with every episode.
    features: a function of an observation that returns numbers; default: random Fourier features of a few numbers, a
        fixed random convolution of an image, one-hot categories, and of a Dict or Tuple each part by its kind.
    learn: False leaves everything as it is.
    policy: for "sf", "sf-pf" and the like, a function of an observation that returns the chances with which the agent
        takes each action there; psi looks ahead by it. Without one, as if all actions were equally likely.
    normalize: another spelling of normalise.

    Where Stable-Baselines3 is loaded, its Monitor is put below, so that its logs tell the environment's own reward.

    Raises ValueError for rewards that the environment's spaces cannot have, and for wrappers in a wrong order.

    >>> env = spie.IntrinsicReward(gym.make("FrozenLake-v1"), "count", beta=0.1)
    >>> state, info = env.reset(seed=0)
    >>> state, reward, terminated, truncated, info = env.step(0)
    >>> float(reward) == float(info["extrinsic_reward"]) + 0.1 * float(info["intrinsic_reward"])
    True
    """

    if not TYPE_CHECKING:  # type checkers and editors see the arguments of __init__ alone, and so does `help`

        @functools.wraps(WithBonus.__init__, assigned=(), updated=())
        def __new__(cls, env=None, *arguments, **options):
            if isinstance(env, gym.vector.VectorEnv):
                return VectorIntrinsicReward(env, *arguments, **options)
            if not isinstance(env, gym.Env):
                raise ValueError(f"IntrinsicReward wraps a Gymnasium environment, not {_instead(env)}")
            return super().__new__(cls)

    @staticmethod
    def _accepted(env: Any) -> Any:
        _refuse_normalised(env)
        return _monitored(env)

    def _spaces(self) -> tuple[gym.Space[Any], gym.Space[Any], int]:
        return self.observation_space, self.action_space, 1

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self.bonus.begin(0, self.bonus.encode(observation))
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        bonus = self.bonus
        if bonus.states[0] is None:
            bonus.refuse_without_reset()
        observation, r, terminated, truncated, info = self.env.step(action)
        r = float(r)
        r_int = bonus.step(0, action, bonus.encode(observation), terminated, r)
        if bonus.knows_episodes and (terminated or truncated):
            bonus.states[0] = None  # whoever goes on without reset() is told so
        info = {**info, **bonus.told, "extrinsic_reward": r, "intrinsic_reward": r_int}
        return observation, bonus.total(r, r_int), terminated, truncated, info


def _refuse_normalised(env: gym.Env[Any, Any] | None) -> None:
    """A normalised reward is not the environment's own, and changes as it is learned."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.NormalizeReward):
            raise ValueError(
                "IntrinsicReward above NormalizeReward would add a bonus to a reward that changes its scale; "
                "write NormalizeReward(IntrinsicReward(env, ...))"
            )
        env = env.env


def bonus_below(env: Any) -> tuple[IntrinsicReward, list[str]]:
    """The wrapper with the bonus in an environment, and the names of the wrappers above it."""
    above: list[str] = []
    while not isinstance(env, IntrinsicReward):
        if not isinstance(env, gym.Wrapper):
            raise ValueError(f"check_reward takes a name, or an environment in an IntrinsicReward, not {told(env)}")
        above.append(type(env).__name__)
        env = env.env
    return env, above


def _monitored(env: Any) -> Any:
    """The environment below a Monitor where Stable-Baselines3 is loaded: agents put theirs above what has none.

    There it would count the bonus.
    """
    loaded = sys.modules.get("stable_baselines3.common.monitor")
    if loaded is None:
        return env
    Monitor: Any = vars(loaded)["Monitor"]
    one = env
    while isinstance(one, gym.Wrapper):
        if isinstance(one, Monitor):
            return env
        one = one.env
    return Monitor(env)


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
        own, terminal, cut = rewards.tolist(), terminated.tolist(), truncated.tolist()  # lists: they are short
        ended = infos["_final_obs"].tolist() if "_final_obs" in infos else [False] * n  # and began again, in this step
        stepped = [i for i, s in enumerate(bonus.states) if s is not None]  # the others are only reset
        ahead = [bonus.encode(infos["final_obs"][i]) if ended[i] else now[i] for i in range(n)] if any(ended) else now
        taken = actions.tolist() if isinstance(actions, np.ndarray) else actions
        steps: Any = (taken, ahead, terminal, own)
        if len(stepped) < n:
            steps = [[each[i] for i in stepped] for each in steps]
        r_int, has_bonus = bonus.steps_of(stepped, *steps), np.ones(n, np.bool_)
        if len(stepped) < n:
            has_bonus[:] = False
            has_bonus[stepped] = True
            paid = dict(zip(stepped, r_int, strict=True))
            r_int = [paid.get(i, 0.0) for i in range(n)]
        if len(stepped) < n or True in terminal or True in cut:
            self._change_episodes(now, ended, [a or b for a, b in zip(terminal, cut, strict=True)], stepped)
        added = {"extrinsic_reward": rewards, "intrinsic_reward": np.array(r_int)}
        flags = {"_extrinsic_reward": has_bonus, "_intrinsic_reward": has_bonus.copy()}
        totals = np.array(list(map(bonus.total, own, r_int)))
        return observations, totals, terminated, truncated, {**infos, **bonus.told, **added, **flags}

    def _change_episodes(self, now: list[Any], ended: list[bool], over: list[bool], stepped: list[int]) -> None:
        """Begin the episodes that begin in this step, and have those that are over wait for their reset.

        ended: those that were reset in the same step, where `now` is the state in which the next one begins.
        """
        bonus = self.bonus
        for i in range(self.num_envs):
            if ended[i] or i not in stepped:
                bonus.begin(i, now[i])
            if over[i] and not ended[i]:
                bonus.states[i] = None  # its next step, or the user, resets it
