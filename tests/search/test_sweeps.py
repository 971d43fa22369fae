import csv
import dataclasses
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import spie
from spie.cli import main
from spie.paper.sweeps import searches, sweep
from spie.rewards import get_reward
from spie.runs.backends import execute
from spie.runs.run import Run, load
from spie.runs.store import Store
from spie.runs.user_code import load_rewards
from spie.search import sweep as sweeps
from spie.search.select import FRESH, Choice, Round
from spie.search.sweep import OutOfTime

slow = pytest.mark.slow

FEW = {"seeds": 4, "steps": 200, "confirm": 6, "top": 2}
ALPHAS = (0.05, 0.1, 0.5)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("SPIE_RESULTS", str(tmp_path / "results.db"))
    return tmp_path / "results.db"


@pytest.mark.parametrize(
    ("agent", "n"),
    [
        ("sarsa", 6 * 3),
        ("sarsa-srr", 6 * 6 * 5 * 6 * 3),
        ("sarsa-fr", 3240),
        ("sarsa-sr-pr", 3240 * 6 * 5),
        ("sarsa-srr-fixed", 6 * 5 * 6 * 3),
        ("constant", 6 * 6 * 3),
        ("optimistic", 6 * 6 * 3),
        ("count", 6 * 6 * 3),
        ("random", 1),
        ("planner", 3**4),  # three values of each setting that it says may be tuned
    ],
)
def test_without_values_the_grid_is_the_papers_and_controls_get_the_same_kind(agent, n):
    (search,) = searches("riverswim", [agent], {})
    assert len(search) == n
    assert sum(len(run.settings) for run in Choice((search,), (Round(20, 1),)).runs(0, None)) == n


def test_the_count_control_starts_at_the_most_that_its_bonus_adds_up_to():
    (search,) = searches("sixarms", ["count"], {})
    np.testing.assert_allclose(search.columns["q0"], search.columns["beta"] / 0.05)


def test_where_nothing_is_paid_the_scale_of_a_bonus_is_left_alone():
    (search,) = searches("of-small", ["sarsa-srr"], {})
    assert "beta" not in search.columns
    assert search.measure == "coverage"
    assert search.sign == -1


@pytest.mark.slow
def test_a_sweep_is_a_table_with_a_row_for_each_setting_best_first(results):
    table = sweep("riverswim", "sarsa", alpha=ALPHAS, epsilon=[0.1, 0.9], **FEW)
    assert isinstance(table, dict)
    assert {len(column) for column in table.values()} == {6}
    assert {*zip(table["alpha"], table["epsilon"], strict=True)} == {(a, e) for a in ALPHAS for e in (0.1, 0.9)}
    mdp = spie.riverswim()
    for row in table.rows():
        agent = spie.Sarsa(reward="none", alpha=row["alpha"], epsilon=row["epsilon"])
        rewards = agent.run(mdp, 200, seeds=4).total_reward
        assert row["mean"] == pytest.approx(rewards.mean())
        assert row["se"] == pytest.approx(rewards.std(ddof=1) / 2)
        again = agent.run(mdp, 200, seeds=range(FRESH, FRESH + 6)).total_reward
        if row["confirmed_mean"] is not None:
            assert row["confirmed_mean"] == pytest.approx(again.mean())
    confirmed = table["confirmed_mean"]
    assert np.isnan(confirmed[2:]).all()
    assert confirmed[0] >= confirmed[1]
    assert (np.diff(table["mean"][2:]) <= 0).all()
    assert {*np.sort(table["mean"])[-2:]} == {*table["mean"][:2]}  # those were confirmed
    assert (
        table.note == "6 settings x 4 seeds; confirmed: on 6 fresh seeds, which `mean`, being the best of many, is not"
    )


def test_of_an_experiment_its_environments_steps_and_settings_are_swept():
    found = searches("table1", ["sarsa-srr", "constant"], {"alpha": (0.1, 0.2)})
    assert [(s.env, s.agent) for s in found] == [
        (env, agent) for env in ("riverswim", "sixarms") for agent in ("sarsa-srr", "constant")
    ]
    assert {s.steps for s in found} == {5000}
    assert [s.grids[0].base.beta for s in found] == [10, 10, 10_000, 10_000]  # of Table 5
    (goal, *_) = searches("figure3", ["sarsa"], {"alpha": (0.1,)})
    assert (goal.episodes, goal.measure) == (100, "episodes")


