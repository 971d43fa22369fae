"""A training run as its user lives it: into a folder, on after a crash, played when it is done; and seed after seed."""

import dataclasses
import functools
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from spie.agents.dqn import checkpoint
from spie.agents.dqn.build import build
from spie.agents.dqn.cost import check_fits
from spie.agents.dqn.folder import FolderSpec, check_new, check_version, locked, read_run, task_of, write_run
from spie.agents.dqn.hardware import on_threads
from spie.agents.dqn.learner import Learner
from spie.agents.dqn.many_seeds import side_by_side, trace_of
from spie.agents.dqn.monitor import Pace, TrainingReport, curves_of, line_of, monitor_file
from spie.agents.dqn.parts import Episode
from spie.agents.dqn.play import PlayedStep, play
from spie.agents.dqn.settings import DQNSettings, check_steps
from spie.agents.dqn.state import load_weights, restore, state_of, stretch_losses, weights_of
from spie.files import replacing, to_disk
from spie.tasks.base import ImageTask
from spie.tasks.gymnasium import image_shape
from spie.trace import Trace, joined
from spie.trackers import open_sinks

CHECKPOINT_SECONDS = 600.0  # between two at most; from 30 s on where they are quick, but never a twentieth of the time
REPORTS = 500  # a run, and as many points a curve

Watch = Callable[[TrainingReport], None]
Warn = Callable[[str], None]


def train(
    settings: DQNSettings,
    task: ImageTask,
    steps: int,
    seed: int,
    folder: str | Path,
    *,
    threads: int = 1,
    progress: Watch | None = None,
    checkpoint_steps: int | None = None,
    recipe: tuple[str, dict[str, Any]] | None = None,
    announce: Callable[[int], None] = lambda needed: None,
) -> Trace:
    """Train one seed into a new folder.

    checkpoint_steps: how often to save; by default twice a minute, less often where that would take long, but every
    ten minutes. recipe: name and options of the task, where it does not know them itself. announce: is told, before
    training begins, how many bytes of memory it needs.
    """
    folder = Path(folder)
    check_new(folder)
    with closing(task.make(settings.envs)) as env:
        announce(check_fits(settings, image_shape(env), steps))
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            spec = FolderSpec.of(settings, task, steps, seed, threads, recipe)
            write_run(folder, spec)
            return _Training(folder, spec, env, task.frame_skip, progress, checkpoint_steps).run()


def resume(
    folder: str | Path,
    task: ImageTask | None = None,
    *,
    steps: int | None = None,
    progress: Watch | None = None,
    warn: Warn = lambda line: None,
    checkpoint_steps: int | None = None,
) -> Trace:
    """Go on with a run where its last checkpoint left it, as if it had never stopped.

    task: where it is one that cannot be made again from what the folder says. steps: in all, to make the run longer.
    """
    folder = Path(folder)
    before = read_run(folder)
    check_version(folder, before)
    task = task_of(before, folder, task)
    spec = before if steps is None else extended(before, folder, steps, task.frame_skip)
    with locked(folder), closing(task.make(spec.settings.envs)) as env:
        check_fits(spec.settings, image_shape(env), spec.steps)
        training = _Training(folder, spec, env, task.frame_skip, progress, checkpoint_steps)
        training.restore(warn)
        if spec != before:
            write_run(folder, spec)
        return training.run()


def extended(spec: FolderSpec, folder: Path, steps: int, frame_skip: int) -> FolderSpec:
    """The same run with more steps: epsilon falls as it did, and stays where it ended."""
    check_steps(steps)
    if steps < spec.steps:
        raise ValueError(f"{folder} is a run of {spec.steps:,} steps; --steps must be more than that, not {steps:,}")
    settings = spec.settings
    if steps > spec.steps and settings.epsilon_fraction:  # of the steps that it was planned for
        frames = max(1, round(settings.epsilon_fraction * spec.steps * frame_skip))
        settings = dataclasses.replace(settings, epsilon_fraction=0.0, epsilon_frames=frames)
    return dataclasses.replace(spec, settings=settings, steps=steps)


def seconds_of(folder: Path) -> float:
    """How long a run has trained so far, in all its sessions."""
    newest = checkpoint.checkpoints(folder / "checkpoints")[0]
    return float(checkpoint.read_manifest(newest)["values"]["seconds"])


# -- Seeds of one run


