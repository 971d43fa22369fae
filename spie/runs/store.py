"""Where results are kept: one SQLite file, safe against kills, full disks and a second command at work on it.

Every row carries a hash of its content. What does not fit its hash is never handed out: it is a `StoreError` that names
the run, and `spie repair` removes such runs, so that the same command as before runs them again.
"""

import functools
import json
import math
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.engine.lanes import machine_memory
from spie.files import content_hash

VERSION = 5
APPLICATION = int.from_bytes(b"SPIE")  # in the header of the file: SQLite's application_id
_HEADER = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY,     -- hash of all that determines the result
    kind TEXT NOT NULL,      -- of the result: trace, episodes or scores
    spec TEXT NOT NULL,      -- JSON: agent, environment, settings, steps, seeds, ...
    versions TEXT NOT NULL,  -- JSON: of spie, its engine, Python and the libraries
    seconds REAL NOT NULL,   -- how long it took
    cpu_seconds REAL,        -- how long processors worked on it, NULL where nobody measured
    stored TEXT NOT NULL,    -- when, UTC
    hash BLOB NOT NULL       -- SHA-256 of this row and of the hashes of its arrays
) WITHOUT ROWID;
CREATE TABLE arrays (
    run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    dtype TEXT NOT NULL,
    shape TEXT NOT NULL,     -- JSON
    hash BLOB NOT NULL,      -- SHA-256 of all other columns, before the data so that it is read without them
    data BLOB NOT NULL,      -- zlib over the array's bytes in C order
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE experiments (
    name TEXT PRIMARY KEY,
    seeds INTEGER NOT NULL,  -- asked for last, shown by a report
    hash BLOB NOT NULL       -- SHA-256 of this row, or in the row without a name of the whole list
) WITHOUT ROWID;
"""
_RUN = "SELECT id, kind, spec, versions, seconds, cpu_seconds, stored, hash FROM runs WHERE id = ?1"
# A run and its arrays by name at once, which is faster than one after the other.
_WHOLE = f"""
{_RUN.replace("SELECT", "SELECT 0,")} UNION ALL
SELECT 1, run, name, dtype, shape, hash, data, NULL, NULL FROM arrays WHERE run = ?1 ORDER BY 1, 3
"""
TABLES = ("arrays", "experiments", "runs")


class StoreError(OSError):
    """The results file cannot be used; the message says why and what to do."""


def default_path() -> Path:
    """$SPIE_RESULTS, else results.db in the current folder."""
    return Path(os.environ.get("SPIE_RESULTS") or "results.db")


@functools.lru_cache(1024)
def _layout(dtype: str, shape: str) -> tuple[np.dtype[Any], list[int], int]:
    """What a row says about its array: type, shape and bytes."""
    kind, sizes = np.dtype(dtype), json.loads(shape)
    if kind.hasobject or not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
        raise ValueError(f"no array is {dtype} {shape}")
    n_bytes = math.prod(sizes) * kind.itemsize
    if n_bytes > machine_memory():
        raise ValueError(f"an array of {n_bytes:,} bytes is more than this machine has")
    return kind, sizes, n_bytes


def unpack(dtype: str, shape: str, data: bytes) -> NDArray[Any]:
    """An array out of its row; ValueError, TypeError or zlib.error where the three do not fit each other."""
    kind, sizes, n_bytes = _layout(dtype, shape)
    inflate = zlib.decompressobj()
    content = inflate.decompress(data, n_bytes + 1)  # never more than declared, whatever the data would become
    if len(content) != n_bytes or not inflate.eof or inflate.unused_data:
        raise ValueError(f"the data are not {dtype} {shape}")
    return np.frombuffer(content, kind).reshape(sizes)


class Store:
    """Results by run id. Each call is one short transaction, so a kill loses at most the run that was under way."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else default_path()
        with self._clear_errors():
            self._refuse_foreign()
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
            try:
                self._refuse_version(self._pragma("user_version"))
                if not self._pragma("page_count"):
                    self._connection.execute(
                        f"PRAGMA application_id = {APPLICATION}"
                    )  # first: then it is known as ours
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA foreign_keys = ON")
                with self._transaction():
                    self._begin()
            except BaseException:
                self._connection.close()
                raise

    def _pragma(self, name: str) -> int:
        value: int = self._connection.execute(f"PRAGMA {name}").fetchone()[0]
        return value

    def _refuse_foreign(self) -> None:
        """Refuse a file that is not ours before anything is written to it."""
        if not self.path.is_file() or not self.path.stat().st_size:
            return
        with self.path.open("rb") as file:
            header = file.read(100)
        if not header.startswith(_HEADER):
            raise sqlite3.DatabaseError("file is not a database")
        if int.from_bytes(header[68:72]) == APPLICATION:
            return
        # Before version 3 ours had no application_id: its tables tell. Nothing waits in a log that is not there.
        unchanged = "mode=ro" if self.path.with_name(f"{self.path.name}-wal").exists() else "immutable=1"
        with closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?{unchanged}", uri=True)) as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if (version or names) and not (version and names >= {*TABLES}):
            raise StoreError(f"{self.path} is a database, but not one of spie's; give another with --results")

    def _refuse_version(self, version: int) -> None:
        if version > VERSION:
            raise StoreError(
                f"{self.path} was written by a newer spie (its version {version}, ours {VERSION}); update spie, "
                "or give another file with --results"
            )
        if version == 1:
            asked = [name for (name,) in self._connection.execute("SELECT name FROM experiments")]
            again = f"spie run {' '.join(asked)}" if asked else "the same commands"
            raise StoreError(
                f"{self.path} was written by spie 0.1.0, whose runs have other ids; "
                f"give another file with --results, or move this one away, and run again: {again}"
            )

    def _begin(self) -> None:
        """Make the tables of a new file; give those of older ones the hashes that they lack."""
        version = self._pragma("user_version")
        if version == VERSION:
            return
        if version in (2, 3):
            for table in TABLES:
                self._connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
        if version != 4:
            self._script(_SCHEMA)
        if version in (2, 3):
            self._copy_old("NULL" if version == 2 else "cpu_seconds")
        if not self._connection.execute("SELECT 1 FROM experiments WHERE name = ''").fetchone():
            self._seal()
        self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
        self._connection.execute(f"PRAGMA user_version = {VERSION}")

    def _copy_old(self, cpu_seconds: str) -> None:
        """Take over the rows of the renamed tables; cpu_seconds: where that stands in them."""
        columns = f"id, kind, spec, versions, seconds, {cpu_seconds}, stored"
        rows = self._connection.execute(f"SELECT {columns} FROM old_runs")
        for row in rows.fetchall():
            found = self._connection.execute("SELECT name, dtype, shape, data FROM old_arrays WHERE run = ?", row[:1])
            self._insert(row, [(row[0], *array) for array in found.fetchall()])
        for noted in self._connection.execute("SELECT name, seeds FROM old_experiments").fetchall():
            self._note(*noted)
        for table in TABLES:
            self._connection.execute(f"DROP TABLE old_{table}")

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
        except (sqlite3.Error, UnicodeDecodeError) as error:
            text = "".join(c if c.isprintable() else " " for c in str(error))  # it may quote what is in the file
            cure = "give another with --results"
            if "not a database" in text or "malformed" in text or isinstance(error, UnicodeDecodeError):
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
        cpu_seconds: float | None = None,
        stored: str | None = None,
    ) -> None:
        """Store a run whole, or not at all. A run that is there already stays as it is.

        stored: when it was stored first, where it comes from another store.
        """
        rows = []
        for name, array in arrays.items():
            if array.dtype.hasobject:  # their bytes are addresses, which mean nothing later
                raise ValueError(f"{name} is an array of Python objects, which cannot be stored; store plain numbers")
            data = zlib.compress(np.ascontiguousarray(array).tobytes(), 1)
            rows.append((run_id, name, array.dtype.str, json.dumps(array.shape), data))
        texts = (json.dumps(spec, sort_keys=True), json.dumps(versions, sort_keys=True))
        times = (float(seconds), cpu_seconds, stored or datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"))
        with self._clear_errors(), self._transaction():
            if not self._connection.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone():
                self._insert((run_id, kind, *texts, *times), rows)

    def _insert(self, row: tuple[Any, ...], arrays: list[tuple[Any, ...]]) -> None:
        """A run and its arrays, (run, name, dtype, shape, data) each, with the hashes of all."""
        hashed = [(*array[:4], content_hash(array[:4], array[4]), array[4]) for array in sorted(arrays)]
        whole = content_hash(map(repr, row), b"".join(array[4] for array in hashed))
        self._connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, whole))
        self._connection.executemany("INSERT INTO arrays VALUES (?, ?, ?, ?, ?, ?)", hashed)

    def _checked(self, run_id: str, row: Sequence[Any] | None, hashes: Iterable[bytes]) -> Sequence[Any]:
        """The row of a run, which fits its hash; hashes: of its arrays."""
        if row is None:
            raise KeyError(run_id)
        try:
            whole = content_hash(map(repr, row[:-1]), b"".join(hashes))
        except TypeError:  # what stands for a hash is a number or a text
            whole = b""
        if whole != row[-1]:
            raise self.damaged(run_id)
        return row

    def damaged(self, run_id: str) -> StoreError:
        """What is raised about a run that cannot be what was stored."""
        name = f" --results {self.path}" if self.path != default_path() else ""
        return StoreError(
            f"{self.path}: the stored run {run_id} is damaged; remove it with spie repair{name}, "
            "then run the same command as before, which runs it again"
        )

    def load(self, run_id: str) -> tuple[str, dict[str, NDArray[Any]]]:
        """The kind and the arrays of a stored run."""
        with self._clear_errors():
            found = self._connection.execute(_WHOLE, (run_id,)).fetchall()
        row = found.pop(0)[1:] if found and not found[0][0] else None
        kind = self._checked(run_id, row, [array[5] for array in found])[1]
        arrays = {}
        for _, run, name, dtype, shape, whole, data, _, _ in found:
            try:
                if content_hash((run, name, dtype, shape), data) != whole:
                    raise ValueError(f"{name} does not fit its hash")
                arrays[name] = unpack(dtype, shape, data)
            except (ValueError, TypeError, MemoryError, RecursionError, zlib.error) as error:
                raise self.damaged(run_id) from error
        return kind, arrays

    def info(self, run_id: str) -> dict[str, Any]:
        """What is known about a stored run: spec, versions, seconds, seconds of processors, when."""
        with self._clear_errors():
            hashes = self._connection.execute("SELECT hash FROM arrays WHERE run = ? ORDER BY name", (run_id,))
            row = self._connection.execute(_RUN, (run_id,)).fetchone()
            found = [found for (found,) in hashes]
        _, _, spec, versions, seconds, cpu_seconds, stored, _ = self._checked(run_id, row, found)
        times = {"seconds": seconds, "cpu_seconds": cpu_seconds, "stored": stored}
        return {"spec": json.loads(spec), "versions": json.loads(versions)} | times

    def ask_for(self, experiment: str, seeds: int) -> None:
        """Note that an experiment is wanted, and with how many seeds."""
        with self._clear_errors(), self._transaction():
            self.asked_for()  # a list that has lost something is not made to look whole
            self._note(experiment, seeds)
            self._seal()

    def _note(self, experiment: str, seeds: int) -> None:
        row = (experiment, seeds, content_hash((repr(experiment), repr(seeds))))
        self._connection.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?, ?)", row)

    def _seal(self) -> None:
        """Write the row that stands for the whole list of experiments, so that no other can go unnoticed."""
        rows = self._connection.execute("SELECT hash FROM experiments WHERE name != '' ORDER BY name").fetchall()
        row = ("", len(rows), content_hash((), b"".join(found for (found,) in rows)))
        self._connection.execute("INSERT OR REPLACE INTO experiments VALUES (?, ?, ?)", row)

    def asked_for(self) -> dict[str, int]:
        """The experiments wanted, and with how many seeds."""
        rows, whole = self._listed()
        if not whole:
            name = f" --results {self.path}" if self.path != default_path() else ""
            raise StoreError(f"{self.path}: the list of experiments is damaged; mend it with spie repair{name}")
        return {name: seeds for name, seeds, _ in rows}

    def _listed(self) -> tuple[list[tuple[str, int, bytes]], bool]:
        """The rows of the list of experiments that fit their hashes, and whether these are all."""
        with self._clear_errors():
            found = self._connection.execute("SELECT name, seeds, hash FROM experiments ORDER BY name").fetchall()
        rows = [row for row in found if row[0] != "" and content_hash(map(repr, row[:2])) == row[2]]
        seal = ("", len(rows), content_hash((), b"".join(row[2] for row in rows)))
        return rows, found == [seal, *rows]

    def repair(self) -> tuple[int, list[str], bool]:
        """Remove what does not fit its hash.

        Returns how many runs are sound, the ids of those removed, and whether the list of experiments was whole.
        """
        with self._clear_errors():
            ids = [run_id for (run_id,) in self._connection.execute("SELECT id FROM runs").fetchall()]
            damaged = [run_id for run_id in ids if not self._sound(run_id)]
            listed, whole = self._listed()
            with self._transaction():
                for run_id in damaged:
                    self._connection.execute("DELETE FROM runs WHERE id = ?", (run_id,))
                if not whole:
                    self._connection.execute("DELETE FROM experiments")
                    self._connection.executemany("INSERT INTO experiments VALUES (?, ?, ?)", listed)
                    self._seal()
        return len(ids) - len(damaged), list(map(str, damaged)), whole

    def _sound(self, run_id: str) -> bool:
        try:
            self.load(run_id)
        except (StoreError, KeyError):
            return False
        return True

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
