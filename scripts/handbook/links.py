"""The links of a built site: each leads to a file and a heading that is there; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}
NOT_LOADED = {"canonical", "alternate", "next", "prev", "author", "license"}  # kinds of <link> that are only told
OWNER = "github.com/OWNER/"  # a placeholder until the project has a home


class _Page(HTMLParser):
    """What a page links to, loads and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        for name in ("href", "src"):
            if name not in found:
                continue
            if (tag, name) in LOADED and found.get("rel", "") not in NOT_LOADED:
                self.loads.append(found[name])
            else:
                self.links.append(found[name])


def faults(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each thing that is loaded from elsewhere."""
    pages = {path.resolve(): _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    pages.pop(site.resolve() / "404.html", None)  # shown at any address, so its links begin at the root of a server
    found = []
    for path, page in pages.items():
        told = path.relative_to(site.resolve())
        found += [f"{told}: loads {link}" for link in page.loads if re.match(r"(https?:)?//", link)]
        for link in {*page.links, *page.loads}:
            if (why := _fault(link, path, pages)) and OWNER not in link:
                found.append(f"{told}: {link} {why}")
    return sorted(found)


def _fault(link: str, path: Path, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc or link.startswith("//"):
        return ""  # another site, which is not asked
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        return "leads nowhere"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
        return "has no such heading" if not parts.fragment.startswith("__") else ""
    return ""


def count(site: Path) -> tuple[int, int]:
    """How many pages there are, and how many links on them."""
    pages = [_Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")]
    return len(pages), sum(len(page.links) + len(page.loads) for page in pages)
