import html
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from made_up import SEEDS, fill, shorten_search
from spie.page import report
from spie.paper import shipped
from spie.paper.comparison import tally
from spie.paper.registry import EXPERIMENTS, experiments, get_experiment
from spie.paper.results import Results
from spie.paper.sections import THIN
from spie.runs.store import Store


@pytest.fixture(autouse=True, scope="module")
def _nothing_ships(tmp_path_factory):
    """What ships is tested elsewhere, and changes with every long run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shipped, "FOLDER", tmp_path_factory.mktemp("shipped"))
        yield


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
        for experiment in experiments():
            if experiment.runs(1):
                fill(store, experiment.name)
        report.write(Results(store), folder / "report.html")
    return folder / "report.html"


def section(page, name):
    """The text of one section."""
    return page.split(f'<section id="{name}">')[1].split("</section>")[0]


@pytest.mark.slow
def test_what_was_not_run_shows_its_command_and_no_number(store):
    page = report.page(Results(store))
    text = section(page, "not-run")
    assert text.count("<p>") == 1  # one line together
    assert "<table" not in text
    assert "<svg" not in text
    for experiment in experiments():
        name = experiment.name
        assert (f"<code>spie run {name} --seeds {experiment.seeds}</code>" in text) == bool(experiment.runs(1))
        assert (f'<section id="{name}">' in page) != bool(experiment.runs(1))
    assert "<svg" in section(page, "figure5")  # nothing to run
    assert "0.005" in section(page, "table5")


def sentences(page):
    """The five that a page opens with."""
    return re.findall(r"<li>(.*?)</li>", page.split('<ol class="found">')[1].split("</ol>")[0])


def plain(text):
    return html.unescape(text).replace(THIN, " ")


@pytest.mark.slow
def test_the_page_of_an_empty_store_says_what_to_run(store):
    page = report.page(Results(store))
    found = [plain(sentence) for sentence in sentences(page)]
    assert found[0] == "Who earns most on RiverSwim and SixArms is not known yet: spie run table1."
    assert found[1] == "Who covers the grid worlds fastest is not known yet: spie run figure1."
    assert "goal tasks is not known yet (spie run figure3); how it does on MountainCar is not known yet" in found[2]
    assert re.fullmatch(r"Of \d+ claims of the paper, 7 reproduced, 1 partly, 6 contradicted by .*", found[3])
    assert found[4].startswith("Whether SPIE does better than agents without any representation is not known yet")
    assert len(found) == 5
    assert page.index('class="found"') < page.index('class="counts"')


@pytest.mark.slow
def test_the_network_is_drawn_from_its_own_shapes(store):
    (drawn,) = report.section(Results(store), get_experiment("figure2")).parts
    assert drawn.caption.startswith("26.37 million parameters")
    for shape in ("4×84×84", "64×40×40", "64×20×20", "64×10×10", "1024", "2048", "18", "6400", "1×84×84"):
        assert f">{shape}</text>" in drawn.svgs[0], shape


@pytest.mark.slow
def test_scores_within_a_smaller_budget_are_called_not_comparable(store):
    fill(store, "recon")
    fill(store, "recon@100000000")
    page = report.page(Results(store))
    small, whole = section(page, "recon"), section(page, "recon@100000000")
    assert "20 000 frames" in small.replace(THIN, " ")
    assert "Not comparable" in small
    assert "Not comparable" not in whole
    for text in (small, whole):
        assert "551.5" in text
        assert "398.5" in text


@pytest.mark.slow
def test_what_is_unfinished_says_how_far_it_is_and_shows_no_number(store):
    fill(store, "table1", reward=lambda run: 123_456_789, runs=3)
    page = report.page(Results(store))
    text = section(page, "table1")
    assert "unfinished: 3 of 18 runs stored, continue with" in text
    assert f"<code>spie run table1 --seeds {SEEDS}</code>" in text
    assert "<table" not in text
    assert "123" not in text
    assert tuple(tally(Results(store)).rows[0].values[1:]) == (0, 0, 0, 10)


@pytest.mark.slow
def test_the_animation_is_the_recorded_path(store):
    fill(store, "figure6", seeds=2)
    results = Results(store)
    shown, *others = report.section(results, get_experiment("figure6")).animations
    titles = [animation["title"] for animation in (shown, *others)]
    assert titles == [
        f"SARSA-{name} between two rooms" for name in ("SRR", "SRR, fixed,", "SR", "SR, fixed,", "FR", "FR, fixed,")
    ]
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


@pytest.mark.slow
def test_the_page_loads_nothing_from_elsewhere(whole):
    page = whole.read_text()
    for address in re.findall(r"""(?:src|href|action|data|poster)\s*=\s*["']([^"']*)""", page):
        assert address.startswith(("#", "data:image/png;base64,")), address
    for address in re.findall(r"url\(([^)]*)\)", page):
        assert address.startswith("#"), address
    assert "@import" not in page
    assert set(re.findall(r"\w+://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@pytest.mark.slow
def test_every_name_on_the_page_is_its_own(whole):
    names = re.findall(r'\bid="([^"]+)"', whole.read_text())
    assert len(names) == len(set(names))


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_command_counts_and_says_where_the_page_is(spie, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with Store("mine.db") as store:
        fill(store, "table3")
    code, out, _ = spie("report", "--results", "mine.db", "-o", "mine.html", "--open")
    assert code == 0
    assert out.splitlines() == [
        "published numbers: 6 agree, 0 cannot be told apart, 0 differ, 48 were not run",
        str(tmp_path / "mine.html"),
    ]
    assert opened == [(tmp_path / "mine.html").as_uri()]
    assert (tmp_path / "mine.html").read_text().startswith("<!DOCTYPE html>")


def test_without_results_the_command_says_how_to_make_them(spie, tmp_path):
    code, out, err = spie("report", "--results", "mine.db")
    assert (code, out) == (2, "")
    assert err == "spie: no results in mine.db; make some with spie run, or name another file with --results\n"
    assert not (tmp_path / "mine.db").exists()


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


@pytest.mark.slow
def test_a_browser_shows_every_figure_without_complaint(whole):
    dom, console = browse(whole)
    assert console == []
    drawn = {name: section(dom, name).count('role="img"') for name in EXPERIMENTS.names()}  # legends have no role
    figures = {"figure1": 4 + 8, "figure2": 1, "figure3": 4, "figure4": 9, "figure5": 2, "figure6": 3, "figure7": 4}
    others = {"pixels": 4, "pixels-paper": 4, "pixels-readings": 2, "parity": 5, "exploration": 2, "tuned": 14}
    others |= {"table2": 6, "recon": 1}
    assert {name: n for name, n in drawn.items() if n} == figures | others
    assert section(dom, "animation").count("<svg") == 2  # the map and the strip


@pytest.mark.slow
def test_the_browser_test_notices_mistakes(whole):
    for number, mistake in enumerate(("nonsense()", "console.error('no')")):
        assert browse(with_script(whole, f"mistake{number}.html", mistake))[1] != []


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "button"), [([], "Pause"), (["--force-prefers-reduced-motion"], "Play")])
def test_the_animation_starts_in_sight_unless_motion_is_unwelcome(whole, flags, button):
    dom, _ = browse(with_script(whole, f"{button}.html"), *flags)
    assert f'<button type="button">{button}</button>' in dom
