"""A training run as its user lives it: a folder with settings, episodes, curves and checkpoints; go on after a crash.

run.json       agent, settings, environment, steps, seed: all that determines the run
monitor.csv    one line an episode: reward, length, step; it has no clock, so a resumed run writes the same bytes
checkpoints/   the last two (checkpoint.py)
frames/        the replay's frames, which checkpoints share
tensorboard/   the curves
"""

import dataclasses
import hashlib
import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spie.agents.dqn import checkpoint
from spie.agents.dqn.replay import Replay
from spie.agents.dqn.settings import DQN, need_torch, steps_of
from spie.engine.lanes import check_memory
from spie.tasks.gymnasium import image_shape, make_images
from spie.trace import Trace

if TYPE_CHECKING:
    from spie.agents.dqn.learner import Episode, Learner

CHECKPOINT_SECONDS = 600.0  # between two at most; from 30 s on where they are quick, but never a twentieth of the time
REPORTS = 500  # a run, and as many points a curve


@dataclass(frozen=True)
class Task:
    """An environment by name, with its options."""

    env: str
    options: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Of the name and the options; of a map in a file also of what it holds."""
        text = [Path(self.env).read_text()] if "\n" not in self.env and Path(self.env).is_file() else []
        return hashlib.sha256(json.dumps([self.env, sorted(self.options.items()), *text]).encode()).hexdigest()[:24]

    def make(self, n: int) -> Any:
        return make_images(self.env, n, **self.options)


@dataclass(frozen=True)
class Report:
    """How a run stands."""

    step: int
    steps: int
    rate: float  # steps a second, of late
    curves: dict[str, float]  # by TensorBoard's tag

    @property
    def seconds_left(self) -> float:
        return (self.steps - self.step) / self.rate if self.rate else float("inf")


Progress = Callable[[Report], None]


def train(
    settings: DQN,
    env: Any,
    steps: int | None,
    seed: int,
    out: str | Path,
    *,
    frames: int | None = None,
    options: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    checkpoint_steps: int | None = None,
) -> Trace:
    """Train one seed into the new folder `out`.

    env: a name, or a VectorEnv, which `resume` then has to be given. steps or frames: how long. checkpoint_steps: how
    often to save; by default twice a minute, less often where that would take long, but every ten minutes.
    """
    need_torch()
    folder = Path(out)
    check_new(folder)
    vector_env = Task(env, options or {}).make(settings.envs) if isinstance(env, str) else env
    steps = steps_of(steps, frames, vector_env)
    check_fits(settings, vector_env, steps)
    folder.mkdir(parents=True, exist_ok=True)
    run = {
        "env": env if isinstance(env, str) else None,
        "options": dict(options or {}),
        "settings": dataclasses.asdict(settings),
        "steps": steps,
        "seed": seed,
        "threads": threads or default_threads(settings),
        "digest": Task(env, options or {}).digest if isinstance(env, str) else None,
    }
    with _locked(folder):
        checkpoint.write_json(folder / "run.json", run)
        return _Training(folder, vector_env, progress, checkpoint_steps).run()


def resume(
    folder: str | Path,
    env: Any = None,
    *,
    progress: Progress | None = None,
    warn: Callable[[str], None] = lambda line: None,
    checkpoint_steps: int | None = None,
) -> Trace:
    """Go on with a run where its last checkpoint left it, as if it had never stopped."""
    need_torch()
    read_run(Path(folder))  # is it one?
    with _locked(Path(folder)):
        training = _Training(Path(folder), env, progress, checkpoint_steps)
        training.restore(warn)
        return training.run()


def check_new(folder: Path) -> None:
    """A folder for a new run must be new, or empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if (folder / "run.json").exists():
            raise ValueError(f"{folder} holds a run already; go on with spie resume {folder}, or give another --out")
        raise ValueError(f"{folder} exists and is not a run of spie; give another --out")


def read_run(folder: Path) -> dict[str, Any]:
    """The run.json of a run."""
    try:
        run = json.loads((folder / "run.json").read_bytes())
        for name, kind in _RUN.items():
            if not isinstance(run[name], kind):
                raise ValueError(f"{name} is {run[name]!r}")
        return {**run, "settings": DQN(**run["settings"])}
    except FileNotFoundError as error:
        raise ValueError(f"{folder} is not a run of spie: it has no run.json; start one with spie train") from error
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{folder / 'run.json'} cannot be read ({error}); start the run anew with spie train"
        ) from error


