"""What a behavioural model is: a walker with settings, some of them free, and where they may lie.

To add one, write a file in `spie/behaviour/models` that calls `register_model`, or call it in a program of your own:

    spie.register_model(spie.ChoiceModel("curious", spie.Sarsa(reward="my-bonus", policy="softmax"), BONUS))

Every model takes choice terms as suffixes: "sr-r+turn-back+heading" frees these two weights as well.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.paths import Paths
from spie.behaviour.sarsa_walks import SARSA_WALKS
from spie.behaviour.walks import Walker, Walks
from spie.errors import check_number, is_among, is_name, told, unknown
from spie.registry import Registry
from spie.rewards import REWARDS, Learner, Reward, get_reward, reward_names

SHIPPED = (
    "random_walk turn_back heading bee_line habit count constant sr fr sr_r sr_pr sr_agent planner model_free".split()
)


SCALES = ("log", "linear", "signed")
AGENTS_KNOW: Learner = "tables and episodes"  # what a reward may ask for


@dataclass(frozen=True)
class Parameter:
    """A setting that is fitted: between which values, and on which scale an estimate is normal.

    Raises ValueError where bounds do not rise, or a logarithmic scale begins at 0 or below.

    >>> spie.Parameter("alpha", 0.01, 1.0, "log").value(0.5)  # halfway
    0.1
    """

    name: str
    low: float
    high: float
    scale: Literal["log", "linear", "signed"] = "linear"  # signed: like log to both sides of 0, even around it

    def __post_init__(self) -> None:
        if not is_name(self.name) or not self.name.isprintable():
            raise ValueError(f"a parameter's name must be a text in one line, not {told(self.name)}")
        if not is_among(self.scale, SCALES):
            raise unknown(f"scale of {self.name}", self.scale, SCALES)
        for bound in (self.low, self.high):
            check_number(f"{self.name}: a bound", bound)
        if not self.low < self.high:
            raise ValueError(f"{self.name}: bounds must be finite and rise, not {self.low} ... {self.high}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"{self.name}: a logarithmic scale needs positive bounds, not {self.low} ... {self.high}")

    def value(self, share: Any) -> Any:
        """The value at a share of the way from the lower bound to the upper one, on the scale."""
        if self.scale == "log":
            return self.low * (self.high / self.low) ** share
        if self.scale == "signed":
            low, high = np.arcsinh(self.low / self._even), np.arcsinh(self.high / self._even)
            return self._even * np.sinh(low + (high - low) * share)
        return self.low + (self.high - self.low) * share

    def share(self, value: Any) -> Any:
        """The inverse of `value`."""
        if self.scale == "log":
            return np.log(np.asarray(value) / self.low) / math.log(self.high / self.low)
        if self.scale == "signed":
            low, high = np.arcsinh(self.low / self._even), np.arcsinh(self.high / self._even)
            return (np.arcsinh(np.asarray(value) / self._even) - low) / (high - low)
        return (np.asarray(value) - self.low) / (self.high - self.low)

    @property
    def _even(self) -> float:
        """Up to about this size a signed scale is even, beyond it logarithmic."""
        return 1e-4 * max(abs(self.low), abs(self.high))


RATE = (0.001, 1.0, "log")
ALPHA, ETA = Parameter("alpha", *RATE), Parameter("eta", *RATE)  # type: ignore[arg-type]
INVERSE_TEMPERATURE = Parameter("inverse_temperature", 0.001, 1000.0, "log")
BETA = Parameter("beta", 1e-4, 1000.0, "log")  # the least is no bonus at all, beside a reward of 1
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
    """A behavioural model: a walker, its free parameters, and what it asks of the data.

    Raises ValueError for parameters that the walker does not have.

    >>> own = spie.ChoiceModel("own", spie.Sarsa(policy="softmax"), (spie.Parameter("alpha", 0.01, 1.0, "log"),))
    >>> own.names
    ('alpha',)
    """

    name: str
    walker: Walker
    parameters: tuple[Parameter, ...] = ()
    summary: str = ""
    needs: tuple[Literal["goal", "map", "reward"], ...] = ()
    in_units_of_beta: tuple[str, ...] = ()  # settings that grow with beta, such as an optimistic start
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was fixed, and why
    walks: Walks = SARSA_WALKS  # what makes the walker walk: `PLACE_WALKS` for one of `StateValues`

    def __post_init__(self) -> None:
        if not isinstance(self.walker, self.walks.kind):
            kinds = f"{self.walks.kind.__name__}, not {type(self.walker).__name__}"
            raise ValueError(f"model {self.name}: its walks are those of {kinds}; give the walks= of this walker")
        known = self.setting_names
        for parameter in self.parameters:
            if parameter.name not in known:
                raise unknown(f"setting of model {self.name}", parameter.name, known)

    @property
    def setting_names(self) -> tuple[str, ...]:
        """The names of all settings of the walker."""
        return tuple(one.name for one in dataclasses.fields(self.walker))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def identity(self) -> str:
        """All that determines its numbers, as text; of a reward of the user's also what it does."""
        codes = [get_reward(name).function.__code__ for name in self.walker.rewards]
        code = " ".join(one.co_code.hex() + repr(one.co_consts) for one in codes)
        return f"{self.name} {self.walker!r} {self.walker.version} {self.parameters!r} {code}"

    @property
    def smooth(self) -> bool:
        """Whether the likelihood is a smooth function of the parameters: a softmax is, the best action is not."""
        return self.walker.policy == "softmax"

    def settings(self, values: Sequence[float]) -> Any:
        """The walker with these values of the free parameters."""
        return self.with_settings({name: float(value) for name, value in zip(self.names, values, strict=True)})

    def with_settings(self, given: Mapping[str, float]) -> Any:
        """The walker with these settings, and those in units of beta where beta is among them."""
        walker: Any = self.walker
        if "beta" in given:
            grown = {name: vars(walker)[name] * given["beta"] / walker.beta for name in self.in_units_of_beta}
            given = grown | dict(given)
        return dataclasses.replace(walker, **given)

    def fixed(self, **values: float) -> "ChoiceModel":
        """The model with some parameters fixed."""
        for name in values:
            if name not in self.setting_names:
                raise unknown(f"parameter of model {self.name}", name, self.names)
        rest = tuple(parameter for parameter in self.parameters if parameter.name not in values)
        return dataclasses.replace(self, walker=self.with_settings(values), parameters=rest)

    def bounded(self, bounds: Mapping[str, tuple[float, float]]) -> "ChoiceModel":
        """The model with other bounds for those of its parameters that are named.

        Bounds below 0 make a logarithmic scale a signed one: so a fit can ask whether a bonus attracts or repels.
        """
        if not isinstance(bounds, Mapping):
            raise ValueError(f'bounds must be given by name, such as {{"beta": (0, 10)}}, not {told(bounds)}')
        changed = []
        for one in self.parameters:
            pair = bounds.get(one.name, (one.low, one.high))
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise ValueError(f"bounds of {one.name} must be two numbers, not {told(pair)}")
            low, high = pair
            for bound in pair:
                check_number(f"bounds of {one.name}: a bound", bound)
            scale = "signed" if one.scale == "log" and low < 0 else one.scale
            changed.append(Parameter(one.name, low, high, scale))
        return dataclasses.replace(self, parameters=tuple(changed))

    def identifiable(self, task: Any) -> "ChoiceModel":
        """The model with what these data or this maze cannot tell apart fixed; `notes` say what and why.

        task: paths, or an MDP.
        """
        model, notes = self, list(self.notes)
        if "beta" in self.names and not _pays(task):
            # Q is then proportional to beta, and so is what the softmax sees: only inverse_temperature * beta counts
            model = model.fixed(beta=1.0)
            why = (
                "it only scales with the inverse temperature"
                if self.smooth
                else "an epsilon-greedy policy does not see it at all"
            )
            notes.append(f"{self.name}: beta is fixed at 1, because nothing is paid in these mazes and {why}")
        if "inverse_temperature" in model.names and not self.smooth:
            model = model.fixed(inverse_temperature=1.0)
            notes.append(f"{self.name}: an epsilon-greedy policy has no inverse temperature")
        if "alpha" in model.names and self.walker.rewards == ("none",) and not _pays(task):
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
        return self.walks.log_p(settings, paths, rows, each)

    def simulate(
        self, values: NDArray[np.float64], paths: Paths, rows: NDArray[np.int64], seeds: NDArray[np.int64]
    ) -> list[list[NDArray[np.int32]]]:
        """The states that values[i] walks through in the trials of subject rows[i]: its starts, mazes and lengths."""
        return self.walks.simulate([self.settings(row) for row in values], paths, rows, seeds)


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
    """Make a model known by its name.

    model: with a name of its own; returned as it is. Raises ValueError where the name is taken.

    >>> mine = spie.register_model(spie.ChoiceModel("my-softmax", spie.Sarsa(policy="softmax")))
    >>> spie.model("my-softmax") == mine
    True
    """
    MODELS.add(model.name, model, again=True)
    return model


