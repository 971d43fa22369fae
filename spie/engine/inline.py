"""Helpers of a kernel put in the place of their calls, in its text.

Numba compiles every function that a kernel calls by itself, down to machine code that nobody runs, before it puts the
kernel together: more than half of the time of a compilation. A text without calls is compiled once. It means the same:
arguments are evaluated once, in their order, before the body, and the names of a body are its own.

These stay calls: of a function that returns from within a loop, or that is large and called from several places; and
where the place does not allow another thing, because it is not always reached (`x if y else f()`), or because the
function writes to arrays that other parts of the statement may have to read before.
"""

import ast
import copy
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

LARGE = 150  # nodes of a syntax tree
MODULES = {"np", "math"}
PURE = {"len", "min", "max", "abs", "range", "intrinsic_reward", "reward"}  # functions that write to no array

NOTHING, READS, WRITES = 0, 1, 2

Ending = Callable[[ast.expr | None], list[ast.stmt]]  # what stands in the place of `return value`


def inlined(texts: Sequence[str]) -> list[str]:
    """The last of these functions without calls of the others, and before it those that it calls nevertheless.

    What is called comes before what calls it.
    """
    functions = [_parsed(text) for text in texts]
    inliner = _Inliner(Counter(name for function in functions for name in _calls(function)))
    done = [inliner.function(function) for function in functions]
    result, names = [done[-1]], set(_calls(done[-1]))
    for function in reversed(done[:-1]):
        if function.name in names:
            result.append(function)
            names.update(_calls(function))
    return [ast.unparse(function) for function in reversed(result)]


@functools.lru_cache(maxsize=1000)
def called(text: str) -> frozenset[str]:
    """The names that a function calls."""
    return frozenset(_calls(_parsed(text)))


def _parsed(text: str) -> ast.FunctionDef:
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    return function


def _calls(node: ast.AST) -> Iterator[str]:
    """The names that are called, as often as they are."""
    return (n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))


class _Inliner:
    def __init__(self, calls: Counter[str]) -> None:
        self.calls = calls
        self.bodies: dict[str, ast.FunctionDef] = {}  # those that may stand in the place of their calls
        self.pure = set(PURE)
        self.numbers = itertools.count(1)

    def function(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """The function without calls of those before it; what comes after may be without calls of this one."""
        result = copy.copy(function)
        result.body = self.block(function.body)
        if self.effect(result) < WRITES:
            self.pure.add(result.name)
        is_small = self.calls[result.name] == 1 or sum(1 for _ in ast.walk(result)) < LARGE
        if is_small and _can_end(result.body):
            self.bodies[result.name] = result
        return result

    def effect(self, node: ast.AST) -> int:
        """NOTHING, or whether it READS arrays, or WRITES to them, or may."""
        effect = NOTHING
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute | ast.Subscript) and not _is_of_a_module(part):
                effect = max(effect, WRITES if isinstance(part.ctx, ast.Store) else READS)
            if isinstance(part, ast.Call) and not _is_of_a_module(part.func):
                is_pure = isinstance(part.func, ast.Name) and part.func.id in self.pure
                effect = max(effect, READS if is_pure else WRITES)
        return effect

    def block(self, statements: Iterable[ast.stmt]) -> list[ast.stmt]:
        result = [new for statement in statements for new in self.statement(statement)]
        return [one for one in result if not isinstance(one, ast.Pass)] or [ast.Pass()]

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        node: Any = copy.copy(statement)
        ending = _ending(node)
        if ending is not None and self.is_inlined(node.value):
            body = self.body(node.value, before, ending)
            return [*before, *body]
        if isinstance(node, ast.If | ast.For | ast.While):
            node.body, node.orelse = self.block(node.body), self.block(node.orelse) if node.orelse else []
        if isinstance(node, ast.Assign | ast.Expr | ast.Return) and node.value is not None:
            node.value = self.expression(node.value, before)
        elif isinstance(node, ast.AugAssign):
            node.value = self.expression(node.value, before, self.effect(node.target))
        elif isinstance(node, ast.If):
            node.test = self.expression(node.test, before)
        elif isinstance(node, ast.For):
            node.iter = self.expression(node.iter, before)
        return [*before, node]  # the test of a while is evaluated again and again: its calls stay

    def is_inlined(self, node: ast.AST | None) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.bodies

    def expression(self, node: Any, before: list[ast.stmt], earlier: int = NOTHING) -> Any:
        """The expression, with a name for each call whose body now stands `before` it.

        earlier: what the statement does before it evaluates this. A body must not pass a write, nor a write a read.
        """
        if self.is_inlined(node) and earlier + self.effect(node) <= WRITES:
            name = self.fresh(node.func.id)
            before += self.body(node, before, lambda value: [_assign(name, value)], earlier)
            return ast.Name(name, ast.Load())
        node = copy.copy(node)
        for field in _always_evaluated(node):
            part = getattr(node, field)
            new = []
            for one in part if isinstance(part, list) else [part]:
                new.append(self.expression(one, before, earlier))
                earlier = max(earlier, self.effect(new[-1]))
            setattr(node, field, new if isinstance(part, list) else new[0])
        return node

    def body(self, call: ast.Call, before: list[ast.stmt], ending: Ending, earlier: int = NOTHING) -> list[ast.stmt]:
        """The body of the function called, after its arguments have got their names `before` it."""
        assert isinstance(call.func, ast.Name)
        function = copy.deepcopy(self.bodies[call.func.id])
        given = dict(zip((argument.arg for argument in function.args.args), call.args, strict=False))
        given |= {keyword.arg or "": keyword.value for keyword in call.keywords}
        written = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names: dict[str, ast.expr] = {}
        for name, argument in given.items():
            value = self.expression(argument, before, earlier)
            if name in written or not isinstance(value, ast.Name | ast.Constant):
                own = self.fresh(name)
                before.append(_assign(own, value))
                value = ast.Name(own, ast.Load())
            names[name] = value
        for name in sorted(written - given.keys()):
            names[name] = ast.Name(self.fresh(name), ast.Load())
        renamed = _Rename(names)
        return _ended([renamed.visit(statement) for statement in function.body], ending)

    def fresh(self, name: str) -> str:
        return f"{name.partition('__')[0]}__{next(self.numbers)}"


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        new = self.names.get(node.id, node)
        return ast.Name(new.id, node.ctx) if isinstance(new, ast.Name) else new


