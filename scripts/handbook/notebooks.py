"""Notebooks: scripts with cells (the percent format of Jupytext, which editors open), run cell by cell."""

import ast
import contextlib
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[2] / "notebooks"


class Cell(NamedTuple):
    """A piece of a notebook: text, or code."""

    text: bool
    source: str


class Output(NamedTuple):
    """What a cell left: what it printed, and its figures as PNG."""

    printed: str
    figures: list[bytes]


def cells(script: str) -> list[Cell]:
    """The cells of a script; those of text without their hashes."""
    found = []
    for piece in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        mark, _, body = piece.partition("\n")
        text = mark.strip() == "[markdown]"
        found.append(Cell(text, re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip() if text else body.strip()))
    return found


def run(found: list[Cell]) -> list[Output]:
    """Run the cells of code one after the other, as a notebook would: the value of a last expression is shown."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names: dict[str, Any] = {"__name__": "__main__"}
    outputs = []
    for cell in found:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if not cell.text:
                _execute(cell.source, names)
        outputs.append(Output(out.getvalue(), [_png(pyplot.figure(number)) for number in pyplot.get_fignums()]))
        pyplot.close("all")
    return outputs


def _execute(source: str, names: dict[str, Any]) -> None:
    *statements, last = ast.parse(source).body
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module(statements if shown else [*statements, last], []), "<cell>", "exec"), names)
    if shown:
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # type: ignore[attr-defined]
        if value is not None and not _is_drawing(value):
            print(value)


def _is_drawing(value: Any) -> bool:
    return type(value).__module__.startswith("matplotlib")


def _png(figure: Any) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=90)
    return picture.getvalue()


def page(path: Path, folder: Path) -> str:
    """A notebook as Markdown, with what it prints and draws; its figures are written into `folder`."""
    found = cells(path.read_text(encoding="utf-8"))
    parts = []
    for i, (cell, output) in enumerate(zip(found, run(found), strict=True)):
        parts.append(cell.source if cell.text else f"```python\n{cell.source}\n```")
        parts += [f"```text\n{output.printed.rstrip()}\n```"] if output.printed.strip() else []
        for k, picture in enumerate(output.figures):
            name = f"{path.stem}-{i}-{k}.png"
            (folder / name).write_bytes(picture)
            parts.append(f"![What the cell above draws]({name})")
    text = "\n\n".join(parts) + "\n"
    text = re.sub(r"\]\(\.\./docs/", "](../", text)
    return re.sub(r"\]\((\d_\w+)\.py\)", r"](\1.md)", text)
