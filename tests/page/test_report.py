import base64
import html
import json
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from made_up import SEEDS, fill, shorten_search
from spie import fr, grid, sr, td_fr, td_sr
from spie.numbers import THIN
from spie.page import report
from spie.paper import shipped
from spie.paper.comparison import tally
from spie.paper.grid_worlds import settings as grid_settings
from spie.paper.registry import EXPERIMENTS, experiments, get_experiment
from spie.paper.results import Results
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


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The page of an empty store."""
    with Store(tmp_path_factory.mktemp("empty") / "results.db") as store:
        return report.page(Results(store))


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """A page with Figure 6 alone, and the path of all its films."""
    folder = tmp_path_factory.mktemp("films")
    with Store(folder / "results.db") as store, pytest.MonkeyPatch.context() as patch:
        fill(store, "figure6", seeds=1)
        patch.setattr(report, "shown_experiments", lambda results, shipped=(): [get_experiment("figure6")])
        patch.setattr(report, "judge", lambda results, claims: [])
        results = Results(store)
        report.write(results, folder / "films.html")
        return folder / "films.html", results.trace("figure6", "cluster-simple-large", "sarsa-srr").paths[0]


def section(page, name, kind=""):
    """The text of one section."""
    return page.split(f'<section{kind} id="{name}">')[1].split("</section>")[0]


@pytest.mark.slow
def test_what_was_not_run_shows_its_command_and_no_number(empty):
    page, text = empty, section(empty, "not-run")
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
def test_the_page_of_an_empty_store_says_what_to_run(empty):
    page = empty
    found = [plain(sentence) for sentence in sentences(page)]
    assert found[0] == "Who earns most on RiverSwim and SixArms is not known yet: spie run table1."
    assert found[1] == "Who covers the grid worlds fastest is not known yet: spie run figure1."
    assert "goal tasks is not known yet (spie run figure3); how it does on MountainCar is not known yet" in found[2]
    assert re.fullmatch(
        r"The verdicts on \d+ claims of the paper are: 7 reproduced, 1 partly, 6 contradicted by .*", found[3]
    )
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
def test_a_film_is_the_recorded_path_and_what_was_paid_on_it(store):
    fill(store, "figure6", seeds=2)
    results = Results(store)
    shown, *others = report.section(results, get_experiment("figure6")).films
    titles = [film["title"].removesuffix(" between two rooms") for film in (shown, *others)]
    agents = [f"SARSA-{name}" for name in ("SRR", "SRR, fixed,", "SR", "SR, fixed,", "FR", "FR, fixed,")]
    assert titles == [*agents, "A constant cost"]
    assert [film["matrix"] for film in (shown, *others)] == ["M", "M", "M", "M", "F", "F", ""]
    path = results.trace("figure6", "cluster-simple-large", "sarsa-srr").paths[0]
    state = {(row, column): s for s, (row, column) in enumerate(shown["cells"])}
    row, column = shown["cells"][shown["start"]]
    replayed = []
    for letter in shown["path"]:
        row, column = row + shown["ways"][letter][0], column + shown["ways"][letter][1]
        replayed.append(state[row, column])
    np.testing.assert_array_equal(replayed, path.next_states)
    assert sum(length for _, _, length in shown["stays"]) == len(shown["path"]) + 1
    assert {room for room, _, _ in shown["stays"]} <= {-1, 0, 1}
    paid = np.frombuffer(base64.b64decode(shown["bonuses"]), np.uint8) / 255
    low, high = path.bonuses.min(), path.bonuses.max()
    np.testing.assert_allclose(low + paid * (high - low), path.bonuses, atol=0.51 / 255 * (high - low))


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
    command += ["--enable-logging=stderr", "--virtual-time-budget=2000", *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


# Frames and what is in sight come as they please in a browser without a screen.
BY_THE_CLOCK = """<script>
window.requestAnimationFrame = (f) => setTimeout(() => f(performance.now()), 16);
window.IntersectionObserver = class {
  constructor(f) { this.f = f }
  observe(seen) { if (seen.closest("#film-1")) setTimeout(() => this.f([{ isIntersecting: true }]), 16) }
};
</script>"""


def with_script(page, name, script=""):
    """A copy of a page, run by the clock and with its first film in sight, that ends with a script."""
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
    others |= {"table2": 6, "recon": 1, "exploration-linear": 3, "exploration-pixels": 4}
    assert {name: n for name, n in drawn.items() if n} == figures | others


@pytest.mark.slow
def test_the_browser_test_notices_mistakes(tmp_path):
    (tmp_path / "plain.html").write_text("<!DOCTYPE html><html><body></body></html>")
    for name, mistake in (("a", "nonsense()"), ("b", "console.error('no')"), ("none", "")):
        assert bool(browse(with_script(tmp_path / "plain.html", f"{name}.html", mistake))[1]) == bool(mistake)


STEPS = (0, 1, 700, 300, 6000)  # also back
ROWS = f"""
const found = [...document.querySelectorAll(".film")].map((section) => {{
  section.film ??= film(section);
  const slider = section.querySelector("input"), {{ row }} = section.film;
  slider.value = 1234;
  slider.oninput();
  return {{ step: section.querySelector("output").textContent, maps: section.querySelectorAll("canvas").length,
    rows: row ? {list(STEPS)}.map((t) => [...row(t)]) : [] }};
}});
document.querySelector("#film-2 button").click();
document.body.append(document.createElement("pre"));
document.body.lastChild.textContent = JSON.stringify(found);
"""


@pytest.mark.slow
def test_films_show_the_representation_that_the_agent_has(films):
    page, path = films
    dom, console = browse(with_script(page, "rows.html", ROWS), "--force-prefers-reduced-motion")
    assert console == []
    found = json.loads(html.unescape(dom.split("<pre>")[1].split("</pre>")[0]))
    assert [film["step"] for film in found] == ["step 1\u202f234"] * 7
    assert [film["maps"] for film in found] == [3] * 6 + [2]
    mdp, s = grid("cluster-simple-large"), grid_settings("sarsa-srr")
    visited = [*path.states, path.next_states[-1]]
    closed = {"M": sr(mdp.transition(), s.gamma_sr), "F": fr(mdp.transition(), s.gamma_sr)}
    for matrix, td, shown in (("M", td_sr, found[:2]), ("F", td_fr, found[4:6])):
        learned, expected = np.zeros((mdp.n_states, mdp.n_states)), {}
        for t in range(max(STEPS) + 1):
            if t in STEPS:
                expected[t] = learned[visited[t]].copy()
            if t < len(path.states):
                learned[visited[t]] += s.eta * td(learned, visited[t], visited[t + 1], s.gamma_sr)
        for i, t in enumerate(STEPS):
            np.testing.assert_allclose(shown[0]["rows"][i], expected[t], rtol=1e-9, atol=1e-12)
            # Summed until a 10^5th of the discount is left, and divided by a diagonal of four digits.
            np.testing.assert_allclose(shown[1]["rows"][i], closed[matrix][visited[t]], atol=2e-4)
    film = section(dom, "film-2", ' class="film"')
    assert "Pause" in film  # clicked: it plays
    assert 0 < int(re.search(r"<output>step ([\d\u202f]+)</output>", film)[1].replace("\u202f", "")) < 6000
    assert ">Play<" in section(dom, "film-3", ' class="film"')  # motion is unwelcome, and nobody asked for it


@pytest.mark.slow
def test_a_film_plays_while_it_is_in_sight(films):
    dom, console = browse(with_script(films[0], "sight.html"))
    assert console == []
    assert ">Pause<" in section(dom, "film-1", ' class="film"')
