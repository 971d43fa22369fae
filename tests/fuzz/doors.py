"""Public doors of the library: settings, MDPs, maps, mazes, wrappers, options of runs."""

import dataclasses
import random
from typing import Any

import numpy as np
from harness import Attempt, Difference, Fuzzer
from values import WORDS, anything, array, call, number

import spie
from spie.agents.base import Agent
from spie.cli.terminal import parse_assignments, parse_choices, parse_duration
from spie.search.grid import SettingsGrid

TASKS = ("deep-sea-999999", "deep-sea-3", "random-maze-9x9", "tree-4", "chain-9")
AGENTS = (spie.Sarsa, spie.LinearQ, spie.Planner, spie.DQN)


def settings(rng: random.Random, shared: Any) -> Attempt:
    """Settings of an agent, one to three of them odd."""
    kind = rng.choice(AGENTS)
    names = [field.name for field in dataclasses.fields(kind)]
    options: dict[str, Any] = {}
    for name in rng.sample(names, rng.randint(1, 3)):
        options[name] = anything(rng) if rng.random() < 0.6 else number(rng)
    words, make = call(kind.__name__, kind, **options)

    def attempt() -> None:
        agent: Agent = make()
        if agent != dataclasses.replace(agent):
            raise Difference("settings are not equal to themselves")
        mdp = spie.riverswim()
        task = mdp if agent.kind == "table" else spie.mountain_car()
        if agent.kind != "images":
            seconds, memory = agent.seconds_per_step(task), agent.memory(task, 10, 2)
            if not (0 <= seconds < float("inf") and memory >= 0):
                raise Difference(f"{seconds} seconds a step, {memory} bytes")

    return Attempt(words, attempt)


def mdps(rng: random.Random, shared: Any) -> Attempt:
    """Tables of an MDP: right ones with up to two things wrong."""
    bits = np.random.default_rng(rng.getrandbits(32))
    S, A, K, G = rng.randint(1, 5), rng.randint(1, 4), rng.randint(1, 3), rng.randint(1, 2)
    prob = bits.dirichlet(np.ones(K), (S, A))
    fields: dict[str, Any] = {
        "name": "made",
        "next": bits.integers(0, S, (S, A, K)),
        "prob": prob,
        "reward": bits.normal(size=(G, S, A, K)),
        "start": np.eye(S)[0],
    }
    if rng.random() < 0.5:
        fields["terminal"] = np.arange(S) == S - 1 if S > 1 else False
    for _ in range(rng.randint(0, 2)):
        name = rng.choice([field.name for field in dataclasses.fields(spie.MDP)])
        change = rng.randrange(3)
        value = fields.get(name)
        if change == 0 and isinstance(value, np.ndarray) and value.size and value.dtype.kind in "if":
            value = value.copy()
            value.flat[rng.randrange(value.size)] = (
                rng.choice((-1, 7, 2**31 - 1))
                if value.dtype.kind == "i"
                else rng.choice((np.nan, np.inf, -1.0, 2.0, 1e308))
            )
            fields[name] = value
        else:
            fields[name] = anything(rng) if change == 1 else array(rng)
    words, make = call("MDP", spie.MDP, **fields)

    def attempt() -> None:
        mdp = make()
        if not np.allclose(mdp.prob.sum(axis=2)[mdp.available], 1):
            raise Difference("chances do not sum to 1")
        mdp.digest, mdp.layout, mdp.R  # noqa: B018
        P = mdp.transition()
        if not np.allclose(P.sum(axis=1), 1):
            raise Difference("rows of P do not sum to 1")
        env = mdp.env(max_steps=5)
        s, _ = env.reset(seed=1)
        for _ in range(3):
            s, _, ended, cut, _ = env.step(int(np.flatnonzero(mdp.available[s])[0]))
            if ended or cut:
                break

    return Attempt(words, attempt)


LETTERS = "#. SG12abh+-|<>^v\t\r"


def _board(rng: random.Random) -> str:
    rows, columns = rng.randint(1, 6), rng.randint(1, 6)
    if rng.random() < 0.5:
        letters = [
            [rng.choice("....##S" if rng.random() < 0.97 else "GG12ab") for _ in range(columns)] for _ in range(rows)
        ]
        text = "\n".join(map("".join, letters)) + rng.choice(("", "\n"))
        return text
    edge = lambda: rng.choice(("---", "---", "   ", "-v-", "-^-", " v "))  # noqa: E731
    flat = lambda border: "+" + "".join(("---" if border else edge()) + "+" for _ in range(columns))  # noqa: E731
    lines = [flat(True)]
    for row in range(rows):
        cells = [f" {rng.choice('    S.Gab#')} " for _ in range(columns)]
        walls = [rng.choice("|  ><") for _ in range(columns - 1)]
        lines.append("|" + "".join(cell + wall for cell, wall in zip(cells, [*walls, "|"], strict=True)))
        lines.append(flat(row == rows - 1))
    return "\n".join(lines)


