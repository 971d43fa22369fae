"""Walkers that know the value of places: the classic SR agent, a planner, and a bee-line to the goal.

The preference of an action is inverse_temperature * v[s'] + choice terms, s' where it leads; chances are proportional
to exp(preference). After each step

    v[s] += alpha (w[s] + gamma v[s'] - v[s])                         w is 1 at the goal, else 0

which is what M[s, :] += alpha (1(s) + gamma M[s', :] - M[s, :]) does to v = M w: with a fixed w a row of numbers is all
that a successor representation comes to, and it costs no more than that.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, no_type_check

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import check_ranges
from spie.behaviour.paths import Paths
from spie.behaviour.walks import Walks
from spie.engine import exponential as exp
from spie.engine.exponential import exponential
from spie.engine.lanes import mix, random_streams, run_chunks
from spie.engine.specialise import specialise
from spie.rewards import get_reward

VECTOR_CODE = {"spie.engine.simd": ("power_of_two",)}
ACTIONS = 1
SIMULATED = False  # the walker chooses; else it follows the recording, and log p is summed
EACH = False  # log p of every choice is kept
PLANNED = False  # v follows from the ways that are known, and alpha is 0
NO_MOVE = 2**31 - 1
MOST_GAMMA = 0.99  # up to which the start is a sum of powers
LANE = np.dtype(
    [(name, np.float64) for name in ("alpha", "gamma", "inverse_temperature", "stickiness", "heading", "turn_back")]
    + [(name, np.float64) for name in ("lapse", "log_p")]
    + [(name, np.int64) for name in ("subject", "table")]
    + [("word", np.uint64), ("stride", np.uint64)],
    align=True,
)


@dataclass(frozen=True, kw_only=True)
class StateValues:
    """Settings of a walker that knows the value of places."""

    version: ClassVar[int] = 1
    policy: ClassVar[str] = "softmax"
    rewards: ClassVar[tuple[str, ...]] = ()  # it evaluates none
    # v = (I - gamma T)^-1 w; gamma^d, d the shortest known way to the goal; or minus the distance as the crow flies
    start: Literal["successors", "planned", "bee-line"] = "successors"
    alpha: float = 0.1  # learning rate of v; 0: as it starts
    gamma: float = 0.95
    inverse_temperature: float = 1.0
    lapse: float = 0.0
    stickiness: float = 0.0
    heading: float = 0.0
    turn_back: float = 0.0

    def __post_init__(self) -> None:
        check_ranges(self, alpha="[0, 1]", gamma="[0, 1)", lapse="[0, 1)")
        if self.start == "planned" and self.alpha != 0:
            raise ValueError(f"StateValues: what is planned is not learned by alpha; leave it at 0, not {self.alpha}")


@no_type_check
def walk_kernel(lanes, starts, w, walks, known, ways, scratch, out):
    """Every lane walks the trials of its subject: along the recording, or by its own choices from the same starts."""
    S = len(w)
    v, weight = scratch[:S], scratch[S:]
    for l in range(len(lanes)):
        lane = lanes[l]
        for s in range(S):
            v[s] = starts[lane.table, s]
        if PLANNED:
            for i in range(S * ACTIONS):
                ways[i] = known[i]
            plan(lane.gamma, w, ways, v)
        scale, step, first = 1.0, 0, walks.first[lane.subject]
        for k in range(first, walks.first[lane.subject + 1]):
            at, n, maze = walks.trials[k, 0], walks.trials[k, 1], walks.trials[k, 2]
            s = np.int64(walks.states[at])
            last_action, last_state, last_move = ACTIONS, S, NO_MOVE
            if SIMULATED:
                out.states[l, step + k - first] = s
            for i in range(n):
                here = (maze * S + s) * ACTIONS
                if PLANNED and look_around(here, s, walks, ways):
                    plan(lane.gamma, w, ways, v)
                total = choice_weights(lane, here, s, last_action, last_state, last_move, walks, v, weight)
                if SIMULATED:
                    a = drawn(mix(lane.word), total, weight)
                    lane.word += lane.stride
                    s_next = np.int64(walks.following[here + a])
                else:
                    s_next, a = np.int64(walks.states[at + i + 1]), np.int64(walks.actions[at + i])
                    p = weight_of(here, a, s_next, walks, weight) / total
                    if EACH:
                        out.log_p[l, step] = np.log(p)
                    scale *= p
                    if scale < 1e-250:
                        lane.log_p += np.log(scale)
                        scale = 1.0
                v[s] += lane.alpha * (w[s] + lane.gamma * v[s_next] - v[s])
                last_action = a if a >= 0 else way_to(here, s_next, walks)
                if s_next != s:
                    last_state = s
                    if len(walks.position) > 0:
                        last_move = walks.position[s_next] - walks.position[s]
                s = s_next
                step += 1
                if SIMULATED:
                    out.states[l, step + k - first] = s
                    out.lengths[l, k - first] = i + 1
                    if walks.ends[maze * S + s]:
                        break
        lane.log_p += np.log(scale)


@no_type_check
def choice_weights(lane, here, s, last_action, last_state, last_move, walks, v, weight):
    """Probabilities of the actions up to a common factor, which is returned."""
    best = -np.inf
    for a in range(ACTIONS):
        weight[a] = -np.inf
        if walks.legal[here + a]:
            leads = np.int64(walks.following[here + a])
            x = lane.inverse_temperature * v[leads]
            x += lane.stickiness * (a == last_action) + lane.turn_back * (leads == last_state)
            if len(walks.position) > 0:
                x += lane.heading * (walks.position[leads] - walks.position[s] == last_move)
            weight[a] = x
            best = max(best, x)
    total, n = 0.0, 0
    for a in range(ACTIONS):
        weight[a] = exponential(weight[a] - best)
        total += weight[a]
        n += walks.legal[here + a]
    if lane.lapse > 0.0:
        for a in range(ACTIONS):
            if walks.legal[here + a]:
                weight[a] = (1.0 - lane.lapse) * weight[a] + lane.lapse * total / n
    return total


@no_type_check
def look_around(here, s, walks, ways):
    """Remember where the moves in s lead, -1 for nowhere. Returns whether something is new."""
    is_new = False
    for a in range(ACTIONS):
        leads = walks.following[here + a] if walks.legal[here + a] else -1
        if ways[s * ACTIONS + a] != leads:
            ways[s * ACTIONS + a] = leads
            is_new = True
    return is_new


@no_type_check
def plan(gamma, w, ways, v):
    """v = gamma^d, d the number of moves to the goal by the known ways; 0 where none leads there."""
    for s in range(len(w)):
        v[s] = w[s]
    moved = True
    while moved:
        moved = False
        for s in range(len(w)):
            if w[s] == 0.0:
                for a in range(ACTIONS):
                    leads = ways[s * ACTIONS + a]
                    if leads >= 0 and gamma * v[leads] > v[s]:
                        v[s] = gamma * v[leads]
                        moved = True


@no_type_check
def drawn(word, total, weight):
    """An action by a random word."""
    left = np.float64(word >> np.uint64(11)) * 2.0**-53 * total
    chosen, below = 0, 0.0
    for a in range(ACTIONS):
        if weight[a] > 0.0 and left >= below:
            chosen = a
        below += weight[a]
    return np.int64(chosen)


@no_type_check
def weight_of(here, a, s_next, walks, weight):
    """The weight of an action; where it is not known, of all that lead there."""
    if a >= 0:
        return weight[a]
    total = 0.0
    for b in range(ACTIONS):
        if walks.following[here + b] == s_next:
            total += weight[b]
    return total


@no_type_check
def way_to(here, s_next, walks):
    """The first action that leads to s', where it is not known which was taken."""
    for b in range(ACTIONS):
        if walks.legal[here + b] and walks.following[here + b] == s_next:
            return np.int64(b)
    return np.int64(ACTIONS)