@pytest.mark.slow
def test_a_setting_that_only_some_agents_have_is_varied_for_those(results):
    table = sweep("riverswim", ["sarsa", "sarsa-srr"], alpha=[0.1], eta=[0.1, 0.2], **FEW)
    assert {(row["agent"], row["eta"]) for row in table.rows()} == {
        ("sarsa", None),
        ("sarsa-srr", 0.1),
        ("sarsa-srr", 0.2),
    }


@pytest.mark.slow
def test_halving_gives_most_settings_few_seeds_and_says_so(results):
    table = sweep("riverswim", "sarsa", epsilon=np.linspace(0.1, 0.9, 9), **FEW | {"seeds": 9, "halving": True})
    assert sorted(table["seeds"]) == [1] * 6 + [3] * 2 + [9]
    assert "by successive halving" in table.note
    whole = sweep("riverswim", "sarsa", epsilon=np.linspace(0.1, 0.9, 9), **FEW | {"seeds": 9})
    best = dict(zip(whole["epsilon"], whole["mean"], strict=True))
    kept = int(np.flatnonzero(table["seeds"] == 9)[0])
    assert table["mean"][kept] == pytest.approx(best[table["epsilon"][kept]])  # seeds of all rungs, counted once


@pytest.mark.slow
def test_what_is_stored_is_not_run_again(results, monkeypatch):
    first = sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW)
    monkeypatch.setattr(Run, "execute", lambda *_: pytest.fail("ran again"))
    second = sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW)
    assert second.rows() == first.rows()


@pytest.mark.slow
def test_out_of_time_keeps_what_is_stored_and_the_next_call_continues(results, monkeypatch, tmp_path):
    monkeypatch.setattr("spie.search.select.PIECE_SECONDS", 1e-9)  # every setting a piece
    with pytest.raises(OutOfTime, match="1 of 3 pieces are stored; run again to continue"):
        sweep("riverswim", "sarsa", alpha=ALPHAS, budget=1e-9, **FEW)
    ran, execute = [], Run.execute
    monkeypatch.setattr(Run, "execute", lambda self, *args: ran.append(self) or execute(self, *args))
    continued = sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW)
    assert len(ran) == 2 + 2  # the other pieces, and the two that are confirmed
    monkeypatch.setenv("SPIE_RESULTS", str(tmp_path / "other.db"))
    assert continued.rows() == sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW).rows()


KILLED = """
import os, signal
from spie import cli
from spie.runs import backends

def save(store, run, *rest, real=backends.save, saved=[]):
    if len(saved) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    saved.append(real(store, run, *rest))
    print("saved", run.id, flush=True)

backends.save = save
cli.main()
"""
NOT_KILLED = KILLED.replace("== 3", "== -1")


@pytest.mark.slow
def test_a_sweep_that_was_killed_continues_and_ends_the_same(tmp_path):
    agents = [word for agent in ("sarsa", "optimistic", "random") for word in ("--agent", agent)]  # one kernel a chain
    words = ["sweep", "table1", "alpha=0.1,0.2", *agents, "--confirm", "3", "--seeds", "5", "--results"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *words, tmp_path / "killed.db"], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    with Store(tmp_path / "killed.db") as store:
        before = {run_id for (run_id,) in store._connection.execute("SELECT id FROM runs")}
    assert len(before) == 3
    tables, ran = [], []
    for name in ("killed", "whole"):
        output = [tmp_path / f"{name}.db", "-o", tmp_path / f"{name}.csv"]
        program = [sys.executable, "-c", NOT_KILLED, *words, *output]
        told = subprocess.run(program, check=True, capture_output=True, text=True).stdout
        ran.append({line.split()[1] for line in told.splitlines() if line.startswith("saved ")})
        tables.append((tmp_path / f"{name}.csv").read_text())
    assert tables[0] == tables[1]
    assert ran[1] - ran[0] == before  # these three were not run again


