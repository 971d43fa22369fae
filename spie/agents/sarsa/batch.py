"""Runs of SARSA: many settings on many seeds, each pair of them a lane of the kernel."""

import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from spie.agents.base import Keep, Replay, Request, Session, pr_rates
from spie.agents.sarsa.closed_forms import closed_forms, given_matrices
from spie.agents.sarsa.kernel import HELPERS, sarsa_kernel
from spie.agents.sarsa.layout import LANE, MOMENT, STOPPED, Dynamics, Records, Tables
from spie.agents.sarsa.options import FIXED, VECTOR_CODE
from spie.agents.sarsa.recording import check_mazes, dynamics, recording
from spie.agents.tables import TableBatch, run_recorded
from spie.engine import sparse_rows
from spie.engine.lanes import aligned_zeros, check_memory, random_streams, run_chunks
from spie.engine.specialise import Kernel, specialise
from spie.rewards import EPISODE_QUANTITIES, QUANTITIES, get_reward
from spie.tasks.base import check_kind
from spie.tasks.mdp import MDP
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.sarsa.settings import Sarsa

DENSE_STATES = 4096  # above this, M is kept row-sparse
UNROLLED_STATES = 16  # up to this, loops over states have a constant length
SHARED_NAMES = (  # of a lane's numbers with the settings
    "alpha", "eta", "gamma", "gamma_sr", "beta", "q0", "m0",
    "inverse_temperature", "stickiness", "heading", "turn_back", "lapse", "habit", "habit_rate", "optimism",
)  # fmt: skip


def run_batch(settings: "Sequence[Sarsa]", request: Request) -> list[Trace]:
    """Run each of `settings` on each seed: one Trace for each set of settings, in their order."""
    mazes, seeds, replay = as_mazes(request.task), request.seed_array, request.replay
    order = in_order(settings)
    settings = [settings[i] for i in order]

    def make(rows: NDArray[np.int64], keep: Keep, recorded: bool) -> Batch:
        batch = Batch(settings, mazes, request.steps, seeds[rows], request.episodes, keep, recorded)
        if replay is not None:
            check_actions(replay, batch, seeds)
            batch.follow(replay, rows)
        return batch

    traces = run_recorded(request, make)
    return [trace for _, trace in sorted(zip(order, traces, strict=True), key=lambda pair: pair[0])]


def kernels(settings: "Sequence[Sarsa]", request: Request) -> list[Kernel]:
    """What has to be compiled before these settings run on their own choices."""
    shape = (request.steps, request.seed_array[:1], request.episodes, request.keep)
    batch = Batch(settings, as_mazes(request.task), *shape)
    return [batch.kernel(s) for s in {_kind(s): s for s in settings}.values()]


def in_order(settings: "Sequence[Sarsa]") -> list[int]:
    """The settings' numbers in an order in which those of one kernel are side by side."""
    return sorted(range(len(settings)), key=lambda i: repr(_kind(settings[i])))


def as_mazes(task: MDP | Sequence[MDP]) -> tuple[MDP, ...]:
    """One MDP, or several that have the same states."""
    mazes = tuple(task) if isinstance(task, tuple | list) else (task,)
    for mdp in mazes:
        check_kind(mdp, "table", "Sarsa")
    check_mazes(mazes)
    return mazes


def check_actions(replay: Replay, batch: "Batch", seeds: NDArray[np.int64]) -> None:
    """Refuse actions that are not of the shape of a run of all seeds, or none of the MDP's."""
    actions, T, A = replay.actions, batch.horizon, batch.mdp.n_actions
    if replay.given:
        if (replay.steps, replay.n_subjects) != (T, len(seeds)) or batch.episodes >= 0:
            n = replay.n_subjects
            raise ValueError(
                f"replay: to run along these {n} subjects give steps={replay.steps}, seeds={n} and no episodes"
            )
        return
    if actions.shape not in ((T,), (len(seeds), T)):
        raise ValueError(f"replay must have shape [{T}] or [{len(seeds)}, {T}]")
    for where in np.argwhere((actions < 0) | (actions >= A))[:1]:
        seed = seeds[where[0] if actions.ndim == 2 else 0]
        at = f"action {actions[tuple(where)]} at step {where[-1] + 1} of seed {seed}"
        raise ValueError(f"replay: {at} is none of 0 ... {A - 1}")


