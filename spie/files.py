"""Files that are written whole or not at all, whatever is killed, fails or fills the disk meanwhile; and their hashes.

At the bottom of the package, because compiled kernels, checkpoints, bonuses, tables and pages are all written so.
"""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` once the block has ended well; else `path` stays as it was.

        with replacing("trace.npz") as file:
            np.savez(file, **arrays)

    It has another name in the same folder until then, so that a wrong path is noticed before the work in the block.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")  # one for each writer, on any machine
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(path.parent)


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
