"""Agents by name: what `spie list`, `run`, `sweep`, `tune`, `train` and `spie.agent` all read.

To add an agent, register what makes it: `spie.register_agent("my-agent", MyAgent)`, or a name for settings of one of
ours, `spie.register_agent("sarsa-bold", spie.Sarsa, epsilon=0.5)`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from spie.agents.base import Agent
from spie.agents.dqn import agent as dqn
from spie.agents.linear_q import settings as linear_q
from spie.agents.planner import settings as planner
from spie.agents.sarsa import settings as sarsa
from spie.registry import Registry


@dataclass(frozen=True)
class AgentEntry:
    """An agent by name: what makes it, and the settings that the name stands for."""

    name: str
    make: Callable[..., Agent]  # a dataclass of settings
    settings: dict[str, Any] = field(default_factory=dict)
    summary: str = ""


AGENTS: Registry[AgentEntry] = Registry("agent")


def register_agent(name: str, make: Callable[..., Agent], *, summary: str = "", **settings: Any) -> None:
    """Make an agent known as `name`: `make(**settings)`, with what the user adds."""
    AGENTS.add(name, AgentEntry(name, make, settings, summary))


def agent(name: str, task: Any = None, **settings: Any) -> Any:
    """The agent known as `name` with further settings: `spie.agent("sarsa-srr", beta=10)`.

    task: on which it is to run; settings that are left out are then those that suit it, and an agent that does not run
    on such a task is refused at once.
    """
    entry = AGENTS.get(name)
    made = entry.make(**entry.settings | settings)
    if not isinstance(made, Agent):
        raise ValueError(f'agent "{name}" gives {type(made).__name__}, which is no Agent; it lacks {_missing(made)}')
    if task is None:
        return made
    if task.kind != made.kind:
        fitting = [other for other, e in AGENTS.items() if getattr(e.make, "kind", None) == task.kind]
        raise ValueError(f"{name} does not run on {task.name}; agents that do: {', '.join(fitting)}")
    return entry.make(**made.usual_settings(task) | entry.settings | settings)


def names(kind: str | None = None) -> list[str]:
    """The names of agents, of all or of those that run on tasks of one kind."""
    return [name for name, entry in AGENTS.items() if kind is None or getattr(entry.make, "kind", kind) == kind]


def _missing(made: Any) -> str:
    members = [name for name in vars(Agent) if not name.startswith("_")]
    return ", ".join(name for name in members if not hasattr(made, name)) or "nothing"


_BUILT_IN: tuple[tuple[Any, dict[str, dict[str, Any]]], ...] = (
    (sarsa.Sarsa, sarsa.AGENTS),
    (planner.Planner, planner.AGENTS),
    (linear_q.LinearQ, linear_q.AGENTS),
    (dqn.DQN, dqn.AGENTS),
)
for _make, _names in _BUILT_IN:
    for _name, _settings in _names.items():
        register_agent(_name, _make, **_settings)
