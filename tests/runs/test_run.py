import dataclasses
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

import spie
from spie.agents.base import Agent, Keep
from spie.rewards import get_reward
from spie.runs import backends, user_code
from spie.runs.backends import execute
from spie.runs.run import Run, arrays_of, load, save
from spie.runs.store import Store
from spie.runs.user_code import load_rewards
from spie.trace import Scores, Trajectory


def a_run(**changes):
    fields = {
        "env": "riverswim",
        "agent": "sarsa",
        "settings": spie.Sarsa(reward="none"),
        "task": spie.riverswim(),
        "steps": 20,
        "seeds": 3,
    }
    return Run(**(fields | changes))


def test_the_id_is_of_what_determines_the_result_and_nothing_else():
    same = a_run().id
    assert a_run(env="another name", agent="another").id == same
    changes = [
        {"settings": spie.Sarsa(reward="none", alpha=0.2)},
        {"task": spie.sixarms()},
        {"steps": 21},
        {"seeds": 4},
        {"seeds": (0, 1, 5)},
        {"episodes": 2},
        {"keep": Keep(snapshots=(5,))},
        {"keep": Keep(paths=(0,))},
        {"keep": Keep(matrices=("Q",))},
    ]
    ids = {a_run(**change).id for change in changes}
    assert len(ids) == len(changes)
    assert same not in ids


@pytest.mark.parametrize("field", dataclasses.fields(spie.Sarsa), ids=lambda field: field.name)
def test_every_setting_is_part_of_the_id(field):
    other = {"reward": "sr", "learned": False, "next_action": "carry", "ties": "first", "bonus_from": "previous"}
    other |= {"sparse": True, "policy": "softmax", "target": "max"}
    other |= {"count": "sr-column", "standardised": True, "potential": True}
    needed = {
        "inverse_temperature": {"policy": "softmax"},
        "lapse": {"policy": "softmax"},
        "count": {"reward": "none", "optimism": 1.0},
        "standardised": {"reward": "count"},
        "potential": {"reward": "count", "standardised": True},
    }
    base = spie.Sarsa(**needed.get(field.name, {"reward": "none"}))
    changed = dataclasses.replace(base, **{field.name: other.get(field.name, 0.25)})
    assert a_run(settings=changed).id != a_run(settings=base).id


def test_an_option_that_is_added_at_its_default_changes_no_id():
    """As a later release might: the same class with one more field."""
    later = dataclasses.make_dataclass(
        "Sarsa",
        [("curiosity", float, 0.5)],
        bases=(spie.Sarsa,),
        frozen=True,
        kw_only=True,
        namespace={"__module__": spie.Sarsa.__module__},
    )
    assert type(later()).__name__ == "Sarsa"
    for settings in ({}, {"reward": "none", "alpha": 0.3}):
        assert a_run(settings=later(**settings)).id == a_run(settings=spie.Sarsa(**settings)).id
    assert a_run(settings=later(curiosity=0.6)).id != a_run(settings=later()).id


def test_a_raised_version_changes_the_id(monkeypatch):
    before = a_run().id
    monkeypatch.setattr(spie.Sarsa, "version", spie.Sarsa.version + 1)
    assert a_run().id != before


def test_an_agent_of_another_package_that_has_the_name_of_ours_is_another():
    theirs = dataclasses.make_dataclass(
        "Sarsa", [], bases=(spie.Sarsa,), frozen=True, namespace={"__module__": "my_lab.agents"}
    )
    assert a_run(settings=theirs()).id != a_run(settings=spie.Sarsa()).id


def test_the_text_of_a_users_reward_is_part_of_the_id():
    ids = []
    for body in ("return -M_next", "return -2 * M_next"):
        user_code.register_files({"mine.py": f"import spie\n@spie.reward('mine')\ndef mine(M_next):\n    {body}\n"})
        ids.append(a_run(settings=spie.Sarsa(reward="mine")).id)
    assert len({*ids}) == 2


def test_numbers_of_numpy_give_the_id_of_plain_ones():
    numpys = spie.Sarsa(reward="none", alpha=np.float64(0.1), q0=np.float64(1.0))
    assert a_run(settings=numpys).id == a_run(settings=spie.Sarsa(reward="none", alpha=0.1, q0=1.0)).id
    assert a_run(seeds=tuple(np.arange(3))).id == a_run(seeds=(0, 1, 2)).id
    assert a_run(seeds=np.int64(3), steps=np.int32(7)).id == a_run(seeds=3, steps=7).id


