"""The same bonus in Stable-Baselines3: agents learn on the sum, logs keep the two apart, replay stays fresh."""

import csv
import dataclasses
import inspect

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import A2C, DQN, PPO, SAC
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor, VecNormalize
from test_wrappers import Car, Picture, corridor, random_actions

import spie
import spie.sb3
from spie.dropin.gymnasium import VectorIntrinsicReward
from spie.dropin.settings import Settings

torch.set_num_threads(1)


def tiny():
    return {"policy_kwargs": {"net_arch": [4]}, "device": "cpu", "seed": 0}  # agents write into policy_kwargs


def corridor_of_five():
    return corridor(max_steps=5)


def short_car():
    return gym.wrappers.TimeLimit(Car(), 6)


def wrapped(make=corridor_of_five, reward="sr-r", n=2, beta=0.5, **options):
    return spie.sb3.IntrinsicReward(DummyVecEnv([make] * n), reward, beta, **options)


def roll(env, actions):
    env.reset()
    return np.array([env.step(action)[1] for action in actions])


@pytest.mark.parametrize(
    ("make", "reward", "options"),
    [
        (corridor_of_five, "sr-r", {}),
        (short_car, "sf-pf", {}),
        (corridor_of_five, "etd", {}),
        (short_car, "sf-pf", {"episodic": True}),
        (short_car, "count", {"times": "e3b"}),
    ],
)
@pytest.mark.parametrize("n", [1, 8])
def test_it_pays_what_the_gymnasium_wrapper_pays(make, reward, options, n):
    vector = SyncVectorEnv([make] * n, autoreset_mode=AutoresetMode.SAME_STEP)
    same = spie.IntrinsicReward(vector, reward, 0.5, **options)
    same.reset()
    actions = random_actions(same, 30)
    expected = [same.step(action)[1] for action in actions]
    np.testing.assert_array_equal(roll(wrapped(make, reward, n, **options), actions), np.array(expected, np.float32))


def test_all_wrappers_name_the_same_arguments_and_every_setting_is_one():
    wrappers = (spie.IntrinsicReward, VectorIntrinsicReward, spie.sb3.IntrinsicReward)
    (signature,) = {inspect.signature(wrapper) for wrapper in wrappers}
    defaults = {name: parameter.default for name, parameter in signature.parameters.items()}
    settings = {field.name: field.default for field in dataclasses.fields(Settings) if field.name != "reward"}
    assert defaults == {"env": inspect.Parameter.empty, "reward": inspect.Parameter.empty} | settings | {
        "features": None,
        "learn": True,
        "policy": None,
        "normalize": False,
    }
    assert wrapped(normalize=True).bonus.settings.normalise
    with pytest.raises(TypeError, match="unexpected keyword argument 'gama_sr'"):
        wrapped(gama_sr=0.9)


@pytest.mark.parametrize("n", [1, 8])
def test_environments_in_processes_are_as_those_in_line(n):
    in_processes = spie.sb3.IntrinsicReward(SubprocVecEnv([corridor_of_five] * n), "sr-r", 0.5)
    try:
        actions = np.random.default_rng(0).integers(4, size=(12, n))
        np.testing.assert_array_equal(roll(in_processes, actions), roll(wrapped(n=n), actions))
    finally:
        in_processes.close()


@pytest.mark.parametrize("monitored", [False, True])
def test_the_mean_reward_of_episodes_stays_the_environments_own(monitored):
    env = wrapped(lambda: Monitor(corridor_of_five()) if monitored else corridor_of_five(), beta=100)
    model = PPO("MlpPolicy", env, n_steps=20, batch_size=20, n_epochs=1, **tiny()).learn(40)
    episodes = [(episode["r"], episode["l"]) for episode in model.ep_info_buffer]
    assert len(episodes) >= 8
    assert set(episodes) <= {(-5, 5), (-4, 5), (-3, 4), (-2, 3)}  # -1 a step, 0 for the one into the goal


def test_the_callback_logs_the_bonus_raw_and_scaled_and_the_coverage(tmp_path):
    env = wrapped(reward="constant", anneal=80, normalise=True, beta=0.5)
    model = PPO("MlpPolicy", env, n_steps=20, batch_size=20, n_epochs=1, **tiny())
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(80, callback=spie.sb3.LogIntrinsicReward())
    model.logger.close()
    with (tmp_path / "progress.csv").open() as file:
        rows = list(csv.DictReader(file))
    last = {name: float(value) for name, value in rows[-1].items() if value}
    assert last["intrinsic/raw_mean"] == last["intrinsic/scaled_mean"] == -1
    assert last["intrinsic/beta"] == pytest.approx(0.5 * (1 - 78 / 80))  # at the last of 80 steps of two environments
    assert last["intrinsic/added_mean"] == pytest.approx(-0.5 * (1 - 59 / 80))  # steps 40, 42, ..., 78: the mean is 59
    assert last["explore/coverage"] in (0.5, 0.75, 1)
    assert last["rollout/ep_rew_mean"] >= -5
    with pytest.raises(
        ValueError, match=r"the agent's environment has no spie\.sb3\.IntrinsicReward, and no spie\.Int"
    ):
        A2C("MlpPolicy", DummyVecEnv([corridor]), **tiny()).learn(5, callback=spie.sb3.LogIntrinsicReward())


