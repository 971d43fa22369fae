"""Every agent and every control tuned in the same way, then compared on seeds that no tuning saw.

A search ranks all settings on few seeds, a second round ranks the best of them on more, and what is reported comes from
a third set of seeds with the settings that are left, because the best of many noisy means flatters itself.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spie.agents.sarsa.batch import Sarsa
from spie.runs.run import Role, Run
from spie.search.select import FRESH, Array, Load, Search
from spie.tasks.mdp import MDP

FINALISTS = 10  # of the search, for the second round
PRINTED: dict[str, Any] = {"settings": "printed"}  # the variant of an agent that has the paper's settings, not tuned


class Contest(NamedTuple):
    """One agent's search for the settings that do best on one environment, or on several together."""

    agent: str
    searches: Sequence[Search]
    second_seeds: int

    def finalists(self, load: Load) -> list[list[tuple[Run, Array]]]:
        """The runs of the second round, for each environment."""
        first = self._together([search.scores(load).mean(axis=1) for search in self.searches])
        best = self.searches[0].best(first, FINALISTS)
        return [search.again(best, _seeds(1, self.second_seeds)) for search in self.searches]

    def winner(self, load: Load) -> int:
        """The number of the settings that the second round leaves."""
        rounds = self.finalists(load)
        means = [np.concatenate([load(run).values.mean(axis=1) for run, _ in runs]) for runs in rounds]
        numbers = np.concatenate([inside for _, inside in rounds[0]])
        return int(numbers[self.searches[0].best(self._together(means), 1)[0]])

    def _together(self, means: Sequence[Array]) -> Array:
        """Mean over environments, each in proportion to its size."""
        parts = [m / search.mdp.n_states for m, search in zip(means, self.searches, strict=True)]
        return np.asarray(np.mean(parts, axis=0))


def _seeds(n_round: int, n: int) -> tuple[int, ...]:
    """Fresh seeds of the second round (1) and of what is reported (2)."""
    return tuple(range(n_round * FRESH, n_round * FRESH + n))


def confirmed(
    env: str, agent: str, s: Sarsa, mdp: MDP, steps: int, seeds: int, role: Role = "paper", **variant: Any
) -> Run:
    """A run on seeds that no tuning saw."""
    return Run(env, agent, s, mdp, steps, _seeds(2, seeds), role=role, variant=variant)
