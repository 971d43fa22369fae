"""What a run leaves behind."""

import dataclasses

import numpy as np
import pytest

import spie
from made_up import played
from spie.trace import curve_of_episodes

pytestmark = pytest.mark.slow

AGENT = spie.Sarsa(alpha=0.1, eta=0.25, beta=2.0, epsilon=0.1)
SEEDS = [3, 8, 1]


def kept(*snapshots):
    """All there is: the kernels of test_sarsa."""
    return spie.Keep(tuple("QMFN"), snapshots, SEEDS)


@pytest.fixture(scope="module")
def swim():
    return AGENT.run(spie.riverswim(), 400, SEEDS, keep=kept(1, 90, 400))


@pytest.fixture(scope="module")
def moving():
    mdp = spie.grid("S..#..1\n...#...\n.......\n2..#..G", "moving-goal", episodes_per_goal=2)
    return mdp, AGENT.run(mdp, 60, SEEDS, episodes=14, keep=kept(1, 90, 840))


def test_totals_are_the_sums_of_the_steps(swim):
    for i, seed in enumerate(SEEDS):
        path = swim.paths[seed]
        assert path.rewards.shape == (400,)
        assert swim.total_reward[i] == path.rewards.sum()  # whole numbers: no rounding
        assert swim.total_bonus[i] == pytest.approx(path.bonuses.sum(), rel=1e-12)
    assert swim.total_reward.any()
    np.testing.assert_array_equal(swim.steps, 400)