def test_actor_critics_learn_on_it_whatever_the_actions():
    A2C("MlpPolicy", wrapped(short_car, "sf-pf"), **tiny()).learn(20)
    env = wrapped(lambda: gym.wrappers.TimeLimit(Car(force=True), 6), "sf-pf", n=1)
    model = SAC("MlpPolicy", env, learning_starts=5, replay_buffer_class=spie.sb3.ReplayBuffer, **tiny())
    env.attach(model)
    model.learn(12)
    assert env.bonus.learner.Psi.shape == (1, 128, 128)


def dqn(env, **options):
    defaults = {"learning_starts": 20, "buffer_size": 200, "replay_buffer_class": spie.sb3.ReplayBuffer}
    return DQN("MlpPolicy", env, **defaults | tiny() | options)


@pytest.mark.parametrize("make", [corridor_of_five, short_car, Picture])
@pytest.mark.parametrize("replace", [False, True])
def test_a_batch_from_replay_is_paid_by_what_is_known_when_it_is_drawn(make, replace):
    reward = "sr-r" if make is corridor_of_five else "sf-pf"
    env = wrapped(make, reward, beta=3, replace=replace, normalise=True)
    model = dqn(env)
    env.attach(model)
    model.learn(60)
    bonus = env.bonus
    for _ in range(2):
        batch = model.replay_buffer.sample(50)
        s, a, s_next = (part.numpy() for part in (batch.observations, batch.actions[:, 0], batch.next_observations))
        if make is Picture:  # the agent puts channels first, the environment last
            s, s_next = np.moveaxis(s, 1, -1), np.moveaxis(s_next, 1, -1)
        own = {corridor_of_five: -1.0 + (s_next.ravel()[:50] == 3), short_car: 1.0 * (s_next[:, 0] > 0.95)}.get(make, 0)
        expected = bonus.query(s, a, s_next) + (0 if replace else own)
        np.testing.assert_allclose(batch.rewards.numpy()[:, 0], expected, rtol=1e-4, atol=1e-6)
        assert np.abs(bonus.query(s, a, s_next)).max() > 1e-3
        for array in bonus.learner.state().values():  # as if much had been learned since
            if array.dtype == np.float64 and array.ndim > 1:
                array *= 0.5


@pytest.mark.parametrize("make", [corridor_of_five, short_car, Picture])
@pytest.mark.parametrize("reward", ["novelty", "sp-novelty"])
def test_novelty_from_replay_is_paid_by_what_is_known_when_it_is_drawn(make, reward):
    env = wrapped(make, reward, beta=3, gamma=0.9)
    model = dqn(env)
    env.attach(model)
    model.learn(140)  # U is computed after 64 steps
    seen = env.bonus.learner.seen
    paid = []
    for _ in range(2):
        batch = model.replay_buffer.sample(50)
        s, a, s_next, ended = (
            part.numpy() for part in (batch.observations, batch.actions[:, 0], batch.next_observations, batch.dones)
        )
        if make is Picture:
            s, s_next = np.moveaxis(s, 1, -1), np.moveaxis(s_next, 1, -1)
        own = {corridor_of_five: -1.0 + (s_next.ravel()[:50] == 3), short_car: 1.0 * (s_next[:, 0] > 0.95)}.get(make, 0)
        expected = env.bonus.query(s, a, s_next, ended[:, 0]) + own
        np.testing.assert_allclose(batch.rewards.numpy()[:, 0], expected, rtol=1e-4, atol=1e-6)
        paid.append(env.bonus.query(s[:1], a[:1], s_next[:1]))
        if reward == "sp-novelty" and make is corridor_of_five:
            without = env.bonus.learner._payment(seen.novelty(env.bonus.encode_all(s_next, 50)))
            assert np.abs(env.bonus.query(s, a, s_next, ended[:, 0]) - 3 * without).max() > 1e-3  # the potential
        seen.u[:] += 1.0  # as if much had been learned since
        env.bonus.learner.mean += 0.5
    assert paid[0] != paid[1]


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (corridor_of_five, {"reward": "sr-r", "episodic": True}),
        (corridor_of_five, {"reward": "etd"}),
        (short_car, {"reward": "e3b"}),
        (Picture, {"reward": "count", "times": "e3b"}),
    ],
)
def test_what_an_episode_paid_is_kept_as_it_was(make, options):
    env = wrapped(make, beta=3, n=1, **options)
    given, step = [], env.step_wait
    env.step_wait = lambda: given.append(step()) or given[-1]
    model = dqn(env)
    env.attach(model)
    model.learn(60)
    paid = np.array([totals[0] for _, totals, _, _ in given], np.float32)
    np.testing.assert_array_equal(model.replay_buffer.rewards[: len(paid), 0], paid)
    assert np.ptp(paid) > 0
    for learner in env.bonus.learners:
        learner.forget()
    assert set(model.replay_buffer.sample(50).rewards.numpy()[:, 0].tolist()) <= set(paid.tolist())


