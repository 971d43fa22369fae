import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from spie.agents import registry as agents
from spie.behaviour.model import MODELS
from spie.cli import stopping
from spie.data import DATASETS
from spie.dropin.known import OURS, SUMMARIES, bonus_names
from spie.paper.registry import EXPERIMENTS
from spie.paper.results import Results
from spie.runs import backends
from spie.runs.store import Store
from spie.tasks import registry as tasks


def test_list_names_whatever_can_be_looked_up(spie):
    code, out, _ = spie("list")
    assert code == 0
    names = [*EXPERIMENTS.names(), *agents.names(), *tasks.names(), *bonus_names(), *MODELS.names(), *DATASETS]
    assert {"sarsa-srr-fixed", "optimistic", "rnd", "dqn-sf-pf", "cluster-hard", "sr-r(a)", "table1"} <= set(names)
    assert [name for name in names if name not in out] == []
    assert "M[s, s'] - |M[:, s']|" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert {*SUMMARIES} == {*OURS}


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
    assert "continue with: spie " in err
    with Store(tmp_path / "results.db") as store:
        assert 0 < Results(store).missing("table1") < 18


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_command_that_is_over_leaves_signals_as_they_were():
    """A process may run several commands, as these tests do; a Ctrl-C of one is not the first of another."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    threads = threading.active_count()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), stopping.stopped_by_signals() as heard:
            signal.raise_signal(signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        time.sleep(1.5 * stopping.ONE_WISH)  # a second one would end the process by now
    assert {number: signal.getsignal(number) for number in handlers} == handlers
    assert signal.set_wakeup_fd(-1) == -1
    assert threading.active_count() == threads


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_reward_that_never_returns_is_named_at_the_first_ctrl_c_and_left_at_the_second(tmp_path):
    """It is compiled: where Python waits for it, no handler of Python's can end the process."""
    file = tmp_path / "stuck.py"
    loop = "    x = 1.0\n    while x > 0.0:\n        x *= 1.5\n    return x\n"
    file.write_text(f"import spie\n\n\n@spie.reward('stuck')\ndef stuck(M_next):\n{loop}")
    words = ["sweep", "riverswim", "--agent", "sarsa-sr", "reward=stuck", "--rewards", str(file), "--seeds", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spie.cli", *words], env=os.environ | {"SPIE_CACHE": str(tmp_path)}, cwd=tmp_path,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not list(tmp_path.glob("kernels/**/*.nbi")):  # Numba's list of what it has compiled
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        said = next(line for line in process.stderr if "Ctrl-C" in line)
        process.send_signal(signal.SIGINT)
        _, last = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    waits = f'compiled code cannot be interrupted; waiting for reward "stuck" of {file}, line 4'
    assert said == f"{waits}; press Ctrl-C again to stop at once\n"
    assert last == f"stopped; what is stored stays, continue with: spie {' '.join(words)}\n"
    assert process.returncode == 130


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
        (("train", "four-rooms", "--agent", "dqn-s"), ["dqn-sr", "dqn-sf-pf", "dqn-sp-novelty"]),
        (("check", "sf-pf-p"), ["sf-pf-printed"]),
    ],
)
def test_the_shell_completes_names_from_the_registries(words, found):
    assert completed(*words) == found


def test_the_version_is_said(spie):
    import spie as package

    assert spie("--version") == (0, f"spie {package.__version__}\n", "")


@pytest.mark.slow
def test_cells_of_an_experiment_go_into_a_table_file(spie, tmp_path):
    code, out, err = spie("run", "table4", "--seeds", 2, "-o", "cells.csv")
    assert code == 0, err
    assert "total reward (more is better), 2 seeds" in " ".join(out.split())
    head, *rows = (tmp_path / "cells.csv").read_text().splitlines()
    assert head.startswith("experiment,env,agent,variant,role,measure,n,mean,")
    assert len(rows) == 16
    code, _, err = spie("run", "table4", "--seeds", 2, "-o", "cells.xlsx")
    assert (code, "rows are written as .csv or .parquet" in err) == (2, True)


def test_figures_are_written_as_files(spie, tmp_path):
    code, out, err = spie("report", "--figures", "figures", "--format", "svg,png")
    assert code == 0, err
    written = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"figure5-1.svg", "figure5-1.png", "figure2-1.svg"} <= written
    assert f"{len(written)} figures in " in out
    assert not (tmp_path / "report.html").exists()
    code, _, err = spie("report", "--figures", "figures", "--format", "bmp")
    assert (code, '--format must be svg, pdf or png, or several with commas, not "bmp"' in err) == (2, True)


WITHOUT_EXTRAS = """
import importlib.util, sys
missing, find = dict.fromkeys(("torch", "stable_baselines3")), importlib.util.find_spec
importlib.util.find_spec = lambda name, *package: None if name in missing else find(name, *package)
sys.modules.update(missing)
from spie.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("run", "dropin", "--seeds", "1"), "sb3"),
        (("run", "pixels", "--seeds", "1"), "deep"),
        (("compare", "--env", "CartPole-v1", "--agent", "ppo"), "sb3"),
    ],
)
def test_what_is_not_installed_is_said_before_anything_runs(words, extra, tmp_path):
    """In a process of its own, because what was imported before would not be missed."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_EXTRAS, *words]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2, run.stderr
    assert f'pip install "spie-rl[{extra}]"' in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr
