"""Runs on a Ray cluster of two nodes, on this machine."""

import os
import signal
import sys
import time
import types
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import spie
from spie import run
from spie.rewards import load_rewards
from spie.run import Run, execute, load
from spie.store import Store
from spie.trace import Scores

OWN = """
import spie

@spie.reward("twice-constant")
def twice_constant():
    return -2.0
"""


@dataclass(frozen=True)
class Fragile:
    """Stands in for an agent: the first worker that has the run dies of it."""

    alive: str  # a file that says that somebody died already
    wait: float = 0.0

    def seconds_per_step(self, task):
        return 1.0

    def run(self, task, steps, seeds, threads=None):
        if not Path(self.alive).exists():
            Path(self.alive).touch()
            time.sleep(self.wait)
            os.kill(os.getpid(), signal.SIGKILL)
        return Scores(np.arange(seeds), np.full((1, seeds), float(steps)))


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        here = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        patch.setenv("PYTHONPATH", here)  # so that workers know Fragile
        node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 * 2**20}
        two = Cluster(initialize_head=True, head_node_args=node)
        two.second = two.add_node(**node)
        yield two
        ray.shutdown()
        two.shutdown()


@pytest.mark.filterwarnings("ignore")  # of Ray's own making
def test_a_cluster_gives_the_bits_of_serial_though_workers_and_a_node_are_lost(cluster, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    load_rewards(file)
    file.unlink()  # another machine would not have it either
    mdp = spie.riverswim()
    runs = [
        Run("riverswim", "", spie.Sarsa(reward=reward, alpha=alpha), mdp, 500, 4)
        for reward in ("none", "twice-constant")
        for alpha in (0.1, 0.2)
    ]
    fragile = Run("", "", Fragile(str(tmp_path / "died")), mdp, 7, 3)
    with Store(tmp_path / "serial.db") as serial, Store(tmp_path / "ray.db") as store:
        list(execute(runs, serial))
        done = 0
        for _ in execute([*runs, fragile], store, on="ray", address=cluster.address):
            done += 1
            if done == 1:
                cluster.remove_node(cluster.second, allow_graceful=False)  # with what runs there
        assert done == 5
        for each in runs:
            one, other = load(serial, each), load(store, each)
            np.testing.assert_array_equal(one.total_reward, other.total_reward)
            np.testing.assert_array_equal(one.visits, other.visits)
        assert (tmp_path / "died").exists()
        np.testing.assert_array_equal(load(store, fragile).values, [[7.0, 7.0, 7.0]])
        unknown = Run("", "", spie.Sarsa(reward="none"), mdp, 0, 1)  # what a run has to say arrives as it was said
        with pytest.raises(ValueError, match="steps must be a whole number of at least 1"):
            list(execute([unknown], store, on="ray", address=cluster.address))


def test_ray_that_we_start_is_for_this_machine_only_and_has_no_dashboard():
    calls = []
    ray = types.SimpleNamespace(init=lambda *args, **options: calls.append((args, options)))
    run._connect(ray, None)
    ((args, options),) = calls
    assert args == ("local",)
    assert options["include_dashboard"] is False
    assert options["_node_ip_address"] == "127.0.0.1"


def test_without_ray_the_way_to_get_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    a_run = Run("", "", spie.Sarsa(reward="none"), spie.riverswim(), 5, 1)
    with Store(tmp_path / "r.db") as store, pytest.raises(ValueError, match=r'pip install "spie-rl\[ray\]"'):
        list(execute([a_run], store, on="ray"))
