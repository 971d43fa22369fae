"""`spie data`: public datasets of behaviour."""

from pathlib import Path
from typing import Annotated

import typer

from spie.cli.terminal import Who, app, show


@app.command()
def data(
    name: Annotated[
        str | None, typer.Argument(help="A dataset: tartarus or labyrinth. Without one, all are listed.")
    ] = None,
    from_: Annotated[Path | None, typer.Option("--from", help="A folder with a copy of the files.")] = None,
    to: Annotated[Path | None, typer.Option(help="Download what is missing into this folder.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The paths as a CSV file.")] = None,
    who: Who = None,
) -> None:
    """List public datasets of recorded paths; read one from a folder, or download it."""
    from spie import data as datasets

    if name is None:
        for known in datasets.DATASETS.values():
            print(f"{known.name}: {known.title}\n  licence: {known.licence}\n  source:  {known.source}")
        print("next: spie data tartarus --from FOLDER, or --to FOLDER to download it")
        return
    known = datasets.dataset(name)
    if to is not None:
        print(f"{known.name}: from {known.source} (licence: {known.licence})")
        for path in datasets.download(name, to):
            print(f"  written: {path}")
    folder = datasets.data_folder(name, to or from_)
    for file, status in datasets.check_files(name, folder).items():
        if status != "as known":
            print(f"  {file}: {status}")
    paths = datasets.read(name, folder, who)
    show(paths.report())
    if output is not None:
        paths.to_csv(output)
        print(output.resolve())
