"""An MDP is arrays of successors, probabilities and rewards; a Gymnasium env is a view of them."""

import functools
import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from spie.errors import as_array, check_whole, is_whole, told
from spie.notebook import html_table
from spie.tasks.base import Kind
from spie.tasks.draw import draw, write
from spie.tasks.layout import Layout, cells_layout, moves, nodes_layout

DENSE_STATES = 5000  # transition() is dense up to here: 200 MB
DENSE_BYTES = 2e9  # P is refused above
MOST_DRAWN = 2_000  # states of a map that a notebook shows
ROUNDING = 1e-9  # how far from 1 probabilities may sum


@dataclass(frozen=True, eq=False)
class MDP:
    """A finite MDP as successor lists, checked when it is built and read-only afterwards.

    S states, A actions, at most K successors of each, G goal phases. Shorter successor lists are padded with
    probability 0; padding points at the state itself and pays 0, whatever was given there.

    Raises ValueError where probabilities do not sum to 1, or shapes do not fit together.

    >>> next = np.array([[[1], [0]], [[1], [0]]])  # [S, A, K]: action 0 goes to state 1, action 1 to state 0
    >>> coin = spie.MDP("coin", next, prob=1.0, reward=next == 1, start=[1.0, 0.0])
    >>> coin.transition().tolist()  # of the uniform random policy
    [[0.5, 0.5], [0.5, 0.5]]
    """

    kind: ClassVar[Kind] = "table"

    name: str
    next: NDArray[np.int32]  # successors [S, A, K]
    prob: NDArray[np.float64]  # their probabilities [S, A, K]
    reward: NDArray[np.float64]  # [G, S, A, K], or [S, A, K] for one phase
    start: NDArray[np.float64]  # distribution of the first state [S]
    terminal: NDArray[np.bool_] = field(default_factory=lambda: np.array(False))  # entering ends: [G, S] or [S]
    episodes_per_phase: int = 0  # the phase moves on, cyclically, after this many episodes; 0: never
    available: NDArray[np.bool_] = field(default_factory=lambda: np.array(True))  # actions on offer [S, A]
    labels: tuple[str, ...] = ()  # one per state; default "0", "1", ...
    cells: NDArray[np.int32] | None = None  # (row, column) of each state on a grid [S, 2]
    shape: tuple[int, int] | None = None  # (rows, columns) of that grid
    places: Layout | None = None  # where states lie; None: found from cells and moves when asked for, see `layout`

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable():
            raise ValueError(f"MDP: name must be a text in one line, not {told(self.name)}")
        successors = as_array(f"{self.name}: next", self.next)
        if successors.size == 0:
            self._refuse(f"no states, actions or successors: next has shape {successors.shape}")
        if successors.ndim != 3 or successors.dtype.kind not in "iu":
            self._refuse(f"next must be integers [S, A, K], not {successors.dtype} {list(successors.shape)}")
        S, A, K = successors.shape
        reward = as_array(f"{self.name}: reward", self.reward)
        n_phases = max(1, len(reward)) if reward.ndim == 4 else 1
        prob = self._array("prob", np.float64, (S, A, K))
        reward = self._array("reward", np.float64, (n_phases, S, A, K))
        padding = prob == 0
        successors = np.where(padding, np.arange(S)[:, None, None], successors)
        reward[:, padding] = 0
        start = self._array("start", np.float64, (S,))
        terminal = self._array("terminal", np.bool_, (n_phases, S))
        available = self._array("available", np.bool_, (S, A))

        self._check_transitions(successors, prob, available)
        for g, s, a, k in _first(~np.isfinite(reward)):
            self._refuse(f"reward {reward[g, s, a, k]} in phase {g} is not finite (state {s}, action {a})")
        self._check_episodes(start, terminal)
        for what, array in {
            "next": successors.astype(np.int32),
            "prob": prob,
            "reward": reward,
            "start": start,
            "terminal": terminal,
            "available": available,
        }.items():
            self._freeze(what, array)
        self._place_states(S)

    def _check_transitions(
        self, successors: NDArray[Any], prob: NDArray[np.float64], available: NDArray[np.bool_]
    ) -> None:
        S = len(successors)
        for (s,) in _first(~available.any(axis=1)):
            self._refuse(f"state {s} has no available action")
        for s, a, k in _first(~(prob >= 0)):
            self._refuse(f"P[{s}, {a}] holds {prob[s, a, k]:g}, which is no probability (state {s}, action {a})")
        for s, a, k in _first((successors < 0) | (successors >= S)):
            self._refuse(
                f"P[{s}, {a}] leads to {successors[s, a, k]}, but the states are 0..{S - 1} (state {s}, action {a})"
            )
        total = prob.sum(axis=2)
        for s, a in _first(available & ~(np.abs(total - 1) <= ROUNDING)):
            self._refuse(f"P[{s}, {a}] sums to {total[s, a]:.12g}, not 1 (state {s}, action {a})")
        for s, a in _first(~available & (total > 0)):
            self._refuse(f"P[{s}, {a}] sums to {total[s, a]:.12g}, but action {a} is not available in state {s}")

    def _check_episodes(self, start: NDArray[np.float64], terminal: NDArray[np.bool_]) -> None:
        for (s,) in _first(~(start >= 0)):
            self._refuse(f"start holds {start[s]:g}, which is no probability (state {s})")
        if not abs(start.sum() - 1) <= ROUNDING:
            self._refuse(f"start sums to {start.sum():.12g}, not 1")
        for (g,) in _first(terminal.all(axis=1)):
            self._refuse(f"every state is terminal in phase {g}")
        for g, s in _first(terminal & (start > 0)):
            self._refuse(f"state {s} is a start and terminal in phase {g}")
        check_whole(f"{self.name}: episodes_per_phase (0: never)", self.episodes_per_phase, 0, 2**62)

    def _place_states(self, S: int) -> None:
        """Labels, cells and places, which are for people."""
        if not isinstance(self.labels, Sequence) or not all(isinstance(label, str) for label in self.labels):
            self._refuse(f"labels must be texts, one for each state, not {told(self.labels)}")
        for label in self.labels:
            if not label.isprintable():
                self._refuse(f"labels must be texts in one line, not {told(label)}")
        labels = tuple(self.labels) or tuple(map(str, range(S)))
        if len(labels) != S:
            self._refuse(f"{len(labels)} labels for {S} states")
        object.__setattr__(self, "labels", labels)
        if (self.cells is None) != (self.shape is None):
            self._refuse("cells and shape come together")
        if self.cells is not None:
            if not isinstance(self.shape, tuple) or len(self.shape) != 2 or not all(is_whole(n, 1) for n in self.shape):
                self._refuse(f"shape must be (rows, columns), not {told(self.shape)}")
            cells = self._array("cells", np.int32, (S, 2))
            for (s,) in _first(((cells < 0) | (cells >= self.shape)).any(axis=1)):
                self._refuse(f"cell {tuple(cells[s].tolist())} of state {s} is outside the {self.shape} grid")
            self._freeze("cells", cells)
        if self.places is not None and not isinstance(self.places, Layout):
            self._refuse(f"places must be a spie.Layout, not {told(self.places)}")
        if self.places is not None and len(self.places.positions) != S:
            self._refuse(f"{len(self.places.positions)} positions for {S} states")

    def _refuse(self, why: str) -> NoReturn:
        raise ValueError(f"{told(self.name)}: {why}")

    def _array(self, what: str, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
        """A copy of field `what` in full shape: one value, or one array for all phases, is repeated."""
        array: NDArray[Any] = as_array(f"{self.name}: {what}", getattr(self, what), dtype)
        if array.ndim and array.shape not in (shape, shape[1:] if what in ("reward", "terminal") else shape):
            self._refuse(f"{what} has shape {list(array.shape)}, not {list(shape)}")
        return np.broadcast_to(array, shape).copy()

    def _freeze(self, what: str, array: NDArray[Any]) -> None:
        array.flags.writeable = False
        object.__setattr__(self, what, array)

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to say of it in a few words."""
        low, high = float(self.reward.min()), float(self.reward.max())
        found: dict[str, Any] = {"states": self.n_states, "actions": self.n_actions}
        found |= {"phases": self.n_phases} if self.n_phases > 1 else {}
        found |= {"starts": int((self.start > 0).sum()), "ends": int(self.terminal.any(axis=0).sum())}
        return found | {"rewards": f"{low:g}" if low == high else f"{low:g} to {high:g}"}

    def __repr__(self) -> str:
        return f"MDP {self.name!r}: {', '.join(f'{name} {value}' for name, value in self.facts.items())}"

    def _repr_html_(self) -> str:
        table = html_table(self.name, list(self.facts), [self.facts])
        if self.cells is None or self.n_states > MOST_DRAWN:
            return table
        return f"{table}<pre>{html.escape(write(self, int(self.start.argmax())))}</pre>"

    @functools.cached_property
    def digest(self) -> str:
        """A hash of the tables: two ways to write the same environment have the same."""
        digest = hashlib.sha256()
        for array in (self.next, self.prob, self.reward, self.start, self.terminal, self.available):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        digest.update(str(self.episodes_per_phase).encode())
        return digest.hexdigest()[:24]

    @functools.cached_property
    def layout(self) -> Layout:
        """Where the states lie, walls and one-way doors between them; no part of the digest.

        As given; else by the cells of a grid; else states that are joined by moves lie close to each other.
        """
        if self.places is not None:
            return self.places
        pairs = moves(self.next, self.prob)
        if self.cells is None:
            return nodes_layout(pairs, self.n_states)
        return cells_layout("square", self.cells[:, ::-1], pairs)

    @property
    def n_states(self) -> int:
        return len(self.next)

    @property
    def n_actions(self) -> int:
        return int(self.next.shape[1])

    @property
    def n_successors(self) -> int:
        return int(self.next.shape[2])

    @property
    def n_phases(self) -> int:
        return len(self.reward)

    @property
    def P(self) -> NDArray[np.float64]:
        """Dense transition probabilities [S, A, S], zero for an action that is not available."""
        S, A = self.n_states, self.n_actions
        if S * A * S * 8 > DENSE_BYTES:
            self._refuse(
                f"P [{S}, {A}, {S}] would need {S * A * S * 8 / 1e9:.1f} GB; use transition(), or next and prob"
            )
        P = np.zeros((S, A, S))
        np.add.at(P, (np.arange(S)[:, None, None], np.arange(A)[None, :, None], self.next), self.prob)
        return P

    @property
    def R(self) -> NDArray[np.float64]:
        """Expected reward of an action in phase 0 [S, A]."""
        expected: NDArray[np.float64] = np.einsum("sak,sak->sa", self.prob, self.reward[0])
        return expected

    def transition(self, policy: NDArray[np.float64] | None = None, phase: int = 0) -> Any:
        """Markov chain of a policy [S, A], by default uniform over the available actions: P [S, S].

            P[s, s'] = sum_a policy[s, a] P[s, a, s']

        The row of a terminal state is the start distribution, where the next episode begins. An array up to
        5000 states, a scipy.sparse.csr_array above.

        phase: which goal. Raises ValueError for what is no policy.

        >>> spie.grid("..").transition().tolist()  # three moves of four hit a wall
        [[0.75, 0.25], [0.25, 0.75]]
        """
        S = self.n_states
        if not 0 <= phase < self.n_phases:
            self._refuse(f"no phase {phase}; phases are 0..{self.n_phases - 1}")
        policy = self.available / self.available.sum(axis=1, keepdims=True) if policy is None else self._policy(policy)

        ends, starts = np.flatnonzero(self.terminal[phase]), np.flatnonzero(self.start)
        weight = policy[:, :, None] * self.prob
        weight[ends] = 0
        s, a, k = np.nonzero(weight)
        rows = np.concatenate([s, np.repeat(ends, starts.size)])
        columns = np.concatenate([self.next[s, a, k], np.tile(starts, ends.size)])
        values = np.concatenate([weight[s, a, k], np.tile(self.start[starts], ends.size)])
        if S <= DENSE_STATES:
            return np.bincount(rows * S + columns, values, minlength=S * S).reshape(S, S)
        from scipy.sparse import csr_array

        # 32-bit indices, as the sparse solvers want them
        return csr_array((values, (rows.astype(np.int32), columns.astype(np.int32))), shape=(S, S))

    def _policy(self, policy: NDArray[np.float64]) -> NDArray[np.float64]:
        policy = np.asarray(policy, dtype=np.float64)
        if policy.shape != (self.n_states, self.n_actions):
            self._refuse(f"policy has shape {list(policy.shape)}, not {[self.n_states, self.n_actions]}")
        for s, a in _first(~(policy >= 0)):
            self._refuse(f"policy holds {policy[s, a]:g}, which is no probability (state {s}, action {a})")
        for (s,) in _first(~(np.abs(policy.sum(axis=1) - 1) <= ROUNDING)):
            self._refuse(f"policy sums to {policy[s].sum():.12g}, not 1 (state {s})")
        for s, a in _first(~self.available & (policy > 0)):
            self._refuse(f"policy takes action {a}, which is not available (state {s})")
        return policy

    def representations(self, policy: Any = "random", gamma: float = 0.95, phase: int = 0, epsilon: float = 0.0) -> Any:
        """M, F, N, z, place fields, eigenvectors and bottlenecks of a policy: see `spie.spatial.Representations`.

        policy: "random", uniform over the available actions; pi [S, A]; values Q [S, A], of which the best actions are
        taken, with chance epsilon another; or paths, a list of sequences of states as they followed each other.

        gamma: discount of M, F and N. phase: which goal. Raises ValueError for what is no policy or no path here.

        >>> found = spie.grid("....").representations(gamma=0.5)
        >>> found.M.shape, bool(found.fiedler[0] * found.fiedler[3] < 0)  # the two ends lie apart
        ((4, 4), True)
        """
        from spie import spatial

        pi = self.available / self.available.sum(axis=1, keepdims=True)
        if isinstance(policy, str) and policy != "random":
            self._refuse(f'no policy "{policy}"; give "random", pi [S, A], Q [S, A] or a list of paths')
        if spatial.is_table(policy):
            pi = spatial.as_policy(policy, self.available, epsilon, self.name)
        P = self.transition(pi, phase)
        if not isinstance(policy, str) and not spatial.is_table(policy):
            P = spatial.follow_paths(P, policy, self.labels, self.terminal[phase], self.name)
        ends = self.terminal[phase] if self.terminal[phase].any() else None
        reward = np.einsum("sa,sak,sak->s", pi, self.prob, self.reward[phase])
        return spatial.Representations(P, gamma, ends, reward)

    @classmethod
    def from_gymnasium(cls, env: gym.Env[Any, Any]) -> "MDP":
        """MDP of a toy-text environment that carries its table: FrozenLake, CliffWalking, Taxi.

        A successor that ends the episode becomes terminal, so ending must depend on the successor alone wherever
        an episode can get. Time limits are not part of a table.

        env: of Gymnasium. Raises ValueError where it carries no table.

        >>> spie.MDP.from_gymnasium(gym.make("FrozenLake-v1")).n_states
        16
        """
        raw: Any = env.unwrapped
        name = env.spec.id if env.spec else type(raw).__name__
        if not (hasattr(raw, "P") and hasattr(raw, "initial_state_distrib")):
            raise ValueError(f"{name}: carries no table P; FrozenLake, CliffWalking and Taxi do")
        if getattr(raw, "fickle_passenger", False):
            raise ValueError(f"{name}: the table P knows nothing of fickle_passenger; make the env without it")
        S, A = int(raw.observation_space.n), int(raw.action_space.n)
        K = max(len(raw.P[s][a]) for s in range(S) for a in range(A))
        table = np.zeros((S, A, K, 4))  # probability, successor, reward, ends
        for s in range(S):
            for a in range(A):
                table[s, a, : len(raw.P[s][a])] = raw.P[s][a]
        prob, successors, reward, ends = np.moveaxis(table, 3, 0)
        terminal = np.zeros(S, dtype=np.bool_)
        terminal[successors[(prob > 0) & (ends > 0)].astype(int)] = True
        mdp = cls(name, successors.astype(np.int64), prob, reward, raw.initial_state_distrib, terminal)
        # Rows an episode never gets to may say anything: those of Taxi's delivered passengers do.
        visited = reachable(mdp.next, mdp.start > 0, stop=terminal) & ~terminal
        for s, a, k in _first(visited[:, None, None] & (prob > 0) & (ends != terminal[mdp.next])):
            mdp._refuse(f"entering state {mdp.next[s, a, k]} ends some episodes and not others (state {s}, action {a})")
        return mdp

    @classmethod
    def from_minigrid(cls, id: str, seed: int = 0, limit: int = 200_000) -> "MDP":
        """MDP of one level of a MiniGrid task, exact: `spie.MDP.from_minigrid("MiniGrid-DoorKey-5x5-v0")`.

        A state is position, direction, what is carried, and the place and state of every object; the level is the one
        that `reset(seed=seed)` makes. Success pays 1, where MiniGrid pays less the longer it took, which no table of
        states can say; time limits are left out. Above `limit` states it is refused.

        id: of MiniGrid; needs the extra `minigrid`. Raises ValueError where a step draws at random.

        >>> spie.MDP.from_minigrid("MiniGrid-Empty-5x5-v0").n_states  # 8 cells x 4, and the goal from 2 sides
        34
        """
        from spie.tasks.minigrid import enumerate_level

        found = enumerate_level(id, seed, limit)
        S = len(found.terminal)
        return cls(
            id, found.next, np.ones(found.next.shape), found.reward, np.eye(S)[0], found.terminal, labels=found.labels
        )

    def state(self, name: str) -> int:
        """The state of a label, or of a number written out."""
        if name in self.labels:
            return self.labels.index(name)
        if name.isdecimal() and len(name) < 19 and int(name) < self.n_states:
            return int(name)
        label = "" if self.labels[0] == "0" else f" or the row,column of a free cell, such as {self.labels[0]}"
        self._refuse(f'no state "{told(name)}"; give a number 0..{self.n_states - 1}{label}')

    def env(self, render_mode: str | None = None, max_steps: int | None = None) -> "MDPEnv":
        """This MDP as a Gymnasium environment."""
        return MDPEnv(self, render_mode, max_steps)


def reachable(
    successors: NDArray[np.int32], sources: NDArray[np.bool_], stop: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """States [S] within reach of the sources [S] along successors [S, A, K]; a `stop` state [S] is not left again."""
    found = sources.copy()
    queue = np.flatnonzero(sources).tolist()
    neighbours = successors.reshape(len(successors), -1).tolist()
    while queue:
        s = queue.pop()
        if stop is not None and stop[s]:
            continue
        for s_next in neighbours[s]:
            if not found[s_next]:
                found[s_next] = True
                queue.append(s_next)
    return found


def _first(bad: NDArray[np.bool_] | np.bool_) -> list[list[int]]:
    """Index of the first true entry, as a list of none or one: what a check has to name."""
    return np.argwhere(bad)[:1].tolist() if bad.any() else []


class MDPEnv(gym.Env[Any, Any]):
    """An MDP as a Gymnasium environment: the observation is the state's number.

    The phase of episode e is (e // episodes_per_phase) % G, e = 0 again after reset(seed=...). An episode counts once
    it took a step. If some actions are not available, info["action_mask"] says which are.

    mdp: what to play; `mdp.env()` is the same. render_mode: "ansi" or "rgb_array". max_steps: where it truncates.

    >>> env = spie.MDPEnv(spie.grid("S..G", task="goal"))
    >>> state, info = env.reset(seed=0)
    >>> state, env.step(1)[:3]  # to the right
    (0, (1, -1.0, False))
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012 (as Gymnasium)

    def __init__(self, mdp: MDP, render_mode: str | None = None, max_steps: int | None = None) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f'{mdp.name}: no render mode "{render_mode}"; known: rgb_array, ansi')
        if max_steps is not None and max_steps < 1:
            raise ValueError(f"{mdp.name}: max_steps is {max_steps}; give 1 or more, or None for no limit")
        self.mdp: MDP = mdp
        self.render_mode: str | None = render_mode
        self.max_steps: int | None = max_steps
        self.observation_space = gym.spaces.Discrete(mdp.n_states)
        self.action_space = gym.spaces.Discrete(mdp.n_actions)
        self.masked: bool = not mdp.available.all()
        self.state: int | None = None
        self.episode: int = 0
        self.steps: int = 0
        self.over: bool = True

    @property
    def phase(self) -> int:
        return self.episode // self.mdp.episodes_per_phase % self.mdp.n_phases if self.mdp.episodes_per_phase else 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode = 0 if seed is not None else self.episode + (self.steps > 0)
        self.steps, self.over = 0, False
        self.state = self._draw(self.mdp.start)
        return self.state, self._info(self.state)

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        mdp, s = self.mdp, self.state
        if s is None or self.over:
            raise ValueError(f"{mdp.name}: no episode is under way; call reset() first")
        if not self.action_space.contains(action):
            raise ValueError(f"{mdp.name}: no action {action}; actions are 0..{mdp.n_actions - 1}")
        if not mdp.available[s, action]:
            offer = ", ".join(map(str, np.flatnonzero(mdp.available[s])))
            raise ValueError(f"{mdp.name}: action {action} is not available in state {s}; available: {offer}")
        k = self._draw(mdp.prob[s, action])
        self.state = s_next = int(mdp.next[s, action, k])
        self.steps += 1
        terminated = bool(mdp.terminal[self.phase, s_next])
        truncated = self.steps == self.max_steps and not terminated
        self.over = terminated or truncated
        return s_next, float(mdp.reward[self.phase, s, action, k]), terminated, truncated, self._info(s_next)

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        if self.state is None:
            raise ValueError(f"{self.mdp.name}: nothing to render; call reset() first")
        return {"rgb_array": draw, "ansi": write}[self.render_mode](self.mdp, self.state, self.phase)

    def _draw(self, p: NDArray[np.float64]) -> int:
        cumulative = p.cumsum()
        # side="right" passes over entries of probability 0
        return int(cumulative.searchsorted(self.np_random.random() * cumulative[-1], side="right"))

    def _info(self, s: int) -> dict[str, Any]:
        return {"action_mask": self.mdp.available[s].astype(np.int8)} if self.masked else {}
