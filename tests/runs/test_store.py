import json
import os
import random
import shutil
import sqlite3
import zlib

import numpy as np
import pytest

from spie.runs import store as module
from spie.runs.store import Store, StoreError

ARRAYS = {
    "total_reward": np.array([1.5, -2.0]),
    "visits": np.arange(6, dtype=np.int32).reshape(2, 3),
    "empty": np.zeros((2, 0), np.int32),
    "flags": np.array([True, False]),
}


def saved(path, run_id="a"):
    with Store(path) as store:
        store.save(run_id, "trace", {"steps": 5}, {"numpy": "2"}, 0.25, ARRAYS)


def test_arrays_come_back_as_they_were(tmp_path):
    saved(tmp_path / "r.db")
    with Store(tmp_path / "r.db") as store:
        assert "a" in store
        assert "b" not in store
        kind, loaded = store.load("a")
        assert kind == "trace"
        assert loaded.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert loaded[name].dtype == array.dtype
            np.testing.assert_array_equal(loaded[name], array)
        info = store.info("a")
        assert (info["spec"], info["versions"], info["seconds"]) == ({"steps": 5}, {"numpy": "2"}, 0.25)
        for read in (store.load, store.info):
            with pytest.raises(KeyError):
                read("b")


def test_a_stored_run_is_not_replaced(tmp_path):
    saved(tmp_path / "r.db")
    with Store(tmp_path / "r.db") as store:
        store.save("a", "scores", {"steps": 6}, {}, 9.0, {})
        assert store.info("a")["seconds"] == 0.25


def test_a_failed_save_leaves_nothing_of_the_run(tmp_path):
    class Broken:
        dtype = np.dtype(float)
        shape = object()  # cannot be written

        def __array__(self, dtype=None, copy=None):
            return np.zeros(1)

    with Store(tmp_path / "r.db") as store:
        with pytest.raises(TypeError):
            store.save("a", "trace", {}, {}, 0.0, {**ARRAYS, "broken": Broken()})
        assert "a" not in store
        store.save("a", "trace", {}, {}, 0.0, ARRAYS)


def test_the_number_of_seeds_asked_for_last_is_kept(tmp_path):
    with Store(tmp_path / "r.db") as store:
        store.ask_for("table1", 10)
        store.ask_for("table1", 20)
        assert store.asked_for() == {"table1": 20}


def test_two_stores_share_one_file(tmp_path):
    with Store(tmp_path / "r.db") as one, Store(tmp_path / "r.db") as two:
        one.save("a", "trace", {}, {}, 0.0, ARRAYS)
        two.save("b", "trace", {}, {}, 0.0, ARRAYS)
        assert "b" in one
        assert "a" in two


def test_the_default_file_is_results_db_or_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("SPIE_RESULTS", raising=False)
    assert module.default_path().name == "results.db"
    monkeypatch.setenv("SPIE_RESULTS", str(tmp_path / "mine.db"))
    with Store() as store:
        assert store.path == tmp_path / "mine.db"


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and long enough to be looked at as a database header " * 20)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"notes\.txt is not a results file.*--results"):
        Store(path)
    assert path.read_bytes() == before


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "r.db"
    saved(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(StoreError, match="damaged"), Store(path) as store:
        store.load("a")


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="not one of spie's"):
        Store(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("people",)]
    connection.close()


def test_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "r.db"
    saved(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"newer spie \(its version 99, ours 5\); update spie"):
        Store(path)


