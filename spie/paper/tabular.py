"""Tables 1, 3, 4: RiverSwim and SixArms, with the paper's settings and with controls that the paper lacks."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from spie.agents.registry import agent as named
from spie.agents.sarsa.settings import Sarsa
from spie.paper import published as paper
from spie.runs.run import Run
from spie.tasks import riverswim, sixarms
from spie.tasks.mdp import MDP

CHAINS = {"riverswim": riverswim, "sixarms": sixarms}
CELLS = paper.TABLE_1 | paper.TABLE_3 | paper.TABLE_4


def settings(env: str, agent: str) -> Sarsa:
    """An agent with the settings of Table 5; the ablations have no row there and use those of SARSA-SRR."""
    row = "sarsa-srr" if agent in ("sarsa-srr-a", "sarsa-srr-b", "sarsa-srr-c") else agent
    s: Sarsa = named(agent, **paper.TABLE_5[env, row])
    return s


def controls(env: str) -> dict[str, Sarsa]:
    """What the paper does not compare with: agents with no representation, else with SARSA-SRR's settings.

    A cost of -1 a step times beta; no bonus but a Q that starts at the most an agent can earn; a count bonus with a Q
    that starts at the most it can pay; and a uniform random walk.
    """
    s = settings(env, "sarsa-srr")
    common: dict[str, Any] = {"alpha": s.alpha, "gamma": s.gamma, "epsilon": s.epsilon}
    most = float(CHAINS[env]().reward.max()) / (1 - s.gamma)
    return {
        "constant": Sarsa(reward="constant", beta=s.beta, **common),
        "optimistic": Sarsa(reward="none", q0=most, **common),
        "count": Sarsa(reward="count", beta=s.beta, q0=s.beta / (1 - s.gamma), **common),
        "random": Sarsa(reward="none", epsilon=1.0),
    }


def runs(cells: Mapping[tuple[str, str], paper.Cell], seeds: int) -> list[Run]:
    """The runs of a table: its cells, then the controls."""
    agents = [(env, agent, settings(env, agent)) for env, agent in cells]
    agents += [(env, name, s) for env in CHAINS for name, s in controls(env).items()]
    return [Run(env, agent, s, CHAINS[env](), paper.CHAIN_STEPS, seeds) for env, agent, s in agents]


def other_readings(s: Sarsa) -> dict[str, Sarsa]:
    """The same agent under each other reading of an open point that makes a difference to it, by option."""
    options: dict[str, Any] = {"next_action": "carry", "ties": "first"}
    if s.learned and s.reward != "none":
        options["m0"] = 1.0
    if s.learned and s.reward not in ("none", "sr", "sr-r"):
        options["bonus_from"] = "previous"  # 1 / |M[s, :]| would be infinite at first; in SR-R the update cancels
    if s.reward == "fr":
        options["reward"] = "fr-next"
    if not s.learned:
        options["alpha"] = 0.0  # the released code learns no Q with a fixed representation
    return {f"{option}={value}": dataclasses.replace(s, **{option: value}) for option, value in options.items()}


READINGS = {  # every cell of the tables as read here, then under each other reading: agent is "name option=value"
    (env, f"{agent} {reading}".strip()): s
    for env, agent in CELLS
    for reading, s in ({"": settings(env, agent)} | other_readings(settings(env, agent))).items()
}


def reading_runs(seeds: int) -> list[Run]:
    """Whether another reading of an open point explains where ours differ."""
    return [Run(env, agent, s, CHAINS[env](), paper.CHAIN_STEPS, seeds) for (env, agent), s in READINGS.items()]


def best_return(mdp: MDP, steps: int) -> float:
    """Expected undiscounted reward of the best policy for `steps` steps, by dynamic programming: the ceiling."""
    if mdp.terminal.any() or mdp.n_phases > 1:
        raise ValueError(f"{mdp.name}: the ceiling is for one phase without end")
    expected = (mdp.prob * mdp.reward[0]).sum(axis=2)
    expected[~mdp.available] = -np.inf
    value = np.zeros(mdp.n_states)
    for _ in range(steps):
        value = (expected + (mdp.prob * value[mdp.next]).sum(axis=2)).max(axis=1)
    return float(mdp.start @ value)