def find_model(model: "str | ChoiceModel | Sarsa") -> ChoiceModel:
    """A model by name, with choice terms as suffixes ("count+turn-back"); of a reward of your own; or itself.

    Raises ValueError for names that are not there.

    >>> spie.model("count+turn-back").names
    ('alpha', 'inverse_temperature', 'beta', 'turn_back')
    """
    if isinstance(model, ChoiceModel):
        return model
    if isinstance(model, Sarsa):
        return ChoiceModel(f"sarsa with {model.reward}", model, _bonus_parameters(get_reward(model.reward)))
    if not is_name(model):
        raise ValueError(f"a model must be a name, such as sr-r+turn-back, or a ChoiceModel, not {told(model)}")
    base, *terms = model.split("+")
    if base in MODELS:
        found = MODELS.get(base)
    elif base in REWARDS:
        found = bonus_model(base)
    else:
        raise unknown("behavioural model", base, [*MODELS.names(), *reward_names(AGENTS_KNOW)])
    for term in terms:
        if term not in TERMS:
            raise unknown("choice term", term, TERMS)
        found = dataclasses.replace(
            found, parameters=found.parameters + tuple(p for p in TERMS[term] if p.name not in found.names)
        )
    return dataclasses.replace(found, name=model)


def bonus_model(reward: str, summary: str = "", in_units_of_beta: tuple[str, ...] = (), **settings: Any) -> ChoiceModel:
    """SARSA with an intrinsic reward and a softmax over Q; gamma and gamma_SR are those of the paper's grid worlds."""
    parameters = _bonus_parameters(get_reward(reward, on=AGENTS_KNOW))
    walker = Sarsa(reward=reward, policy="softmax", next_action="carry", **settings)
    return ChoiceModel(reward, walker, parameters, summary, in_units_of_beta=in_units_of_beta)


def _bonus_parameters(reward: Reward) -> tuple[Parameter, ...]:
    parameters = BONUS if reward.matrices else SIMPLE_BONUS
    return tuple(one for one in parameters if one is not BETA) if reward.name == "none" else parameters


def shipped_models(paths: Paths) -> tuple[list[str], list[str]]:
    """The models that can be asked about these paths, and a line for each reason why others cannot."""
    found: list[str] = []
    why_not: dict[str, list[str]] = {}
    for name, model in MODELS.items():
        why = model.refusal(paths)
        (why_not.setdefault(why, []) if why else found).append(name)
    return found, [f"Left out: {', '.join(names)} ({why})" for why, names in why_not.items()]


model = find_model  # as `spie.model`