def _assign(name: str, value: ast.expr | None) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value or ast.Constant(None), lineno=0)


def _ending(statement: ast.stmt) -> Ending | None:
    """What a statement that is nothing but a call does with its value; None for others."""
    match statement:
        case ast.Return():
            return lambda value: [ast.Return(value)]
        case ast.Expr():
            return lambda value: []
        case ast.Assign(targets=[ast.Name() as name]):
            return lambda value: [_assign(name.id, value)]
        case ast.Assign(targets=[ast.Tuple(elts=names)]) if all(isinstance(one, ast.Name) for one in names):
            return lambda value: _assign_all(statement, names, value)
    return None


def _assign_all(statement: ast.Assign, names: list[Any], value: ast.expr | None) -> list[ast.stmt]:
    """Several names at once; one after the other where that makes no difference."""
    assert value is not None
    if isinstance(value, ast.Tuple):
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if not read & {name.id for name in names}:
            return [_assign(name.id, one) for name, one in zip(names, value.elts, strict=True)]
    return [ast.Assign(statement.targets, value, lineno=0)]


def _can_end(statements: Sequence[ast.stmt]) -> bool:
    """Whether each `return` is the last thing that is done, outside of loops."""
    try:
        _ended(statements, lambda value: [])
    except _Returns:
        return False
    return True


class _Returns(Exception):
    """From a place that nothing else can end."""


def _ended(statements: Sequence[ast.stmt], ending: Ending) -> list[ast.stmt]:
    """Statements that do `ending` where they returned; what came after an `if` that returns is its `else`."""
    result: list[ast.stmt] = []
    for i, statement in enumerate(statements):
        if isinstance(statement, ast.Return):
            return result + ending(statement.value)
        if any(isinstance(node, ast.Return) for node in ast.walk(statement)):
            if not isinstance(statement, ast.If):
                raise _Returns
            rest = statements[i + 1 :]
            if _always_returns(statement.body):
                body, orelse = statement.body, [*statement.orelse, *rest]
            elif _always_returns(statement.orelse):
                body, orelse = [*statement.body, *rest], statement.orelse
            else:
                raise _Returns
            chosen = ast.If(statement.test, _ended(body, ending) or [ast.Pass()], _ended(orelse, ending))
            return [*result, chosen]
        result.append(statement)
    return result + ending(None)


def _always_returns(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_returns(last.body) and _always_returns(last.orelse)
    return isinstance(last, ast.Return)


def _always_evaluated(node: ast.AST) -> tuple[str, ...]:
    """The parts of an expression that are always evaluated, in their order."""
    match node:
        case ast.BinOp():
            return "left", "right"
        case ast.UnaryOp():
            return ("operand",)
        case ast.Compare(comparators=[_]):
            return "left", "comparators"
        case ast.Call():
            return "func", "args", "keywords"
        case ast.keyword() | ast.Attribute():
            return ("value",)
        case ast.Subscript():
            return "value", "slice"
        case ast.Tuple():
            return ("elts",)
        case ast.IfExp():
            return ("test",)
    return ()


def _is_of_a_module(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in MODULES
