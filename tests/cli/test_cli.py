import json
import os
import subprocess
import sys

import pytest

from spie.agents import registry as agents
from spie.paper.registry import EXPERIMENTS
from spie.paper.results import Results
from spie.rewards import reward_names
from spie.runs import backends
from spie.runs.store import Store
from spie.tasks import registry as tasks


def test_list_names_whatever_can_be_looked_up(spie):
    code, out, _ = spie("list")
    assert code == 0
    names = [*EXPERIMENTS.names(), *agents.names(), *tasks.names(), *reward_names()]
    assert {"sarsa-srr-fixed", "optimistic", "rnd", "dqn-sf-pf", "cluster-hard", "sr-r(a)", "table1"} <= set(names)
    assert [name for name in names if name not in out] == []
    assert "M[s, s'] - |M[:, s']|" in out


@pytest.mark.slow
def test_run_stores_the_results_and_prints_ours_beside_theirs(spie, tmp_path):
    code, out, err = spie("run", "table1", "--seeds", 2)
    assert code == 0
    assert "table1: 18 runs x 2 seeds, about" in err
    assert "next: spie report" in err
    (row,) = [line.split() for line in out.splitlines() if line.split()[:2] == ["riverswim", "sarsa-srr"]]
    assert "2,547,156" in row
    with Store(tmp_path / "results.db") as store:
        assert store.asked_for() == {"table1": 2}
        assert Results(store).missing("table1") == 0
    assert "all stored" in spie("run", "table1", "--seeds", 2)[2]


@pytest.mark.slow
def test_json_is_one_object_a_cell(spie):
    code, out, _ = spie("run", "table1", "--seeds", 2, "--json")
    assert code == 0
    cells = [json.loads(line) for line in out.splitlines()]
    assert len(cells) == 18
    cell = next(c for c in cells if (c["env"], c["agent"]) == ("sixarms", "sarsa-srr"))
    assert (cell["n"], cell["paper_mean"], cell["paper_spread"]) == (2, 2_199_291, 1_024_726)
    assert cell["verdict"] == "too few seeds"
    assert {"mean", "sd", "se", "median"} <= cell.keys()
    assert next(c for c in cells if c["agent"] == "constant")["verdict"] == "control"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "tabel1"], 'no experiment "tabel1"; did you mean "table1"?'),
        (["run", "table1", "--seeds", "0"], "--seeds must lie between 1 and 1,000,000, not 0"),
        (["run", "table1", "--seeds", "-3"], "--seeds must lie between"),
        (["run", "table1", "--seeds", "99999999999"], "--seeds must lie between"),
        (["run", "table1", "--seeds", "many"], "--seeds"),
        (["run", "table1", "--on", "cloud"], 'no backend "cloud"'),
        (["run", "table1", "--results", "missing/r.db"], "cannot be written"),
        (["run", "table1", "--results", "."], "cannot be written"),
        (["run", "--sedes", "3"], "--sedes"),
        (["fly"], "fly"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(spie, words, message):
    code, out, err = spie(*words)
    assert code == 2
    assert message in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("spie: ")
    assert "Traceback" not in out + err


@pytest.mark.slow
def test_ctrl_c_is_exit_code_130_and_keeps_what_is_stored(spie, monkeypatch, tmp_path):
    real = backends.save

    def save(store, a_run, *rest):
        if a_run.agent == "sarsa-fr":
            raise KeyboardInterrupt
        real(store, a_run, *rest)

    monkeypatch.setattr(backends, "save", save)
    code, _, err = spie("run", "table1", "--seeds", 2)
    assert code == 130
    assert "run again to continue" in err
    with Store(tmp_path / "results.db") as store:
        assert 0 < Results(store).missing("table1") < 18


def test_help_loads_no_heavy_library():
    code = (
        "import sys, spie.cli\n"
        "sys.argv = ['spie', '--help']\n"
        "try: spie.cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numba', 'scipy', 'matplotlib', 'torch', 'sqlite3', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def completed(*words):
    """What the shell offers for the last of the words."""
    asked = {"_SPIE_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(["spie", *words]), "COMP_CWORD": str(len(words))}
    program = [sys.executable, "-c", "from spie.cli import app; app(prog_name='spie')"]
    return subprocess.run(program, env=os.environ | asked, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("run", "tab"), ["table1", "table3", "table4", "table5", "table2"]),
        (("show", "river"), ["riverswim"]),
        (("sweep", "riverswim", "--agent", "sarsa-srr-f"), ["sarsa-srr-fixed"]),
        (("train", "Mont"), ["MontezumaRevenge"]),
        (("train", "four-rooms", "--agent", "dqn-s"), ["dqn-sr", "dqn-sf-pf"]),
        (("check", "sf-pf-p"), ["sf-pf-printed"]),
    ],
)
def test_the_shell_completes_names_from_the_registries(words, found):
    assert completed(*words) == found