_RUN = {"env": str | None, "options": dict, "settings": dict, "steps": int, "seed": int, "threads": int}


def _env(spec: Mapping[str, Any], folder: Path, given: Any, n: int) -> Any:
    """The environment of a run: the one that was given, or n copies by its name."""
    if given is not None:
        return given
    if spec["env"] is None:
        raise ValueError(f"{folder} was run on an environment object; give it again: resume({folder}, env)")
    task = Task(spec["env"], spec["options"])
    if spec.get("digest", task.digest) != task.digest:
        raise ValueError(
            f"{spec['env']} has changed since {folder} began; bring it back, or start anew with spie train"
        )
    return task.make(n)


def default_threads(settings: DQN) -> int:
    """Small matrices gain nothing from a second thread."""
    return 1 if settings.network == "small" else os.cpu_count() or 1


def memory_for(settings: DQN, shape: tuple[int, int], steps: int) -> int:
    """The bytes that one seed needs in memory, on images of a shape."""
    replay = 0 if settings.replay_on_disk else Replay.bytes_for(min(settings.replay, steps), shape)
    networks = {"paper": 26.4e6, "nature": 6.6e6, "small": 2e6}[settings.network] * 4 * 5  # two, gradient, optimiser
    return int(replay + networks)


def check_fits(settings: DQN, env: Any, steps: int, seeds: int = 1) -> int:
    """The bytes that a run needs in memory; ValueError where there are not so many, or the env shows no images."""
    needed = seeds * memory_for(settings, image_shape(env), steps)
    slots = f"{min(settings.replay, steps):,} steps"
    what = f"a replay of {slots}" if seeds == 1 else f"{seeds} replays of {slots} each"
    check_memory(needed, what, "set replay_on_disk=true (memory-mapped), or a smaller replay=N")
    return needed


@dataclass(frozen=True)
class Cost:
    """What a run will take."""

    bytes: int  # of memory
    seconds: float


