"""From a kernel written as a plain function to compiled code, specialised and kept on disk.

An agent writes its loop once, as an ordinary function whose names in capitals are constants. For each use,
`specialise` writes a module with the constants filled in, the branches that they rule out left out, and the intrinsic
reward beside the loop, and has Numba compile that. So a run pays only for what its reward asks for, and so does its
compilation. The module's name is a hash of its whole text, so the next process finds the compiled code and starts at
once.
"""

import ast
import functools
import hashlib
import importlib.util
import inspect
import linecache
import math
import os
import sys
import tempfile
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spie.files import write_whole
from spie.rewards import QUANTITIES, Reward

_HEADER = """\
# Written by spie, to be compiled by Numba. Deleting this folder is safe: it is made again.
import math
import numpy as np
from numba import njit
"""
# No Python code and no C code calls these, so the ways in need not be compiled.
# Numba counts references to arrays with atomic operations, also whenever one is taken out of a tuple. The caller holds
# all arrays, so a kernel that makes none of its own does without; a user's functions may make some.
_INNER = "@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt={counted})"


def cache_folder() -> Path:
    """Where compiled kernels are kept: $SPIE_CACHE, else the user's cache folder, else a temporary one.

    It holds code that is run, Numba's pickles among it: it is private, and one that others can write to is refused.
    """
    home = os.environ.get("SPIE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spie"
    folder = Path(home) / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _keep_private(folder)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="spie-kernels-"))


def _keep_private(folder: Path) -> None:
    """Let nobody else into a folder of code; ValueError where somebody else may have been."""
    if os.name != "posix":  # elsewhere a user's folders are the user's
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        whose = "belongs to another user" if status.st_uid != os.getuid() else "can be written to by others"
        raise ValueError(f"{folder} {whose}, and code is kept there; remove it, or set SPIE_CACHE to a folder of yours")
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def specialise(
    kernel: Callable[..., Any],
    helpers: Iterable[Callable[..., Any]],
    constants: Mapping[str, Any],
    imports: Mapping[str, Iterable[str]],
    reward: Reward,
    quantities: Sequence[str] = QUANTITIES,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    allocates: bool = False,
) -> Callable[..., Any]:
    """Compile `kernel` and its `helpers` with these constants; they call the reward as `intrinsic_reward(*quantities)`.

    `imports` names, by module, what compiled code of ours the kernel uses; `functions` are further functions that may
    be a user's, by the names under which the kernel calls them; `allocates` says whether the kernel makes arrays.
    """
    lines = [_HEADER]
    for module, names in imports.items():
        text = inspect.getsource(importlib.import_module(module)).encode()
        lines.append(f"from {module} import {', '.join(names)}  # {hashlib.sha256(text).hexdigest()}\n")
    # Unsigned words keep their type and so their names: Numba turns mixed signs into floats
    words = {name: value for name, value in constants.items() if isinstance(value, np.uint64)}
    lines += [f"{name} = np.uint64({value})\n" for name, value in words.items()]
    filled_in = tuple((name, value) for name, value in constants.items() if name not in words)
    called = f"def intrinsic_reward({', '.join(quantities)}):\n    return reward({', '.join(reward.needs)})"
    given = {}
    for name, function in {"reward": reward.function, **(functions or {})}.items():
        what = f'reward "{reward.name}"' if name == "reward" else f"{name} function {function.__name__}"
        try:
            lines.append(_standing_alone(function, name, what))
        except _NoSource:  # typed at a prompt: compiled anew in each process
            given[name] = function
    inner = _INNER.format(counted=allocates)
    lines += [f"{inner}\n{text}\n" for text in (called, *(_specialised(helper, filled_in) for helper in helpers))]
    cached = "" if given else "cache=True, "
    lines.append(f'@njit({cached}nogil=True, no_cfunc_wrapper=True, error_model="numpy", _nrt={allocates})')
    lines.append(_specialised(kernel, filled_in))
    compiled = getattr(_load("\n".join(lines), tuple(given.items())), kernel.__name__)
    return _with_clear_errors(compiled, f'reward "{reward.name}"' + "".join(f", {name}" for name in functions or ()))


@functools.lru_cache(maxsize=1000)
def _specialised(function: Callable[..., Any], constants: tuple[tuple[str, Any], ...]) -> str:
    """The function's text with constants filled in, without the branches that they rule out."""
    own_names = function.__code__.co_varnames
    filled_in = _FillIn({name: value for name, value in constants if name not in own_names})
    return ast.unparse(filled_in.visit(_bare(ast.parse(_own_text(function)).body[0])))


def _own_text(function: Callable[..., Any]) -> str:
    """The text of a function of a kernel; `inspect` would read its file anew for each of them."""
    found = _texts(function.__code__.co_filename).get(function.__code__.co_firstlineno)
    return textwrap.dedent(inspect.getsource(function)) if found is None else found


