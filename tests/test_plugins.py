"""Each addition is one file: a reward, a task, a deep bonus, an agent, an experiment of somebody else's package."""

import json
import os
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.slow

FILES = {
    "reward": '''
import spie


@spie.reward("toy-reward")
def toy_reward(M_next, visits_next):
    """M[s, s'] less a count bonus."""
    return M_next - 1.0 / visits_next
''',
    "task": '''
import numpy as np

import spie


@spie.register_task("toy-corridor", gymnasium="ToyCorridor")
def corridor(length: int = 8) -> spie.MDP:
    """A corridor to walk left and right, whose right end pays 1."""
    s = np.arange(length)
    ways = np.stack([np.maximum(s - 1, 0), np.minimum(s + 1, length - 1)], axis=1)
    pay = np.zeros((length, 2, 1))
    pay[-1, 1] = 1.0
    return spie.MDP("toy-corridor", ways[:, :, None], np.ones((length, 2, 1)), pay, np.eye(length)[0])
''',
    "bonus": '''
import spie
from spie.agents.dqn.bonuses import DeepBonus, register_bonus


@register_bonus("toy-bonus")
class Brightness(DeepBonus):
    """The mean brightness of the frame that is entered."""

    uses = ("frame_next",)

    def compute(self, transition):
        return transition.frame_next.mean(dim=(-2, -1)).cpu().numpy()


spie.register_agent("dqn-toy", spie.DQN, bonus="toy-bonus")
''',
    "agent": '''
from dataclasses import dataclass

import numpy as np

import spie


@dataclass(frozen=True)
class Walker(spie.Agent):
    """Goes right with a chance."""

    right: float = 0.5

    def run(self, task, steps, seeds=1, *, episodes=None, keep=spie.Keep(), replay=None, session=spie.Session()):
        chosen = np.arange(seeds) if isinstance(seeds, int) else np.array(seeds)
        visits = np.zeros((len(chosen), task.n_states), np.int32)
        first, total = np.full(visits.shape, -1, np.int32), np.zeros(len(chosen))
        for i, seed in enumerate(chosen):
            rng, s = np.random.default_rng(seed), int(task.start.argmax())
            visits[i, s], first[i, s] = 1, 0
            for t in range(1, steps + 1):
                a = int(rng.random() < self.right)
                total[i] += task.reward[0, s, a, 0]
                s = int(task.next[s, a, 0])
                visits[i, s] += 1
                first[i, s] = t if first[i, s] < 0 else first[i, s]
        n, nothing = len(chosen), np.zeros(len(chosen), np.int32)
        return spie.Trace(seeds=chosen, total_reward=total, total_bonus=np.zeros(n), steps=np.full(n, steps),
                          visits=visits, first_visit=first, episode_steps=np.zeros((n, 0), np.int32),
                          truncated=nothing, snapshots=np.zeros((n, 0, task.n_states), np.int32))


spie.register_agent("toy-walker", Walker)
''',
    "experiment": """
import numpy as np

import spie
from spie import stats
from spie.paper.claims import Claim
from spie.paper.contenders import Contender, of
from spie.paper.experiment import Experiment
from spie.paper.measures import compare, reward
from spie.paper.registry import register_experiment
from spie.paper.sections import Curve, CurvePanels, Panel, Text
from spie.runs.run import Run

AGENTS = {"toy-walker": "paper", "toy-drift": "reading", "sarsa": "control"}


def runs(seeds):
    task = spie.task("toy-corridor")
    agents = {"toy-walker": spie.agent("toy-walker"), "toy-drift": spie.agent("toy-walker", right=0.9),
              "sarsa": spie.agent("sarsa")}
    return [Run("toy-corridor", name, agent, task, 60, seeds, role=AGENTS[name]) for name, agent in agents.items()]


def section(experiment, results):
    x = np.arange(0, 61, 10)
    curves = {name: Curve(x, *stats.mean_curve(100 * results.trace("toy", "toy-corridor", name).coverage(x)))
              for name in AGENTS}
    panel = Panel("the toy corridor", curves, "steps", "states seen, %")
    return [CurvePanels("A figure of a plug-in", [panel]), Text("", ["Words of a plug-in."])]


DRIFT, PLAIN = Contender("toy", "toy-drift"), of("toy", "toy-walker")
CLAIMS = (
    Claim("toy-drift-earns-more", "Toy", "", "A drift to the right earns more.", "mean reward over the plain walk's",
          compare(reward, DRIFT, PLAIN, ["toy-corridor"], floor=1), ours=True),
    Claim("toy-drift-earns-less", "Toy", "", "A drift to the right earns less.", "mean reward over the plain walk's",
          compare(reward, DRIFT, PLAIN, ["toy-corridor"], ceiling=1), ours=True),
)
register_experiment(Experiment("toy", "A toy experiment of a plug-in", section, runs, seeds=20, claims=CLAIMS))
""",
}
ENTRY_POINTS = "[spie.plugins]\n" + "".join(f"toy-{name} = toy.{name}\n" for name in FILES)
METADATA = "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the package, as an installer leaves it."""
    site = tmp_path_factory.mktemp("site")
    for folder in ("toy", "toy-1.0.dist-info"):
        (site / folder).mkdir()
    (site / "toy" / "__init__.py").write_text("")
    for name, text in FILES.items():
        (site / "toy" / f"{name}.py").write_text(text)
    (site / "toy-1.0.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    (site / "toy-1.0.dist-info" / "METADATA").write_text(METADATA)
    return site


@pytest.fixture(scope="module")
def command(site, tmp_path_factory):
    """Run `spie` in a process and a folder of its own, with the package installed."""
    folder = tmp_path_factory.mktemp("work")

    def run(*words, path=site):
        python_path = os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])
        program = [sys.executable, "-m", "spie.cli", *map(str, words)]
        found = subprocess.run(
            program, cwd=folder, env=os.environ | {"PYTHONPATH": python_path}, capture_output=True, text=True
        )
        assert found.returncode == 0, found.stderr
        return found.stdout + found.stderr

    run.folder = folder
    return run


