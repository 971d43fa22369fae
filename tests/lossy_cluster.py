"""A Ray cluster of two nodes on this machine that loses a worker and a node; for test_ray.py, as a process of its own.

Ray ends the process that is connected to it when its daemons go, in whatever order, so no test runner may be that one.
"""

import dataclasses
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import spie
from spie.agents.base import Agent
from spie.runs import backends
from spie.runs.backends import execute
from spie.runs.run import Run, arrays_of, load
from spie.runs.store import Store
from spie.runs.user_code import load_rewards
from spie.trace import Scores

OWN = """
import spie

@spie.reward("twice-constant")
def twice_constant():
    return -2.0
"""


@dataclass(frozen=True)
class Fragile(Agent):
    """Stands in for an agent: the first worker that has the run dies of it."""

    alive: str  # a file that says that somebody died already
    wait: float = 0.0

    def run(self, task, steps, seeds, *, session, **_):
        if not Path(self.alive).exists():
            Path(self.alive).touch()
            time.sleep(self.wait)
            os.kill(os.getpid(), signal.SIGKILL)
        session.progress(0.5)
        time.sleep(3)  # long enough to be seen
        return Scores(np.arange(seeds), np.full((1, seeds), float(steps)))


@dataclass(frozen=True)
class Killed(Agent):
    """A deep agent whose first worker is killed half-way, between two checkpoints."""

    kind: ClassVar = "images"
    resumable: ClassVar[bool] = True

    alive: str  # a file that says how far the worker was that was killed

    def run(self, task, steps, seeds, *, session, **_):
        from spie.agents.dqn import many_seeds
        from spie.runs import mirror

        many_seeds.PAUSE = many_seeds.PATIENCE = mirror.PAUSE = mirror.PATIENCE = 0.0
        heard = []

        def progress(share):
            heard.append(share)
            if share < 0.5 or Path(self.alive).exists():
                session.progress(share)
            else:
                Path(self.alive).touch()
                os.kill(os.getpid(), signal.SIGKILL)

        agent = spie.agent("dqn-sf-pf", preset="small", learning_starts=40, batch=8, replay=200)
        trace = agent.run(task, steps, seeds, session=dataclasses.replace(session, progress=progress))
        Path(f"{self.alive}-went-on-from").write_text(str(heard[0]))
        return trace


def deep_runs_go_on(folder, address):
    """A deep run whose worker is killed goes on from checkpoints that were sent, and ends with the same bits."""
    (folder / "died-unbroken").touch()
    task = spie.task("four-rooms", kind="images")
    unbroken, broken = (
        Run("", "", Killed(str(folder / name)), task, 120, 2) for name in ("died-unbroken", "died-deep")
    )
    mark = backends._mark
    backends._mark = lambda root, runs: mark(root, [])  # never there: as where workers have other disks
    with Store(folder / "deep-serial.db") as serial, Store(folder / "deep.db") as store:
        list(execute([unbroken], serial))
        list(execute([broken], store, "ray", address))
        one, other = arrays_of(load(serial, unbroken)), arrays_of(load(store, broken))
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert 0.4 < float((folder / "died-deep-went-on-from").read_text()) <= 0.52
    assert not list((folder / "deep.db-runs").rglob("*.npy"))  # what is stored needs no checkpoints


def main(folder):
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=node)
    second = cluster.add_node(**node)
    file = folder / "mine.py"
    file.write_text(OWN)
    load_rewards(file)
    file.unlink()  # another machine would not have it either
    mdp = spie.riverswim()
    runs = [
        Run("riverswim", "", spie.Sarsa(reward=reward, alpha=alpha), mdp, 500, 4)
        for reward in ("none", "twice-constant")
        for alpha in (0.1, 0.2)
    ]
    fragile = Run("", "", Fragile(str(folder / "died")), mdp, 7, 3)
    with Store(folder / "serial.db") as serial, Store(folder / "ray.db") as store:
        list(execute(runs, serial))
        done, heard = 0, set()
        progress = lambda run, share: heard.add((run.id, share))  # noqa: E731
        for _ in execute([*runs, fragile], store, "ray", cluster.address, progress):
            done += 1
            if done == 1:
                cluster.remove_node(second, allow_graceful=False)  # with what runs there
        assert done == 5
        assert (fragile.id, 0.5) in heard
        for each in runs:
            one, other = load(serial, each), load(store, each)
            np.testing.assert_array_equal(one.total_reward, other.total_reward)
            np.testing.assert_array_equal(one.visits, other.visits)
        assert (folder / "died").exists()
        np.testing.assert_array_equal(load(store, fragile).values, [[7.0, 7.0, 7.0]])
        unknown = Run("", "", spie.Sarsa(reward="none"), mdp, 0, 1)  # what a run has to say arrives as it was said
        sound = Run("", "", spie.Sarsa(reward="none"), mdp, 10, 1)
        told = "1 of 2 runs failed, 1 are stored: .*steps must be a whole number of at least 1"
        with pytest.raises(ValueError, match=told):
            list(execute([unknown, sound], store, on="ray", address=cluster.address))
        assert sound.id in store
    deep_runs_go_on(folder, cluster.address)
    (folder / "held").touch()


if __name__ == "__main__":
    from lossy_cluster import main  # under this name, so that workers find Fragile

    main(Path(sys.argv[1]))
