"""Files that are written whole or not at all, whatever is killed, fails or fills the disk meanwhile; and their hashes.

At the bottom of the package, because compiled kernels, checkpoints, bonuses, tables and pages are all written so.
"""

import contextlib
import csv
import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO

FORMULA = tuple("=+-@\t\r")  # with these a spreadsheet begins to compute


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` once the block has ended well; else `path` stays as it was.

        with replacing("trace.npz") as file:
            np.savez(file, **arrays)

    It has another name in the same folder until then, so that a wrong path is noticed before the work in the block.
    """
    with replacing_path(path, ".tmp") as unfinished, unfinished.open("xb") as file:
        yield file
        to_disk(file)


@contextlib.contextmanager
def replacing_path(path: str | os.PathLike[str], suffix: str) -> Iterator[Path]:
    """The same for writers that want a name, which ends in `suffix`, rather than a file; they bring it to the disk."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{suffix}")  # one for each writer, on any machine
    try:
        yield unfinished
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(path.parent)


def to_disk(file: IO[Any]) -> None:
    """Have on the disk what was written to a file."""
    file.flush()
    os.fsync(file.fileno())


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write bytes, or text as UTF-8 with its line ends as they are; a file that was there is replaced."""
    with replacing(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk: a new name may else be lost with the power."""
    with contextlib.suppress(OSError):  # where folders cannot be opened, as on Windows, names need no such care
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def content_hash(texts: Iterable[str], data: bytes = b"") -> bytes:
    """SHA-256 of some texts and of the bytes that follow them; TypeError where they are none."""
    return hashlib.sha256("\0".join(texts).encode() + b"\0" + data).digest()


def json_hash(values: Any) -> str:
    """SHA-256 of plain values, however a file lays them out."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def csv_text(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as a CSV file holds them. A text that a spreadsheet would compute is marked as a text by a quote."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([_no_formula(cell) for cell in row] for row in rows)
    return out.getvalue()


def _no_formula(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULA and not _is_number(cell) else cell


def cell_text(cell: str) -> str:
    """A cell as it was before `csv_text` marked it."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in FORMULA else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