def cost(settings: DQN, task: Task, steps: int, threads: int) -> Cost:
    """Measured on a few steps and updates that are then forgotten: some seconds with the paper's network."""
    need_torch()
    from spie.agents.dqn.learner import Learner, on_threads

    quick: dict[str, Any] = {
        "replay": 100 * settings.envs,
        "learning_starts": 0,
        "train_every": 10**9,
        "epsilon_fraction": 1e-9,
    }
    env = task.make(settings.envs)
    needed = check_fits(settings, env, steps)
    with on_threads(threads):
        learner = Learner(dataclasses.replace(settings, replay_on_disk=False, **quick), env, [0], 10**9)
        times = []
        for _ in range(20):
            began = time.perf_counter()
            learner.advance()
            times.append(time.perf_counter() - began)
        learner.end_episodes()
        updates = []
        for _ in range(3):
            began = time.perf_counter()
            learner.update()
            updates.append(time.perf_counter() - began)
    n_updates = max(0, steps - settings.learning_starts) / settings.train_every
    return Cost(needed, steps / settings.envs * sorted(times)[len(times) // 2] + n_updates * min(updates))


def player(folder: Path, warn: Callable[[str], None], env: Any = None) -> "Learner":
    """The agent of a run as its last checkpoint has it, on an environment of its own, to play and not to learn."""
    need_torch()
    from spie.agents.dqn.learner import Learner

    spec = read_run(folder)
    settings = dataclasses.replace(spec["settings"], envs=1, replay=100, replay_on_disk=False)
    found = checkpoint.checkpoints(folder / "checkpoints")
    for path in found:
        try:
            content = checkpoint.load(path)
            env = _env(spec, folder, env, 1)
            learner = Learner(settings, env, [spec["seed"] + 1], spec["steps"])  # not the episodes it has learned from
            learner.load_weights(content.weights)
            learner.step = content.values["step"]
            learner.visits[...] = content.arrays["visits"]
            return learner
        except (checkpoint.CheckpointError, KeyError, RuntimeError) as error:
            warn(f"{path}: {str(error).partition(chr(10))[0].removeprefix(f'{path} ')}; trying the one before")
    raise ValueError(f"{folder} has no checkpoint that can be used; spie resume {folder} makes one")


def evaluate(folder: Path, episodes: int, epsilon: float, warn: Callable[[str], None], env: Any = None) -> list[float]:
    """Rewards of so many episodes, played and not learned from."""
    learner, rewards, total = player(folder, warn, env), [], 0.0
    for step in learner.play(epsilon, np.random.default_rng(0)):
        total += step.reward
        if step.over:
            rewards.append(total)
            total = 0.0
        if len(rewards) == episodes:
            break
    return rewards


class _Training:
    """One run: the learner, and the files of its folder."""

    def __init__(self, folder: Path, env: Any, progress: Progress | None, checkpoint_steps: int | None) -> None:
        self.folder, self.progress, self.checkpoint_steps = folder, progress, checkpoint_steps
        self.spec = read_run(folder)
        self.settings: DQN = self.spec["settings"]
        self.env = _env(self.spec, folder, env, self.settings.envs)
        self.learner = self._learner()
        self.episodes: list[Episode] = []
        self.seconds = 0.0  # of all sessions
        self.written = 0  # bytes of monitor.csv that belong to the run so far

    def _learner(self) -> "Learner":
        from spie.agents.dqn.learner import Learner, on_threads

        with on_threads(self.spec["threads"]):
            return Learner(self.settings, self.env, [self.spec["seed"]], self.spec["steps"], self.folder / "frames")

    # -- checkpoints

    def save(self) -> None:
        learner = self.learner
        segments = [replay.save_frames(self.folder / "frames") for replay in learner.replays]
        arrays, values = learner.state()
        values |= {"segments": segments, "seconds": self.seconds, "monitor": self.written}
        arrays["episodes"] = np.array([dataclasses.astuple(e) for e in self.episodes], np.float64).reshape(-1, 6)
        content = checkpoint.Checkpoint(learner.weights(), arrays, values)
        checkpoint.save(self.folder / "checkpoints", learner.step, content, self.folder / "frames")

    def restore(self, warn: Callable[[str], None]) -> None:
        """Back to the newest checkpoint that can be read; to the start where there is none."""
        from spie.agents.dqn.learner import Episode

        found = checkpoint.checkpoints(self.folder / "checkpoints")
        for i, path in enumerate(found):
            following = f"going on from {found[i + 1].name}" if i + 1 < len(found) else "and there is none before it"
            try:
                content = checkpoint.load(path)
                values = content.values
                self.learner.load_weights(content.weights)
                self.learner.restore(content.arrays, values, self.folder / "frames", values["segments"])
                rows = content.arrays["episodes"].tolist()
                self.episodes = [Episode(int(a), int(b), int(c), r, int(d), bool(e)) for a, b, c, r, d, e in rows]
                self.seconds, self.written = float(values["seconds"]), int(values["monitor"])
            except checkpoint.NewerError as error:  # whose progress is not ours to throw away
                rest = f", or remove it to go on from {found[i + 1].name}" if i + 1 < len(found) else ""
                raise ValueError(f"{error}{rest}") from error
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, MemoryError) as error:
                why = str(error).partition("\n")[0]
                warn(f"{path}: {why.removeprefix(f'{path} ')}; {following}")
                self.learner = self._learner()  # whatever half of it was restored
                continue
            if not hasattr(self.env, "set_state"):
                warn("this environment cannot be saved, so its episode begins anew: not exactly the unbroken run")
            for newer in found[:i]:
                checkpoint.discard(newer)
            return
        if found:
            raise ValueError(f"{self.folder}: no checkpoint can be used; start anew with spie train and another --out")
        warn(f"{self.folder} has no checkpoint yet; it starts from the beginning")

    # -- the run

    def run(self) -> Trace:
        """To the end, with a checkpoint now and then, and one at Ctrl-C."""
        from spie.agents.dqn.learner import on_threads
        from spie.agents.dqn.many_seeds import trace_of

        learner, began, steps = self.learner, time.monotonic(), self.spec["steps"]
        before, last_report = self.seconds, learner.step
        rates: deque[tuple[float, int]] = deque([(began, learner.step)], maxlen=20)
        saved, pause = began, min(30.0, CHECKPOINT_SECONDS)
        with (
            self._monitor() as monitor,
            Curves(self.folder / "tensorboard", learner.step) as curves,
            on_threads(self.spec["threads"]),
            _patient_interrupt() as interrupted,
        ):
            for ended in learner.loop():
                for episode in ended:
                    self.episodes.append(episode)
                    self.written += monitor.write(_line(episode))
                now = time.monotonic()
                self.seconds = before + now - began
                if learner.step - last_report >= steps / REPORTS or learner.step >= steps:
                    last_report = learner.step
                    rates.append((now, learner.step))
                    rate = (learner.step - rates[0][1]) / max(now - rates[0][0], 1e-9)
                    report = Report(learner.step, steps, rate, self.curves(rate))
                    curves.add(report)
                    if self.progress is not None:
                        self.progress(report)
                if self.checkpoint_steps is None:
                    due = now - saved >= pause
                else:
                    due = learner.step % self.checkpoint_steps < learner.envs
                if due or interrupted or learner.step >= steps:
                    monitor.flush()
                    os.fsync(monitor.fileno())
                    self.save()
                    saved = time.monotonic()
                    pause = min(CHECKPOINT_SECONDS, max(30.0, 20 * (saved - now)))
                if interrupted:
                    raise KeyboardInterrupt
        return trace_of(learner, np.array([self.spec["seed"]]), [self.episodes])

    @contextmanager
    def _monitor(self) -> Iterator[Any]:
        """monitor.csv, cut back to what the checkpoint knew; Stable-Baselines3's columns, but t counts steps."""
        path = self.folder / "monitor.csv"
        with open(path, "a+", newline="") as file:
            if self.written == 0 or os.fstat(file.fileno()).st_size < self.written:  # none yet, or somebody cut it
                file.truncate(0)
                header = json.dumps({"t_start": 0, "env_id": self.spec["env"], "t": "steps"})
                self.written = file.write("".join([f"#{header}\nr,l,t\n", *map(_line, self.episodes)]))
            else:
                file.truncate(self.written)
            file.seek(0, os.SEEK_END)
            yield file

    def curves(self, rate: float) -> dict[str, float]:
        """What there is to draw now, by TensorBoard's tag: Stable-Baselines3's where it has one."""
        learner = self.learner
        recent = {name: np.array(values) for name, values in learner.recent.items() if values}
        learner.recent.clear()
        curves = {"time/fps": rate, "rollout/exploration_rate": learner.epsilon}
        if self.episodes:
            last = self.episodes[-100:]
            curves["rollout/ep_rew_mean"] = float(np.mean([episode.reward for episode in last]))
            curves["rollout/ep_len_mean"] = float(np.mean([episode.length for episode in last]))
        if learner.updates:
            curves |= {"train/n_updates": learner.updates, "train/learning_rate": self.settings.rate}
        for name, values in recent.items():
            if name.endswith("loss") or name == "q_mean":
                curves[f"train/{name}"] = float(values.mean())
        if "bonus" in recent:
            bonus = recent["bonus"]
            curves |= {"intrinsic/raw_mean": float(bonus.mean()), "intrinsic/raw_std": float(bonus.std())}
            scaled = recent["scaled_bonus"]
            curves |= {"intrinsic/scaled_mean": float(scaled.mean()), "intrinsic/scaled_std": float(scaled.std())}
            if "log_visits" in recent and bonus.std() > 0 and recent["log_visits"].std() > 0:
                curves["intrinsic/log_visits_corr"] = float(np.corrcoef(bonus, recent["log_visits"])[0, 1])
        if learner.n_states:
            curves["explore/coverage"] = float((learner.first_visit >= 0).mean())
        return curves


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Nobody else trains in this folder meanwhile; a process that is killed holds it no longer."""
    try:
        import fcntl
    except ImportError:  # Windows has none
        yield
        return
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"{folder} is being trained by another process; wait for it, or stop it") from error
        yield


def _line(episode: "Episode") -> str:
    return f"{episode.reward:.10g},{episode.length},{episode.step}\n"


class Curves:
    """A TensorBoard file; nothing where tensorboard is not installed."""

    def __init__(self, folder: Path, step: int) -> None:
        self.writer: Any = None
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            return
        self.event, self.summary = Event, Summary
        self.writer = EventFileWriter(str(folder))
        if step:  # a run that was killed had written further: TensorBoard is to forget that
            log = SessionLog(status=SessionLog.START)
            self.writer.add_event(Event(wall_time=time.time(), step=step, session_log=log))

    def add(self, report: Report) -> None:
        if self.writer is not None:
            values = [self.summary.Value(tag=tag, simple_value=value) for tag, value in report.curves.items()]
            event = self.event(wall_time=time.time(), step=report.step, summary=self.summary(value=values))
            self.writer.add_event(event)

    def __enter__(self) -> "Curves":
        return self

    def __exit__(self, *_: object) -> None:
        if self.writer is not None:
            self.writer.close()


@contextmanager
def _patient_interrupt() -> Iterator[list[bool]]:
    """Ctrl-C is noted, and acted on between two steps, when there is a whole state to save; the second is not noted."""
    noted: list[bool] = []

    def note(number: int, frame: Any) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    old = signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, old)