def run_seeds(
    settings: DQNSettings,
    task: ImageTask,
    seeds: Sequence[int],
    steps: int,
    threads: int = 1,
    folder: Path | None = None,
    progress: Callable[[float], None] | None = None,
) -> Trace:
    """Small networks run side by side; others, which fill a core, one after the other; all from their checkpoints."""
    if folder is not None and len(seeds) == 1:
        return _begin_or_go_on(settings, task, steps, seeds[0], folder, threads, progress)
    if settings.network == "small":
        return side_by_side(settings, task, seeds, steps, threads, progress, folder)
    found = []
    for i, seed in enumerate(seeds):

        def report(share: float, i: int = i) -> None:
            if progress is not None:
                progress((i + share) / len(seeds))

        if folder is None:
            found.append(side_by_side(settings, task, [seed], steps, threads, report))
        else:
            own = folder / f"seed-{seed}"
            run = functools.partial(_begin_or_go_on, settings, task, steps, seed, own, threads, report)
            found.append(_kept(own, run))
    return joined(found)


def _begin_or_go_on(
    settings: DQNSettings,
    task: ImageTask,
    steps: int,
    seed: int,
    folder: Path,
    threads: int,
    progress: Callable[[float], None] | None,
) -> Trace:
    """One seed in its folder; from its last checkpoint on where there is one."""

    def report(state: TrainingReport) -> None:
        if progress is not None:
            progress(min(1.0, state.step / state.steps))

    if not (folder / "run.json").exists():
        return train(settings, task, steps, seed, folder, threads=threads, progress=report)
    there = read_run(folder)
    ours = FolderSpec.of(settings, task, steps, seed, there.threads)
    for name in ("settings", "digest", "steps", "seed"):
        if _plain(getattr(there, name)) != _plain(getattr(ours, name)):
            raise ValueError(f"{folder} holds another run, of {there.task}: its {name} differ; give another folder")
    return resume(folder, task, progress=report)


def _plain(value: Any) -> Any:
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # type: ignore[arg-type]


def _kept(own: Path, run: Callable[[], Trace]) -> Trace:
    """One seed of several: once it is done its trace is kept as a small file, and gigabytes of frames are not."""
    done = own.with_name(f"{own.name}.npz")
    if not done.exists():
        trace = run()
        with replacing(done) as file:
            arrays: dict[str, Any] = dict(trace.arrays)
            np.savez(file, **arrays)  # of plain numbers; object arrays would not load
    shutil.rmtree(own, ignore_errors=True)
    with np.load(done) as found:
        return Trace(**found)


# -- Playing


@contextmanager
def player(folder: str | Path, warn: Warn, task: ImageTask | None = None) -> Iterator[Learner]:
    """The agent of a run as its last checkpoint has it, on an environment of its own, to play and not to learn."""
    folder = Path(folder)
    spec = read_run(folder)
    task = task_of(spec, folder, task)
    settings = dataclasses.replace(spec.settings, envs=1, replay=100, replay_on_disk=False)
    with on_threads(spec.threads), closing(task.make(1)) as env:
        for path in checkpoint.checkpoints(folder / "checkpoints"):
            try:
                content = checkpoint.load(path)
                seed = spec.seed + 1  # not the episodes it has learned from
                learner = build(settings, env, [seed], spec.steps, frame_skip=task.frame_skip)
                load_weights(learner, content.weights)
                learner.step = content.values["step"]
                learner.visits[...] = content.arrays["visits"]
                break
            except (checkpoint.CheckpointError, KeyError, RuntimeError) as error:
                warn(f"{path}: {str(error).partition(chr(10))[0].removeprefix(f'{path} ')}; trying the one before")
        else:
            raise ValueError(f"{folder} has no checkpoint that can be used; spie resume {folder} makes one")
        yield learner


def evaluate(
    folder: str | Path, episodes: int, epsilon: float, warn: Warn, task: ImageTask | None = None
) -> list[float]:
    """Rewards of `episodes` episodes, played and not learned from."""
    rewards, total = [], 0.0
    with player(folder, warn, task) as learner:
        for step in play(learner, epsilon, np.random.default_rng(0)):
            total += step.reward
            if step.over:
                rewards.append(total)
                total = 0.0
            if len(rewards) == episodes:
                break
    return rewards


def played_episode(
    folder: str | Path, epsilon: float, steps: int, warn: Warn, told: Callable[[int], None] = lambda step: None
) -> list[PlayedStep]:
    """The steps of one episode, at most `steps` of them; told: called with the number of each."""
    taken: list[PlayedStep] = []
    with player(folder, warn) as learner:
        for step in play(learner, epsilon, np.random.default_rng(0)):
            taken.append(step)
            told(len(taken))
            if step.over or len(taken) == steps:
                break
    return taken


# -- One run in its folder


