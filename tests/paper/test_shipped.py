import dataclasses
import gzip
import json
import re
from typing import ClassVar

import numpy as np
import pytest

import spie as library
from made_up import SEEDS, a_trace, fill, shorten_search
from spie.agents.base import Agent
from spie.files import json_hash
from spie.page import report
from spie.paper import comparison, shipped
from spie.paper.claims import Claim, Evidence, judge
from spie.paper.contenders import Contender
from spie.paper.experiment import Experiment, in_blocks
from spie.paper.packed import decode, encode
from spie.paper.registry import EXPERIMENTS, get_experiment, register_experiment
from spie.paper.results import Results
from spie.paper.sections import Curve, CurvePanels, Look, Maps, Panel, Row, Span, Table, Text
from spie.runs.backends import execute
from spie.runs.run import Run
from spie.runs.store import Store

CURVE = Curve(*np.arange(8.0).reshape(4, 2))
PARTS = (
    Table(
        "a table", ("agent", "mean", "verdict"), [Row(("sr", 1.25, None), "control"), Row(("x", Span("none", 2)))], 1
    ),
    Text("", ["a line", "another <b>"]),
    CurvePanels(
        "curves",
        [
            Panel(
                "one",
                {"sr": CURVE, "k=2": CURVE._replace(look=Look("sr", "k=2"))},
                "x",
                "y",
                {"best": 2.0},
                (1.0,),
                "x",
            )
        ],
    ),
)


@dataclasses.dataclass(frozen=True)
class Quick(Agent):
    """Earns what its settings say, a little less with every seed."""

    version: ClassVar[int] = 1
    reward: float = 1.0

    def run(self, task, steps, seeds, **_):
        return a_trace(np.zeros((seeds, 3)), total_reward=self.reward - 0.01 * np.arange(seeds))


def runs(seeds):
    return [Run("riverswim", f"quick-{i}", Quick(reward=float(i)), library.riverswim(), 10, seeds) for i in range(12)]


def earned(found):
    mean = float(found(Contender("quick", "quick-3"), "riverswim").total_reward.mean())
    return [Evidence("earned", mean, mean - 0.1, mean + 0.1, floor=1.0)]


def section(experiment, results):
    means = [
        Row((name, float(trace.total_reward.mean())))
        for name, (_, trace) in results.found("quick")["riverswim"].items()
    ]
    return [Table("what they earned", ("agent", "mean"), means), *PARTS]


