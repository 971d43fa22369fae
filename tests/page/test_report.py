import dataclasses
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from spie import cli
from spie.page import report
from spie.paper import EXPERIMENTS, Results, deep, dropin, get_experiment, ledger, tabular
from spie.paper import published as paper
from spie.runs.run import save
from spie.runs.store import Store
from spie.tasks import grid
from spie.tasks.continuous import ContinuousTask
from spie.trace import EpisodeTrace, Scores, Trace, Trajectory

SEEDS = 12  # enough for verdicts


def walk(run, seed):
    """A random walk in place of an agent."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(run.task.n_actions, size=run.steps)
    states = [int(np.argmax(run.task.start))]
    for a in actions:
        states.append(int(run.task.next[states[-1], a, 0]))
    states = np.array(states, np.int32)
    return Trajectory(states[:-1], actions.astype(np.int32), states[1:], np.zeros(run.steps), -rng.random(run.steps))


def made_up_episodes(run):
    """The same for a run on a continuous task: ever more episodes reach the goal."""
    n, rng, episodes = run.n_seeds, np.random.default_rng(len(run.agent)), run.episodes or 40
    ends = rng.random((n, episodes)) < np.linspace(0, 1, episodes)
    steps = np.where(ends, 100, run.steps).astype(np.int32)
    return EpisodeTrace(
        repr(run.settings), np.arange(n), steps, ends.astype(float), -0.1 * steps, ends, np.full(n, -1, np.int64)
    )


def made_up(run, reward):
    """A trace of the shape that the run would leave, with a mean reward of our choice and a spread of 1."""
    if isinstance(run.task, ContinuousTask | dropin.Task):
        return made_up_episodes(run)
    if run.is_search:
        return Scores(np.arange(run.n_seeds), np.full((len(run.settings), run.n_seeds), float(reward)))
    n, S = run.n_seeds, getattr(run.task, "n_states", 0)
    rng = np.random.default_rng(len(run.agent))
    spread = np.resize([-1.0, 1.0], n)
    first = rng.permuted(np.tile(np.arange(S, dtype=np.int32) * 9, (n, 1)), axis=1)
    visits = rng.integers(1, 90, size=(n, S)).astype(np.int32)
    episodes = (n, run.episodes or 3)  # of a deep agent: as many as it took
    return Trace(
        seeds=np.arange(n),
        total_reward=reward + spread,
        total_bonus=np.zeros(n),
        steps=np.full(n, run.steps),
        visits=visits,
        first_visit=np.where(first > run.steps, -1, first),
        episode_steps=rng.integers(20, 90, size=episodes).astype(np.int32),
        truncated=np.zeros(n, np.int32),
        snapshots=np.stack([visits * k // 9 for k in range(len(run.snapshots))], axis=1)
        if run.snapshots
        else np.zeros((n, 0, S), np.int32),
        episode_rewards=rng.integers(2, size=episodes).astype(float)
        if isinstance(run.settings, deep.OnPixels | deep.OnAtari)
        else None,
        paths={seed: walk(run, seed) for seed in run.record},
    )


def published(run):
    """The paper's mean of a cell, whatever the reading; 1 where it prints none."""
    return tabular.CELLS.get((run.env, run.agent.split()[0]), paper.Cell(1.0, 1.0)).mean


def fill(store, name, seeds=SEEDS, reward=published, runs=None):
    """Store made-up traces of an experiment, or of its first so many runs."""
    store.ask_for(name, seeds)
    while todo := [run for run in get_experiment(name).planned(seeds, store)[:runs] if run.id not in store]:
        for run in todo:
            save(store, run, made_up(run, reward(run)), 0.5)


