"""What we found, for the README: sentences computed from the results that ship, and from what needs no run at all."""

import re
import tempfile
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spie.paper import registry, rules
from spie.paper.beyond.exploration_dropin import CONTROLS
from spie.paper.beyond.exploration_pixels import HELD_OUT, NOISY, PLAIN, WITHOUT
from spie.paper.claims import Judgement, judge
from spie.paper.results import Results
from spie.paper.sections import Table
from spie.paper.shipped import Shipped, available
from spie.runs.store import Store

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- computed by `make found` -->", "<!-- end of what is computed -->"
SPIE = "sarsa-srr"
EASY = 0.95  # late success of a bare agent to which a bonus can add nothing


def sentences() -> list[str]:
    """One for each thing found, with its numbers."""
    shipped = available()[0]
    return [
        _contradicted(_judgements(shipped)),
        _chains(shipped["tuned"]),
        _coverage(shipped["tuned-grids"]),
        _planner(shipped["exploration"], _judgements(shipped)),
        _pixels(shipped["pixels"]),
        _novelty(shipped["exploration-pixels"], _judgements(shipped)),
        _dropin(shipped["exploration-dropin@tier=hours"]),
    ]


def _judgements(shipped: dict[str, Shipped]) -> list[Judgement]:
    """Verdicts of what ships alone: nobody's own runs are read."""
    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/none.db") as store:
        found = judge(Results(store), registry.claims())
    for one in shipped.values():
        found = [one.judged(judgement) for judgement in found]
    return found


def _contradicted(judgements: Sequence[Judgement]) -> str:
    claims = [j for j in judgements if not j.claim.ours and not j.claim.same_as]
    against = [j for j in claims if j.verdict == rules.CONTRADICTED]
    return (
        f"**The paper against its own tables.** Of {len(claims)} claims in the paper, {len(against)} are contradicted "
        f"by numbers printed in it; `{against[0].claim.id}` is one: {against[0].claim.text} `make reproduce` judges "
        "the others in minutes."
    )


def _chains(tuned: Shipped) -> str:
    said = []
    for env, table in zip(("RiverSwim", "SixArms"), _tables(tuned), strict=False):
        rows = [row for row in table if row[0] != "best policy"]  # the ceiling, which nobody learned
        mean = {_name(row[0]): float(row[1]) for row in rows}
        tried = {_name(row[0]): row[7] for row in rows}
        control = max((_name(row[0]) for row in table if "control" in row[0]), key=mean.__getitem__)
        best = max(mean, key=mean.__getitem__)
        said.append(
            f"on {env} most is earned by `{best}` ({tried[best]:,} settings tried, of `{SPIE}` {tried[SPIE]:,}), and "
            f"`{SPIE}` earns {mean[SPIE] / mean[control]:.2f} times what the best control, `{control}` "
            f"({tried[control]:,}), earns"
        )
    return f"**With reward, every agent tuned alike, {tuned.seeds} fresh seeds:** {'; '.join(said)}."


def _coverage(grids: Shipped) -> str:
    table = _tables(grids)[0]
    columns = len(table[0]) - 1
    fastest: Counter[str] = Counter()
    ratios = []
    for i in range(1, columns + 1):
        steps = {_name(row[0]): _steps(row[i]) for row in table}
        fastest[min(steps, key=steps.__getitem__)] += 1
        ratios.append(steps[SPIE] / steps["constant"])
    who = ", ".join(f"`{name}` on {n}" for name, n in fastest.most_common())
    return (
        f"**Without reward, tuned alike, {grids.seeds} fresh seeds, {columns} maps:** fewest steps to 99 % of the "
        f"cells: {who}. `{SPIE}` takes {min(ratios):.2f} to {max(ratios):.2f} times the steps of a constant cost."
    )


def _planner(exploration: Shipped, judgements: Sequence[Judgement]) -> str:
    ours = [j for j in judgements if j.claim.id in exploration.content["claims"]]
    score = {row[0]: row[1] for row in _tables(exploration)[0]}
    second = max((name for name in score if name != "spie"), key=lambda name: float(score[name]))
    return (
        f"**What does help on tables** is a planner of ours, `spie`: mean score {score['spie']} over the held-out "
        f"tasks of `spie run exploration`, the second best (`{second}`) {score[second]}, `{SPIE}` {score[SPIE]}. "
        f"{_tally(ours)}"
    )


