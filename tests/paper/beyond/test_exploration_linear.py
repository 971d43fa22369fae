"""The judge of exploration on linear features: what is run, and on which seeds."""

import dataclasses

import numpy as np
from numpy.testing import assert_allclose

from made_up import made_up_episodes
from spie.paper.beyond import exploration_linear as judge_of


def test_every_contender_is_tuned_on_seeds_that_are_not_reported():
    for choice in judge_of.contests(40).values():
        seeds = [set(one.all_seeds) for one in choice.rounds] + [set(choice.confirm)]
        assert list(map(len, seeds)) == [5, 10, 40]
        assert len(set().union(*seeds)) == 55


def test_spie_and_novelty_differ_by_the_potential_alone():
    spie, novelty = (dataclasses.asdict(judge_of.grids()[name][0]) for name in ("spie", "novelty"))
    assert {key for key in spie if spie[key] != novelty[key]} == {"potential"}
    assert all(base.epsilon == judge_of.EPSILON for base, _ in judge_of.grids().values())


def test_success_is_the_share_of_episodes_that_end_by_themselves():
    run = next(run for run in judge_of.contests(4)["bare"].runs(0, lambda run: None))
    trace = made_up_episodes(dataclasses.replace(run, seeds=3))
    assert_allclose(judge_of.success(trace), trace.terminated.sum(axis=1) / judge_of.EPISODES)
    assert_allclose(judge_of.late_success(trace), trace.terminated[:, 80:].sum(axis=1) / 20)


def test_the_ledger_compares_with_the_best_rival_on_each_task():
    share = {"spie": 0.5, "bare": 0.1, "constant": 0.3, "count": 0.2, "optimism": 0.0}

    def runs(who, env):
        reached = np.arange(judge_of.EPISODES) < 100 * share[who.agent]
        return dataclasses.make_dataclass("Left", ["terminated"])(np.tile(reached, (12, 1)))

    parts = judge_of.more_success(judge_of.CONTROLS)(runs)
    assert [part.label for part in parts] == ["mountain-car constant", "pendulum constant", "acrobot constant"]
    assert_allclose([part.value for part in parts], 0.2)