def maps(rng: random.Random, shared: Any) -> Attempt:
    """Maps as text, in both notations, some with a few characters wrong, and options."""
    text = _board(rng)
    for _ in range(rng.choice((0, 0, 1, 3))):
        i = rng.randrange(len(text) + 1)
        text = text[:i] + rng.choice((*LETTERS, "", "\n", "ä", "\0", "\x1b")) + text[i + rng.randint(0, 1) :]
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        options["task"] = rng.choice(("explore", "goal", "moving-goal", "trials", None, anything(rng)))
    if rng.random() < 0.3:
        options["bumps"] = rng.choice((True, False, anything(rng)))
    if rng.random() < 0.3:
        options["rewards"] = rng.choice(({"a": 1.0}, {"a": number(rng), "b": 2}, {"z": 1}, anything(rng)))
    if rng.random() < 0.1:
        options["episodes_per_goal"] = anything(rng)
    words, make = call("grid", spie.grid, text if rng.random() < 0.95 else anything(rng), **options)

    def attempt() -> None:
        mdp = make()
        written, again = spie.write_map(mdp)
        if spie.grid(written + "\n", **again).digest != mdp.digest:
            raise Difference("the map does not come back")

    return Attempt(words, attempt)


def mazes(rng: random.Random, shared: Any) -> Attempt:
    """Everything else that makes a task: random mazes, graphs, trees, hexagons, tracks."""
    some = lambda: rng.randint(-1, 9) if rng.random() < 0.7 else anything(rng)  # noqa: E731
    edges = [[rng.randint(0, 4), rng.randint(0, 4)] for _ in range(rng.randint(0, 6))]
    if edges and rng.random() < 0.3:
        edges[rng.randrange(len(edges))] = anything(rng)
    reward = rng.choice((None, {"a": 1}, {0: 1.0}, {0: number(rng)}, anything(rng)))
    made: tuple[tuple[str, Any, tuple[Any, ...], dict[str, Any]], ...] = (
        ("maze", spie.maze, (some(), some()), {"seed": some(), "loops": rng.choice((0.1, number(rng), anything(rng)))}),
        ("graph", spie.graph, (rng.choice((edges, anything(rng))),), {"rewards": reward}),
        ("graph", spie.graph, (edges,), {"start": anything(rng)}),
        ("graph", spie.graph, (edges,), {"directed": rng.choice((True, False, anything(rng)))}),
        ("tree", spie.tree, (some(),), {"home": rng.choice((True, anything(rng))), "rewards": reward}),
        ("hexgrid", spie.hexgrid, (some(),), {}),
        ("t_maze", spie.t_maze, (some(),), {"rewards": reward}),
        ("plus_maze", spie.plus_maze, (some(),), {"rewards": reward}),
        ("linear_track", spie.linear_track, (some(),), {"rewards": reward}),
        ("tartarus", spie.tartarus, (), {rng.choice(("size", "holes", "seed", "goal", "task")): some()}),
        ("task", spie.task, (rng.choice((*WORDS, *TASKS)),), {}),
        ("task", spie.task, (anything(rng),), {}),
        ("agent", spie.agent, (rng.choice((*WORDS, "sarsa", "dqn")),), {rng.choice(("beta", "x")): anything(rng)}),
        ("agent", spie.agent, (anything(rng),), {}),
    )  # fmt: skip
    name, function, args, options = rng.choice(made)
    return Attempt(*call(name, function, *args, **options))


def representations(rng: random.Random, shared: Any) -> Attempt:
    """Closed forms and TD rules on chains, some of them wrong."""
    bits = np.random.default_rng(rng.getrandbits(32))
    S = rng.randint(1, 5)
    P: Any = bits.dirichlet(np.ones(S), S)
    if rng.random() < 0.4:
        P = anything(rng) if rng.random() < 0.5 else P * rng.choice((2.0, -1.0, np.nan, 0.0))
    gamma = rng.choice((0.9, number(rng), anything(rng)))
    two = (spie.sr, spie.fr, spie.pr, spie.sr_row_sums, spie.sr_column_sums)
    one = (spie.stationary, spie.reverse)
    if rng.random() < 0.7:
        return Attempt(*call("closed form", rng.choice(two), P, gamma))
    return Attempt(*call("closed form", rng.choice(one), P))


