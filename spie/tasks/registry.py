"""Tasks by name: what `spie list`, `show`, `sweep`, `train`, `spie.task` and Gymnasium's ids all read.

To add a task, decorate a function that returns it:

    @spie.register_task("corridor")
    def corridor(length: int = 10) -> spie.MDP: ...
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym

from spie.errors import is_among, is_name, unknown
from spie.registry import Registry
from spie.tasks.base import Kind, Task

KINDS: tuple[Kind, ...] = ("table", "continuous", "images")
Make = TypeVar("Make", bound=Callable[..., Task])


@dataclass(frozen=True)
class Entry:
    """A task by name."""

    name: str
    kind: Kind
    make: Callable[..., Task]  # its keyword arguments are the task's options
    gymnasium: str = ""  # "RiverSwim" is known to Gymnasium as spie/RiverSwim-v0; empty: not at all
    max_steps: int | None = None  # where Gymnasium truncates an episode

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the task."""
        return tuple(inspect.signature(self.make).parameters)


# A name may stand for a task of several kinds: cluster-hard is a grid world, and images of it.
TASKS: dict[Kind, Registry[Entry]] = {
    "table": Registry("MDP"),
    "continuous": Registry("continuous task"),
    "images": Registry("image task"),
}
# Names that cannot be listed: deep-sea-N, the file of a map, any Gymnasium id. An entry, or None for "not mine".
PATTERNS: dict[Kind, list[Callable[[str], Entry | None]]] = {kind: [] for kind in KINDS}


def register_task(
    name: str, kind: Kind = "table", *, gymnasium: str = "", max_steps: int | None = None
) -> Callable[[Make], Make]:
    """Decorator that makes a function known as the task `name`; its keyword arguments are the task's options.

    gymnasium: "Corridor" makes it known to gymnasium.make as spie/Corridor-v0 as well, truncated after `max_steps`.

    name: for every command and `spie.task`. kind: what the function returns. Raises ValueError where a name is taken.

    >>> @spie.register_task("two-cells")
    ... def two_cells(bumps: bool = True):
    ...     return spie.grid("S.\\n", bumps=bumps)
    >>> spie.task("two-cells", bumps=False).n_states
    2
    """

    def register(make: Make) -> Make:
        entry = Entry(name, kind, make, gymnasium, max_steps)
        TASKS[kind].add(name, entry)
        if gymnasium:
            _register_id(entry)
        return make

    return register


def find(name: str, kind: Kind | None = None) -> Entry:
    """The entry of a task by name, of a kind if one is given; else of the first kind that knows the name."""
    if kind is not None and not is_among(kind, KINDS):
        raise unknown("kind of task", kind, KINDS)
    kinds = KINDS if kind is None else (kind,)
    if not is_name(name):
        raise unknown("task, map or file", name, names(kind))
    for one in kinds:
        if name in TASKS[one]:
            return TASKS[one].get(name)
    for one in kinds:
        for pattern in PATTERNS[one]:
            if (entry := pattern(name)) is not None:
                return entry
    known = [name for one in kinds for name in TASKS[one].names()]
    if name.isprintable() and Path(name).is_dir():
        raise ValueError(f"{name} is a folder; give the text file of a map")
    raise unknown("task, map or file" if kind is None else f"task of kind {kind}", name, known)


def task(name: str, kind: Kind | None = None, **options: Any) -> Any:
    """The task known as `name`: `spie.task("riverswim")`, `spie.task("four-rooms", kind="images", max_steps=100)`.

    name: of `spie list`; a map as text or the path of a file that holds one; deep-sea-N; a Gymnasium id with images.
    kind: "table", "continuous" or "images", where a name stands for several; by default in that order.

    options: keyword arguments of the task. Raises ValueError for names and options that are not there.

    >>> spie.task("t-maze", arm=2).n_states
    10
    """
    entry = find(name, kind)
    for option in options:
        if option not in entry.options and "options" not in entry.options:
            raise unknown(f"option of {name}", option, entry.options)
    made = entry.make(**options)
    if not isinstance(made, Task):
        raise ValueError(f'task "{name}" gives {type(made).__name__}, which is no Task: it needs kind, name and digest')
    return made


def names(kind: Kind | None = None) -> list[str]:
    """The names of tasks, of one kind or of all, each once."""
    return list(dict.fromkeys(name for one in (KINDS if kind is None else (kind,)) for name in TASKS[one].names()))


def _register_id(entry: Entry) -> None:
    """Make a task known to gymnasium.make; further arguments there are options of the task."""
    if (name := f"spie/{entry.gymnasium}-v0") not in gym.registry:
        arguments = {"name": entry.name, "kind": entry.kind}
        gym.register(name, entry_point=f"{__name__}:make_env", kwargs=arguments, max_episode_steps=entry.max_steps)


def make_env(
    name: str, kind: Kind, render_mode: str | None = None, max_steps: int | None = None, **options: Any
) -> gym.Env[Any, Any]:
    """A task by name as a Gymnasium environment."""
    made: Any = find(name, kind).make(**options)
    env: gym.Env[Any, Any] = made.env(render_mode, max_steps)
    return env


make_env.metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # type: ignore[attr-defined]
