"""Every bonus of the wrappers by its name, and what learns for it from the steps of environments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium as gym

from spie.dropin.distillation import DistillationLearner
from spie.dropin.episodes import DistanceLearner, Episodic, Product, product
from spie.dropin.learners import BonusLearner, FeatureLearner, TableLearner
from spie.dropin.novelty import (
    E3B,
    NOVELTIES,
    EllipseOfFeatures,
    EllipseOfStates,
    NoveltyOfFeatures,
    NoveltyOfStates,
)
from spie.dropin.novelty import FEATURES as NOVELTY_FEATURES
from spie.dropin.observations import Reader, reader
from spie.dropin.settings import Settings
from spie.dropin.spaces import Numbering, numbering
from spie.dropin.teacher import NAMES as TEACHERS
from spie.dropin.teacher import TEACHER, TeacherLearner
from spie.errors import is_among, is_name, unknown
from spie.rewards import REWARDS, Reward, get_reward, reward_names

RND = Reward("rnd", lambda prediction_error: prediction_error, ("prediction_error",))
ETD = "etd"
OURS = (E3B.name, *NOVELTIES, RND.name, *TEACHERS)  # beside those that other learners know, too

SUMMARIES = {
    E3B.name: "phi(s')^T C^-1 phi(s'), C of this episode: high where it has seen nothing alike.",
    "novelty": "How unlike s' is to what was seen, on states, numbers or images.",
    "sp-novelty": "The same, and what successor features expect of it and of reward further on.",
    RND.name: "Random network distillation: how badly a network predicts another one at s' (needs torch).",
    "teacher": "The bounded advantage of a planner that learns from the same steps, in place of the reward.",
    "spie": "The best that we have, which is the teacher.",
}

Learners: TypeAlias = list[BonusLearner[Any]]


def bonus_names() -> tuple[str, ...]:
    """All names that a wrapper knows."""
    return (*reward_names(), *OURS)


@dataclass(frozen=True)
class Watched:
    """What a bonus learns from: observations of a space, and actions; n copies of an environment."""

    env: str  # its name, for messages
    space: gym.Space[Any]
    n_actions: int | None  # None: they cannot be counted
    n: int
    features: Callable[[Any], Any] | None

    @property
    def states(self) -> Numbering | None:
        """Their numbers where observations can be counted."""
        return numbering(self.space) if self.features is None else None

    def read(self, most: int | None = None) -> Reader:
        """What reads observations by features, of which there are `most` by default."""
        return reader(self.env, self.space, self.features, *(() if most is None else (most,)))


def usual_form(reward: str, space: gym.Space[Any], actions: gym.Space[Any], features: Any = None) -> str:
    """What a name stands for: "spie" is the teacher where observations and actions can be counted, else sp-novelty."""
    counted = features is None and numbering(space) is not None and isinstance(actions, gym.spaces.Discrete)
    return "sp-novelty" if is_among(reward, ("spie",)) and not counted else reward


def reward_and_learners(watched: Watched, settings: Settings, beta: Callable[[], float]) -> tuple[Reward, Learners]:
    """The reward that the settings name, and for each copy of the environment what learns for it.

    All copies share one learner, unless something is of the episode that a copy is in. beta: the present one.
    """
    found, learners = _by_name(watched, settings, beta, settings.reward, settings.episodic)
    if settings.times is None:
        return found, learners
    factor, of_episodes = _by_name(watched, settings, beta, settings.times, True)
    both = zip(learners, of_episodes, strict=True)
    return product(found, factor), [Product(one, other) for one, other in both if isinstance(other, Episodic)]


def _by_name(
    watched: Watched, settings: Settings, beta: Callable[[], float], name: str, episodic: bool
) -> tuple[Reward, Learners]:
    if not is_name(name) or (name not in REWARDS and name not in OURS):
        raise unknown("intrinsic reward", name, bonus_names())
    if name == ETD and not episodic:
        return _distance(watched, settings)
    reward, make = _maker(watched, settings, beta, name, watched.n if episodic else 1)
    return reward, [Episodic(make()) for _ in range(watched.n)] if episodic else [make()] * watched.n


def _distance(watched: Watched, settings: Settings) -> tuple[Reward, Learners]:
    """ETD: one F for all copies, and each copy's own episode."""
    reward, make = _maker(watched, settings, lambda: 1.0, ETD, 1)
    first = make()
    assert isinstance(first, DistanceLearner)
    states = watched.states
    assert states is not None
    return reward, [first, *(DistanceLearner(states, settings.rates, first) for _ in range(watched.n - 1))]


def _maker(
    watched: Watched, settings: Settings, beta: Callable[[], float], name: str, copies: int
) -> tuple[Reward, Callable[[], BonusLearner[Any]]]:
    """A bonus by name, and a function that makes a learner for it, which is called once for each of the copies."""
    if name == RND.name:
        return RND, lambda: DistillationLearner(watched.env, watched.space, watched.features)
    states = watched.states
    if name in TEACHERS:
        if states is None or watched.n_actions is None:
            raise ValueError(
                f'{watched.env}: "{name}" needs observations and actions that can be counted (Discrete); '
                "use sf-pf, count or rnd"
            )
        known, n_actions = states, watched.n_actions
        return TEACHER, lambda: TeacherLearner(known, n_actions)
    if name in NOVELTIES or name == E3B.name:
        return _novelty(watched, settings, beta, name)
    rates = settings.rates
    if states is not None and name == ETD:
        counted = states
        return get_reward(ETD), lambda: DistanceLearner(counted, rates, copies=copies)
    if name == ETD:
        raise ValueError(f'{watched.env}: "etd" needs observations that can be counted (Discrete); use e3b')
    if states is not None:
        reward, numbered = get_reward(name, on="tables"), states
        return reward, lambda: TableLearner(numbered, reward.needs, rates, copies)
    reward, observed = get_reward(name, on="features"), watched.read()
    return reward, lambda: FeatureLearner(observed, watched.n_actions or 1, reward.needs, rates)


def _novelty(
    watched: Watched, settings: Settings, beta: Callable[[], float], name: str
) -> tuple[Reward, Callable[[], BonusLearner[Any]]]:
    how = (name == "sp-novelty", settings.gamma, beta)
    if (states := watched.states) is not None:
        if name == E3B.name:
            return E3B, lambda: EllipseOfStates(states)
        return NOVELTIES[name], lambda: NoveltyOfStates(states, *how)
    observed = watched.read(NOVELTY_FEATURES)
    if name == E3B.name:
        return E3B, lambda: EllipseOfFeatures(observed)
    return NOVELTIES[name], lambda: NoveltyOfFeatures(observed, *how)