def _kind(s: "Sarsa") -> tuple[Any, ...]:
    """What settings must share to run in one call of a kernel; the rest are numbers of the lane."""
    kernel = (s.reward, s.learned, s.next_action, s.ties, s.bonus_from, s.sparse, s.tolerance, s.policy, s.target)
    return *kernel, s.count, s.standardised, s.potential


def q_width(n_actions: int) -> int:
    """From one row of Q to the next: a row of 5 to 8 actions is one vector."""
    return 8 if 4 < n_actions <= 8 else n_actions


def group_size(n_states: int) -> int:
    """How many lanes advance in turn: as long as the matrices of a group stay near the processor."""
    return 16 if n_states <= 8 else 8 if n_states <= UNROLLED_STATES else 4 if n_states <= 128 else 1


class Batch(TableBatch["Sarsa"]):
    """The lanes of one call of SARSA; several mazes of the same states count as one MDP."""

    LANE, MATRICES = LANE, ("Q", "M", "F", "N")

    def __init__(
        self,
        settings: "Sequence[Sarsa]",
        mazes: tuple[MDP, ...],
        steps: int,
        seeds: NDArray[np.int64],
        episodes: int | None = None,
        keep: Keep = Keep(),
        recorded: bool = False,
        likelihood: Literal["", "sum", "each"] = "",
    ) -> None:
        self.mazes, self.likelihood = mazes, likelihood
        self.replay: Replay | None = None
        self.guided = False
        self.has_terms = any(s.stickiness or s.heading or s.turn_back or s.lapse for s in settings)
        self.has_habit = any(s.habit for s in settings)
        self.has_optimism = any(s.optimism for s in settings)
        super().__init__(settings, mazes[0], steps, seeds, episodes, keep, recorded, int(likelihood == "each"))
        if self.mdp.cells is None and any(s.heading for s in settings):
            name = self.mdp.name
            raise ValueError(f"heading needs a map, and {name} has none: it is not known which way is straight on")
        self.log_p = np.zeros((len(self.lanes), self.horizon if likelihood == "each" else 0))

    def fill(self, lanes: NDArray[Any], s: "Sarsa") -> None:
        lanes["scale"] = lanes["forgotten"] = 1.0
        for name in SHARED_NAMES:
            lanes[name] = getattr(s, name)
        lanes["eta_pr"], lanes["gamma_pr"] = pr_rates(s)
        lanes["tie_tolerance"] = s.tie_tolerance if s.ties == "random" else 0.0
        lanes["epsilon"] = round(s.epsilon * 2**32)

    def follow(self, replay: Replay, rows: NDArray[np.int64]) -> None:
        """Let each lane take a row of the actions of a replay, or follow a subject, in place of its own choices.

        rows: which, for each seed or for each lane.
        """
        self.replay = replay
        rows = np.resize(rows, len(self.lanes))
        if replay.given:
            self.recording = recording(replay, self.mazes)
            self.lanes["at"], self.lanes["end"] = self.recording.begin[rows], self.recording.end[rows]
            if len(self.mazes) > 1 and not all(s.learned for s in self.settings):
                raise ValueError("learned=False works with one maze only; with several mazes leave it out")
            return
        self.lanes["at"] = rows * self.horizon if replay.actions.ndim == 2 else 0

    def guide(self, replay: Replay, rows: NDArray[np.int64], seeds: NDArray[np.int64]) -> None:
        """Let lane i walk the trials of subject `rows[i]` by its own choices: their starts, their mazes, no longer.

        Its random stream is that of `seeds[i]`.
        """
        self.guided, self.recording = True, recording(replay, self.mazes)
        self.lanes["at"], self.lanes["end"] = self.recording.begin[rows], self.recording.end[rows]
        key, self.lanes["stride"] = random_streams(seeds)
        self.lanes["word"] = key + np.uint64(4) * self.lanes["stride"]

    def check(self) -> None:
        super().check()
        if ((self.lanes["over"] == STOPPED) & (self.lanes["steps"] == 1)).all():
            raise ValueError(
                f'reward "{self.settings[0].reward}" was infinite or NaN on {self.mdp.name} at the first step of every '
                f"run (seed {self.seeds[0]}): does it divide by what starts at 0?"
            )

    def run_lanes(self, session: Session) -> None:
        """Run all lanes; neighbours of one kind share the calls of their kernel."""
        n = len(self.seeds)
        chunks: list[tuple[Callable[[slice], None], slice]] = []
        for _, group in itertools.groupby(range(len(self.settings)), lambda i: _kind(self.settings[i])):
            members = list(group)
            lanes = slice(members[0] * n, (members[-1] + 1) * n)
            run, size = self._prepare(self.settings[members[0]], lanes)
            chunks += [(run, slice(i, min(i + size, lanes.stop))) for i in range(lanes.start, lanes.stop, size)]
        run_chunks(chunks, session.threads, session.progress)

    def replayed(self, lane: int, step: int) -> int:
        assert self.replay is not None
        return int(self.replay.actions.reshape(-1)[self.lanes["at"][lane] + step - 1])

    def _prepare(self, s: "Sarsa", lanes: slice) -> tuple[Callable[[slice], None], int]:
        """A function that runs a slice of lanes of one kind, and how many lanes to give it at a time."""
        S = self.mdp.n_states
        has = self._has(s)
        matrices, is_sparse, constants = self._layout(s, has)
        if is_sparse and set(self.keep) - {"Q"}:
            raise ValueError(f"row-sparse runs keep no {', '.join(sorted(set(self.keep) - {'Q'}))}; set sparse=False")
        if s.potential and len(self.mazes) > 1:
            raise ValueError("potential=True works with one maze only; with several mazes leave it out")
        kernel = self.kernel(s)
        together = group_size(S)
        square = 0 if is_sparse else together * S * (-(-S // 8) * 8)
        check_memory(8.0 * matrices * square, f"{self.mdp.name}: learning on {S:,} states", "set sparse=True")
        sizes = {name: square if has[name] else 0 for name in "MFN"}
        given = None if s.learned else self._closed_forms(lanes, has)
        kept = s.learned and not is_sparse and len(self.keep) > 0
        own = threading.local()

        def run(part: slice) -> None:
            if not hasattr(own, "tables"):  # once per thread: lanes leave the matrices at zero
                own.tables = self._tables(together, constants, sizes, given)
                own.pool = sparse_rows.empty_pool(S) if is_sparse else ()
            lengths = self.horizon, self.cap, self.episodes
            records, after = self._records(part), 0
            for shot, until in enumerate(sorted({*self.snapshot_steps, self.horizon})):
                own.pool = kernel(
                    self.lanes[part], together, after, until, *lengths, s.tolerance, self._dynamics, own.tables,
                    own.pool, kept, records
                )  # fmt: skip
                if shot < len(self.snapshot_steps):
                    self.snapshots[part, shot] = self.visits[part]
                after = until
            if self.keep:
                self._keep(part, own.tables, kept)

        seconds = self.horizon * (2e-8 + 3e-10 * S * matrices)  # of a lane, roughly
        size = max(1, min(int(0.2 / seconds), (lanes.stop - lanes.start) // 4))  # often enough for progress and Ctrl-C
        if self.keep or len(self.snapshot_steps):
            size = together  # the next group takes the place of this one
        return run, -(-size // together) * together

    def kernel(self, s: "Sarsa") -> Kernel:
        """The code that lanes with these settings run."""
        _, is_sparse, constants = self._layout(s, self._has(s))
        asked = (get_reward(s.reward), (*QUANTITIES, *EPISODE_QUANTITIES))
        return specialise(sarsa_kernel, HELPERS, constants, VECTOR_CODE, *asked, allocates=is_sparse)

    def _layout(self, s: "Sarsa", has: dict[str, bool]) -> tuple[int, bool, dict[str, Any]]:
        """How many matrices are learned, whether row by row, and what is filled in before the kernel is compiled."""
        matrices = has["M"] + has["F"] + has["N"] if s.learned else 0
        is_sparse = matrices > 0 and (self.mdp.n_states > DENSE_STATES if s.sparse is None else s.sparse)
        return matrices, is_sparse, self._constants(s, has, is_sparse, ordered=matrices > 0 and not is_sparse)

    def _has(self, s: "Sarsa") -> dict[str, bool]:
        """The matrices and sums that the reward, or the caller, asks for."""
        needs = {*get_reward(s.reward).needs, *(self.keep if s.learned else ())}
        if s.optimism:
            needs |= {"sr-column": {"M_col_next"}, "pr-column": {"N_col_next"}}.get(s.count, set())
        return {
            "M": bool(needs & {"M", "M_next"} or (s.learned and "M_col_next" in needs)),
            "M_ROW": "M_row" in needs,
            "M_COL": "M_col_next" in needs,
            "F": bool(needs & {"F", "F_row", "F_row_next", "F_episode_next"}),
            "N": bool(needs & {"N", "N_next"}),
            "N_COL": "N_col_next" in needs,
            "EPISODE": "F_episode_next" in needs,
        }

    def _constants(self, s: "Sarsa", has: dict[str, bool], is_sparse: bool, ordered: bool) -> dict[str, Any]:
        """What is filled in before the kernel is compiled."""
        mdp, A = self.mdp, self.mdp.n_actions
        given = self.replay is not None and self.replay.given
        cached = not (
            given or self.guided or self.has_terms or self.has_habit or self.has_optimism or s.policy == "softmax"
        )
        width = q_width(A) if cached else A
        small = mdp.n_states <= UNROLLED_STATES
        return {
            "STATES": mdp.n_states if small else 0,
            "ACTIONS": A,
            "Q_WIDTH": width,
            "Q_STEP": np.uint64(width),
            "SUCCESSORS": mdp.n_successors,
            "ALL_ACTIONS": np.uint64(2**A - 1),
            "LEARNED": s.learned,
            **{f"HAS_{name}": flag for name, flag in has.items()},
            "ORDERED": ordered and not small,
            "SPARSE": is_sparse,
            "ENDS": given or self.guided or self.cap > 0 or bool(mdp.terminal.any()),
            "RESAMPLE": s.next_action == "resample" and not (given and s.target == "sarsa"),
            "FIRST_TIE": s.ties == "first",
            "BONUS_FIRST": s.bonus_from == "previous",
            "MASKED": not all(maze.available.all() for maze in self.mazes),
            "MAZES": len(self.mazes) > 1,
            "REPLAYED": self.replay is not None,
            "GIVEN": given,
            "GUIDED": self.guided,
            "LIKELIHOOD": self.likelihood != "",
            "CHOICES": self.likelihood == "each",
            "SOFTMAX": s.policy == "softmax",
            "TERMS": self.has_terms,
            "HABIT": self.has_habit,
            "OPTIMISM": self.has_optimism,
            "BY_SR": s.count == "sr-column",
            "BY_PR": s.count == "pr-column",
            "STANDARDISED": s.standardised,
            "POTENTIAL": s.potential,
            "EXPECTED": s.target == "expected",
            "MAX": s.target == "max",
            "CACHED": cached,
            **FIXED,
        }

    def _tables(
        self, together: int, constants: dict[str, Any], sizes: dict[str, int], given: tuple[Any, ...] | None
    ) -> Tables:
        """Room for what a group of lanes learns; the matrices are given where they are not learned."""
        S = self.mdp.n_states
        pairs, paid, noted = (together * S * constants[name] for name in ("Q_WIDTH", "POTENTIAL", "HAS_EPISODE"))
        matrices = given or (*map(aligned_zeros, sizes.values()), aligned_zeros(4, together * (-(-S // 8) * 8) + 8))
        return Tables(
            Q=aligned_zeros(pairs),
            greedy=np.empty(together * S, np.uint8 if self.mdp.n_actions <= 8 else np.uint64),
            rank=np.empty(together * S if constants["ORDERED"] else 0, np.uint32),
            habit=np.empty(pairs if constants["HABIT"] else 0),
            tries=np.empty(
                pairs if constants["OPTIMISM"] else 0,
                np.uint32 if constants["BY_SR"] or constants["BY_PR"] else np.float64,
            ),
            preference=np.zeros(self.mdp.n_actions + 1),
            weight=np.zeros(self.mdp.n_actions),
            **dict(zip(("M", "F", "N", "sums"), matrices, strict=True)),
            moves=np.empty(paid // S * self.mdp.next.size),
            worth=np.empty((3, paid)),
            walk=np.empty((2, noted), np.int64),
        )

    def _records(self, part: slice) -> Records:
        """What a slice of lanes leaves, as the kernel writes it."""
        arrays = (self.visits, self.first_visit, self.episode_steps, self.steps, self.log_p, self.earned)
        actions, moments, ways = np.zeros(0, np.int32), np.zeros(0, MOMENT), np.zeros((0, 1))
        if self.guided or (self.replay is not None and self.replay.given):
            moments, _, _, ways, *_ = self.recording
        elif self.replay is not None:
            actions = self.replay.actions.astype(np.int32).reshape(-1)
        flat = [array[part].reshape(-1) for array in (*arrays, self.refused)]
        return Records._make([*flat, actions, moments, ways])

    @functools.cached_property
    def _dynamics(self) -> Dynamics:
        return dynamics(self.mazes)

    def _closed_forms(self, lanes: slice, has: dict[str, bool]) -> tuple[NDArray[np.float64], ...]:
        """M, N^T and the sums under the uniform random policy; each lane is told which are its own."""
        pairs = np.stack([self.lanes["gamma_sr"][lanes], self.lanes["gamma_pr"][lanes]], axis=1)
        distinct, self.lanes["table"][lanes] = np.unique(pairs, axis=0, return_inverse=True)
        return closed_forms(self.mdp, distinct, has)

    def _keep(self, lanes: slice, tables: Tables, has_matrices: bool) -> None:
        """Copy the final values that were asked for from where a group of lanes left them, then set M, F, N to 0."""
        S = self.mdp.n_states
        together = len(tables.greedy) // S
        matrices = {"M": tables.M, "F": tables.F, "N": tables.N} if has_matrices else {}
        for place, lane in enumerate(range(lanes.start, lanes.stop)):
            if "Q" in self.keep:
                values = tables.Q.reshape(together, S, -1)[place, :, : self.mdp.n_actions]
                self.finals["Q"][lane] = np.where(values > -np.inf, values, self.lanes["q0"][lane]).reshape(-1)
            (seen,) = np.nonzero(self.visits[lane])
            x = tables.rank[place * S + seen] if len(tables.rank) else seen
            for name, matrix in matrices.items():
                if name in self.keep:
                    final = self.finals[name][lane].reshape(S, S)
                    np.fill_diagonal(final, self.lanes["m0"][lane])  # for those never seen
                    values = matrix.reshape(together, S, -1)[place][np.ix_(x, x)]
                    final[np.ix_(seen, seen)] = values.T if name == "N" else values
        for matrix in matrices.values():
            matrix[:] = 0.0

    def kept(self, i: int, rows: slice) -> dict[str, Any]:
        found, s = super().kept(i, rows), self.settings[i]
        return found if s.learned else found | given_matrices(self.mdp, s, set(self.keep) - {"Q"}, len(self.seeds))
