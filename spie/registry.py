"""Things known by name: tasks, agents, intrinsic rewards, experiments and deep bonuses, ours and those of plug-ins.

A package adds to them through the entry point group `spie.plugins`; each entry names a module, which registers what it
has when it is imported:

    [project.entry-points."spie.plugins"]
    my-lab = "my_lab.spie_plugin"

Plug-ins are loaded when a name is looked up that is not ours, or when names are listed: `import spie` loads none. One
that fails adds nothing, is named in one line on the error output, and everything else works.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from spie.errors import is_name, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

CONTRACT = 1  # raised when Task or Agent ask for more than before; a plug-in may say SPIE_CONTRACT = n
GROUP = "spie.plugins"

Value = TypeVar("Value")
_REGISTRIES: list["Registry[object]"] = []
_loaded = False
_loading: str | None = None  # the plug-in that is being imported
problems: list[str] = []  # a line for each plug-in that could not be used


class Registry(Generic[Value]):
    """Values by name, in the order in which they were added.

    load_own: adds our own; called once, before anything is added or looked up.
    """

    def __init__(self, kind: str, load_own: Callable[[], None] | None = None) -> None:
        self.kind = kind  # for messages: "agent", "task", ...
        self._load_own = load_own
        self._values: dict[str, Value] = {}
        self._owners: dict[str, str | None] = {}  # the plug-in that added a name; None: spie itself, or the user
        _REGISTRIES.append(self)  # type: ignore[arg-type]

    def add(self, name: str, value: Value, *, again: bool = False) -> None:
        """Make `value` known as `name`. again: a name of the same owner may be defined again, as in notebooks."""
        self._fill()
        if name in self._values and not (again and self._owners[name] == _loading):
            owner = self._owners[name]
            whose = "a built-in" if owner is None else f"plug-in {owner}'s"
            raise ValueError(f'"{name}" is {whose} {self.kind}; give yours another name')
        self._values[name] = value
        self._owners[name] = _loading

    def _fill(self) -> None:
        """Have our own added first, and as ours, even where a plug-in is what asks for it."""
        global _loading
        if self._load_own is None:
            return
        load_own, self._load_own, by, _loading = self._load_own, None, _loading, None
        try:
            load_own()
        finally:
            _loading = by

    def get(self, name: str) -> Value:
        """The value known as `name`; ValueError, with the nearest known name, where there is none."""
        self._fill()
        if not is_name(name) or name not in self:
            raise unknown(self.kind, name, self._values)
        return self._values[name]

    def names(self) -> tuple[str, ...]:
        """All names, those of plug-ins included."""
        self._fill()
        load_plugins()
        return tuple(self._values)

    def owner(self, name: str) -> str | None:
        """The plug-in that a name comes from; None for spie itself, and for what this process defined."""
        return self._owners[name]

    def items(self) -> Iterator[tuple[str, Value]]:
        self._fill()
        load_plugins()
        return iter(list(self._values.items()))

    @contextmanager
    def restored(self) -> Iterator[None]:
        """What is added within the block is forgotten at its end; what plug-ins offer is not."""
        self._fill()
        load_plugins()
        values, owners = self._values.copy(), self._owners.copy()
        try:
            yield
        finally:
            self._values, self._owners = values, owners

    def __contains__(self, name: str) -> bool:
        self._fill()
        if not is_name(name):
            return False
        if name not in self._values:
            load_plugins()
        return name in self._values


def load_plugins() -> None:
    """Import what installed packages offer under `spie.plugins`, once in a process."""
    global _loaded
    if _loaded:
        return
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    _loaded = True  # first, so that a look-up within a plug-in does not begin again
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        _load(entry)


def _load(entry: "EntryPoint") -> None:
    global _loading
    _loading = entry.name
    try:
        module = entry.load()
        contract = vars(module).get("SPIE_CONTRACT", CONTRACT)
        if contract > CONTRACT:
            raise ValueError(f"it is made for contract {contract} of spie, this spie has {CONTRACT}; update spie")
    except (Exception, SystemExit) as error:  # whatever somebody else's module does
        for registry in _REGISTRIES:  # all that it added; nothing else can it have changed
            for name in [name for name, owner in registry._owners.items() if owner == entry.name]:
                del registry._values[name], registry._owners[name]
        why = str(error).partition("\n")[0] or type(error).__name__
        problems.append(f"plug-in {entry.name} ({entry.value}) is left out: {why}")
        print(f"spie: {problems[-1]}", file=sys.stderr)
    finally:
        _loading = None
