"""The teacher: a planner that pays another agent's steps by its bounded advantage, in place of the reward."""

import gymnasium as gym
import numpy as np
import pytest

import spie
from spie.agents.planner.teacher import Teacher
from spie.agents.registry import agent
from spie.dropin.teacher import TeacherLearner


def walk(env, steps, seed=0):
    """What a random walk is paid, and the last info."""
    rng, paid = np.random.default_rng(seed), []
    env.reset(seed=seed)
    for _ in range(steps):
        _, r, terminated, truncated, info = env.step(int(rng.integers(env.action_space.n)))
        paid.append(r)
        if terminated or truncated:
            env.reset()
    return np.array(paid), info


@pytest.fixture
def lake():
    return spie.task("frozen-lake", size="4x4").env(max_steps=100)


@pytest.mark.slow
def test_the_pay_is_the_bounded_advantage_by_hand():
    teacher = Teacher(3, 4, spie.Planner(prior=1e-12))
    assert teacher.query(0, 0) == 0.0  # nothing is known
    assert teacher.step(0, 0, 0.0, 0, 1.0) == 0.0  # so a first try is as good as any
    # unit .01: top = .25. A tried pair that stays is worth .99 top, the untried ones top: the worst of the actions
    assert teacher.step(0, 0, 0.0, 0, 1.0) == pytest.approx(-1)
    assert teacher.step(0, 1, 0.0, 1, 0.0) == 0.0
    # that one ended an episode for nothing: worth 0, beside .25 and .99 * .25, whose spread is .01 * .25
    assert teacher.query(0, 1) == -2
    assert teacher.query(0, 2) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["teacher", "spie"])
def test_the_teacher_replaces_the_reward_and_says_so(lake, name):
    env = spie.IntrinsicReward(lake, name)
    paid, info = walk(env, 300)
    assert info["reward_replaced_by"] == "teacher"
    assert "extrinsic_reward" in info
    assert paid.max() <= 0
    assert paid.min() >= -2
    assert len(np.unique(paid)) > 5


@pytest.mark.slow
def test_a_vector_of_one_is_paid_as_a_single_environment(lake):
    single, _ = walk(spie.IntrinsicReward(lake, "teacher"), 60)
    make = lambda: spie.task("frozen-lake", size="4x4").env(max_steps=100)  # noqa: E731
    env = spie.IntrinsicReward(gym.vector.SyncVectorEnv([make, make]), "teacher")
    env.reset(seed=0)
    for _ in range(20):
        _, paid, _, _, infos = env.step(np.array([1, 2]))
        assert ((paid <= 0) & (paid >= -2)).all()
    assert infos["reward_replaced_by"] == "teacher"
    assert len(single) == 60


@pytest.mark.slow
def test_a_saved_teacher_goes_on_where_it_was(lake, tmp_path):
    env = spie.IntrinsicReward(lake, "teacher")
    walk(env, 400)
    env.save(tmp_path / "teacher.safetensors")
    other = spie.IntrinsicReward(spie.task("frozen-lake", size="4x4").env(max_steps=100), "teacher")
    other.load(tmp_path / "teacher.safetensors")
    np.testing.assert_array_equal(walk(env, 200, seed=5)[0], walk(other, 200, seed=5)[0])


@pytest.mark.slow
def test_a_teacher_of_an_older_planner_is_refused_in_one_line(lake):
    env = spie.IntrinsicReward(lake, "teacher")
    state = env.bonus.state_dict()
    del state["arrays"]["model.own_sum"]  # which the planner's first version did not have
    said = r'no model\.own_sum: it is of an older spie, whose "teacher" learned otherwise; learn again from nothing$'
    with pytest.raises(ValueError, match=said):
        env.bonus.load_state_dict(state)


@pytest.mark.slow
def test_plain_q_learning_on_the_pay_alone_solves_the_frozen_lake():
    env, rng = spie.IntrinsicReward(spie.task("frozen-lake").env(max_steps=200), "teacher"), np.random.default_rng(0)
    Q, ends = np.zeros((64, 4)), []
    s, _ = env.reset(seed=0)
    for t in range(8000):
        explores = rng.random() < 0.1 * (1 - t / 8000)
        a = int(rng.integers(4) if explores else rng.choice(np.flatnonzero(Q[s] >= Q[s].max() - 1e-9)))
        s_next, r, terminated, truncated, info = env.step(a)
        Q[s, a] += 0.1 * (r + 0.99 * (not terminated) * Q[s_next].max() - Q[s, a])
        s = s_next
        if terminated or truncated:
            ends.append(info["extrinsic_reward"])
            s, _ = env.reset()
    assert np.mean(ends[-20:]) > 0.8


def test_what_cannot_be_counted_is_refused_in_one_line():
    with pytest.raises(ValueError, match='"teacher" needs observations and actions that can be counted'):
        spie.IntrinsicReward(gym.make("MountainCar-v0"), "teacher")


@pytest.mark.slow
def test_spie_is_the_teacher_where_things_can_be_counted_and_sp_novelty_elsewhere():
    lake, car = gym.make("FrozenLake-v1"), gym.make("MountainCar-v0")
    assert spie.IntrinsicReward(lake, "spie").bonus.reward.name == "teacher"
    on_car = spie.IntrinsicReward(car, "spie", beta=0.1).bonus
    assert on_car.reward.name == "sp-novelty"
    assert on_car.settings == spie.IntrinsicReward(car, "sp-novelty", beta=0.1).bonus.settings


@pytest.mark.slow
def test_the_teacher_has_the_settings_of_spie():
    settings, (lane,) = agent("spie"), TeacherLearner((4, int, list), 2).teacher.lanes
    for name in ("optimism", "curiosity", "prior", "backups"):
        assert lane[name] == getattr(settings, name)
