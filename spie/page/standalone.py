"""A self-contained HTML page of one subject, in the look of the report: a fit of behaviour, a comparison, a demo."""

from collections.abc import Sequence
from pathlib import Path

import jinja2

from spie.files import write_whole
from spie.page.report import draw
from spie.paper.sections import SectionPart, number


def page(
    title: str, introduction: Sequence[str], sections: Sequence[tuple[str, Sequence[SectionPart]]], command: str
) -> str:
    """The whole page as text: paragraphs of introduction, the command that made it, then sections with their titles."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("spie.page"), autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["number"] = number
    # The look and the macros are those of the report, which is one page and not a library of parts
    report_page, own = (_source(environment, name) for name in ("report.html", "standalone.html"))
    macros, style = report_page.partition("<!DOCTYPE")[0], report_page.partition("<style>")[2].partition("</style>")[0]
    drawn = [(heading, [draw(part) for part in parts]) for heading, parts in sections]
    return environment.from_string(macros + own).render(
        title=title, introduction=introduction, sections=drawn, command=command, style=style
    )


def _source(environment: jinja2.Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def write(
    path: Path,
    title: str,
    introduction: Sequence[str],
    sections: Sequence[tuple[str, Sequence[SectionPart]]],
    command: str,
) -> None:
    """Write the page whole, or leave what was there."""
    write_whole(path, page(title, introduction, sections, command))
