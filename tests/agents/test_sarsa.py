"""The compiled engine: equal to the reference step for step, the same in any company, and clear about bad input.

Each kind of run compiles a kernel of its own, some seconds from cold, so all comparisons keep and record the same and
what needs no kernel of its own (numbers among the settings, maps of any size) shares one.
"""

import dataclasses
import math
import re

import gymnasium as gym
import numpy as np
import pytest

import own_reward  # noqa: F401  (makes "everything" known, which asks for all there is)
import spie
from reference import reference
from spie.agents.sarsa.layout import LANE
from spie.agents.sarsa.settings import AGENTS
from spie.engine import lanes
from spie.rewards import get_reward, reward_names

pytestmark = pytest.mark.slow

BUILT_IN = [name for name in reward_names("tables") if get_reward(name).function.__module__ == "spie.rewards"]
WITH_MATRICES = [name for name in BUILT_IN if name not in ("none", "constant", "count")]  # where `learned` matters
USUAL = {"alpha": 0.1, "eta": 0.25, "beta": 2.0, "epsilon": 0.1}
UNUSUAL = {
    "alpha": 0.3, "eta": 0.2, "gamma": 0.9, "gamma_sr": 0.8, "eta_pr": 0.05, "gamma_pr": 0.99, "beta": -0.5,
    "epsilon": 0.5, "q0": 3.0, "m0": 1.0,
}  # fmt: skip
MATRICES = tuple("QMFN")
ROOMS = """
S..#..1
...#...
.......
2..#..G
"""


def assert_equal_step_for_step(agent, mdp, steps, seed=3, episodes=None):
    """Same states, actions and rewards; bonuses and matrices to 1e-12 of their largest entry."""
    trace = agent.run(mdp, steps, [seed], episodes=episodes, keep=spie.Keep(MATRICES, paths=[seed]))
    expected = reference(agent, mdp, steps, seed, episodes)
    path = trace.paths[seed]
    for name in ("states", "actions", "next_states", "rewards"):
        np.testing.assert_array_equal(getattr(path, name), getattr(expected, name), err_msg=name)
    matrices = {name: getattr(expected, name) for name in "QMFN"}
    if not agent.learned:  # those of the first phase
        P, terminal = mdp.transition(), mdp.terminal[0]
        gamma_pr = agent.gamma_sr if agent.gamma_pr is None else agent.gamma_pr
        matrices["M"], matrices["F"] = spie.sr(P, agent.gamma_sr, terminal), spie.fr(P, agent.gamma_sr, terminal)
        matrices["N"] = spie.pr(P, gamma_pr, terminal)
    for name, matrix in matrices.items():
        assert_close(getattr(trace, name)[0], matrix, name)
    assert_close(path.bonuses, expected.bonuses, "bonuses")
    np.testing.assert_array_equal(trace.visits[0], expected.visits)
    assert trace.steps[0] == len(expected.rewards)
    assert trace.total_reward[0] == pytest.approx(expected.rewards.sum(), rel=1e-12)
    assert trace.total_bonus[0] == pytest.approx(expected.bonuses.sum(), rel=1e-10, abs=1e-10)
    if episodes is not None:
        np.testing.assert_array_equal(trace.episode_steps[0], expected.lengths)
    return trace


def assert_close(actual, expected, name):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-12 * np.abs(expected).max(), err_msg=name)


def random_mdp(S, A, K, ends, masked):
    """A table without any structure: every number drawn."""
    rng = np.random.default_rng(S * A * K)
    available = rng.random((S, A)) < (0.6 if masked else 1)
    available[:, 0] = True
    prob = rng.random((S, A, K)) * (rng.random((S, A, K)) < 0.8)
    prob[..., 0] += 0.01
    prob *= available[:, :, None] / prob.sum(axis=2, keepdims=True)
    terminal = np.arange(S) >= S - 2 if ends else np.array(False)
    start = np.where(terminal, 0, rng.random(S))
    successors, reward = rng.integers(S, size=(S, A, K)), rng.normal(size=(S, A, K))
    return spie.MDP("random", successors, prob, reward, start / start.sum(), terminal, available=available)


# Engine and reference


