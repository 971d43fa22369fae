"""What a behavioural model is: a walker with settings, some of them free, and where they may lie.

To add one, write a file in `spie/behaviour/models` that calls `register_model`, or call it in a program of your own:

    spie.register_model(spie.ChoiceModel("curious", spie.Sarsa(reward="my-bonus", policy="softmax"), BONUS))

Every model takes choice terms as suffixes: "sr-r+turn-back+heading" frees these two weights as well.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour import sarsa_walks, state_values
from spie.behaviour.paths import Paths
from spie.behaviour.state_values import StateValues
from spie.errors import unknown
from spie.registry import Registry
from spie.rewards import REWARDS, get_reward

SHIPPED = "random_walk turn_back heading bee_line habit count constant sr fr sr_r sr_pr sr_agent model_free".split()


@dataclass(frozen=True)
class Parameter:
    """A setting that is fitted: between which values, and on which scale an estimate is normal."""

    name: str
    low: float
    high: float
    scale: Literal["log", "linear"] = "linear"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"{self.name}: bounds must be finite and rise, not {self.low} ... {self.high}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"{self.name}: a logarithmic scale needs positive bounds, not {self.low} ... {self.high}")

    def value(self, share: Any) -> Any:
        """The value at a share of the way from the lower bound to the upper one, on the scale."""
        if self.scale == "log":
            return self.low * (self.high / self.low) ** share
        return self.low + (self.high - self.low) * share

    def share(self, value: Any) -> Any:
        """The inverse of `value`."""
        if self.scale == "log":
            return np.log(np.asarray(value) / self.low) / math.log(self.high / self.low)
        return (np.asarray(value) - self.low) / (self.high - self.low)


RATE = (0.005, 1.0, "log")
ALPHA, ETA = Parameter("alpha", *RATE), Parameter("eta", *RATE)  # type: ignore[arg-type]
INVERSE_TEMPERATURE = Parameter("inverse_temperature", 0.01, 100.0, "log")
BETA = Parameter("beta", 0.01, 100.0, "log")
TERMS: dict[str, tuple[Parameter, ...]] = {
    "turn-back": (Parameter("turn_back", -10.0, 5.0),),
    "heading": (Parameter("heading", -5.0, 5.0),),
    "stickiness": (Parameter("stickiness", -5.0, 5.0),),
    "habit": (Parameter("habit", -5.0, 20.0), Parameter("habit_rate", *RATE)),  # type: ignore[arg-type]
    "lapse": (Parameter("lapse", 1e-6, 0.5, "log"),),
}
BONUS = (ALPHA, ETA, INVERSE_TEMPERATURE, BETA)  # of an agent with a learned representation
SIMPLE_BONUS = (ALPHA, INVERSE_TEMPERATURE, BETA)  # of one without


@dataclass(frozen=True)
class ChoiceModel:
    """A behavioural model: a walker, its free parameters, and what it asks of the data."""

    name: str
    walker: Sarsa | StateValues
    parameters: tuple[Parameter, ...] = ()
    summary: str = ""
    needs: tuple[Literal["goal", "map", "reward"], ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was fixed, and why

    def __post_init__(self) -> None:
        known = {one.name for one in dataclasses.fields(self.walker)}
        for parameter in self.parameters:
            if parameter.name not in known:
                raise unknown(f"setting of model {self.name}", parameter.name, known)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def identity(self) -> str:
        """All that determines its numbers, as text; of a reward of the user's also what it does."""
        code = ""
        if isinstance(self.walker, Sarsa):
            function = get_reward(self.walker.reward).function
            code = function.__code__.co_code.hex() + repr(function.__code__.co_consts)
        return f"{self.name} {self.walker!r} {self.parameters!r} {code}"

    @property
    def smooth(self) -> bool:
        """Whether the likelihood is a smooth function of the parameters: a softmax is, the best action is not."""
        return not isinstance(self.walker, Sarsa) or self.walker.policy == "softmax"

    def settings(self, values: Sequence[float]) -> Any:
        """The walker with these values of the free parameters."""
        given = {name: float(value) for name, value in zip(self.names, values, strict=True)}
        walker: Any = self.walker
        return dataclasses.replace(walker, **given)

    def fixed(self, **values: float) -> "ChoiceModel":
        """The model with some parameters fixed."""
        for name in values:
            if name not in {one.name for one in dataclasses.fields(self.walker)}:
                raise unknown(f"parameter of model {self.name}", name, self.names)
        rest = tuple(parameter for parameter in self.parameters if parameter.name not in values)
        walker: Any = self.walker
        return dataclasses.replace(self, walker=dataclasses.replace(walker, **values), parameters=rest)

    def bounded(self, bounds: Mapping[str, tuple[float, float]]) -> "ChoiceModel":
        """The model with other bounds for those of its parameters that are named."""
        changed = [
            dataclasses.replace(one, low=bounds[one.name][0], high=bounds[one.name][1]) if one.name in bounds else one
            for one in self.parameters
        ]
        return dataclasses.replace(self, parameters=tuple(changed))

    def identifiable(self, task: Any) -> "ChoiceModel":
        """The model with what these data or this maze cannot tell apart fixed; `notes` say what and why.

        task: paths, or an MDP.
        """
        model, notes = self, list(self.notes)
        if "beta" in self.names and not _pays(task):
            # Q is then proportional to beta, and so is what the softmax sees: only inverse_temperature * beta counts
            model = model.fixed(beta=1.0)
            epsilon_greedy = isinstance(self.walker, Sarsa) and self.walker.policy != "softmax"
            why = (
                "an epsilon-greedy policy does not see it at all"
                if epsilon_greedy
                else "it only scales with the inverse temperature"
            )
            notes.append(f"{self.name}: beta is fixed at 1, because nothing is paid in these mazes and {why}")
        if "inverse_temperature" in model.names and isinstance(self.walker, Sarsa) and self.walker.policy != "softmax":
            model = model.fixed(inverse_temperature=1.0)
            notes.append(f"{self.name}: an epsilon-greedy policy has no inverse temperature")
        if (
            "alpha" in model.names
            and isinstance(self.walker, Sarsa)
            and self.walker.reward == "none"
            and not _pays(task)
        ):
            model = model.fixed(
                **{name: vars(self.walker)[name] for name in ("alpha", "inverse_temperature") if name in model.names}
            )
            notes.append(
                f"{self.name}: nothing is paid in these mazes, so that nothing is learned: it is a random walk"
            )
        if "heading" in model.names and not _has_map(task):
            model = model.fixed(heading=0.0)
            notes.append(f"{self.name}: heading is fixed at 0, because without a map no way is straight on")
        return dataclasses.replace(model, notes=tuple(notes))

    def refusal(self, paths: Paths) -> str:
        """Why the model cannot be asked about these paths; empty where it can."""
        if "goal" in self.needs and paths.goal is None:
            return "it needs a goal, and these paths have none"
        if "map" in self.needs and not _has_map(paths):
            return "it needs a map, and these mazes are graphs"
        if "reward" in self.needs and not _pays(paths):
            return "it learns from rewards, and nothing is paid"
        return ""

    # What the walkers do

    def log_p(
        self, values: NDArray[np.float64], paths: Paths, rows: NDArray[np.int64], each: bool = False
    ) -> NDArray[Any]:
        """Log-likelihood of values[i] for subject rows[i] [lanes]; each: of every step [lanes, most steps]."""
        return self.run([self.settings(row) for row in values], paths, rows, each)

    def run(self, settings: Sequence[Any], paths: Paths, rows: NDArray[np.int64], each: bool = False) -> NDArray[Any]:
        """The same for walkers that are given themselves."""
        run: Callable[..., NDArray[Any]] = sarsa_walks.log_p if isinstance(self.walker, Sarsa) else state_values.log_p
        return run(settings, paths, rows, each)

    def simulate(
        self, values: NDArray[np.float64], paths: Paths, rows: NDArray[np.int64], seeds: NDArray[np.int64]
    ) -> list[list[NDArray[np.int32]]]:
        """The states that values[i] walks through in the trials of subject rows[i]: its starts, mazes and lengths."""
        settings = [self.settings(row) for row in values]
        run: Callable[..., Any] = sarsa_walks.simulate if isinstance(self.walker, Sarsa) else state_values.simulate
        walked: list[list[NDArray[np.int32]]] = run(settings, paths, rows, seeds)
        return walked


