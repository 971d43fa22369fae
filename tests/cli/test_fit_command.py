"""`spie fit` and `spie data` on the command line."""

import pytest

MAZE = "S...\n.#..\n....\n"
ROWS = [
    (who, trial, step, s) for who in "ab" for trial in (1, 2) for step, s in enumerate([0, 1, 2, 3, 6, 5, 2, 1, 0, 4])
]


def write(folder, rows=ROWS, header="subject,session,step,state"):
    (folder / "maze.txt").write_text(MAZE)
    (folder / "paths.csv").write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


@pytest.mark.slow
def test_fit_writes_its_tables_and_a_page_and_goes_on_where_it_was(spie, tmp_path):
    names = {"a": "<script>alert(1)</script>", "b": "=1+1"}
    write(tmp_path, [(names[who], *rest) for who, *rest in ROWS])
    models = "turn-back, turn-back+stickiness"  # which share kernels
    words = ("fit", "paths.csv", "--maze", "maze.txt", "--models", models, "--starts", "2", "--choices")
    code, out, err = spie(*words)
    assert code == 0, err
    assert out.startswith("2 subjects, 36 steps, 2 models: about")
    assert "fitting turn-back" in err
    for name in ("fits.csv", "comparison.csv", "heldout.csv", "choices.csv", "index.html"):
        assert (tmp_path / "fit" / name).stat().st_size > 0
    assert len((tmp_path / "fit" / "choices.csv").read_text().splitlines()) == 1 + 2 * 36
    page = (tmp_path / "fit" / "index.html").read_text()
    for text in ("Models side by side", "Held-out likelihood", "turn-back", "spie fit paths.csv --maze maze.txt"):
        assert text in page
    for text in ("&lt;script&gt;alert(1)&lt;/script&gt;", "=1+1"):  # on the page it is a text
        assert text in page
    assert "<script>" not in page
    first = (tmp_path / "fit" / "fits.csv").read_text()
    for text in (first, (tmp_path / "fit" / "choices.csv").read_text()):  # for a spreadsheet it is no formula
        assert ",'=1+1," in text
        assert ",=" not in text
    code, _, err = spie(*words)
    assert code == 0
    assert "fitting" not in err  # it was on the shelf
    assert (tmp_path / "fit" / "fits.csv").read_text() == first


@pytest.mark.parametrize(
    ("rows", "words", "line"),
    [
        (ROWS, ("none.csv",), "no file none.csv"),
        (ROWS, ("paths.csv", "--maze", "nowhere.txt"), "no map or file"),
        (ROWS, ("paths.csv", "--maze", "maze.txt", "--models", "srr"), 'no behavioural model "srr"'),
        (ROWS, ("paths.csv", "--maze", "maze.txt", "--models", ","), "no model is given"),
        (ROWS, ("paths.csv", "--maze", "maze.txt", "--hold-out", "step"), 'no way to hold out "step"'),
        (ROWS, ("paths.csv", "--maze", "maze.txt", "--who", "a,c"), "no subject c; there are: a, b"),
        (ROWS, ("paths.csv", "--maze", "a=maze.txt", "--maze", "maze.txt"), "several mazes need names"),
        (
            [("a", 1, 0, 0), ("a", 1, 1, 7), ("a", 1, 2, 6)],
            ("paths.csv", "--maze", "maze.txt"),
            "which maze does not allow",
        ),
        ([("a", 1, 0, 99), ("a", 1, 1, 7)], ("paths.csv", "--maze", "maze.txt"), 'no state "99"'),
    ],
)
def test_a_users_mistake_is_one_line(spie, tmp_path, rows, words, line):
    write(tmp_path, rows)
    code, _, err = spie("fit", *words)
    assert code == 2
    assert line in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "fit").exists()


def test_data_lists_what_there_is_with_licence_and_source(spie, monkeypatch):
    code, out, _ = spie("data")
    assert code == 0
    assert "tartarus" in out
    assert "licence: MIT" in out
    assert "https://github.com/" in out
    monkeypatch.setenv("SPIE_DATA", "nowhere")
    code, _, err = spie("data", "labyrinth")
    assert code == 2
    assert "put the files of labyrinth there" in err
