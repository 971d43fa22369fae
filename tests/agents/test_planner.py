"""The planner: equal to a plain reference step for step, the same in any company, scale-free, clear about bad input.

A kernel is compiled for each number of actions, so tests have four.
"""

import dataclasses

import numpy as np
import pytest

import spie
from reference_planner import Mind, reference_planner
from spie import Keep, Planner, Session
from spie.agents.registry import names
from spie.trace import part_sizes

ROOMS = """
S..#..1
...#...
.......
2..#..G
"""
UNUSUAL = Planner(
    gamma=0.9, backups=3, optimism=1.5, curiosity=2, unit=1.0, prior=0.1, tolerance=1e-3, epsilon=0.3,
    cost_weight=0.5, eta=0.3, gamma_sr=0.8,
)  # fmt: skip


def random_mdp(S=9, A=4, K=3, masked=True):
    """A table without any structure: every number drawn; the last two states end an episode."""
    rng = np.random.default_rng(S * A * K)
    available = rng.random((S, A)) < (0.6 if masked else 1)
    available[:, 0] = True
    prob = rng.random((S, A, K)) * (rng.random((S, A, K)) < 0.8)
    prob[..., 0] += 0.01
    prob *= available[:, :, None] / prob.sum(axis=2, keepdims=True)
    terminal = np.arange(S) >= S - 2
    start = np.where(terminal, 0, rng.random(S))
    successors, reward = rng.integers(S, size=(S, A, K)), rng.normal(size=(S, A, K))
    return spie.MDP("random", successors, prob, reward, start / start.sum(), terminal, available=available)


