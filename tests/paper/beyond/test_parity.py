"""Our DQN against Stable-Baselines3's: what is compared, with which settings, and when the two are called equal."""

from unittest import mock

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import spie
from made_up import fill, played
from spie.agents.base import Session
from spie.paper.beyond import parity, pixels
from spie.paper.registry import get_experiment
from spie.paper.results import Results
from spie.runs.run import save
from spie.runs.store import Store


def test_both_agents_are_given_the_same_settings_on_every_game():
    runs = {(run.env, run.agent): run for run in parity.runs(5)}
    for env in parity.GAMES:
        ours, theirs = runs[env, "dqn"].settings, runs[env, "dqn of SB3"].settings
        assert {name: getattr(ours, name) for name in vars(theirs)} == vars(theirs)
        assert (ours.mmc, ours.reconstruction, ours.loss, ours.clip, ours.target) == (
            0,
            False,
            "huber",
            False,
            "periodic",
        )
        assert runs[env, "dqn"].steps == runs[env, "dqn of SB3"].steps == runs[env, "random"].steps
    assert runs["minatar/breakout", "dqn"].steps == 500_000
    assert runs["freeway", "dqn"].steps == 300_000 // 5
    asked = [(run.agent, run.seeds) for run in parity.runs(5) if run.env == "freeway"]
    assert asked == [(agent, (seed,)) for seed in (0, 1) for agent in ("dqn", "dqn of SB3", "random")]
    assert {run.steps for run in get_experiment("parity", 10_000).runs(1) if "minatar" in run.env} == {10_000}


def test_the_last_tenth_counts():
    t = played(100, [[50, 41, 5, 4], [95, 5, 0, 0]], [[9, 1, 2, 6], [3, 1, 0, 0]])
    assert_array_equal(parity.late_return(t), [3, 2])


@pytest.mark.parametrize(
    ("ours", "theirs", "so"),
    [
        ([10.0, 10.2, 9.9, 10, 10], [10.0, 10.1, 9.8, 10, 10], "equal"),
        ([10.0, 10.2, 9.9], [10.0, 10.1, 9.8, 10, 10], "equal by 3 seeds, whose interval is too narrow"),
        ([5.0, 5.1, 5.2, 5, 5], [10.0, 10.1, 9.8, 10, 10], "not equal"),
        ([5.0, 15.0, 10.0, 5, 15], [9.0, 10.0, 11.0, 10, 10], "undecided: the interval crosses .8 or 1.25"),
        ([1.0, 1.2, 0.8], [1.0, 1.1, 0.9], "not clearly above a random player"),
        ([10.0], [10.0], "one seed decides nothing"),
    ],
)
def test_when_the_two_are_called_equal(ours, theirs, so):
    assert parity.verdict(np.array(ours), np.array(theirs), np.array([1.0, 1.1, 0.9]))[1] == so


def test_where_theirs_is_nothing_there_is_no_ratio():
    nothing, random = np.zeros(2), np.array([0.07, 0.0])
    said = ("no ratio, theirs is 0", "not clearly above a random player")
    assert parity.verdict(nothing, nothing, random) == said


def test_a_ratio_to_returns_that_are_mostly_zero_has_no_interval():
    theirs, random = np.array([0.0, 0.4, 0.0, 0.2, 0.8]), np.full(5, 0.1)
    assert parity.verdict(np.zeros(5), theirs, random)[0] == "0.00, without an interval"


def test_the_page_has_a_row_for_every_agent_of_every_game(tmp_path):
    experiment = get_experiment("parity")
    with Store(tmp_path / "r.db") as store:
        fill(store, "parity", 3)
        _, curves, table = experiment.section(experiment, Results(store))
    assert len(curves.panels) == len(parity.GAMES)
    assert len(table.rows) == 3 * len(parity.GAMES)
    assert [row.values[-1] for row in table.rows][:3] == [3, 3, 3]  # seeds


def test_what_ships_of_it_may_be_unfinished_and_have_unlike_many_seeds(tmp_path):
    experiment = get_experiment("parity")
    with Store(tmp_path / "r.db") as store:
        store.ask_for("parity", 5)
        done = ("dqn", 0), ("dqn", 1), ("dqn", 2), ("dqn of SB3", 0), ("dqn of SB3", 1), ("random", 0), ("random", 1)
        for run in parity.runs(5):
            if (run.agent, run.seeds[0]) in done[: 7 if run.env == "four-rooms" else 1]:
                paid = 0.1 * run.seeds[0] + (1 if run.agent == "random" else 10)
                save(store, run, played(run.steps, [[run.steps]], [[paid]]), 1.0)
        says, _, table = experiment.section(experiment, Results(store))
    assert [row.values[-1] for row in table.rows] == [3, 2, 2, 1, 1, 1, 1]  # seeds: of four-rooms, then of the others
    assert says.lines[0].startswith("four-rooms: 1.0")
    assert says.lines[0].endswith("], equal by 2 seeds, whose interval is too narrow.")
    assert says.lines[1:] == [f"{env}: unfinished." for env in list(parity.GAMES)[1:]]


