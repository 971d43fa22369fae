"""Does a bonus help on my task? Scales, choices, sentences and mistakes of the comparison."""

import dataclasses
import math
import pathlib

import gymnasium as gym
import numpy as np
import pytest

import spie
from spie.comparison import compare as comparing
from spie.comparison.arms import BOTH_ENDS, SHARES, Arm, check_bonus, make_arms
from spie.comparison.calibration import STEPS, calibrate, measure
from spie.comparison.verdict import against, holm, p_value, solved, verdict
from spie.dropin.environments import MadeTask, made_task, make_environment
from spie.dropin.known import bonus_names
from spie.dropin.made_agents import MadeAgent
from spie.dropin.training import PlainQ
from spie.search.grid import SettingsGrid
from spie.search.sweep import OutOfTime
from spie.trace import EpisodeTrace

CORRIDOR = "S...G"
OWN = """
import gymnasium as gym
import spie

def corridor():
    return spie.MDPEnv(spie.grid("S...G", task="goal"), max_steps=20)

def empty():
    return spie.MDPEnv(spie.grid("S...."), max_steps=20)

def endless():
    return spie.MDPEnv(spie.grid("S...."))

def broken():
    raise RuntimeError("no display")

def nothing():
    return 3

def force():
    return gym.make("MountainCarContinuous-v0")

class Learner:
    def __init__(self, env, seed):
        self.env, self.seed = env, seed

    def learn(self, steps):
        self.env.reset(seed=self.seed)
        self.env.action_space.seed(self.seed)
        for _ in range(steps):
            _, _, terminated, truncated, _ = self.env.step(self.env.action_space.sample())
            if terminated or truncated:
                self.env.reset()

class Lazy:
    def __init__(self, env, seed):
        pass
"""


def corridor():
    return spie.MDPEnv(spie.grid(CORRIDOR, task="goal"), max_steps=20)


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)


def episodes(lengths, rewards, under_way=((0, 0),)):
    lengths = np.array(lengths, np.int32)
    n = len(lengths)
    rewards = np.array(rewards, float)
    return EpisodeTrace(
        "",
        np.arange(n),
        lengths,
        rewards,
        0 * rewards,
        rewards > 0,
        np.full(n, -1),
        under_way=np.array(under_way, float),
    )


# What is measured


def test_late_reward_is_of_the_episodes_that_ended_in_the_last_third():
    trace = episodes([[10, 10, 5, 5, 0]], [[8, 8, 1, 3, 0]])
    assert trace.late_reward() == [2]
    assert trace.run_steps == [30]
    broken = episodes([[10, 0]], [[8, 0]], [[50, -50]])
    assert broken.late_reward() == [-50]  # the episode under way is the late one
    assert episodes([[0]], [[0]], [[40, -7]]).late_reward() == [-7]
    nearly_done = episodes([[10, 20]], [[8, 4]], [[1, -1]])
    assert nearly_done.late_reward() == [4]


def test_reward_by_steps_carries_the_last_episode_on():
    trace = episodes([[10, 10, 5, 5, 0]], [[8, 6, 1, 3, 0]])
    np.testing.assert_allclose(trace.reward_by_steps([0, 5, 10, 15, 20, 30, 40]), [[8, 8, 8, 6, 2, 2]])
    np.testing.assert_allclose(episodes([[0]], [[0]], [[40, -7]]).reward_by_steps([0, 20, 40]), [[-7, -7]])


def test_calibration_finds_scale_reward_and_size_of_bonuses():
    found = calibrate(made_task(corridor))
    assert len(found.steps) == STEPS
    assert found.seen_reward
    assert 0.8 < found.scale <= 1  # -1 a step, but for the last
    assert -20 <= found.reward < -4
    assert found.episodes > 50
    constant = measure(found, "constant")
    assert constant.rms == 1
    assert constant.seconds > 0
    with_sizes = dataclasses.replace(found, sizes={"constant": constant})
    assert with_sizes.beta("constant", 0.1) == float(f"{0.1 * found.scale:.2g}")
    empty = calibrate(MadeTask("S....\n"))
    assert (empty.scale, empty.seen_reward) == (0.01, False)


