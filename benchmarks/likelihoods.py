"""Whether the compiled likelihood is that of plain NumPy, choice by choice: every reward, policy and choice term.

    python benchmarks/likelihoods.py                    everything; stopped, it goes on where it was
    python benchmarks/likelihoods.py sr-r planner       these rewards and walkers alone
    python benchmarks/likelihoods.py --keep FILE        where finished combinations are noted (likelihoods.jsonl)

Each choice term alone, all together and none, under both policies; in three mazes, in three mazes in turn (as the rats
of Tartarus walk: learning carries on) and on RiverSwim; actions known and unknown, trials of different lengths.
Compared are log p and the bonus of each step and Q at the end, with those of `tests/reference.py`, which shares no code
with the kernel; the rewards are written here once more. The sum over steps that a fit sees is that of the steps. And
the chances of all actions sum to 1, at every step. Each combination of a reward, a policy, a kind of task and of terms
is two kernels of seconds to compile; that is why `make test` tries a few.
"""

import argparse
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import own_reward  # noqa: F401  (makes "everything" known, which asks for all there is)
import spie
from reference import reference
from reference_places import reference_places
from spie.agents.sarsa.batch import Batch
from spie.behaviour.mazes import cell_maze
from spie.behaviour.state_values import PLACE_WALKS, StateValues
from spie.rewards import reward_names

HERE = Path(__file__).resolve().parents[1]
FORMULAS: dict[str, Callable[..., float]] = {  # as the paper has them, of whole matrices
    "none": lambda M, F, N, visits, s, s2, left: 0.0,
    "sr": lambda M, F, N, visits, s, s2, left: 1 / np.abs(M[s]).sum(),
    "fr": lambda M, F, N, visits, s, s2, left: np.abs(F[s]).sum(),
    "fr-next": lambda M, F, N, visits, s, s2, left: np.abs(F[s2]).sum(),
    "sr-r": lambda M, F, N, visits, s, s2, left: M[s, s2] - np.abs(M[:, s2]).sum(),
    "sr-r(a)": lambda M, F, N, visits, s, s2, left: M[s, s2],
    "sr-r(b)": lambda M, F, N, visits, s, s2, left: -np.abs(M[:, s2]).sum(),
    "sr-r(c)": lambda M, F, N, visits, s, s2, left: np.abs(M[s]).sum() - M[s, s2],
    "sr-pr": lambda M, F, N, visits, s, s2, left: M[s, s2] - np.abs(N[:, s2]).sum(),
    "constant": lambda M, F, N, visits, s, s2, left: -1.0,
    "count": lambda M, F, N, visits, s, s2, left: visits[s2] ** -0.5,
    "etd": lambda M, F, N, visits, s, s2, left: min(-np.log(max(F[x, s2], 0.01)) for x in left),
}
RATES = {"alpha": 0.3, "eta": 0.2, "gamma_sr": 0.9, "eta_pr": 0.15, "gamma_pr": 0.8, "beta": 0.7, "q0": 0.5}
POLICIES: dict[str, dict[str, Any]] = {
    "epsilon-greedy": {"epsilon": 0.3},
    "softmax": {"policy": "softmax", "inverse_temperature": 1.7},
}
TERMS: dict[str, dict[str, float]] = {
    "no term": {},
    "stickiness": {"stickiness": 0.4},
    "heading": {"heading": 0.6},
    "turn_back": {"turn_back": -0.8},
    "habit": {"habit": 1.2, "habit_rate": 0.3},
    "lapse": {"lapse": 0.1},
}
ALL = {name: value for term in TERMS.values() for name, value in term.items()}
PLACES = {  # walkers of the value of places
    "sr-agent": {"start": "successors", "alpha": 0.3, "gamma": 0.8},
    "planner": {"start": "planned", "alpha": 0.0, "gamma": 0.8},
    "bee-line": {"start": "bee-line", "alpha": 0.0},
}


class Task(NamedTuple):
    """Mazes that subjects walk through in turn, and what they did."""

    mazes: tuple[spie.MDP, ...]
    subjects: list[list["Walk"]]


class Walk(NamedTuple):
    """A trial; actions are -1 where they are not told."""

    maze: int
    states: list[int]
    actions: list[int]
    told: list[int]


def task(*mazes: spie.MDP) -> Task:
    """Two subjects: random walks of several lengths, their actions told; and the same without the second's actions."""
    rng, subjects = np.random.default_rng(7), []
    for lengths in ((25, 6, 40, 1, 12, 9, 21), (50, 3, 17)):
        walks = []
        for k, steps in enumerate(lengths):
            maze = mazes[k % len(mazes)]
            phase = k // maze.episodes_per_phase % maze.n_phases if maze.episodes_per_phase else 0
            s, actions = int(rng.choice(maze.n_states, p=maze.start)), []
            states = [s]
            for _ in range(steps):
                a = int(rng.choice(np.flatnonzero(maze.available[s])))
                s = int(rng.choice(maze.next[s, a], p=maze.prob[s, a]))
                states.append(s)
                actions.append(a)
                if maze.terminal[phase, s]:
                    break
            walks.append(Walk(k % len(mazes), states, actions, actions))
        subjects.append(walks)
    subjects.append([walk._replace(told=[-1] * len(walk.told)) for walk in subjects[1]])
    return Task(mazes, subjects)


