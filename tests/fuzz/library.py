"""Doors behind which something is built on tasks: wrappers, novelty, pictures, behaviour, comparisons, sweeps.

Where an accepted call would work for minutes, the work itself is left out: whatever reaches it was taken.
"""

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium as gym
import numpy as np
from harness import Attempt, Difference, Fuzzer, loaded
from values import WORDS, anything, call, number

import spie
from spie.comparison.calibration import calibrate
from spie.comparison.compare import compare
from spie.novelty import CountedNovelty, SuccessorNovelty
from spie.page.plots import svg

BONUSES = "sr-r sr none constant count fr novelty sp-novelty e3b etd sf sf-pf spie teacher rnd x".split()
USUAL: dict[str, tuple[Any, ...]] = {  # of a wrapper
    "beta": (0.5, "auto", -1.0), "eta": (0.1, 1.0), "gamma_sr": (0.9, 0.0), "eta_pr": (None, 0.2), "gamma_pr": (0.9,),
    "replace": (True,), "normalise": (True,), "anneal": (None, 5), "reward_scale": (None, 2.0), "gamma": (None, 0.9),
    "ends": ("as they are", "neutral"), "episodic": (True,), "times": (None, "count", "e3b"), "features": (None,),
    "learn": (False,), "policy": (None,),
}  # fmt: skip


WORK = (  # of studies
    "spie.runs.run.Run.execute", "spie.search.grid.SettingsGrid.run", "spie.comparison.compare._timed",
    "spie.dropin.check.record", "socket.socket.connect",
)  # fmt: skip


class Reached(BaseException):
    """A call was accepted and begins its work."""


def reached(*_: Any, **__: Any) -> Any:
    raise Reached


@contextlib.contextmanager
def without(*places: str) -> Iterator[None]:
    """Within, whoever comes to these places has been accepted."""
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch(place, reached))
        with contextlib.suppress(Reached):
            yield


def plain(value: Any) -> Any:
    """What a function of the user's does is the user's: none are given."""
    return None if callable(value) else value


def wrappers(rng: random.Random, shared: Any) -> Attempt:
    """IntrinsicReward with odd options, on tables and on numbers, for some steps."""
    options: dict[str, Any] = {}
    for name in rng.sample(sorted(USUAL), rng.randint(0, 3)):
        options[name] = plain(rng.choice((anything(rng), number(rng), *USUAL[name], *USUAL[name])))
    env = rng.choice(shared)() if rng.random() < 0.95 else plain(anything(rng))
    reward = rng.choice(BONUSES) if rng.random() < 0.9 else anything(rng)
    words, make = call("IntrinsicReward", spie.IntrinsicReward, env, reward, **options)

    def attempt() -> None:
        wrapped = make()
        wrapped.reset(seed=1)
        wrapped.action_space.seed(1)
        for _ in range(4):
            _, pay, ended, cut, _ = wrapped.step(wrapped.action_space.sample())
            if not np.isfinite(pay):
                raise Difference(f"paid {pay}")
            if ended or cut:
                wrapped.reset()

    return Attempt(words, attempt)


def _environments(folder: Path) -> Any:
    loaded(folder)
    mdp = spie.grid("S..\n.#.\n..G", task="goal")
    return (lambda: mdp.env(max_steps=3), lambda: gym.make("MountainCar-v0"), lambda: gym.make("CartPole-v1"))


def novelty(rng: random.Random, shared: Any) -> Attempt:
    """The sums behind novelty, of odd sizes and discounts."""
    kind = rng.choice((SuccessorNovelty, CountedNovelty))
    size = rng.randint(-1, 6) if rng.random() < 0.5 else anything(rng)
    odd = {
        name: number(rng) if rng.random() < 0.5 else anything(rng)
        for name in rng.sample(("ridge", "g", "streams"), rng.randint(0, 2))
    }
    return Attempt(*call(kind.__name__, kind, size, **odd))


def features(rng: random.Random, shared: Any) -> Attempt:
    """Random features of spaces."""
    spaces = (
        gym.spaces.Box(-1, 1, (2,)), gym.spaces.Box(-np.inf, np.inf, (3,)), gym.spaces.Discrete(4),
        gym.spaces.Box(0, 255, (12, 12, 3), np.uint8), gym.spaces.Box(0, 1, (0,)), anything(rng),
    )  # fmt: skip
    space = rng.choice(spaces)
    size = rng.randint(-1, 9) if rng.random() < 0.5 else anything(rng)
    if rng.random() < 0.3:
        return Attempt(*call("convolution_features", spie.convolution_features, space, size,
                             **{rng.choice(("filters", "seed")): anything(rng)}))  # fmt: skip
    odd = {name: number(rng) if rng.random() < 0.5 else anything(rng)
           for name in rng.sample(("length_scale", "seed", "low", "high"), rng.randint(0, 2))}  # fmt: skip
    words, make = call("fourier_features", spie.fourier_features, space, size, **odd)

    def attempt() -> None:
        phi = make()(np.zeros(2))
        if not np.isfinite(phi).all():
            raise Difference(f"features {phi}")

    return Attempt(words, attempt)