def test_numbers_without_bounds_get_those_that_a_random_policy_stays_in():
    found = calibrate(made_task("CartPole-v1"))
    space = found.task.make().observation_space
    assert np.isfinite(space.low).all()
    assert (space.low[[0, 2]] > -5).all()
    assert all(space.contains(step.observation) for step in found.steps)
    assert measure(found, "sf-pf").rms > 0


def test_every_arm_tries_each_beta_and_both_ends_but_for_deep_agents():
    found = calibrate(made_task(corridor))
    sizes = {name: measure(found, name) for name in ("constant", "sr-r")}
    found = dataclasses.replace(found, sizes=sizes)
    bare, optimistic, constant, srr = make_arms("q-learning", {"alpha": 0.3}, ("optimistic", "constant", "sr-r"), found)
    assert [len(arm.grid) for arm in (bare, optimistic, constant, srr)] == [1, 3, 6, 6]
    assert bare.grid.base == PlainQ("none", 0.0, alpha=0.3)
    assert dict(srr.grid.axes)["ends"] == BOTH_ENDS
    betas = dict(srr.grid.axes)["beta"]
    np.testing.assert_allclose(np.array(betas) * sizes["sr-r"].rms, np.array(SHARES) * found.scale, rtol=0.06)
    _, deep = make_arms("ppo", {"n_steps": 64}, ("constant",), found)
    assert deep.grid.base == MadeAgent("ppo", "constant", deep.grid.base.beta, "neutral", options=(("n_steps", 64),))
    assert len(deep.grid) == 3


# What is said


def arms(*names):
    grid = SettingsGrid(PlainQ("none", 0.0), measure="late reward")
    return [Arm(name, {"bare": "bare", "constant": "control"}.get(name, "bonus"), grid) for name in names]


def said(scores, random_reward=0.0, seen=True):
    return verdict(arms(*scores), {name: np.array(x, float) for name, x in scores.items()}, random_reward, seen)


def test_the_verdict_says_what_the_seeds_say():
    none, most, all_ = [0] * 10, [1] * 9 + [0], [1] * 10
    assert said({"bare": none, "sr-r": none}, seen=False)[0].startswith("Nobody found a reward: nothing can be said")
    assert said({"bare": none, "sr-r": none})[0].startswith("Every seed of every arm got the same reward")
    assert said({"bare": most, "constant": none, "sr-r": most})[:2] == [
        "No bonus helps here: the bare agent solves it (9 of 10 seeds).",
        "Worse than bare: constant.",
    ]
    assert said({"bare": [1, 1] + [0] * 8, "constant": most, "sr-r": all_})[0] == (
        "sr-r beats bare (10 of 10 seeds against 2), but not a constant cost (9 of 10)."
    )
    assert said({"bare": none, "constant": none, "sr-r": most})[0] == (
        "sr-r beats bare (9 of 10 seeds against 0), and a constant cost, too (0 of 10)."
    )
    assert said({"bare": none, "constant": all_, "sr-r": most})[:2] == [
        "A constant cost beats bare (10 of 10 seeds against 0): no bonus does better.",
        "Better than bare, too: sr-r.",
    ]
    few = said({"bare": [0, 0, 0], "constant": [0, 0, 0], "sr-r": [1, 1, 1]})
    assert few[0] == (
        "No bonus can be told to do better than the bare agent: "
        "3 of 3 seeds of sr-r get halfway to the best, 0 of bare."
    )
    assert few[1].startswith("3 seeds cannot tell more")
    assert said({"bare": [-5, -6], "sr-r": [-5, -7]}, random_reward=-3)[0].startswith("No seed of any arm did better")


def test_p_values_are_exact_for_few_seeds_and_corrected_for_many_arms():
    assert p_value(np.arange(3.0), np.arange(3.0) + 10) == pytest.approx(0.1)  # 2 of the 20 ways to part 6 seeds
    assert p_value(np.zeros(5), np.zeros(5)) == 1
    assert p_value(np.array([1.0]), np.array([2.0])) == 1  # one seed each: chance does that every time
    # 0 0 | 1 1 1 of two ties: the two zeros are drawn together in 1 of 10 ways, which counts on both sides
    assert p_value(np.zeros(2), np.ones(3)) == pytest.approx(0.2)
    many = np.arange(100.0)
    assert p_value(many, many + 0.5) == pytest.approx(0.9, abs=0.1)
    assert p_value(many, many + 200) < 1e-20
    assert holm({"a": 0.01, "b": 0.02, "c": 0.6}) == pytest.approx({"a": 0.03, "b": 0.04, "c": 0.6})
    signed = against({"bare": np.zeros(4), "up": np.arange(4) + 1.0, "down": -1.0 - np.arange(4)}, "bare")
    assert signed["up"] > 0 > signed["down"]
    assert solved({"bare": np.array([0.0, 4.0])}, 2.0) == (3.0, {"bare": 1})
    assert solved({"bare": np.array([0.0, 1.0])}, 2.0) is None