def assert_equal_step_for_step(agent, mdp, steps, seed=3, episodes=None):
    """The same steps, the same chances of new outcomes, the same values; to the bit, for both add in one order."""
    trace = agent.run(mdp, steps, [seed], episodes=episodes, keep=Keep(("Q",), paths=(seed,)))
    expected, path = reference_planner(agent, mdp, steps, seed, episodes), trace.paths[seed]
    for name in ("states", "actions", "next_states", "rewards", "bonuses"):
        np.testing.assert_array_equal(getattr(path, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(trace.Q[0], expected.Q)
    assert trace.total_reward[0] == pytest.approx(expected.rewards.sum(), rel=1e-12)
    assert trace.steps[0] == len(expected.rewards)
    if episodes is not None:
        np.testing.assert_array_equal(trace.episode_steps[0], expected.lengths)
    n, of = (len(path.rewards), np.arange(len(path.rewards))) if episodes is None else (episodes, None)
    of = np.repeat(np.arange(episodes), expected.lengths) if of is None else of  # the episode or step of every reward
    paid = np.bincount(of * min(20, n) // n, path.rewards, min(20, n))
    np.testing.assert_allclose(trace.reward_curve[0] * part_sizes(n), paid, rtol=1e-5, atol=1e-5)
    return trace


def assert_equal_everywhere(agent):
    """One long episode, one goal, moving goals, and a random table with actions that are not available."""
    assert_equal_step_for_step(agent, spie.grid("cluster-hard"), 400)
    assert_equal_step_for_step(agent, spie.grid(ROOMS, "goal"), 60, episodes=8)
    moving = spie.grid(ROOMS, "moving-goal", episodes_per_goal=2)
    trace = assert_equal_step_for_step(agent, moving, 25, episodes=24)
    assert 0 < trace.truncated[0] < 24  # both ways to end


@pytest.mark.slow
@pytest.mark.parametrize("cost", ["none", "sr-column", "pr-column", "count"])
def test_planner_equals_the_reference(cost):
    assert_equal_everywhere(Planner(cost=cost))
    assert_equal_everywhere(dataclasses.replace(UNUSUAL, cost=cost))


@pytest.mark.slow
def test_planner_equals_the_reference_where_outcomes_are_random_and_actions_missing():
    for agent in (Planner(), UNUSUAL):
        assert_equal_step_for_step(agent, random_mdp(), 600)
        assert_equal_step_for_step(agent, random_mdp(), 40, episodes=30)
        assert_equal_step_for_step(agent, random_mdp(masked=False), 600)


def test_hope_is_what_the_settings_say():
    mind = Mind(Planner(), spie.grid(ROOMS))
    assert mind.top == pytest.approx(0.25 * 0.01 / 0.01)  # no reward yet: a small unit
    mind.learn(1, 0, 4.0, 2, False)
    mind.learn(2, 0, 0.0, 2, False)
    # averages: 4, then (.99 * .01 * 4) / (1 - .99^2) = 1.98995; the largest counts
    assert mind.top == pytest.approx((3 * 4 + 0.25 * 4) / 0.01)
    # tried once with one outcome, nothing tried twice: theta = .5
    assert mind.unseen(1, 0) == pytest.approx(0.5 / 1.5)
    mind.learn(1, 0, 0.0, 2, False)
    # a second try, 1 / n = 1, with nothing new: others learn from it, the pair itself has one try more
    assert mind.unseen(1, 0) == pytest.approx(0.5 / 2.5)
    assert mind.unseen(2, 0) == pytest.approx((0.5 / 2) / (0.5 / 2 + 1))  # of the same action: theta = .5 / (1 + 1)
    mind.learn(1, 0, 0.0, 1, False)  # a third try has a new outcome, but leads to a state that is known
    assert mind.unseen(2, 0) == pytest.approx((0.5 / 2.5) / (0.5 / 2.5 + 1))
    mind.learn(3, 0, 0.0, 3, False)
    mind.learn(3, 0, 0.0, 4, False)  # a discovery: pairs with one outcome expect more of them, theta = 1.5 / 3.5
    assert mind.unseen(2, 0) == pytest.approx((1.5 / 3.5) / (1.5 / 3.5 + 1))
    mind.learn(4, 0, 0.0, 4, False)
    mind.learn(4, 0, 5.0, 1, False)  # and so is the largest reward so far, in a state that is known
    assert mind.unseen(2, 0) == pytest.approx((2.5 / 4.5) / (2.5 / 4.5 + 1))


@pytest.mark.slow
def test_the_scale_of_the_rewards_makes_no_difference():
    mdp = random_mdp()
    large = dataclasses.replace(mdp, reward=1024 * mdp.reward)  # a power of 2, so that all rounds alike
    small, scaled = (Planner().run(one, 600, 4, keep=Keep(("Q",), paths=(2,))) for one in (mdp, large))
    np.testing.assert_array_equal(small.paths[2].actions, scaled.paths[2].actions)
    np.testing.assert_array_equal(1024 * small.Q, scaled.Q)


@pytest.mark.slow
def test_a_seed_gives_the_same_run_in_any_company():
    mdp = spie.grid(ROOMS, "moving-goal", episodes_per_goal=2)
    alone = UNUSUAL.run(mdp, 25, [7], episodes=10)
    many = Planner.run_many([Planner(), UNUSUAL], mdp, 25, range(12), episodes=10, session=Session(threads=2))[1]
    np.testing.assert_array_equal(alone.episode_steps[0], many.episode_steps[7])
    np.testing.assert_array_equal(alone.visits[0], many.visits[7])
    assert alone.total_bonus[0] == many.total_bonus[7]


@pytest.mark.slow
def test_values_are_those_of_the_best_policy_once_everything_is_known():
    """No hope is left in a deterministic world: Q+ of the states on the way is the discounted cost of the shortest."""
    mdp = spie.grid("S...\n...G", "goal")
    agent = Planner(prior=1e-9, tolerance=0.0, backups=50)
    Q = agent.run(mdp, 100, 1, episodes=200, keep=Keep(("Q",))).Q[0]
    distance = np.array([4, 3, 2, 1, 3, 2, 1])  # steps to G; each but the last costs 1
    expected = -(1 - 0.99 ** (distance - 1)) / 0.01
    np.testing.assert_allclose(Q[:7].max(axis=1), expected, atol=1e-6)


@pytest.mark.slow
def test_a_replay_is_learned_from_and_a_run_may_be_snapshot():
    mdp = random_mdp(masked=False)
    walk = np.random.default_rng(0).integers(4, size=100)
    trace = Planner().run(mdp, 100, 1, replay=spie.Replay(walk), keep=Keep(snapshots=(10, 100), paths=(0,)))
    np.testing.assert_array_equal(trace.paths[0].actions, walk)
    np.testing.assert_array_equal(trace.snapshots[0, 1], trace.visits[0])
    assert trace.snapshots[0, 0].sum() < trace.visits.sum()
    with pytest.raises(ValueError, match="is not available in state"):
        Planner().run(random_mdp(), 100, 1, replay=spie.Replay(walk))


@pytest.mark.slow
def test_a_seed_whose_numbers_are_no_longer_finite_is_named():
    mdp = random_mdp()
    huge = dataclasses.replace(mdp, reward=np.where(mdp.reward > 1.5, 1e308, mdp.reward))
    trace = Planner().run(huge, 300, 3)
    assert len(trace.failures) >= 1
    assert "infinite or NaN at step" in trace.failures[0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"backups": 0}, "backups must be a whole number of at least 1 and at most 1,000,000, not 0"),
        ({"backups": 2.5}, "backups must be a whole number"),
        ({"optimism": -1.0}, r"optimism must lie in \[0, inf\), not -1.0"),
        ({"curiosity": float("inf")}, "curiosity must lie in"),
        ({"curiosity": float("nan")}, "curiosity must lie in"),
        ({"gamma": 1.0}, r"gamma must lie in \[0, 1\)"),
        ({"optimism": 0.0, "curiosity": 0.0}, "nothing makes it explore"),
        ({"cost": "sr-colum"}, 'did you mean "sr-column"'),
    ],
)
def test_bad_settings_get_one_clear_line(settings, said):
    with pytest.raises(ValueError, match=said):
        Planner(**settings)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keep": Keep(("M",))}, 'no matrix to keep "M"'),
        ({"keep": Keep(paths=(5,))}, "seed 5 of paths"),
        ({"keep": Keep(snapshots=(0,))}, "snapshots must be rising"),
        ({"replay": spie.Replay(np.array([0, 9]))}, "replay must have shape"),
        ({"episodes": 0}, "episodes must be a whole number"),
    ],
)
def test_what_a_run_cannot_do_is_refused_in_one_line(options, said):
    with pytest.raises(ValueError, match=said):
        Planner().run(spie.riverswim(), 10, 2, **options)


def test_spie_has_a_form_for_every_kind_of_task():
    assert isinstance(spie.agent("spie", spie.riverswim()), Planner)
    rooms = spie.task("four-rooms", kind="images")
    assert spie.agent("spie", rooms, beta=0.5) == spie.agent("dqn-sp-novelty", rooms, beta=0.5)
    assert spie.agent("spie", spie.mountain_car()) == spie.agent("linear-q-sp-novelty")
    for kind in ("table", "continuous", "images"):
        assert "spie" in names(kind)
