"""Figures as text for a page and as files."""

import hashlib
import html
import io
import re
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from spie.page.plots.style import (
    INK,
    STYLE,
)

GROWN = 1.4  # how much larger than drawn a picture may become, to use the width of a page


@matplotlib.rc_context(STYLE)
def svg(figure: Figure) -> str:
    """The figure as an element of a page: the same text every time, and as wide as the page lets it be."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue().partition("<svg")[2].partition(">")[2]
    # Matplotlib's style sheet would apply to the whole page; what it says stands in the root element below.
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\d+\.\d{3,}", lambda x: f"{float(x[0]):.2f}", path[0]), text)
    text = re.sub(r"\s*\n\s*", "\n", text).replace(INK, "currentColor")
    # Pictures of one page share no names: those that nobody refers to go, the others get a mark of this picture.
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda name: f' id="{mark}-{name[1]}"' if name[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{mark}-", text)
    width, height = 72 * figure.get_size_inches()
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{html.escape(str(figure.get_label()))}" '
        f'style="width:100%;max-width:{GROWN * width:g}pt;height:auto;stroke-linejoin:round;stroke-linecap:butt">{text}'
    )


@matplotlib.rc_context(STYLE)
def save(figure: Figure, path: str | Path) -> None:
    """Write the figure to a file on white, PNG, SVG or PDF by its suffix."""
    format = picture_format(path)
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format)
    figure.savefig(path, format=format, dpi=200, metadata=metadata)


def picture_format(path: str | Path) -> str:
    """png, svg or pdf, by the suffix of a file's name; no other picture is written."""
    suffix = Path(path).suffix.lower()
    if suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{path}: cannot write a picture of this kind; give a name that ends in .png, .svg or .pdf")
    return suffix[1:]
