"""Wrong values at public doors: one line that names argument, value and range. `make fuzz` tries many more."""

import gymnasium as gym
import numpy as np
import pytest

import spie
from spie.cli.terminal import parse_assignments, parse_choices
from spie.errors import check_number, check_whole, told, unknown
from spie.runs.user_code import complaint, load_rewards


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a\nb\x1b[2J", r"a\nb\x1b[2J"),
        (np.zeros((2, 2)), r"array([[0., 0.],\n       [0., 0.]])"),
        pytest.param(10**5000, "a number of thousands of digits", id="huge"),
        ("x" * 100, "x" * 80 + "..."),
    ],
)
def test_any_value_is_told_in_one_line_without_control_characters(value, words):
    assert told(value) == words
    assert unknown("agent", value, ["sarsa"]).args[0].isprintable()


@pytest.mark.parametrize("value", [None, True, "0.5", [0.5], 1j, np.array([0.1, 0.2]), float("nan"), 10**400, -0.1])
def test_what_is_no_number_in_the_interval_is_refused(value):
    with pytest.raises(ValueError, match=r"^Sarsa: alpha must .* \[0, 1\], not "):
        check_number("Sarsa: alpha", value, "[0, 1]")


@pytest.mark.parametrize("value", [None, False, "3", 3.0, [3], 0, 11])
def test_what_is_no_whole_number_between_two_is_refused(value):
    with pytest.raises(ValueError, match=r"^n must be a whole number of at least 1 and at most 10, not "):
        check_whole("n", value, 1, 10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spie.Sarsa(learned="foo"), "Sarsa: learned must be true or false, not foo"),
        (lambda: spie.Sarsa(sparse="foo"), "Sarsa: sparse must be true or false, not foo"),
        (lambda: spie.Sarsa(beta=None), r"Sarsa: beta must be a number in \(-inf, inf\), not None"),
        (lambda: spie.Sarsa(reward=["sr"]), r'no intrinsic reward "\[\'sr\'\]"'),
        (lambda: spie.DQN(envs=10**8), "DQN: envs must be a whole number of at least 1 and at most 4,096"),
        (lambda: spie.DQN(norm=np.zeros(2)), "no norm of DQN"),
        (lambda: spie.DQN(n_step=np.arange(2)), "DQN: n_step must be a whole number"),
        (lambda: spie.Sarsa().run(spie.riverswim(), 5, session=[1]), "session must be a spie.Session, not list"),
        (lambda: spie.IntrinsicReward(spie.riverswim().env(), "sr", eta="x"), "eta must be a number in"),
        (lambda: spie.IntrinsicReward(spie.riverswim().env(), ["sr"]), "reward must be the name of one"),
        (lambda: spie.IntrinsicReward(spie.riverswim().env(), "sr", features=3), "features must be a function"),
        (
            lambda: spie.fourier_features(gym.spaces.Box(-1, 1, (2,)), 6, length_scale=7e-311),
            r"length_scale must lie in \[1e-100, inf\), not 7e-311",
        ),
        (
            lambda: spie.IntrinsicReward(spie.riverswim().env(), "constant", beta=1e308).bonus.total(0.0, 5.0),
            r"beta 1e\+308 times an intrinsic reward of 5 is no finite number at step 0; give a smaller beta",
        ),
        (lambda: spie.compare("riverswim", steps="many"), "steps must be a whole number of at least 100"),
        (lambda: spie.compare("riverswim", bonuses=3), "bonuses must be a name or several, not 3"),
        (lambda: spie.compare(3.5), "env must be the name of a task"),
        (lambda: spie.sweep("riverswim", reward=[]), "reward has no values to try"),
        (lambda: spie.sweep("riverswim", top=None), "top must be a whole number of at least 0"),
        (lambda: spie.fit("walks.csv"), "paths must be spie.Paths"),
        (lambda: spie.model(5), "a model must be a name"),
        (lambda: spie.Paths.from_states([[0, 1]], "..", actions=[[7]]), "no action 7; they are 0 ... 3"),
        (lambda: spie.Paths.from_table(3), "a table must be a data frame"),
        (lambda: spie.plot.path(spie.grid("S.."), [0, -1]), "a path is a sequence of states, 0..2"),
        (lambda: spie.plot.maze(spie.grid("S.."), of=9), "of, a state, must be a whole number"),
        (lambda: spie.LinearQ(features_seed="x"), "LinearQ: features_seed must be a whole number"),
        (lambda: spie.agent("sarsa", bet=1), 'no setting of sarsa "bet"; did you mean "beta"'),
        (lambda: spie.task(5), 'no task, map or file "5"'),
        (lambda: spie.task("deep-sea-999999"), "deep-sea: depth must be a whole number of at least 1 and at most 2"),
        (lambda: spie.maze(10**9, 10**9), "maze: 1000000000 x 1000000000 cells are too many"),
        (lambda: spie.grid("S.\n..\n", bumps="no"), "grid: bumps must be true or false, not no"),
        (lambda: spie.grid("S.a\n", rewards=[1]), r'grid: rewards must be given by name, such as {"a": 1}, not \[1\]'),
        (lambda: spie.MDP("x", [[["a"]]], 1.0, 0.0, 1.0), "x: next must be an array of numbers"),
        (lambda: spie.MDP("x", [[[0]]], 1.0, 0.0, 1.0, labels=3), "x: labels must be texts"),
        (lambda: spie.sr(["a"], 0.9), "P must be an array of numbers"),
        (lambda: spie.sr(np.eye(2), "x"), "gamma is x, not in"),
        (lambda: spie.Keep(snapshots=5), "Keep: snapshots must be a sequence of whole numbers, not 5"),
        (lambda: spie.Session(threads="two"), "Session: threads must be a whole number"),
        (lambda: spie.Replay(states=True), r"replay: states must be \[subjects\]\[trials\]\[steps\], not True"),
        (lambda: spie.graph(edges=[[[1], [2]]]), "graph: edge 1 has nodes that are no names"),
        (lambda: spie.riverswim().env(max_steps=0), "max_steps is 0"),
    ],
)  # fmt: skip
def test_a_wrong_value_at_a_door_is_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


