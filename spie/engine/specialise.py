"""From a kernel written as a plain function to compiled code, specialised and kept on disk.

An agent writes its loop once, as an ordinary function whose names in capitals are constants. For each use,
`specialise` writes a module with the constants filled in, the branches that they rule out left out, the helpers put in
the place of their calls, and the intrinsic reward beside the loop, and has Numba compile that. So a run pays only for
what its reward asks for, and so does its compilation. The module's name is a hash of all that makes its text, so the
next process finds the compiled code and starts at once.
"""

import ast
import functools
import gc
import hashlib
import importlib.util
import inspect
import linecache
import math
import os
import sys
import tempfile
import textwrap
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from spie.engine import inline
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


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Numba makes many objects and keeps them: to look for garbage among them is an eighth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_no_garbage_collection()
def specialise(
    kernel: Callable[..., Any],
    helpers: Iterable[Callable[..., Any]],
    constants: Mapping[str, Any],
    imports: Mapping[str, Iterable[str]],
    reward: Reward,
    quantities: Sequence[str] = QUANTITIES,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    allocates: bool = False,
) -> "Kernel":
    """Compile `kernel` and its `helpers` with these constants; they call the reward as `intrinsic_reward(*quantities)`.

    `imports` names, by module, what compiled code of ours the kernel uses; `functions` are further functions that may
    be a user's, by the names under which the kernel calls them; `allocates` says whether the kernel makes arrays.
    """
    used = (f"from {module} import {', '.join(imports[module])}  # {_hash_of(module)}\n" for module in imports)
    lines = [_HEADER, *used]
    # Unsigned words keep their type and so their names: Numba turns mixed signs into floats
    words = {name: value for name, value in constants.items() if isinstance(value, np.uint64)}
    lines += [f"{name} = np.uint64({value})\n" for name, value in words.items()]
    filled_in = tuple((name, value) for name, value in constants.items() if name not in words)
    called = f"def intrinsic_reward({', '.join(quantities)}):\n    return reward({', '.join(reward.needs)})"
    given: dict[str, Callable[..., Any]] = {}
    written: dict[str, Callable[..., Any]] = {}
    for name, function in {"reward": reward.function, **(functions or {})}.items():
        what = f'reward "{reward.name}"' if name == "reward" else f"{name} function {function.__name__}"
        try:
            block, parts = _standing_alone(function, name, what)
            lines.append(block)
            written |= parts
        except _NoSource:  # typed at a prompt: compiled again in each process
            given[name] = function
    texts = called, *_needed_texts(kernel, tuple(helpers), filled_in)
    loaded = _load("\n".join(lines), texts, allocates, tuple(given.items()))
    compiled = getattr(loaded, kernel.__name__)
    code = reward.function.__code__
    own = "" if reward.built_in else f" of {code.co_filename}, line {code.co_firstlineno}"
    what = f'reward "{reward.name}"' + "".join(f", {name}" for name in functions or ())
    files = {function.__code__.co_filename for function in given.values()}
    return Kernel(compiled, _with_clear_errors(compiled, what, written, files), what + own)


@functools.cache
def _hash_of(module: str) -> str:
    return hashlib.sha256(inspect.getsource(importlib.import_module(module)).encode()).hexdigest()


@functools.lru_cache(maxsize=1000)
def _needed_texts(
    kernel: Callable[..., Any], helpers: tuple[Callable[..., Any], ...], constants: tuple[tuple[str, Any], ...]
) -> tuple[str, ...]:
    """The texts of those helpers that are called once the constants are filled in, and of the kernel."""
    texts = [_specialised(kernel, constants)]
    names = inline.called(texts[0])
    for helper in reversed(helpers):
        if helper.__name__ in names:
            texts.append(_specialised(helper, constants))
            names |= inline.called(texts[-1])
    return tuple(texts[::-1])


