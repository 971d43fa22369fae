"""Agents by name: what `spie list`, `run`, `sweep`, `tune`, `train` and `spie.agent` all read.

To add an agent, register its class, which inherits from `spie.Agent`: `spie.register_agent("my-agent", MyAgent)`; or a
name for settings of one of ours, `spie.register_agent("sarsa-bold", spie.Sarsa, epsilon=0.5)`.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from spie.agents.base import Agent
from spie.agents.dqn import agent as dqn
from spie.agents.linear_q import settings as linear_q
from spie.agents.planner import settings as planner
from spie.agents.sarsa import settings as sarsa
from spie.errors import unknown
from spie.registry import Registry


@dataclass(frozen=True)
class AgentEntry:
    """An agent by name: its class, and the settings that the name stands for."""

    name: str
    make: type[Any]  # an Agent: a dataclass of settings
    settings: dict[str, Any] = field(default_factory=dict)


OWN: tuple[tuple[type[Any], dict[str, dict[str, Any]]], ...] = (  # our agents, and the settings of each name
    (sarsa.Sarsa, sarsa.AGENTS),
    (planner.Planner, planner.AGENTS),
    (linear_q.LinearQ, linear_q.AGENTS),
    (dqn.DQN, dqn.AGENTS),
)


def _add_own() -> None:
    for make, settings_of in OWN:
        for name, settings in settings_of.items():
            register_agent(name, make, **settings)


# An agent whose form depends on the task: by its name and the kind of task, the name of the other form.
FORMS = {("spie", "continuous"): "linear-q-sp-novelty", ("spie", "images"): "dqn-sp-novelty"}

AGENTS: Registry[AgentEntry] = Registry("agent", _add_own)


def register_agent(name: str, make: type[Any], **settings: Any) -> None:
    """Make an agent known as `name`: `make(**settings)`, with what the user adds. `make` inherits from `spie.Agent`.

    settings: of that name. Raises ValueError where the name is taken, or `make` is no agent.

    >>> spie.register_agent("eager", spie.Sarsa, reward="sr-r", beta=100.0)
    >>> spie.agent("eager").beta
    100.0
    """
    if not isinstance(make, type) or Agent not in make.__mro__:
        raise ValueError(f'agent "{name}": {make!r} is no class that inherits from spie.Agent')
    AGENTS.add(name, AgentEntry(name, make, settings))


def agent(name: str, task: Any = None, **settings: Any) -> Any:
    """The agent known as `name` with further settings: `spie.agent("sarsa-srr", beta=10)`.

    task: on which it is to run; settings that are left out are then those that suit it, and an agent that does not run
    on such a task is refused at once. "spie" is a planner on tables, and elsewhere novelty that is looked ahead to.

    Raises ValueError for names and settings that are not there.

    >>> spie.agent("sarsa-srr", beta=10.0) == spie.Sarsa(reward="sr-r", beta=10.0)
    True
    """
    entry = AGENTS.get(name if task is None else FORMS.get((name, task.kind), name))
    known = [field.name for field in dataclasses.fields(entry.make)]
    for setting in settings:
        if setting not in known:
            raise unknown(f"setting of {name}", setting, known)
    made = entry.make(**entry.settings | settings)
    if task is None:
        return made
    if task.kind != made.kind:
        raise ValueError(f"{name} does not run on {task.name}; agents that do: {', '.join(names(task.kind))}")
    return entry.make(**made.usual_settings(task) | entry.settings | settings)


def names(kind: str | None = None) -> list[str]:
    """The names of agents, of all or of those that run on tasks of one kind."""
    return [name for name, entry in AGENTS.items() if kind in (None, entry.make.kind) or (name, kind) in FORMS]
