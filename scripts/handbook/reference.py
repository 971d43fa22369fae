"""The reference: a page for each section, written from the docstrings of every public name."""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator

from handbook.public_names import Public, public_names


def pages() -> dict[str, str]:
    """Markdown by file name."""
    sections: dict[str, list[Public]] = {}
    for public in public_names():
        sections.setdefault(public.section, []).append(public)
    found = {f"{slug(section)}.md": _page(section, members) for section, members in sections.items()}
    rows = [f"| [{section}]({slug(section)}.md) | {_listed(members)} |" for section, members in sections.items()]
    head = "Every public name, with an example that the tests run. The commands explain themselves: `spie --help`."
    found["index.md"] = "\n".join(["# Reference", "", head, "", "| section | names |", "| --- | --- |", *rows, ""])
    return found


def _listed(members: list[Public]) -> str:
    """Names that lead to their entries."""
    return ", ".join(
        f"[`{one.name.removeprefix('spie.')}`]({slug(one.section)}.md#{slug(one.name)})" for one in members
    )


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _page(section: str, members: list[Public]) -> str:
    return "\n\n".join([f"# {section}", *(part for one in members for part in _entry(one))]) + "\n"


def _entry(public: Public) -> Iterator[str]:
    yield f"## {public.name} {{ #{slug(public.name)} }}"
    yield f"```python\n{signature(public)}\n```"
    yield from _text(public.text)
    if inspect.isclass(public.value):
        yield from _fields(public.value)
        yield from _methods(public.value)


def signature(public: Public) -> str:
    """As one calls it, without the types, which are long; a class of settings by its name alone."""
    if inspect.isclass(public.value) and dataclasses.is_dataclass(public.value):
        return f"{public.name}(...)"
    found = inspect.signature(public.value)
    if list(found.parameters) == ["args", "kwargs"]:  # a protocol, which nobody calls
        return public.name
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values() if p.name != "self"]
    return f"{public.name}{found.replace(parameters=plain, return_annotation=inspect.Signature.empty)}"


def _text(docstring: str) -> Iterator[str]:
    """Paragraphs; what is indented is a formula, what has prompts an example, and `name: ...` lines are a list."""
    for paragraph in docstring.split("\n\n"):
        if paragraph.lstrip().startswith(">>>"):
            yield f"```pycon\n{textwrap.dedent(paragraph)}\n```"
        elif paragraph.startswith("    "):
            yield f"```text\n{textwrap.dedent(paragraph)}\n```"
        elif "|" in paragraph or re.search(r" {4,}\S", paragraph):
            yield f"```text\n{paragraph}\n```"
        else:
            yield re.sub(r"(?m)^(\w+(?:, \w+)*): ", r"- `\1`: ", paragraph).replace("\n- `", "\n\n- `")


def _fields(kind: type) -> Iterator[str]:
    """A table of the fields of a dataclass, with the comment that stands beside each."""
    if not dataclasses.is_dataclass(kind):
        return
    comments = _comments(kind)
    rows = []
    for field in dataclasses.fields(kind):
        given = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {given} | {comments.get(field.name, '').replace('|', chr(92) + '|')} |")
    if rows:
        yield "\n".join(["| field | default | |", "| --- | --- | --- |", *rows])


def _comments(kind: type) -> dict[str, str]:
    """The comments on the lines of a class's fields, and of the classes it inherits from."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__[:-1]):
        try:
            source = textwrap.dedent(inspect.getsource(one))
        except (OSError, TypeError):
            continue
        lines = source.splitlines()
        for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                _, mark, comment = lines[(node.end_lineno or 1) - 1].partition("  # ")
                found[node.target.id] = comment if mark else ""
    return found


def _methods(kind: type) -> Iterator[str]:
    """The methods of a class itself, a line each."""
    rows = []
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        told = (inspect.getdoc(function) or "").partition("\n")[0]
        if not name.startswith("_") and inspect.isfunction(function) and told:
            rows.append(f"| `{name}` | {told.replace('|', chr(92) + '|')} |")
    if rows:
        yield "\n".join(["| method | |", "| --- | --- |", *rows])
