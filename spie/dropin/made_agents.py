"""Settings of agents that are trained by Stable-Baselines3, or by a user's own code, with a bonus."""

from dataclasses import dataclass
from typing import Any, ClassVar

from spie.dropin.settings import Beta, Ends, Settings
from spie.dropin.training import Played, PlayedEpisode, SeedBySeed
from spie.rewards import REWARDS


def _require_sb3() -> None:
    from spie.dropin import sb3_agents  # noqa: F401  # says what is to be installed


@dataclass(frozen=True)
class MadeAgent(SeedBySeed):
    """An agent of Stable-Baselines3 by name, or one that a user's function makes, with a bonus.

    algorithm: ppo, a2c, dqn, or `module:function` of (env, seed) that returns an agent with `learn(steps)`.
    """

    algorithm: str
    reward: str
    beta: float
    ends: Ends = Settings.ends
    gamma: float = 0.99  # of the agent
    options: tuple[tuple[str, Any], ...] = ()  # further settings of the algorithm
    text: str = ""  # of the user's function

    @property
    def rewards(self) -> tuple[str, ...]:
        return (self.reward,) if self.reward in REWARDS else ()

    def require(self) -> None:
        _require_sb3()

    def train(self, task: Any, steps: int, seed: int) -> Played:
        from spie.dropin import sb3_agents  # loads torch

        return sb3_agents.train(self, task, steps, seed)

    def seconds_per_step(self, task: Any) -> float:
        return 1e-3


@dataclass(frozen=True)
class SB3DQN(SeedBySeed):
    """DQN of Stable-Baselines3 with settings for small tasks, and bonuses computed afresh from replay."""

    reward: str
    beta: Beta
    learning_rate: float = 1e-3
    gamma: float = 0.99
    train_freq: int = 8
    batch_size: int = 64
    target_update_interval: int = 500
    exploration_final_eps: float = 0.05  # from 1, within a tenth of the steps
    hidden: tuple[int, ...] = (64, 64)
    episodic: bool = False
    times: str | None = None

    def require(self) -> None:
        _require_sb3()

    def train(self, task: Any, steps: int, seed: int) -> Played:
        from spie.dropin.sb3_agents import dqn_with_bonus  # loads torch

        bonus = {"anneal": steps, "episodic": self.episodic, "times": self.times}
        model = dqn_with_bonus(
            task.make,
            self.reward,
            self.beta,
            bonus,
            learning_rate=self.learning_rate,
            learning_starts=1000,
            gamma=self.gamma,
            train_freq=self.train_freq,
            batch_size=self.batch_size,
            buffer_size=steps,
            target_update_interval=self.target_update_interval,
            exploration_final_eps=self.exploration_final_eps,
            policy_kwargs={"net_arch": list(self.hidden)},
            device="cpu",
            seed=seed,
        )
        return _learned(model, steps)

    def seconds_per_step(self, task: Any) -> float:
        return 4e-4 if self.reward != "rnd" else 1.2e-3

    def size_of_step(self, task: Any) -> float:
        return 6e-4


@dataclass(frozen=True)
class SB3PPO(SeedBySeed):
    """PPO of Stable-Baselines3 on several copies of a task, with a bonus; settings as MiniGrid's authors have them."""

    algorithm: ClassVar[str] = "ppo"
    options: ClassVar[tuple[tuple[str, Any], ...]] = ()

    reward: str
    beta: Beta
    episodic: bool = False
    times: str | None = None
    envs: int = 16
    n_steps: int = 128  # of each copy between two updates
    learning_rate: float = 1e-3
    ent_coef: float = 0.01
    gamma: float = 0.99
    normalised: bool = True  # observations that are numbers, and rewards, by VecNormalize above the bonus

    def require(self) -> None:
        _require_sb3()

    def train(self, task: Any, steps: int, seed: int) -> Played:
        from spie.dropin import sb3_agents  # loads torch

        return _learned(sb3_agents.ppo_with_bonus(self, task, steps, seed), steps)

    def seconds_per_step(self, task: Any) -> float:
        return 1.5e-4 if task.kind == "continuous" else 3e-4

    def size_of_step(self, task: Any) -> float:
        return 1.5e-3 if self.reward == "rnd" else 3e-4


def _learned(model: Any, steps: int) -> Played:
    """The episodes that a model of Stable-Baselines3 plays while it learns, by what the environment itself pays."""
    from spie.agents.dqn.hardware import on_threads
    from spie.dropin.sb3_agents import be_quiet

    episodes: list[PlayedEpisode] = []

    def note(local: dict[str, Any], _: dict[str, Any]) -> bool:
        for info in local["infos"]:
            if "episode" in info:
                truncated = info.get("TimeLimit.truncated", False)
                episodes.append(PlayedEpisode(info["episode"]["l"], info["episode"]["r"], 0.0, not truncated))
        return True

    be_quiet(model)
    with on_threads(1):
        model.learn(steps, callback=note)
    return Played(episodes)
