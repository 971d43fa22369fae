"""Our DQN against Stable-Baselines3's: what is compared, with which settings, and when the two are called equal."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import spie
from made_up import fill, played
from spie.agents.base import Session
from spie.paper.beyond import parity, pixels
from spie.paper.registry import get_experiment
from spie.paper.results import Results
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
    assert (runs["freeway", "dqn"].steps, runs["freeway", "dqn"].seeds) == (300_000 // 5, 2)
    assert {run.steps for run in get_experiment("parity", 10_000).runs(1) if "minatar" in run.env} == {10_000}


def test_the_last_tenth_counts():
    t = played(100, [[50, 41, 5, 4], [95, 5, 0, 0]], [[9, 1, 2, 6], [3, 1, 0, 0]])
    assert_array_equal(parity.late_return(t), [3, 2])


@pytest.mark.parametrize(
    ("ours", "theirs", "so"),
    [
        ([10.0, 10.2, 9.9], [10.0, 10.1, 9.8], "equal"),
        ([5.0, 5.1, 5.2], [10.0, 10.1, 9.8], "not equal"),
        ([5.0, 15.0, 10.0], [9.0, 10.0, 11.0], "undecided: the interval crosses .8 or 1.25"),
        ([1.0, 1.2, 0.8], [1.0, 1.1, 0.9], "not clearly above a random player"),
        ([10.0], [10.0], "one seed decides nothing"),
    ],
)
def test_when_the_two_are_called_equal(ours, theirs, so):
    assert parity.verdict(np.array(ours), np.array(theirs), np.array([1.0, 1.1, 0.9]))[1] == so


def test_the_page_has_a_row_for_every_agent_of_every_game(tmp_path):
    experiment = get_experiment("parity")
    with Store(tmp_path / "r.db") as store:
        fill(store, "parity", 3)
        curves, table = experiment.section(experiment, Results(store))
    assert len(curves.panels) == len(parity.GAMES)
    assert len(table.rows) == 3 * len(parity.GAMES)


@pytest.mark.slow
def test_a_seed_that_is_done_is_kept_and_the_others_are_the_same_after_a_stop(tmp_path):
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


def test_other_libraries_see_the_planes_as_channels():
    env = parity.StackedImages(spie.task("minatar/breakout"), 2)
    seen, _ = env.reset(seed=3)
    assert seen.shape == (8, 10, 10)
    assert_array_equal(seen[:4], seen[4:])
    assert_array_equal(env.step(1)[0][:4], seen[:4])


def test_readings_of_the_deep_agent_differ_in_one_option_each():
    runs = pixels.reading_runs(20)
    readings = [run for run in runs if run.role == "reading"]
    assert len({run.id for run in runs}) == len(runs) == len(pixels.READINGS) + 2
    for run, option in zip(readings, pixels.READINGS, strict=True):
        assert (run.settings.bonus, run.variant) == ("sf-pf", option)
        assert all(getattr(run.settings, name) == value for name, value in option.items())