def plots(rng: random.Random, shared: Any) -> Attempt:
    """Pictures of mazes, values and paths."""
    from spie import plot

    mdp = rng.choice(shared)
    odd = lambda: plain(anything(rng))  # noqa: E731
    values = np.random.default_rng(rng.getrandbits(20)).normal(size=rng.choice((7, 6, 8)))
    values = rng.choice((values, values, np.full(8, np.nan), np.full(8, np.inf), odd()))
    made: tuple[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], ...] = (
        ("maze", plot.maze, (mdp,), {"of": rng.choice((None, 0, 99, -1, odd()))}),
        ("values", plot.values, (mdp, values), {rng.choice(("of", "label", "diverging", "bar")): odd()}),
        ("path", plot.path, (mdp, rng.choice(([0, 1, 2], [0, -1], [[0]], [], odd()))), {}),
        ("path", plot.path, (mdp, [0, 1]), {"colour": odd()}),
    )
    name, function, args, options = rng.choice(made)
    words, draw = call(name, function, *args, **options)
    return Attempt(words, lambda: svg(draw().figure))


def behaviour(rng: random.Random, shared: Any) -> Attempt:
    """Recorded walks as arrays, fits and likelihoods."""
    odd = lambda: plain(anything(rng))  # noqa: E731
    walks = rng.choice(([[0, 1, 2]], {"a": [[0, 1], [1, 2]]}, [[0, 9]], [[0.5]], [], {"a": 3}, odd()))
    maze = rng.choice((None, "...\n...", shared.mazes[0], odd()))
    models = rng.choice((None, "random", ["random", "habit"], ["sr-r+turn-back"], ["x"], "+", odd()))
    given: dict[str, Any] = {"starts": 1}
    for name in rng.sample(("method", "starts", "seed", "bounds", "folder"), rng.randint(0, 2)):
        given[name] = odd()
    given.update(rng.choice(({}, {}, {"bounds": {"beta": rng.choice(((0, 1), (1, 0), 3, odd()))}})))
    likelihood = {rng.choice(("beta", "turn_back", "alpha", "x")): odd()}
    paths = shared if rng.random() < 0.9 else odd()
    made: tuple[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], ...] = (
        ("Paths.from_states", spie.Paths.from_states, (walks, maze), {}),
        ("Paths.from_states", spie.Paths.from_states, ([[0, 1]], "..\n.."), {"actions": odd()}),
        ("Paths.from_positions", spie.Paths.from_positions, (odd(), odd()), {"maze": maze}),
        ("Paths.from_positions", spie.Paths.from_positions, ([0.5, 1.5], [0.5, 0.5]), {"maze": "..", "subject": odd()}),
        ("Paths.from_table", spie.Paths.from_table, (odd(), maze), {}),
        ("fit", spie.fit, (paths, models), given),
        ("loglikelihood", spie.loglikelihood, (rng.choice(("turn-back", "sr-r", odd())), paths), likelihood),
        ("model", spie.model, (rng.choice((*WORDS, odd())),), {}),
        ("Parameter", spie.Parameter, (rng.choice(WORDS), odd(), odd()), {}),
    )  # fmt: skip
    name, function, args, options = rng.choice(made)
    words, make = call(name, function, *args, **options)

    def attempt() -> None:
        with without("spie.behaviour.fit.estimate", "spie.behaviour.model.ChoiceModel.run"):
            make()

    return Attempt(words, attempt)


def _walks(folder: Path) -> Any:
    return spie.Paths.from_states({"a": [[0, 1, 2, 1]], "b": [[2, 1, 0]]}, "...\n...")


@functools.cache
def calibrated(name: str, task: Any) -> Any:
    return calibrate(task)


def studies(rng: random.Random, shared: Any) -> Attempt:
    """Comparisons, sweeps and checks of rewards."""
    odd = lambda: plain(anything(rng))  # noqa: E731
    env = rng.choice(("riverswim", "four-rooms", "x:y", "CartPole-v1", "no.py:f", "..S", *WORDS))
    names = ("steps", "seeds", "choose", "again", "budget", "on", "address", "alpha", "n_steps")
    given = {name: number(rng) if rng.random() < 0.4 else odd() for name in rng.sample(names, rng.randint(0, 2))}
    swept = {name: rng.choice(([0.1, 0.2], [], odd(), [odd()]))
             for name in rng.sample(("alpha", "beta", "reward", "x"), rng.randint(0, 2))}  # fmt: skip
    of_sweeps = ("steps", "episodes", "seeds", "top", "confirm", "halving", "budget", "on", "yes")
    swept.update({name: odd() for name in rng.sample(of_sweeps, rng.randint(0, 2))})
    checked = {name: odd() for name in rng.sample(("steps", "seed", "beta"), rng.randint(0, 2))}
    made: tuple[tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], ...] = (
        ("compare", compare, (rng.choice((env, env, odd())), rng.choice((None, "q-learning", "x", odd())),
                              rng.choice((None, "count,sr-r", ["constant"], "x", [], odd()))), given),
        ("sweep", spie.sweep, (env, rng.choice(((), "sarsa-srr", ["constant", "x"], odd()))), swept),
        ("check_reward", spie.check_reward, (rng.choice((*BONUSES, odd())),), checked),
    )  # fmt: skip
    name, function, args, options = rng.choice(made)
    if name != "check_reward":
        options = {**options, "results": shared / "r.db"}
    words, make = call(name, function, *args, **options)

    def attempt() -> None:
        once = mock.patch("spie.comparison.compare.calibrate", lambda task: calibrated(task.name, task))
        with once, without(*WORK):
            make()

    return Attempt(words, attempt)


FUZZERS = (
    Fuzzer("wrappers", wrappers, _environments, share=1.5),
    Fuzzer("novelty", novelty, share=0.5),
    Fuzzer("features", features, share=0.5),
    Fuzzer("plots", plots, lambda folder: (spie.grid("S..\n.#.\n..G"), spie.tree(2), spie.riverswim())),
    Fuzzer("behaviour", behaviour, _walks),
    Fuzzer("studies", studies, loaded),
)