def test_the_curve_of_the_reward_is_its_mean_in_each_twentieth(swim, moving):
    odd = AGENT.run(spie.riverswim(), 397, SEEDS, keep=kept(1, 90, 397))  # parts of 19 and of 20 steps
    for i, seed in enumerate(SEEDS):
        np.testing.assert_allclose(swim.reward_curve[i], swim.paths[seed].rewards.reshape(20, 20).mean(axis=1))
        parts = [part.mean() for part in np.split(odd.paths[seed].rewards, -(-397 * np.arange(1, 20) // 20))]
        np.testing.assert_allclose(odd.reward_curve[i], parts, rtol=1e-6)
    trace = moving[1]  # 14 episodes, fewer than 20
    for i, seed in enumerate(SEEDS):
        begins = np.append(0, np.cumsum(trace.episode_steps[i])[:-1])
        np.testing.assert_allclose(trace.reward_curve[i], np.add.reduceat(trace.paths[seed].rewards, begins))
    assert curve_of_episodes([10, 11, 40], [1, 2, 4], 40, total_reward=8).tolist() == [
        *[0] * 4, 0.5, 1, *[0] * 13, 2.5,
    ]  # fmt: skip


def test_paths_are_walks_of_the_mdp(moving):
    mdp, trace = moving
    for i, seed in enumerate(SEEDS):
        path = trace.paths[seed]
        assert len(path.states) == trace.steps[i]
        np.testing.assert_array_equal(mdp.next[path.states, path.actions, 0], path.next_states)
        ends = np.cumsum(trace.episode_steps[i])
        begins = np.append(0, ends[:-1])
        np.testing.assert_array_equal(path.states[begins], 0)
        inside = np.setdiff1d(np.arange(len(path.states)), begins)
        np.testing.assert_array_equal(path.states[inside], path.next_states[inside - 1])


def test_visits_count_every_arrival_and_every_start(swim, moving):
    np.testing.assert_array_equal(swim.visits.sum(axis=1), 400 + 1)
    _, trace = moving
    np.testing.assert_array_equal(trace.visits.sum(axis=1), trace.steps + 14)
    for i, seed in enumerate(SEEDS):
        arrivals = np.bincount(trace.paths[seed].next_states, minlength=25)
        arrivals[0] += 14
        np.testing.assert_array_equal(trace.visits[i], arrivals)


def test_first_visit_is_the_step_of_the_first_arrival(swim, moving):
    for trace in (swim, moving[1]):
        for i, seed in enumerate(SEEDS):
            path = trace.paths[seed]
            walk = np.append(path.states[0], path.next_states)  # starts of later episodes are no first visits here
            expected = [int(np.argmax(walk == s)) if s in walk else -1 for s in range(trace.visits.shape[1])]
            np.testing.assert_array_equal(trace.first_visit[i], expected)


def test_snapshots_are_the_visits_of_shorter_runs(swim, moving):
    for i, steps in enumerate((1, 90, 400)):
        shorter = AGENT.run(spie.riverswim(), steps, SEEDS, keep=kept())
        np.testing.assert_array_equal(swim.snapshots[:, i], shorter.visits)
    _, trace = moving
    for i, steps in enumerate((1, 90)):
        walked = [trace.paths[seed].next_states[:steps] for seed in SEEDS]
        begun = [1 + (np.cumsum(lengths) <= steps).sum() for lengths in trace.episode_steps]
        for row, walk, episodes in zip(trace.snapshots[:, i], walked, begun, strict=True):
            np.testing.assert_array_equal(row, np.bincount(walk, minlength=25) + episodes * (np.arange(25) == 0))
    assert (trace.steps < 840).all()  # over before the last snapshot, which shows how it ended
    np.testing.assert_array_equal(trace.snapshots[:, 2], trace.visits)


def test_a_shorter_run_is_the_beginning_of_a_longer_one(swim):
    shorter = AGENT.run(spie.riverswim(), 150, SEEDS, keep=kept())
    for i, seed in enumerate(SEEDS):
        for name in ("states", "actions", "next_states", "rewards", "bonuses"):
            begin = getattr(swim.paths[seed], name)[:150]
            np.testing.assert_array_equal(getattr(shorter.paths[seed], name), begin)
        seen_late = swim.first_visit[i] > 150
        np.testing.assert_array_equal(shorter.first_visit[i], np.where(seen_late, -1, swim.first_visit[i]))
    assert (shorter.first_visit == -1).any()


def test_episodes_end_at_the_goal_or_are_truncated_and_counted(moving):
    mdp, trace = moving
    goals = mdp.terminal.argmax(axis=1).repeat(2)  # each for two episodes
    assert trace.episode_steps.shape == (3, 14)
    np.testing.assert_array_equal(trace.episode_steps.sum(axis=1), trace.steps)
    for i, seed in enumerate(SEEDS):
        path = trace.paths[seed]
        last = np.cumsum(trace.episode_steps[i]) - 1
        reached = path.rewards[last] == 0  # every other step costs 1
        np.testing.assert_array_equal(path.next_states[last][reached], np.resize(goals, 14)[reached])
        np.testing.assert_array_equal(trace.episode_steps[i][~reached], 60)
        assert trace.truncated[i] == (~reached).sum()
        assert trace.total_reward[i] == -trace.steps[i] + reached.sum()
    assert trace.truncated.any()
    assert (trace.truncated < 14).all()


def test_a_run_of_n_steps_goes_through_episodes_without_listing_them():
    mdp = spie.grid("S..#..1\n...#...\n.......\n2..#..G", "goal")
    trace = AGENT.run(mdp, 1000, SEEDS, keep=kept())
    np.testing.assert_array_equal(trace.steps, 1000)
    assert trace.episode_steps.shape == (3, 0)
    assert not trace.truncated.any()
    reached = np.array([(trace.paths[seed].rewards == 0).sum() for seed in SEEDS])
    assert (reached > 1).all()
    np.testing.assert_array_equal(trace.visits[:, 24], reached)
    np.testing.assert_array_equal(trace.visits.sum(axis=1), 1000 + 1 + reached)


def test_coverage_is_the_share_of_states_seen_by_then(swim):
    steps = [0, 1, 2, 50, 400]
    for row, first in zip(swim.coverage(steps), swim.first_visit, strict=True):
        assert row.tolist() == [((first >= 0) & (first <= t)).sum() / 6 for t in steps]
    assert swim.coverage([0]).tolist() == [[1 / 6]] * 3


def test_coverage_by_hand():
    first_visit = np.array([[0, 2, -1, 5], [3, 0, -1, -1]], np.int32)
    nothing = np.zeros((2, 0))
    trace = spie.Trace(
        seeds=np.arange(2), total_reward=nothing, total_bonus=nothing, steps=nothing, visits=nothing,
        first_visit=first_visit, episode_steps=nothing, truncated=nothing, snapshots=nothing,
    )  # fmt: skip
    expected = [[0.25, 0.25, 0.5, 0.75, 0.75], [0.25, 0.25, 0.25, 0.5, 0.5]]
    np.testing.assert_array_equal(trace.coverage([0, 1, 2, 5, 10**9]), expected)


def test_a_trace_of_a_game_whose_states_nobody_knows_says_what_it_is():
    none, game = np.zeros((2, 0), np.int32), played(100, [[60, 40], [100, 0]], [[1, 2], [3, 0]])
    unknown = dataclasses.replace(game, visits=none, first_visit=none, settings="")
    assert repr(unknown) == "Trace: 2 seeds x 100 steps, total reward 3 (se 0)"
