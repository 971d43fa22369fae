"""Choosing on some seeds and confirming on others, with agents whose scores are known."""

from dataclasses import dataclass

import numpy as np
import pytest

import spie
from spie.agents.base import Agent
from spie.runs.run import Run
from spie.search.grid import MEASURES, SettingsGrid, usual_measure
from spie.search.select import FRESH, Choice, Round, Search, fresh, halving, mean_and_error
from spie.trace import EpisodeTrace

LUCK = 0.5  # of setting 0 on seeds below 4


@dataclass(frozen=True)
class Known(Agent):
    """Stands in for an agent: it earns x, and x = 0 is lucky on the first seeds."""

    x: float = 0.0

    def run(self, task, steps, seeds, *, episodes=None, keep=None, replay=None, session=None):
        seeds = np.arange(seeds) if isinstance(seeds, int) else np.array(seeds)
        rewards = np.repeat(self.x + LUCK * ((self.x == 0) & (seeds < 4)), 1).astype(float)[:, None]
        none = np.zeros_like(rewards)
        return EpisodeTrace("", seeds, none.astype(int), rewards, none, none > 0, np.full(len(seeds), -1))


def search(values=(0.0, 0.1, 0.2, 0.3), **changes):
    task = spie.mountain_car()
    return Search("", "known", (SettingsGrid(Known(), (("x", values),), "reward"),), task, 1, **changes)


def test_the_lucky_one_wins_the_search_and_loses_where_it_is_run_again():
    one_round = Choice((search(),), (Round(4, 1),), fresh(5))
    assert one_round.best(1, Run.execute).tolist() == [0]
    ((trial,),) = one_round.confirmed(1, Run.execute)
    assert trial.run.seeds == fresh(5)
    assert Run.execute(trial.run).values.tolist() == [[0.0] * 5]  # and not 0.5
    two_rounds = Choice((search(),), (Round(4, 2), Round(fresh(3), 1)), fresh(5, 2))
    assert two_rounds.best(1, Run.execute).tolist() == [3]


def test_a_round_runs_what_is_left_on_seeds_that_were_not_run_before():
    choice = Choice((search(),), (Round(2, 3), Round(6, 2), Round(fresh(2), 1)), fresh(1, 2))
    ran = []

    def load(run):
        ran.append((run.settings.combinations(), run.seeds))
        return run.execute()

    choice.scored(load)
    assert ran == [
        ([(0.0,), (0.1,), (0.2,), (0.3,)], 2),
        ([(0.0,), (0.2,), (0.3,)], (2, 3, 4, 5)),
        ([(0.0,), (0.3,)], fresh(2)),
    ]


def test_the_ranking_is_by_the_round_that_a_setting_got_to_and_then_by_its_mean_there():
    choice = Choice((search(),), (Round(2, 3), Round(6, 2), Round(fresh(2), 1)))
    # means: of 2 seeds .5 .1 .2 .3; of 6 seeds .33 - .2 .3; of the fresh ones 0 - - .3
    values, ranking = choice.scored(Run.execute)
    assert ranking.tolist() == [3, 0, 2, 1]
    assert (~np.isnan(values[0])).sum(axis=1).tolist() == [8, 2, 6, 8]
    np.testing.assert_allclose(choice.searched(Run.execute), [0.5, 0.1, 0.2, 0.3])


def test_of_equals_the_first_is_chosen():
    assert Choice((search((0.2, 0.3, 0.3)),), (Round(2, 1),)).best(2, Run.execute).tolist() == [1, 2]


def test_several_tasks_count_together_each_by_its_scale():
    class Halved(Search):
        def run(self, grid, seeds):
            """On this task the order is the other way round, and scores are ten times as large."""
            run = super().run(grid, seeds)
            object.__setattr__(run, "execute", lambda *_: spie.Scores(np.arange(2), 3 - 10 * Run.execute(run).values))
            return run

    first, second = search((0.1, 0.2, 0.3)), Halved(**vars(search((0.1, 0.2, 0.3))))
    load = lambda run: run.execute()  # noqa: E731
    rounds = (Round(2, 1),)
    assert Choice((first, second), rounds).best(1, load).tolist() == [0]
    shrunk = Halved(**vars(second) | {"scale": 100.0})
    assert Choice((first, shrunk), rounds).best(1, load).tolist() == [2]


def test_a_seed_that_helped_to_choose_cannot_confirm():
    with pytest.raises(ValueError, match="seed 3 cannot confirm what it helped to choose"):
        Choice((search(),), (Round(4, 1),), confirm=(3, 9))


@pytest.mark.parametrize(
    ("seeds", "expected"), [(9, [(1, 10), (3, 4), (9, 2)]), (2, [(1, 10), (2, 4)]), (1, [(1, 10)])]
)
def test_halving_keeps_a_third_and_gives_it_three_times_the_seeds(seeds, expected):
    assert [tuple(one) for one in halving(28, seeds)] == expected


def test_sets_of_fresh_seeds_share_none():
    assert fresh(3) == (FRESH, FRESH + 1, FRESH + 2)
    assert not {*fresh(FRESH)} & {*fresh(5, 2)}


def test_means_and_errors_are_of_the_values_that_are_there():
    values = np.array([[1.0, 2.0, 6.0], [4.0, np.nan, 6.0], [7.0, np.nan, np.nan]])
    mean, error, n = mean_and_error(values)
    assert mean.tolist() == [3, 5, 7]
    np.testing.assert_allclose(error, [np.sqrt(7 / 3), 1, np.nan])  # sd / sqrt(n): variances 7 and 2
    assert n.tolist() == [3, 2, 1]


def test_what_is_compared_follows_from_the_task():
    assert usual_measure(spie.riverswim(), None) == "reward"
    assert usual_measure(spie.grid("of-small"), None) == "coverage"
    assert usual_measure(spie.grid("of-small", task="goal"), 5) == "episodes"
    assert usual_measure(spie.mountain_car(), 5) == "episode reward"


def test_a_measure_that_a_result_does_not_have_is_refused():
    with pytest.raises(ValueError, match="steps to see 99 % of the states cannot be computed"):
        MEASURES["coverage"].read(Known().run(spie.mountain_car(), 1, 2))


@pytest.mark.slow
def test_any_agent_can_be_searched_and_grids_of_different_agents_are_different_runs():
    task = spie.mountain_car()
    axes = (("alpha", (0.1, 0.2)), ("epsilon", (0.3,)))
    linear = SettingsGrid(spie.LinearQ(reward="none"), axes, "success")
    scores = linear.run(task, 200, [3, 4], episodes=2)
    for s, values in zip(linear.settings(), scores.values, strict=True):
        np.testing.assert_array_equal(values, s.run(task, 200, [3, 4], episodes=2).terminated.mean(axis=1))
    sarsa = SettingsGrid(spie.Sarsa(reward="none", epsilon=0.3), axes, "success")
    assert Run("", "", linear, task, 1, 1).id != Run("", "", sarsa, task, 1, 1).id


def test_a_raised_version_of_the_agent_changes_the_id_of_its_grids(monkeypatch):
    def found():
        return Run("", "", SettingsGrid(spie.Sarsa(), (("alpha", (0.1, 0.2)),)), spie.riverswim(), 1, 1).id

    before = found()
    monkeypatch.setattr(spie.Sarsa, "version", spie.Sarsa.version + 1)
    assert found() != before
