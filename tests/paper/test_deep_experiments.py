"""What is measured on the image tasks, and that seeds side by side are the seeds alone."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import spie
from spie.paper import EXPERIMENTS, deep, get_experiment
from spie.paper import published as paper
from spie.runs.backends import execute
from spie.runs.run import Run, save
from spie.runs.store import Store
from spie.tasks.pixels import make_pixels
from spie.trace import Trace


def trace(steps, episode_steps, episode_rewards):
    n = len(episode_steps)
    return Trace(
        seeds=np.arange(n),
        total_reward=np.sum(episode_rewards, axis=1),
        total_bonus=np.zeros(n),
        steps=np.full(n, steps),
        visits=np.zeros((n, 1), np.int32),
        first_visit=np.zeros((n, 1), np.int32),
        episode_steps=np.array(episode_steps, np.int32),
        truncated=np.zeros(n, np.int32),
        snapshots=np.zeros((n, 0, 1), np.int32),
        episode_rewards=np.array(episode_rewards, np.float64),
    )


def test_success_counts_the_episodes_that_end_in_the_last_fifth_of_the_steps():
    t = trace(100, [[50, 30, 10, 5, 0], [80, 20, 0, 0, 0]], [[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]])
    assert_array_equal(deep.late_success(t), [0.5, 0])  # ends 50, 80, 90, 95, and 80, 100: at 80 the last fifth begins


def test_a_run_without_any_episode_has_no_success():
    assert_array_equal(deep.late_success(trace(100, [[0]], [[0]])), [0])


def test_goals_are_counted_up_to_each_step():
    t = trace(100, [[50, 30, 10, 5]], [[1, 0, 1, 1]])
    assert_array_equal(deep.goals(t, np.array([49.0, 50, 89, 90, 100])), [[0, 1, 1, 2, 3]])


def test_the_experiment_compares_five_agents_and_two_controls_on_two_tasks():
    runs = deep.pixels(20)
    agents = ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf", "constant", "count")
    assert [(run.env, run.agent) for run in runs] == [
        (env, a) for env in ("four-rooms", "cluster-hard") for a in agents
    ]
    assert {run.env: run.steps for run in runs} == {"four-rooms": 30_000, "cluster-hard": 40_000}
    assert len({run.id for run in runs}) == len(runs)
    assert EXPERIMENTS["pixels"].seeds == 20


def test_the_papers_bonus_shares_its_rivals_with_the_others():
    runs, shared = deep.paper_bonus(20), {run.id for run in deep.pixels(20)}
    own = [run for run in runs if run.id not in shared]
    assert [(run.env, run.agent) for run in own] == [(env, deep.PAPER_BONUS) for env in ("four-rooms", "cluster-hard")]
    agent = own[0].settings.agent
    assert (agent.bonus, agent.beta, agent.scale, agent.clip) == ("sf-pf", 0.07, "none", True)
    assert [run.env for run in runs] == ["four-rooms"] * 5 + ["cluster-hard"] * 5


@pytest.mark.parametrize("agent", ["dqn-sf-pf", "rnd"])
def test_a_seed_among_others_learns_what_it_learns_alone(agent):
    from spie.agents.dqn.learner import Learner

    # Random actions: a rounding error that turns a greedy one would make two runs of one.
    settings = dataclasses.replace(spie.agent(agent, preset="small"), learning_starts=60, batch=16, epsilon=1.0)
    learners = []
    for seeds in ([3, 4, 5], [4]):
        learners.append(Learner(settings, make_pixels("cluster-hard", n=len(seeds)), seeds, 140))
        assert sum(1 for _ in learners[-1].loop()) == 140
    together, alone = learners
    assert together.updates == alone.updates == 10  # at steps 64, 72, ..., 136
    assert_array_equal(together.visits[1], alone.visits[0])
    assert not np.array_equal(together.visits[0], together.visits[1])
    for (name, ours), theirs in zip(together.online.named_parameters(), alone.online.parameters(), strict=True):
        assert_allclose(ours[1].detach(), theirs[0].detach(), rtol=1e-3, atol=1e-5, err_msg=name)
    assert_allclose(together.scale.square[1], alone.scale.square[0], rtol=1e-4)


def test_a_run_leaves_the_trace_of_its_seeds():
    run = dataclasses.replace(deep.pixels(3)[7], steps=120)
    t = run.execute()
    assert_array_equal(t.seeds, [0, 1, 2])
    assert_array_equal(t.steps, 120)
    assert_array_equal(
        t.visits.sum(axis=1), 121 + (t.episode_steps > 0).sum(axis=1)
    )  # every episode's first state counts
    assert_array_equal(t.first_visit >= 0, t.visits > 0)
    assert_array_equal(t.total_reward, 0)
    assert_array_equal(t.truncated, (t.episode_steps == 50).sum(axis=1))


def test_table_2_has_the_papers_settings_at_its_budget_and_smaller_ones_below():
    runs = deep.table_2(1)
    assert len(runs) == 30
    assert {run.steps for run in runs} == {deep.SMALL_TIER // 5}
    paper_run = get_experiment("table2@100000000").runs(10)[0]
    assert (paper_run.steps, paper_run.settings.agent) == (2 * 10**7, spie.agent("dqn", preset="paper"))
    small = runs[0].settings.agent
    assert (small.network, small.learning_starts, small.epsilon_frames) == ("nature", 200, 2000)


def test_the_ablation_shares_a_run_with_table_2():
    with_it, without, sf = deep.reconstruction(1)
    assert with_it.id in {run.id for run in deep.table_2(1)}
    assert [run.settings.agent.reconstruction for run in (with_it, without, sf)] == [True, False, False]
    assert [run.settings.agent.bonus for run in (with_it, without, sf)] == ["sf-pf", "sf-pf", "sf"]
    assert [(run.env, run.agent) for run in (with_it, without, sf)] == list(paper.RECONSTRUCTION)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("table2@0", "0 frames are no budget; give 1000 or more"),
        ("table2@many", "many frames are no budget"),
        ("table1@2000", "table1 has no budget in frames; those that have: table2, recon"),
        ("table22@2000", 'no experiment "table22"; did you mean "table2"'),
    ],
)
def test_a_budget_that_is_none_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        get_experiment(name)


def test_a_score_is_the_mean_of_the_last_hundred_episodes():
    t = trace(1000, [[5] * 101 + [0], [0] * 102], [[1000, *range(100), 7], [0] * 102])
    assert_array_equal(deep.score(t), [49.5, np.nan])


def test_seeds_run_one_after_another_make_one_trace():
    game = deep.Game("freeway", max_frames=100)
    settings = deep.OnAtari(dataclasses.replace(spie.agent("dqn", preset="small"), learning_starts=10**6))
    t = settings.run(game, 45, [3, 8])
    assert_array_equal(t.seeds, [3, 8])
    assert_array_equal(t.episode_steps, [[20, 20], [20, 20]])
    assert_array_equal(t.truncated, [2, 2])
    short = trace(100, [[50, 30, 10]], [[1, 0, 1]])
    both = deep.joined([trace(100, [[50]], [[1]]), short])
    assert_array_equal(both.episode_steps, [[50, 0, 0], [50, 30, 10]])
    assert_array_equal(both.episode_rewards, [[1, 0, 0], [1, 0, 1]])


def test_a_run_asks_a_cluster_for_a_gpu_where_its_settings_name_one():
    (run, *_) = deep.pixels(1)
    assert run.settings.num_gpus == 0
    on_gpu = dataclasses.replace(run.settings, agent=dataclasses.replace(run.settings.agent, device="cuda"))
    assert on_gpu.num_gpus == 1


class Stopped(Exception):
    pass


def test_a_run_on_atari_that_is_stopped_goes_on_from_its_checkpoints(tmp_path, monkeypatch):
    from spie.agents.dqn import session as training

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0)  # one at every step
    settings = deep.OnAtari(
        dataclasses.replace(spie.agent("dqn-sf-pf", preset="small"), learning_starts=20, replay=100)
    )
    run = Run("freeway", "dqn-sf-pf", settings, deep.Game("freeway", max_frames=100), 50, (3, 8))
    shares = []

    def stop(share):
        shares.append(share)
        if share > 0.7:
            raise Stopped

    with pytest.raises(Stopped):
        run.execute(1, tmp_path / "runs", stop)
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
        for name, array in unbroken.load(run.id).items():
            assert_array_equal(store.load(run.id)[name], array, err_msg=name)
