import math

import gymnasium as gym
import numpy as np
import pytest
import torch

import spie
from spie.agents.dqn.bonuses import RND, DeepBonus, FeatureReward, Scale, Transition, register_bonus
from spie.agents.dqn.build import build
from spie.agents.dqn.networks import architecture
from spie.agents.dqn.state import load_weights, weights_of
from spie.rewards import get_reward
from spie.tasks.pixels import make_pixels

torch.set_num_threads(1)


def computed(reward, norm="l1", **fields):
    """A reward of transitions [L, B] whose action does not matter."""
    bonus = FeatureReward(get_reward(reward, "features"), norm)
    shape = next(iter(fields.values())).shape[:2] if fields else (1, 2)
    return bonus.compute(Transition(torch.zeros(shape, dtype=torch.long), **fields))


@pytest.mark.slow
def test_sf_is_one_over_the_length_of_psi():
    psi = torch.tensor([[[3.0, -4.0], [0.0, 0.5]]])
    np.testing.assert_array_equal(computed("sf", "l2", psi=psi), np.array([[1 / 5, 2.0]], np.float32))
    np.testing.assert_array_equal(computed("sf", "l1", psi=psi), np.array([[1 / 7, 2.0]], np.float32))


@pytest.mark.slow
def test_sf_pf_is_the_difference_of_the_two():
    xi_next, psi = torch.tensor([[[1.0, -1.0]]]), torch.tensor([[[3.0, -5.0]]])
    assert computed("sf-pf", xi_next=xi_next, psi=psi).tolist() == [[1 / 2 - 1 / 8]]
    assert computed("sf-pf-printed", phi_next=xi_next, psi=psi).tolist() == [[1 / 2 - 1 / 8]]


@pytest.mark.slow
def test_the_bonus_of_a_zero_vector_is_large_but_finite():
    assert np.isfinite(computed("sf", psi=torch.zeros(1, 1, 4))).all()


@pytest.mark.slow
def test_the_controls_need_no_network():
    assert computed("constant").tolist() == [[-1.0, -1.0]]
    assert computed("count", visits_next=np.array([[4, 100]])).tolist() == [[1 / 2, 1 / 10]]


def threshold(psi_norm, visits_next):
    if visits_next > 2:
        return -math.log(psi_norm)
    return scaled(psi_norm)


def scaled(x):
    return 3.0 * x


@pytest.mark.slow
def test_a_reward_of_a_user_is_evaluated_for_each_transition_by_itself():
    """With an `if`, a function of `math` and one of the user's own, none of which takes arrays."""
    spie.reward("bonuses-threshold")(threshold)
    psi = torch.tensor([[[1.0, -1.0], [4.0, 0.0]], [[2.0, 1.0], [0.25, 0.25]]])
    paid = computed("bonuses-threshold", psi=psi, visits_next=np.array([[2, 3], [1, 9]]))
    np.testing.assert_allclose(paid, [[6.0, -np.log(4)], [9.0, np.log(2)]], rtol=1e-12)


@pytest.mark.slow
def test_one_reward_of_a_user_works_in_linear_q_in_the_wrapper_and_in_dqn():
    @spie.reward("bonuses-shared")
    def shared(psi_norm, phi_norm_next):
        return 1.0 / (psi_norm + 0.5) if phi_norm_next > 0 else 0.0

    linear = spie.LinearQ(reward="bonuses-shared", dimension=20).run(spie.mountain_car(), 50, 1, episodes=1)
    env = spie.IntrinsicReward(gym.make("spie/Pixels-FourRooms-v0"), "bonuses-shared")
    env.reset(seed=0)
    wrapped = env.step(1)[4]["intrinsic_reward"]
    agent = spie.DQN(bonus="bonuses-shared", preset="small", learning_starts=50, batch=8)
    assert (agent.name, agent.rewards) == ("dqn-bonuses-shared", ("bonuses-shared",))
    deep = agent.run(spie.task("cluster-hard", kind="images"), 60, 2)
    for paid in (linear.episode_bonuses, wrapped, deep.total_bonus):
        assert (np.asarray(paid) > 0).all()


# -- Bonuses of other packages


@pytest.fixture
def shadow():
    """A bonus that learns: how far phi of s' lies from its running mean."""

    @register_bonus("bonuses-shadow")
    class Shadow(DeepBonus):
        uses = ("phi_next",)

        def __init__(self, surroundings):
            super().__init__(surroundings)
            self.mean = torch.zeros(len(surroundings.seeds), 1, 64)

        def compute(self, transition):
            return (transition.phi_next - self.mean).square().sum(dim=-1).numpy()

        def learn(self, transition):
            before = self.compute(transition)
            self.mean.lerp_(transition.phi_next.mean(dim=1, keepdim=True), 0.1)
            return {"shadow_loss": before.mean(axis=1)}

        def state(self):
            return {"mean": self.mean}

        def load(self, state):
            self.mean.copy_(state["mean"])

    return Shadow


