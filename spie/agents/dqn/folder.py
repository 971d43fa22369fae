"""The folder of a training run: what it says of itself, and that one process at a time works in it.

run.json       task, settings, steps, seed: all that determines the run
monitor.csv    one line per episode: reward, length, step; it has no clock, so a resumed run writes the same bytes
checkpoints/   the last two (checkpoint.py)
frames/        the replay's frames, which checkpoints share
tensorboard/   the curves
"""

import dataclasses
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spie.agents.dqn.settings import VERSION, DQNSettings
from spie.files import json_hash, write_whole
from spie.tasks import registry
from spie.tasks.base import ImageTask

FORMAT = 2  # of run.json and of what checkpoints hold; 0.1.0 wrote no number


@dataclass(frozen=True)
class FolderSpec:
    """What run.json holds: all that determines the run."""

    task: str  # its name, for people
    digest: str
    recipe: tuple[str, dict[str, Any]] | None  # how `spie.task` makes it again; None: it must be given again
    settings: DQNSettings
    steps: int
    seed: int
    threads: int
    version: int = VERSION  # of the agent

    @classmethod
    def of(
        cls, settings: DQNSettings, task: ImageTask, steps: int, seed: int, threads: int, recipe: Any = None
    ) -> "FolderSpec":
        return cls(task.name, task.digest, recipe or task.recipe, settings, steps, seed, threads)


def check_new(folder: Path) -> None:
    """A folder for a new run must be new, or empty but for what a run writes that was killed before it began."""
    if not folder.exists():
        return
    if not folder.is_dir() or any(not path.name.startswith(".") for path in folder.iterdir()):
        if (folder / "run.json").exists():
            raise ValueError(f"{folder} holds a run already; go on with spie resume {folder}, or give another --out")
        raise ValueError(f"{folder} exists and is not a run of spie; give another --out")


def write_run(folder: Path, spec: FolderSpec) -> None:
    values = {"format": FORMAT} | dataclasses.asdict(spec)
    write_whole(folder / "run.json", json.dumps(values | {"sha256": json_hash(values)}, indent=1))


def read_run(folder: Path) -> FolderSpec:
    """What run.json says; ValueError, in one line, where there is none, or none that can be used."""
    path = folder / "run.json"
    refuse_links(folder)
    try:
        run = json.loads(path.read_bytes())
        _check_format(folder, run)
        check_hash(run, {"format", *(field.name for field in dataclasses.fields(FolderSpec))})
        kinds = {"task": str, "digest": str, "recipe": list | None, "settings": dict, "steps": int, "seed": int}
        for name, kind in (kinds | {"threads": int}).items():
            if not isinstance(run[name], kind):
                raise ValueError(f"{name} is {run[name]!r}")
        recipe = None if run["recipe"] is None else (str(run["recipe"][0]), dict(run["recipe"][1]))
        found = {name: run[name] for name in ("task", "digest", "steps", "seed", "threads")}
        version = int(run.get("version", 3))  # the last that did not write it
        return FolderSpec(recipe=recipe, settings=DQNSettings(**run["settings"]), version=version, **found)
    except FileNotFoundError as error:
        raise ValueError(f"{folder} is not a run of spie: it has no run.json; start one with spie train") from error
    except _OtherFormat as error:
        raise ValueError(str(error)) from None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read ({error}); start the run again with spie train") from error


def refuse_links(folder: Path) -> None:
    """A folder from elsewhere may not lead out of itself: what is written to or removed lies in it."""
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(root, name)
            status = path.lstat()
            plain = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
            if not plain and not path.is_mount():
                raise ValueError(f"{path} is a link, or no plain file; a run's folder may hold none, so remove it")


def check_hash(values: dict[str, Any], usual: set[str]) -> None:
    """ValueError where values do not fit the "sha256" among them; usual: what older files, without it, may have."""
    values = dict(values)
    found = values.pop("sha256", None)
    if not values.keys() <= usual if found is None else json_hash(values) != found:
        raise ValueError("it is damaged: it does not fit its hash")


def check_version(folder: Path, spec: FolderSpec) -> None:
    """Refuse to go on with a run of another version of the agent: half of it would be of the one, half of the other."""
    if spec.version != VERSION:
        older = " (before equation 15 was mended)" if spec.version < 4 else ""
        line = f"{folder} was made by version {spec.version} of the deep agent{older}, ours is {VERSION}"
        raise ValueError(f"{line}; it cannot go on: start again with spie train and another --out")


class _OtherFormat(Exception):
    """Another version of spie wrote it."""


def _check_format(folder: Path, run: Any) -> None:
    found = run.get("format")
    if found is None and "env" in run:  # 0.1.0
        what = "" if run["env"] is None else f" {run['env']} --steps {run.get('steps')} --seed {run.get('seed')}"
        raise _OtherFormat(f"{folder} is of spie 0.1.0, whose runs cannot go on; run again: spie train{what} --out NEW")
    if found != FORMAT:
        raise _OtherFormat(f"{folder} was written by a newer spie (format {found}, ours is {FORMAT}); update spie")


def task_of(spec: FolderSpec, folder: Path, given: ImageTask | None = None) -> ImageTask:
    """The task of a run: the one that is given, or made again; ValueError where it is not the one it was."""
    if given is None and spec.recipe is None:
        raise ValueError(f"{folder} was run on a task of your own; give it again: run the agent with this folder")
    if given is None:
        assert spec.recipe is not None
        name, options = spec.recipe
        given = registry.task(name, "images", **options)
    if given.digest != spec.digest:
        name = spec.task if spec.recipe is None or "\n" in spec.recipe[0] else spec.recipe[0]
        raise ValueError(f"{name} has changed since {folder} began; bring it back, or start again with spie train")
    return given


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Nobody else trains in this folder meanwhile; a process that is killed holds it no longer."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        yield
        return
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"{folder} is being trained by another process; wait for it, or stop it") from error
        yield