def walled(name: str, text: str) -> spie.MDP:
    return cell_maze(name, np.array([[letter != "#" for letter in row] for row in text.split()]), 11)


TASKS = {
    "goal": task(spie.grid("S..#..\n...#.G\n......\n...#..", "goal", bumps=False)),
    "moving goal": task(spie.grid("S....1\n.####.\n......\n2....G", "moving-goal", episodes_per_goal=2, bumps=False)),
    "open field": task(spie.grid("S....\n.....\n.....\n.....\n.....", bumps=False)),
    "mazes in turn": task(
        walled("one", "...#.. ...#.. ...... ...#.."),
        walled("two", "...#.. ...... ...#.. ...#.."),
        walled("three", "...... .##.#. .##.#. ......"),
    ),
    "riverswim": task(spie.riverswim()),
}


class Case(NamedTuple):
    """What is compared."""

    walker: str  # a reward, or one of PLACES
    policy: str
    task: str
    term: str


def cases() -> Iterator[Case]:
    """All there are, those of one kernel one after the other."""
    for reward, where, policy, term in itertools.product(
        reward_names("tables and episodes"), TASKS, POLICIES, [*TERMS, "all terms"]
    ):
        if not (term == "lapse" and policy == "epsilon-greedy") and not (term == "heading" and where == "riverswim"):
            yield Case(reward, policy, where, term)
    for walker, where, term in itertools.product(PLACES, ("goal", "mazes in turn"), [*TERMS, "all terms"]):
        if term != "habit":  # which these walkers do not have
            yield Case(walker, "softmax", where, term)


def settings(case: Case) -> Any:
    """The walker of a case."""
    terms = dict(ALL if case.term == "all terms" else TERMS[case.term])
    if TASKS[case.task].mazes[0].cells is None:
        terms.pop("heading", None)
    if case.walker in PLACES:
        terms = {name: value for name, value in terms.items() if not name.startswith("habit")}
        return StateValues(**PLACES[case.walker], inverse_temperature=2.0, **terms)
    if case.policy == "epsilon-greedy":
        terms.pop("lapse", None)
    return spie.Sarsa(reward=case.walker, next_action="carry", **RATES, **POLICIES[case.policy], **terms)


def replay_of(subjects: list[list[Walk]]) -> spie.Replay:
    return spie.Replay(
        states=[[walk.states for walk in walks] for walks in subjects],
        actions=[[walk.told for walk in walks] for walks in subjects],
        mazes=[[walk.maze for walk in walks] for walks in subjects],
    )


def followed(agent: Any, where: Task, subjects: list[list[Walk]], likelihood: Any = "each") -> Batch:
    """The compiled agent along these subjects."""
    replay = replay_of(subjects)
    rows = np.arange(replay.n_subjects)
    keep = spie.Keep(matrices=("Q",)) if likelihood == "each" else spie.Keep()
    batch = Batch([agent], where.mazes, replay.steps, rows, keep=keep, recorded=True, likelihood=likelihood)
    batch.follow(replay, rows)
    return batch


