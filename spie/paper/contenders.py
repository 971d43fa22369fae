"""Who is compared: an agent of an experiment, and how it differs from the agent so named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spie.runs.run import Run

CONTROLS = ("constant", "optimistic", "count", "random")  # tabular agents without representation: ours, not the paper's


def words(variant: Mapping[str, Any]) -> str:
    """A variant for people: "ties=first"; of a whole phrase "tuned on this task"."""
    return " ".join(map(_setting, variant, variant.values()))


def _setting(name: str, value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name} {text}" if " " in text else f"{name}={text}"


def label(agent: str, variant: Mapping[str, Any]) -> str:
    """An agent and its variant for people: "sarsa-srr ties=first"."""
    return f"{agent} {words(variant)}".rstrip()


def label_of(run: Run) -> str:
    """The agent of a run, and its seeds where they are not the first ones: "dqn-sf-pf seed 1"."""
    return f"{label(run.agent, run.variant)} {run.seed_words}".rstrip()


@dataclass(frozen=True, eq=False)
class Contender:
    """An agent of an experiment, as claims name it."""

    experiment: str
    agent: str
    variant: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return label(self.agent, self.variant)


def of(experiment: str, *agents: str, **variant: Any) -> tuple[Contender, ...]:
    """Several agents of one experiment."""
    return tuple(Contender(experiment, agent, variant) for agent in agents)