def test_the_id_tells_environments_apart_by_their_tables():
    mdp = spie.riverswim()
    ids = {a_run(task=mdp).id}
    for name in ("prob", "reward", "start"):
        array = np.array(getattr(mdp, name))
        if name == "reward":
            array[0, 0, 1, 0] = 6
        elif name == "prob":
            array[0, 0] = [0.6, 0.4, 0]
        else:
            array[:] = 1 / 6
        ids.add(a_run(task=dataclasses.replace(mdp, **{name: array})).id)
    assert len(ids) == 4


@pytest.mark.parametrize(("most", "size"), [(0, 1), (127, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)])
@pytest.mark.parametrize(("least", "which"), [(0, "one way"), (-1, "resets"), (-1, "lengths")])
def test_counts_and_paths_are_stored_in_little_room_and_come_back_as_they_were(tmp_path, least, which, most, size):
    from made_up import a_trace  # here: other tests run this file as a program of its own

    states = np.array([0, 1, 2, 2], np.int32)
    path = Trajectory(states[:-1], np.zeros(3, np.int32), states[1:], np.zeros(3), np.ones(3))
    episodes = Trajectory(np.array([0, 4, 2], np.int32), *dataclasses.astuple(path)[1:])  # a step that begins elsewhere
    shorter = Trajectory(*(array[:2] for array in dataclasses.astuple(path)))
    kept = {"one way": {0: path, 7: path}, "resets": {0: path, 7: episodes}, "lengths": {0: path, 7: shorter}}[which]
    run, made = a_run(), a_trace([[0, most, least]], paths=kept)
    with Store(tmp_path / "r.db") as store:
        save(store, run, made, 0.1)
        raw, loaded = store.load(run.id)[1], load(store, run)
    signed = size if least == 0 or most in (0, 127) else {255: 2, 256: 2, 65_535: 4, 65_536: 4}[most]
    assert raw["first_visit"].itemsize == signed
    found = {name: array.shape for name, array in raw.items() if name.endswith("/states")}
    whole = {"one way": {"paths/states": (2, 1)}, "resets": {"paths/states": (2, 3)}}
    assert found == whole.get(which, {"paths/0/states": (3,), "paths/7/states": (2,)})
    assert [*loaded.paths] == [0, 7]
    for name, array in arrays_of(made).items():
        assert arrays_of(loaded)[name].dtype == array.dtype, name
        np.testing.assert_array_equal(arrays_of(loaded)[name], array, err_msg=name)


