"""What each piece of cleverness in the engine gains: `make bench` prints it, `python benchmarks/cleverness.py` alone.

Each piece is taken out by itself, its kernels compiled again, and run in turn with the engine as it is. A piece of
vector code that gains less than 1.03 on every task is not worth its lines.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from bench import ONE_THREAD, TASKS, race, table

import spie
from spie.agents.linear_q import batch as linear
from spie.agents.sarsa import batch as sarsa
from spie.engine.specialise import specialise

Piece = Callable[[], Any]  # a context in which it is not there


def plainly(batch: Any, *names: str) -> Any:
    """Without the vector code of these names: loops in its place (plain_vectors.py)."""
    kept = {module: tuple(n for n in some if n not in names) for module, some in batch.VECTOR_CODE.items()}
    return patch.object(batch, "VECTOR_CODE", kept | {"plain_vectors": names})


def without_constant(**constants: Any) -> Any:
    """With other constants filled in."""
    given = sarsa.Batch._constants
    return patch.object(sarsa.Batch, "_constants", lambda *args, **more: given(*args, **more) | constants)


@contextmanager
def counting_references() -> Iterator[None]:
    counted = lambda *args, **options: specialise(*args, **options | {"allocates": True})  # noqa: E731
    with patch.object(sarsa, "specialise", counted), patch.object(linear, "specialise", counted):
        yield


CHAINS, FIELDS = ("RiverSwim", "SixArms"), ("OF-small", "OF-large")
LINEAR = ("linear none", "linear sf", "linear sf-pf")
PIECES: dict[str, tuple[Piece, tuple[str, ...]]] = {  # how it is taken out, and which tasks it concerns
    "row updates in vectors": (lambda: plainly(sarsa, "update_row", "update_row_and_sums"), CHAINS + FIELDS),
    "argmax of 5 to 8 actions in vectors": (lambda: plainly(sarsa, "largest", "not_below"), ("SixArms",)),
    "lanes in turn": (lambda: patch.object(sarsa, "group_size", lambda n_states: 1), (*CHAINS, "OF-small")),
    "states in the order of discovery": (lambda: without_constant(ORDERED=False), FIELDS),
    "loops over states of a constant length": (lambda: without_constant(STATES=0), CHAINS),
    "no references counted": (counting_references, CHAINS + FIELDS + LINEAR),
    "matrix products in vectors": (lambda: plainly(linear, "product"), LINEAR[1:]),
    "dot in vectors": (lambda: plainly(linear, "dot"), LINEAR),
    "norms in vectors": (lambda: plainly(linear, "norm_1"), LINEAR[1:]),
    "y += c x in vectors": (lambda: plainly(linear, "add_scaled"), LINEAR),
    "copies in vectors": (lambda: plainly(linear, "copy"), LINEAR),
    "cosines in vectors": (lambda: plainly(linear, "cosines"), LINEAR),
}


def run_of(task: str) -> Callable[[], Any]:
    """A task as something to time."""
    if task in TASKS:
        return TASKS[task].run()
    agent = spie.LinearQ(reward=task.removeprefix("linear "))
    return partial(agent.run, spie.mountain_car(), 300, 1, episodes=20, session=ONE_THREAD)


def within(piece: Piece, run: Callable[[], Any]) -> Callable[[], None]:
    """A run without a piece."""

    def call() -> None:
        with piece():
            run()

    return call


def gains(pieces: Mapping[str, tuple[Piece, tuple[str, ...]]], rounds: int = 15) -> dict[tuple[str, str], float]:
    """Time without a piece over time with it, by piece and task."""
    found = {}
    for task in (*TASKS, *LINEAR):
        concerned = {name: piece for name, (piece, tasks) in pieces.items() if task in tasks}
        run = run_of(task)
        times = race({"as it is": run} | {name: within(piece, run) for name, piece in concerned.items()}, rounds)
        found |= {(name, task): times[name][0] / times["as it is"][0] for name in concerned}
    return found


def show() -> None:
    found, tasks = gains(PIECES), (*TASKS, *LINEAR)
    rows = [(name, *(f"{found[name, t]:.2f}" if (name, t) in found else "" for t in tasks)) for name in PIECES]
    table("What each piece of cleverness gains: time without it over time with it", ("piece", *tasks), *rows)


if __name__ == "__main__":
    show()
