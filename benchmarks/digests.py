"""Whether results are the same to the bit: `python benchmarks/digests.py` runs many small cases and compares hashes.

    digests.py                      compare with digests.json, which lies beside this file
    digests.py --write              write that file
    digests.py --against PLACE      compare every group with another checkout (its folder), or with a saved file
    digests.py --save FILE          save the digests of every group, for --against
    digests.py --only GROUP[/CASE]  these alone; may be given several times
    digests.py --list               the names

The groups `tabular`, `linear` and `dropin` are committed: compiled code rounds alike everywhere, for it has no
fast-math and fuses a multiplication with an addition only where it says so, and the wrapper's tables do no more than
NumPy's elementwise arithmetic. `linear` takes two things from elsewhere, the cosine of the C library and a product of
BLAS that places the features; these round alike on every x86-64 processor that has FMA, and otherwise on those without.
The other groups are compared on one machine: `closed-form` solves equations with LAPACK, `dropin-features` multiplies
with BLAS, `deep` is torch, and all of these choose their code by the processor.
"""

import argparse
import functools
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import spie

Arrays = dict[str, Any]  # what is hashed: arrays by name; None where a run has none
Case = Callable[[], Arrays]

FILE = Path(__file__).with_name("digests.json")
COMMITTED = ("tabular", "linear", "dropin")
EXPLAINED: dict[str, str] = {}  # differences that a mended bug explains: name of the case -> reason

# Which fields count. They are named one by one, so that a new one changes no digest.
PATH = ("states", "actions", "next_states", "rewards", "bonuses")
TRACE = (
    "seeds", "total_reward", "total_bonus", "steps", "visits", "first_visit", "episode_steps", "truncated", "snapshots",
    "Q", "M", "F", "N",
)  # fmt: skip
EPISODES = (
    "seeds", "episode_steps", "episode_rewards", "episode_bonuses", "terminated", "stopped", "Q", "Psi", "Xi",
)  # fmt: skip
SCORES = ("seeds", "values")
DEEP = ("total_reward", "visits", "first_visit", "episode_steps", "episode_rewards")  # the total bonus is to be mended


# -- The two programming interfaces, old and new: every call that differs between them is here

try:
    from spie.agents.base import Keep, Replay, Session
except ModuleNotFoundError:
    Keep = Replay = Session = None
try:
    from spie.tasks.pixels import deep_sea
except ModuleNotFoundError:
    from spie.envs.pixels import deep_sea
try:
    from spie.search.grid import SettingsGrid
except ModuleNotFoundError:
    from spie.agents.settings_grid import SettingsGrid


