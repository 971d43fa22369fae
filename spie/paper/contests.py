"""Every agent and every control tuned in the same way, then compared on seeds that no tuning saw.

A search ranks all settings on few seeds, a second round ranks the best of them on more, and what is reported comes from
a third set of seeds with the settings that are left, because the best of many noisy means flatters itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from spie.agents.sarsa.settings import Sarsa
from spie.paper.experiment import Experiment
from spie.paper.sections import SectionPart
from spie.runs.run import Run
from spie.search.select import Choice, Load, Round, Search, fresh

FINALISTS = 10  # of the search, for the second round
Contests: TypeAlias = Callable[[int], Mapping[Any, Choice]]  # of an experiment, by the number of seeds
PRINTED: dict[str, Any] = {"settings": "printed"}  # the variant of an agent that has the paper's settings, not tuned


def contest(searches: Sequence[Search], seeds: int, second_seeds: int, confirm: int) -> Choice:
    """All settings on few seeds, the best of them on more, those that are left on others again."""
    return Choice(tuple(searches), (Round(seeds, FINALISTS), Round(fresh(second_seeds), 1)), fresh(confirm, 2))


def first_runs(contests: Contests) -> Callable[[int], list[Run]]:
    """The searches of an experiment, which need no results; by the number of seeds."""
    return lambda seeds: [run for contest in contests(seeds).values() for run in contest.runs(0, lambda run: None)]


def second_runs(contests: Contests) -> Callable[[int, Load], list[Run]]:
    """The second rounds of an experiment."""
    return lambda seeds, load: [run for contest in contests(seeds).values() for run in contest.runs(1, load)]


def winner(contest: Choice, load: Load) -> Sarsa:
    """The settings that the second round leaves."""
    found: Sarsa = contest.settings(int(contest.best(1, load)[0]))
    return found


def contest_experiment(
    name: str,
    title: str,
    section: Callable[[Experiment, Any], Sequence[SectionPart]],
    contests: Contests,
    confirmation: Callable[[int, Load], list[Run]],
    **more: Any,
) -> Experiment:
    """An experiment of these contests, whose runs are followed by those of the winners; its section ships."""
    then = (second_runs(contests), confirmation)
    return Experiment(name, title, section, first_runs(contests), then=then, long=True, ships=section, **more)