def test_chance_alone_is_seldom_called_a_difference():
    rng = np.random.default_rng(0)
    names = ["bare", "constant", "count", "sr-r", "sr-pr"]
    wrong = sum(
        not said({name: rng.normal(size=10).tolist() for name in names}, -9)[0].startswith("No bonus")
        for _ in range(200)
    )
    assert wrong <= 0.05 * 200 + 4 * math.sqrt(200 * 0.05 * 0.95)


# The whole


def small(**more):
    return {"bonuses": ["constant", "optimistic", "sr-r"], "steps": 300, "seeds": 3, "choose": 1} | more


def test_a_comparison_is_stored_and_what_is_stored_is_not_run_again(tmp_path, monkeypatch):
    lines = []
    found = spie.compare(corridor, **small(), results=tmp_path / "r.db", say=lines.append)
    assert "16 settings x 1 seeds, then 4 arms x 3 fresh seeds, 300 steps each" in lines[0]
    assert [one.arm.name for one in found.trained] == ["bare", "optimistic", "constant", "sr-r"]
    assert found.seeds == 3
    assert found.trained[0].account is None
    table, bonuses = found.table(), found.bonuses()
    assert {row["arm"] for row in table} == {"bare", "constant", "optimistic", "sr-r"}
    of = {row["arm"]: row for row in bonuses}
    assert of["constant"]["sign"] == "cost"
    assert of["constant"]["mean per step"] < 0
    assert of["bare"]["sign"] is None
    assert len(repr(found)) < 300
    assert "<table>" in found._repr_html_()
    x, curves = found.curves()
    assert curves["bare"].shape == (3, len(x))
    assert (curves["sr-r"] <= 0).all()  # of the environment's own reward

    trained = []
    train = PlainQ.train
    monkeypatch.setattr(PlainQ, "train", lambda *a: trained.append(a) or train(*a))
    again = spie.compare(corridor, **small(seeds=4), results=tmp_path / "r.db")
    assert len(trained) == 2 + 4  # the timing, and a fourth seed of each arm
    for name, scores in found.scores.items():
        np.testing.assert_array_equal(again.scores[name][:3], scores)


def test_a_budget_that_is_used_up_leaves_whole_seeds_or_says_that_nothing_can_be_said(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"the search and 3 seeds take about \d+ s .*, the budget is 0 s; name fewer"):
        spie.compare(corridor, **small(steps=2000), budget=1e-4, results=tmp_path / "r.db")
    finish = comparing.finish
    confirmed = []

    def out_of_time(runs, store, *rest):
        if len(runs[0].seeds if isinstance(runs[0].seeds, tuple) else ()) == 1:
            finish(runs[: confirmed[0]], store)
            raise OutOfTime("used up")
        finish(runs, store)

    monkeypatch.setattr(comparing, "finish", out_of_time)
    confirmed.append(3 * 4 + 1)
    found = spie.compare(corridor, **small(seeds=5), results=tmp_path / "r.db")
    assert found.seeds == 3
    assert "3 of 5 seeds; run again for the rest" in found.notes[0]
    confirmed[0] = 3
    with pytest.raises(OutOfTime):
        spie.compare(corridor, **small(steps=310), results=tmp_path / "r.db")


def test_where_nobody_finds_a_reward_it_says_so(own, tmp_path):
    found = spie.compare("mine.py:empty", bonuses=["constant"], steps=200, seeds=2, choose=1, results=tmp_path / "r.db")
    assert found.verdict[0].startswith("Nobody found a reward")
    endless = spie.compare("mine.py:endless", bonuses="count", steps=200, seeds=1, choose=1, results=tmp_path / "r.db")
    assert endless.verdict[0].startswith("Nobody found a reward")
    assert math.isnan(endless.trained[0].ended[1])


