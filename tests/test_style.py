"""What keeps the package readable: short pieces, one name a thing, contracts instead of questions, plain words."""

import ast
import re
from collections import Counter

import pytest

from source_code import PACKAGE, trees

MODULES = trees()
MOST_LINES = {"function": 60, "module": 450}
TOO_LONG: set[str] = set()  # exceptions, each with its reason
ALLOWED_QUESTIONS = {  # newer Typers bring a Click of their own, so that no class of errors is common to all versions
    "spie.cli.__init__": "hasattr(error, 'format_message')",
}
# Words that only we would use, and the field's own.
DIALECT = {
    r"\bone settings\b": "settings",
    r"\bcut[- ]off\b": "truncated",
    r"\bso many\b": "n, that many",
    r"\bof late\b": "recent",
    r"\bthe last share\b": "say what it is",
    r"\beach settings\b": "each set of settings",
    r"\banew\b": "again",
    r"\b(steps|rewards?|returns?) an episode\b": "per episode",
    r"\b(ns|us|microseconds|nanoseconds|rms) a step\b": "per step",
    r"\b(steps|frames|updates) a second\b": "per second",
    r"\b(one|one number|one value|row|seeds) a (seed|run|lane|step|trial)\b": "per seed, per run, per lane, per step",
    r"\bmoves are sure\b": "deterministic",
}
PROJECT = PACKAGE.parent
TEXTS = sorted(
    [
        *PACKAGE.rglob("*.py"),
        *PACKAGE.rglob("*.html"),
        *(path for folder in ("benchmarks", "examples", "tests") for path in (PROJECT / folder).rglob("*.py")),
        *(PROJECT / "docs").glob("*.md"),
        *PROJECT.glob("[A-Z]*.md"),
    ]
)
SELF = PROJECT / "tests" / "test_style.py"


def assert_none(found, what="found"):
    lines = sorted(found)
    assert not lines, "\n".join([f"{what}:", *lines])


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def lines(node):
    return node.end_lineno - node.lineno + 1 - examples(ast.get_docstring(node))


def examples(docstring):
    """How many lines of a docstring are an example, which makes nothing harder to read."""
    return len(docstring[docstring.index(">>>") :].splitlines()) + 1 if ">>>" in (docstring or "") else 0


def module_lines(text):
    shown = (ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))
    inside = sum(examples(ast.get_docstring(function)) for function in functions(ast.parse(text)))
    return text.count("\n") - sum(map(examples, shown)) - inside


def asks(tree):
    """What asks an object what it is: hasattr, and getattr of a fixed name or with a default."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [
        ast.unparse(call)
        for call in calls
        if call.func.id == "hasattr"
        or (call.func.id == "getattr" and (len(call.args) > 2 or isinstance(call.args[1], ast.Constant)))
    ]


def test_no_function_is_long():
    long = {
        f"{module}.{function.name}: {lines(function)}"
        for module, tree in MODULES.items()
        for function in functions(tree)
        if lines(function) > MOST_LINES["function"]
    }
    assert_none(long - TOO_LONG)


def test_no_module_is_long():
    paths = {path.relative_to(PROJECT): path.read_text() for path in PACKAGE.rglob("*.py")}
    long = {f"{path}: {n}" for path, text in paths.items() if (n := module_lines(text)) > MOST_LINES["module"]}
    assert_none(long - TOO_LONG)


def test_no_two_public_classes_share_a_name():
    names = Counter(
        node.name
        for tree in MODULES.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert_none(name for name, count in names.items() if count > 1)


def test_questions_to_objects_are_found():
    tree = ast.parse("hasattr(a, b)\ngetattr(a, 'kind')\ngetattr(a, name, None)\ngetattr(a, field.name)\na.kind")
    assert asks(tree) == ["hasattr(a, b)", "getattr(a, 'kind')", "getattr(a, name, None)"]


@pytest.mark.parametrize("package", ["runs", "cli", "paper", "search", "page"])
def test_contracts_are_relied_upon_not_asked_about(package):
    modules = [module for module in MODULES if module.startswith(f"spie.{package}.")]
    assert modules
    found = {(module, question) for module in modules for question in asks(MODULES[module])}
    assert_none(map(": ".join, found - ALLOWED_QUESTIONS.items()))


@pytest.mark.parametrize("phrase", DIALECT)
def test_texts_use_the_words_of_the_field(phrase):
    assert len(TEXTS) > 80
    hits = [
        f"{path.relative_to(PROJECT)}:{i}: {line.strip()}"
        for path in TEXTS
        if path not in (SELF, PROJECT / "CHANGELOG.md")  # which name them
        for i, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(phrase, line, re.IGNORECASE)
    ]
    assert_none(hits, f"better: {DIALECT[phrase]}")