def apart(found: Any, expected: Any) -> float:
    """The largest difference, relative where numbers are above 1; of log p that is the relative difference of p."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape, (found.shape, expected.shape)
    return float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max(initial=0.0))


def compare(case: Case) -> dict[str, float]:
    """The largest differences between what is compiled and the reference."""
    if case.walker in PLACES:
        return compare_places(case)
    agent, where = settings(case), TASKS[case.task]
    batch = followed(agent, where, where.subjects)
    (trace,), paths = batch.execute(spie.Session(threads=1)), batch.paths(0)
    worst = dict.fromkeys(("log p", "bonus", "Q"), 0.0)
    sums, steps = [], 0
    for i, walks in enumerate(where.subjects):
        along = [(np.array(w.states), np.array(w.told), None, where.mazes[w.maze]) for w in walks]
        plain = reference(agent, where.mazes[0], 0, 0, along=along, formula=FORMULAS.get(case.walker))
        steps += len(plain.log_p)
        pairs = {
            "log p": (batch.log_p[i, : len(plain.log_p)], plain.log_p),
            "bonus": (paths[i].bonuses, plain.bonuses),
            "Q": (trace.Q[i], plain.Q),
        }
        worst |= {name: max(worst[name], apart(*pair)) for name, pair in pairs.items()}
        sums.append(plain.log_p.sum())
    whole = followed(agent, where, where.subjects, "sum")
    whole.run_lanes(spie.Session(threads=1))
    worst["sum of log p"] = apart(whole.lanes["log_p"], sums)
    others, groups = alternatives(where, where.subjects[0])
    batch = followed(agent, where, others)
    batch.run_lanes(spie.Session(threads=1))
    last = [batch.log_p[i, sum(len(w.actions) for w in walks) - 1] for i, walks in enumerate(others)]
    return worst | {"sum of p": apart(np.bincount(groups, np.exp(last)), 1.0 + 0 * np.unique(groups)), "steps": steps}


def alternatives(where: Task, walks: list[Walk]) -> tuple[list[list[Walk]], NDArray[np.int64]]:
    """For each step of a subject its way there, and then each available action in turn; and the number of the step."""
    found, groups, number = [], [], 0
    for k, walk in enumerate(walks):
        maze = where.mazes[walk.maze]
        for i in range(len(walk.actions)):
            s = walk.states[i]
            for a in np.flatnonzero(maze.available[s]).tolist():
                there = int(maze.next[s, a, maze.prob[s, a].argmax()])
                actions = [*walk.actions[:i], a]
                found.append([*walks[:k], Walk(walk.maze, [*walk.states[: i + 1], there], actions, actions)])
                groups.append(number)
            number += 1
    return found, np.array(groups)


def as_paths(where: Task, subjects: list[list[Walk]]) -> spie.Paths:
    """The same as spie.Paths."""
    trials = [
        spie.behaviour.reading.Trial(
            str(i), "1", str(k), walk.maze, np.array(walk.states, np.int32), np.array(walk.told, np.int32)
        )
        for i, walks in enumerate(subjects)
        for k, walk in enumerate(walks)
    ]
    return spie.Paths(where.mazes, tuple(trials))


def compare_places(case: Case) -> dict[str, float]:
    """The same of a walker of the value of places."""
    walker, where = settings(case), TASKS[case.task]
    paths = as_paths(where, where.subjects)
    rows = np.arange(len(paths.subjects))
    each = PLACE_WALKS.log_p([walker] * len(rows), paths, rows, True)
    plain = [reference_places(walker, paths, subject)[0] for subject in paths.subjects]
    others, groups = alternatives(where, where.subjects[0])
    tried = as_paths(where, others)
    rows_tried = np.arange(len(tried.subjects))
    log_p = PLACE_WALKS.log_p([walker] * len(rows_tried), tried, rows_tried, True)
    last = log_p[rows_tried, tried.walks.steps - 1]
    return {
        "log p": max(apart(row[: len(p)], p) for row, p in zip(each, plain, strict=True)),
        "sum of log p": apart(PLACE_WALKS.log_p([walker] * len(rows), paths, rows), [p.sum() for p in plain]),
        "sum of p": apart(np.bincount(groups, np.exp(last)), 1.0 + 0 * np.unique(groups)),
        "steps": sum(map(len, plain)),
    }


def code_hash() -> str:
    """Of all that is compared; what was found for other code is not taken over."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    folders = ("spie/agents", "spie/agents/sarsa", "spie/engine", "spie/behaviour", "spie/tasks", "tests")
    for path in sorted(path for folder in folders for path in (HERE / folder).glob("*.py")):
        if path.parent.name != "tests" or path.name.startswith(("reference", "own_reward")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def finished(file: Path, code: str) -> dict[Case, dict[str, float]]:
    """What was found before; half a line, where it was killed, is left out."""
    found = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            noted = json.loads(line)
        except ValueError:
            continue
        if noted["code"] == code:
            found[Case(*noted["case"])] = noted["worst"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walkers", nargs="*", help="rewards, sr-agent, planner, bee-line (default: all)")
    parser.add_argument("--keep", type=Path, default=Path("likelihoods.jsonl"))
    parser.add_argument("--bound", type=float, default=1e-10, help="the largest difference that is rounding")
    asked = parser.parse_args()
    wanted = [case for case in cases() if not asked.walkers or case.walker in asked.walkers]
    if missing := set(asked.walkers) - {case.walker for case in cases()}:
        parser.error(f"no reward or walker {', '.join(sorted(missing))}")
    code = code_hash()
    found = finished(asked.keep, code)
    began, group = time.process_time(), None
    with asked.keep.open("a") as notes:
        notes.write("\n")  # after half a line
        for i, case in enumerate(wanted):
            if case[:3] != group:
                group = case[:3]
                print(
                    f"{i:5} of {len(wanted)}, {time.process_time() - began:6.0f} CPU s: {', '.join(group)}", flush=True
                )
            if case not in found:
                found[case] = compare(case)
                notes.write(json.dumps({"code": code, "case": case, "worst": found[case]}) + "\n")
                notes.flush()
            if bad := {name: x for name, x in found[case].items() if name != "steps" and not x < asked.bound}:
                print(f"      DIFFERS: {case.term}: {bad}", flush=True)
    seen = {case: found[case] for case in wanted}
    names = list(dict.fromkeys(name for worst in seen.values() for name in worst if name != "steps"))
    steps = int(sum(worst["steps"] for worst in seen.values()))
    print(
        f"{len(seen)} combinations, {steps:,} steps, {time.process_time() - began:.0f} CPU s now; largest difference:"
    )
    for name in names:
        case = max((case for case in seen if name in seen[case]), key=lambda case: seen[case][name])
        print(f"  {name:13} {seen[case][name]:.1e}  ({', '.join(case)})")
    sys.exit(any(not worst[name] < asked.bound for worst in seen.values() for name in worst if name != "steps"))


if __name__ == "__main__":
    main()