OWN = """
import spie

HALF = 0.5

@spie.reward("half-constant")
def half():
    return -HALF
"""


@pytest.mark.slow
def test_rewards_of_a_file_reach_other_processes_and_are_part_of_the_id(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    load_rewards(file)
    file.unlink()  # workers elsewhere do not have it either
    runs = [
        Run("riverswim", "", spie.Sarsa(reward=reward, beta=beta), spie.riverswim(), 200, 3)
        for reward, beta in (("half-constant", 2.0), ("half-constant", 4.0), ("constant", 1.0))
    ]
    with Store(tmp_path / "r.db") as store:
        assert len(list(execute(runs, store, on="processes"))) == 3
        found = [load(store, run).total_reward for run in runs]
    np.testing.assert_array_equal(found[0], found[2])  # half the reward, twice beta: the same
    file.write_text(OWN.replace("HALF = 0.5", "HALF = 0.25"))
    load_rewards(file)
    assert get_reward("half-constant").function() == -0.25
    assert Run("riverswim", "", runs[0].settings, spie.riverswim(), 200, 3).id != runs[0].id


@pytest.fixture
def command(results, monkeypatch, capsys, tmp_path):
    """Run a command line; returns exit code, output and error output."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["spie", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return run


@pytest.mark.slow
def test_the_command_prints_the_best_and_writes_the_whole_table(command, tmp_path):
    words = "sweep riverswim --agent sarsa alpha=.05,.1,.5 --seeds 3 --steps 200 --top 1 --confirm 5 -o all.csv"
    code, out, err = command(*words.split())
    assert code == 0
    title, _, *rows = out.strip().splitlines()
    assert title.strip() == "riverswim, sarsa: total reward (more is better); alpha varies"
    assert len(rows) == 1
    assert "3 settings x 3 seeds, about 1 s" in err
    with open("all.csv", newline="") as file:
        table = list(csv.DictReader(file))
    assert sorted(float(row["alpha"]) for row in table) == [0.05, 0.1, 0.5]
    assert [row["confirmed_mean"] != "" for row in table] == [True, False, False]
    assert sorted(os.listdir()) == ["all.csv", "results.db"]
    code, out, err = command(*"sweep table1 alpha=.1 --seeds 3 --steps 200 --budget 0.000001s".split())
    assert (code, out) == (0, "")
    assert "unfinished: the budget is used up" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("riverswim --agent sarsa-srr alhpa=.1", 'no setting of Sarsa "alhpa"; did you mean "alpha"'),
        ("riverswim --agent sarsa eta=.1,.5", "sarsa has no use for eta; it uses alpha, epsilon"),
        ("riverswim alpha=", "alpha has no values"),
        ("riverswim alpha", '"alpha" is not a setting; settings are key=value, such as alpha=0.1,0.5'),
        ("riverswim alpha=.1 alpha=.2", "alpha is given twice"),
        ("riverswim alpha=high", "alpha must be a number in [0, 1], not high"),
        ("riverswim alpha=7", "alpha must lie in [0, 1], not 7"),
        ("riverswim --agent constnat", 'no agent "constnat"; did you mean "constant"'),
        ("table1 --agent sarsa-sr-fixed", 'no agent in table1 "sarsa-sr-fixed"'),
        ("figure5", "figure5 has no settings to vary"),
        ("rivrswim", 'no experiment, task, map or file "rivrswim"; did you mean "riverswim"'),
        ("riverswim --seeds 0", "seeds must be a whole number of at least 1 and at most 1,000,000, not 0"),
        ("riverswim --budget soon", '"soon" is not a time; write it as 90s, 10m or 2h'),
        ("riverswim --agent sarsa-sr-pr --seeds 90000", "97,200 settings x 90,000 seeds take about"),
        ("riverswim --rewards nowhere.py", "nowhere.py"),
        # The kernel is looked up for the estimate, which comes before the cluster
        *(
            pytest.param(f"riverswim alpha=.1 --on ray --address {where}", f"no Ray cluster at {where}", marks=slow)
            for where in ("127.0.0.1:1", "nonsense")
        ),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(command, words, message):
    code, out, err = command("sweep", *words.split())
    assert (code, out) == (2, "")
    assert message in err
    assert err.strip().splitlines()[-1].startswith("spie: ")


@pytest.mark.slow
def test_an_absurd_grid_is_run_by_those_who_mean_it(results, monkeypatch):
    monkeypatch.setattr(sweeps, "MOST_SETTINGS", 2)
    with pytest.raises(ValueError, match=r"3 settings x 4 seeds take about .* or --yes if you mean it"):
        sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW)
    assert len(sweep("riverswim", "sarsa", alpha=ALPHAS, **FEW, yes=True)["mean"]) == 3


def test_settings_that_cannot_differ_are_one():
    values = {"reward": ("none", "count", "sr-r"), "eta": (0.1, 0.25), "beta": (1, 2), "alpha": (0.1, 0.5)}
    (search,) = searches("riverswim", ["sarsa-srr"], values)
    assert [len(grid) for grid in search.grids] == [
        2,
        4,
        8,
    ]  # no bonus has no beta and eta, count no eta
    np.testing.assert_array_equal(search.columns["reward"], ["none"] * 2 + ["count"] * 4 + ["sr-r"] * 8)
    assert np.isnan(search.columns["eta"][:6]).all()
    assert np.isnan(search.columns["beta"][:2]).all()
    (explored,) = searches("of-small", ["sarsa-srr"], {"beta": (2, 4), "alpha": (0.1, 0.5)})
    assert (len(explored), explored.grids[0].base.beta) == (2, 2)
    assert explored.note == "of-small pays nothing, so that all values of beta are the same: beta=2 was run"
    one = explored.grids[0].base
    assert one.is_scale_free(explored.task)
    assert not dataclasses.replace(one, q0=1.0).is_scale_free(explored.task)
    assert not one.is_scale_free(spie.riverswim())
    assert len(searches("of-small", ["sarsa-srr"], {"beta": (2, -4)})[0]) == 2  # the sign does make a difference
    assert len(searches("of-small", ["sarsa-srr"], {"beta": (2, 4), "policy": ("softmax",)})[0]) == 2


@pytest.mark.slow
def test_the_users_own_reward_is_shown_however_it_did(spie, tmp_path):
    own = "import spie\n@spie.reward('mine')\ndef mine(visits_next):\n    return visits_next\n"
    (tmp_path / "mine.py").write_text(own)
    words = ("reward=none,count,mine", "--rewards", "mine.py", "--steps", 200, "--seeds", 4, "--confirm", 6)
    code, out, err = spie("sweep", "riverswim", *words, "--top", 1, "-o", "all.csv")
    assert code == 0, err
    rows = [line.split() for line in out.splitlines()[2:]]
    assert [row[0] for row in rows][1:] == ["mine"]
    assert rows[0][0] in ("none", "count")
    assert all(row[-2] != "-" for row in rows)  # both are confirmed
    assert "reward varies" in out


@pytest.mark.slow
def test_a_sweep_honours_the_goal_of_a_map(spie):
    words = ("alpha=0.1,0.5", "--steps", 200, "--seeds", 2, "--confirm", 3)
    code, out, err = spie("sweep", "S..#\n...G", *words, "--task", "goal")
    assert code == 0, err
    assert "total reward (more is better)" in " ".join(out.split())
    code, _, err = spie("sweep", "S..#\n...G", *words)
    assert "goals or ends G of the map are ignored: all of it is explored; --task goal seeks them" in err
    code, _, err = spie("sweep", "table1", *words, "--task", "goal")
    assert (code, "leave out --task" in err) == (2, True)


def test_numbers_of_numpy_plan_what_plain_ones_plan():
    assert sweeps.Plan(seeds=np.int64(3), top=np.int32(2), halving=True) == sweeps.Plan(seeds=3, top=2, halving=True)
    assert type(sweeps.Plan(seeds=np.int64(3)).seeds) is int
