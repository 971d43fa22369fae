"""Deep runs as experiments make them: seeds side by side are the seeds alone, and a run that is stopped goes on."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spie
from spie.agents.base import Session
from spie.paper.beyond import pixels
from spie.runs.backends import execute
from spie.runs.run import Run, save
from spie.runs.store import Store
from spie.tasks.atari import AtariTask
from spie.trace import Trace


@pytest.mark.parametrize("agent", ["dqn-sf-pf", "rnd"])
def test_a_seed_among_others_learns_what_it_learns_alone(agent):
    from spie.agents.dqn.build import build

    # Random actions: a rounding error that turns a greedy one would make two runs of one.
    settings = dataclasses.replace(spie.agent(agent, preset="small"), learning_starts=60, batch=16, epsilon=1.0)
    task, learners = spie.task("cluster-hard", "images"), []
    for seeds in ([3, 4, 5], [4]):
        learners.append(build(settings, task.make(len(seeds)), seeds, 140))
        assert sum(1 for _ in learners[-1].loop()) == 140
    together, alone = learners
    assert together.updates == alone.updates == 10  # at steps 64, 72, ..., 136
    assert_array_equal(together.visits[1], alone.visits[0])
    assert not np.array_equal(together.visits[0], together.visits[1])
    for (name, ours), theirs in zip(together.online.named_parameters(), alone.online.parameters(), strict=True):
        assert_allclose(ours[1].detach(), theirs[0].detach(), rtol=1e-3, atol=1e-5, err_msg=name)
    assert_allclose(together.scale.square[1], alone.scale.square[0], rtol=1e-4)


def test_a_run_asks_a_cluster_for_a_gpu_where_its_settings_name_one():
    (run, *_) = pixels.runs(1)
    assert run.settings.resources().gpus == 0
    assert dataclasses.replace(run.settings, device="cuda").resources().gpus == 1


class Stopped(Exception):
    pass


@pytest.mark.slow
def test_a_run_on_atari_that_is_stopped_goes_on_from_its_checkpoints(tmp_path, monkeypatch):
    from spie.agents.dqn import session as training

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0)  # one at every step
    few = {"learning_starts": 8, "batch": 4, "train_every": 4, "replay": 100}
    settings = spie.agent("dqn-sf-pf", preset="small", network="nature", **few)
    run = Run("freeway", "dqn-sf-pf", settings, AtariTask("freeway", max_frames=50), 20, (3, 8))
    shares = []

    def stop(share):
        shares.append(share)
        if share > 0.7:
            raise Stopped

    with pytest.raises(Stopped):
        run.execute(Session(1, tmp_path / "runs", stop))
    assert shares[-1] == 0.725  # the ninth step of the second seed
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"seed-3.npz", "seed-8"}

    with Store(tmp_path / "r.db") as store, Store(tmp_path / "unbroken.db") as unbroken:
        (tmp_path / "r.db-runs").mkdir()
        (tmp_path / "runs").rename(tmp_path / "r.db-runs" / run.id)
        again = []
        list(execute([run], store, progress=lambda run, share: again.append(share)))
        assert again[0] > 0.7
        assert again[-1] == 1
        assert not (tmp_path / "r.db-runs" / run.id).exists()
        save(unbroken, run, run.execute(), 0.0)  # without a folder
        kind, expected = unbroken.load(run.id)
        found_kind, found = store.load(run.id)
        assert (found_kind, found.keys()) == (kind, expected.keys())
        for name, array in expected.items():
            assert_array_equal(found[name], array, err_msg=name)


def test_seeds_run_one_after_another_make_one_trace():
    settings = spie.agent("dqn", preset="small", network="nature", learning_starts=10**6)
    trace = settings.run(AtariTask("freeway", max_frames=100), 45, [3, 8])
    assert_array_equal(trace.seeds, [3, 8])
    assert_array_equal(trace.episode_steps, [[20, 20], [20, 20]])
    assert_array_equal(trace.truncated, [2, 2])


def test_a_seed_with_fewer_episodes_has_some_of_no_steps():
    from spie.agents.dqn.many_seeds import joined

    def trace(steps, rewards):
        empty = np.zeros((1, 1), np.int32)
        whole = np.array([100]), empty, empty, np.array([steps], np.int32)
        rest = np.zeros(1, np.int32), np.zeros((1, 0, 1), np.int32)
        return Trace(np.arange(1), np.zeros(1), np.zeros(1), *whole, *rest, episode_rewards=np.array([rewards], float))

    both = joined([trace([50], [1]), trace([50, 30, 10], [1, 0, 1])])
    assert_array_equal(both.episode_steps, [[50, 0, 0], [50, 30, 10]])
    assert_array_equal(both.episode_rewards, [[1, 0, 0], [1, 0, 1]])
