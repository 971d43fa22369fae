"""Sinks: what is given to them is what they keep; those of others in their offline modes, where they are installed."""

import json
import sys

import pytest

from spie import trackers
from spie.trackers import check_sinks, open_sinks

CURVES = [(10, {"rollout/ep_rew_mean": 0.5, "time/fps": 100.0}), (20, {"rollout/ep_rew_mean": 0.75})]


def give(names, folder, step=0):
    with open_sinks(names, folder, step, {"beta": 0.5}) as add:
        for at, curves in CURVES:
            add(at, curves)


def test_a_csv_has_a_line_for_each_value_and_a_run_that_goes_on_adds_to_it(tmp_path):
    give("csv", tmp_path)
    lines = ["step,name,value", "10,rollout/ep_rew_mean,0.5", "10,time/fps,100.0", "20,rollout/ep_rew_mean,0.75"]
    assert (tmp_path / "curves.csv").read_text().splitlines() == lines
    give("csv", tmp_path, step=30)
    assert (tmp_path / "curves.csv").read_text().splitlines() == lines + lines[1:]
    give("csv", tmp_path)  # a new run begins again
    assert (tmp_path / "curves.csv").read_text().splitlines() == lines


def test_every_sink_is_closed_however_it_ends(tmp_path, monkeypatch):
    closed = []

    class Mine:
        def __init__(self, folder, step, settings):
            self.settings = settings

        def add(self, step, curves):
            raise OSError("full")

        def close(self):
            closed.append(self.settings)

    monkeypatch.setitem(trackers.SINKS, "mine", Mine)
    with pytest.raises(OSError, match="full"):
        give("csv,mine", tmp_path)
    assert closed == [{"beta": 0.5}]


def test_names_that_are_not_there_and_packages_that_are_missing_are_one_line(monkeypatch):
    with pytest.raises(ValueError, match='no tracker "wandv"; did you mean "wandb"'):
        check_sinks("csv,wandv")
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'--track wandb needs wandb: pip install "spie-rl\[wandb\]"'):
        check_sinks("wandb")
    assert check_sinks(None) == check_sinks(" , ") == []


def test_mlflow_keeps_every_value_as_files(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    give("mlflow", tmp_path / "run-1")
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("spie").experiment_id])
    history = client.get_metric_history(run.info.run_id, "rollout/ep_rew_mean")
    assert [(one.step, one.value) for one in history] == [(10, 0.5), (20, 0.75)]
    assert run.data.params == {"beta": "0.5"}


def test_weights_and_biases_write_below_the_folder_and_send_nothing(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    (tmp_path / "run-1").mkdir()
    give("wandb", tmp_path / "run-1")
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    assert list(folder.glob("*.wandb"))
    assert list((tmp_path / "run-1").iterdir()) == []  # a run's folder may hold no links, and wandb makes some


def test_tensorboard_has_every_value(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    give("tensorboard", tmp_path)
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(e.step, e.value) for e in found.Scalars("rollout/ep_rew_mean")] == [(10, 0.5), (20, 0.75)]
    assert json.dumps(found.Tags()["scalars"])