# On grids every reward is compared. What is left for the chains is that their kernels lay things out otherwise: few
# states, whose number is a constant, and on SixArms rows of Q that are a vector.
ON_CHAINS = [(spie.riverswim(), reward) for reward in ("none", "sr", "fr", "sr-r", "sr-r(b)", "sr-pr", "everything")]
ON_CHAINS += [(spie.sixarms(), reward) for reward in ("none", "sr-r", "sr-pr")]
FIXED_ON_CHAINS = [(spie.riverswim(), "fr"), (spie.riverswim(), "everything"), (spie.sixarms(), "sr-r")]


def name_of(value):
    return value.name if isinstance(value, spie.MDP) else value


@pytest.mark.parametrize(("mdp", "reward"), ON_CHAINS, ids=name_of)
def test_engine_equals_the_reference_on_the_chains(mdp, reward):
    for settings in (USUAL, UNUSUAL):
        assert_equal_step_for_step(spie.Sarsa(reward=reward, **settings), mdp, 1500)


@pytest.mark.parametrize(("mdp", "reward"), FIXED_ON_CHAINS, ids=name_of)
def test_engine_equals_the_reference_on_the_chains_with_fixed_matrices(mdp, reward):
    for settings in (USUAL, UNUSUAL):
        assert_equal_step_for_step(spie.Sarsa(reward=reward, learned=False, **settings), mdp, 1500)


@pytest.mark.parametrize("reward", ["sr-r", "sr-pr"])
def test_engine_equals_the_reference_on_grids_without_end(reward):
    for name in ("of-small", "cluster-simple", "cluster-hard"):
        assert_equal_step_for_step(spie.Sarsa(reward=reward, **USUAL), spie.grid(name), 1500)
    assert_equal_step_for_step(spie.Sarsa(reward=reward, **UNUSUAL), spie.grid("of-small"), 1500)


