"""KEY=VALUE words and times, as every command reads them, and the lines that say how far runs are."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from spie.behaviour.rows import Rows
from spie.cli import run as run_command
from spie.cli.terminal import number, parse_assignments, parse_choices, parse_duration


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-2", -2), ("0.5", 0.5), (".5", 0.5), ("1e-3", 0.001), ("true", True), ("False", False),
        ("null", None), ("[1, 2]", [1, 2]), ('"3"', "3"), ("sr-r(a)", "sr-r(a)"), ("", ""), ("a=b", "a=b"),
    ],
)  # fmt: skip
def test_a_value_is_a_number_a_truth_nothing_a_list_or_a_word(text, value):
    found = parse_assignments([f"key={text}"])["key"]
    assert (found, type(found)) == (value, type(value))


def test_several_values_are_separated_by_commas_and_each_counts_once():
    found = parse_choices(["alpha=.1, .5,0.1", "reward=sr,sr-r", "learned=true,false", "empty="])
    assert found == {"alpha": (0.1, 0.5), "reward": ("sr", "sr-r"), "learned": (True, False), "empty": ()}


@pytest.mark.parametrize("parse", [parse_assignments, parse_choices])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["alpha"], '"alpha" is not a setting; settings are key=value, such as '),
        (["=3"], '"=3" is not a setting'),
        (["al pha=3"], '"al pha=3" is not a setting'),
        (["alpha=1", "alpha=2"], "alpha is given twice"),
    ],
)
def test_a_word_that_is_no_assignment_is_named(parse, words, message):
    with pytest.raises(ValueError, match=message):
        parse(words)


def test_a_time_has_a_unit_or_is_in_seconds():
    assert [parse_duration(text) for text in ("90s", "1.5m", "2h", "7")] == [90, 90, 7200, 7]
    for text in ("soon", "", "-3s", "inf", "nan"):
        with pytest.raises(ValueError, match="is not a time; write it as 90s, 10m or 2h"):
            parse_duration(text)


def test_numbers_are_whole_from_a_thousand_on():
    assert [number(x) for x in (1234567.8, 1000, 999.4, 0.012345, -2000.0)] == [
        "1,234,568",
        "1,000",
        "999",
        "0.0123",
        "-2,000",
    ]


def test_a_table_wider_than_the_terminal_goes_on_below_and_its_notes_wrap():
    row = {"model": "turn-back"} | {f"column_{i}": 1.5 for i in range(9)}
    table = Rows([row, row], "title", ("a note of many words " * 8,))
    lines = table.shown(80).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines if line.startswith("model")] == ["model", "model"]
    headings = [name for line in lines if line.startswith("model") for name in line.split()[1:]]
    assert headings == list(row)[1:]
    assert "\n".join(lines).replace("\n", " ").endswith(("a note of many words " * 8).strip())
    assert len(str(table).splitlines()) == 1 + 3 + 1  # not on a terminal: whole lines
    assert Rows([{"a": "x" * 100}]).shown(80).splitlines() == ["a", "x" * 100]  # what cannot be broken is not


def test_small_numbers_of_a_task_have_decimals_and_large_ones_have_none(capsys):
    from spie.cli.run import _print_cells

    def cell(env, mean, paper=None):
        measured = {"measure": "reward", "n": 1, "mean": mean, "sd": None, "median": mean, "paper_mean": paper}
        return {"env": env, "agent": "a", "variant": {}, "verdict": "-"} | measured

    _print_cells(
        SimpleNamespace(title="T"), [cell("rooms", 0.312), cell("river", 1234.5), cell("revenge", 0.25, 1530.0)]
    )
    title, _, rooms, river, revenge = (line.split() for line in capsys.readouterr().out.splitlines())
    assert title == ["T:", "reward,", "1", "seed"]
    assert [row[2] for row in (rooms, river, revenge)] == ["0.31", "1,234", "0"]


def test_where_there_is_no_terminal_a_line_a_minute_says_how_long_it_takes(monkeypatch):
    """What a run that was killed had done counts as done, not as fast; short runs are told of together."""
    now = [0.0]
    monkeypatch.setattr(run_command.time, "monotonic", lambda: now[0])
    screen = io.StringIO()
    runs = [
        SimpleNamespace(id=name, env="maze", agent=name, variant={}, seed_words="", seconds=100.0) for name in "abcd"
    ]
    with run_command._progress(runs, set(), Console(file=screen, width=200)) as report:
        for at, which, share in ((1, 0, 0.5), (50, 0, 0.75), (61, 0, 0.75), (62, 0, 0.8), (100, 0, 1), (122, 1, 1)):
            now[0] = float(at)
            report(runs[which], share)
    assert [line.strip() for line in screen.getvalue().splitlines()] == [
        "0/4 maze a, 20% done, about 11 minutes left",  # 30 of 400 s of work in 62 s, 320 to go: 661 s
        "2/4 maze b, 50% done, about 3 minutes left",  # 150 in 122 s, 200 to go: 163 s
    ]