def asked(
    keep: Sequence[str] = (),
    snapshots: Sequence[int] = (),
    record: Sequence[int] = (),
    replay: Any = None,
    threads: int | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The options of a run under the interface that is there; what is not asked for is left out."""
    if Keep is None:
        old = {"keep": tuple(keep), "snapshots": tuple(snapshots), "record": tuple(record)}
        others |= {name: value for name, value in old.items() if value}
        others |= {} if replay is None else {"replay": replay}
        return others if threads is None else others | {"threads": threads}
    kept = {"matrices": tuple(keep), "snapshots": tuple(snapshots), "paths": tuple(record)}
    if any(kept.values()):
        others["keep"] = Keep(**{name: value for name, value in kept.items() if value})
    if replay is not None:
        others["replay"] = Replay(replay)
    return others if threads is None else others | {"session": Session(threads=threads)}


def named(name: str, **settings: Any) -> Any:
    """The tabular agent that the paper calls so."""
    return (spie.agent if hasattr(spie, "agent") else spie.Sarsa.named)(name, **settings)


def run_deep(name: str, env: str, steps: int, seeds: int, **settings: Any) -> Any:
    """A deep agent by its name on an image task by its name."""
    if hasattr(spie, "agent"):
        return spie.agent(name, **settings).run(spie.task(env, kind="images"), steps, seeds)
    return spie.DQN.named(name, **settings).run(env, steps, seeds)


# -- Digests


def fields_of(trace: Any, fields: Iterable[str]) -> Arrays:
    """The listed fields of a trace, and its paths where it has some."""
    arrays = {name: getattr(trace, name, None) for name in fields}
    for seed, path in sorted(getattr(trace, "paths", {}).items()):
        arrays |= {f"paths[{seed}].{name}": getattr(path, name) for name in PATH}
    return arrays


def fields_of_all(traces: Iterable[Any], fields: Sequence[str]) -> Arrays:
    """The same of several traces, numbered."""
    every = enumerate(fields_of(trace, fields) for trace in traces)
    return {f"[{i}].{name}": array for i, arrays in every for name, array in arrays.items()}


def digest(arrays: Mapping[str, Any]) -> str:
    """A hash of names, types, shapes and bytes; -0.0 and 0.0 differ, and so do two kinds of NaN."""
    hashed = hashlib.sha256()
    for name, value in arrays.items():
        hashed.update(f"{name} ".encode())
        if value is None:
            hashed.update(b"none\n")
        else:
            array = np.ascontiguousarray(value)
            hashed.update(f"{array.dtype.str} {np.shape(value)}\n".encode())
            hashed.update(array.tobytes())
    return hashed.hexdigest()[:24]


# -- Tasks


def many_actions(actions: int, masked: bool = False) -> spie.MDP:
    """20 states with `actions` actions of 3 successors each, spread by arithmetic; the last state ends an episode.

    With more than 8 actions the engine picks among them in another way, and with 5 to 8 it pads them to a vector.
    """
    S, K = 20, 3
    s, a, k = np.ogrid[:S, :actions, :K]
    available = ((s + a)[:, :, 0] % 3 > 0) | (not masked)
    return spie.MDP(
        f"{actions}-actions",
        (7 * s + 3 * a + k * k + 1) % S,
        prob=np.where(available[:, :, None], [0.5, 0.25, 0.25], 0.0),
        reward=((s + 2 * a + k) % 5 - 2.0),
        start=np.where(np.arange(S) < 4, 0.25, 0.0),
        terminal=np.arange(S) == S - 1,
        available=available,
    )


OPEN_FIELD = "\n".join(["S" + "." * 64] + ["." * 65] * 64)  # 4225 states: M is row-sparse unless told otherwise
TASKS: dict[str, Callable[[], Any]] = {
    "riverswim": spie.riverswim,
    "sixarms": spie.sixarms,
    "of-small": partial(spie.grid, "of-small"),
    "cluster-hard": partial(spie.grid, "cluster-hard"),
    "goal": partial(spie.grid, "cluster-hard", "goal"),
    "moving-goal": partial(spie.grid, "of-small", "moving-goal", episodes_per_goal=2),
    "masked": partial(spie.grid, "cluster-hard", bumps=False),
    "masked-goal": partial(spie.grid, "cluster-hard", "goal", bumps=False),
    "frozen-lake": lambda: spie.MDP.from_gymnasium(gym.make("FrozenLake-v1")),
    "taxi": lambda: spie.MDP.from_gymnasium(gym.make("Taxi-v4")),
    "7-actions-masked": partial(many_actions, 7, masked=True),
    "12-actions": partial(many_actions, 12),
    "12-actions-masked": partial(many_actions, 12, masked=True),
    "deep-sea": partial(deep_sea, 8),
    "maze": lambda: spie.grid(spie.maze(31, 31, seed=1)),
    "open-field": partial(spie.grid, OPEN_FIELD),
    "mountain-car": spie.mountain_car,
    "pendulum": spie.pendulum,
}


@functools.cache
def task(name: str) -> Any:
    return TASKS[name]()


# -- Rewards of a user, from a file of theirs, which this is

HALF = 0.5  # the engine has a HALF of its own


def mix(x: float, y: float) -> float:
    """The engine has a `mix` too."""
    return HALF * x + (1 - HALF) * y


@spie.reward("digests-tables")
def on_tables(
    M_next: float, M_row: float, M_col_next: float, F_row: float, F_row_next: float, N_next: float, N_col_next: float,
    visits: float, visits_next: float,
) -> float:  # fmt: skip
    """Each quantity of a table with a weight of its own."""
    matrices = 0.1 * M_next - 0.2 * M_row + 0.03 * M_col_next - 0.4 * F_row + 0.25 * F_row_next
    return mix(matrices + 0.6 * N_next - 0.07 * N_col_next, math.sqrt(visits) - visits_next / (10 + visits_next))


@spie.reward("digests-features")
def on_features(psi_norm: float, xi_norm_next: float, phi_norm_next: float, visits_next: float) -> float:
    """Each quantity of features with a weight of its own."""
    return mix(0.1 * psi_norm - 0.2 * xi_norm_next, 0.3 * phi_norm_next + 1.0 / visits_next)


# -- Tabular agents

LEARNED = ("sarsa", "sarsa-sr", "sarsa-fr", "sarsa-srr", "sarsa-srr-a", "sarsa-srr-b", "sarsa-srr-c", "sarsa-sr-pr")
TABLE_REWARDS = (
    "none", "sr", "fr", "fr-next", "sr-r", "sr-r(a)", "sr-r(b)", "sr-r(c)", "sr-pr", "constant", "count",
)  # fmt: skip
OWN = "digests-tables"


def run_one(agent: Callable[[], Any], place: str, steps: int, seeds: Any, **options: Any) -> Arrays:
    return fields_of(agent().run(task(place), steps, seeds, **asked(**options)), TRACE)


def sarsa(place: str, steps: int = 2000, seeds: Any = 3, run: Mapping[str, Any] = {}, **settings: Any) -> Case:
    """A case of one agent; `run` are the options of its run, the rest its settings."""
    return partial(run_one, partial(spie.Sarsa, **settings), place, steps, seeds, **run)


def paper(name: str, place: str, steps: int = 2000, seeds: Any = 3, **options: Any) -> Case:
    """A case of an agent of the paper under its name."""
    return partial(run_one, partial(named, name), place, steps, seeds, **options)


def side_by_side() -> Arrays:
    """Settings of several kernels in one call, in no order."""
    settings = [
        spie.Sarsa(reward=reward, eta=eta, next_action=next_action)
        for eta in (0.1, 0.3)
        for reward, next_action in (("sr-r", "resample"), ("none", "carry"), ("sr-pr", "resample"), ("sr-r", "carry"))
    ]
    options = asked(keep=("Q", "M"), snapshots=(100, 900), record=(4, 11), episodes=20)
    return fields_of_all(spie.run_sarsa(settings, task("goal"), 60, [11, 4, 7], **options), TRACE)


def scores(measure: str, place: str, steps: int, episodes: int | None, only: tuple[int, ...] | None = None) -> Arrays:
    """What a sweep keeps of a grid of settings."""
    axes = (("reward", ("sr-r", "sr", "count")), ("eta", (0.1, 0.25)), ("beta", (-1.0, 1.0, 10.0)))
    grid = SettingsGrid(spie.Sarsa(), axes, measure=measure, only=only)
    return fields_of(grid.run(task(place), steps, 3, episodes=episodes), SCORES)


def tabular_agents() -> Iterator[tuple[str, Case]]:
    """Every agent and every reward, on tasks of every kind."""
    for name in LEARNED:
        yield f"{name}/riverswim", paper(name, "riverswim", seeds=11, keep="Q")
        yield f"{name}/of-small", paper(name, "of-small", seeds=5, keep="Q", snapshots=(10, 500))
    for reward in (*TABLE_REWARDS, OWN):
        yield f"{reward}/sixarms", sarsa("sixarms", reward=reward, seeds=9)
        yield f"{reward}/moving-goal", sarsa("moving-goal", 80, reward=reward, run={"episodes": 12, "keep": "Q"})
    for place in ("cluster-hard", "masked", "masked-goal", "frozen-lake", "taxi", "deep-sea", "maze"):
        yield f"{OWN}/{place}", sarsa(place, reward=OWN, run={"record": (1,)})
    for place in ("goal", "masked-goal", "frozen-lake", "taxi", "deep-sea"):
        yield f"episodes/{place}", sarsa(place, 50, run={"episodes": 30, "keep": "Q"})
    for place in ("12-actions", "12-actions-masked", "7-actions-masked"):
        yield f"sr-r/{place}", sarsa(place, run={"keep": ("Q", "M"), "record": (0, 1, 2)}, q0=2.0)
        yield f"carry-first/{place}", sarsa(place, 40, run={"episodes": 30}, next_action="carry", ties="first")


def tabular_settings() -> Iterator[tuple[str, Case]]:
    """Every setting away from its default."""
    for place in ("riverswim", "goal"):
        yield f"carry/{place}", sarsa(place, next_action="carry")
        yield f"previous/{place}", sarsa(place, bonus_from="previous", m0=1.0)
        yield f"previous-count/{place}", sarsa(place, bonus_from="previous", reward="count")
        yield f"first/{place}", sarsa(place, ties="first", run={"keep": "Q"})
    for place in ("sixarms", "of-small"):
        yield f"pr/{place}", sarsa(place, reward="sr-pr", eta_pr=0.3, gamma_pr=0.8, run={"keep": ("M", "N")})
        yield f"m0/{place}", sarsa(place, reward=OWN, m0=0.5, run={"keep": "QMFN"})
        yield f"alpha-0/{place}", sarsa(place, alpha=0.0, q0=1.5, run={"keep": ("Q", "M")})
    yield "q0/masked", sarsa("masked", q0=5.0, run={"keep": "Q"})
    yield "q0/taxi", sarsa("taxi", q0=-3.0, run={"keep": "Q"})
    yield "beta-negative/riverswim", sarsa("riverswim", beta=-10.0, eta=0.25)
    yield "epsilon-0/of-small", sarsa("of-small", epsilon=0.0, tie_tolerance=0.0)
    yield "epsilon-1/cluster-hard", sarsa("cluster-hard", epsilon=1.0, gamma=1.0)
    for reward in ("sr-r", "sr-pr", "fr", OWN):
        yield f"sparse-{reward}/maze", sarsa("maze", reward=reward, sparse=True, run={"keep": "Q", "record": (2,)})
    yield "sparse/goal", sarsa("goal", 60, sparse=True, run={"episodes": 20})
    yield "sparse/taxi", sarsa("taxi", reward="sr-pr", sparse=True)
    yield "sparse-m0/cluster-hard", sarsa("cluster-hard", reward=OWN, sparse=True, m0=0.5)
    yield "sparse-tolerance/of-small", sarsa("of-small", sparse=True, tolerance=1e-3)
    yield "dense/maze", sarsa("maze", sparse=False, run={"keep": "QMFN"})
    yield "sr-r/open-field", sarsa("open-field", 3000, 2)
    yield "dense/open-field", sarsa("open-field", 1000, 1, reward="sr-r(b)", sparse=False)


def tabular_options() -> Iterator[tuple[str, Case]]:
    """Every option of a run, and many runs at once."""
    actions = np.random.default_rng(5).integers(0, 2, (3, 1500))  # riverswim's and deep-sea's
    steps = np.arange(1, 1501, 250)
    every = {"keep": "QMFN", "snapshots": tuple(map(int, steps)), "record": (5, 3, 9)}
    for reward in ("none", "sr-r", OWN):
        yield f"all-{reward}/riverswim", sarsa("riverswim", 1500, (5, 3, 9), every, reward=reward)
        yield f"all-{reward}/goal", sarsa("goal", 1500, (5, 3, 9), every, reward=reward)
    for name, replay in (("one", actions[0]), ("each", actions)):
        for record in ((), (9,), (5, 3, 9)):
            run = {"replay": replay, "record": record, "keep": ("Q", "M")}
            yield f"replay-{name}-{len(record)}/riverswim", sarsa("riverswim", 1500, (5, 3, 9), run)
    yield "replay-each/deep-sea", sarsa("deep-sea", 1500, 3, {"replay": actions, "keep": ("Q", "N")}, reward=OWN)
    yield "replay-episodes/deep-sea", sarsa("deep-sea", 15, 3, {"replay": actions, "episodes": 100}, reward="fr")
    yield "seeds-large/riverswim", sarsa("riverswim", seeds=(2**63 - 1, 0, 2**40 + 1))
    yield "one-thread/of-small", sarsa("of-small", seeds=20, run={"threads": 1})
    yield "side-by-side/goal", side_by_side
    yield "scores-reward/riverswim", partial(scores, "reward", "riverswim", 2000, None)
    yield "scores-reward-only/riverswim", partial(scores, "reward", "riverswim", 2000, None, (3, 0, 17))
    yield "scores-coverage/cluster-hard", partial(scores, "coverage", "cluster-hard", 2000, None)
    yield "scores-episodes/goal", partial(scores, "episodes", "goal", 100, 10)


def closed_form() -> Iterator[tuple[str, Case]]:
    """Representations that are given, not learned."""
    for name in LEARNED[1:]:
        yield f"{name}-fixed/riverswim", paper(f"{name}-fixed", "riverswim", seeds=11, keep="Q")
        yield f"{name}-fixed/moving-goal", paper(f"{name}-fixed", "moving-goal", 80, episodes=12, keep="QM")
    yield "sr-r/taxi", sarsa("taxi", learned=False)  # has states without a past, and so no PR
    for place in ("masked-goal", "12-actions-masked", "deep-sea"):
        yield f"sr-pr/{place}", sarsa(place, reward="sr-pr", learned=False, gamma_pr=0.8)
    yield "keep/goal", sarsa("goal", reward=OWN, learned=False, gamma_pr=0.8, run={"keep": "QMFN", "record": (0,)})


# -- Linear agents

FEATURE_REWARDS = (
    "none", "sf", "sf-pf", "sf-pf-printed", "sf-pf-norms", "constant", "count", "digests-features",
)  # fmt: skip


def linear_case(
    settings: Sequence[Mapping[str, Any]], place: str, steps: int, seeds: Any, episodes: int, keep: Sequence[str] = "Q"
) -> Arrays:
    agents = [spie.LinearQ(**changes) for changes in settings]
    options = asked(keep=(keep,) if isinstance(keep, str) else keep, episodes=episodes)
    return fields_of_all(spie.run_linear_q(agents, task(place), steps, seeds, **options), EPISODES)


def linear() -> Iterator[tuple[str, Case]]:
    """Every reward on features, and every setting away from its default."""
    whole = ("Q", "Psi", "Xi")
    for reward in FEATURE_REWARDS:
        for place in ("mountain-car", "pendulum"):
            keep = whole if reward == "none" else "Q"  # without a reward Q stays 0, and says nothing of the way
            yield f"{reward}/{place}", partial(linear_case, [{"reward": reward}], place, 250, 2, 3, keep)
    car = partial(linear_case, place="mountain-car", steps=300, seeds=[6, 1], episodes=2)
    yield "greedy/mountain-car", partial(car, [{"sf_target": "greedy"}], keep=whole)
    yield "keep/mountain-car", partial(car, [{"dimension": 30}], keep=whole)
    yield "keep-none/mountain-car", partial(car, [{"reward": "none", "dimension": 30}], keep=whole)
    yield "features-seed/mountain-car", partial(car, [{"features_seed": 3, "length_scale": 0.4}])
    rates = {"alpha": 0.05, "eta": 0.1, "eta_pr": 0.3, "gamma": 0.9, "gamma_sr": 0.8, "gamma_pr": 0.7, "beta": -2.0}
    yield "rates/mountain-car", partial(car, [rates | {"epsilon": 0.05}], keep=whole)
    yield "cells/mountain-car", partial(car, [{"reward": "count", "cells": 5, "tie_tolerance": 0.0}])
    wild = [{"reward": "constant", "alpha": 50.0}, {"reward": "constant"}]
    yield "overflow/mountain-car", partial(linear_case, wild, "mountain-car", 1000, [3], 2, whole)
    several = [{"reward": "sf", "eta": 0.1}, {"reward": "none"}, {"reward": "sf"}, {"dimension": 64}]
    yield "side-by-side/pendulum", partial(linear_case, several, "pendulum", 200, [2, 0], 3)
    yield "long/mountain-car", partial(linear_case, [{}], "mountain-car", 1000, 2, 6)


# -- Wrappers


def stream(env: Any, steps: int = 600, seed: int = 4) -> Arrays:
    """What a random policy is paid by a wrapped environment, single or vector."""
    rng, n = np.random.default_rng(seed), getattr(env, "num_envs", None)
    actions = int((env.action_space if n is None else env.single_action_space).n)
    waits = n is not None and env.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    env.reset(seed=seed)
    rewards, bonuses, ends = [], [], []
    for action in rng.integers(0, actions, steps if n is None else (steps, n)):
        _, reward, terminated, truncated, info = env.step(int(action) if n is None else action)
        over = np.logical_or(terminated, truncated)
        rewards.append(reward)
        bonuses.append(info["intrinsic_reward"])
        ends.append(over)
        if over.any() and n is None:
            env.reset()
        elif over.any() and waits:
            env.reset(options={"reset_mask": over})
    env.close()
    return {"rewards": np.array(rewards), "intrinsic": np.array(bonuses), "ends": np.array(ends)}


def wrapped(env: str, reward: str, n: int | None = None, mode: Any = AutoresetMode.NEXT_STEP, **options: Any) -> Arrays:
    """The stream of an environment under a reward; of n of them if a number is given."""
    make = partial(gym.make, env, max_episode_steps=60)
    inner = make() if n is None else SyncVectorEnv([make] * n, autoreset_mode=mode)
    return stream(spie.IntrinsicReward(inner, reward, **options))


def dropin() -> Iterator[tuple[str, Case]]:
    """The wrapper on states that can be counted."""
    lake = partial(wrapped, "FrozenLake-v1")
    for reward in (*TABLE_REWARDS, OWN):
        yield f"{reward}/frozen-lake", partial(lake, reward, beta=0.1)
    for mode in AutoresetMode:
        yield f"vector-{mode.name.lower()}/frozen-lake", partial(lake, OWN, n=3, mode=mode)
    yield "rates/frozen-lake", partial(lake, OWN, eta=0.3, gamma_sr=0.8, eta_pr=0.2, gamma_pr=0.9)
    yield "normalise/frozen-lake", partial(lake, "sr-r", normalise=True, anneal=400)
    yield "normalise-vector/frozen-lake", partial(lake, "sr-r", n=3, normalise=True, anneal=400)
    yield "replace/frozen-lake", partial(lake, "sr", replace=True, beta=-2.0)
    yield "still/frozen-lake", partial(lake, "sr-pr", learn=False)
    yield "sr-pr/taxi", partial(wrapped, "Taxi-v4", "sr-pr")


def doubled(observation: Any) -> Any:
    """Features of a user's own."""
    x = np.asarray(observation, np.float64)
    return np.concatenate([[1.0], x, x * x])


def dropin_features() -> Iterator[tuple[str, Case]]:
    """The wrapper on features."""
    car = partial(wrapped, "MountainCar-v0")
    for reward in FEATURE_REWARDS:
        yield f"{reward}/mountain-car", partial(car, reward, beta=10.0)
    yield "vector/mountain-car", partial(car, "sf-pf", n=3)
    yield "vector-count/mountain-car", partial(car, "count", n=3, mode=AutoresetMode.SAME_STEP, normalise=True)
    yield "features/mountain-car", partial(car, "digests-features", features=doubled)
    yield "sf-pf/four-rooms", partial(wrapped, "spie/Pixels-FourRooms-v0", "sf-pf")
    yield "continuous-actions/pendulum", pendulum_of_gymnasium


def pendulum_of_gymnasium() -> Arrays:
    """Actions that cannot be counted: psi is of the state alone. The torques are the numbers of the random policy."""
    env = gym.wrappers.TransformAction(
        gym.make("Pendulum-v1"), lambda a: np.array([a - 1.0], np.float32), gym.spaces.Discrete(3)
    )
    return stream(spie.IntrinsicReward(env, "sf-pf"))


# -- Deep agents


@contextmanager
def overheard() -> Iterator[list[int]]:
    """The actions that every Atari emulator is told, as they come; what an agent does shows in nothing else so soon."""
    import ale_py

    told: list[int] = []
    original = ale_py.ALEInterface

    class Overheard(original):  # type: ignore[misc, valid-type]
        def act(self, action: int, *rest: Any) -> Any:
            told.append(int(action))
            return super().act(action, *rest)

    ale_py.ALEInterface = Overheard
    try:
        yield told
    finally:
        ale_py.ALEInterface = original


def deep_case(name: str, env: str, steps: int, seeds: int, **settings: Any) -> Arrays:
    return fields_of(run_deep(name, env, steps, seeds, **settings), DEEP)


def freeway() -> Arrays:
    """Few steps of a game, which pay nothing as yet."""
    settings = {"preset": "nature", "learning_starts": 20, "batch": 8, "replay": 500, "epsilon_frames": 100}
    with overheard() as told:
        arrays = deep_case("dqn-sf-pf", "Freeway", 80, 1, **settings)
    return arrays | {"actions": np.array(told)}


def distilled(env: str, **options: Any) -> Arrays:
    """Random network distillation in the wrapper, on one thread of torch, for sums depend on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return wrapped(env, "rnd", **options)
    finally:
        torch.set_num_threads(before)


def deep() -> Iterator[tuple[str, Case]]:
    """Every deep agent on small images, a game, and the wrapper with a network in it."""
    small: dict[str, Any] = {"preset": "small", "learning_starts": 100, "batch": 32, "epsilon_fraction": 0.3}
    for name in ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf", "dqn-constant", "dqn-count"):
        yield f"{name}/four-rooms", partial(deep_case, name, "four-rooms", 500, 2, **small)
    sea = partial(deep_case, env="deep-sea-10", steps=400, seeds=2, **small)
    for name in ("dqn-sf-pf", "rnd"):
        yield f"{name}/deep-sea-10", partial(sea, name)
        yield f"{name}-sampling/deep-sea-10", partial(sea, name, bonus_at="sampling")
    yield "dqn-sf-pf-options/deep-sea-10", partial(
        sea, "dqn-sf-pf", sf_pf="printed", psi="state-action", scale="standard", optimiser="rmsprop", target="periodic",
        target_every=80, loss="squared", clip=True, reconstruction=False, stack=2, envs=2,
    )  # fmt: skip
    yield "dqn-sf-pf-nature/freeway", freeway
    yield "dropin-rnd/frozen-lake", partial(distilled, "FrozenLake-v1")
    yield "dropin-rnd/mountain-car", partial(distilled, "MountainCar-v0", n=2, normalise=True)


GROUPS: dict[str, tuple[Callable[[], Iterator[tuple[str, Case]]], ...]] = {
    "tabular": (tabular_agents, tabular_settings, tabular_options),
    "linear": (linear,),
    "dropin": (dropin,),
    "closed-form": (closed_form,),
    "dropin-features": (dropin_features,),
    "deep": (deep,),
}


# -- The commands


def cases(groups: Iterable[str], only: Sequence[str] = ()) -> dict[str, Case]:
    """The cases of some groups by name, "group/case/task"; `only` are beginnings of names up to a slash."""
    found: dict[str, Case] = {}
    for group in groups:
        for name, case in (pair for part in GROUPS[group] for pair in part()):
            full = f"{group}/{name}"
            if full in found:
                raise ValueError(f"two cases are called {full}")
            found[full] = case
    return {name: case for name, case in found.items() if not only or any(f"{name}/".startswith(f"{o}/") for o in only)}


def measured(chosen: Mapping[str, Case]) -> dict[str, str]:
    """The digest of each case; of one that fails, how it fails, so that the others are compared all the same."""
    digests = {}
    for i, (name, case) in enumerate(chosen.items()):
        if sys.stderr.isatty():
            print(f"\r{i + 1} of {len(chosen)}: {name:60.60}", end="", file=sys.stderr)
        try:
            digests[name] = digest(case())
        except Exception as error:  # whatever a redesign may break
            digests[name] = f"{type(error).__name__}: {error}".partition("\n")[0]
    if sys.stderr.isatty():
        print("\r" + " " * 90 + "\r", end="", file=sys.stderr)
    return digests


def elsewhere(folder: Path, only: Sequence[str]) -> dict[str, str]:
    """The digests of another checkout, from a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "digests.json"
        command = [sys.executable, __file__, "--save", str(file), *(word for name in only for word in ("--only", name))]
        # A case that fails there fails the command there; it is reported here, with the others
        subprocess.run(command, env=os.environ | {"PYTHONPATH": str(folder.resolve())}, stdout=subprocess.DEVNULL)
        if not file.exists():
            raise SystemExit(f"{folder}: this script does not run there; what it says stands above")
        saved = json.loads(file.read_text())
    if not Path(saved["spie"]).is_relative_to(folder.resolve()):
        raise SystemExit(f"{folder} holds no spie: what ran was {saved['spie']}")
    return dict(saved["digests"])


def compare(here: Mapping[str, str], there: Mapping[str, str]) -> int:
    """Print one line per difference and how many there are; 1 if any is left unexplained."""
    differing = [name for name in {**there, **here} if here.get(name) != there.get(name) or " " in here[name]]
    for name in differing:
        reason = f"  (explained: {EXPLAINED[name]})" if name in EXPLAINED else ""
        print(f"{name}: {there.get(name, 'no such case')} -> {here.get(name, 'no such case')}{reason}")
    for name in EXPLAINED.keys() - set(differing):
        if name in here:
            print(f"{name}: explained, but it does not differ; take it out of EXPLAINED")
    explained = sum(name in EXPLAINED for name in differing)
    print(f"{len(differing)} differences in {len({**there, **here})} cases, {explained} of them explained")
    return int(len(differing) > explained)


def chosen_of(digests: Mapping[str, str], names: Iterable[str], only: Sequence[str]) -> dict[str, str]:
    """Of saved digests those that a run with `only` is about: all of them without it, gone cases included."""
    return {name: found for name, found in digests.items() if not only or name in names}


def write(file: Path, content: Any) -> None:
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    print(f"written: {file}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write digests.json")
    parser.add_argument("--against", type=Path, metavar="PLACE", help="another checkout, or a file that --save wrote")
    parser.add_argument("--save", type=Path, metavar="FILE", help="save the digests of every group")
    parser.add_argument("--only", action="append", default=[], metavar="GROUP[/CASE]", help="these alone")
    parser.add_argument("--list", action="store_true", help="print the names")
    words = parser.parse_args()

    everything = bool(words.against or words.save or words.list)
    chosen = cases(GROUPS if everything else COMMITTED, words.only)
    if words.only and not chosen:
        parser.error(f"no such case in {', '.join(GROUPS if everything else COMMITTED)}; others need --against")
    if words.list:
        print("\n".join(chosen))
        return 0

    place, begin = Path(spie.__file__).resolve().parent, time.process_time()
    here = measured(chosen)
    print(f"{len(here)} cases of {place} in {time.process_time() - begin:.0f} s of CPU time")
    failed = {name: how for name, how in here.items() if " " in how}
    if words.write or words.save:
        print("".join(f"{name}: {how}\n" for name, how in failed.items()), end="")
    if words.save:
        write(words.save, {"spie": str(place), "digests": here})
    if words.write:
        if failed:
            print(f"{FILE.name} not written: {len(failed)} cases failed")
            return 1
        write(FILE, (json.loads(FILE.read_text()) if words.only and FILE.exists() else {}) | here)
    if words.against and words.against.is_dir():
        return compare(here, elsewhere(words.against, words.only))
    if words.against:
        return compare(here, chosen_of(json.loads(words.against.read_text())["digests"], here, words.only))
    if words.write or words.save:
        return int(bool(failed))
    return compare(here, chosen_of(json.loads(FILE.read_text()), here, words.only))


if __name__ == "__main__":
    sys.exit(main())
