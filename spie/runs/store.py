"""Where results are kept: one SQLite file, safe against kills, full disks and a second command at work on it."""

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 2
_SCHEMA = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,     -- hash of all that determines the result
    kind TEXT NOT NULL,      -- of the result: trace, episodes or scores
    spec TEXT NOT NULL,      -- JSON: agent, environment, settings, steps, seeds, ...
    versions TEXT NOT NULL,  -- JSON: of spie, its engine, Python and the libraries
    seconds REAL NOT NULL,   -- how long it took
    stored TEXT NOT NULL DEFAULT (datetime('now'))
) WITHOUT ROWID;
CREATE TABLE arrays (
    run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,     -- JSON
    data BLOB NOT NULL,      -- zlib over the array's bytes in C order
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE experiments (
    name TEXT PRIMARY KEY,
    seeds INTEGER NOT NULL   -- asked for last, shown by a report
) WITHOUT ROWID;
"""


class StoreError(OSError):
    """The results file cannot be used; the message says why and what to do."""


def default_path() -> Path:
    """$SPIE_RESULTS, else results.db in the current folder."""
    return Path(os.environ.get("SPIE_RESULTS") or "results.db")


class Store:
    """Results by run id. Each call is one short transaction, so a kill loses at most the run that was under way."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        with self._clear_errors():
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("PRAGMA foreign_keys = ON")
            with self._transaction():
                self._begin()

    def _begin(self) -> None:
        """Make the tables of a new file; refuse a file that is not ours or of another version."""
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            if self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise StoreError(f"{self.path} is a database, but not one of spie's; give another with --results")
            self._script(_SCHEMA)
        elif version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer spie (its version {version}, ours {VERSION}); update spie, "
                "or give another file with --results"
            )
        elif version < VERSION:
            again = f"spie run {' '.join(self.asked_for())}" if self.asked_for() else "the same commands"
            raise StoreError(
                f"{self.path} was written by spie 0.1.0, whose runs have other ids; "
                f"give another file with --results, or move this one away, and run again: {again}"
            )
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _script(self, text: str) -> None:
        for statement in text.split(";"):  # executescript would commit half-way
            if statement.strip():
                self._connection.execute(statement)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # SQLite may have rolled back itself, on a full disk
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            text = str(error)
            cure = "give another with --results"
            if "not a database" in text or "malformed" in text:
                raise StoreError(f"{self.path} is not a results file, or is damaged ({text}); {cure}") from error
            if "full" in text:
                raise StoreError(
                    f"{self.path}: the disk is full; what was stored is safe, free space and run again"
                ) from error
            if "unable to open" in text or "readonly" in text:
                raise StoreError(f"{self.path} cannot be written ({text}); {cure}") from error
            raise StoreError(f"{self.path}: {text}; {cure}") from error

    def __contains__(self, run_id: str) -> bool:
        with self._clear_errors():
            return self._connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone() is not None

    def save(
        self,
        run_id: str,
        kind: str,
        spec: Mapping[str, Any],
        versions: Mapping[str, str],
        seconds: float,
        arrays: Mapping[str, NDArray[Any]],
    ) -> None:
        """Store a run whole, or not at all. A run that is there already stays as it is."""
        rows = []
        for name, array in arrays.items():
            if array.dtype.hasobject:  # their bytes are addresses, which mean nothing later
                raise ValueError(f"{name} is an array of Python objects, which cannot be stored; store plain numbers")
            data = zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
            rows.append((run_id, name, array.dtype.str, json.dumps(array.shape), data))
        with self._clear_errors(), self._transaction():
            if self._connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                return
            self._connection.execute(
                "INSERT INTO runs (id, kind, spec, versions, seconds) VALUES (?, ?, ?, ?, ?)",
                (run_id, kind, json.dumps(spec, sort_keys=True), json.dumps(versions, sort_keys=True), seconds),
            )
            self._connection.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", rows)

    def load(self, run_id: str) -> tuple[str, dict[str, NDArray[Any]]]:
        """The kind and the arrays of a stored run."""
        with self._clear_errors():
            found = self._connection.execute("SELECT kind FROM runs WHERE id = ?", (run_id,)).fetchone()
            rows = self._connection.execute(
                "SELECT name, dtype, shape, data FROM arrays WHERE run = ?", (run_id,)
            ).fetchall()
        if found is None:
            raise KeyError(run_id)
        return found[0], {
            name: np.frombuffer(zlib.decompress(data), np.dtype(dtype)).reshape(json.loads(shape))
            for name, dtype, shape, data in rows
        }

    def info(self, run_id: str) -> dict[str, Any]:
        """What is known about a stored run: spec, versions, seconds, when."""
        with self._clear_errors():
            row = self._connection.execute(
                "SELECT spec, versions, seconds, stored FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
        if row is None:
            raise KeyError(run_id)
        return {"spec": json.loads(row[0]), "versions": json.loads(row[1]), "seconds": row[2], "stored": row[3]}

    def ask_for(self, experiment: str, seeds: int) -> None:
        """Note that an experiment is wanted, and with how many seeds."""
        with self._clear_errors(), self._transaction():
            self._connection.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?)", (experiment, seeds))

    def asked_for(self) -> dict[str, int]:
        """The experiments wanted, and with how many seeds."""
        with self._clear_errors():
            return dict(self._connection.execute("SELECT name, seeds FROM experiments").fetchall())

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