def test_where_episodes_never_end_a_random_policy_is_given_as_many_steps(tmp_path):
    """RiverSwim pays on, whatever happens: 200 steps of an agent are not compared with 2,000 random ones."""

    def endless():
        return spie.MDPEnv(spie.riverswim())

    found = spie.compare(endless, bonuses="count", steps=200, seeds=1, choose=1, results=tmp_path / "r.db")
    assert found.calibration.episodes == 0
    assert found.random_reward == pytest.approx(found.calibration.reward / 10)


def test_every_bonus_of_the_wrappers_can_be_compared():
    calibration = calibrate(made_task(corridor))
    for name in bonus_names():
        if name != "none" and not name.startswith("sf"):
            check_bonus(name, "q-learning", calibration)


def test_an_agent_of_the_users_own_is_trained_with_each_bonus(own, tmp_path):
    pytest.importorskip("stable_baselines3")
    how = {"steps": 200, "seeds": 2, "choose": 1, "results": tmp_path / "r.db"}
    found = spie.compare("mine.py:corridor", "mine.py:Learner", ["constant"], **how)
    random, with_cost = found.trained
    np.testing.assert_array_equal(random.scores, with_cost.scores)  # it acts at random, whatever it is paid
    assert with_cost.account["negative"] == 1
    with pytest.raises(
        ValueError, match=r"mine.py:Lazy\(env, seed\) returned Lazy; it must return an agent with learn"
    ):
        spie.compare("mine.py:corridor", "mine.py:Lazy", ["constant"], **how)
    with pytest.raises(ValueError, match="has settings of its own; leave out alpha="):
        spie.compare("mine.py:corridor", "mine.py:Learner", ["constant"], **how, alpha=1)


class Lit(gym.Env):
    """A corridor as a Dict: a place, a small picture, and a text that nobody needs."""

    observation_space = gym.spaces.Dict(
        {
            "picture": gym.spaces.Box(0, 255, (5, 5, 3), np.uint8),
            "at": gym.spaces.Box(0, 1, (1,)),
            "mission": gym.spaces.Text(9),
        }
    )
    action_space = gym.spaces.Discrete(2)

    def _see(self):
        picture = np.zeros((5, 5, 3), np.uint8)
        picture[self.at] = 9
        return {"picture": picture, "at": np.array([self.at / 4], np.float32), "mission": "go"}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.t = 0, 0
        return self._see(), {}

    def step(self, action):
        self.at = min(4, max(0, self.at + 2 * int(action) - 1))
        self.t += 1
        return self._see(), float(self.at == 4), self.at == 4, self.t >= 20, {}


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["ppo", "dqn"])
def test_deep_agents_are_compared_on_a_dict(agent, tmp_path):
    options = {"n_steps": 32, "batch_size": 32, "n_epochs": 1} if agent == "ppo" else {"learning_starts": 50}
    found = spie.compare(
        Lit, agent, ["constant", "sf-pf"], steps=120, seeds=1, choose=1, results=tmp_path / "r.db", **options
    )
    assert [one.arm.name for one in found.trained] == ["bare", "constant", "sf-pf"]
    assert all(trace.run_steps == [120] for one in found.trained for trace in one.traces)
    assert found.trained[1].account["negative"] > 0.9


def test_other_seeds_can_be_asked_for(tmp_path):
    how = small(bonuses="constant") | {"results": tmp_path / "r.db"}
    first, other = spie.compare(corridor, **how), spie.compare(corridor, **how, again=1)
    seeds = [[trace.seeds[0] for trace in found.trained[0].traces] for found in (first, other)]
    assert not {*seeds[0]} & {*seeds[1]}
    assert len({*seeds[0], *seeds[1]}) == 6
    with pytest.raises(ValueError, match="again must be a whole number of at least 0 and at most 1,000, not -1"):
        spie.compare(corridor, **how, again=-1)


# Mistakes


