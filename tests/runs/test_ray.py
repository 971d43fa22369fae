"""Runs on Ray."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import spie
from spie.runs import backends
from spie.runs.backends import execute
from spie.runs.run import Run
from spie.runs.store import Store

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1 as the kernel writes it


def in_a_session_of_its_own(script, folder):
    """Run a script of this folder's parent with a folder; returns what it said."""
    script = Path(__file__).parents[1] / script
    here = os.pathsep.join([str(script.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script), str(folder)]
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": here}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(timeout=300)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        return log.read()


@pytest.mark.slow
def test_a_cluster_gives_the_bits_of_serial_though_workers_and_a_node_are_lost(tmp_path):
    pytest.importorskip("ray")
    log = in_a_session_of_its_own("lossy_cluster.py", tmp_path)
    assert (tmp_path / "held").exists(), log  # how Ray itself ends is not ours to judge


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="sockets are looked up in /proc")
def test_ray_that_we_start_listens_on_loopback_only_and_refuses_a_client_without_the_token(tmp_path):
    """In a program that has imported Ray and had a token of its own before."""
    pytest.importorskip("ray")
    log = in_a_session_of_its_own("own_cluster.py", tmp_path)
    assert (tmp_path / "seen.json").exists(), log
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert len(seen["hosts"]) >= 5  # its server, two ports of its node, this driver, its runtime environments, workers
    assert set(seen["hosts"]) <= LOOPBACK
    for said in seen["answers"]:
        assert set(said) <= {"401", "UNAUTHENTICATED", "UNIMPLEMENTED"}, said
        assert set(said) - {"UNIMPLEMENTED"}, said  # each port has a service that the list of calls knows


def test_ray_that_we_start_has_a_token_of_its_own_and_no_dashboard(monkeypatch):
    ray = mock.MagicMock()
    monkeypatch.setenv("RAY_AUTH_TOKEN", "a token of the user's")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    backends._connect(ray, None)
    ((args, options),) = ray.init.call_args_list
    assert args == ("local",)
    assert options["include_dashboard"] is False
    assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    assert "RAY_AUTH_MODE" not in os.environ


def test_ray_that_does_not_start_is_one_clear_line(monkeypatch):
    ray = mock.MagicMock()
    ray.init.side_effect = Exception("The current node timed out during startup. This could happen because of much.")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "")
    said = r"^Ray did not start on this machine \(The current node timed out during startup\); try again, or take --on"
    with pytest.raises(OSError, match=said):
        backends._connect(ray, None)


def test_without_ray_the_way_to_get_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    a_run = Run("", "", spie.Sarsa(reward="none"), spie.riverswim(), 5, 1)
    with Store(tmp_path / "r.db") as store, pytest.raises(ValueError, match=r'pip install "spie-rl\[ray\]"'):
        list(execute([a_run], store, on="ray"))