def test_normalised_observations_are_looked_at_as_they_were():
    env = wrapped(short_car, "sf-pf")
    model = dqn(VecNormalize(env, norm_reward=False))
    env.attach(model)
    model.learn(60)
    looked = []
    query = env.bonus.query
    env.bonus.query = lambda s, *rest: looked.append(s) or query(s, *rest)
    model.replay_buffer.sample(20, env=model.get_vec_normalize_env())
    speed = 10 * looked[0][:, 1]
    np.testing.assert_allclose(speed, np.round(speed), atol=1e-5)  # the car's, in tenths
    assert np.ptp(speed) > 1


def test_a_model_is_saved_loaded_and_attached_again(tmp_path):
    env = wrapped()
    model = dqn(env)
    env.attach(model)
    model.learn(30)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "replay")
    env.save(tmp_path / "bonus")

    again = wrapped()
    loaded = DQN.load(tmp_path / "model", env=again)
    with pytest.raises(ValueError, match=r"has no bonus: call env\.attach\(model\) once the model is built or loaded"):
        loaded.learn(30)
    loaded.load_replay_buffer(tmp_path / "replay")
    with pytest.raises(ValueError, match=r"call env\.attach\(model\)"):
        loaded.replay_buffer.sample(3)
    again.attach(loaded)
    again.load(tmp_path / "bonus")
    np.random.seed(0)  # noqa: NPY002 (what replay draws from)
    batch = loaded.replay_buffer.sample(20)
    np.random.seed(0)  # noqa: NPY002
    np.testing.assert_array_equal(batch.rewards, model.replay_buffer.sample(20).rewards)
    loaded.learn(30)


def test_what_cannot_be_attached_says_why():
    env = wrapped()
    with pytest.raises(ValueError, match=r"PPO has no replay buffer of spie; build it with replay_buffer_class="):
        env.attach(PPO("MlpPolicy", env, n_steps=20, batch_size=20, **tiny()))
    with pytest.raises(ValueError, match="DQN has no replay buffer of spie"):
        env.attach(dqn(env, replay_buffer_class=None))
    with pytest.warns(UserWarning, match="`n_steps=3` is ignored"):
        model = dqn(env, n_steps=3)
    with pytest.raises(ValueError, match=r"^attach: n_steps = 3 has no effect with this replay buffer; use n_steps=1$"):
        env.attach(model)


def test_psi_looks_ahead_by_the_policy_of_a_model_where_it_follows_one():
    env = wrapped(short_car, "sf-pf")
    model = DQN("MlpPolicy", env, learning_starts=5, exploration_final_eps=0.4, **tiny())
    env.follow(model)
    where = np.array([0.3, -0.2], np.float32)
    np.testing.assert_allclose(env.bonus.learner.policy(where), 1 / 3)  # before it learns it acts at random
    model.learn(20)
    found, greedy = env.bonus.learner.policy(where), model.predict(where, deterministic=True)[0]
    assert found[greedy] == pytest.approx(1 - 2 / 3 * model.exploration_rate)
    assert sum(found) == pytest.approx(1)
    actor = A2C("MlpPolicy", VecNormalize(env), **tiny())
    env.follow(actor)
    seen = actor.policy.obs_to_tensor(actor.get_vec_normalize_env().normalize_obs(where))[0]
    expected = actor.policy.get_distribution(seen).distribution.probs[0].detach().numpy()
    np.testing.assert_allclose(env.bonus.learner.policy(where), expected, rtol=1e-6)
    forces = spie.sb3.IntrinsicReward(DummyVecEnv([lambda: Car(force=True)]), "sf-pf")
    with pytest.raises(ValueError, match="follow: the policy of SAC is not known; give policy="):
        forces.follow(SAC("MlpPolicy", forces, **tiny()))


