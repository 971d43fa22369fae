"""The vocabulary of claims: how parts are made, and what is read off a trace."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie import stats
from spie.paper.claims import Evidence, Measure, Runs
from spie.paper.contenders import Contender
from spie.tasks import grid
from spie.tasks.grids import doors
from spie.tasks.mdp import MDP
from spie.trace import Trace, Trajectory

ROUNDING = 1e-9

Array = NDArray[Any]


# --- Every part of a claim is made by one of these. ---


def bootstrapped(label: str, f: Callable[..., Any], *samples: Array, **ends: Any) -> Evidence:
    """f of some samples, of which it reduces the last axis; their entries (seeds) are resampled, each sample apart."""
    with np.errstate(all="ignore"):  # where nothing happens or varies, a ratio is no number and decides nothing
        low, high = stats.bootstrap(f, *samples, bits=32)
        return Evidence(label, float(f(*samples)), low, high, **ends)


def combined(
    label: str, f: Callable[..., Any], *samples: Array, statistic: Callable[..., Any] = np.mean, **ends: Any
) -> Evidence:
    """f of a statistic of each of some samples; their entries (seeds) are resampled, each sample apart."""
    with np.errstate(all="ignore"):
        drawn = f(*(stats.resampled(statistic, sample, seed) for seed, sample in enumerate(samples)))
        return Evidence(label, float(f(*(statistic(x, axis=-1) for x in samples))), *stats.interval(drawn), **ends)


def level(label: str, a: Array, **ends: Any) -> Evidence:
    return combined(label, lambda x: x, a, **ends)


def ratio(label: str, a: Array, b: Array, statistic: Callable[..., Any] = np.mean, **ends: Any) -> Evidence:
    return combined(label, np.divide, a, b, statistic=statistic, **ends)


def double_ratio(label: str, *abcd: Array, statistic: Callable[..., Any] = np.mean, **ends: Any) -> Evidence:
    """(a / b) / (c / d)."""
    return combined(label, lambda a, b, c, d: (a / b) / (c / d), *abcd, statistic=statistic, **ends)


def exact(label: str, value: float, **ends: Any) -> Evidence:
    return Evidence(label, float(value), float(value), float(value), **ends)


def compare(
    values: Callable[[Any], Array],
    a: Contender,
    others: Sequence[Contender],
    envs: Sequence[str],
    what: str = "",
    **ends: Any,
) -> Measure:
    """A number of each seed of a over that of each of the others, in each environment."""

    def measure(runs: Runs) -> list[Evidence]:
        parts = []
        for env, other in itertools.product(envs, others):
            words = (what, env if len(envs) > 1 else "", other.label if len(others) > 1 else "")
            samples = values(runs(a, env)), values(runs(other, env))
            parts.append(ratio(" ".join(filter(None, words)), *samples, **ends))
        return parts

    return measure


def together(*measures: Measure) -> Measure:
    return lambda runs: [part for measure in measures for part in measure(runs)]


# --- What is read off a trace: one number per seed. ---


steps_to = Trace.steps_to


def area(trace: Trace) -> Array:
    """Area under the coverage curve: the share of the states seen, averaged over all steps."""
    T = trace.steps[:, None]
    return np.asarray(1 - (np.where(trace.first_visit < 0, T, trace.first_visit) / T).mean(axis=1))


def seen(trace: Trace) -> Array:
    return np.asarray((trace.first_visit >= 0).mean(axis=1))


def reward(trace: Trace) -> Array:
    return trace.total_reward


def episode(trace: Trace, episodes: slice = slice(None)) -> Array:
    """Mean steps of an episode."""
    return np.asarray(trace.episode_steps[:, episodes].mean(axis=1))


def roughness(trace: Trace) -> Array:
    """The change in steps from one episode to the next."""
    return np.asarray(np.abs(np.diff(trace.episode_steps, axis=1)).mean(axis=1))


def off_average(trace: Trace) -> Array:
    """By how many steps the episodes of a seed differ from the average of all seeds."""
    return np.asarray(np.abs(trace.episode_steps - trace.episode_steps.mean(axis=0)).mean(axis=1))


def visit_share(trace: Trace, cells: Callable[[MDP], Array], env: str) -> Array:
    return np.asarray(trace.visits[:, cells(grid(env))].sum(axis=1) / trace.visits.sum(axis=1))


def borders(mdp: MDP) -> Array:
    """Cells beside a wall or the edge that are no doors."""
    return np.asarray((mdp.next[:, :, 0] == np.arange(mdp.n_states)[:, None]).any(axis=1) & ~doors(mdp))


def rooms(mdp: MDP) -> Array:
    """The room of each state, numbered: the connected parts that are left without the doors; -1 for a door."""
    from scipy.sparse.csgraph import connected_components

    door, joined = doors(mdp), mdp.transition() > 0
    joined[door] = joined[:, door] = False
    labels = connected_components(joined, directed=False)[1]
    return np.where(door, -1, np.searchsorted(np.unique(labels[~door]), labels))


def places(path: Trajectory) -> Array:
    """The states of a path, where it ends included."""
    return np.append(path.states[:1], path.next_states)


def stays(path: Trajectory, room: Array) -> list[tuple[float, float]]:
    """Steps of each stay in a room that was left again, and the share of the room that was visited in it."""
    s = places(path)
    t, cuts = crossings(s, room)
    size = np.bincount(room[room >= 0])
    visited = np.split(s[t], cuts)[:-1]
    steps = np.diff(t[np.append(0, cuts)])
    return [(float(n), len(np.unique(v)) / size[room[v[0]]]) for n, v in zip(steps, visited, strict=True)]


def crossings(s: Array, room: Array) -> tuple[Array, Array]:
    """When a path is in a room, and at which of these times in another one than before; on a door, a stay goes on."""
    t = np.flatnonzero(room[s] >= 0)
    return t, np.flatnonzero(np.diff(room[s[t]])) + 1


def variation(x: Array, axis: int) -> Any:
    return x.std(axis=axis) / x.mean(axis=axis)


def idleness(trace: Trace) -> Array:
    """Time since a state's last visit, averaged over states and steps, over the number of states: a tour gives 1/2."""
    S, found = trace.visits.shape[1], []
    for path in trace.paths.values():
        s = places(path)
        T = len(s)
        # Every state gets a visit before the start and one at the end; a gap of g steps between visits adds g(g-1)/2.
        state, time = np.concatenate([np.arange(S), s, np.arange(S)]), np.r_[np.zeros(S), np.arange(T), np.full(S, T)]
        order = np.argsort(state.astype(np.min_scalar_type(S)), kind="stable")  # small integers are sorted by counting
        gaps = np.diff(time[order])[np.diff(state[order]) == 0]
        found.append(gaps @ (gaps - 1) / 2 / (T * S * S))
    return np.array(found)


def row_norms(path: Trajectory, S: int, eta: float, gamma: float) -> Array:
    """Row sums of the SR that is learned along a path; their update needs nothing but themselves."""
    sums = [0.0] * S
    for s, s_next in zip(path.states.tolist(), path.next_states.tolist(), strict=True):
        sums[s] += eta * (1 + gamma * sums[s_next] - sums[s])
    return np.array(sums)


def ranks(x: Array) -> Array:
    """Equal values share the mean of their ranks."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[which])


def bonus_drift(path: Trajectory) -> float:
    """The most that the bonus of one state and action changes."""
    pairs = path.states * (path.actions.max() + 1) + path.actions
    order = np.lexsort([path.bonuses, pairs])
    starts = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    bonuses = path.bonuses[order]
    return float(np.max(np.maximum.reduceat(bonuses, starts) - np.minimum.reduceat(bonuses, starts)))