def _specialised(function: Callable[..., Any], constants: tuple[tuple[str, Any], ...]) -> str:
    """The function's text with constants filled in, without the branches that they rule out."""
    own_names = function.__code__.co_varnames
    filled_in = _FillIn({name: value for name, value in constants if name not in own_names})
    return ast.unparse(filled_in.visit(_bare(ast.parse(_own_text(function)).body[0])))


def _own_text(function: Callable[..., Any]) -> str:
    """The text of a function of a kernel; `inspect` would read its file again for each of them."""
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
    """Constants for their names. Numba would find the dead branches too, but has read and analysed them by then."""

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
def _load(
    head: str, texts: tuple[str, ...], allocates: bool, given: tuple[tuple[str, Callable[..., Any]], ...]
) -> types.ModuleType:
    """The module of a head and these functions, the last of which is the kernel; `given` functions have no text."""
    outer = f'@njit({"" if given else "cache=True, "}nogil=True, no_cfunc_wrapper=True, error_model="numpy", '
    decorators = _INNER.format(counted=allocates), f"{outer}_nrt={allocates})"
    whole = "\n".join((head, *texts, *decorators, _inliner()))
    name = "spie_kernel_" + hashlib.sha256(whole.encode()).hexdigest()[:32]
    if given:
        import numba

        njit: Any = numba.njit
        module = types.ModuleType(name)
        module.__dict__.update({key: njit(_nrt=True)(function) for key, function in given})
        exec(compile(_module_text(head, texts, *decorators), name, "exec"), module.__dict__)
        return module
    path = cache_folder() / f"{name}.py"
    if not path.exists():
        text = _module_text(head, texts, *decorators)
        with _one_at_a_time(path.parent):
            if not path.exists():  # else another process was sooner: a new file would outdate what it compiles
                write_whole(path, text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Numba looks the module up when it loads compiled code
    spec.loader.exec_module(module)
    return module


@functools.cache
def _inliner() -> str:
    return inspect.getsource(inline)


def _module_text(head: str, texts: Sequence[str], inner: str, outer: str) -> str:
    *helpers, kernel = inline.inlined(texts)
    return "\n".join([head, *(f"{inner}\n{text}\n" for text in helpers), outer, kernel])


@contextmanager
def _one_at_a_time(path: str | Path) -> Iterator[None]:
    """Have other processes wait that want to do the same with a file or folder: they then find what this one leaves."""
    descriptor = -1
    with suppress(ImportError, OSError):  # no such locks here, or no file: a function that was typed at a prompt
        import fcntl

        descriptor = os.open(path, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed, or the process ends
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


_WATCHING: list[Callable[[str], None]] = []


@contextmanager
def watching(tell: Callable[[str], None]) -> Iterator[None]:
    """Within, tell what a kernel is for, such as 'reward "sr-r"', before it is compiled; one found on disk is not."""
    _WATCHING.append(tell)
    try:
        yield
    finally:
        _WATCHING.remove(tell)


def _tell_of(path: Path, what: str) -> None:
    """Tell those who watch, unless Numba has left what it compiled beside the kernel's text."""
    if _WATCHING and not any((path.parent / "__pycache__").glob(f"{path.stem}.*.nbi")):
        for tell in _WATCHING:
            tell(what)


_UNDER_WAY: list[str] = []  # what compiled code is called for at this moment, once for each thread


def under_way() -> list[str]:
    """What compiled code is at work for in this process: it cannot be interrupted, so one may want to know."""
    return sorted({*_UNDER_WAY})


class Kernel:
    """Compiled code, or code that is compiled when it is first called; while it is at work, `under_way` says so."""

    def __init__(self, compiled: Any, call: Callable[..., Any], what: str) -> None:
        self.name: str = compiled.py_func.__module__  # a hash of all that makes its text
        self._compiled, self._call, self._what = compiled, call, what

    def __call__(self, *args: Any) -> Any:
        _UNDER_WAY.append(self._what)
        try:
            return self._call(*args)
        finally:
            _UNDER_WAY.remove(self._what)

    @property
    def is_compiled(self) -> bool:
        """Whether it is there already, in this process or on disk."""
        return bool(self._compiled.overloads) or any((cache_folder() / "__pycache__").glob(f"{self.name}.*.nbi"))


def _with_clear_errors(
    compiled: Any, what: str, written: Mapping[str, Callable[..., Any]], files: set[str]
) -> Callable[..., Any]:
    """The compiled kernel; whatever users' functions do in it is one line.

    written: the functions whose text is in the kernel's file, by that text; files: of those that have none there.
    """

    @functools.wraps(compiled)
    def call(*args: Any) -> Any:
        from numba.core.errors import NumbaError, UnsupportedBytecodeError

        try:
            if not compiled.overloads:
                # Compile it, or load what another process has compiled
                file = compiled.py_func.__code__.co_filename
                with _one_at_a_time(file), _no_garbage_collection():
                    _tell_of(Path(file), what)
                    compiled.compile(tuple(map(compiled.typeof_pyval, args)))
            return compiled(*args)
        except (NumbaError, UnsupportedBytecodeError, AttributeError) as error:
            lines = [line.strip() for line in str(error).splitlines()]
            causes = [line for line in lines if line and not line.startswith("Failed in nopython mode")]
            cause = " ".join(causes[: 2 if causes[0].endswith(":") else 1])
            raise ValueError(f"{what} cannot be compiled: {cause}") from error
        except Exception as error:  # of compiled code only users' functions raise any
            place = _place(error, compiled.py_func.__code__.co_filename, written, files)
            if not place:
                raise
            cause = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
            raise ValueError(f"{what} failed: {place}, {cause}") from error

    return call


def _place(error: BaseException, kernel: str, written: Mapping[str, Callable[..., Any]], files: set[str]) -> str:
    """The file and line of a user's function that raised an error in the file of a kernel; empty if none did."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    if frame.f_code.co_filename in files:
        return f"{frame.f_code.co_filename}, line {line}"
    if frame.f_code.co_filename != kernel:
        return ""
    for made in ast.walk(ast.parse(Path(kernel).read_text(encoding="utf-8"))):
        if isinstance(made, ast.FunctionDef) and made.lineno <= line <= (made.end_lineno or 0):
            function = written.get(ast.unparse(_bare(made)))
            if function is not None:
                text, first = inspect.getsourcelines(function)
                own = _bare(ast.parse(textwrap.dedent("".join(text))).body[0])
                pairs = zip(ast.walk(made), ast.walk(own), strict=True)  # the same statements on other lines
                lines = [o.lineno for m, o in pairs if isinstance(m, ast.stmt) and m.lineno == line]  # type: ignore[attr-defined]
                return f"{inspect.getsourcefile(function)}, line {first + lines[-1] - 1}"
    return ""


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


@functools.lru_cache(maxsize=1000)
def _named(text: str, name: str) -> str:
    """The text of a function under another name."""
    tree = ast.parse(text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    tree.name = name
    return ast.unparse(tree)


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


def _standing_alone(function: Callable[..., Any], name: str, what: str) -> tuple[str, dict[str, Callable[..., Any]]]:
    """The function, called `name`, and all that it uses, as text that stands for itself and so can be hashed.

    It stands inside a function, so that a user's `HALF` or `mix` is not the kernel's. Returned with it: of each
    function's text in there, whose it is.
    """
    lines: list[str] = []
    written: dict[str, Callable[..., Any]] = {}
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
        text = _named(text, name)
        written[text] = function
        lines.append(f"{_INNER.format(counted=True)}\n{text}\n")

    add(function, name)
    body = textwrap.indent("\n".join(lines), "    ")
    return f"def own_names():\n{body}\n    return {name}\n\n\n{name} = own_names()\n", written
