"""Seeds of one run: side by side each learns what it learns alone; one after the other they can be resumed."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spie
from made_up import played
from spie.agents.base import Session
from spie.runs.backends import execute
from spie.runs.run import Run, save
from spie.runs.store import Store
from spie.tasks.atari import AtariTask
from spie.tasks.pixels import make_pixels
from spie.trace import joined


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["dqn-sf-pf", "rnd", "dqn-sp-novelty"])
def test_a_seed_among_others_learns_what_it_learns_alone(agent):
    from spie.agents.dqn.build import build

    # Random actions: a rounding error that turns a greedy one would make two runs of one.
    settings = dataclasses.replace(spie.agent(agent, preset="small"), learning_starts=60, batch=16, epsilon=1.0)
    learners = []
    for seeds in ([3, 4, 5], [4]):
        learners.append(build(settings, make_pixels("cluster-hard", n=len(seeds)), seeds, 140))
        assert sum(1 for _ in learners[-1].loop()) == 140
    together, alone = learners
    assert together.updates == alone.updates == 10  # at steps 64, 72, ..., 136
    assert_array_equal(together.visits[1], alone.visits[0])
    assert not np.array_equal(together.visits[0], together.visits[1])
    for (name, ours), theirs in zip(together.online.named_parameters(), alone.online.parameters(), strict=True):
        assert_allclose(ours[1].detach(), theirs[0].detach(), rtol=1e-3, atol=1e-5, err_msg=name)
    assert_allclose(together.scale.square[1], alone.scale.square[0], rtol=1e-4)


def test_seeds_run_one_after_another_make_one_trace():
    game = AtariTask("freeway", max_frames=100)
    settings = spie.agent("dqn", preset="nature", learning_starts=10**6, replay=100)
    t = settings.run(game, 45, [3, 8])
    assert_array_equal(t.seeds, [3, 8])
    assert_array_equal(t.episode_steps, [[20, 20], [20, 20]])
    assert_array_equal(t.truncated, [2, 2])
    short = played(100, [[50, 30, 10]], [[1, 0, 1]])
    both = joined([played(100, [[50]], [[1]]), short])
    assert_array_equal(both.episode_steps, [[50, 0, 0], [50, 30, 10]])
    assert_array_equal(both.episode_rewards, [[1, 0, 0], [1, 0, 1]])


def test_a_run_asks_a_cluster_for_a_gpu_where_its_settings_name_one():
    assert spie.DQN().resources().gpus == 0
    assert spie.DQN(device="cuda").resources().gpus == 1


def test_memory_is_of_all_seeds_that_run_side_by_side_and_else_of_one():
    rooms, game = spie.task("four-rooms", kind="images"), AtariTask("Freeway")
    small, large = spie.DQN(preset="small"), spie.DQN(preset="paper")
    assert small.memory(rooms, 1000, 20) == 20 * small.memory(rooms, 1000, 1) > 0
    assert large.memory(game, 10**6, 10) == large.memory(game, 10**6, 1) > 7e9


class Stopped(Exception):
    pass


@pytest.mark.slow
def test_a_run_on_atari_that_is_stopped_goes_on_from_its_checkpoints(tmp_path, monkeypatch):
    from spie.agents.dqn import session as training

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0)  # one at every step
    settings = spie.agent("dqn-sf-pf", preset="nature", learning_starts=10, replay=100, batch=4)
    run = Run("freeway", "dqn-sf-pf", settings, AtariTask("freeway", max_frames=100), 30, (3, 8))
    shares = []

    def stop(share):
        shares.append(share)
        if share > 0.7:
            raise Stopped

    with pytest.raises(Stopped):
        run.execute(Session(folder=tmp_path / "runs", progress=stop))
    assert 0.7 < shares[-1] <= 0.72
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
        for name, array in unbroken.load(run.id)[1].items():
            assert_array_equal(store.load(run.id)[1][name], array, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "encoder"), [("rnd", "untrained"), ("dqn-sp-novelty", "untrained"), ("dqn-novelty", "inverse-dynamics")]
)
def test_seeds_side_by_side_go_on_from_their_checkpoints_to_the_same_bits(agent, encoder, tmp_path, monkeypatch):
    from spie.agents.dqn import inverse, many_seeds

    monkeypatch.setattr(many_seeds, "PAUSE", 0.0)  # a checkpoint at every step
    monkeypatch.setattr(many_seeds, "PATIENCE", 0.0)
    monkeypatch.setattr(inverse.LearnedFeatures, "updates", 5)
    few = {"learning_starts": 30, "batch": 8, "novelty_features": 32}
    settings = spie.agent(agent, preset="small", novelty_encoder=encoder, **few)
    room = spie.task("cluster-hard", kind="images")
    whole = settings.run(room, 160, 3)

    def stop(share):
        if share > 0.6:
            raise Stopped

    session = Session(folder=tmp_path, progress=stop)
    with pytest.raises(Stopped):
        settings.run(room, 160, 3, session=session)
    assert (tmp_path / "lanes").is_dir()
    shares = []
    with pytest.raises(ValueError, match="holds another run; give another folder"):
        settings.run(room, 300, 3, session=Session(folder=tmp_path))
    trace = settings.run(room, 160, 3, session=Session(folder=tmp_path, progress=shares.append))
    assert shares[0] > 0.6
    assert not (tmp_path / "lanes").exists()
    for name, array in whole.arrays.items():
        assert_array_equal(trace.arrays[name], array, err_msg=name)


@pytest.mark.slow
def test_seeds_whose_checkpoints_are_damaged_or_in_use_lose_time_and_nothing_else(tmp_path, monkeypatch):
    from spie.agents.dqn import many_seeds
    from spie.agents.dqn.folder import locked

    monkeypatch.setattr(many_seeds, "PAUSE", 0.0)  # a checkpoint at every step
    monkeypatch.setattr(many_seeds, "PATIENCE", 0.0)
    settings = spie.agent("dqn", preset="small", learning_starts=30, batch=8)
    room = spie.task("cluster-hard", kind="images")
    whole = settings.run(room, 80, 2)

    def stop(share):
        if share > 0.6:
            raise Stopped

    with pytest.raises(Stopped):
        settings.run(room, 80, 2, session=Session(folder=tmp_path, progress=stop))
    with locked(tmp_path), pytest.raises(ValueError, match="is being trained by another process; wait for it"):
        settings.run(room, 80, 2, session=Session(folder=tmp_path))
    (frames,) = (tmp_path / "lanes" / "frames-0").glob("*.u8")
    frames.write_bytes(frames.read_bytes()[:-1])  # what the last checkpoint needs, and the one before it does not
    for expected in (0.6, 0.0):
        shares = []

        def watch(share, shares=shares):
            shares.append(share)
            raise Stopped

        with pytest.raises(Stopped):
            settings.run(room, 80, 2, session=Session(folder=tmp_path, progress=watch))
        assert expected < shares[0] < expected + 0.05
        frames.write_bytes(b"")  # and now there is nothing to go on from
    trace = settings.run(room, 80, 2, session=Session(folder=tmp_path))
    for name, array in whole.arrays.items():
        assert_array_equal(trace.arrays[name], array, err_msg=name)