def shorten_search(monkeypatch):
    monkeypatch.setattr(paper, "SWEEP", {name: values[:2] for name, values in paper.SWEEP.items()})


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "results.db") as store:
        yield store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A page with every experiment on it."""
    folder = tmp_path_factory.mktemp("page")
    with Store(folder / "results.db") as store, pytest.MonkeyPatch.context() as monkeypatch:
        shorten_search(monkeypatch)
        for name, experiment in EXPERIMENTS.items():
            if experiment.runs(1):
                fill(store, name)
        report.write(Results(store), folder / "report.html")
    return folder / "report.html"


def section(page, name):
    """The text of one section."""
    return page.split(f'<section id="{name}">')[1].split("</section>")[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2_547_156.4, "2 547 156"),
        (1000, "1 000"),
        (999.5, "999.5"),
        (0.256, "0.26"),
        (-3.0, "−3"),
        (None, "–"),
        (float("nan"), "–"),
        ("sarsa", "sarsa"),
        (True, "True"),
    ],
)
def test_numbers_are_written_for_reading(value, text):
    assert report.number(value).replace("\N{NARROW NO-BREAK SPACE}", " ") == text


def test_cells_are_counted_as_agreeing_differing_or_not_run(store):
    fill(store, "table3", reward=lambda run: published(run) * (9 if run.agent == "sarsa-srr-fixed" else 1))
    rows = {row.values[0][:7]: tuple(row.values[1:]) for row in report.tally(Results(store)).rows}
    assert rows["Table 3"] == (4, 2, 0)  # SARSA-SRR on both chains is far off
    assert rows["Table 1"] == (0, 0, 10)
    assert rows["Table 4"] == (0, 0, 8)
    assert rows["Table 2"] == (0, 0, 30)
    assert rows["all"] == (4, 2, 48)


def test_too_few_seeds_give_no_verdict(store):
    fill(store, "table3", seeds=ledger.FEWEST_SEEDS - 1)
    assert tuple(report.tally(Results(store)).rows[-1].values[1:]) == (0, 0, 54)
    assert {c.verdict for c in report.comparisons(Results(store), "table3").values()} == {"too few seeds"}


def test_what_was_not_run_shows_its_command_and_no_number(store):
    page = report.page(Results(store))
    for name, experiment in EXPERIMENTS.items():
        if experiment.runs(1):
            text = section(page, name)
            assert "not run" in text
            assert f"<code>spie run {name} --seeds {experiment.seeds}</code>" in text
            assert "<table" not in text
            assert "<svg" not in text
    assert "<svg" in section(page, "figure5")  # nothing to run
    assert "0.005" in section(page, "table5")


def test_the_network_is_drawn_from_its_own_shapes(store):
    (drawn,) = report.figure_2(Results(store), "figure2")
    assert drawn.caption.startswith("26.37 million parameters")
    for shape in ("4×84×84", "64×40×40", "64×20×20", "64×10×10", "1024", "2048", "18", "6400", "1×84×84"):
        assert f">{shape}</text>" in drawn.svgs[0], shape


def test_scores_within_a_smaller_budget_are_called_not_comparable(store):
    fill(store, "recon")
    fill(store, "recon@100000000")
    page = report.page(Results(store))
    small, whole = section(page, "recon"), section(page, "recon@100000000")
    assert "20 000 frames" in small.replace(report.THIN, " ")
    assert "Not comparable" in small
    assert "Not comparable" not in whole
    for text in (small, whole):
        assert "551.5" in text
        assert "398.5" in text


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("recon", "not comparable: 20,000 frames"), ("recon@100000000", "the paper's budget")],
)
def test_a_command_shows_scores_of_games_beside_the_papers_and_no_nan(store, name, verdict):
    fill(store, name)
    run = get_experiment(name).runs(SEEDS)[0]
    cell = cli.summary(get_experiment(name), run, Results(store))
    assert (cell["paper_mean"], cell["verdict"]) == (1530.0, verdict)
    assert cell["measure"] == "mean reward of the last 100 episodes that ended"
    json.dumps(cell, allow_nan=False)


def test_the_image_tasks_show_every_agent_against_every_other(store):
    fill(store, "pixels", reward=lambda run: 5 + 9 * (run.agent == "count"))
    tables = [part for part in report.pixels(Results(store), "pixels") if isinstance(part, report.Table)]
    assert len(tables) == 2 * 3  # two tasks: measures, then two comparisons
    measures = {row.values[0]: row.values for row in tables[0].rows}
    assert measures["dqn"][3] == "5.0"
    assert measures[f"count ({report.CONTROL})"][3] == "14.0"
    for table in tables[1:3]:
        names = list(table.columns[1:])
        chances = {
            (row.values[0].removesuffix(f" ({report.CONTROL})"), name): row.values[1 + i]
            for row in table.rows
            for i, name in enumerate(names)
        }
        assert chances["dqn", "dqn"] == "–"
        for (a, b), p in chances.items():
            if a != b:
                assert float(p.rstrip("*")) + float(chances[b, a].rstrip("*")) == pytest.approx(1, abs=0.011)


def test_a_sentence_says_whom_an_agent_beats_and_to_whom_it_loses():
    ours, rivals = np.full(5, 3.0), {"a": np.full(5, 1.0), "b": np.full(5, 3.0), "c": np.full(5, 9.0), "d": np.ones(5)}
    assert report.against(ours, rivals) == "above a and d, undecided against b, below c"


def test_what_is_unfinished_says_how_far_it_is_and_shows_no_number(store):
    fill(store, "table1", reward=lambda run: 123_456_789, runs=3)
    page = report.page(Results(store))
    text = section(page, "table1")
    assert "unfinished: 3 of 18 runs stored, continue with" in text
    assert f"<code>spie run table1 --seeds {SEEDS}</code>" in text
    assert "<table" not in text
    assert "123" not in text
    assert tuple(report.tally(Results(store)).rows[0].values[1:]) == (0, 0, 10)


def test_a_cell_that_differs_is_put_beside_the_other_readings(store):
    times_the_paper = {  # on RiverSwim; SR agrees under no reading, FR under one, which breaks SRR
        "sarsa-sr": 0.1,
        "sarsa-sr next_action=carry": 9,
        "sarsa-sr ties=first": 5,
        "sarsa-sr m0=1.0": 9,
        "sarsa-fr": 0.5,
        "sarsa-fr next_action=carry": 9,
        "sarsa-fr m0=1.0": 9,
        "sarsa-fr bonus_from=previous": 9,
        "sarsa-fr reward=fr-next": 9,
        "sarsa-srr ties=first": 9,
    }

    def reward(run):
        return published(run) * (times_the_paper.get(run.agent, 1) if run.env == "riverswim" else 1)

    def reasons():
        (lines,) = (part for part in report.reward_tables(Results(store), "table1") if isinstance(part, report.Lines))
        return [line.replace("\N{NARROW NO-BREAK SPACE}", " ") for line in lines.lines]

    fill(store, "table1", reward=reward)
    assert [line.partition(" Other ")[0] for line in reasons()] == [
        "sarsa-sr on riverswim: ours is 0.1 times the paper's.",
        "sarsa-fr on riverswim: ours is 0.5 times the paper's.",
    ]
    assert all(line.endswith("Other readings are not compared yet: spie run readings.") for line in reasons())

    fill(store, "readings", reward=reward)
    sr, fr = reasons()
    assert "None of 3 other readings agrees; nearest: ties=first (5 985 375, " in sr  # 5 times 1 197 075
    assert fr.endswith("Another reading agrees: ties=first (1 547 243, 0.0 apart).")
    counts = {row.values[0]: row.values[1:] for row in report.reading_tables(Results(store), "readings")[0].rows}
    assert counts["ties=first"] == (22, 20, 20, 1, 1)  # cells; agree as read here, under it; explained, broken
    assert counts["next_action=carry"] == (22, 20, 20, 0, 0)


def test_another_reading_changes_its_option_and_nothing_else():
    for (env, agent), settings in tabular.READINGS.items():
        name, _, option = agent.partition(" ")
        default = dataclasses.asdict(tabular.settings(env, name))
        changed = {f"{key}={value}" for key, value in dataclasses.asdict(settings).items() if value != default[key]}
        assert changed == ({option} if option else set())


def test_controls_and_the_ceiling_are_rows_of_their_own(store):
    fill(store, "table4")
    table = report.reward_tables(Results(store), "table4")[0]
    kinds = {row.values[0]: row.kind for row in table.rows}
    assert kinds == {
        "sarsa-srr": "",
        "sarsa-srr-a": "",
        "sarsa-srr-b": "",
        "sarsa-srr-c": "",
        "constant": "control",
        "optimistic": "control",
        "count": "control",
        "random": "control",
        "best policy": "total",
    }
    marks = {row.values[2].text for row in table.rows if row.kind == "control"}
    assert marks == {"control, not in the paper"}
    for row in table.rows:  # a span stands for as many cells
        assert sum(getattr(value, "columns", 1) for value in row.values) == len(table.columns)


def test_the_order_of_tuned_agents_is_judged_pair_by_pair_against_the_printed_one(store, monkeypatch):
    """SARSA-SR-PR and SARSA-SRR change places with what Table 1 prints for RiverSwim, SARSA and SARSA-FR are level."""
    means = {"sarsa-srr": 9e5, "sarsa-sr-pr": 8e5, "sarsa": 5e4, "sarsa-fr": 5e4, "sarsa-sr": 4e4, "constant": 1e6}
    shorten_search(monkeypatch)
    fill(store, "tuned", reward=lambda run: means.get(run.agent, 1e3))
    table, lines, *_ = report.tuned_chains(Results(store), "tuned")
    assert [row.values[0] for row in table.rows][:3] == [
        "constant (control, not in the paper)",
        "sarsa-srr",
        "sarsa-sr-pr",
    ]
    assert lines.lines[1:] == [
        "Of 10 pairs 7 are as printed and 1 undecided; the other way round: sarsa-sr-pr above sarsa-srr, "
        "sarsa-sr above sarsa.",
        "Of all agents and controls constant earns most; not told apart from it: none.",
    ]
    for row in table.rows:  # a span stands for as many cells
        assert sum(getattr(value, "columns", 1) for value in row.values) == len(table.columns)


def test_shortest_paths_are_those_of_the_map():
    assert report.shortest_paths(grid("of-small", task="goal")) == [18]  # from corner to corner
    assert report.shortest_paths(grid("of-small", task="moving-goal")) == [18, 9, 9]
    assert report.shortest_paths(grid("S.#.\n..#G\n....", task="goal")) == [6]  # round the wall: 2 down, 3 right, 1 up


def test_the_animation_is_the_recorded_path(store):
    fill(store, "figure6", seeds=2)
    results = Results(store)
    shown = report.animation(results)
    path = results.trace("figure6", "cluster-simple-large", "sarsa-srr").paths[0]
    state = {(row, column): s for s, (row, column, *_) in enumerate(shown["squares"])}
    row, column, *_ = shown["squares"][shown["start"]]
    ways = {"u": (-1, 0), "r": (0, 1), "d": (1, 0), "l": (0, -1), ".": (0, 0)}
    replayed = []
    for letter in shown["moves"]:
        row, column = row + ways[letter][0], column + ways[letter][1]
        replayed.append(state[row, column])
    np.testing.assert_array_equal(replayed, path.next_states)
    assert shown["squares"][shown["end"]][3] == 1  # the brightest is where it is
    assert sum(length for _, _, length in shown["stays"]) == len(shown["moves"]) + 1
    assert {room for room, _, _ in shown["stays"]} <= {-1, 0, 1}


def test_the_page_loads_nothing_from_elsewhere(whole):
    page = whole.read_text()
    for address in re.findall(r"""(?:src|href|action|data|poster)\s*=\s*["']([^"']*)""", page):
        assert address.startswith(("#", "data:image/png;base64,")), address
    for address in re.findall(r"url\(([^)]*)\)", page):
        assert address.startswith("#"), address
    assert "@import" not in page
    assert set(re.findall(r"\w+://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_every_name_on_the_page_is_its_own(whole):
    names = re.findall(r'\bid="([^"]+)"', whole.read_text())
    assert len(names) == len(set(names))


def test_the_same_results_give_the_same_page(store):
    fill(store, "table3")
    fill(store, "figure6", seeds=2)
    assert report.page(Results(store)) == report.page(Results(store))


def test_a_page_is_written_whole_or_not_at_all(store, tmp_path, monkeypatch):
    path = tmp_path / "folder" / "report.html"
    path.parent.mkdir()
    path.write_text("the page of yesterday")
    monkeypatch.setattr(report, "page", lambda results: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(Results(store), path)
    assert path.read_text() == "the page of yesterday"
    monkeypatch.setattr(report, "page", lambda results: "the page of today")
    report.write(Results(store), path)
    assert path.read_text() == "the page of today"
    assert os.listdir(path.parent) == ["report.html"]


@pytest.mark.parametrize("name", ["missing/report.html", "."])
def test_a_page_that_cannot_be_written_is_one_clear_line(store, tmp_path, monkeypatch, name):
    monkeypatch.setattr(report, "page", lambda results: "a page")
    with pytest.raises(ValueError, match=r"cannot be written \(.*\); give another with -o"):
        report.write(Results(store), tmp_path / name)


def test_the_command_counts_and_says_where_the_page_is(spie, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with Store("mine.db") as store:
        fill(store, "table3")
    code, out, _ = spie("report", "--results", "mine.db", "-o", "mine.html", "--open")
    assert code == 0
    assert out.splitlines() == [
        "6 published numbers agree, 0 differ, 48 were not run",
        str(tmp_path / "mine.html"),
    ]
    assert opened == [(tmp_path / "mine.html").as_uri()]
    assert (tmp_path / "mine.html").read_text().startswith("<!DOCTYPE html>")


def test_without_results_the_command_says_how_to_make_them(spie, tmp_path):
    code, out, err = spie("report")
    assert (code, out) == (2, "")
    assert err == "spie: no results in results.db; make some with spie run, or name another file with --results\n"
    assert not (tmp_path / "results.db").exists()


# In a browser


def browse(page, *flags):
    """What Chromium makes of a page: the document after a few seconds, and the lines of its console."""
    chromium = shutil.which("chromium")
    if chromium is None:
        said = "no chromium, so nobody looked at the page: apt-get install chromium, or make setup as root"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(said)
    quiet = "--disable-gpu --disable-background-networking --disable-component-update --disable-sync --no-first-run"
    command = [chromium, "--headless", "--no-sandbox", *quiet.split(), f"--user-data-dir={page.parent / 'browser'}"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=5000", *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


# Frames and what is in sight come as they please in a browser without a screen.
BY_THE_CLOCK = """<script>
window.requestAnimationFrame = (f) => setTimeout(() => f(performance.now()), 16);
window.IntersectionObserver = class {
  constructor(f) { this.f = f }
  observe() { setTimeout(() => this.f([{ isIntersecting: true }]), 16) }
};
</script>"""


def with_script(page, name, script=""):
    """A copy of a page, run by the clock and with the animation in sight, that ends with a script."""
    copy, end = page.parent / name, f"<script>{script}</script></body>"
    copy.write_text(page.read_text().replace("<body>", f"<body>{BY_THE_CLOCK}").replace("</body>", end))
    return copy


def test_a_browser_shows_every_figure_without_complaint(whole):
    dom, console = browse(whole)
    assert console == []
    drawn = {name: section(dom, name).count("<svg") for name in EXPERIMENTS}
    figures = {"figure1": 6, "figure2": 1, "figure3": 1, "figure4": 4, "figure5": 2, "figure6": 1, "figure7": 1}
    assert {name: n for name, n in drawn.items() if n} == figures | {"pixels": 1, "pixels-paper": 1, "tuned": 2}
    assert section(dom, "animation").count("<svg") == 2  # the map and the strip


def test_the_browser_test_notices_mistakes(whole):
    for number, mistake in enumerate(("nonsense()", "console.error('no')")):
        assert browse(with_script(whole, f"mistake{number}.html", mistake))[1] != []


def test_the_animation_plays_when_asked_and_the_slider_moves_it(whole):
    still = "--force-prefers-reduced-motion"
    said = r"<output>step ([\d\u202f]+)</output>"
    click = "document.querySelector('#animation button').click()"
    dom, console = browse(with_script(whole, "click.html", click), still)
    assert console == []
    assert 0 < int(re.search(said, dom)[1].replace("\u202f", "")) < 6000
    slide = "const s = document.querySelector('#animation input'); s.value = 1234; s.oninput()"
    dom, console = browse(with_script(whole, "slide.html", slide), still)
    assert console == []
    assert re.search(said, dom)[1] == "1\u202f234"


@pytest.mark.parametrize(("flags", "button"), [([], "Pause"), (["--force-prefers-reduced-motion"], "Play")])
def test_the_animation_starts_in_sight_unless_motion_is_unwelcome(whole, flags, button):
    dom, _ = browse(with_script(whole, f"{button}.html"), *flags)
    assert f'<button type="button">{button}</button>' in dom
