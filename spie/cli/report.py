"""`spie report`: the page."""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli.terminal import ResultsFile, app


@app.command()
def report(
    results: ResultsFile = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
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

    console, path = Console(stderr=True), results or default_path()
    if results and not path.exists():
        raise ValueError(f"no results in {path}; make some with spie run, or name another file with --results")
    if not path.exists():
        console.print(f"no results in {path} yet, so the page shows what ships with spie", highlight=False)
    console.print("drawing the page, about 20 s", highlight=False)
    from spie.page.report import write  # matplotlib: seconds

    with tempfile.TemporaryDirectory() as empty, Store(path if path.exists() else f"{empty}/none.db") as store:
        found = Results(store)
        write(found, output)
        _, agree, open_ones, differ, missing = tally(found).rows[-1].values
    for line in available()[1]:
        print(f"spie: {line}", file=sys.stderr)
    counts = f"{agree} agree, {open_ones} cannot be told apart, {differ} differ, {missing} were not run"
    print(f"published numbers: {counts}")
    print(output.resolve())
    if open_:
        webbrowser.open(output.resolve().as_uri())