@pytest.mark.parametrize(
    ("env", "more", "message"),
    [
        ("FrozenLake-v1", {"bonuses": ["srr"]}, 'no bonus "srr"; did you mean "sr-r"?'),
        ("FrozenLake-v1", {"bonuses": ["sf-pf"]}, '"sf-pf" needs psi_norm'),
        ("FrozenLake-v1", {"agent": "qlearning"}, 'no agent "qlearning"; did you mean "q-learning"?'),
        ("FrozenLake-v1", {"agent": "q-learning", "n_steps": 3}, "q-learning has no such setting ('n_steps')"),
        ("FrozenLake-v1", {"agent": "nowhere:make"}, "nowhere:make: nowhere cannot be loaded (ModuleNotFoundError"),
        ("FrozenLake-v1", {"beta": 3}, "a comparison chooses beta itself; leave out beta="),
        ("FrozenLake-v1", {"agent": "ppo", "seed": 3}, "a comparison chooses seed itself; leave out seed="),
        (
            "FrozenLake-v1",
            {"steps": 0},
            "steps must be a whole number of at least 100 and at most",
        ),
        ("FrozenLake-v1", {"seeds": 0}, "seeds must be a whole number of at least 1 and at most 10,000, not 0"),
        ("FrozenLake-v1", {"budget": 0}, "budget must be a number of seconds above 0, not 0"),
        ("mine.py:broken", {}, "mine.py:broken raised RuntimeError: no display"),
        ("mine.py:nothing", {}, "mine.py:nothing returned int; it must return a gymnasium.Env"),
        ("mine.py:nobody", {}, 'mine.py:nobody: mine.py has no function "nobody"'),
        ("yours.py:make", {}, "yours.py:make: there is no file yours.py"),
        ("mine.py:force", {"agent": "q-learning"}, "q-learning needs actions that can be counted"),
        ("mine.py:force", {"agent": "dqn"}, "take --agent ppo"),
        ("FrozenLake-v7", {}, "--env FrozenLake-v7: "),
        ("riverswm", {}, 'no task, map or file "riverswm"; did you mean "riverswim"?'),
    ],
)
def test_a_mistake_is_one_clear_line_before_anything_runs(own, env, more, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        spie.compare(env, **more)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_environments_have_many_names():
    assert make_environment("riverswim").observation_space.n == 6
    assert make_environment("S.G\n...").observation_space.n == 6
    assert make_environment("CliffWalking-v1").observation_space.n == 48
    pytest.importorskip("minigrid")
    assert "mission" in make_environment("minigrid:MiniGrid-Empty-5x5-v0").observation_space.spaces
    assert made_task(corridor).digest != made_task(lambda: None).digest
    pytest.importorskip("ale_py")
    game = make_environment("ALE/Freeway-v5")
    assert game.observation_space.contains(game.reset(seed=0)[0])
    assert game.observation_space.shape == (4, 84, 84)
    assert made_task(gym.make("FrozenLake-v1")).name == "FrozenLake-v1"
    for other in (
        gym.make("FrozenLake-v1", map_name="8x8"),
        gym.make("CliffWalking-v1", max_episode_steps=50),
        gym.wrappers.TransformReward(gym.make("CliffWalking-v1"), lambda r: r),
    ):  # its id alone would make another environment
        with pytest.raises(ValueError, match=r"Env cannot be made again as it is; give its id, or a function that"):
            spie.compare(other)
    with pytest.raises(ValueError, match=r"^mine.py: which function in it .*\? Write mine.py:function$"):
        spie.compare("mine.py")
    with pytest.raises(ValueError, match="Lit cannot be made again as it is; give its id, or a function that makes it"):
        made_task(Lit())


def test_the_command_prints_the_verdict_and_writes_the_page(spie, own):
    pathlib.Path("mine.py").rename("<img src=x>.py")
    env = "<img src=x>.py:corridor"
    words = ("compare", "--env", env, "--bonuses", "constant,sr-r", "--steps", 300, "--seeds", 3)
    code, out, err = spie(*words, "--choose", 1, "alpha=0.5")
    assert code == 0, err
    assert "the bare agent" in out
    assert "fresh seeds" in out
    page = pathlib.Path("compare.html").read_text()
    assert "Does a bonus help q-learning on &lt;img src=x&gt;.py:corridor?" in page
    assert "<img" not in page
    assert env in err
    for bad, message in (
        ((), "--env is missing"),
        (("--env", env, "--budget", "0"), '"0" is not a time'),
        (("--env", env, "--on", "moon", "--steps", 200), 'no backend "moon"'),
    ):
        code, _, err = spie("compare", *bad)
        assert (code, message in err, "Traceback" in err) == (2, True, False), err