def test_each_addition_is_listed(command):
    out = command("list")
    for name in ("toy-reward", "toy-corridor", "toy-bonus", "dqn-toy", "toy-walker", "A toy experiment"):
        assert name in out, name


def test_an_experiment_runs_and_is_on_the_page_with_its_claims_and_figure(command):
    cells = [json.loads(line) for line in command("run", "toy", "--json").splitlines() if line.startswith("{")]
    assert [(cell["agent"], cell["role"], cell["n"]) for cell in cells] == [
        ("toy-walker", "paper", 20),
        ("toy-drift", "reading", 20),
        ("sarsa", "control", 20),
    ]
    command("report")
    page = (command.folder / "report.html").read_text()
    for words in ("A toy experiment of a plug-in", "A figure of a plug-in", "Words of a plug-in.", "toy-drift-earns"):
        assert words in page, words
    verdicts = {claim: page[page.index(claim) :][:2000] for claim in ("A drift to the right earns more.",)}
    assert "reproduced" in verdicts["A drift to the right earns more."]


def test_a_task_and_a_reward_are_swept(command):
    out = command("sweep", "toy-corridor", "reward=toy-reward,none", "--seeds", 4, "--confirm", 4, "--steps", 40)
    assert "toy-reward" in out


def test_a_deep_bonus_is_trained_with(command):
    out = command("train", "deep-sea-4", "learning_starts=20", "batch=4", "--agent", "dqn-toy", "--steps", 60)
    assert "dqn-toy" in out
    assert json.loads((command.folder / "runs" / "deep-sea-4-dqn-toy-0" / "run.json").read_text())


def test_a_wheel_is_found_like_any_installed_package(command, tmp_path):
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    kept = {f"toy/{name}.py": FILES[name] for name in ("reward", "task")} | {"toy/__init__.py": ""}
    entries = "[spie.plugins]\ntoy-reward = toy.reward\ntoy-task = toy.task\n"
    info = {"METADATA": METADATA, "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    info |= {"entry_points.txt": entries}
    kept |= {f"toy-1.0.dist-info/{name}": text for name, text in info.items()}
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in kept.items():
            file.writestr(name, text)
        file.writestr("toy-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in kept))
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(pip, check=True, capture_output=True)
    out = command("list", path=target)
    assert "toy-corridor" in out
    assert "toy-reward" in out