@pytest.mark.slow
def test_a_stored_trace_comes_back_whole(tmp_path):
    run = a_run(task=spie.grid("of-small", task="goal"), episodes=2, keep=Keep(snapshots=(3, 9), paths=(0, 2)))
    with Store(tmp_path / "r.db") as store:
        assert list(execute([run], store)) == [run]
        loaded, direct = load(store, run), run.execute()
    for field in dataclasses.fields(direct):
        value = getattr(direct, field.name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, field.name), value)
    assert loaded.paths.keys() == {0, 2}
    np.testing.assert_array_equal(loaded.paths[2].states, direct.paths[2].states)
    for name, array in arrays_of(direct).items():
        assert (arrays_of(loaded)[name].dtype, arrays_of(loaded)[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(arrays_of(loaded)[name], array, err_msg=name)
    assert loaded.M is None
    with Store(tmp_path / "older.db") as store:  # of a version without curves
        save(store, run, dataclasses.replace(direct, reward_curve=None), 1.0)
        assert load(store, run).reward_curve is None


@pytest.mark.slow
def test_what_is_stored_is_not_run_again(tmp_path, monkeypatch):
    runs = [a_run(), a_run(steps=30)]
    with Store(tmp_path / "r.db") as store:
        list(execute(runs[:1], store))
        executed = []
        monkeypatch.setattr(
            Run, "execute", lambda self, *args: executed.append(self) or self.settings.run(self.task, 1)
        )
        list(execute(runs, store))
    assert executed == [runs[1]]


@pytest.mark.slow
def test_processes_give_the_same_as_serial(tmp_path):
    runs = [a_run(), a_run(steps=30)]
    with Store(tmp_path / "a.db") as a, Store(tmp_path / "b.db") as b:
        list(execute(runs, a, on="serial"))
        assert {run.id for run in execute(runs, b, on="processes")} == {run.id for run in runs}
        for run in runs:
            np.testing.assert_array_equal(load(a, run).total_reward, load(b, run).total_reward)


def test_an_unknown_backend_is_named(tmp_path):
    with Store(tmp_path / "r.db") as store, pytest.raises(ValueError, match='no backend "cloud"'):
        list(execute([a_run()], store, on="cloud"))


def numbers(path):
    """All numeric columns of a store."""
    with Store(path) as store:
        return store._connection.execute(
            "SELECT run, name, dtype, shape, data FROM arrays ORDER BY run, name"
        ).fetchall()


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends_as_one_that_was_not(tmp_path):
    kills = int(os.environ.get("SPIE_KILLS", "4"))
    command = [sys.executable, "-m", "spie.cli", "run", "table1", "figure1", "--seeds", "5", "--results"]
    subprocess.run([*command, tmp_path / "whole.db"], check=True, capture_output=True)
    rng = random.Random(0)
    killed = 0
    while killed < kills:
        process = subprocess.Popen(
            [*command, tmp_path / "killed.db"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            process.wait(rng.uniform(0.6, 2.5))
            (tmp_path / "killed.db").unlink()  # finished too soon: begin again
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
    subprocess.run([*command, tmp_path / "killed.db"], check=True, capture_output=True)
    assert numbers(tmp_path / "killed.db") == numbers(tmp_path / "whole.db")


@dataclass(frozen=True)
class Long(Agent):
    """Stands in for an agent that takes long: it says so, reports, and waits to be seen."""

    resumable: ClassVar[bool] = True

    def run(self, task, steps, seeds, *, session, **_):
        session.folder.mkdir(parents=True)
        session.progress(0.25)
        time.sleep(1.5)  # longer than others look away
        return Scores(np.arange(seeds), np.full((1, seeds), float(steps)))


@pytest.mark.parametrize("on", ["serial", "processes"])
def test_a_long_run_reports_how_far_it_is_and_its_folder_goes_once_it_is_stored(tmp_path, on):
    runs = [Run("", "", Long(), spie.riverswim(), steps, 2) for steps in (3, 4)]
    heard = []
    with Store(tmp_path / "r.db") as store:
        for run in execute(runs, store, on, progress=lambda run, share: heard.append((run.steps, share))):
            assert not (tmp_path / "r.db-runs" / run.id).exists()
    assert {(3, 0.25), (4, 0.25)} <= set(heard)


@dataclass(frozen=True)
class Picky(Agent):
    """Stands in for an agent that fails with some numbers of steps, of itself or in a function of the user's."""

    def run(self, task, steps, seeds, **_):
        if steps == 2:
            raise ValueError("two is too few")
        if steps == 3:
            get_reward("three").function(0.5)
        if steps == 4:
            raise Strange(1, 2)
        return Scores(np.arange(seeds), np.full((1, seeds), float(steps)))


class Strange(Exception):
    """One that cannot be sent to another process."""

    def __init__(self, one, two):
        super().__init__("four")


@pytest.mark.parametrize("on", ["serial", "processes"])
def test_a_run_that_fails_is_told_of_once_the_others_are_stored(tmp_path, on):
    runs, told = [Run("swim", "picky", Picky(), spie.riverswim(), steps, 2) for steps in (1, 2, 5, 6)], []
    with Store(tmp_path / "r.db") as store:
        with pytest.raises(ValueError, match=r"^1 of 4 runs failed, 3 are stored: swim picky: two is too few$"):
            list(execute(runs, store, on, failing=lambda run, error: told.append((run.steps, str(error)))))
        assert told == [(2, "two is too few")]
        assert [run.steps for run in runs if run.id in store] == [1, 5, 6]
        with pytest.raises(ValueError, match=r"^two is too few$"):  # alone, in its own words
            list(execute(runs, store, on))


@pytest.mark.parametrize("on", ["serial", "processes"])
def test_a_run_that_fails_in_a_users_file_or_strangely_is_told_of_too(tmp_path, on):
    file = tmp_path / "three.py"
    file.write_text("import spie\n@spie.reward('three')\ndef three(M_next):\n    return 1 / 0\n")
    load_rewards(file)
    of = {steps: Run("swim", "picky", Picky(), spie.riverswim(), steps, 2) for steps in (1, 3, 4, 5)}
    place = f"{file}: line 4, ZeroDivisionError: division by zero"
    with Store(tmp_path / "r.db") as store:
        with pytest.raises(ValueError, match=f"^1 of 2 runs failed, 1 are stored: swim picky: {place}$"):
            list(execute([of[3], of[1]], store, on))
        with pytest.raises((RuntimeError, Strange), match="four") as error:
            list(execute([of[4], of[5]], store, on))
        assert "1 of 2 runs failed, 1 are stored: swim picky" in error.value.__notes__
        assert [steps for steps, run in of.items() if run.id in store] == [1, 5]


@dataclass(frozen=True)
class Endless(Agent):
    """Stands in for an agent that works for ever, and shows that it does: its file is always new."""

    folder: str

    def run(self, task, steps, seeds, **_):
        while True:
            Path(self.folder, f"worker-{steps}").touch()
            time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one worker would wait for another")
@pytest.mark.parametrize("how", ["kill", "ctrl-c", "error", "deaf", "deaf and alone"])
def test_workers_end_with_the_command_and_begin_nothing_more(tmp_path, how):
    program = """
import sys, spie
from test_run import Deaf, Endless, Failing
from spie.runs.backends import execute
from spie.runs.run import Run
from spie.runs.store import Store

if __name__ == "__main__":
    folder, how = sys.argv[1:]
    first = Failing(folder) if how == "error" else Endless(folder)
    agents = [first, *[Endless(folder)] * 9]
    if how.startswith("deaf"):
        agents = [Deaf(folder)] * (1 if how.endswith("alone") else 10)
    runs = [Run("", "", agent, spie.riverswim(), steps, 1) for steps, agent in enumerate(agents, 1)]
    with Store(folder + "/r.db") as store:
        list(execute(runs, store, "processes"))
"""
    (tmp_path / "command.py").write_text(program)
    here = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(tmp_path / "command.py"), str(tmp_path), how]
    process = subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": here}, start_new_session=True, stderr=subprocess.PIPE, text=True
    )

    def times():
        return [path.stat().st_mtime for path in tmp_path.glob("worker-*")]

    try:
        assert within_a_minute(times)
        if how == "kill":
            process.kill()
        elif how != "error":
            os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    if how == "error":
        assert "OSError: it fails" in errors

    def quiet():
        before = times()
        time.sleep(2)
        return times() == before

    assert within_a_minute(quiet)
    assert len(times()) <= (os.cpu_count() or 1)  # no more than had begun


@dataclass(frozen=True)
class Deaf(Endless):
    """Hears no Ctrl-C, as compiled code does not."""

    def run(self, *words, **more):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().run(*words, **more)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("name", "code", "on"), [("SIGTERM", 143, "processes"), ("SIGHUP", 129, "serial"), ("SIGINT", 130, "serial")]
)
def test_a_command_that_is_told_to_stop_says_so_and_keeps_what_is_stored(tmp_path, name, code, on):
    command = [sys.executable, "-m", "spie.cli", "run", "table1", "--seeds", "5000", "--on", on, "--results"]
    process = subprocess.Popen(
        [*command, tmp_path / "r.db"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )

    def stored():
        if not (tmp_path / "r.db").exists():
            return 0
        with Store(tmp_path / "r.db") as store:
            return store._connection.execute("SELECT count(*) FROM runs").fetchone()[0]

    try:
        assert within_a_minute(stored)
        process.send_signal(vars(signal)[name])  # to the command alone
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    by = "" if name == "SIGINT" else f" by {name}"
    again = f"spie run table1 --seeds 5000 --on {on} --results {tmp_path / 'r.db'}"
    assert errors.splitlines()[-1] == f"stopped{by}; what is stored stays, continue with: {again}"
    assert process.returncode == code
    assert stored()


@dataclass(frozen=True)
class Failing(Endless):
    """As soon as another one is at work, because the machine does."""

    def run(self, task, steps, seeds, **_):
        while not list(Path(self.folder).glob("worker-*")):
            time.sleep(0.01)
        raise OSError("it fails")


def within_a_minute(holds):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def test_the_time_of_a_run_that_was_killed_and_went_on_is_that_of_all_its_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(backends, "NOTED", 0.0)
    folder = tmp_path / "run"

    class Work(SimpleNamespace):
        settings = SimpleNamespace(resumable=True)

        def execute(self, session):
            folder.mkdir(exist_ok=True)
            began = time.process_time()
            while time.process_time() - began < 0.05:
                pass
            session.progress(0.5)
            if self.killed:
                raise KeyboardInterrupt
            return "result"

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            backends._timed(Work(killed=True), spie.Session(folder=folder))
    result, seconds, cpu_seconds = backends._timed(Work(killed=False), spie.Session(folder=folder))
    assert result == "result"
    assert min(seconds, cpu_seconds) >= 0.15
    (folder / ".worked").write_text("[100.0")  # half of it: as if nobody had worked on it before
    assert backends._timed(Work(killed=False), spie.Session(folder=folder))[2] < 100