class Lit(gym.Env):
    """The corridor as a Dict, with a small picture of where the agent is."""

    observation_space = gym.spaces.Dict(
        {"picture": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8), "at": gym.spaces.Discrete(4)}
    )
    action_space = gym.spaces.Discrete(4)

    def __init__(self):
        self.inner = corridor_of_five()

    def _see(self, s):
        picture = np.zeros((36, 36, 3), np.uint8)
        picture[9 * s : 9 * s + 9] = 255
        return {"picture": picture, "at": s}

    def reset(self, *, seed=None, options=None):
        return self._see(self.inner.reset(seed=seed)[0]), {}

    def step(self, action):
        s, *rest = self.inner.step(action)
        return self._see(s), *rest


@pytest.mark.slow
def test_replay_of_a_dict_is_paid_by_what_is_known_when_it_is_drawn():
    env = wrapped(Lit, "sf-pf", beta=3, ends="neutral", gamma=0.9)
    with pytest.raises(
        ValueError, match=r"observations are a Dict; take replay_buffer_class=spie\.sb3\.DictReplayBuffer"
    ):
        DQN("MultiInputPolicy", env, buffer_size=50, replay_buffer_class=spie.sb3.ReplayBuffer, **tiny())
    model = DQN(
        "MultiInputPolicy", env, learning_starts=500, buffer_size=400,
        replay_buffer_class=spie.sb3.DictReplayBuffer, **tiny(),
    )  # fmt: skip
    env.attach(model)
    model.learn(200)
    batch = model.replay_buffer.sample(60)
    s, s_next = (
        {"picture": np.moveaxis(seen["picture"].numpy(), 1, -1), "at": seen["at"].numpy()}
        for seen in (batch.observations, batch.next_observations)
    )
    assert batch.dones.sum() > 0
    ended = batch.dones[:, 0].numpy()
    own = -1.0 + (s_next["at"].ravel() == 3)
    expected = own + env.bonus.query(s, batch.actions[:, 0].numpy(), s_next, ended)
    np.testing.assert_allclose(batch.rewards.numpy()[:, 0], expected, rtol=1e-4, atol=1e-5)
    without = own + env.bonus.query(s, batch.actions[:, 0].numpy(), s_next)
    np.testing.assert_allclose((expected - without)[ended == 0], 0)
    assert np.abs(expected - without)[ended == 1].min() > 0.1


@pytest.mark.parametrize("monitored", [False, True])
def test_the_gymnasium_wrapper_handed_to_an_agent_leaves_its_log_right(monitored, tmp_path):
    inner = Monitor(corridor_of_five()) if monitored else corridor_of_five()
    env = spie.IntrinsicReward(inner, "constant", beta=100)
    model = PPO("MlpPolicy", env, n_steps=20, batch_size=20, n_epochs=1, **tiny())
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(20, callback=spie.sb3.LogIntrinsicReward())
    model.logger.close()
    assert {episode["r"] for episode in model.ep_info_buffer} <= {-5.0, -4.0, -3.0, -2.0}
    assert "intrinsic/raw_mean" in (tmp_path / "progress.csv").read_text()


def test_wrong_orders_are_refused_or_warned_about_with_the_cure():
    with pytest.raises(ValueError, match=r"write VecNormalize\(spie\.sb3\.IntrinsicReward\(env, \.\.\.\)\)"):
        spie.sb3.IntrinsicReward(VecNormalize(DummyVecEnv([short_car])), "sf-pf")
    with pytest.raises(ValueError, match=r"wraps a VecEnv of Stable-Baselines3, not TimeLimit; make one with make_vec"):
        spie.sb3.IntrinsicReward(short_car(), "sf-pf")
    with pytest.raises(ValueError, match=r"not DummyVecEnv; for a VecEnv .* take spie\.sb3\.IntrinsicReward"):
        spie.IntrinsicReward(DummyVecEnv([corridor]), "sr-r")
    above = PPO("MlpPolicy", VecMonitor(wrapped()), n_steps=20, batch_size=20, **tiny())
    with pytest.raises(ValueError, match=r"write spie\.sb3\.IntrinsicReward\(VecMonitor\(env\), \.\.\.\)"):
        above.learn(20, callback=spie.sb3.LogIntrinsicReward())
    stale = dqn(wrapped(), replay_buffer_class=None)
    with pytest.warns(UserWarning, match=r"go stale; take .* replay_buffer_class=spie\.sb3\.ReplayBuffer"):
        stale.learn(3, callback=spie.sb3.LogIntrinsicReward())
