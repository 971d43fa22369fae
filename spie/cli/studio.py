"""`spie studio`: the page in which to draw a maze and watch agents explore it."""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli import completion
from spie.cli.terminal import app, check_output


@app.command()
def studio(
    maze: Annotated[
        str | None,
        typer.Argument(
            help="What to open with: a task of spie list, or a text file with a map (default: two rooms).",
            autocompletion=completion.task_names,
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("studio.html"),
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = True,
) -> None:
    """Write one HTML page, which needs no network: draw a maze, race agents in it, walk it yourself."""
    import webbrowser

    from spie.files import write_whole
    from spie.studio.build import page
    from spie.tasks.registry import task

    check_output(output)
    made = None if maze is None else task(maze, kind="table")
    write_whole(output, page(made))
    print(output.resolve())
    if open_:
        webbrowser.open(output.resolve().as_uri())