class _Training:
    """The learner of a run, and the files of its folder."""

    def __init__(
        self,
        folder: Path,
        spec: FolderSpec,
        env: Any,
        frame_skip: int,
        progress: Watch | None,
        checkpoint_steps: int | None,
    ) -> None:
        self.folder, self.spec, self.env, self.frame_skip = folder, spec, env, frame_skip
        self.progress, self.checkpoint_steps = progress, checkpoint_steps
        self.learner = self._learner()
        self.episodes: list[Episode] = []
        self.seconds = 0.0  # of all sessions
        self.written = 0  # bytes of monitor.csv that belong to the run so far

    def _learner(self) -> Learner:
        spec, frames = self.spec, self.folder / "frames"
        with on_threads(spec.threads):
            return build(spec.settings, self.env, [spec.seed], spec.steps, frame_skip=self.frame_skip, folder=frames)

    # -- checkpoints

    def save(self) -> None:
        learner = self.learner
        segments = [replay.save_frames(self.folder / "frames") for replay in learner.replays]
        arrays, values = state_of(learner)
        values |= {"segments": segments, "seconds": self.seconds, "monitor": self.written, "steps": self.spec.steps}
        arrays["episodes"] = np.array([dataclasses.astuple(e) for e in self.episodes], np.float64).reshape(-1, 6)
        content = checkpoint.Checkpoint(weights_of(learner), arrays, values)
        checkpoint.save(self.folder / "checkpoints", learner.step, content, self.folder / "frames")

    def restore(self, warn: Warn) -> None:
        """Back to the newest checkpoint that can be read; to the start where there is none."""
        found = checkpoint.checkpoints(self.folder / "checkpoints")
        for i, path in enumerate(found):
            following = f"going on from {found[i + 1].name}" if i + 1 < len(found) else "and there is none before it"
            try:
                why = self._restore(path)
            except checkpoint.NewerError as error:  # whose progress is not ours to throw away
                rest = f", or remove it to go on from {found[i + 1].name}" if i + 1 < len(found) else ""
                raise ValueError(f"{error}{rest}") from error
            except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError, MemoryError) as error:
                why = str(error).partition("\n")[0]
                warn(f"{path}: {why.removeprefix(f'{path} ')}; {following}")
                self.learner = self._learner()  # whatever half of it was restored
                continue
            if why:
                warn(f"{why}; a new episode begins: not exactly the unbroken run")
            for newer in found[:i]:
                checkpoint.discard(newer)
            return
        if found:
            raise ValueError(f"{self.folder}: no checkpoint can be used; start again with spie train and another --out")
        warn(f"{self.folder} has no checkpoint yet; it starts from the beginning")

    def _restore(self, path: Path) -> str:
        content = checkpoint.load(path)
        values = content.values
        load_weights(self.learner, content.weights)
        why = restore(self.learner, content.arrays, values, [self.folder / "frames"], values["segments"])
        rows = content.arrays["episodes"].tolist()
        self.episodes = [Episode(int(a), int(b), int(c), r, int(d), bool(e)) for a, b, c, r, d, e in rows]
        self.seconds, self.written = float(values["seconds"]), int(values["monitor"])
        stretch_losses(self.learner, int(values.get("steps", self.spec.steps)))
        return why

    # -- the run

    def run(self) -> Trace:
        """To the end, with a checkpoint now and then, and one at Ctrl-C."""
        learner, began, steps = self.learner, time.monotonic(), self.spec.steps
        before, last_report = self.seconds, learner.step
        pace, saved, pause = Pace(learner.step), began, min(30.0, CHECKPOINT_SECONDS)
        path = self.folder / "monitor.csv"
        with (
            monitor_file(path, self.spec.task, self.episodes, self.written) as (monitor, self.written),
            open_sinks("tensorboard", self.folder, learner.step) as add_curves,
            on_threads(self.spec.threads),
            _patient_interrupt() as interrupted,
        ):
            for ended in learner.loop():
                for episode in ended:
                    self.episodes.append(episode)
                    self.written += monitor.write(line_of(episode))
                now = time.monotonic()
                self.seconds = before + now - began
                if learner.step - last_report >= steps / REPORTS or learner.step >= steps:
                    last_report = learner.step
                    self._report(pace.at(learner.step), add_curves)
                if self.checkpoint_steps is None:
                    due = now - saved >= pause
                else:
                    due = learner.step % self.checkpoint_steps < learner.envs
                if due or interrupted or learner.step >= steps:
                    to_disk(monitor)
                    self.save()
                    saved = time.monotonic()
                    pause = min(CHECKPOINT_SECONDS, max(30.0, 20 * (saved - now)))
                if interrupted:
                    raise KeyboardInterrupt
        return trace_of(learner, [self.spec.seed], [self.episodes])

    def _report(self, rate: float, add_curves: Callable[[int, Mapping[str, float]], None]) -> None:
        learner = self.learner
        report = TrainingReport(learner.step, self.spec.steps, rate, curves_of(learner, self.episodes, rate))
        add_curves(report.step, report.curves)
        if self.progress is not None:
            self.progress(report)


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