def _pays(task: Any) -> bool:
    if isinstance(task, Paths):
        given = [trial.rewards for trial in task.trials if trial.rewards is not None]
        return any((rewards != 0).any() for rewards in given) or (not given and any(m.reward.any() for m in task.mazes))
    return bool(task.reward.any())


def _has_map(task: Any) -> bool:
    return (task.mazes[0] if isinstance(task, Paths) else task).cells is not None


def _load_shipped() -> None:
    import importlib

    for name in SHIPPED:
        importlib.import_module(f"spie.behaviour.models.{name}")


MODELS: Registry[ChoiceModel] = Registry("behavioural model", _load_shipped)


def register_model(model: ChoiceModel) -> ChoiceModel:
    """Make a model known by its name."""
    MODELS.add(model.name, model, again=True)
    return model


def find_model(model: "str | ChoiceModel | Sarsa") -> ChoiceModel:
    """A model by name, with choice terms as suffixes ("count+turn-back"); of a reward of your own; or itself."""
    if isinstance(model, ChoiceModel):
        return model
    if isinstance(model, Sarsa):
        learns = any(need[:2] in ("M_", "F_", "N_") for need in get_reward(model.reward).needs)
        return ChoiceModel(f"sarsa with {model.reward}", model, BONUS if learns else SIMPLE_BONUS)
    base, *terms = model.split("+")
    if base in MODELS:
        found = MODELS.get(base)
    elif base in REWARDS:
        found = bonus_model(base)
    else:
        raise unknown("behavioural model", base, [*MODELS.names(), *REWARDS.names()])
    for term in terms:
        if term not in TERMS:
            raise unknown("choice term", term, TERMS)
        found = dataclasses.replace(
            found, parameters=found.parameters + tuple(p for p in TERMS[term] if p.name not in found.names)
        )
    return dataclasses.replace(found, name=model)


def bonus_model(reward: str, summary: str = "", **settings: Any) -> ChoiceModel:
    """SARSA with an intrinsic reward and a softmax over Q; gamma and gamma_SR are those of the paper's grid worlds."""
    needs = get_reward(reward, on="tables").needs
    learns = any(need[:2] in ("M_", "F_", "N_") for need in needs)
    walker = Sarsa(reward=reward, policy="softmax", next_action="carry", **settings)
    return ChoiceModel(reward, walker, BONUS if learns else SIMPLE_BONUS, summary)


def shipped_models(paths: Paths) -> tuple[list[str], list[str]]:
    """The models that can be asked about these paths, and a line for each that cannot."""
    refused = {name: model.refusal(paths) for name, model in MODELS.items()}
    return [name for name, why in refused.items() if not why], [
        f"{name} is left out: {why}" for name, why in refused.items() if why
    ]


model = find_model  # as `spie.model`
