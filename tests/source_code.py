"""The package as syntax trees, for tests of its shape."""

import ast
from pathlib import Path
from typing import NamedTuple

import spie

PACKAGE = Path(spie.__file__).parent


class Import(NamedTuple):
    """Which module imports what, and whether as soon as it is itself imported."""

    module: str
    name: str
    top: bool

    def __str__(self):
        return f"{self.module} imports {self.name}"


def trees(folder=PACKAGE):
    """{module: its syntax tree} of a package; a package's own code is named package.__init__."""
    paths = sorted(folder.rglob("*.py"))
    names = [".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in paths]
    return {name: ast.parse(path.read_text()) for name, path in zip(names, paths, strict=True)}


def imports(modules):
    """Every import of {module: tree}, those within functions too, but not those that only type checkers see.

    A module of the same package is named as in `modules`, whatever is imported from it; importing a module from
    outside of its package runs the package's own code first, so that this counts as an import too.
    """
    found = []
    for module, tree in modules.items():
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        inside = {node for function in functions for node in ast.walk(function)}
        unseen = {node for block in ast.walk(tree) if _for_types(block) for s in block.body for node in ast.walk(s)}
        for node in ast.walk(tree):
            for name in _imported(module, node) if node not in unseen else ():
                places = _places(module, name, modules) or [name]
                found += [Import(module, place, node not in inside) for place in places]
    return list(dict.fromkeys(found))


def _for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _imported(module, node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{module}: imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _places(module, name, modules):
    """The modules of ours that importing a name runs; none if the name is not ours."""
    parts = name.split(".")
    while parts and ".".join(parts) not in modules and ".".join([*parts, "__init__"]) not in modules:
        parts.pop()
    if not parts:
        return []
    whole = ".".join(parts)
    packages = [".".join(parts[:i]) for i in range(2, len(parts))]  # the root is being imported by everyone
    around = [f"{package}.__init__" for package in packages if not module.startswith(f"{package}.")]
    return [*around, whole if whole in modules else f"{whole}.__init__"]


def circles(edges):
    """The sets of modules that import each other, directly or through others; `edges` are pairs."""
    targets = {}
    for here, there in edges:
        targets.setdefault(here, set()).add(there)
    reached = {}
    for start in targets:
        seen, waiting = set(), [start]
        while waiting:
            new = targets.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        reached[start] = seen
    return {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in reached if a in reached[a]}
