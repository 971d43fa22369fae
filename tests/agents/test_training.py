import csv
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from corridor import Corridor
from spie.agents.base import Keep, Replay, Session
from spie.agents.dqn import agent as deep
from spie.agents.dqn import checkpoint
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.checkpoint import checkpoints
from spie.agents.dqn.cost import check_fits
from spie.agents.dqn.folder import read_run
from spie.agents.dqn.replay import segment_name
from spie.agents.dqn.session import player, resume, train
from spie.agents.dqn.settings import steps_of
from spie.engine import lanes
from spie.files import json_hash
from spie.runs.store import Store
from spie.tasks import vector
from spie.tasks.gymnasium import EnvTask, GymnasiumTask
from spie.tasks.pixels import PixelsVectorEnv, PixelTask, pixels
from spie.tasks.registry import task as find_task

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
STEPS = 300
CORRIDOR = EnvTask("corridor", Corridor)
SMALL = {"preset": "small", "gamma": 0.9, "learning_starts": 60, "batch": 8, "envs": 2, "stack": 2}


def agent(**settings):
    return DQN(**SMALL | settings)


class Stop(Exception):
    pass


def stop_at(step):
    def progress(report):
        if report.step >= step:
            raise Stop

    return progress


def result(folder):
    """What must be the same, bit for bit: all arrays and values of the last checkpoint, and the monitor file."""
    last = checkpoint.load(checkpoints(folder / "checkpoints")[0])
    values = {name: value for name, value in last.values.items() if name not in ("seconds", "monitor", "segments")}
    arrays = last.weights | last.arrays
    return {name: array.tobytes() for name, array in arrays.items()}, values, (folder / "monitor.csv").read_bytes()


def same(one, other):
    assert one[0].keys() == other[0].keys()
    assert [name for name in one[0] if one[0][name] != other[0][name]] == []
    assert one[1:] == other[1:]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    trace = train(agent(), CORRIDOR, STEPS, 1, folder)
    return folder, trace


def broken_run(folder, at, settings, **options):
    """A run that dies at these steps, between checkpoints."""
    for i, step in enumerate(at):
        begin = partial(train, settings) if i == 0 else partial(resume, folder)
        with pytest.raises(Stop):
            begin(CORRIDOR, *((STEPS, 1, folder) if i == 0 else ()), progress=stop_at(step), **options)
    return resume(folder, CORRIDOR, **options)


def test_a_run_that_dies_and_is_resumed_is_the_unbroken_run_bit_for_bit(unbroken, tmp_path):
    trace = broken_run(tmp_path / "run", (50, 130, 210, 290), agent(), checkpoint_steps=60)
    same(result(unbroken[0]), result(tmp_path / "run"))
    np.testing.assert_array_equal(trace.episode_rewards, unbroken[1].episode_rewards)


