"""`spie report`: the page."""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli.terminal import ResultsFile, app, check_output, plain


@app.command()
def report(
    results: ResultsFile = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option(help="A folder: every figure as a file, instead of the page.")] = None,
    kinds: Annotated[
        str, typer.Option("--format", help="Formats of the figures, separated by commas: svg, pdf, png.")
    ] = "svg",
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write one HTML page: ours beside the paper's, verdicts, figures and the commands that made them."""
    import sys
    import tempfile
    import webbrowser

    from rich.console import Console

    from spie.paper.comparison import tally
    from spie.paper.results import Results
    from spie.paper.shipped import available
    from spie.runs.store import Store, default_path

    check_output(output)
    console, path = Console(stderr=True), results or default_path()
    if results and not path.exists():
        raise ValueError(f"no results in {path}; make some with spie run, or name another file with --results")
    if not path.exists():
        console.print(f"no results in {plain(path)} yet, so the page shows what ships with spie", highlight=False)
    formats = _formats(kinds)
    console.print(f"drawing the {'page' if figures is None else 'figures'}, about 20 s", highlight=False)
    from spie.page.report import write, write_figures  # matplotlib: seconds

    with tempfile.TemporaryDirectory() as empty, Store(path if path.exists() else f"{empty}/none.db") as store:
        found = Results(store)
        if figures is not None:
            print(f"{len(write_figures(found, figures, formats))} figures in {figures.resolve()}")
            return
        write(found, output)
        _, agree, open_ones, differ, missing = tally(found).rows[-1].values
    for line in available()[1]:
        print(f"spie: {line}", file=sys.stderr)
    counts = f"{agree} agree, {open_ones} cannot be told apart, {differ} differ, {missing} were not run"
    print(f"published numbers: {counts}")
    print(output.resolve())
    if open_:
        webbrowser.open(output.resolve().as_uri())


def _formats(kinds: str) -> list[str]:
    """What pictures are written as, each once."""
    chosen = list(dict.fromkeys(kind.strip().lower() for kind in kinds.split(",") if kind.strip()))
    for kind in chosen or [""]:
        if kind not in ("svg", "pdf", "png"):
            raise ValueError(f'--format must be svg, pdf or png, or several with commas, not "{kind}"')
    return chosen
