"""`spie repair`: a results file that was damaged."""

from spie.cli.terminal import ResultsFile, app


@app.command()
def repair(results: ResultsFile = None) -> None:
    """Look at every stored run, and remove those that are damaged, so that they are run again."""
    from spie.cli.terminal import error_console
    from spie.runs.store import Store, default_path

    path = results or default_path()
    if not path.exists():
        raise ValueError(f"no results in {path}; name another file with --results")
    with Store(path) as store:
        sound, removed, whole = store.repair()
        listed = ", ".join(store.asked_for()) or "nothing"
    for run_id in removed:
        print(f"removed {run_id}")
    print(f"{sound} runs are sound, {len(removed)} were damaged")
    if not whole:
        print(f"the list of experiments was damaged; left in it: {listed}; spie run NAME puts others back")
    if removed:
        error_console().print("next: the same commands as before, which run again what is missing")
