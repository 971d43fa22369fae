"""The documentation as a site: our Markdown is brought together, and Zensical makes pages of it, without network."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from handbook import found, links, notebooks, reference

PROJECT = Path(__file__).parents[2]
CONFIG = PROJECT / "mkdocs.yml"
SOURCES, SITE = PROJECT / "build" / "handbook", PROJECT / "build" / "site"
TOP = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
       "SECURITY.md": "reporting.md", "CODE_OF_CONDUCT.md": "conduct.md"}  # fmt: skip
FOLDERS = (
    "examples",
    "notebooks",
    "spie",
    "tests",
    "benchmarks",
    "scripts",
    ".github",
)  # of which a page tells, but has none
REPOSITORY = "https://github.com/OWNER/spie/blob/main/"  # a placeholder until the project has a home


def assemble(run_notebooks: bool = True, with_pages: bool = True) -> Path:
    """All sources of the site in one folder: texts, reference, notebooks, the page of results and the studio."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    (SOURCES / "reference").mkdir(parents=True)
    (SOURCES / "notebooks").mkdir()
    for path in sorted((PROJECT / "docs").iterdir()):
        if path.suffix == ".md":
            text = path.read_text(encoding="utf-8").replace("<!-- computed -->", found.block())
            (SOURCES / path.name).write_text(rewritten(text, "docs/"), encoding="utf-8")
        else:
            shutil.copy(path, SOURCES / path.name)
    for name, page in TOP.items():
        text = rewritten((PROJECT / name).read_text(encoding="utf-8"), "")
        (SOURCES / page).write_text(text, encoding="utf-8")
    for name, text in reference.pages().items():
        (SOURCES / "reference" / name).write_text(text, encoding="utf-8")
    _notebooks(run_notebooks)
    _live_pages(with_pages)
    return SOURCES


def rewritten(text: str, folder: str) -> str:
    """A text of the repository with its links as the site has them."""

    def link(match: re.Match[str]) -> str:
        target, mark, heading = match[1].partition("#")
        if "://" in target or not target:
            return match[0]
        path = (Path(folder) / target).as_posix()
        while "/../" in f"/{path}":
            path = re.sub(r"(^|/)[^/]+/\.\./", r"\1", path, count=1)
        if path in TOP:
            return f"]({TOP[path]}{mark}{heading})"
        if path.startswith("docs/"):
            return f"]({path.removeprefix('docs/')}{mark}{heading})"
        if path == "notebooks":
            return "](notebooks/1_representations.md)"
        if re.fullmatch(r"notebooks/\d_\w+\.py", path):
            return f"]({path.removesuffix('.py')}.md)"
        return f"]({REPOSITORY}{path})"

    return re.sub(r"\]\(([^)\s]+)\)", link, text)


def _notebooks(run: bool) -> None:
    for path in sorted(notebooks.FOLDER.glob("*.py")):
        if run:
            text = notebooks.page(path, SOURCES / "notebooks")
        else:
            cells = notebooks.cells(path.read_text(encoding="utf-8"))
            text = "\n\n".join(cell.source if cell.text else f"```python\n{cell.source}\n```" for cell in cells) + "\n"
            text = re.sub(r"\]\(\.\./docs/", "](../", text)
            text = re.sub(r"\]\((\d_\w+)\.py\)", r"](\1.md)", text)
        (SOURCES / "notebooks" / f"{path.stem}.md").write_text(text, encoding="utf-8")


def _live_pages(made: bool) -> None:
    """`spie report`'s page and the studio, each in a frame of a page of its own."""
    for name, title, arguments in (
        ("results", "Results", ["report", "-o"]),
        ("draw", "Draw a maze", ["studio", "--no-open", "-o"]),
    ):
        file = SOURCES / f"{name}-page.html"
        if made:
            command = [sys.executable, "-m", "spie.cli", *arguments, str(file)]
            subprocess.run(command, check=True, cwd=PROJECT, stdout=subprocess.DEVNULL)
        else:
            file.write_text("<!doctype html><title>left out</title>", encoding="utf-8")
        frame = f'<iframe src="{file.name}" title="{title}" style="width:100%;height:80vh;border:0"></iframe>'
        text = f"# {title}\n\n[On a page of its own]({file.name})\n\n{frame}\n"
        (SOURCES / f"{name}.md").write_text(text, encoding="utf-8")


def build() -> None:
    """Let Zensical make the site; it is told nothing of the network."""
    shutil.rmtree(SITE, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--clean", "-f", str(CONFIG)]
    run = subprocess.run(command, cwd=CONFIG.parent, capture_output=True, text=True)
    if run.returncode or not (SITE / "index.html").exists():
        sys.exit(f"zensical failed:\n{run.stdout}{run.stderr}")


def main() -> None:
    assemble()
    build()
    wrong = links.faults(SITE)
    print(*wrong, sep="\n", end="\n" * bool(wrong))
    pages, n = links.count(SITE)
    print(f"{SITE.relative_to(PROJECT)}: {pages} pages, {n:,} links, {len(wrong)} of them wrong")
    print(
        f"python -m http.server -d {SITE.relative_to(PROJECT)} shows it; from the file system all works but the search"
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