CLAIM = Claim("quick-claim", "Section 4", "", "It earns.", "the mean: above 1", earned)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """What ships lies in an empty folder, and an experiment more is known."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    monkeypatch.setattr(Quick, "version", 1)
    with EXPERIMENTS.restored():
        quick = Experiment("quick", "Quick", section, runs, seeds=SEEDS, claims=(CLAIM,), ships=section)
        register_experiment(quick)
        yield tmp_path / "shipped"


@pytest.fixture
def file(folder, tmp_path):
    """A file that ships."""
    with Store(tmp_path / "made.db") as store:
        store.ask_for("quick", SEEDS)
        list(execute(runs(SEEDS), store))
        return shipped.ship(get_experiment("quick"), Results(store))


@pytest.fixture
def short_page(monkeypatch):
    """The other experiments are not on the page, so that it is drawn at once."""
    monkeypatch.setattr(report.registry, "experiments", lambda: [get_experiment("quick")])
    monkeypatch.setattr(report.registry, "claims", lambda: [CLAIM])
    monkeypatch.setattr(comparison, "experiments", list)


@pytest.fixture
def results(tmp_path):
    """Of a user who has run nothing."""
    with Store(tmp_path / "mine.db") as store:
        yield Results(store)


def same(a, b):
    """Whether two parts say the same; lists and tuples are alike."""
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.array_equal(a, b)


def test_parts_come_back_as_they_were():
    for part in PARTS:
        again = decode(json.loads(json.dumps(encode(part))))
        assert type(again) is type(part)
        assert same(again, part)


def test_numbers_that_json_does_not_have_are_dashes_and_words():
    table = Table("", ("a",), [Row((np.float64("nan"), np.inf, np.int64(3), np.float32(0.5)))])
    assert decode(encode(table)).rows[0].values == [None, "inf", 3, 0.5]
    curve = Curve(np.array([1.0]), *[np.array([np.nan])] * 3)
    (panel,) = decode(encode(CurvePanels("", [Panel("", {"a": curve}, "", "")]))).panels
    assert np.isnan(panel.curves["a"].mean).all()


def test_pictures_do_not_ship():
    with pytest.raises(TypeError, match="a Maps does not ship; give tables, texts and curves"):
        encode(Maps("", {}))


def test_a_file_says_how_it_was_made(file):
    content = opened(file)["content"]
    assert content["experiment"] == "quick"
    assert content["seeds"] == SEEDS
    assert content["agents"] == {"Quick": 1}
    assert content["cpu_hours"] >= 0
    assert content["commits"]
    assert content["processors"]
    assert content["spie"] == [library.__version__]
    assert [run["spec"]["settings"] for run in content["runs"]][:3] == [{"reward": 0.0}, {}, {"reward": 2.0}]
    assert content["runs"][2]["mean"] == pytest.approx(2 - 0.01 * (SEEDS - 1) / 2)
    assert re.fullmatch(r"run on \d{4}-\d\d-\d\d, commits? \w+\+?", shipped.read(file).mark)


def opened(file):
    return json.loads(gzip.decompress(file.read_bytes()))


def damage(file, how):
    data = file.read_bytes()
    if how == "half":
        file.write_bytes(data[: len(data) // 2])
    elif how == "bits":
        file.write_bytes(b"\xff\xfe" * 50)
    elif how == "flipped":
        file.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    elif how == "plain":
        file.write_bytes(gzip.decompress(data))
    elif how == "list":
        file.write_bytes(gzip.compress(b"[1, 2]"))
    elif how == "deep":
        file.write_bytes(gzip.compress(b"[" * 200_000))
    else:
        whole = opened(file)
        if how == "number":
            whole["content"]["runs"][0]["mean"] += 1e-9
        else:
            whole["content"] |= {"newer": {"format": 4}, "unknown": {"experiment": "quack"}}[how]
            whole["sha256"] = json_hash(whole["content"])
        file.write_bytes(gzip.compress(json.dumps(whole).encode()))


NO_FILE = "it is no results file; install spie again, or make it again with --ship"
REFUSALS = {
    **dict.fromkeys(("half", "bits", "flipped", "plain", "list", "deep"), NO_FILE),
    "number": "its content does not fit its hash; install spie again, or make it again with --ship",
    "newer": "it has format 4, this spie reads up to 3; update spie",
    "unknown": 'no experiment "quack"; did you mean "quick"?',
}


@pytest.mark.parametrize(("how", "why"), REFUSALS.items())
def test_a_file_that_cannot_be_trusted_is_refused_in_one_line(file, spie, how, why):
    damage(file, how)
    assert shipped.available()[0] == {}
    (line,) = shipped.available()[1]
    assert line.startswith(f"{file} is refused: {why}")
    code, out, err = spie("run", "quick", "--check")
    assert (code, out, err) == (2, "", f"spie: {line}\n")


@pytest.mark.usefixtures("short_page")
def test_the_page_shows_what_ships_where_nothing_was_run(file, results):
    text = page_section(results)
    assert "not run" in text
    assert f'<details class="shipped" open><summary>Shipped with spie: {shipped.read(file).mark}</summary>' in text
    assert "12 runs" in text
    assert "<code>spie run quick --check</code>" in text
    assert "what they earned" in text
    assert "another &lt;b&gt;" in text
    assert text.count('role="img"') == 1


def page_section(results):
    return report.page(results).split('<section id="quick">')[1].split("</section>")[0]


@pytest.mark.usefixtures("short_page")
def test_the_users_own_runs_stand_first_and_say_whether_the_bits_are_the_same(file, results):
    list(execute(runs(SEEDS), results.store))
    results.store.ask_for("quick", SEEDS)
    text = page_section(Results(results.store))
    assert '<details class="shipped"><summary>' in text
    assert "The runs above are these: 12 of 12 came out with the same bits" in text
    assert text.count("what they earned") == 2  # caption and label of one table


@pytest.mark.usefixtures("short_page")
def test_other_seeds_of_the_user_stand_beside_what_ships(file, results):
    list(execute(runs(3), results.store))
    results.store.ask_for("quick", 3)
    text = page_section(Results(results.store))
    assert "came out with the same bits" not in text
    assert text.count("what they earned") == 4


def verdict(results):
    judgements = judge(results, [CLAIM])
    return shipped.find("quick").judged(judgements[0])


def test_a_claim_that_the_user_did_not_judge_is_judged_by_what_ships(file, results):
    found = verdict(results)
    assert found.verdict == "reproduced"
    assert found.reason == f"holds (as shipped: {shipped.read(file).mark})"
    assert "earned: 2.9" in found.figure


def test_the_users_own_verdict_comes_before_what_ships(file, results):
    results.store.ask_for("quick", 11)
    list(execute(runs(11), results.store))
    assert verdict(Results(results.store)).reason == "holds"


@pytest.mark.usefixtures("short_page")
def test_a_file_of_an_older_agent_is_shown_as_such_and_counts_in_no_verdict(file, results, monkeypatch, spie):
    monkeypatch.setattr(Quick, "version", 2)
    said = "made by version 1 of Quick, not run again since"
    assert said in page_section(results)
    assert verdict(results).verdict == "not run"
    assert spie("run", "quick", "--check") == (
        2, "", f"spie: what ships of quick cannot be checked: {said}; run it again with --ship\n"
    )  # fmt: skip


def test_a_file_of_other_runs_than_todays_counts_in_no_verdict(file, results):
    with EXPERIMENTS.restored():
        del EXPERIMENTS._values["quick"]
        more = Experiment("quick", "Quick", section, lambda seeds: [*runs(seeds)[:1], longer(seeds)], claims=(CLAIM,))
        register_experiment(more)
        assert shipped.find("quick").stale == "made with other settings than today's, not run again since"
        assert verdict(results).verdict == "not run"


def longer(seeds):
    return dataclasses.replace(runs(seeds)[0], steps=11)


def test_a_claim_that_now_says_something_else_is_not_judged_by_what_ships(file, results):
    (judgement,) = judge(results, [dataclasses.replace(CLAIM, measured="the mean: above 2")])
    assert shipped.find("quick").judged(judgement).verdict == "not run"


def test_a_claim_beyond_our_budget_has_the_figure_that_ships(file, results):
    beyond = dataclasses.replace(CLAIM, unmeasured="not run at the paper's budget")
    content = opened(file)["content"]
    (judgement,) = judge(results, [beyond])
    assert (judgement.figure, judgement.verdict) == ("-", "not run at the paper's budget")
    assert shipped.Shipped(content).judged(judgement).figure.startswith("earned: 2.")
    content["claims"][CLAIM.id]["figure"] = "-"  # nothing of it was measured there either
    assert shipped.Shipped(content).judged(judgement) == judgement


def test_a_check_runs_a_tenth_again_and_finds_the_same_bits(file, spie):
    code, out, err = spie("run", "quick", "--check")
    assert code == 0
    assert "a random tenth: 2 runs" in err
    *lines, last = out.splitlines()
    assert [line.endswith(": the same bits") for line in lines] == [True, True]
    assert last == "quick: 2 of 12 runs made again"
    assert spie("run", "--check")[1].endswith("quick: 2 of 12 runs made again\n")  # all that ships


@pytest.mark.parametrize(("shift", "said", "exit_code"), [(1e-9, "within the intervals", 0), (1.0, "differs", 1)])
def test_a_check_tells_other_bits_from_other_results(file, spie, monkeypatch, shift, said, exit_code):
    run = Quick.run
    monkeypatch.setattr(
        Quick, "run", lambda self, *words, **more: run(dataclasses.replace(self, reward=self.reward + shift), *words)
    )
    code, out, _ = spie("run", "quick", "--check")
    assert code == exit_code
    assert out.count(f": {said}\n") == 2
    assert ("2 runs differ from what ships" in out) == (exit_code == 1)


def test_what_traces_were_given_since_a_file_was_made_does_not_count_as_other_bits(file):
    run, whole = runs(SEEDS)[3], opened(file)["content"]
    made, entry = run.execute(), next(entry for entry in whole["runs"] if entry["id"] == run.id)
    curve = np.zeros((SEEDS, 20), np.float32)
    since = dataclasses.replace(made, reward_curve=curve)
    assert shipped.Shipped(whole).confirm(run, since) == "the same bits"
    assert shipped.Shipped(whole).confirm(run, dataclasses.replace(since, steps=since.steps + 1)) != "the same bits"
    del entry["of"]  # as in older files, some of which were made with the curve and some without
    assert shipped.Shipped(whole).confirm(run, since) == "the same bits"
    entry["digest"] = shipped.digest(since)
    assert shipped.Shipped(whole).confirm(run, since) == "the same bits"
    assert shipped.Shipped(whole).confirm(run, made) == "within the intervals"
    assert shipped.Shipped(whole).confirm(run, dataclasses.replace(since, reward_curve=curve + 1)) != "the same bits"


def test_a_measure_that_is_another_today_is_not_compared(file):
    run, whole = runs(SEEDS)[3], opened(file)["content"]
    next(entry for entry in whole["runs"] if entry["id"] == run.id)["measure"] = "states seen"
    assert shipped.Shipped(whole).confirm(run, run.execute()) == "the same bits"
    other = dataclasses.replace(run.execute(), total_reward=np.full(SEEDS, 9.0))
    assert shipped.Shipped(whole).confirm(run, other).startswith("other bits, and measured otherwise since")


def test_a_check_needs_a_file(spie):
    assert spie("run", "quick", "--check") == (
        2, "", "spie: nothing ships of quick, so there is nothing to check; what ships: none\n"
    )  # fmt: skip


def test_the_command_writes_the_file(spie, folder):
    code, out, _ = spie("run", "quick", "--ship")
    assert code == 0
    assert out.splitlines()[-1] == str(folder / "quick.json.gz")
    assert shipped.find("quick").content["title"] == "Quick"


def test_an_experiment_that_ships_nothing_says_so_before_the_work(spie):
    code, out, err = spie("run", "table1", "--ship")
    assert (code, out) == (2, "")
    assert err == "spie: table1 does not say what it ships; leave out --ship, or see spie/paper/shipped.py\n"


def test_files_that_would_be_too_large_are_refused(monkeypatch, spie, folder):
    monkeypatch.setattr(shipped, "MOST_BYTES", 1000)
    code, _, err = spie("run", "quick", "--ship")
    assert code == 2
    assert "quick.json.gz would have" in err
    assert not folder.exists()


def test_what_follows_from_a_search_can_be_checked_without_the_search(tmp_path, monkeypatch):
    shorten_search(monkeypatch)
    with Store(tmp_path / "r.db") as store:
        fill(store, "tuned", reward=lambda run: len(run.agent))
        shipped.ship(get_experiment("tuned"), Results(store))
        planned = Results(store).runs("tuned")
    file = shipped.find("tuned")
    assert file.stale == ""
    found = shipped.recorded_runs(file)
    assert found.keys() <= file.ids
    assert found.keys() >= {run.id for run in planned if run.role != "search"}


@pytest.mark.usefixtures("short_page")
def test_without_results_the_page_shows_what_ships(file, spie):
    code, _, err = spie("report")
    assert code == 0
    assert err.startswith("no results in results.db yet, so the page shows what ships with spie\n")


def test_the_files_of_the_package_are_whole_and_small(monkeypatch):
    monkeypatch.undo()
    files = list(shipped.FOLDER.iterdir())
    found, problems = shipped.available()
    assert problems == []
    assert {shipped.path_of(key) for key in found} == set(files)
    assert sum(path.stat().st_size for path in files) <= shipped.MOST_BYTES
    for one in found.values():
        assert one.parts


# A file that grows


def growing(done):
    """A file with the first runs of an experiment, as a machine leaves it that is stopped after these."""
    EXPERIMENTS._values["quick"] = dataclasses.replace(get_experiment("quick"), grows=True)
    with Store("one.db") as store:
        store.ask_for("quick", SEEDS)
        list(execute([runs(SEEDS)[i] for i in done], store))
        return shipped.ship(get_experiment("quick"), Results(store))


def test_a_file_that_grows_has_what_is_finished_and_names_what_is_missing(spie, results, short_page):
    growing(range(10))
    file = shipped.find("quick")
    assert file.stale == ""
    assert file.unfinished == "unfinished: 10 of 12 runs; missing: riverswim quick-10, riverswim quick-11"
    assert file.unfinished in page_section(results)
    assert len(file.parts[0].rows) == 10
    assert verdict(results).verdict == "reproduced"  # its run is there
    code, out, _ = spie("run", "quick", "--check")
    assert (code, out.splitlines()[-1]) == (0, "quick: 1 of 10 runs made again")


def test_runs_that_an_experiment_has_since_been_given_are_missing_in_a_file_that_grows(spie):
    growing(range(12))
    assert shipped.find("quick").unfinished == ""
    more = [dataclasses.replace(run, env="sixarms", steps=11) for run in runs(SEEDS)]
    planned = [*runs(SEEDS), *more]
    EXPERIMENTS._values["quick"] = dataclasses.replace(get_experiment("quick"), runs=lambda seeds: planned)
    file = shipped.find("quick")
    assert (file.stale, file.unfinished) == ("", "unfinished: 12 of 24 runs; missing: 12 of sixarms")


def test_another_machine_adds_to_the_file_and_runs_nothing_twice(spie, monkeypatch):
    path = growing((0, 1, 2, 5))
    before = {run["id"]: run for run in shipped.find("quick").content["runs"]}
    ran, run = [], Quick.run
    monkeypatch.setattr(Quick, "run", lambda self, *words, **more: ran.append(self.reward) or run(self, *words, **more))
    code, _, err = spie("run", "quick", "--ship", "--results", "two.db")
    assert code == 0, err
    assert f"quick: 4 runs taken from {path}" in err.replace("\n", "")
    assert ran == [3.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
    file = shipped.find("quick")
    after = {run["id"]: run for run in file.content["runs"]}
    assert {name: after[name] for name in before} == before  # what was there, to the last number
    assert (len(after), file.unfinished, file.stale) == (12, "", "")
    assert len(file.parts[0].rows) == 12


def test_what_the_file_of_another_experiment_has_is_taken_from_there_and_kept_once(spie, monkeypatch):
    path = growing((0, 1, 2))
    tables = {"section": lambda *_: list(PARTS), "ships": lambda *_: list(PARTS), "claims": ()}
    also = dataclasses.replace(get_experiment("quick"), name="also", runs=lambda seeds: runs(seeds)[1:4], **tables)
    register_experiment(also)
    ran, run = [], Quick.run
    monkeypatch.setattr(Quick, "run", lambda self, *words, **more: ran.append(self.reward) or run(self, *words, **more))
    for results in ("two.db", "three.db"):  # again on a machine that has nothing: its own file has the rest
        code, _, err = spie("run", "also", "--ship", "--results", results)
        assert (code, ran) == (0, [3.0]), err
        assert f"also: 2 runs taken from {path}" in err.replace("\n", "")
        entries = shipped.find("also").content["runs"]
        assert [entry["agent"] for entry in entries] == ["quick-1", "quick-2", "quick-3"]
        assert ["left" in entry for entry in entries] == [False, False, True]
    assert "also: 1 runs taken from" in err.replace("\n", "")


def test_a_file_without_what_runs_left_grows_only_where_the_results_are(spie, monkeypatch):
    EXPERIMENTS._values["quick"] = dataclasses.replace(get_experiment("quick"), keeps=False)
    path = growing((0, 1, 2))
    before = path.read_bytes()
    assert not any("left" in entry for entry in shipped.find("quick").content["runs"])
    code, _, err = spie("run", "quick", "--ship", "--results", "two.db")
    cure = "ship from the results that have them, or run them here first, without --ship"
    assert (code, err) == (2, f"spie: {path} has 3 runs that these results lack; {cure}\n")
    assert path.read_bytes() == before
    assert spie("run", "quick", "--ship", "--results", "one.db")[0] == 0
    file = shipped.find("quick")
    assert (len(file.ids), file.unfinished, file.stale) == (12, "", "")


def test_a_file_that_grows_is_written_after_every_run(spie, monkeypatch):
    growing((0, 1))

    def run(self, *words, **more):
        assert len(shipped.find("quick").content["runs"]) == self.reward  # all before are there
        if self.reward == 5:
            raise ValueError("the power is gone")
        return honest(self, *words, **more)

    honest = Quick.run
    monkeypatch.setattr(Quick, "run", run)
    code, _, err = spie("run", "quick", "--ship", "--results", "two.db")
    assert (code, "the power is gone" in err) == (2, True)
    assert len(shipped.find("quick").content["runs"]) == 5


def test_other_seeds_are_other_runs_and_do_not_take_the_place_of_a_file(spie):
    path = growing((0,))
    whole = path.read_bytes()
    code, out, err = spie("run", "quick", "--ship", "--seeds", "3", "--results", "two.db")
    assert (code, out) == (2, "")
    cure = f"run with --seeds {SEEDS} to add to it, or remove it first"
    assert err == f"spie: {path} has runs of {SEEDS} seeds, which 3 leave out; {cure}\n"
    assert path.read_bytes() == whole


def test_in_blocks_a_file_grows_by_seeds(spie, monkeypatch):
    def split(quick, size):
        return dataclasses.replace(quick, runs=in_blocks(runs, size), grows=True)

    def run(self, task, steps, seeds, **_):
        numbers = np.arange(seeds) if isinstance(seeds, int) else np.array(seeds)
        ran.append((self.reward, *numbers))
        trace = a_trace(np.zeros((len(numbers), 3)), total_reward=self.reward - 0.01 * numbers)
        return dataclasses.replace(trace, seeds=numbers)

    ran: list[tuple[float, ...]] = []
    monkeypatch.setattr(Quick, "run", run)
    EXPERIMENTS._values["quick"] = split(get_experiment("quick"), 2)
    assert spie("run", "quick", "--ship", "--seeds", "2", "--results", "one.db")[0] == 0
    assert ran == [(float(i), 0, 1) for i in range(12)]
    before = shipped.find("quick").content["runs"]
    ran.clear()
    words = ("run", "quick", "--ship", "--seeds", "5", "--results", "two.db", "--only", "quick-7")
    code, _, err = spie(*words)
    assert code == 0, err
    assert ran == [(7.0, 2, 3), (7.0, 4)]
    file = shipped.find("quick")
    assert file.content["runs"][:12] == before  # nothing of what was there is lost
    assert file.unfinished.startswith("unfinished: 14 of 36 runs; missing: 22 of riverswim")
    with Store("two.db") as store:
        cells = Results(store).found("quick")["riverswim"]
        assert cells["quick-7"].run.n_seeds == 5
        np.testing.assert_allclose(cells["quick-7"].trace.total_reward, 7 - 0.01 * np.arange(5))
        assert cells["quick-6"].run.n_seeds == 2
        assert Results(store).trace("quick", "riverswim", "quick-7").seeds.tolist() == [0, 1, 2, 3, 4]


def test_a_file_of_an_older_agent_is_not_added_to(spie, monkeypatch):
    growing((0, 1))
    monkeypatch.setattr(Quick, "version", 2)
    assert spie("run", "quick", "--ship", "--results", "two.db")[0] == 0
    assert shipped.find("quick").content["agents"] == {"Quick": 2}
    assert shipped.find("quick").unfinished == ""


def test_a_run_in_a_file_that_is_not_what_its_digest_says_is_refused(spie):
    path = growing((0, 1))
    content = opened(path)["content"]
    content["runs"][0]["left"] = content["runs"][1]["left"]
    path.write_bytes(shipped.written(content))
    code, _, err = spie("run", "quick", "--ship", "--results", "two.db")
    assert (code, "is not what its digest says" in err) == (2, True)


def test_only_some_runs_are_made_and_the_rest_is_missing(spie, monkeypatch):
    path = growing((0,))
    words = ("run", "quick", "--ship", "--results", "two.db", "--only", "riverswim", "--only", "quick-4")
    code, _, err = spie(*words, "--only", "quick-2")
    assert code == 0, err
    file = shipped.find("quick")
    assert [run["agent"] for run in file.content["runs"]] == ["quick-0", "quick-2", "quick-4"]
    assert file.unfinished == "unfinished: 3 of 12 runs; missing: " + ", ".join(
        f"riverswim quick-{i}" for i in (1, 3, 5, 6, 7, 8, 9, 10, 11)
    )
    assert "quick-4" in spie("run", "quick", "--check", "--only", "quick-4")[1]
    whole = path.read_bytes()
    code, _, err = spie(*words, "--only", "quick-22")
    assert code == 2
    assert err.startswith('spie: no task or agent of quick "quick-22"; did you mean "quick-2"? Known: quick-0, ')
    assert path.read_bytes() == whole


def test_a_task_without_the_agent_asked_for_is_one_clear_line(spie, monkeypatch):
    two = [dataclasses.replace(run, env=f"task-{i}") for i, run in enumerate(runs(SEEDS)[:2])]
    EXPERIMENTS._values["quick"] = dataclasses.replace(get_experiment("quick"), runs=lambda seeds: two)
    code, _, err = spie("run", "quick", "--only", "task-0", "--only", "quick-1")
    assert (code, err) == (2, "spie: no run of quick is of quick-1 and task-0; leave out one --only\n")