def test_a_map_of_20_gb_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge.txt", "wb") as file:
        file.truncate(20 * 10**9)  # takes no space
    with pytest.raises(ValueError, match=r"huge.txt has 20.0 GB and is not a map"):
        spie.grid(tmp_path / "huge.txt")


def test_words_that_nest_deeply_are_words():
    deep = "[" * 100_000
    assert parse_assignments([f"alpha={deep}"]) == {"alpha": deep}
    assert parse_choices(['alpha={"a":1}', "beta=1,1,2"]) == {"alpha": ({"a": 1},), "beta": (1, 2)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import sys\nsys.exit(3)\n", "line 2, SystemExit: 3"),
        ("x = 1\ny = x / 0\n", "line 2, ZeroDivisionError: division by zero"),
        ("def f(:\n", "line 1, SyntaxError: invalid syntax"),
        ("raise KeyError\n", "line 1, KeyError"),
        ("import nowhere_at_all\n", "line 1, ModuleNotFoundError: No module named 'nowhere_at_all'"),
    ],
)
def test_whatever_a_users_file_does_is_one_line_with_its_place(tmp_path, text, words):
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"mine.py cannot be loaded: {words}$"):
        load_rewards(file)


def test_a_users_function_that_fails_later_is_named_with_its_place(tmp_path):
    file = tmp_path / "later.py"
    file.write_text("import spie\n@spie.reward('later')\ndef later(M_next):\n    return 1 / 0\n")
    load_rewards(file)
    from spie.rewards import get_reward

    with pytest.raises(ZeroDivisionError) as error:
        get_reward("later").function(1.0)
    assert complaint(error.value) == f"{file}: line 4, ZeroDivisionError: division by zero"
    assert complaint(ValueError("ours")) == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sweep riverswim --steps 0", "steps must be a whole number of at least 1, not 0"),
        ("sweep riverswim learned=foo", "Sarsa: learned must be true or false, not foo"),
        ("show riverswim -o no/such/p.png", "there is no folder no/such"),
        ("report -o no/such/p.html", "there is no folder no/such"),
        ("sweep riverswim beta=1 -o no/such/t.csv", "there is no folder no/such"),
        ("tune \x1b[2J", r'no agent "\x1b[2J"'),
        ("tune [/]", 'no agent "[/]"'),
    ],
)
def test_a_wrong_command_is_one_printable_line_before_any_work(spie, words, message):
    code, _, error = spie(*words.split(" "))
    assert code == 2
    assert message in error
    assert error.rstrip("\n").isprintable()


@pytest.mark.slow
def test_a_sweep_names_the_runs_whose_numbers_became_infinite(spie):
    small = ["--seeds", 2, "--steps", 300, "--confirm", 0]
    code, _, error = spie("sweep", "riverswim", "beta=1e308,1", *small)
    assert code == 0
    assert (
        "2 of 4 runs stopped where their numbers became infinite or NaN, such as sarsa-srr search beta=1e+308" in error
    )
    code, _, error = spie("sweep", "riverswim", "beta=1e308", *small)
    assert code == 2
    assert "the numbers of every run became infinite or NaN" in error
