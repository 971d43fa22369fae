import dataclasses
import sys

import numpy as np
import pytest

import spie
from spie.agents.base import Range
from spie.cli import main
from spie.search import tune as module
from spie.search.select import FRESH
from spie.search.tune import Tunable, tunable, tune


@dataclasses.dataclass(frozen=True)
class Hill:
    """Stands in for an agent: the score is best at x = 3, and the seed shifts it a little."""

    x: float = 0.0


SCORED = []


def hill(agent, env, steps, episodes):
    def score(settings, seeds):
        SCORED.extend((settings.x, seed) for seed in seeds)
        return np.array([-((settings.x - 3) ** 2) + 0.001 * (seed % 7) for seed in seeds])

    return Tunable(Hill(), {"x": Range(0.0, 10.0, log=False)}, score)


@pytest.fixture
def on_a_hill(monkeypatch, tmp_path):
    pytest.importorskip("optuna")
    monkeypatch.setattr(module, "tunable", hill)
    SCORED.clear()
    return {"agent": "hill", "env": "", "journal": tmp_path / "hill.journal", "seeds": 3, "confirm": 4}


def test_tuning_finds_the_top_gives_up_early_and_confirms_on_fresh_seeds(on_a_hill):
    found = tune(trials=40, **on_a_hill)
    assert abs(found.settings.x - 3) < 0.5
    assert found.finished == 40
    assert 0 < found.pruned < 40
    assert sum(n < 3 for n in seeds_of_trials()) == found.pruned  # those were spared their other seeds
    assert [seed for _, seed in SCORED if seed >= FRESH] == 2 * list(range(FRESH, FRESH + 4))
    mean = sum(seed % 7 for seed in range(FRESH, FRESH + 4)) / 4000
    assert found.mean == pytest.approx(-((found.settings.x - 3) ** 2) + mean)
    assert found.default_mean == pytest.approx(-9 + mean)  # x = 0


def seeds_of_trials():
    """How many seeds each trial used: a new one begins with seed 0."""
    counts = []
    for _, seed in SCORED:
        if seed == 0:
            counts.append(0)
        if seed < FRESH:
            counts[-1] += 1
    return counts


def test_a_search_continues_where_its_journal_ends(on_a_hill, monkeypatch):
    tune(trials=6, **on_a_hill)
    first = [x for x, seed in SCORED if seed == 0]
    SCORED.clear()
    assert tune(trials=8, **on_a_hill).finished == 8
    then = [x for x, seed in SCORED if seed == 0]
    assert len(then) == 2
    assert not {*first} & {*then}  # nothing is tried twice
    SCORED.clear()
    tune(trials=8, **on_a_hill)
    assert {seed >= FRESH for _, seed in SCORED} == {True}  # nothing left but to confirm


class Killed(BaseException):
    pass


def test_a_search_that_is_killed_again_and_again_is_the_unbroken_one(on_a_hill, tmp_path, monkeypatch):
    whole = tune(trials=30, **on_a_hill)
    tried = [x for x, seed in SCORED if seed == 0]
    SCORED.clear()
    broken = on_a_hill | {"journal": tmp_path / "broken.journal"}

    def killed(agent, env, steps, episodes):
        what = hill(agent, env, steps, episodes)
        die_after = len(SCORED) + 7

        def score(settings, seeds):
            if len(SCORED) >= die_after and seeds[0]:
                raise Killed
            return what.score(settings, seeds)

        return Tunable(what.settings, what.ranges, score)

    with monkeypatch.context() as patch:
        patch.setattr(module, "tunable", killed)
        for _ in range(4):
            with pytest.raises(Killed):
                tune(trials=30, **broken)
            with open(broken["journal"], "ab") as journal:
                journal.write(b'{"op_code": 4, "worker_id": "torn')
    found = tune(trials=30, **broken)
    again = dict.fromkeys(x for x, seed in SCORED if seed == 0)  # a trial that was killed is run again
    assert list(again) == tried
    assert found == whole


@pytest.mark.parametrize(
    ("agent", "env", "tuned"),
    [
        ("linear-q", "mountain-car", "alpha epsilon length_scale"),
        ("linear-q-sf", "mountain-car", "alpha beta epsilon eta gamma_sr length_scale"),
        ("linear-q-sf-pf", "pendulum", "alpha beta epsilon eta eta_pr gamma_pr gamma_sr length_scale"),
        ("sarsa-srr", "riverswim", "alpha beta epsilon eta gamma_sr"),
        ("constant", "sixarms", "alpha beta epsilon"),
    ],
)
def test_what_makes_a_difference_is_tuned_and_the_ends_of_its_range_are_settings(agent, env, tuned):
    what = tunable(agent, env)
    assert sorted(what.ranges) == tuned.split()
    for name, (low, high, log) in what.ranges.items():
        assert low < high
        assert low > 0 or not log
        for value in (low, high):
            dataclasses.replace(what.settings, **{name: value})


@pytest.mark.slow
def test_the_score_is_the_reward_of_a_seed():
    linear = tunable("linear-q", "mountain-car", steps=20, episodes=2)
    assert linear.score(linear.settings, [0]) == 0  # nobody reaches the flag in 20 steps
    chain = tunable("random", "riverswim", steps=50)
    np.testing.assert_array_equal(
        chain.score(chain.settings, [1, 5]), chain.settings.run(spie.riverswim(), 50, [1, 5]).total_reward
    )


@pytest.mark.slow
def test_where_less_is_better_the_score_is_the_less():
    corridor = tunable("sarsa", "of-small", steps=300)  # nothing is paid: steps to see all
    found = corridor.score(corridor.settings, [0, 1])
    np.testing.assert_array_equal(found, -corridor.settings.run(spie.grid("of-small"), 300, 2).steps_to(0.99))


def test_a_setting_that_is_given_is_not_tuned_and_stays():
    what = tunable("sarsa-srr", "riverswim", alpha=0.3)
    assert what.settings.alpha == 0.3
    assert "alpha" not in what.ranges


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("linear-q-sf-fp", 'no agent "linear-q-sf-fp"; did you mean "linear-q-sf-pf"'),
        ("sarsa-rrs --env sixarms", 'no agent "sarsa-rrs"'),
        ("sarsa --env sea", 'no task of kind table "sea"'),
        ("sarsa --trials 0", "trials must lie between 1 and"),
        ("sarsa --steps -5", "steps must lie between 1 and"),
        ("sarsa --steps 0", "steps must lie between 1 and"),
        ("sarsa --journal .", ". cannot be used as a journal"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(monkeypatch, capsys, tmp_path, words, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["spie", "tune", *words.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip().splitlines()[-1].startswith("spie: ")
    assert message in err


def test_without_optuna_the_way_to_get_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r'pip install "spie-rl\[tune\]"'):
        tune("sarsa", "riverswim", journal=tmp_path / "j")


@pytest.mark.slow
def test_a_deep_agent_is_tuned_on_an_image_task(tmp_path):
    what = tunable("dqn-sf-pf", "four-rooms", steps=520)
    assert set(what.ranges) == {"rate", "epsilon", "polyak", "beta"}
    assert set(tunable("dqn", "four-rooms").ranges) == {"rate", "epsilon", "polyak"}
    found = tune("dqn-sf-pf", "four-rooms", 2, seeds=1, confirm=1, steps=520, journal=tmp_path / "journal")
    assert found.finished == 2
    assert what.ranges["rate"][0] <= found.settings.rate <= what.ranges["rate"][1]
    with pytest.raises(ValueError, match='no agent "dqn-sfpf"; did you mean "dqn-sf-pf"'):
        tunable("dqn-sfpf", "four-rooms")