def _tally(judgements: Sequence[Judgement]) -> str:
    """How many claims of ours hold, which reproduce nothing: "Of 7 claims on it, 4 hold, 3 hold in part."."""
    words = {
        rules.REPRODUCED: ("holds", "hold"),
        rules.PARTLY: ("holds in part", "hold in part"),
        rules.NOT_REPRODUCED: ("does not hold", "do not hold"),
    }
    told = Counter(j.verdict for j in judgements)
    said = [
        f"{n} {words.get(verdict, (f'is {verdict}', f'are {verdict}'))[n > 1]}" for verdict, n in told.most_common()
    ]
    return f"Of {len(judgements)} claims on it, {', '.join(said)}."


def _pixels(pixels: Shipped) -> str:
    table = _tables(pixels)[0]
    seen = {_name(row[0]): row[1] for row in table}
    names = {"count": "counts (which know the states)", "constant": "a constant cost", "dqn-mmc": "no bonus"}
    others = ", ".join(f"{word} {seen[name]}" for name, word in names.items())
    no_better = float(seen["dqn-sf-pf"]) <= float(seen["dqn-mmc"])
    end = ": the paper's deep bonus explores no better than none here." if no_better else "."
    head = f"**On pixels, FourRooms, {pixels.seeds} seeds:** states seen by DQN-SF-PF {seen['dqn-sf-pf']}"
    return f"{head}, by {others}{end}"


def _novelty(pixels: Shipped, judgements: Sequence[Judgement]) -> str:
    tables = {part.caption.partition(":")[0]: part.rows for part in pixels.parts if isinstance(part, Table)}
    success = {
        env: {_name(row.values[0]): float(row.values[2].split()[0]) for row in tables[env]}
        for env in (*PLAIN, *NOISY, *HELD_OUT)
        if env in tables
    }
    said = []
    for env in PLAIN:
        rival = max(WITHOUT, key=success[env].__getitem__)
        said.append(
            f"on {env} late success {success[env]['spie']} %, the best of the paper's agents and a constant cost "
            f"(`{rival}`) {success[env][rival]}, novelty without a potential {success[env]['novelty']}, true counts "
            f"paid alike {success[env]['count paid as spie']}"
        )
    more = ""
    for where, envs in {"Where the picture has noise": NOISY, "On tasks that no trial saw": tuple(HELD_OUT)}.items():
        figures = [f"{env} {success[env]['spie']} ({success[env]['dqn-mmc']})" for env in envs if env in success]
        more += f" {where} (in brackets: no bonus): {'; '.join(figures)}." if figures else ""
    ours = [j for j in judgements if j.claim.id in pixels.content["claims"] and j.verdict != rules.NOT_RUN]
    unfinished = " Not all of its runs have ended." if pixels.unfinished else ""
    return (
        f"**What does help on clean pixels** is novelty, paid as `spie` pays it, {pixels.seeds} seeds: "
        f"{'; '.join(said)}.{more} {_tally(ours)}{unfinished}"
    )


def _dropin(dropin: Shipped) -> str:
    tables = {part.caption.partition(": ")[0]: part.rows for part in dropin.parts if isinstance(part, Table)}
    said, easy = [], []
    for env, rows in tables.items():
        late = {row.values[0]: row.values[1].split()[0] for row in rows}
        if float(late["bare"]) > EASY:
            easy.append(f"{env} {late['bare']}")
            continue
        control = max(CONTROLS, key=lambda name: float(late[name]))
        said.append(
            f"{env} bare {late['bare']}, `novelty` {late['novelty']}, `sp-novelty` {late['sp-novelty']}, the best "
            f"control (`{control}`) {late[control]}"
        )
    end = f"; where the bare agent has it already, there is nothing to gain ({', '.join(easy)})" if easy else ""
    head = f"**In agents of Stable-Baselines3**, {dropin.seeds} seeds, share of the late episodes that reach the goal"
    return f"{head}: {'; '.join(said)}{end}."


def _tables(shipped: Shipped) -> list[list[Any]]:
    return [[row.values for row in part.rows] for part in shipped.parts if isinstance(part, Table)]


def _name(cell: str) -> str:
    return cell.partition(" (")[0]


def _steps(cell: str) -> float:
    digits = re.sub(r"\D", "", cell)
    return float("inf") if ">" in cell else float(digits)


def block() -> str:
    """What stands between the two marks."""
    lines = [
        textwrap.fill(f"- {sentence}", 148, subsequent_indent="  ", break_on_hyphens=False) for sentence in sentences()
    ]
    return "\n".join([BEGIN, "", *lines, "", END])


def renewed(text: str) -> str:
    """A text with the block computed again."""
    if BEGIN not in text or END not in text:
        raise ValueError(f"no {BEGIN} ... {END} in this text")
    before, rest = text.split(BEGIN, 1)
    return before + block() + rest.split(END, 1)[1]


def main() -> None:
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