def assert_equal_on_grids(reward, learned, **options):
    """Three maps in one long episode; one goal; moving goals, with truncated episodes among those that end."""
    agent = spie.Sarsa(reward=reward, learned=learned, **USUAL, **options)
    for name in ("of-small", "cluster-simple", "cluster-hard"):
        assert_equal_step_for_step(agent, spie.grid(name), 1500, episodes=1)
    assert_equal_step_for_step(agent, spie.grid("cluster-simple", "goal"), 1500)
    moving = spie.grid(ROOMS, "moving-goal", episodes_per_goal=2)
    for settings in (USUAL, UNUSUAL, {"epsilon": 1.0}):
        agent = dataclasses.replace(agent, **settings)
        trace = assert_equal_step_for_step(agent, moving, 120, episodes=24)
    reached = trace.episode_steps[0] < 120  # by the random walk, whatever the reward
    assert trace.truncated[0] == (~reached).sum() > 0
    assert {0, 1, 2} == set((np.arange(24) // 2 % 3)[reached])  # all three goals


@pytest.mark.parametrize("reward", [*BUILT_IN, "everything"])
def test_engine_equals_the_reference_on_grids(reward):
    assert_equal_on_grids(reward, learned=True)


@pytest.mark.parametrize("reward", [*WITH_MATRICES, "everything"])
def test_engine_equals_the_reference_on_grids_with_fixed_matrices(reward):
    assert_equal_on_grids(reward, learned=False)


@pytest.mark.parametrize("option", [{"next_action": "carry"}, {"bonus_from": "previous"}], ids=str)
def test_engine_equals_the_reference_with_the_other_reading_of_an_open_point(option):
    assert_equal_on_grids("everything", learned=True, **option)


@pytest.mark.parametrize(
    ("mdp", "settings"),
    [
        (spie.riverswim(), {"next_action": "carry"}),
        (spie.riverswim(), {"reward": "sr", "bonus_from": "previous", "m0": 0.5}),
        (spie.sixarms(), {"ties": "first"}),
    ],
    ids=str,
)
def test_engine_equals_the_reference_with_the_other_reading_on_chains(mdp, settings):
    assert_equal_step_for_step(spie.Sarsa(**USUAL | settings), mdp, 1500)


@pytest.mark.parametrize(
    "mdp",
    [
        spie.grid(ROOMS, "goal", bumps=False),
        random_mdp(S=20, A=3, K=4, ends=False, masked=False),
        random_mdp(S=5, A=12, K=2, ends=False, masked=False),
        random_mdp(S=30, A=9, K=3, ends=True, masked=True),
        spie.MDP.from_gymnasium(gym.make("FrozenLake-v1")),
        spie.MDP.from_gymnasium(gym.make("Taxi-v4")),
    ],
    ids="masked-grid many-successors many-actions masked-many-actions frozenlake taxi".split(),
)
def test_engine_equals_the_reference_on_any_table(mdp):
    for settings in (USUAL, UNUSUAL):
        episodes = 20 if mdp.terminal.any() else None
        assert_equal_step_for_step(spie.Sarsa(**settings), mdp, 100 if episodes else 1500, episodes=episodes)


# Company: threads, other seeds, other settings


def assert_same_run(a, i, b, j):
    """Seed i of trace a left the same, to the bit, as seed j of trace b."""
    assert a.settings == b.settings
    for field in dataclasses.fields(spie.Trace):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if field.name == "paths":
            x, y = x.get(int(a.seeds[i])), y.get(int(b.seeds[j]))
            assert (x is None) == (y is None)
            for name in () if x is None else ("states", "actions", "next_states", "rewards", "bonuses"):
                np.testing.assert_array_equal(getattr(x, name), getattr(y, name), err_msg=name)
        elif field.name != "settings" and (x is not None or y is not None):
            np.testing.assert_array_equal(x[i], y[j], err_msg=field.name)


MANY = [
    spie.Sarsa(**USUAL),
    spie.Sarsa(reward="everything", **UNUSUAL),
    spie.Sarsa(**UNUSUAL),
    spie.Sarsa(reward="everything", learned=False, **USUAL),
    spie.Sarsa(reward="everything", learned=False, **UNUSUAL),
    spie.Sarsa(**USUAL | {"m0": 0.5}),
]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_is_the_same_in_any_company(threads):
    mdp = spie.grid(ROOMS, "moving-goal", episodes_per_goal=2)
    crowd = [5, 2**62, 0, 9, *range(100, 113)]

    def options(seeds, threads):
        keep = spie.Keep(MATRICES, snapshots=[1, 50, 200], paths=seeds)
        return {"seeds": seeds, "episodes": 6, "keep": keep, "session": spie.Session(threads=threads)}

    together = spie.run_sarsa(MANY, mdp, 60, **options(crowd, threads))
    for agent, trace in zip(MANY, together, strict=True):
        few = agent.run(mdp, 60, **options([9, 5], 1))
        assert_same_run(trace, 0, few, 1)
        assert_same_run(trace, 3, few, 0)
        alone = agent.run(mdp, 60, **options([112], 2))
        assert_same_run(trace, 16, alone, 0)


def test_a_thousand_short_runs_are_the_same_on_one_thread_and_two():
    agent, mdp = spie.Sarsa(**USUAL), spie.riverswim()
    one, two = (agent.run(mdp, 200, 1001, session=spie.Session(threads)) for threads in (1, 2))
    for i in range(1001):
        assert_same_run(one, i, two, i)


@pytest.mark.parametrize("reward", ["sr", "sr-pr"])
def test_what_is_kept_and_recorded_changes_no_run(reward):
    agent = spie.Sarsa(reward=reward, **UNUSUAL)
    bare = agent.run(spie.riverswim(), 2000, 9)
    full = agent.run(spie.riverswim(), 2000, 9, keep=spie.Keep(MATRICES, [7], range(9)))
    for name in ("total_reward", "total_bonus", "visits", "first_visit"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(full, name), err_msg=name)
    assert bare.Q is bare.M is bare.F is bare.N is None
    assert not bare.paths


def test_recorded_seeds_run_as_the_others_do():
    some = spie.Sarsa(reward="none", **USUAL).run(spie.riverswim(), 1500, [4, 1, 8], keep=spie.Keep(paths=[8, 4]))
    assert list(some.paths) == [8, 4]
    for seed, path in some.paths.items():
        row = list(some.seeds).index(seed)
        assert path.rewards.sum() == some.total_reward[row]
        expected = np.bincount(path.next_states, minlength=6)
        expected[path.states[0]] += 1
        np.testing.assert_array_equal(some.visits[row], expected)


def test_replayed_actions_are_taken_in_place_of_the_agents_own():
    agent, mdp = spie.Sarsa(reward="none", **USUAL), spie.riverswim()
    actions = np.random.default_rng(0).integers(2, size=(3, 40))
    all_paths, replay = spie.Keep(paths=range(3)), spie.Replay(actions)
    trace = agent.run(mdp, 40, 3, replay=replay, keep=all_paths)
    for seed in range(3):
        np.testing.assert_array_equal(trace.paths[seed].actions, actions[seed])
    some = agent.run(mdp, 40, 3, replay=replay, keep=spie.Keep(paths=[2, 1]))
    np.testing.assert_array_equal(some.total_reward, trace.total_reward)
    np.testing.assert_array_equal(some.paths[2].next_states, trace.paths[2].next_states)
    same = agent.run(mdp, 40, 3, replay=spie.Replay(actions[1]), keep=all_paths)
    np.testing.assert_array_equal(same.paths[1].next_states, trace.paths[1].next_states)
    np.testing.assert_array_equal(same.paths[2].actions, actions[1])


# The paper's numbers


@pytest.mark.parametrize(
    ("mdp", "settings", "mean", "spread"),
    [
        (spie.riverswim(), {"reward": "none", "alpha": 0.005}, 25_075, 1_224),
        (spie.riverswim(), {"alpha": 0.1, "eta": 0.25, "gamma_sr": 0.95, "beta": 10}, 2_547_156, 479_655),
        (spie.sixarms(), {"alpha": 0.01, "eta": 0.01, "gamma_sr": 0.99, "beta": 10_000}, 2_199_291, 1_024_726),
    ],
    ids=["riverswim-sarsa", "riverswim-sarsa-srr", "sixarms-sarsa-srr"],
)
def test_table_1(mdp, settings, mean, spread):
    """Settings of Table 5; the printed spread is read as a standard deviation over 100 seeds."""
    agent = spie.Sarsa(**{"gamma": 0.95, "epsilon": 0.01} | settings)
    ours = agent.run(mdp, 5000, 1000).total_reward
    assert ours[0] == pytest.approx(reference(agent, mdp, 5000, seed=0).rewards.sum(), rel=1e-12)
    assert abs(ours.mean() - mean) < 4 * math.hypot(ours.std(ddof=1) / math.sqrt(1000), spread / 10)


# Bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reward": "sr_r"}, 'no intrinsic reward "sr_r"; did you mean "sr-r"? Known: '),
        ({"alpha": -0.1}, "Sarsa: alpha must lie in [0, 1], not -0.1"),
        ({"alpha": 1.1}, "Sarsa: alpha must lie in [0, 1], not 1.1"),
        ({"alpha": math.nan}, "Sarsa: alpha must lie in [0, 1], not nan"),
        ({"eta": 0}, "Sarsa: eta must lie in (0, 1], not 0"),
        ({"eta": 1.5}, "Sarsa: eta must lie in (0, 1], not 1.5"),
        ({"eta": math.nan}, "Sarsa: eta must lie in (0, 1], not nan"),
        ({"eta_pr": 0.0}, "Sarsa: eta_pr must lie in (0, 1], not 0.0"),
        ({"eta_pr": math.nan}, "Sarsa: eta_pr must lie in (0, 1], not nan"),
        ({"gamma": -0.1}, "Sarsa: gamma must lie in [0, 1], not -0.1"),
        ({"gamma": 1.1}, "Sarsa: gamma must lie in [0, 1], not 1.1"),
        ({"gamma": math.nan}, "Sarsa: gamma must lie in [0, 1], not nan"),
        ({"gamma_sr": 1}, "Sarsa: gamma_sr must lie in [0, 1), not 1"),
        ({"gamma_sr": -0.1}, "Sarsa: gamma_sr must lie in [0, 1), not -0.1"),
        ({"gamma_sr": math.nan}, "Sarsa: gamma_sr must lie in [0, 1), not nan"),
        ({"gamma_pr": 1.0}, "Sarsa: gamma_pr must lie in [0, 1), not 1.0"),
        ({"gamma_pr": math.nan}, "Sarsa: gamma_pr must lie in [0, 1), not nan"),
        ({"beta": math.inf}, "Sarsa: beta must lie in (-inf, inf), not inf"),
        ({"beta": math.nan}, "Sarsa: beta must lie in (-inf, inf), not nan"),
        ({"epsilon": -0.1}, "Sarsa: epsilon must lie in [0, 1], not -0.1"),
        ({"epsilon": 1.1}, "Sarsa: epsilon must lie in [0, 1], not 1.1"),
        ({"epsilon": math.nan}, "Sarsa: epsilon must lie in [0, 1], not nan"),
        ({"q0": -math.inf}, "Sarsa: q0 must lie in (-inf, inf), not -inf"),
        ({"q0": math.nan}, "Sarsa: q0 must lie in (-inf, inf), not nan"),
        ({"m0": -1}, "Sarsa: m0 must lie in [0, inf), not -1"),
        ({"m0": math.nan}, "Sarsa: m0 must lie in [0, inf), not nan"),
        ({"tie_tolerance": -1e-9}, "Sarsa: tie_tolerance must lie in [0, 1), not -1e-09"),
        ({"tie_tolerance": math.nan}, "Sarsa: tie_tolerance must lie in [0, 1), not nan"),
        ({"tolerance": 0}, "Sarsa: tolerance must lie in (0, 1), not 0"),
        ({"tolerance": math.nan}, "Sarsa: tolerance must lie in (0, 1), not nan"),
        ({"next_action": "resampled"}, 'no next_action for Sarsa "resampled"; did you mean "resample"?'),
        ({"ties": "last"}, 'no ties for Sarsa "last"'),
        ({"bonus_from": "before"}, 'no bonus_from for Sarsa "before"'),
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        spie.Sarsa(**settings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, not 0"),
        ({"steps": 2.5}, "steps must be a whole number of at least 1, not 2.5"),
        ({"steps": 2**31}, "a run of 2,147,483,648 steps is too long: at most 2,147,483,647"),
        ({"episodes": 0}, "episodes must be a whole number of at least 1, not 0"),
        ({"episodes": 2**30}, "a run of 10,737,418,240 steps is too long"),
        ({"seeds": 0}, "seeds must be a count of at least 1 or a sequence of seeds, not 0"),
        ({"seeds": -3}, "seeds must be a count of at least 1 or a sequence of seeds, not -3"),
        ({"seeds": 10**15}, "1,000,000,000,000,000 seeds would need 8,000,000.0 GB"),
        ({"seeds": [3, -1]}, "seeds must lie in 0 ... 2^63 - 1, not -1"),
        ({"seeds": [10**24]}, "seeds must lie in 0 ... 2^63 - 1, not 1000000000000000000000000"),
        ({"seeds": [3, 4, 3]}, "seed 3 is given twice; a seed always gives the same run"),
        ({"seeds": []}, "seeds must be a count or a sequence of whole numbers, at least one"),
        ({"seeds": [1.0]}, "seeds must be a count or a sequence of whole numbers, at least one"),
        ({"seeds": 1.5}, "seeds must be a count or a sequence of whole numbers, at least one"),
        ({"keep": spie.Keep(paths=[7])}, "Keep: seed 7 of paths is not among the seeds of the run"),
        ({"keep": spie.Keep(("Q", "X"))}, 'no matrix to keep "X". Known: F, M, N, Q'),
        ({"keep": spie.Keep(snapshots=[4, 4])}, "snapshots must be rising steps between 1 and 10, not [4, 4]"),
        ({"keep": spie.Keep(snapshots=[0, 4])}, "snapshots must be rising steps between 1 and 10, not [0, 4]"),
        ({"keep": spie.Keep(snapshots=[11])}, "snapshots must be rising steps between 1 and 10, not [11]"),
        ({"replay": spie.Replay([0, 1])}, "replay must have shape [10] or [2, 10]"),
        ({"replay": spie.Replay(np.full((2, 10), 2))}, "replay: action 2 at step 1 of seed 0 is none of 0 ... 1"),
        ({"replay": spie.Replay(np.full(10, -1))}, "replay: action -1 at step 1 of seed 0 is none of 0 ... 1"),
        ({"replay": np.full(10, np.nan)}, "replay must be a spie.Replay, not ndarray"),
    ],
    ids=str,
)
def test_runs_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        spie.Sarsa().run(spie.riverswim(), **{"steps": 10, "seeds": 2} | options)


def test_snapshots_are_the_visits_of_shorter_runs_and_change_nothing():
    agent, mdp, shots = spie.Sarsa(**USUAL), spie.riverswim(), [1, 50, 199, 200]
    trace = agent.run(mdp, 200, 20, keep=spie.Keep(snapshots=shots))
    for i, steps in enumerate(shots):
        np.testing.assert_array_equal(trace.snapshots[:, i], agent.run(mdp, steps, 20).visits)
    np.testing.assert_array_equal(trace.total_bonus, agent.run(mdp, 200, 20).total_bonus)


def test_more_actions_than_a_word_has_bits_are_refused():
    mdp = random_mdp(S=2, A=65, K=1, ends=False, masked=False)
    with pytest.raises(ValueError, match=r"^random has 65 actions; the engine takes at most 64$"):
        spie.Sarsa().run(mdp, 10)


def ring(S):
    successors = np.roll(np.arange(S), -1).reshape(S, 1, 1)
    return spie.MDP("ring", successors, np.ones((S, 1, 1)), np.zeros((S, 1, 1)), np.arange(S) == 0)


def test_a_state_count_past_memory_is_refused_with_what_it_would_need():
    mdp = ring(200_000)  # 200,000 squared entries of 8 bytes
    with pytest.raises(
        ValueError, match=r"^ring: learning on 200,000 states would need 320\.0 GB .*; set sparse=True$"
    ):
        spie.Sarsa(sparse=False).run(mdp, 10)
    with pytest.raises(
        ValueError, match=r"^ring: closed forms of 200,000 states would need 320\.0 GB .* learned=True$"
    ):
        spie.Sarsa(reward="sr-r(a)", learned=False).run(mdp, 10)
    with pytest.raises(ValueError, match=r"^100,000 runs on 200,000 states would need 16\d\.\d GB .* fewer seeds"):
        spie.Sarsa().run(mdp, 10, 100_000)


def test_memory_is_counted_against_what_the_machine_has(monkeypatch):
    monkeypatch.setattr(lanes.os, "sysconf", {"SC_PAGE_SIZE": 1000, "SC_PHYS_PAGES": 3_000_000}.__getitem__)
    lanes.check_memory(2.9e9, "this", "that")
    with pytest.raises(ValueError, match=r"^this would need 3\.1 GB and this machine has 3\.0 GB; do that$"):
        lanes.check_memory(3.1e9, "this", "do that")


def test_a_bonus_that_is_not_finite_from_the_first_step_on_is_refused():
    agent = spie.Sarsa(reward="sr", bonus_from="previous")  # 1 / |M[s, :]| of a row that is still zero
    message = 'reward "sr" was infinite or NaN on riverswim at the first step of every run (seed 4): does it divide'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        agent.run(spie.riverswim(), 10, [4], keep=spie.Keep(MATRICES, paths=[4]))


@pytest.mark.parametrize(
    "mdp",
    [random_mdp(S=5, A=12, K=2, ends=False, masked=False), random_mdp(S=30, A=9, K=3, ends=True, masked=True)],
    ids=["many-actions", "masked-many-actions"],
)
@pytest.mark.parametrize("wild", [{"beta": 1e308, "alpha": 1.0}, {"m0": 1e308}], ids=str)
def test_a_lane_whose_numbers_overflow_stops_and_is_named_while_the_others_go_on(mdp, wild):
    settings = [spie.Sarsa(**USUAL | wild), spie.Sarsa(**USUAL)]
    episodes = 20 if mdp.terminal.any() else None
    options = {"episodes": episodes, "keep": spie.Keep(MATRICES, paths=[3, 8])}
    stopped, tame = spie.run_sarsa(settings, mdp, 100 if episodes else 1500, [3, 8], **options)
    for seed, step, line in zip((3, 8), stopped.stopped, stopped.failures, strict=True):
        path = stopped.paths[seed]
        assert len(path.actions) == step > 0
        assert mdp.available[path.states, path.actions].all()
        assert line == f"{settings[0]!r}, seed {seed}: infinite or NaN at step {step:,}"
    assert tame.failures == []
    alone = settings[1].run(mdp, 100 if episodes else 1500, [3, 8], **options)
    for i in range(2):
        assert_same_run(tame, i, alone, i)


def test_agents_go_by_the_papers_names():
    assert spie.agent("sarsa-srr") == spie.Sarsa(reward="sr-r")
    assert spie.agent("sarsa-fr-fixed", alpha=0.5) == spie.Sarsa(reward="fr", learned=False, alpha=0.5)
    assert {settings["reward"] for settings in AGENTS.values()} < {*BUILT_IN, "etd"}  # which only Sarsa can compute
    with pytest.raises(ValueError, match=r'^no agent "SARSA-SRR"; did you mean "sarsa-srr"'):
        spie.agent("SARSA-SRR")


# Scale


def test_a_million_lanes_stay_within_bounded_memory():
    import tracemalloc

    tracemalloc.start()
    trace = spie.Sarsa(**USUAL).run(spie.riverswim(), 3, 10**6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert trace.visits.shape == (10**6, 6)
    np.testing.assert_array_equal(trace.visits.sum(axis=1), 4)
    lane = LANE.itemsize + 6 * (4 + 4) + 3 * 8  # its numbers, visits and first visits, and what Trace copies
    assert peak < 1.5 * 10**6 * lane  # below 0.4 GB