OLD = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, spec TEXT NOT NULL, versions TEXT NOT NULL, seconds REAL NOT NULL,
    stored TEXT NOT NULL DEFAULT (datetime('now'))
) WITHOUT ROWID;
CREATE TABLE arrays (
    run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT NOT NULL, dtype TEXT NOT NULL,
    shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE experiments (name TEXT PRIMARY KEY, seeds INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO runs (id, spec, versions, seconds) VALUES ('a', '{}', '{}', 1.0);
PRAGMA user_version = 1;
"""


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        ("INSERT INTO experiments VALUES ('table1', 1000), ('figure4', 10)", "spie run figure4 table1"),
        ("", "the same commands"),
    ],
)
def test_a_file_of_0_1_0_is_refused_in_one_line_that_says_what_to_run_again(tmp_path, asked, again):
    path = tmp_path / "r.db"
    connection = sqlite3.connect(path)
    connection.executescript(OLD + asked)
    connection.close()
    with pytest.raises(StoreError) as refusal:
        Store(path)
    assert str(refusal.value) == (
        f"{path} was written by spie 0.1.0, whose runs have other ids; "
        f"give another file with --results, or move this one away, and run again: {again}"
    )
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT id FROM runs").fetchall() == [("a",)]  # it stays as it was
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    connection.close()


def test_a_file_whose_making_fails_is_made_by_the_next_command(tmp_path, monkeypatch):
    path = tmp_path / "r.db"
    monkeypatch.setattr(module, "_SCHEMA", module._SCHEMA + "CREATE TABLE runs (x)")
    with pytest.raises(StoreError, match="already exists"):
        Store(path)
    monkeypatch.undo()
    saved(path)
    with Store(path) as store:
        assert "a" in store


def test_an_array_of_objects_is_refused_before_anything_is_stored(tmp_path):
    with Store(tmp_path / "r.db") as store:
        with pytest.raises(ValueError, match="seeds is an array of Python objects, which cannot be stored"):
            store.save("a", "trace", {}, {}, 0.0, ARRAYS | {"seeds": np.array([10**24])})
        assert "a" not in store


def test_the_kind_of_a_result_is_its_name_in_the_store(tmp_path):
    with Store(tmp_path / "r.db") as store:
        for kind in ("trace", "episodes", "scores"):
            store.save(kind, kind, {}, {}, 0.0, ARRAYS)
        assert [store.load(kind)[0] for kind in ("trace", "episodes", "scores")] == ["trace", "episodes", "scores"]


@pytest.mark.parametrize("where", ["missing/r.db", "."])  # permissions do not bind root, these do
def test_a_place_that_cannot_be_written_is_named(tmp_path, where):
    with pytest.raises(StoreError, match=r"cannot be written.*--results"):
        Store(tmp_path / where)


def test_a_full_disk_loses_nothing_that_was_stored(tmp_path):
    path = tmp_path / "r.db"
    saved(path)
    with Store(path) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages}")
        noise = np.random.default_rng(0).normal(size=10_000)
        with pytest.raises(StoreError, match="the disk is full; what was stored is safe"):
            store.save("b", "trace", {}, {}, 0.0, {"noise": noise})
        assert "b" not in store
        np.testing.assert_array_equal(store.load("a")[1]["visits"], ARRAYS["visits"])
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store.save("b", "trace", {}, {}, 0.0, {"noise": noise})


# Damage


def rows(path):
    """Every number of a store, by run and name, with its type and shape."""
    with Store(path) as store:
        asked, found = store.asked_for(), {}
        for run_id in ("a", "b"):
            if run_id in store:
                arrays = store.load(run_id)[1]
                found[run_id] = {name: (x.dtype.str, x.shape, x.tobytes()) for name, x in arrays.items()}
                found[run_id]["info"] = store.info(run_id)
        return asked, found


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "sound.db"
    noise = np.random.default_rng(0).normal(size=600)
    with Store(path) as store:
        store.ask_for("table1", 12)
        store.save("a", "trace", {"steps": 5}, {"numpy": "2"}, 0.25, ARRAYS)
        store.save("b", "scores", {"steps": 6}, {"numpy": "2"}, 0.5, {"values": noise, "seeds": np.arange(600)}, 1.5)
    return path


def test_a_damaged_file_is_refused_in_one_line_or_says_what_it_said_before(sound, tmp_path):
    whole, before = sound.read_bytes(), rows(sound)
    rng, refused = random.Random(0), []
    for case in range(300):
        path, data = tmp_path / f"{case}.db", bytearray(whole)
        if case % 10 == 0:
            del data[rng.randrange(len(data)) :]
        for _ in range(rng.choice([1, 1, 1, 20])):
            if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            asked, found = rows(path)
        except StoreError as error:
            refused.append((str(path) in str(error), str(error).count("\n")))
            continue
        assert asked == (before[0] if data else {}), case  # an empty file is a new one
        assert found.items() <= before[1].items(), case  # a run may be lost, and is then run again
    assert set(refused) == {(True, 0)}
    assert len(refused) > 30


def change(path, statement, *values):
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


DAMAGE = {
    "other bits": ("UPDATE arrays SET data = ? WHERE name = 'values'", zlib.compress(bytes(4800))),
    "no zlib": ("UPDATE arrays SET data = ? WHERE name = 'values'", b"nonsense"),
    "text": ("UPDATE arrays SET data = 'text' WHERE name = 'values'",),
    "other byte order": ("UPDATE arrays SET dtype = '>f8' WHERE name = 'values'",),
    "other type": ("UPDATE arrays SET dtype = '|O' WHERE name = 'values'",),
    "other shape": ("UPDATE arrays SET shape = '[300, 2]' WHERE name = 'values'",),
    "a number as shape": ("UPDATE arrays SET shape = 3 WHERE name = 'values'",),
    "an array less": ("DELETE FROM arrays WHERE name = 'values'",),
    "another name": ("UPDATE arrays SET name = 'value' WHERE name = 'values'",),
    "another kind": ("UPDATE runs SET kind = 'trace' WHERE id = 'b'",),
    "another spec": ("UPDATE runs SET spec = '{\"steps\": 7}' WHERE id = 'b'",),
    "other times": ("UPDATE runs SET seconds = 9 WHERE id = 'b'",),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_names_the_run_and_repair_removes_it_and_no_other(sound, spie, how):
    change(sound, *DAMAGE[how])
    before = rows_of_a(sound)
    with Store(sound) as store, pytest.raises(StoreError) as refusal:
        store.load("b")
    assert str(refusal.value) == (
        f"{sound}: the stored run b is damaged; remove it with spie repair --results {sound}, "
        "then run the same command as before, which runs it again"
    )
    code, out, err = spie("repair", "--results", sound)
    assert (code, out) == (0, "removed b\n1 runs are sound, 1 were damaged\n")
    assert err == "next: the same commands as before, which run again what is missing\n"
    with Store(sound) as store:
        assert "b" not in store
        assert not store._connection.execute("SELECT count(*) FROM arrays WHERE run = 'b'").fetchone()[0]
        store.save("b", "scores", {}, {}, 0.0, ARRAYS)
        store.load("b")
    assert rows_of_a(sound) == before
    assert spie("repair", "--results", sound)[1] == "2 runs are sound, 0 were damaged\n"


def rows_of_a(path):
    with Store(path) as store:
        return [(name, x.tobytes()) for name, x in store.load("a")[1].items()]


@pytest.mark.parametrize(
    ("how", "left"),
    [
        ("UPDATE experiments SET seeds = 13 WHERE name = 'table1'", "figure4"),
        ("DELETE FROM experiments WHERE name = 'table1'", "figure4"),
        ("DELETE FROM experiments WHERE name = ''", "figure4, table1"),
        ("DELETE FROM experiments", "nothing"),
    ],
)
def test_a_damaged_list_of_experiments_is_named_and_repaired(sound, spie, how, left):
    with Store(sound) as store:
        store.ask_for("figure4", 3)
    change(sound, how)
    for use in (Store.asked_for, lambda store: store.ask_for("table1", 12)):
        with Store(sound) as store, pytest.raises(StoreError) as refusal:
            use(store)
        cure = f"spie repair --results {sound}"
        assert str(refusal.value) == f"{sound}: the list of experiments is damaged; mend it with {cure}"
    told = f"the list of experiments was damaged; left in it: {left}; spie run NAME puts others back\n"
    assert spie("repair", "--results", sound)[1] == "2 runs are sound, 0 were damaged\n" + told
    with Store(sound) as store:
        assert ", ".join(store.asked_for()) == left.replace("nothing", "")
        store.ask_for("table1", 12)
        assert store.asked_for()["table1"] == 12


@pytest.mark.parametrize("asked", [{}, {"table1": 12, "figure4": 3}])
def test_a_list_whose_page_lost_its_rows_is_no_empty_list(tmp_path, asked):
    """One byte of the page's head counts the rows: SQLite itself sees nothing wrong with none."""
    path = tmp_path / "r.db"
    with Store(path) as store:
        for name, seeds in asked.items():
            store.ask_for(name, seeds)
        (page,) = store._connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'experiments'").fetchone()
        size = store._pragma("page_size")
    data = bytearray(path.read_bytes())
    data[(page - 1) * size + 3 : (page - 1) * size + 5] = bytes(2)
    path.write_bytes(data)
    with Store(path) as store, pytest.raises(StoreError, match="the list of experiments is damaged"):
        store.asked_for()


def test_a_list_of_version_4_is_taken_over(sound):
    change(sound, "DELETE FROM experiments WHERE name = ''")
    change(sound, "PRAGMA user_version = 4")
    for _ in range(2):
        assert rows(sound)[0] == {"table1": 12}


def hostile(path, dtype, shape, data):
    """A store whose hashes fit what they should not."""
    with Store(path) as store:
        array = ("c", "values", dtype, shape, data)
        store._insert(("c", "scores", "{}", "{}", 0.0, None, "2026-01-01 00:00:00"), [array])
        return store


@pytest.mark.parametrize(
    ("dtype", "shape", "data"),
    [
        ("<f8", "[1]", zlib.compress(bytes(10**8))),  # a bomb: 100 MB where 8 bytes are declared
        ("<f8", "[10000000000000]", zlib.compress(bytes(8))),
        ("<f8", "[-1]", zlib.compress(bytes(8))),
        ("<f8", "[1e3]", zlib.compress(bytes(8))),
        ("<f8", "[" * 100_000, zlib.compress(bytes(8))),
        ("O", "[1]", zlib.compress(bytes(8))),
        ("no type", "[1]", zlib.compress(bytes(8))),
        ("<f8", "[1]", zlib.compress(bytes(8)) + b"more"),
        ("<f8", "[1]", zlib.compress(bytes(8))[:-2]),
    ],
)
def test_what_fits_its_hash_and_is_no_array_is_damage_too(tmp_path, dtype, shape, data):
    path = tmp_path / "r.db"
    hostile(path, dtype, shape, data)
    with Store(path) as store, pytest.raises(StoreError, match="the stored run c is damaged"):
        store.load("c")


# Files of others, and of older versions


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("version", [0, 2, 3])
def test_another_programs_database_is_not_touched(tmp_path, mode, version):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    before = path.read_bytes(), sorted(os.listdir(tmp_path))
    with pytest.raises(StoreError, match="not one of spie's"):
        Store(path)
    assert (path.read_bytes(), sorted(os.listdir(tmp_path))) == before


def test_a_newer_file_is_not_touched(tmp_path):
    path = tmp_path / "r.db"
    saved(path)
    change(path, "PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer spie"):
        Store(path)
    assert path.read_bytes() == before


VERSION_2 = """
CREATE TABLE runs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, spec TEXT NOT NULL, versions TEXT NOT NULL, seconds REAL NOT NULL,
    stored TEXT NOT NULL DEFAULT (datetime('now'))
) WITHOUT ROWID;
CREATE TABLE arrays (
    run TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE, name TEXT NOT NULL, dtype TEXT NOT NULL,
    shape TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE TABLE experiments (name TEXT PRIMARY KEY, seeds INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO runs (id, kind, spec, versions, seconds) VALUES ('a', 'trace', '{"steps": 5}', '{}', 0.25);
INSERT INTO experiments VALUES ('table1', 20);
PRAGMA user_version = 2;
"""


def test_a_file_of_version_2_is_brought_up_to_date(tmp_path):
    path = tmp_path / "r.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_2)
    for name, x in ARRAYS.items():
        row = ("a", name, x.dtype.str, json.dumps(x.shape), zlib.compress(x.tobytes()))
        connection.execute("INSERT INTO arrays VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    for _ in range(2):
        with Store(path) as store:
            assert store.asked_for() == {"table1": 20}
            assert store.info("a")["seconds"] == 0.25
            assert store.info("a")["cpu_seconds"] is None
            kind, loaded = store.load("a")
            assert kind == "trace"
            for name, array in ARRAYS.items():
                np.testing.assert_array_equal(loaded[name], array)
            assert {name for (name,) in store._connection.execute("SELECT name FROM sqlite_master")} >= {*module.TABLES}
            assert store._pragma("application_id") == module.APPLICATION


def test_a_new_file_is_known_as_ours_even_where_its_making_was_killed(tmp_path):
    path = tmp_path / "r.db"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {module.APPLICATION}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    saved(path)
    shutil.copy(path, tmp_path / "copy.db")
    with Store(tmp_path / "copy.db") as store:
        assert "a" in store
