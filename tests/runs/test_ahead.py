import io
import os
import pickle
import subprocess
import sys

import pytest

import spie
from spie.engine import specialise
from spie.runs import ahead
from spie.runs.run import Run
from spie.runs.user_code import loaded_files

KEEP = spie.Keep(matrices=("M",), snapshots=(10, 20), paths=(3,))


def run_of(agent, task, seeds=5, **options):
    return Run(task.name, agent, spie.agent(agent), task, 30, seeds, **options)


def runs():
    river = spie.task("riverswim")
    return [run_of(agent, river) for agent in ("sarsa", "sarsa-sr", "sarsa-srr")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "task", "options"),
    [
        ("sarsa-srr", "riverswim", {"seeds": (3, 4), "keep": KEEP}),
        ("sarsa-srr", "of-small", {"episodes": 2}),
        ("linear-q-sf-pf", "mountain-car", {"episodes": 1}),
    ],
)
def test_one_step_of_a_run_needs_the_kernel_of_the_whole_run(agent, task, options):
    run = run_of(agent, spie.task(task), **options)
    ahead.short(run).execute()
    loaded = specialise._load.cache_info().misses
    run.execute()
    assert specialise._load.cache_info().misses == loaded


def test_processes_start_with_the_first_kernel_that_is_compiled_and_take_the_runs_that_follow(monkeypatch):
    started = []
    monkeypatch.setattr(ahead, "_started", lambda runs: started.append([run.agent for run in runs]) or FakeProcess())
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(ahead, "MOST_PROCESSES", 4)
    with ahead.CompiledAhead(all_runs := runs()) as compiling:
        compiling.begins(all_runs[0])
        assert started == []  # nothing was compiled so far
        for _ in range(2):
            for tell in specialise._WATCHING:
                tell('reward "none"')
        assert started == [["sarsa-sr"], ["sarsa-srr"]]
    assert specialise._WATCHING == []


class FakeProcess:
    stdin = io.BytesIO()

    def kill(self):
        pass

    def wait(self):
        return 0


def test_a_single_run_and_a_single_core_start_nothing(monkeypatch):
    monkeypatch.setattr(ahead, "_started", lambda runs: pytest.fail("nothing should start"))
    with ahead.CompiledAhead(runs()[:1]):
        assert specialise._WATCHING == []
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(ahead, "MOST_PROCESSES", 4)
    with ahead.CompiledAhead(runs()):
        for tell in specialise._WATCHING:
            tell('reward "none"')


@pytest.mark.slow
def test_a_process_compiles_what_it_is_given_and_goes_on_after_a_run_that_fails(tmp_path):
    """Its cache is new; what it compiled is found there, and nothing is told of it."""
    river = spie.task("riverswim")
    wrong = Run("riverswim", "sarsa", spie.agent("sarsa"), river, 30, 1, keep=spie.Keep(matrices=("no such",)))
    with pytest.raises(ValueError, match="no such"):
        wrong.execute()
    given = io.BytesIO()
    for value in (loaded_files(), 2, wrong, run_of("sarsa", river)):
        pickle.dump(value, given)
    program = "from spie.runs.ahead import compile_all; compile_all()"
    environment = os.environ | {"SPIE_CACHE": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, env=environment)
    process.stdin.write(given.getvalue())
    process.stdin.flush()  # and stays open, as long as the command is there
    assert process.wait(300) == 0
    process.stdin.close()
    (text,) = (tmp_path / "kernels").glob("*.py")
    assert list((tmp_path / "kernels" / "__pycache__").glob(f"{text.stem}.*.nbi"))
    told = []
    with specialise.watching(told.append):
        specialise._tell_of(text, "another")
        specialise._tell_of(text.with_name("not there.py"), 'reward "none"')
    assert told == ['reward "none"']
