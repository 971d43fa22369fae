"""The folder of a run on a worker that shares no disk with the command: file by file, it is kept on the command's side.

command's machine                                  worker's machine
results.db-runs/ID/  <- KeptFolders  <- (Ray) <-  Mirror(folder)
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PAUSE = 30.0  # seconds between two copies, at least
PATIENCE = 20.0  # and as many times as long as one takes

Call = Callable[..., Any]  # call("names", run_id): a method of KeptFolders by its name, wherever that is


class KeptFolders:
    """Folders of runs, beside the store."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def names(self, run_id: str) -> list[str]:
        """The files of a run that are kept."""
        return sorted(_listing(self._root / run_id))

    def fetch(self, run_id: str, name: str) -> bytes:
        return (self._root / run_id / name).read_bytes()

    def put(self, run_id: str, name: str, data: bytes) -> None:
        """A file that belongs to the next `commit`."""
        path = self._root / run_id / ".incoming" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def commit(self, run_id: str, there: list[str]) -> None:
        """Bring in what was put, then let go of all that is not there any more.

        In this order, so that a kill in between leaves at worst a checkpoint that does not fit its hash, and the one
        before it.
        """
        folder = self._root / run_id
        for path in [path for path in (folder / ".incoming").rglob("*") if path.is_file()]:
            place = folder / path.relative_to(folder / ".incoming")
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
        shutil.rmtree(folder / ".incoming", ignore_errors=True)
        for name in _listing(folder).keys() - set(there):
            (folder / name).unlink()
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_dir() and not any(path.iterdir()):
                path.rmdir()


class Mirror:
    """A worker's folder of a run, begun with what is kept of it, and sent now and then."""

    def __init__(self, folder: Path, run_id: str, call: Call) -> None:
        self.folder, self._run_id, self._call = folder, run_id, call
        for name in call("names", run_id):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(call("fetch", run_id, name))
        self._sent = _listing(folder)
        self._last, self._took = time.monotonic(), 0.0

    def send_now_and_then(self) -> None:
        """Send what has changed; called between two steps of the run, when no file is half written."""
        began = time.monotonic()
        if began - self._last < max(PAUSE, PATIENCE * self._took):
            return
        now = _listing(self.folder)
        if now != self._sent:
            for name in sorted(name for name, state in now.items() if self._sent.get(name) != state):
                self._call("put", self._run_id, name, (self.folder / name).read_bytes())
            self._call("commit", self._run_id, sorted(now))
            self._sent = now
        self._last = time.monotonic()
        self._took = self._last - began


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a folder by its name in it; what begins with a dot is of the moment."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            state = path.stat()
            found[name.as_posix()] = (state.st_size, state.st_mtime_ns)
    return found