@functools.cache
def _texts(file: str) -> dict[int, str]:
    """The functions at the top of a file, by their first lines."""
    lines = linecache.getlines(file)
    functions = [node for node in ast.parse("".join(lines)).body if isinstance(node, ast.FunctionDef)]
    first = [min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) for node in functions]
    return {i: "".join(lines[i - 1 : node.end_lineno]) for i, node in zip(first, functions, strict=True)}


class _FillIn(ast.NodeTransformer):
    """Numba would find the dead branches too, but has read and analysed them by then: a fifth of its time."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self.constants[node.id]) if node.id in self.constants else node

    def _evaluated(self, node: Any) -> ast.expr:
        self.generic_visit(node)
        operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, *node.comparators]
        known = all(isinstance(operand, ast.Constant) for operand in operands)
        return ast.Constant(eval(ast.unparse(node))) if known else node

    visit_UnaryOp = visit_Compare = _evaluated

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        while len(node.values) > 1 and isinstance(first := node.values[0], ast.Constant):
            if bool(first.value) == isinstance(node.op, ast.Or):
                return first
            del node.values[0]
        return node.values[0] if len(node.values) == 1 else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        ends = [i for i, statement in enumerate(node.body) if isinstance(statement, ast.Return)]
        del node.body[ends[0] + 1 if ends else len(node.body) :]  # never reached
        return node

    def _chosen(self, node: Any) -> Any:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse or ast.Pass()
        return node

    visit_If = visit_IfExp = _chosen


@functools.cache
def _load(text: str, given: tuple[tuple[str, Callable[..., Any]], ...]) -> types.ModuleType:
    name = "spie_kernel_" + hashlib.sha256(text.encode()).hexdigest()[:32]
    if given:
        import numba

        njit: Any = numba.njit
        module = types.ModuleType(name)
        module.__dict__.update({key: njit(_nrt=True)(function) for key, function in given})
        exec(compile(text, name, "exec"), module.__dict__)
        return module
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        write_whole(path, text)  # another process may be writing the same file
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba looks the module up when it loads compiled code
    spec.loader.exec_module(module)
    return module


def _with_clear_errors(compiled: Any, what: str) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def call(*args: Any) -> Any:
        from numba.core.errors import NumbaError, UnsupportedBytecodeError

        try:
            return compiled(*args)
        except (NumbaError, UnsupportedBytecodeError, AttributeError) as error:
            lines = [line.strip() for line in str(error).splitlines()]
            causes = [line for line in lines if line and not line.startswith("Failed in nopython mode")]
            cause = " ".join(causes[: 2 if causes[0].endswith(":") else 1])
            raise ValueError(f"{what} cannot be compiled: {cause}") from error

    return call


class _NoSource(Exception):
    """The text of a function cannot be had: it was typed at a prompt or is a lambda."""


@functools.cache
def _source(function: Callable[..., Any]) -> str:
    """The function's text without decorators, annotations, docstring and comments."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError, TypeError) as error:
        raise _NoSource from error
    if not isinstance(tree, ast.FunctionDef) or tree.name != function.__name__:
        raise _NoSource
    return ast.unparse(_bare(tree))


def _bare(function: Any) -> ast.FunctionDef:
    """A function's tree without decorators, annotations and docstring."""
    function.decorator_list = []
    function.returns = None
    for argument in function.args.args + function.args.kwonlyargs:
        argument.annotation = None
    if ast.get_docstring(function) is not None:
        function.body = function.body[1:] or [ast.Pass()]
    bare: ast.FunctionDef = function
    return bare


def _standing_alone(function: Callable[..., Any], name: str, what: str) -> str:
    """The function, called `name`, and all that it uses, as text that stands for itself and so can be hashed.

    It stands inside a function, so that a user's `HALF` or `mix` is not the kernel's.
    """
    lines: list[str] = []
    seen: dict[str, Any] = {}

    def add(function: Callable[..., Any], name: str) -> None:
        text = _source(function)
        used = inspect.getclosurevars(function)
        for key, value in sorted({**used.globals, **used.nonlocals}.items()):
            if key in seen:
                if seen[key] is not value:
                    raise _NoSource  # two files use one name for two things: leave it to Numba
                continue
            seen[key] = value
            if isinstance(value, bool | int | float):
                lines.append(f"{key} = {value!r}\n")
            elif value is math or value is np:
                lines.append(f"import {value.__name__} as {key}\n")
            elif isinstance(value, np.ufunc) or getattr(value, "__module__", None) == "math":
                lines.append(
                    f"from {'numpy' if isinstance(value, np.ufunc) else 'math'} import {value.__name__} as {key}\n"
                )
            elif isinstance(value, types.FunctionType):
                add(value, key)
            else:
                raise ValueError(
                    f"{what} uses {key}, a {type(value).__name__}: it may use numbers, math, numpy and functions of "
                    "your own"
                )
        tree = ast.parse(text).body[0]
        assert isinstance(tree, ast.FunctionDef)
        tree.name = name
        lines.append(f"{_INNER.format(counted=True)}\n{ast.unparse(tree)}\n")

    add(function, name)
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def own_names():\n{body}\n    return {name}\n\n\n{name} = own_names()\n"