@pytest.mark.slow
def test_a_seed_that_is_done_is_kept_and_the_others_are_the_same_after_a_stop(tmp_path, monkeypatch):
    threads, step = set(), parity.StackedImages.step
    monkeypatch.setattr(
        parity.StackedImages, "step", lambda self, a: (threads.add(torch.get_num_threads()), step(self, a))[1]
    )
    torch.set_num_threads(2)
    task = spie.task("minatar/breakout")
    settings = parity.SHARED | {"network": "minatar", "stack": 1, "learning_starts": 50}
    agent = parity.SB3Images(**settings)
    whole = agent.run(task, 120, [0, 1])

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent.run(task, 120, [0, 1], session=Session(folder=tmp_path, progress=stop))
    assert [path.name for path in tmp_path.iterdir()] == ["seed-0.npy"]
    again = agent.run(task, 120, [0, 1], session=Session(folder=tmp_path))
    assert_array_equal(again.episode_rewards, whole.episode_rewards)
    assert_array_equal(again.episode_steps, whole.episode_steps)
    assert threads == {1}  # as in our agent: sums over another number of threads end in other last bits
    assert torch.get_num_threads() == 2


def test_other_libraries_see_the_planes_as_channels():
    env = parity.StackedImages(spie.task("minatar/breakout"), 2)
    seen, _ = env.reset(seed=3)
    assert seen.shape == (8, 10, 10)
    assert_array_equal(seen[:4], seen[4:])
    assert_array_equal(env.step(1)[0][:4], seen[:4])


def test_readings_of_the_deep_agent_differ_in_one_option_each():
    runs = pixels.reading_runs(20)
    readings = [run for run in runs if run.role == "reading"]
    options = [("sf-pf", one) for one in pixels.READINGS] + [("rnd", one) for one in pixels.RND_READINGS]
    assert len({run.id for run in runs}) == len(runs) == len(options) + 4
    for run, (bonus, option) in zip(readings, options, strict=True):
        assert (run.settings.bonus, run.variant) == (bonus, option)
        assert all(getattr(run.settings, name) == value for name, value in option.items())


@pytest.mark.slow
def test_from_the_same_batches_both_learn_the_same_weights(monkeypatch):
    from stable_baselines3.common.type_aliases import ReplayBufferSamples

    from spie.agents.dqn.build import build
    from spie.dropin.sb3_agents import image_dqn

    task, steps = spie.task("minatar/freeway"), 400
    # Our loss is twice theirs, which Adam does not see where eps is next to nothing.
    shared = {"network": "minatar", "learning_starts": 100, "target_every": 100, "eps": 1e-12}
    settings = spie.agent("dqn", preset="small", reconstruction=False, target="periodic", **parity.SHARED | shared)
    ours = build(settings, task.make(1), [3], steps, frame_skip=1)
    alike = {"eps": 1e-12, "learning_rate": 2.5e-4, "buffer_size": 9, "max_grad_norm": 1e9}
    theirs = image_dqn(lambda: parity.StackedImages(task, 1), "minatar", 3, **alike)
    theirs._setup_learn(steps)
    head = theirs.q_net.q_net[0]
    theirs.q_net.features_extractor.layers.encoder.load_state_dict(ours.online.encoder.state_dict())
    with torch.no_grad():
        head.weight.copy_(ours.online.q.weight[0].T)
        head.bias.copy_(ours.online.q.bias[0])
    theirs.q_net_target.load_state_dict(theirs.q_net.state_dict())
    before, sampled = head.weight.detach().clone(), ours._sampled
    ends = np.random.default_rng(0)  # in 400 steps there is hardly a reward and no end: these are made up

    def sample(**options):
        batch = sampled(**options)
        for one in batch._batches:
            one.total[:] = one.reward[:] = ends.integers(-3, 4, one.total.shape)
            one.discount[:] = ends.random(one.discount.shape) < 0.8
        images = [(255 * x[0]).round().to(torch.uint8).reshape(-1, 7, 10, 10) for x in (batch.s, batch.s_next)]
        end, paid = 1 - batch["discount"][0][:, None], batch["total"][0][:, None].float()
        drawn = ReplayBufferSamples(images[0], batch["action"][0][:, None], images[1], end, paid)
        theirs.replay_buffer = mock.Mock(sample=lambda *_, **__: drawn)
        theirs.train(1, len(paid))
        return batch

    monkeypatch.setattr(ours, "_sampled", sample)
    for _ in ours.loop():
        if ours.step % 100 == 0:
            theirs.q_net_target.load_state_dict(theirs.q_net.state_dict())
    assert ours.updates == 76
    assert_allclose(ours.online.q.weight[0].T.detach(), head.weight.detach(), atol=2e-5)
    for mine, other in zip(ours.online.encoder.parameters(), theirs.q_net.features_extractor.parameters(), strict=True):
        assert_allclose(mine.detach(), other.detach(), atol=2e-5)
    assert (head.weight.detach() - before).abs().max() > 1e-3  # both have learned
