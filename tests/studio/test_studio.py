"""The studio in a real browser: drawn in, walked in, and compared with the engine step by step."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import spie
from spie.studio.build import PARTS, _agents, page

pytestmark = pytest.mark.slow
OWN = ("file:", "data:", "blob:", "about:")
TABLES = """(() => {
    const m = studio.world().mdp;
    return {
        next: [...m.next], reward: [...m.reward], start: m.start, terminal: [...m.terminal],
        available: [...m.available], every: m.episodesPerPhase,
    };
})()"""
HEADING = "subject,session,trial,step,state,action,reward"


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium, so nobody looked at the page: apt-get install chromium, or make setup as root")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "studio.html"
    path.write_text(page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def studio(browser, address):
    """The page, which must leave no error in the console and ask for nothing but itself."""
    opened = open_page(browser, address)
    yield opened
    assert opened.problems == []
    opened.context.close()


def open_page(browser, address, **options):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True, **options)
    tab = context.new_page()
    tab.problems = []
    tab.on("console", lambda message: tab.problems.append(message.text))
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on(
        "request",
        lambda request: (
            None if request.url.startswith(("file:", "data:", "blob:")) else tab.problems.append(request.url)
        ),
    )
    tab.goto(address)
    return tab


def chosen(world, agents, seed=0, **options):
    """The fragment of an address."""
    words = {"world": world, "seed": seed, "agents": ";".join(agents), **options}
    return "#" + "&".join(f"{key}={value}" for key, value in words.items())


def go_to(tab, address, fragment):
    tab.goto("about:blank")
    tab.goto(address + fragment)


@pytest.mark.parametrize(
    ("world", "agents"),
    [
        ("cluster-hard", ["sarsa-srr", "sarsa-sr", "sarsa-sr-pr"]),
        ("cluster-hard", ["sarsa-fr", "sarsa", "count"]),
        ("riverswim", ["sarsa-srr", "sarsa-srr-c", "sarsa-srr-b,policy:softmax,inverse_temperature:0.5"]),
        ("tree", ["sarsa-srr,policy:softmax,inverse_temperature:3", "sarsa-srr", "constant"]),
    ],
)
def test_a_seed_gives_the_path_bonus_and_Q_of_the_engine_to_the_bit(studio, address, world, agents):
    go_to(studio, address, chosen(world, agents, seed=5))
    studio.evaluate("studio.advance(2000)")
    mdp = spie.task(world, kind="table")
    for told, ran in zip(agents, studio.evaluate("studio.runs()"), strict=False):
        name, *settings = told.split(",")
        pairs = dict(pair.split(":") for pair in settings)
        agent = spie.agent(name, **{key: float(value) if key != "policy" else value for key, value in pairs.items()})
        trace = agent.run(mdp, 2000, [5], keep=spie.Keep(matrices=("Q",), paths=(5,)))
        path = trace.paths[5]
        assert len(ran["actions"]) == 2000
        assert_array_equal(ran["states"][:-1], path.states)
        assert_array_equal(ran["actions"], path.actions)
        assert_array_equal(ran["bonuses"], path.bonuses)
        assert_array_equal(ran["Q"], np.where(np.isneginf(trace.Q[0]), 0, trace.Q[0]).ravel())


def test_a_board_is_the_MDP_of_the_same_text(studio):
    text = "S.#.\n.#..\n...G\n1.#."
    for told in (text, "+---+---+---+\n| S >   | 1 |\n+   +-v-+   +\n|       > G |\n+---+---+---+"):
        if not studio.is_visible("#text"):
            studio.click("summary")
        studio.fill("#text", told)
        studio.click("#use-text")
        for task, bumps in (("explore", True), ("goal", False), ("moving-goal", True)):
            studio.select_option("#task", task)
            studio.set_checked("#bumps", bumps)
            mine = studio.evaluate(TABLES)
            ours = spie.grid(told, task=task, bumps=bumps)
            assert_array_equal(mine["next"], ours.next.ravel())
            on_offer = np.tile(ours.available.ravel(), ours.n_phases)  # what is not on offer pays nothing either way
            assert_array_equal(np.array(mine["reward"])[on_offer], ours.reward.ravel()[on_offer])
            assert_array_equal(mine["start"], ours.start)
            assert_array_equal(mine["terminal"], ours.terminal.ravel())
            assert_array_equal(mine["available"], (ours.available * (1 << np.arange(4))).sum(axis=1))
            assert mine["every"] == ours.episodes_per_phase
        assert spie.grid(studio.evaluate("studio.state.board.toText()")).digest == spie.grid(told).digest


def wait_for(tab, place, words):
    """Files are read in the background."""
    until(tab, "([place, words]) => document.querySelector(place).textContent.includes(words)", [place, words])


def until(tab, holds, argument=None):
    """Playwright's own `wait_for_function` evaluates text in the page, which the page's policy forbids."""
    end = time.monotonic() + 30
    while not tab.evaluate(holds, argument):
        assert time.monotonic() < end, holds
        time.sleep(0.05)


def cell(tab, row, column):
    """Where a cell of the board lies on the screen."""
    tab.locator("#board").scroll_into_view_if_needed()
    box = tab.locator("#board").bounding_box()
    board = tab.evaluate("({rows: studio.state.board.rows, columns: studio.state.board.columns})")
    unit = box["width"] / (max(board.values()) + 0.2)
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    return (
        middle[0] + unit * (column - (board["columns"] - 1) / 2),
        middle[1] + unit * (row - (board["rows"] - 1) / 2),
        unit,
    )


def test_a_maze_drawn_by_mouse_raced_walked_and_read_back(studio, address, tmp_path):
    go_to(studio, address, "#map=S..../...../...../..... /....G".replace(" ", ""))
    x, y, _ = cell(studio, 1, 1)
    studio.mouse.move(x, y)
    studio.mouse.down()
    x, y, _ = cell(studio, 1, 3)
    studio.mouse.move(x, y, steps=6)
    studio.mouse.up()
    studio.check("input[name=tool][value=edge]")
    x, y, unit = cell(studio, 3, 2)
    studio.mouse.click(x + 0.4 * unit, y)
    studio.check("input[name=tool][value=door]")
    studio.mouse.click(x, y + 0.4 * unit)
    text = studio.evaluate("studio.state.board.toText()")
    maze = spie.grid(text)
    assert maze.n_states == 22
    assert maze.next[maze.state("3,2"), 1, 0] == maze.state("3,2")  # the thin wall
    assert maze.next[maze.state("3,2"), 2, 0] == maze.state("4,2")  # the door: there,
    assert maze.next[maze.state("4,2"), 0, 0] == maze.state("4,2")  # not back

    studio.evaluate("studio.advance(2000)")
    assert [len(run["actions"]) for run in studio.evaluate("studio.runs()")] == [2000] * 5

    studio.fill("#subject", "=HYPERLINK(1)")
    studio.click("#walk")
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowDown", "ArrowDown"):
        studio.keyboard.press(key)
    box = studio.locator("#you").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    studio.mouse.move(*middle)
    studio.mouse.down()
    studio.mouse.move(middle[0], middle[1] - 60)  # a swipe upwards
    studio.mouse.up()
    assert studio.evaluate("studio.trials()[0].actions.at(-1)") == 0
    with studio.expect_download() as saved:
        studio.click("#save")
    path = tmp_path / "path.csv"
    saved.value.save_as(path)
    lines = path.read_text().splitlines()
    assert lines[0] == HEADING
    assert lines[1].startswith("'=HYPERLINK")  # no formula for a spreadsheet
    paths = spie.Paths.from_csv(path, maze)
    (trial,) = paths.trials
    walked = studio.evaluate("studio.trials()[0]")
    assert_array_equal(trial.states, walked["states"])
    assert_array_equal(trial.actions, walked["actions"])

    studio.set_input_files("#file", path)
    wait_for(studio, "#overlaid", "7 steps")
    (tmp_path / "bad.csv").write_text(HEADING + "\n1,1,1,0,400,0,0\n")
    studio.set_input_files("#file", tmp_path / "bad.csv")
    wait_for(studio, "#message", 'state "400"')
    assert "7 steps" in studio.inner_text("#overlaid")  # nothing is lost


def test_the_address_brings_everything_back_and_a_bad_one_loses_nothing(studio, address):
    go_to(studio, address, chosen("cluster-hard", ["count", "sarsa-fr,beta:0.5"], seed=7, show="Q"))
    link = studio.evaluate("location.href")
    studio.evaluate("studio.advance(500)")
    before = studio.evaluate("studio.runs()")
    go_to(studio, link, "")
    studio.evaluate("studio.advance(500)")
    assert studio.evaluate("studio.runs()") == before
    for fragment, words in {
        "#map=S..%2F%3F%3F%3F": 'Unknown character "?"',
        "#seed=-1": "seed must be a whole number",
        "#agents=nobody": "agents=nobody",
        "#agents=sarsa,beta:infinity": "beta must lie",
        "#world=<img src=x onerror=alert(1)>": "There is no maze",
        "#map=S..%2F...&task=goal": "needs a goal",
    }.items():
        studio.evaluate("fragment => { location.hash = fragment }", fragment)
        until(studio, "document.getElementById('message').textContent !== ''")
        assert words in studio.inner_text("#message"), fragment
        assert studio.evaluate("studio.state.agents[1].settings.beta") == 0.5
        studio.evaluate("document.getElementById('message').textContent = ''")


def test_the_page_works_by_keyboard_alone(studio, address):
    go_to(studio, address, "#map=S../.../..G")
    studio.focus("#board")
    for key in ("ArrowRight", "ArrowDown", " "):
        studio.keyboard.press(key)
    assert studio.evaluate("studio.state.board.letters[4]") == "#"
    assert "row 1, column 1: wall" in studio.inner_text("#where")
    studio.focus("input[name=tool][value=edge]")
    studio.keyboard.press("Space")
    studio.focus("#board")
    studio.keyboard.press("ArrowUp")
    studio.keyboard.press("Shift+ArrowLeft")
    assert studio.evaluate("studio.state.board.leads(1, 3)") is False
    studio.focus("#play")
    studio.keyboard.press("Enter")
    until(studio, "studio.runs()[0].actions.length > 5")
    studio.keyboard.press("Enter")
    studio.focus("#arena-0")
    studio.keyboard.press("ArrowRight")
    assert "Place field of" in studio.inner_text("#looked")
    unnamed = studio.evaluate(
        "[...document.querySelectorAll('button, input, select, textarea, canvas')].filter(x => !x.hidden && "
        "!(x.labels && x.labels.length) && !x.getAttribute('aria-label') && !x.textContent.trim()).map(x => x.id)"
    )
    assert unnamed == []


def contrast(one, other):
    def luminance(colour):
        parts = [int(x) / 255 for x in colour[4:-1].split(",")]
        parts = [x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_and_nothing_is_cut_on_a_phone(browser, address, scheme):
    tab = open_page(browser, address, color_scheme=scheme)
    tab.set_viewport_size({"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    colours = tab.evaluate(
        """['body', '.quiet', 'header p', 'button.strong', 'select'].map((place) => {
            const style = getComputedStyle(document.querySelector(place)), paper = getComputedStyle(document.body);
            const clear = style.backgroundColor === 'rgba(0, 0, 0, 0)';
            return [place, style.color, clear ? paper.backgroundColor : style.backgroundColor];
        })"""
    )
    for what, ink, paper in colours:
        assert contrast(ink, paper) >= 4.5, what
    assert tab.problems == []
    tab.context.close()


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "/*SCRIPT*/", "javascript:alert(1)", "<!--"])
def test_text_of_a_user_is_text_and_the_page_is_small_and_closed(name):
    maze = spie.grid("cluster-simple")
    text = page(spie.MDP(name, maze.next, maze.prob, maze.reward, maze.start))
    assert name not in text or "<" not in name
    assert text.count("</script>") == 2
    assert len(text.encode()) < 1_000_000
    assert "default-src 'none'" in text
    told = json.loads(text.split('id="told">')[1].split("</script>")[0])
    assert told["first"] == name


def test_every_learned_agent_of_the_tables_is_offered():
    learned = {name for name in spie.agents.sarsa.settings.AGENTS if not name.endswith("-fixed")}
    assert set(_agents()) == learned


def test_worlds_that_are_too_large_are_refused():
    with pytest.raises(ValueError, match="the studio takes at most"):
        page(spie.grid(spie.maze(61, 61)))


def test_all_parts_are_in_the_package():
    folder = Path(spie.studio.build.__file__).parent / "page"
    assert {path.stem for path in folder.glob("*.js")} == set(PARTS)


def test_every_overlay_shows_what_it_says(studio, address):
    go_to(studio, address, chosen("cluster-simple", ["sarsa-srr"], seed=1))
    studio.evaluate("studio.advance(300)")
    trace = spie.agent("sarsa-srr").run(spie.grid("cluster-simple"), 300, [1], keep=spie.Keep(matrices=("M", "F", "N")))
    sums = studio.evaluate("studio.sums()")
    for name, (matrix, axis) in {"M_rows": ("M", 1), "M_columns": ("M", 0), "F_rows": ("F", 1), "F_columns": ("F", 0),
                                 "N_rows": ("N", 1), "N_columns": ("N", 0)}.items():  # fmt: skip
        np.testing.assert_allclose(sums[name], getattr(trace, matrix)[0].sum(axis=axis), rtol=1e-9, atol=1e-12)


def test_the_page_is_written_or_the_mistake_is_one_line(tmp_path):
    command = [sys.executable, "-m", "spie.cli", "studio", "--no-open", "--out"]
    for place, words in ((tmp_path, "is a folder"), (tmp_path / "no" / "studio.html", "there is no folder")):
        done = subprocess.run([*command, place], capture_output=True, text=True)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert words in done.stderr
    assert subprocess.run([*command, tmp_path / "studio.html"], capture_output=True).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["studio.html"]
