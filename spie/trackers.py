"""Where the curves of a training run go: TensorBoard, a CSV file, Weights & Biases, MLflow.

All are a `Sink`. One of your own is a class with `add` and `close`, made of (folder, step, settings):

    spie.trackers.SINKS["mine"] = Mine  # spie train ... --track mine
"""

import csv
import importlib.util
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from spie.errors import unknown

Settings = Mapping[str, Any]


class Sink(Protocol):
    """Something that takes curves.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with spie.trackers.open_sinks("csv", folder) as add:
    ...         add(100, {"rollout/ep_rew_mean": 0.5})
    ...     print((pathlib.Path(folder) / "curves.csv").read_text())
    step,name,value
    100,rollout/ep_rew_mean,0.5
    """

    def add(self, step: int, curves: Mapping[str, float]) -> None:
        """Values at a step, by name."""

    def close(self) -> None:
        """Write what is not written yet."""


class TensorBoard:
    """A TensorBoard file; nothing where tensorboard is not installed."""

    def __init__(self, folder: Path, step: int, settings: Settings) -> None:
        self.writer: Any = None
        try:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            return
        self.event, self.summary = Event, Summary
        self.writer = EventFileWriter(str(folder / "tensorboard"))
        if step:  # a run that was killed had written further: TensorBoard is to forget that
            log = SessionLog(status=SessionLog.START)
            self.writer.add_event(Event(wall_time=time.time(), step=step, session_log=log))

    def add(self, step: int, curves: Mapping[str, float]) -> None:
        if self.writer is not None:
            values = [self.summary.Value(tag=tag, simple_value=value) for tag, value in curves.items()]
            self.writer.add_event(self.event(wall_time=time.time(), step=step, summary=self.summary(value=values)))

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class Csv:
    """curves.csv: step, name, value; a run that goes on adds to it."""

    def __init__(self, folder: Path, step: int, settings: Settings) -> None:
        self.path = folder / "curves.csv"
        if not step or not self.path.exists():
            self.path.write_text("step,name,value\n", encoding="utf-8")

    def add(self, step: int, curves: Mapping[str, float]) -> None:
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([step, name, value] for name, value in curves.items())

    def close(self) -> None:
        pass


class WandB:
    """Weights & Biases: beside the run's folder, unless WANDB_MODE says to send it; `wandb sync` does so later."""

    def __init__(self, folder: Path, step: int, settings: Settings) -> None:
        import wandb

        mode: Any = os.environ.get("WANDB_MODE", "offline")
        name = folder.resolve().name
        self.run = wandb.init(
            project="spie",
            name=name,
            id=name,
            dir=str(folder.resolve().parent),
            mode=mode,
            resume="allow",
            config=dict(settings),
        )

    def add(self, step: int, curves: Mapping[str, float]) -> None:
        self.run.log(dict(curves), step=step)

    def close(self) -> None:
        self.run.finish()


class MLflow:
    """MLflow: files beside the run's folder, unless MLFLOW_TRACKING_URI names a server."""

    def __init__(self, folder: Path, step: int, settings: Settings) -> None:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # it asks so of whoever keeps runs as files
        from mlflow import MlflowClient

        uri = os.environ.get("MLFLOW_TRACKING_URI") or (folder.resolve().parent / "mlruns").as_uri()
        self.client, name = MlflowClient(tracking_uri=uri), folder.resolve().name
        known = self.client.get_experiment_by_name("spie")
        experiment = known.experiment_id if known else self.client.create_experiment("spie")
        self.run = self.client.create_run(experiment, run_name=name).info.run_id
        for key, value in settings.items():
            self.client.log_param(self.run, key, value)

    def add(self, step: int, curves: Mapping[str, float]) -> None:
        for name, value in curves.items():
            self.client.log_metric(self.run, name, value, step=step)

    def close(self) -> None:
        self.client.set_terminated(self.run)


SINKS: dict[str, Callable[[Path, int, Settings], Sink]] = {
    "csv": Csv,
    "mlflow": MLflow,
    "tensorboard": TensorBoard,
    "wandb": WandB,
}
EXTRAS = {"mlflow": "mlflow", "wandb": "wandb"}  # packages, and the extras that bring them


def check_sinks(text: str | None) -> list[str]:
    """The names in `text`, with commas; unknown ones, and those whose package is missing, are refused before the work.

    >>> spie.trackers.check_sinks("csv, tensorboard")
    ['csv', 'tensorboard']
    """
    names = list(dict.fromkeys(filter(None, map(str.strip, (text or "").split(",")))))
    for name in names:
        if name not in SINKS:
            raise unknown("tracker", name, SINKS)
        if name in EXTRAS and importlib.util.find_spec(name) is None:
            raise ImportError(f'--track {name} needs {name}: pip install "spie-rl[{EXTRAS[name]}]"')
    return names


@contextmanager
def open_sinks(
    names: str | Iterable[str], folder: str | Path, step: int = 0, settings: Settings | None = None
) -> Iterator[Callable[[int, Mapping[str, float]], None]]:
    """A function that gives curves to each of several sinks; they are closed at the end, however it comes.

    names: of `SINKS`. folder: of the run. step: at which it goes on. settings: told to those that keep them.

    >>> with tempfile.TemporaryDirectory() as folder, spie.trackers.open_sinks(["csv"], folder) as add:
    ...     add(1, {"loss": 0.5})
    """
    chosen = check_sinks(names if isinstance(names, str) else ",".join(names))
    sinks: list[Sink] = []
    try:
        for name in chosen:  # one that fails leaves those before it open, and they are closed below
            sinks += [SINKS[name](Path(folder), step, settings or {})]

        def add(at: int, curves: Mapping[str, float]) -> None:
            for sink in sinks:
                sink.add(at, curves)

        yield add
    finally:
        for sink in sinks:
            sink.close()
