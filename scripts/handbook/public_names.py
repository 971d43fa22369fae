"""Every public name: what `spie` itself offers, and the modules that stand beside it."""

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import spie.data
import spie.plot
import spie.sb3
import spie.trackers


class Public(NamedTuple):
    """A public function or class."""

    name: str  # as one writes it: spie.sr, spie.plot.maze, spie.MDP.representations
    value: Any
    section: str  # of the reference

    @property
    def text(self) -> str:
        return inspect.getdoc(self.value) or ""


SECTIONS = {  # by the module in which a thing is defined; the first that fits
    "spie.representations": "Representations",
    "spie.features": "Features",
    "spie.rewards": "Rewards",
    "spie.tasks": "Tasks",
    "spie.trace": "What a run leaves",
    "spie.agents": "Agents",
    "spie.behaviour": "Behaviour",
    "spie.data": "Datasets",
    "spie.dropin.sb3": "Stable-Baselines3",
    "spie.dropin": "In your own loop",
    "spie.comparison": "In your own loop",
    "spie.paper.sweeps": "Sweeps",
    "spie.page": "Pictures",
    "spie.plot": "Pictures",
    "spie.trackers": "Trackers",
}
METHODS = ("MDP.representations", "MDP.transition", "MDP.from_gymnasium", "MDP.from_minigrid", "Agent.run")


def public_names() -> list[Public]:
    """All of them, by section and then by name."""
    found = [(name, getattr(spie, name)) for name in spie.__all__ if name != "data"]
    found += [(f"plot.{name}", getattr(spie.plot, name)) for name in spie.plot.__all__]
    found += [(f"trackers.{name}", getattr(spie.trackers, name)) for name in ("Sink", "check_sinks", "open_sinks")]
    found += [(f"sb3.{name}", getattr(spie.sb3, name)) for name in spie.sb3.__all__]
    found += [
        (f"data.{name}", value)
        for name, value in vars(spie.data).items()
        if inspect.isfunction(value) and value.__module__ == "spie.data" and not name.startswith("_")
    ]
    for name in METHODS:
        owner, method = name.split(".")
        found.append((name, getattr(getattr(spie, owner), method)))
    named = [Public(f"spie.{name}", value, _section(value)) for name, value in found]
    order = list(dict.fromkeys(SECTIONS.values()))
    return sorted(named, key=lambda public: (order.index(public.section), public.name.lower()))


def _section(value: Any) -> str:
    return next(section for module, section in SECTIONS.items() if value.__module__.startswith(module))


def parameters(value: Callable[..., Any]) -> list[str]:
    """The names of the arguments that a reader must know; of a class none, for its fields say what they are."""
    if inspect.isclass(value):
        return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def missing(public: Public) -> list[str]:
    """The arguments of a function that its text does not speak of; shared ones may be said to be those of another."""
    if re.search(r"(Arguments|arguments) (and errors )?(are|is) those of", public.text):
        return []
    return [name for name in parameters(public.value) if not re.search(rf"\b{name}\b", public.text)]
