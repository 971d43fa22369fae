"""Names of tasks, agents, rewards and experiments; plug-ins that add to them, and bad ones that spoil nothing."""

import subprocess
import sys

import pytest

import spie
from spie import registry
from spie.agents.registry import AGENTS
from spie.registry import Registry

GOOD_TASK = """
import numpy as np
import spie

@spie.register_task("toy-loop")
def toy_loop(length: int = 3) -> spie.MDP:
    "A ring of states."
    s = np.arange(length)
    return spie.MDP("toy-loop", ((s + 1) % length)[:, None, None], np.ones((length, 1, 1)),
                    np.zeros((length, 1, 1)), np.eye(length)[0])
"""


@pytest.fixture
def plugins(tmp_path, monkeypatch):
    """Install modules as plug-ins, by their text; what they register is forgotten after the test."""
    for r in registry._REGISTRIES:
        r._fill()
    before = [(r, r._values.copy(), r._owners.copy()) for r in registry._REGISTRIES]

    def install(**texts):
        folder = tmp_path / "site"
        info = folder / "toys-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
        entries = "".join(f"{name} = toys_{name}\n" for name in texts)
        (info / "entry_points.txt").write_text(f"[spie.plugins]\n{entries}")
        for name, text in texts.items():
            (folder / f"toys_{name}.py").write_text(text)
            monkeypatch.delitem(sys.modules, f"toys_{name}", raising=False)  # of the test before
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(registry, "_loaded", False)
        monkeypatch.setattr(registry, "problems", [])

    yield install
    for r, values, owners in before:
        r._values, r._owners = values, owners


def test_a_plugin_is_loaded_when_a_name_is_looked_up_that_is_not_ours(plugins):
    plugins(task=GOOD_TASK)
    spie.task("riverswim")
    assert not registry._loaded
    assert spie.task("toy-loop", length=5).n_states == 5
    assert "toy-loop" in spie.tasks.registry.names()
    assert spie.tasks.registry.TASKS["table"].owner("toy-loop") == "task"


def test_importing_spie_looks_for_no_plugins():
    program = "import spie, spie.cli; from spie import registry; print(registry._loaded)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


def test_our_agents_are_ours_even_where_a_plugin_is_the_first_to_ask_for_them():
    program = (
        "import spie; from spie import registry; registry._loading = 'toys'; spie.register_agent('bold', spie.Sarsa);"
        "from spie.agents.registry import AGENTS; print(AGENTS.owner('sarsa-srr'), AGENTS.owner('bold'))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == ["None", "toys"]


BAD = {
    "raises": ("1 / 0", "division by zero"),
    "exits": ("import sys; sys.exit(3)", "3"),
    "misses": ("import no_such_module", "No module named 'no_such_module'"),
    "takes": (
        'import spie\n@spie.register_task("riverswim")\ndef mine(): ...',
        '"riverswim" is a built-in MDP; give yours another name',
    ),
    "odd": (
        'import spie\nspie.register_agent("odd-agent", dict, beta=1)',
        "agent \"odd-agent\": <class 'dict'> is no class that inherits from spie.Agent",
    ),
    "newer": (
        "SPIE_CONTRACT = 99\n" + GOOD_TASK.replace("toy-loop", "newer-loop"),
        "it is made for contract 99 of spie, this spie has 1; update spie",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_plugin_is_one_line_and_the_rest_works(kind, plugins, capsys):
    text, why = BAD[kind]
    plugins(**{kind: text, "ztask": GOOD_TASK})  # the good one is loaded after it
    assert spie.task("toy-loop").n_states == 3
    assert "odd-agent" not in AGENTS
    assert registry.problems == [f"plug-in {kind} (toys_{kind}) is left out: {why}"]
    assert capsys.readouterr().err == f"spie: {registry.problems[0]}\n"
    with pytest.raises(ValueError, match="no task"):
        spie.task("newer-loop")


def test_of_two_plugins_with_one_name_the_second_is_left_out(plugins):
    plugins(first=GOOD_TASK, second=GOOD_TASK + GOOD_TASK.replace("toy-loop", "second-loop"))
    assert spie.task("toy-loop").n_states == 3
    (line,) = registry.problems
    assert line.endswith('"toy-loop" is plug-in first\'s MDP; give yours another name')
    assert "second-loop" not in spie.tasks.registry.names()  # a plug-in that fails adds nothing


def test_what_returns_no_task_is_said_in_one_line(plugins):
    plugins(odd='import spie\n@spie.register_task("odd-task")\ndef odd(): return [1]\n')
    with pytest.raises(ValueError, match='task "odd-task" gives list, which is no Task: it needs kind, name'):
        spie.task("odd-task")


def test_names_are_kept_in_order_and_taken_once():
    things = Registry("thing")
    try:
        things.add("b", 1)
        things.add("a", 2)
        assert things.names() == ("b", "a")
        with pytest.raises(ValueError, match='"a" is a built-in thing'):
            things.add("a", 3)
        things.add("a", 3, again=True)
        assert (things.get("a"), dict(things.items())) == (3, {"b": 1, "a": 3})
        with pytest.raises(ValueError, match='no thing "aa"; did you mean "a"'):
            things.get("aa")
    finally:
        registry._REGISTRIES.remove(things)


def test_an_agent_is_refused_on_a_task_of_another_kind():
    with pytest.raises(ValueError, match="sarsa-srr does not run on mountain-car; agents that do: spie, linear-q, "):
        spie.agent("sarsa-srr", spie.mountain_car())
    assert spie.agent("sarsa-srr", spie.riverswim(), beta=2.0) == spie.Sarsa(reward="sr-r", beta=2.0)