def options(rng: random.Random, shared: Any) -> Attempt:
    """Options of a run: steps, seeds, episodes, what is kept, replayed and where."""
    mdp, agent = shared
    given: dict[str, Any] = {}
    odd = lambda: rng.choice((number(rng), anything(rng)))  # noqa: E731
    if rng.random() < 0.4:
        given["episodes"] = odd()
    if rng.random() < 0.4:
        given["keep"] = _made(spie.Keep, rng, ("matrices", "snapshots", "paths"))
    if rng.random() < 0.4:
        given["replay"] = _made(spie.Replay, rng, ("actions", "states", "rewards", "mazes"))
    if rng.random() < 0.4:
        given["session"] = _made(spie.Session, rng, ("threads", "folder", "progress"))
    steps = odd() if rng.random() < 0.5 else rng.randint(1, 20)
    seeds = odd() if rng.random() < 0.5 else rng.choice((1, 3, [1, 2], [2, 2], [-1], [2**63], [[1]], [0.5]))
    words, _ = call("Sarsa().run", agent.run, mdp, _small(steps), _small(seeds), **given)

    def attempt() -> None:
        for name, value in given.items():
            if callable(value):  # made here, so that its own errors are judged, too
                given[name] = value()
        trace = agent.run(mdp, _small(steps), _small(seeds), **given)
        if not np.isfinite(trace.total_reward).all():
            raise Difference("totals are not finite")

    return Attempt(words, attempt)


def _small(value: Any) -> Any:
    """As it is, unless it would be accepted and take long."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return value if not whole or not 1000 < value < 10**11 else 1000


def _made(kind: Any, rng: random.Random, names: tuple[str, ...]) -> Any:
    value = anything(rng)
    name = rng.choice(names)
    if rng.random() < 0.3 and not callable(value):
        return value
    usual = {
        "matrices": (("Q",), ("M",), ("x",)), "snapshots": ((1,), (5, 10), (-1,)), "paths": ((0,), (7,)),
        "actions": ([[0, 1]], [[9]], [[-1]], [[0.5]]), "threads": (1, 2, 0, -1), "folder": (None,), "progress": (None,),
        "states": ([[0, 1]],), "rewards": ([[0.0]],), "mazes": ([0],),
    }  # fmt: skip
    chosen = rng.choice((value, *usual[name]))
    if callable(chosen):  # what a function of the user's does is the user's
        chosen = None
    if name == "threads" and isinstance(chosen, int) and chosen > 64:
        chosen = 64
    return lambda: kind(**{name: chosen})


def assignments(rng: random.Random, shared: Any) -> Attempt:
    """KEY=VALUE words."""
    keys = ("beta", "alpha", "x y", "", "replay", "1a", "ä")
    texts = ("1", "1e308", "1e999", "nan", "NaN", "Infinity", "-.5", "{}", "[1,2]", '"a"', "true", ",", "1,2,,3",
             "[" * rng.choice((1, 5000)), "9" * rng.choice((1, 400, 5000)), "\x1b[2J", "0x10", "1_0", "")  # fmt: skip
    words = [
        f"{rng.choice(keys)}{rng.choice(('=', '=', '=', '', '=='))}{rng.choice(texts)}"
        for _ in range(rng.randint(1, 3))
    ]
    function = rng.choice((parse_assignments, parse_choices))
    text, parse = call(function.__name__, function, words)
    if rng.random() < 0.2:
        return Attempt(*call("parse_duration", parse_duration, rng.choice((*texts, "9m", "-3s", "1e400h", "infs"))))

    def attempt() -> None:
        found = parse()
        if function is parse_choices:
            SettingsGrid(spie.Sarsa(), tuple(found.items()))

    return Attempt(text, attempt)


def _options_shared(folder: Any) -> Any:
    agent = spie.Sarsa(reward="none")
    mdp = spie.riverswim()
    agent.run(mdp, 5, 1)  # compiled once, before the memory is limited
    return mdp, agent


FUZZERS = (
    Fuzzer("settings", settings, share=2.0),
    Fuzzer("mdps", mdps),
    Fuzzer("maps", maps),
    Fuzzer("mazes", mazes),
    Fuzzer("representations", representations),
    Fuzzer("options", options, _options_shared),
    Fuzzer("assignments", assignments, share=0.5),
)
