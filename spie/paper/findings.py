"""What was found, in five sentences, each computed from what is stored; where that is not enough, it says so."""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spie import stats
from spie.paper import rules
from spie.paper.claims import Judgement
from spie.paper.grid_worlds import COVERAGE_MAPS, SHARES
from spie.paper.results import Results, Stored
from spie.paper.sections import number

SPIE = "sarsa-srr"
ANSWERS = {
    rules.REPRODUCED: "times yes",
    rules.PARTLY: "times in part",
    rules.UNDECIDED: "times undecided",
    rules.NOT_REPRODUCED: "times no",
}


def findings(results: Results, judgements: Sequence[Judgement]) -> list[str]:
    """Who leads, with reward and without; how fast SPIE learns; what is reproduced; what the controls say."""
    by_id = {judgement.claim.id: judgement for judgement in judgements}
    return [chains(results), coverage(results), learning(by_id), reproduced(judgements), controls(judgements)]


def chains(results: Results) -> str:
    """Who earns most on the chains."""
    found = _enough(results, "table1")
    if not found:
        return "Who earns most on RiverSwim and SixArms is not known yet: spie run table1."
    of_paper: list[str] = []
    of_controls: list[str] = []
    for env, cells in found.items():
        for said, control in ((of_paper, False), (of_controls, True)):
            values = {n: trace.total_reward for n, (run, trace) in cells.items() if (run.role == "control") == control}
            best, level = leaders(values)
            times = f"{number(values[best].mean() / cells[SPIE].trace.total_reward.mean())} times {SPIE}'s"
            beside = f"not told apart from it: {', '.join(level)}"
            facts = "; ".join([times] * (best != SPIE) + [beside] * bool(level))
            said.append(f"{best} on {env}{f' ({facts})' if facts else ''}")
    return (
        f"With the paper's settings, most reward of the paper's agents is earned by {_listed(of_paper)}; "
        f"of our controls, by {_listed(of_controls)}."
    )


def leaders(values: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Who has the highest mean, and who cannot be told apart from it by a 95 % interval of the difference."""
    best = max(values, key=lambda name: float(values[name].mean()))
    return best, [name for name in values if name != best and stats.difference(values[best], values[name])[1] <= 0]


def coverage(results: Results) -> str:
    """Who sees most of the maps first."""
    found = _enough(results, "figure1")
    if not found:
        return "Who covers the grid worlds fastest is not known yet: spie run figure1."
    of_paper, of_all = Counter[str](), Counter[str]()
    for env, share in itertools.product(COVERAGE_MAPS, SHARES):
        steps = {name: float(np.median(stored.trace.steps_to(share))) for name, stored in found[env].items()}
        of_all[min(steps, key=lambda name: steps[name])] += 1
        agents = [name for name, stored in found[env].items() if stored.run.role != "control"]
        of_paper[min(agents, key=lambda name: steps[name])] += 1
    n = len(COVERAGE_MAPS) * len(SHARES)
    return (
        f"Without reward, the fewest median steps to 50, 90 and 99 % of four maps, {n} comparisons, are those of "
        f"{_counts(of_paper)} among the paper's agents, and of {_counts(of_all)} when our controls are counted as well."
    )


def learning(by_id: Mapping[str, Judgement]) -> str:
    """How much faster SPIE learns where there is a goal."""
    goals, car = by_id.get("goal-efficiency"), by_id.get("mountain-car")
    said = []
    if goals and goals.parts and goals.verdict != rules.NOT_RUN:
        ratios = [part.value for part in goals.parts]
        span = f"{number(min(ratios))} to {number(max(ratios))}"
        said.append(f"on goal tasks {SPIE} takes {span} times the steps of the others (fewer: {goals.verdict})")
    else:
        said.append("how fast it learns goal tasks is not known yet (spie run figure3)")
    if car and car.parts and car.verdict != rules.NOT_RUN:
        ratio = f"{car.parts[0].value:.3g}"
        said.append(f"on MountainCar r_SF-PF takes {ratio} times the steps of r_SF (far fewer: {car.verdict})")
    else:
        said.append("how it does on MountainCar is not known yet (spie run figure4)")
    return f"Where there is a goal, {'; '.join(said)}."


def reproduced(judgements: Sequence[Judgement]) -> str:
    """The verdicts on what the paper says itself, restatements left out."""
    claims = [j for j in judgements if not j.claim.ours and not j.claim.same_as]
    found = Counter(j.verdict for j in claims)
    parts = [f"{found[verdict]} {verdict}" for verdict in rules.VERDICTS if found[verdict]]
    return f"The verdicts on {len(claims)} claims of the paper are: {_listed(parts or ['none yet'])}."


def controls(judgements: Sequence[Judgement]) -> str:
    """Whether agents without representation do as well."""
    asked = [j for j in judgements if j.claim.controls]
    decided = [j for j in asked if j.verdict not in (rules.NOT_RUN, rules.OVER_BUDGET)]
    if not decided:
        return "Whether SPIE does better than agents without any representation is not known yet: spie run."
    found = Counter(j.verdict for j in decided)
    said = ", ".join(f"{found[verdict]} {answer}" for verdict, answer in ANSWERS.items() if found[verdict])
    left = f", and {len(asked) - len(decided)} not run" if len(decided) < len(asked) else ""
    question = "Whether SPIE does better than our controls, agents without any representation"
    return f"{question}, is asked {len(asked)} times; the answer is {said}{left}."


def _enough(results: Results, experiment: str) -> dict[str, dict[str, Stored]]:
    """The cells of an experiment that is finished with enough seeds; else none."""
    if not results.finished(experiment):
        return {}
    found = results.found(experiment)
    seeds = min(stored.run.n_seeds for cells in found.values() for stored in cells.values())
    return found if seeds >= rules.FEWEST_SEEDS else {}


def _counts(found: Counter[str]) -> str:
    return _listed(f"{name} ({n})" for name, n in found.most_common())


def _listed(names: Iterable[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