@pytest.mark.parametrize(
    "settings",
    [
        {"bonus": "rnd", "replay": 70, "value_heads": "two"},
        {"replay_on_disk": True, "replay": 70, "optimiser": "rmsprop", "bonus": "sf"},
    ],
    ids=str,
)
def test_so_do_other_agents_and_a_replay_that_runs_round(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("spie.agents.dqn.replay.FrameReplay.__init__.__kwdefaults__", {
        "envs": 1, "stack": 1, "gamma": 0.99, "folder": None, "segment": 32,
    })  # fmt: skip
    train(agent(**settings), CORRIDOR, STEPS, 1, tmp_path / "whole", checkpoint_steps=80)
    broken_run(tmp_path / "run", (100, 220), agent(**settings), checkpoint_steps=80)
    same(result(tmp_path / "whole"), result(tmp_path / "run"))
    segments = sorted(path.name for path in (tmp_path / "run" / "frames").iterdir())
    first, last = (
        c.values["replays"][0]["head"] for c in map(checkpoint.load, checkpoints(tmp_path / "run/checkpoints")[::-1])
    )
    # two checkpoints are kept, with the segments of 32 that hold the 70 last frames of each, and no other
    assert segments == [segment_name(i) for i in range((first - 70) // 32, (last - 1) // 32 + 1)]


def test_a_finished_run_that_is_made_longer_is_the_longer_run(tmp_path):
    half = agent(epsilon_fraction=0.5)
    train(half, CORRIDOR, STEPS // 2, 1, tmp_path / "run")
    longer = resume(tmp_path / "run", CORRIDOR, steps=STEPS)
    whole = train(
        agent(epsilon_fraction=0.0, epsilon_frames=STEPS // 4), CORRIDOR, STEPS, 1, tmp_path / "whole"
    )  # epsilon falls within half of the first half, and then stays
    assert read_run(tmp_path / "run") == read_run(tmp_path / "whole")
    found, expected = result(tmp_path / "run"), result(tmp_path / "whole")
    found[0].pop("loss_sums"), expected[0].pop("loss_sums")
    same(found, expected)
    np.testing.assert_allclose(longer.losses, whole.losses, rtol=1e-12)  # added in another order
    np.testing.assert_array_equal(longer.reward_curve, whole.reward_curve)
    assert resume(tmp_path / "run", CORRIDOR).steps == STEPS  # nothing is left to do
    with pytest.raises(ValueError, match=f"is a run of {STEPS} steps; --steps must be more than that, not 7"):
        resume(tmp_path / "run", CORRIDOR, steps=7)


def test_a_run_without_a_checkpoint_starts_from_the_beginning(unbroken, tmp_path):
    lines = []
    with pytest.raises(Stop):
        train(agent(), CORRIDOR, STEPS, 1, tmp_path / "run", progress=stop_at(40))
    resume(tmp_path / "run", CORRIDOR, warn=lines.append)
    assert lines == [f"{tmp_path / 'run'} has no checkpoint yet; it starts from the beginning"]
    same(result(unbroken[0]), result(tmp_path / "run"))


def test_killed_processes_leave_a_run_that_can_be_resumed(tmp_path):
    """kill -9 at random moments; `python -c` because a test process must not die."""
    program = f"""
import os
import shutil
from pathlib import Path
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.session import train, resume
from spie.tasks.pixels import PixelsVectorEnv, PixelTask, pixels
folder = Path({str(tmp_path / "run")!r})

def report(state):
    print(state.step, flush=True)

if (folder / "run.json").exists():
    resume(folder, progress=report, checkpoint_steps=20)
else:
    shutil.rmtree(folder, ignore_errors=True)
    train(DQN(**{SMALL!r}), pixels("four-rooms"), 900, 1, folder, progress=report, checkpoint_steps=20)
"""
    rng = np.random.default_rng(int(time.time()))  # any moment has to do
    alive = []
    for steps in (40, 60, 50):  # it gets so far at least, then some more
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        first = int(process.stdout.readline())
        while int(process.stdout.readline()) < first + steps:
            pass
        time.sleep(rng.uniform(0, 0.1))
        alive.append(process.poll() is None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert all(alive)
    assert checkpoints(tmp_path / "run" / "checkpoints")
    resume(tmp_path / "run")
    train(agent(), pixels("four-rooms"), 900, 1, tmp_path / "whole")
    same(result(tmp_path / "whole"), result(tmp_path / "run"))


def test_ctrl_c_saves_and_stops_and_the_run_goes_on_later(unbroken, tmp_path):
    def press(report):
        if report.step == 100:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(agent(), CORRIDOR, STEPS, 1, tmp_path / "run", progress=press)
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == ["step-000000000100"]
    resume(tmp_path / "run", CORRIDOR)
    same(result(unbroken[0]), result(tmp_path / "run"))


# -- Bad checkpoints


def sign(path, values):
    """Write values with the hash that fits them, as somebody with bad intentions would."""
    values = {name: value for name, value in values.items() if name != "sha256"}
    path.write_text(json.dumps(values | {"sha256": json_hash(values)}))


def damage(kind, path):
    """Spoil the checkpoint at `path` in one way."""
    manifest = json.loads((path / "manifest.json").read_text())
    if kind == "truncated":
        weights = path / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-7])
    elif kind == "flipped bit":
        data = bytearray((path / "0.npy").read_bytes())
        data[-1] ^= 1
        (path / "0.npy").write_bytes(data)
    elif kind == "file missing":
        (path / "0.npy").unlink()
    elif kind == "no manifest":
        (path / "manifest.json").write_text("{")
    elif kind == "another format":
        sign(path / "manifest.json", manifest | {"format": "zip"})
    elif kind == "step of another kind":
        manifest["values"]["step"] = "x"
        sign(path / "manifest.json", manifest)
    elif kind == "elsewhere":
        manifest["files"]["../../run.json"] = {"size": 1, "sha256": ""}
        sign(path / "manifest.json", manifest)
    elif kind == "pickle":
        np.save(path / "0.npy", np.array([{}], object), allow_pickle=True)
        manifest["files"]["0.npy"] = checkpoint._describe(path / "0.npy")
        sign(path / "manifest.json", manifest)
    elif kind == "huge":
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**15,)}
        with open(path / "0.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
        manifest["files"]["0.npy"] = checkpoint._describe(path / "0.npy")
        sign(path / "manifest.json", manifest)
    elif kind == "other values":
        manifest["values"]["random"] = "none"
        sign(path / "manifest.json", manifest)
    elif kind == "another number":
        manifest["values"]["step"] += 1
        (path / "manifest.json").write_text(json.dumps(manifest))
    elif kind == "frames gone":
        for segment in (path.parent.parent / "frames").iterdir():
            segment.unlink()


KINDS = {
    "truncated": "weights.safetensors is missing or not what was written",
    "flipped bit": "0.npy is missing or not what was written",
    "file missing": "0.npy is missing or not what was written",
    "no manifest": "its manifest cannot be read",
    "another format": "was written by something else than spie (format 'zip', ours is 1)",
    "step of another kind": "invalid literal for int",
    "elsewhere": "names a file of another kind: '../../run.json'",
    "pickle": "cannot be read",
    "huge": "cannot be read",
    "other values": "",
    "another number": "its manifest does not fit its hash",
}


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two") / "run"
    with pytest.raises(Stop):
        train(agent(), CORRIDOR, STEPS, 1, folder, progress=stop_at(200), checkpoint_steps=60)
    assert len(checkpoints(folder / "checkpoints")) == 2
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_checkpoint_is_one_line_and_the_one_before_it_is_used(kind, two_checkpoints, unbroken, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    newest, previous = checkpoints(folder / "checkpoints")
    damage(kind, newest)
    lines = []
    resume(folder, CORRIDOR, warn=lines.append)
    (line,) = lines
    assert str(newest) in line
    assert KINDS[kind] in line
    assert f"going on from {previous.name}" in line
    assert "\n" not in line
    same(result(unbroken[0]), result(folder))


def test_a_checkpoint_of_a_newer_spie_is_named_and_kept(two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    newest, previous = checkpoints(folder / "checkpoints")
    manifest = json.loads((newest / "manifest.json").read_text())
    (newest / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    cure = rf"update spie, or remove it to go on from {previous.name}$"
    with pytest.raises(ValueError, match=rf"{newest.name} was written by a newer spie .*; {cure}"):
        resume(folder, CORRIDOR)
    assert newest.exists()


@pytest.mark.parametrize("version", [None, 3, 99])
def test_a_run_of_another_version_of_the_agent_is_refused_by_that_version(version, two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    run["version"] = version
    if version is None:  # as it was before it was written down
        del run["version"]
    sign(folder / "run.json", run)
    mended = "" if version == 99 else r" \(before equation 15 was mended\)"
    line = rf"was made by version {version or 3} of the deep agent{mended}, ours is 4; it cannot go on: start again"
    with pytest.raises(ValueError, match=line):
        resume(folder, CORRIDOR)
    assert len(checkpoints(folder / "checkpoints")) == 2


def test_a_folder_in_which_another_process_trains_is_left_alone(two_checkpoints, unbroken, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is being trained by another process; wait for it, or stop it"):
            resume(folder, CORRIDOR)
    resume(folder, CORRIDOR)
    same(result(unbroken[0]), result(folder))


def test_a_monitor_file_that_somebody_cut_is_written_anew(two_checkpoints, unbroken, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    (folder / "monitor.csv").write_text("#")
    resume(folder, CORRIDOR)
    same(result(unbroken[0]), result(folder))


@pytest.mark.parametrize(
    ("change", "why"),
    [({"steps": "many"}, "steps is 'many'"), ({"seed": None}, "seed is None"), ({"settings": {"beta": "x"}}, "beta")],
    ids=str,
)
def test_a_run_json_that_somebody_spoiled_is_one_clear_line(change, why, two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    sign(folder / "run.json", run | change)
    with pytest.raises(ValueError, match=rf"run\.json cannot be read \(.*{why}.*\); start the run again"):
        resume(folder, CORRIDOR)


@pytest.mark.parametrize("change", [{"seed": 2}, {"steps": STEPS + 1}, {"more": 1}], ids=str)
def test_a_run_json_that_does_not_fit_its_hash_is_one_clear_line(change, two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | change))
    with pytest.raises(ValueError, match=r"run\.json cannot be read \(it is damaged: it does not fit its hash\)"):
        resume(folder, CORRIDOR)


def test_a_folder_from_before_there_were_hashes_goes_on(two_checkpoints, unbroken, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    for path in (folder / "run.json", *folder.glob("checkpoints/*/manifest.json")):
        values = json.loads(path.read_text())
        del values["sha256"]
        path.write_text(json.dumps(values))
    resume(folder, CORRIDOR)
    same(result(unbroken[0]), result(folder))


def test_a_monitor_file_with_another_number_is_written_anew(two_checkpoints, unbroken, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    text = (folder / "monitor.csv").read_text()
    (folder / "monitor.csv").write_text(text[:-3] + str((int(text[-3]) + 1) % 10) + text[-2:])
    resume(folder, CORRIDOR)
    same(result(unbroken[0]), result(folder))


@pytest.mark.parametrize(
    "name", [".lock", "monitor.csv", "frames", "frames/frames-000000.u8", "run.json", "checkpoints"]
)
@pytest.mark.parametrize("how", ["symbolic", "hard"])
def test_a_folder_that_leads_elsewhere_is_refused_and_nothing_there_is_touched(name, how, two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    target = tmp_path / "precious"
    if (folder / name).is_dir():
        if how == "hard":
            pytest.skip("folders have no hard links")
        shutil.move(folder / name, target)
    else:
        target.write_text("precious")
        (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target) if how == "symbolic" else os.link(target, folder / name)
    before = sorted(tmp_path.rglob("precious*"))
    for go_on in (lambda: resume(folder, CORRIDOR), lambda: player(folder, print, CORRIDOR).__enter__()):
        with pytest.raises(ValueError, match="is a link, or no plain file; a run's folder may hold none, so remove it"):
            go_on()
    assert sorted(tmp_path.rglob("precious*")) == before
    assert target.is_dir() or target.read_text() == "precious"


def test_a_run_that_does_not_fit_into_memory_does_not_go_on(two_checkpoints, tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "machine_memory", lambda: 1000.0)
    with pytest.raises(ValueError, match=r"would need .* GB and this machine has"):
        resume(shutil.copytree(two_checkpoints, tmp_path / "run"), CORRIDOR)


def test_a_map_that_was_edited_is_another_one(tmp_path):
    maze = tmp_path / "maze.txt"
    maze.write_text("S..\n...\n..G\n")
    with pytest.raises(Stop):
        train(agent(envs=1), pixels(maze), 150, 1, tmp_path / "run", progress=stop_at(50), checkpoint_steps=20)
    before = pixels(maze).digest
    maze.write_text("S..\n.#.\n..G\n")
    assert pixels(maze).digest != before
    with pytest.raises(ValueError, match=r"maze\.txt has changed since .* began; bring it back, or start again"):
        resume(tmp_path / "run")
    with pytest.raises(ValueError, match=r"maze\.txt has changed since"), player(tmp_path / "run", print):
        pass


def test_playing_takes_the_checkpoint_before_a_damaged_one(two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    newest, previous = checkpoints(folder / "checkpoints")
    damage("truncated", newest)
    lines = []
    with player(folder, lines.append, CORRIDOR) as learner:
        assert learner.step == int(previous.name.removeprefix("step-"))
    (line,) = lines
    assert line.endswith("weights.safetensors is missing or not what was written; trying the one before")
    assert newest.exists()


def test_where_no_checkpoint_can_be_used_it_says_so(two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    damage("frames gone", checkpoints(folder / "checkpoints")[0])
    with pytest.raises(ValueError, match="no checkpoint can be used; start again"):
        resume(folder, CORRIDOR)


# -- What a run leaves


def test_the_monitor_file_is_one_that_stable_baselines3_reads(unbroken):
    """Its reader takes the first line, after the #, as JSON, and the rest as a table with columns r, l and t."""
    first, *table = (unbroken[0] / "monitor.csv").read_text().splitlines()
    assert json.loads(first.removeprefix("#"))["t_start"] == 0
    rows = list(csv.DictReader(table))
    np.testing.assert_array_equal([float(row["r"]) for row in rows], unbroken[1].episode_rewards[0])
    np.testing.assert_array_equal([int(row["l"]) for row in rows], unbroken[1].episode_steps[0])
    assert [int(row["t"]) for row in rows] == sorted(int(row["t"]) for row in rows)


def test_the_curves_have_the_tags_that_people_know(unbroken):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(unbroken[0] / "tensorboard"))
    events.Reload()
    assert {
        "rollout/ep_rew_mean", "rollout/ep_len_mean", "rollout/exploration_rate", "train/loss", "train/learning_rate",
        "train/n_updates", "train/sf_loss", "train/pf_loss", "train/recon_loss", "time/fps", "intrinsic/raw_mean",
        "intrinsic/raw_std", "intrinsic/scaled_mean", "intrinsic/scaled_std", "intrinsic/log_visits_corr",
        "explore/coverage",
    } <= set(events.Tags()["scalars"])  # fmt: skip
    assert events.Scalars("explore/coverage")[-1].step == STEPS
    assert 0 < events.Scalars("explore/coverage")[-1].value <= 1


def test_a_trace_is_the_same_with_a_folder_and_without(unbroken):
    trace = agent().run(CORRIDOR, STEPS, [1])
    np.testing.assert_array_equal(trace.episode_rewards, unbroken[1].episode_rewards)
    np.testing.assert_array_equal(trace.visits, unbroken[1].visits)
    np.testing.assert_array_equal(trace.total_bonus, unbroken[1].total_bonus)


def test_run_json_has_all_that_determines_the_run(unbroken):
    run = read_run(unbroken[0])
    assert (DQN(**vars(run.settings)), run.steps, run.seed, run.threads) == (agent(), STEPS, 1, 1)
    assert (run.task, run.digest, run.recipe) == ("corridor", CORRIDOR.digest, None)


# -- Environments by name


class Stones(gym.Env):
    """A picture in which stones fall at random; what is paid is random, too. Episodes last 70 steps."""

    observation_space = gym.spaces.Box(0, 255, (20, 20), np.uint8)
    action_space = gym.spaces.Discrete(3)

    def see(self):
        return (self.stones * 80).astype(np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stones = self.np_random.integers(4, size=(20, 20))
        return self.see(), {}

    def step(self, action):
        self.stones = np.roll(self.stones, int(action) - 1, axis=1)
        self.stones[0] = self.np_random.integers(4, size=20)
        return self.see(), float(self.np_random.random()), False, False, {}


class GivenStones(Stones):
    """Gives its state, and counts how often it had to play."""

    steps: ClassVar[int] = 0

    def step(self, action):
        type(self).steps += 1
        return super().step(action)

    def get_state(self):
        return {"stones": self.stones, "random": vector.save_generators([self.np_random])}

    def set_state(self, state):
        self.stones = np.array(state["stones"])
        vector.load_generators([self.np_random], state["random"])


class OwnDice(Stones):
    """Does not draw from the generator that a seed determines."""

    def step(self, action):
        self.np_random = np.random.default_rng()
        return super().step(action)


def in_views():
    import minigrid.wrappers

    return minigrid.wrappers.RGBImgPartialObsWrapper(gym.make("MiniGrid-DoorKey-5x5-v0"), tile_size=4)


def only_image(env):
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(env)


def mountain_car():
    """Classic control as images: the place of the car, by which its speed is hidden."""
    space = gym.spaces.Box(0, 255, (12, 20), np.uint8)

    def draw(seen):
        return np.tile(np.where(np.arange(20) == int(10 * (seen[0] + 1.25)), 255, 0).astype(np.uint8), (12, 1))

    return gym.wrappers.TransformObservation(gym.make("MountainCar-v0"), draw, space)


@pytest.fixture
def registered():
    """Ids of environments that spie does not know."""
    for name, make in {"Stones": Stones, "GivenStones": GivenStones, "OwnDice": OwnDice}.items():
        gym.register(f"Test/{name}-v0", make, max_episode_steps=70)
    gym.register("Test/DoorKey-v0", lambda: only_image(in_views()))
    gym.register("Test/MountainCar-v0", mountain_car)
    yield
    for name in ("Stones", "GivenStones", "OwnDice", "DoorKey", "MountainCar"):
        gym.registry.pop(f"Test/{name}-v0")


def broken_in_the_middle_of_an_episode(name, folder):
    """A run of 160 steps that dies after the checkpoint at 100, and goes on; what was said."""
    lines, task = [], GymnasiumTask(name)
    with pytest.raises(Stop):
        train(agent(), task, 160, 1, folder, progress=stop_at(130), checkpoint_steps=100)
    resume(folder, task, warn=lines.append, checkpoint_steps=100)
    return lines


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", ["Test/Stones-v0", "Test/GivenStones-v0", "Test/DoorKey-v0", "Test/MountainCar-v0"])
def test_a_gymnasium_id_goes_on_in_the_middle_of_an_episode_bit_for_bit(name, tmp_path):
    if name == "Test/DoorKey-v0":
        pytest.importorskip("minigrid")
    train(agent(), GymnasiumTask(name), 160, 1, tmp_path / "whole", checkpoint_steps=100)
    GivenStones.steps = 0
    assert broken_in_the_middle_of_an_episode(name, tmp_path / "run") == []
    same(result(tmp_path / "whole"), result(tmp_path / "run"))
    assert GivenStones.steps in (0, 130 + 60)  # what gives its state does not play an episode again


@pytest.mark.usefixtures("registered")
def test_a_gymnasium_id_that_comes_out_otherwise_begins_a_new_episode_and_says_so(tmp_path):
    (line,) = broken_in_the_middle_of_an_episode("Test/OwnDice-v0", tmp_path / "run")
    assert line == (
        "Test/OwnDice-v0: the episode under way cannot be brought back, because the same actions from the same seed "
        "lead elsewhere; a new episode begins: not exactly the unbroken run"
    )


class Unsaved(gym.vector.VectorWrapper):
    """A VectorEnv of one's own that cannot be saved."""


def test_an_environment_that_cannot_be_saved_begins_a_new_episode_and_says_so(tmp_path):
    lines, task = [], EnvTask("unsaved", lambda n: Unsaved(Corridor(n)))
    with pytest.raises(Stop):
        train(agent(), task, 160, 1, tmp_path / "run", progress=stop_at(130), checkpoint_steps=100)
    trace = resume(tmp_path / "run", task, warn=lines.append)
    assert lines == ["this environment cannot be saved; a new episode begins: not exactly the unbroken run"]
    assert trace.steps.tolist() == [160]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Montezuma", 'no task of kind images "Montezuma"; did you mean "MontezumaRevenge"'),
        ("CartPole-v1", r"CartPole-v1: its observation is Box \[4\] of float32, not an image"),
        ("spie/RiverSwim-v0", "its observation is Discrete"),
    ],
)
def test_an_environment_that_does_not_fit_is_one_clear_line(name, message):
    with pytest.raises(ValueError, match=message):
        find_task(name, "images").make(1)


def test_an_option_that_an_environment_does_not_have_is_one_clear_line():
    with pytest.raises(ValueError, match=r'no option of four-rooms "colour"'):
        find_task("four-rooms", "images", colour=True)


def test_frames_are_counted_in_steps_of_the_frame_skip():
    assert steps_of(None, 53, find_task("freeway").frame_skip) == 10
    assert steps_of(None, 53, find_task("freeway", frame_skip=4).frame_skip) == 13
    assert steps_of(None, 53, find_task("four-rooms", "images").frame_skip) == 53


# -- Mistakes


class Vectors(Corridor):
    def __init__(self, shape, dtype=np.uint8, mode=AutoresetMode.DISABLED):
        super().__init__(2)
        self.single_observation_space = gym.spaces.Box(0, 255, shape, dtype)
        self.metadata = {"autoreset_mode": mode}


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Vectors((4,), np.float32), r"observations are Box \[4\] of float32; DQN needs single grey images"),
        (Vectors((12, 12, 3)), r"observations are Box \[12, 12, 3\] of uint8; DQN needs single grey images"),
        (Vectors((12, 12), mode=AutoresetMode.SAME_STEP), "resets itself within a step, and so hides the last frame"),
    ],
)
def test_a_vector_environment_of_another_kind_is_one_clear_line(env, message, tmp_path):
    for folder in (None, tmp_path / "run"):
        with pytest.raises(ValueError, match=message):
            agent().run(EnvTask("vectors", lambda n: env), 10, session=Session(folder=folder))


def test_memory_is_counted_for_all_seeds_and_a_replay_on_disk_needs_a_folder(monkeypatch):
    rooms = pixels("four-rooms")
    monkeypatch.setattr("spie.engine.lanes.machine_memory", lambda: 2e9)
    agent(replay=10**6).run(rooms, 5, 2)
    with pytest.raises(
        ValueError, match=r"12 replays of 1,000,000 steps each would need 5\.\d GB and this machine has 2"
    ):
        check_fits(agent(replay=10**6), rooms.shape, 10**7, seeds=12)
    with pytest.raises(ValueError, match=r"replay_on_disk needs a folder: give session="):
        agent(replay_on_disk=True).run(rooms, 5)


def test_mistakes_of_a_run_are_one_clear_line(unbroken, tmp_path, monkeypatch):
    def mistake(message, *arguments, settings=None, **options):
        with pytest.raises((ValueError, ImportError), match=message):
            (settings or agent()).run(*arguments, **options)

    mistake("steps must be a whole number of at least 1, not -3", CORRIDOR, -3)
    mistake("DQN needs a task that shows images; riverswim is a finite MDP", find_task("riverswim"), 10)
    mistake("DQN has no episodes; leave it out", CORRIDOR, 10, episodes=3)
    mistake(r"DQN has no keep\.matrices; leave it out", CORRIDOR, 10, keep=Keep(matrices=("Q",)))
    mistake(r"DQN has no keep\.snapshots; leave it out", CORRIDOR, 10, keep=Keep(snapshots=(5,)))
    mistake("DQN has no replay; leave it out", CORRIDOR, 10, replay=Replay(np.zeros(10, int)))
    another = Session(folder=unbroken[0])
    mistake("holds another run, of corridor: its steps differ; give another folder", CORRIDOR, 10, [1], session=another)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    mistake("exists and is not a run of spie", CORRIDOR, 10, session=Session(folder=tmp_path / "mine"))
    huge = agent(replay=10**9)  # of which even what is not on disk is too much
    mistake("a replay of 1,000,000,000 steps would need .* GB and this machine has .*; set replay=N", CORRIDOR,
            10**9, settings=huge)  # fmt: skip
    with pytest.raises(ValueError, match=r"is not a run of spie: it has no run\.json"):
        resume(tmp_path)
    with pytest.raises(ValueError, match="was run on a task of your own; give it again"):
        resume(unbroken[0])
    monkeypatch.setattr(deep.importlib.util, "find_spec", lambda name: None)
    mistake(r'DQN needs torch: pip install "spie-rl\[deep\]"', CORRIDOR, 10)
    with pytest.raises(TypeError, match="unexpected keyword argument 'frames'"):
        agent().run(CORRIDOR, frames=10)


def test_frames_or_steps_say_how_long():
    for asked, message in [
        ((None, None, 1), "give either steps or frames"),
        ((9, 9, 1), "give either steps or frames"),
        ((None, 0, 1), "frames must be a whole number of at least 1, not 0"),
        ((None, 4, 5), "frames must be a whole number of at least 5, which make one step, not 4"),
    ]:
        with pytest.raises(ValueError, match=message):
            steps_of(*asked)


def test_a_folder_of_spie_0_1_0_is_refused_with_what_to_run_again(two_checkpoints, tmp_path):
    folder = shutil.copytree(two_checkpoints, tmp_path / "run")
    run = json.loads((folder / "run.json").read_text())
    old = {"env": "four-rooms", "options": {}, "digest": "", **{k: run[k] for k in ("settings", "steps", "seed")}}
    (folder / "run.json").write_text(json.dumps(old))
    again = rf"run again: spie train four-rooms --steps {STEPS} --seed 1 --out NEW$"
    for use in (lambda: resume(folder), lambda: agent().run(CORRIDOR, STEPS, [1], session=Session(folder=folder))):
        with pytest.raises(ValueError, match=rf"{folder} is of spie 0\.1\.0, whose runs cannot go on; {again}"):
            use()
    (folder / "run.json").write_text(json.dumps(run | {"format": 99}))
    with pytest.raises(ValueError, match=r"was written by a newer spie \(format 99, ours is 2\); update spie"):
        resume(folder)


def test_a_single_seed_with_a_folder_goes_on_where_it_was_stopped(unbroken, tmp_path):
    shares = []

    def stop(share):
        shares.append(share)
        if share >= 0.5:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        agent().run(CORRIDOR, STEPS, [1], session=Session(folder=tmp_path / "run", progress=stop))
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(0.5, abs=0.01)
    trace = agent().run(CORRIDOR, STEPS, [1], session=Session(folder=tmp_path / "run"))
    same(result(unbroken[0]), result(tmp_path / "run"))
    again = agent().run(CORRIDOR, STEPS, [1], session=Session(folder=tmp_path / "run"))  # nothing is left to do
    for found in (trace, again):
        np.testing.assert_array_equal(found.visits, unbroken[1].visits)
        np.testing.assert_array_equal(found.total_bonus, unbroken[1].total_bonus)


def test_a_run_uses_the_threads_of_its_session_and_one_by_default(tmp_path):
    seen = []

    class Watched(Corridor):
        def step(self, actions):
            seen.append(torch.get_num_threads())
            return super().step(actions)

    torch.set_num_threads(2)
    try:
        for threads, folder in ((None, None), (2, None), (None, tmp_path / "one"), (2, tmp_path / "two")):
            seen.clear()
            still = agent(learning_starts=10**6)
            still.run(EnvTask("watched", Watched), 4, session=Session(threads=threads, folder=folder))
            assert set(seen) == {threads or 1}
            assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_an_option_at_its_default_is_not_part_of_a_runs_id():
    plain = DQN(bonus="sf", preset="small")
    assert plain.changed_settings() == {"bonus": "sf", "preset": "small"}
    assert DQN().changed_settings() == {}
    assert DQN(bonus="sf", preset="small", scale="rms", beta=0.02).changed_settings() == {
        "bonus": "sf", "preset": "small", "beta": 0.02,
    }  # fmt: skip


def test_settings_need_no_torch():
    program = "import sys; sys.modules['torch'] = None; import spie; print(spie.DQN(bonus='sf-pf').beta)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "0.07\n"


# -- Commands


def test_train_resume_evaluate_and_play(spie, tmp_path):
    words = ("train", "cluster-hard", "--steps", 150, "--seed", 3, "batch=8", "learning_starts=60", "max_steps=20")
    code, out, err = spie(*words)
    assert code == 0
    assert "cluster-hard: dqn-sf-pf (small), 150 steps, seed 3, into runs/cluster-hard-dqn-sf-pf-3" in err
    assert "GB of memory and about" in err
    assert "150 steps" in err
    assert "bonus" in err
    assert "next: spie evaluate runs/cluster-hard-dqn-sf-pf-3" in err
    assert out.startswith("cluster-hard dqn-sf-pf: 150 steps, 7 episodes, mean reward of the last 7 0.00")
    with Store(tmp_path / "results.db") as store:
        ((stored,),) = store._connection.execute("SELECT id FROM runs").fetchall()
        assert store.info(stored)["spec"]["env"] == "cluster-hard"
        assert store.load(stored)[1]["episode_steps"].tolist() == [[20] * 7]
    run = "runs/cluster-hard-dqn-sf-pf-3"
    assert "holds a run already; go on with spie resume" in spie(*words)[2]
    assert spie("resume", run)[1] == out
    assert spie("resume", run, "--steps", 170)[1].startswith("cluster-hard dqn-sf-pf: 170 steps, 8 episodes")
    code, out, _ = spie("evaluate", run, "--episodes", 2, "--json")
    assert json.loads(out)["mean"] == np.mean(json.loads(out)["episodes"])
    code, out, _ = spie("play", run, "--steps", 3, "-o", "film.gif")
    assert out == "wrote film.gif: 3 steps, reward 0.00\n"
    assert (tmp_path / "film.gif").read_bytes()[:3] == b"GIF"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "four-roms", "--steps", "9"], 'no task of kind images "four-roms"; did you mean "four-rooms"'),
        (["train", "ALE/Montezuma-v5", "--steps", "9"], 'no Atari game "ALE/Montezuma-v5"; did you mean "Montezuma'),
        (
            ["train", "four-rooms", "--agent", "dqn-sfpf", "--steps", "9"],
            'no agent "dqn-sfpf"; did you mean "dqn-sf-pf"',
        ),
        (["train", "four-rooms", "--preset", "big", "--steps", "9"], 'no preset of DQN "big"'),
        (["train", "four-rooms", "--steps", "9", "--frames", "9"], "give either steps or frames"),
        (["train", "Freeway", "--frames", "0"], "frames must be a whole number of at least 5, which make one step"),
        (["train", "four-rooms", "bata=1", "--steps", "9"], 'no setting or option "bata"; did you mean "beta"?'),
        (["train", "four-rooms", "batch", "--steps", "9"], '"batch" is not a setting; settings are key=value'),
        (["train", "CartPole-v1", "--steps", "9"], "not an image"),
        (["train", "four-rooms", "--seed", f"{10**24}"], f"seeds must lie in 0 ... 2^63 - 1, not {10**24}"),
        (["train", "four-rooms", "--seed", "-1"], "seeds must lie in 0 ... 2^63 - 1, not -1"),
        (["train", "four-rooms", "--steps", "9", "--out", "/dev/null"], "/dev/null exists and is not a run of spie"),
        (
            ["train", "Freeway", "--steps", "9000000", "replay=9000000"],
            "GB; set replay_on_disk=true (memory-mapped), or",
        ),
        (["train", "four-rooms", "beta=abc", "--steps", "9"], "beta must be a number, not abc"),
        (["train", "four-rooms", "device=gpu", "--steps", "9"], "device gpu cannot be used here"),
        (
            ["train", "four-rooms", "max_steps=few", "--steps", "9"],
            "max_steps is few; give a whole number of 1 or more",
        ),
        (["train", "Freeway", "frame_skip=2.5", "--steps", "9"], "frame_skip 2.5 and max_frames 18000 must be whole"),
        (["resume", "nowhere"], "nowhere is not a run of spie"),
        (["evaluate", "nowhere", "--episodes", "0"], "--episodes must lie between 1 and 100,000, not 0"),
        (["play", "nowhere", "-o", "film.png"], "a film is a .gif"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(spie, words, message):
    code, out, err = spie(*words)
    assert code == 2
    assert message in err
    assert err.strip().splitlines()[-1].startswith("spie: ")
    assert "Traceback" not in out + err


def test_a_command_closes_every_environment_that_it_opens_and_builds_no_more_than_it_needs(spie, monkeypatch):
    opened, closed = [], []
    make, close = PixelTask.make, PixelsVectorEnv.close
    monkeypatch.setattr(PixelTask, "make", lambda task, n: opened.append(make(task, n)) or opened[-1])
    monkeypatch.setattr(PixelsVectorEnv, "close", lambda env: (closed.append(env), close(env)))
    run = "runs/cluster-hard-dqn-sf-pf-0"
    steps = ("train", "cluster-hard", "--steps", 70, "learning_starts=60", "max_steps=20")
    for words, needed in ((steps, 1), (("resume", run), 1), (("evaluate", run, "--episodes", 1), 1)):
        opened.clear(), closed.clear()
        assert spie(*words)[0] == 0
        assert len(opened) == needed
        assert {id(env) for env in opened} == {id(env) for env in closed}


def test_a_game_without_its_rom_is_one_clear_line(spie, monkeypatch, tmp_path):
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    code, _, err = spie("train", "Freeway", "--steps", 9)
    assert code == 2
    assert err.splitlines()[-1].startswith("spie: Freeway: its ROM cannot be used (")
    assert err.endswith("; install ale-py again, or set ALE_ROMS_DIR\n")


def test_without_torch_a_command_says_what_to_install(spie, monkeypatch):
    find_spec = deep.importlib.util.find_spec
    monkeypatch.setattr(deep.importlib.util, "find_spec", lambda name: None if name == "torch" else find_spec(name))
    code, _, err = spie("train", "four-rooms", "--steps", 9)
    assert (code, err.splitlines()[-1]) == (2, 'spie: DQN needs torch: pip install "spie-rl[deep]"')