HELPERS = (mix, exponential, choice_weights, look_around, plan, drawn, weight_of, way_to)


class _Out(NamedTuple):
    """What lanes leave: log p of each choice, or the states that they walked through, trial after trial."""

    log_p: Any  # [lanes, most steps]
    states: Any  # [lanes, most steps + most trials]
    lengths: Any  # [lanes, most trials]


def log_p(settings: Sequence[StateValues], paths: Paths, rows: NDArray[np.int64], each: bool = False) -> NDArray[Any]:
    """Log-likelihood of lane i: settings i along the path of subject `rows[i]` [lanes]; each: [lanes, most steps]."""
    lanes, out = _run(settings, paths, rows, each=each)
    return np.asarray(out.log_p) if each else lanes["log_p"].copy()


def simulate(
    settings: Sequence[StateValues], paths: Paths, rows: NDArray[np.int64], seeds: NDArray[np.int64]
) -> list[list[NDArray[np.int32]]]:
    """The states that lane i walks through in each trial of subject `rows[i]`: its starts, its mazes, its lengths."""
    _, out = _run(settings, paths, rows, seeds=seeds)
    return [split_walk(out.states[i], out.lengths[i]) for i in range(len(rows))]


def split_walk(states: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """The trials of a walk; each has a state more than moves, and the place of a state counts the trials before it."""
    walked, at = [], 0
    for n in lengths[lengths > 0]:
        walked.append(states[at : at + n + 1].copy())
        at += n + 1
    return walked


def _run(
    settings: Sequence[StateValues],
    paths: Paths,
    rows: NDArray[np.int64],
    each: bool = False,
    seeds: NDArray[np.int64] | None = None,
) -> tuple[NDArray[Any], _Out]:
    if paths.goal is None:
        raise ValueError("this model needs a goal: a G in the map, or Paths with a goal")
    if (paths.mazes[0].prob > 0).sum(axis=2).max() > 1:
        raise ValueError(f"{paths.mazes[0].name} is stochastic: models of the value of places need deterministic moves")
    walks = paths.walks
    n, most = len(rows), int(walks.steps.max())
    lanes = np.zeros(n, LANE)
    for name in ("alpha", "gamma", "inverse_temperature", "stickiness", "heading", "turn_back", "lapse"):
        lanes[name] = [vars(one)[name] for one in settings]
    lanes["subject"] = rows
    if seeds is not None:
        lanes["word"], lanes["stride"] = random_streams(seeds)
    starts, lanes["table"] = _starts(settings, paths)
    w = (np.arange(paths.mazes[0].n_states) == paths.goal).astype(np.float64)
    (planned,) = {one.start == "planned" for one in settings}
    constants = {"ACTIONS": paths.mazes[0].n_actions, "SIMULATED": seeds is not None, "EACH": each, "NO_MOVE": NO_MOVE}
    constants["PLANNED"] = planned
    kernel = specialise(walk_kernel, HELPERS, constants | exp.CONSTANTS, VECTOR_CODE, get_reward("none"))
    trials = int(np.diff(walks.first).max())
    rooms = {
        "log_p": (n, most if each else 0),
        "states": (n, most + trials if seeds is not None else 0),
        "lengths": (n, trials if seeds is not None else 0),
    }
    out = _Out(*(np.zeros(shape, np.float64 if name == "log_p" else np.int32) for name, shape in rooms.items()))
    known = _known_ways(paths) if planned else np.zeros(0, np.int32)

    def run(part: slice) -> None:
        scratch = np.zeros(len(w) + paths.mazes[0].n_actions)
        kernel(
            lanes[part], starts, w, walks, known, np.zeros_like(known), scratch, _Out(*(array[part] for array in out))
        )

    size = max(1, min(64, n // 4))
    run_chunks([(run, slice(i, min(i + size, n))) for i in range(0, n, size)], None, None)
    return lanes, out


def _starts(settings: Sequence[StateValues], paths: Paths) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The values that walkers start with, and which of them is whose."""
    S = paths.mazes[0].n_states
    keys = [(one.start, one.gamma if one.start == "successors" else 0.0) for one in settings]
    distinct = list(dict.fromkeys(keys))
    index = {key: i for i, key in enumerate(distinct)}
    w = np.arange(S) == paths.goal
    values = np.zeros((len(distinct), S))
    for i, (start, gamma) in enumerate(distinct):
        if start == "successors":
            values[i] = _successor_values(paths, gamma, w)
        elif start == "bee-line":
            cells = paths.mazes[0].cells
            if cells is None:
                raise ValueError("a bee-line needs a map: positions of the states")
            values[i] = -np.hypot(*(cells - cells[paths.goal]).T)
    return values, np.array([index[key] for key in keys], np.int64)


def _successor_values(paths: Paths, gamma: float, w: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(I - gamma T)^-1 w = sum over k of gamma^k T^k w, whose terms serve all gammas."""
    if gamma > MOST_GAMMA:
        return np.asarray(np.linalg.solve(np.eye(len(w)) - gamma * _chain(paths), w.astype(np.float64)))
    powers = _powers(paths)
    n = len(powers) if gamma == 0 else min(len(powers), int(np.ceil(-36 / np.log(gamma))))  # below 2e-16
    return np.asarray(gamma ** np.arange(n) @ powers[:n])


@functools.lru_cache(maxsize=4)
def _powers(paths: Paths) -> NDArray[np.float64]:
    """T^k w for k = 0, 1, ... [k, S], up to where they vanish, or count no more at the largest gamma."""
    chain, powers = _chain(paths), [np.arange(paths.mazes[0].n_states) == paths.goal]
    while powers[-1].max() > 0 and len(powers) < -36 / np.log(MOST_GAMMA):
        powers.append(chain @ powers[-1])
    return np.array(powers, np.float64)


def _known_ways(paths: Paths) -> NDArray[np.int32]:
    """Where each action is thought to lead before the first trial [S * A], -1 for nowhere: as the chain has it."""
    S, A = paths.mazes[0].n_states, paths.mazes[0].n_actions
    chain, ways = _chain(paths), np.full((S, A), -1, np.int32)
    for maze in reversed(paths.mazes):  # the first maze where it says something, else one that does
        leads = maze.next[np.arange(S)[:, None], np.arange(A), maze.prob.argmax(axis=2)]
        thought = maze.available & (chain[np.arange(S)[:, None], leads] > 0)
        ways = np.where(thought, leads, ways).astype(np.int32)
    return ways.reshape(-1)


def _chain(paths: Paths) -> Any:
    """The chain of an earlier phase, or else the random walk in the first maze."""
    return paths.mazes[0].transition() if paths.start_matrix is None else paths.start_matrix


PLACE_WALKS = Walks(StateValues, log_p, simulate)