def test_a_registered_bonus_is_computed_learned_reported_and_saved(shadow):
    agent = spie.DQN(bonus="bonuses-shadow", preset="small", learning_starts=40, batch=8)
    learners = [build(agent, make_pixels("cluster-hard", n=2), [0, 1], 100) for _ in range(2)]
    for _ in learners[0].loop():
        pass
    learner, other = learners
    assert isinstance(learner.bonus, shadow)
    assert (learner.total_bonus > 0).all()
    assert learner.bonus.mean.abs().sum() > 0
    assert len(learner.recent["shadow_loss"]) == 2 * learner.updates
    assert (learner.online.psi, learner.online.xi) == (None, None)  # heads that nobody asked for
    load_weights(other, weights_of(learner))
    torch.testing.assert_close(other.bonus.mean, learner.bonus.mean)
    assert "own bonus" in agent.changed_settings()


@pytest.mark.parametrize("name", ["rnd", "sf-pf", "none"])
def test_a_bonus_does_not_take_the_name_of_one_of_ours(name):
    with pytest.raises(ValueError, match=f'"{name}" is a bonus of DQN already; give yours another name'):
        register_bonus(name)(DeepBonus)


@pytest.mark.slow
def test_a_bonus_that_uses_only_the_predecessors_has_only_their_head():
    @spie.reward("bonuses-past")
    def past(xi_norm_next):
        return 1.0 / xi_norm_next

    agent = spie.DQN(bonus="bonuses-past", preset="small", learning_starts=40, batch=8)
    learner = build(agent, make_pixels("cluster-hard"), [0], 100)
    for _ in learner.loop():
        pass
    assert learner.online.psi is None
    assert {"pf_loss", "q_loss"} <= set(learner.recent)
    assert "sf_loss" not in learner.recent
    assert learner.updates > 0


# -- What a run says of its bonuses


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"bonus_at": "sampling"}, {"bonus_at": "sampling", "mmc": 0.0}], ids=str)
def test_the_total_bonus_is_the_sum_of_the_raw_bonuses_of_the_steps(options):
    room = spie.task("cluster-hard", kind="images")
    agent = spie.DQN(bonus="constant", preset="small", **options)
    assert agent.run(room, 600, 2).total_bonus.tolist() == [-100, -100]  # none for the first 500 steps
    agent = spie.DQN(bonus="sf-pf", preset="small", learning_starts=50, batch=8, envs=2, **options)
    learner = build(agent, make_pixels("cluster-hard", n=2), [3], 120)
    for _ in learner.loop():
        pass
    slots = learner.replays[0]._slots["bonus"]  # where each raw bonus is kept, as float32
    assert learner.total_bonus[0] == pytest.approx(slots.sum(dtype=np.float64), rel=1e-6)


# -- Random network distillation


@pytest.mark.parametrize("shape", [(5,), (20, 20)])
def test_rnd_falls_on_repeated_inputs_only(shape):
    rng = np.random.default_rng(0)
    known, new = rng.random((2, 1, 16, *shape))
    known[..., shape[-1] // 2 :], new[..., : shape[-1] // 2] = 0, 0  # one is bright on the left, the other on the right
    rnd = RND(shape, architecture("small"), rate=1e-3)
    rnd.learn(np.concatenate([known, new], axis=1))  # both have been seen by the running mean
    before = rnd.compute(known), rnd.compute(new)
    for _ in range(60):
        rnd.learn(known)
    assert (rnd.compute(known) < before[0] / 4).all()
    assert rnd.compute(new).mean() > before[1].mean() / 2


def test_computing_rnd_learns_nothing_and_its_lanes_do_not_touch():
    rng = np.random.default_rng(0)
    s = rng.random((2, 8, 5))
    both, second = RND((5,), architecture("small"), (3, 4)), RND((5,), architecture("small"), (4,))
    assert np.array_equal(both.compute(s), both.compute(s))
    np.testing.assert_allclose(both.compute(s)[1:], second.compute(s[1:]), rtol=1e-5)
    for _ in range(5):
        both.learn(s)
        second.learn(s[1:])
    np.testing.assert_allclose(both.compute(s)[1:], second.compute(s[1:]), rtol=1e-4)


def test_a_saved_rnd_goes_on_as_if_nothing_had_happened():
    s = np.random.default_rng(0).random((1, 8, 5))
    rnd, other = RND((5,), architecture("small"), (1,)), RND((5,), architecture("small"), (2,))
    rnd.learn(s)
    other.load({name: tensor.clone() for name, tensor in rnd.state().items()})
    rnd.learn(s)
    other.learn(s)
    assert np.array_equal(rnd.compute(s), other.compute(s))


def test_scales_measure_a_bonus_by_its_past():
    bonus = np.array([[3.0, 5.0], [0.0, 2.0]])
    for kind, expected in {
        "none": bonus,
        "rms": bonus / np.sqrt([[17.0], [2.0]]),
        "standard": np.array([[-1.0, 1.0], [-1.0, 1.0]]) + 0.5,
    }.items():
        scale = Scale(kind, 2, offset=0.5)
        scale.observe(bonus[:, :1])
        scale.observe(bonus[:, 1:])
        np.testing.assert_allclose(scale(bonus), expected, rtol=1e-6)
