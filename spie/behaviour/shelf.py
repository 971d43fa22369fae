"""Finished parts of a long analysis, kept in a folder, so that one that was killed goes on where it was."""

import hashlib
import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spie.errors import told
from spie.files import write_whole

Arrays = Mapping[str, NDArray[Any]]


class Shelf:
    """Arrays by what determines them, as JSON files with a hash; without a folder nothing is kept."""

    def __init__(self, folder: Any = None) -> None:
        if folder is not None and not isinstance(folder, str | PathLike):
            raise ValueError(f"folder must be a path, not {told(folder)}")
        self.folder = None if folder is None else Path(folder)

    def has(self, key: Mapping[str, Any]) -> bool:
        return self.folder is not None and self._read(self._path(key)) is not None

    def kept(self, key: Mapping[str, Any], make: Callable[[], Arrays]) -> Arrays:
        """What `make` gives, or gave before for the same key."""
        if self.folder is None:
            return make()
        path = self._path(key)
        found = self._read(path)
        if found is not None:
            return found
        arrays = make()
        text = json.dumps({name: np.asarray(array).tolist() for name, array in arrays.items()})
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"hash": hashlib.sha256(text.encode()).hexdigest(), "arrays": text}))
        return self._read(path) or arrays  # what is read next time is what is used now

    def _path(self, key: Mapping[str, Any]) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]}.json"

    @staticmethod
    def _read(path: Path) -> Arrays | None:
        try:
            kept = json.loads(path.read_text())
            if hashlib.sha256(kept["arrays"].encode()).hexdigest() != kept["hash"]:
                return None
            return {name: np.array(values, np.float64) for name, values in json.loads(kept["arrays"]).items()}
        except (OSError, ValueError, KeyError, TypeError):
            return None  # none, or damaged: it is made again
