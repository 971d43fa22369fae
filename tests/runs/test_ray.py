"""Runs on Ray."""

import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import pytest

import spie
from spie.runs import backends
from spie.runs.backends import execute
from spie.runs.run import Run
from spie.runs.store import Store


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_serial_though_workers_and_a_node_are_lost(tmp_path):
    pytest.importorskip("ray")
    script = Path(__file__).parents[1] / "lossy_cluster.py"
    here = os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script), str(tmp_path)]
    with open(tmp_path / "log", "w+") as log:
        process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": here}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        assert (tmp_path / "held").exists(), log.read()  # how Ray itself ends is not ours to judge


def test_ray_that_we_start_is_for_this_machine_only_and_has_no_dashboard():
    calls = []
    ray = types.SimpleNamespace(init=lambda *args, **options: calls.append((args, options)))
    backends._connect(ray, None)
    ((args, options),) = calls
    assert args == ("local",)
    assert options["include_dashboard"] is False
    assert options["_node_ip_address"] == "127.0.0.1"


def test_without_ray_the_way_to_get_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    a_run = Run("", "", spie.Sarsa(reward="none"), spie.riverswim(), 5, 1)
    with Store(tmp_path / "r.db") as store, pytest.raises(ValueError, match=r'pip install "spie-rl\[ray\]"'):
        list(execute([a_run], store, on="ray"))
