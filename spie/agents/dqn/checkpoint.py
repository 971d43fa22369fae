"""Checkpoints: one folder each, written aside and renamed, the last two kept. No pickle anywhere.

    step-000000012000/
      manifest.json         plain values, and file, size and hash of everything below
      weights.safetensors   networks and optimiser
      0.npy, 1.npy, ...     arrays, by the names that the manifest gives
    frames/                 the replay's frames, in append-only segments which checkpoints share

Reading trusts nothing: a name that leads elsewhere, a hash that differs, a file that is too short, an array that asks
for pickle, a version that is not ours all raise `CheckpointError` with one line.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.agents.dqn.folder import check_hash
from spie.files import json_hash, sync_folder, to_disk

FORMAT = 1
KEPT = 2
_NAME = re.compile(r"step-(\d{12})")
_FILE = re.compile(r"weights\.safetensors|\d+\.npy")


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message says why."""


class NewerError(CheckpointError):
    """It is not damaged, but a newer spie wrote it."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, apart from the replay's frames."""

    weights: dict[str, NDArray[Any]]
    arrays: dict[str, NDArray[Any]]
    values: dict[str, Any]


def checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, newest first."""
    return sorted((path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)), reverse=True)


def save(folder: Path, step: int, checkpoint: Checkpoint, frames: Path) -> Path:
    """Write a checkpoint, then let go of those before the last two, and of the segments in `frames` that none needs."""
    from safetensors.numpy import save as to_safetensors

    aside, path = folder / ".new", folder / f"step-{step:012}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    weights = to_safetensors({name: np.asarray(array, order="C") for name, array in checkpoint.weights.items()})
    files = {"weights.safetensors": _write(aside / "weights.safetensors", weights)}
    names = {}
    for i, (name, array) in enumerate(checkpoint.arrays.items()):
        with open(aside / f"{i}.npy", "xb") as file:
            np.save(file, array, allow_pickle=False)
            to_disk(file)
        names[f"{i}.npy"] = name
        files[f"{i}.npy"] = _describe(aside / f"{i}.npy")
    manifest = {"format": FORMAT, "files": files, "arrays": names, "values": checkpoint.values}
    _write(aside / "manifest.json", json.dumps(manifest | {"sha256": json_hash(manifest)}).encode())
    sync_folder(aside)
    if path.exists():  # the same step once more, after a resume
        shutil.rmtree(path)
    aside.rename(path)
    sync_folder(folder)
    for old in checkpoints(folder)[KEPT:]:
        shutil.rmtree(old)
    needed = [named for kept in checkpoints(folder) for named in _segments(kept)]
    if needed:
        for segment in frames.glob("*.u8"):
            if segment.name < min(needed):  # later ones may be in use already
                segment.unlink()
    return path


def load(path: Path) -> Checkpoint:
    """Read a checkpoint and check all of it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as from_safetensors

    manifest = read_manifest(path)
    try:
        files, names = manifest["files"], manifest["arrays"]
        for name, described in files.items():
            if not _FILE.fullmatch(name) or (path / name).is_symlink():
                raise CheckpointError(f"{path} names a file of another kind: {name!r}")
            if not (path / name).is_file() or _describe(path / name) != described:
                raise CheckpointError(f"{path} is damaged: {name} is missing or not what was written")
        weights = from_safetensors((path / "weights.safetensors").read_bytes())
        arrays = {
            name: np.array(np.load(path / file, mmap_mode="r" if (path / file).stat().st_size > 4096 else None))
            for file, name in names.items()
            if file in files
        }
        return Checkpoint(weights, arrays, dict(manifest["values"]))
    except CheckpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OSError, EOFError, MemoryError, SafetensorError) as error:
        raise CheckpointError(f"{path} cannot be read ({str(error) or type(error).__name__})") from error


def discard(path: Path) -> None:
    """Remove a checkpoint that cannot be used."""
    shutil.rmtree(path, ignore_errors=True)


def read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / "manifest.json").read_bytes())
        version = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: its manifest cannot be read") from error
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        kind = "a newer spie" if newer else "something else than spie"
        line = f"{path} was written by {kind} (format {version!r}, ours is {FORMAT}); update spie"
        raise NewerError(line) if newer else CheckpointError(line)
    try:
        check_hash(manifest, {"format", "files", "arrays", "values"})
    except (ValueError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged: its manifest does not fit its hash") from error
    return dict(manifest)


def _segments(path: Path) -> Sequence[str]:
    """The frame segments that a checkpoint needs; none where it cannot be read."""
    try:
        return [named["file"] for lane in read_manifest(path)["values"]["segments"] for named in lane]
    except (CheckpointError, KeyError, TypeError):
        return []


def _write(path: Path, data: bytes) -> dict[str, Any]:
    with open(path, "wb") as file:
        file.write(data)
        to_disk(file)
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _describe(path: Path) -> dict[str, Any]:
    with open(path, "rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
