"""The likelihood of recorded choices, and what is learned along them, against the plain reference step by step."""

import itertools
import re

import numpy as np
import pytest

import own_reward  # noqa: F401  (makes "everything" known, which asks for all there is)
import spie
from reference import reference
from spie.agents.sarsa.batch import Batch
from spie.behaviour.likelihood import choice_log_probabilities, forced_moves, log_likelihoods

BUMPS = spie.grid("S..#..\n...#.G\n......\n...#..", "goal")
NO_BUMPS = spie.grid("S..#..\n...#.G\n......\n...#..", "goal", bumps=False)
OTHER = spie.grid(
    "...#..\n.S...G\n...#..\n...#..", "goal", bumps=False
)  # one wall is elsewhere, the states are as many
MOVING = spie.grid("S....1\n.####.\n......\n2....G", "moving-goal", episodes_per_goal=2, bumps=False)
RIVER = spie.riverswim()
TASKS = {"bumps": BUMPS, "no-bumps": NO_BUMPS, "moving": MOVING, "river": RIVER}
RATES = {"alpha": 0.3, "eta": 0.2, "gamma_sr": 0.9, "eta_pr": 0.15, "beta": 0.7, "q0": 0.5}
POLICIES = {
    "greedy": {"epsilon": 0.3},
    "softmax": {"policy": "softmax", "inverse_temperature": 1.7},
    "lapse": {"policy": "softmax", "inverse_temperature": 2.0, "lapse": 0.1, "stickiness": 0.4, "turn_back": -0.8},
    "habit": {"policy": "softmax", "habit": 1.2, "habit_rate": 0.3},
    "greedy-terms": {"epsilon": 0.3, "stickiness": 0.4, "turn_back": -0.8, "habit": 0.5},
}
TRIED = [  # each policy is a kernel; small tables (RiverSwim) and bumps have their own
    *itertools.product(("no-bumps", "moving"), POLICIES),
    *itertools.product(("river",), ("greedy", "lapse")),
    ("bumps", "lapse"),
]


def walks(mdp, seed, trials):
    """A random walker's trials of different lengths: (states, actions, rewards)."""
    lengths = [17, 5, 30, 1, 12, 9, 21][:trials]
    run = reference(spie.Sarsa(reward="none", epsilon=1.0, alpha=0.0), mdp, 40, seed, episodes=trials)
    ends = np.cumsum(run.lengths)
    found = []
    for end, n in zip(ends, lengths, strict=False):
        part = slice(max(end - n, 0 if end == ends[0] else ends[ends < end].max()), end)
        found.append((np.append(run.states[part], run.next_states[end - 1]), run.actions[part], run.rewards[part]))
    return found


def replay_of(subjects, actions=True, rewards=False, mazes=None):
    """A replay of several subjects' trials."""
    parts = [[[trial[i] for trial in trials] for trials in subjects] for i in range(3)]
    return spie.Replay(parts[1] if actions else None, parts[0], parts[2] if rewards else None, mazes)


def expected_of(agent, mdp, trials, actions=True, rewards=False):
    along = [(s, a if actions else np.full(len(a), -1), r if rewards else None, mdp) for s, a, r in trials]
    return reference(agent, mdp, 0, 0, along=along)


def assert_follows(agent, mdp, subjects, actions=True, rewards=False):
    """log p of each choice, and what is learned, are the reference's. All in one batch, which one kernel runs."""
    replay = replay_of(subjects, actions, rewards)
    seeds = np.arange(replay.n_subjects)
    keep = spie.Keep(matrices=("Q", "M", "N"))
    batch = Batch([agent], (mdp,), replay.steps, seeds, keep=keep, recorded=True, likelihood="each")
    batch.follow(replay, seeds)
    (trace,), paths = batch.execute(spie.Session(threads=1)), batch.paths(0)
    for i, trials in enumerate(subjects):
        expected = expected_of(agent, mdp, trials, actions, rewards)
        n = len(expected.log_p)
        np.testing.assert_allclose(batch.log_p[i, :n], expected.log_p, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(trace.Q[i], expected.Q, rtol=0, atol=1e-12 * np.abs(expected.Q).max())
        np.testing.assert_array_equal(trace.visits[i], expected.visits)
        np.testing.assert_array_equal(paths[i].states, expected.states)
        np.testing.assert_array_equal(paths[i].rewards, expected.rewards)
        if agent.learned:
            np.testing.assert_allclose(trace.M[i], expected.M, rtol=0, atol=1e-12)
            np.testing.assert_allclose(trace.N[i], expected.N, rtol=0, atol=1e-12)
        assert trace.steps[i] == n
        assert trace.truncated[i] == sum(not mdp.terminal[0, s[-1]] for s, *_ in trials) or mdp is MOVING


@pytest.mark.slow
@pytest.mark.parametrize(("task", "policy"), TRIED)
def test_every_policy_and_choice_term_has_the_references_likelihood(task, policy):
    mdp = TASKS[task]
    heading = {"heading": 0.6} if policy == "lapse" and mdp.cells is not None else {}
    agent = spie.Sarsa(reward="sr-r", **RATES, **POLICIES[policy], **heading)
    assert_follows(agent, mdp, [walks(mdp, 1, 7), walks(mdp, 2, 3), walks(mdp, 3, 5)])


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["everything", "count"])
def test_rewards_have_the_references_likelihood(reward):
    """Simulation tries every reward; a replay differs in the choices, not in the rewards."""
    agent = spie.Sarsa(reward=reward, policy="softmax", next_action="carry", **RATES)
    for mdp in (NO_BUMPS, MOVING):
        assert_follows(agent, mdp, [walks(mdp, 4, 7), walks(mdp, 5, 2)])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"learned": False}, {"bonus_from": "previous", "target": "expected"}], ids=str)
def test_every_reading_has_the_references_likelihood_with_rewards_of_the_recording(settings):
    rng = np.random.default_rng(0)
    subjects = [[(s, a, rng.normal(size=len(a))) for s, a, _ in walks(RIVER, i, 4)] for i in (6, 7)]
    agent = spie.Sarsa(reward="sr-pr", policy="softmax", **RATES, **settings)
    assert_follows(agent, RIVER, subjects, rewards=True)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "policy"), [("river", "greedy"), ("river", "lapse"), ("bumps", "lapse")])
def test_where_actions_are_not_known_the_likelihood_is_that_of_the_move(task, policy):
    mdp = TASKS[task]  # a bump in a corner may be one of two; in RiverSwim both actions may lead left
    heading = {"heading": 0.6} if mdp.cells is not None else {}
    agent = spie.Sarsa(reward="sr-r", **RATES, **POLICIES[policy], **heading)
    assert_follows(agent, mdp, [walks(mdp, 8, 5), walks(mdp, 9, 2)], actions=False)


@pytest.mark.slow
def test_learning_carries_on_from_maze_to_maze():
    mazes = (NO_BUMPS, OTHER)
    trials = [walks(NO_BUMPS, 10, 3), walks(OTHER, 11, 3)]
    mixed = [trials[k % 2][k // 2] for k in range(6)]
    replay = replay_of([mixed, mixed[:1]], mazes=[[0, 1] * 3, [0]])
    for policy in ("lapse",):
        agent = spie.Sarsa(reward="none", **RATES, **POLICIES[policy])
        each = choice_log_probabilities([agent], mazes, replay)[0]
        expected = reference(agent, NO_BUMPS, 0, 0, along=[(*mixed[k][:2], None, mazes[k % 2]) for k in range(6)])
        np.testing.assert_allclose(each[0], expected.log_p, rtol=1e-11)
        np.testing.assert_array_equal(each[1], each[0][: len(each[1])])


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["greedy", "lapse"])
def test_probabilities_of_all_actions_sum_to_one_and_a_simulated_path_has_its_own(policy):
    agent = spie.Sarsa(reward="none", next_action="carry", **RATES, **POLICIES[policy])
    simulated = reference(agent, RIVER, 300, 0)
    states, actions = np.append(simulated.states, simulated.next_states[-1]), simulated.actions
    replay = spie.Replay(states=[[states]], actions=[[actions]])
    log_p = choice_log_probabilities([agent], RIVER, replay)[0][0]
    np.testing.assert_allclose(log_p, simulated.log_p, rtol=1e-11)
    for t in (0, 1, 5, 50, 299):  # each action in turn in the place of the recorded one, wherever it leads
        total = 0.0
        for a in range(2):
            ahead = RIVER.next[states[t], a, RIVER.prob[states[t], a].argmax()]
            other = spie.Replay(states=[[[*states[: t + 1], ahead]]], actions=[[[*actions[:t], a]]])
            total += np.exp(choice_log_probabilities([agent], RIVER, other)[0][0][t])
        assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.slow
def test_many_settings_are_lanes_of_one_call_in_any_order_and_company():
    replay = replay_of([walks(RIVER, 13, 3), walks(RIVER, 14, 6)])
    settings = [
        spie.Sarsa(reward="none", next_action="carry", **RATES | {"alpha": alpha}, **POLICIES[policy])
        for alpha, policy in itertools.product((0.1, 0.5), ("lapse", "softmax"))
    ]
    together = log_likelihoods(settings, RIVER, replay)
    assert together.shape == (4, 2)
    for agent, row in zip(settings, together, strict=True):
        each = choice_log_probabilities([agent, settings[0]], RIVER, replay)[0]
        np.testing.assert_allclose([part.sum() for part in each], row, rtol=1e-12)
    one_each = log_likelihoods(settings, RIVER, replay, subjects=[0, 1, 0, 1])
    np.testing.assert_array_equal(one_each, together[np.arange(4), [0, 1, 0, 1]])
    parts = choice_log_probabilities(settings, RIVER, replay, subjects=[0, 1, 0, 1])
    np.testing.assert_allclose([part[0].sum() for part in parts], one_each, rtol=1e-12)


def test_a_forced_move_has_one_available_action():
    corridor = spie.grid("S..", bumps=False)
    replay = spie.Replay(states=[[[0, 1, 2, 1], [1, 0]]])
    np.testing.assert_array_equal(forced_moves(corridor, replay)[0], [True, False, True, False])


# Replays that make no sense

STATES = [[[0, 1, 2], [0, 1]], [[0, 6, 7]]]


def test_states_of_the_map_are_as_expected():
    assert list(NO_BUMPS.labels[:7]) == ["0,0", "0,1", "0,2", "0,4", "0,5", "1,0", "1,1"]


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ({"states": []}, "replay: no subjects"),
        ({"states": [[]]}, "replay: subject 1 has no trials"),
        ({"states": [[[0]]]}, "replay: subject 1, trial 1 has no step; leave it out"),
        ({"states": [[[0, 1.5]]]}, "replay: states of subject 1, trial 1 must be a sequence of whole numbers"),
        ({"states": STATES, "subjects": ("A",)}, "replay: 1 names for 2 subjects"),
        ({"states": STATES, "actions": [[[1, 1], [1]]]},
         "replay: subject 2 has 1 trials of states; give as many of actions"),
        ({"states": STATES, "actions": [[[1, 1], [1, 1]], [[1, 1]]]},
         "replay: subject 1, trial 2 has 1 steps, but 2 actions"),
        ({"states": STATES, "rewards": [[[0, 0], [np.nan]], [[0, 0]]]},
         "replay: a reward of subject 1, trial 2 is not finite"),
        ({"actions": [[0, 1], [0]]}, "replay: trials of different lengths need their states, too"),
        ({"actions": [0.5, 1]}, "replay: actions must be whole numbers [steps] or [seeds, steps], not float64 [2]"),
        ({"actions": [0, 1], "mazes": [[0]]}, "replay: rewards, mazes and subjects go with states"),
    ],
    ids=str,
)  # fmt: skip
def test_recordings_that_are_none_are_refused(replay, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        spie.Replay(**replay)


@pytest.mark.parametrize(
    ("replay", "message"),
    [
        ({"states": [[[0, 1, 99]]]}, "trial 1, step 2: no state 99; states are 0 ... 20"),
        ({"states": STATES}, "trial 1, step 1: no action leads from state 0 to state 6"),
        ({"actions": [[[1, 2], [1]]]}, "trial 1, step 2: action 2 does not lead from state 1 to state 2"),
        ({"actions": [[[1, 4], [1]]]}, "trial 1, step 2: action 4 is none of 0 ... 3"),
        ({"actions": [[[1, 0], [1]]]}, "trial 1, step 2: action 0 is not available in state 1; available: 1, 2, 3"),
        ({"mazes": [[0, 1]]}, "trial 2: no maze 1; there are 1"),
        ({"states": [[[4, 9, 4]]]}, "trial 1, step 1: goes on after state 9, which is terminal"),
    ],
    ids=str,
)  # fmt: skip
def test_every_mismatch_is_named_with_subject_trial_and_step(replay, message):
    replay = spie.Replay(**{"states": STATES[:1]} | replay)
    with pytest.raises(ValueError, match=f"^replay: subject [12], {re.escape(message)}"):
        log_likelihoods([spie.Sarsa()], NO_BUMPS, replay)


def test_what_does_not_fit_the_call_is_refused():
    replay = spie.Replay(states=STATES[:1])
    with pytest.raises(
        ValueError, match=r"^replay: to run along these 1 subjects give steps=3, seeds=1 and no episodes$"
    ):
        spie.Sarsa().run(NO_BUMPS, 10, replay=replay)
    with pytest.raises(ValueError, match=r"^a likelihood needs recorded states: Replay\(states=\.\.\.\)$"):
        log_likelihoods([spie.Sarsa()], NO_BUMPS, spie.Replay([0, 1]))
    with pytest.raises(ValueError, match=r"^subjects must be numbers from 0 to 0$"):
        log_likelihoods([spie.Sarsa()], NO_BUMPS, replay, subjects=[1])
    with pytest.raises(ValueError, match=r"^riverswim: n_states is 6, but 21 in the first maze, map$"):
        log_likelihoods([spie.Sarsa()], [NO_BUMPS, RIVER], replay)
    with pytest.raises(ValueError, match=r"^learned=False works with one maze only; with several mazes leave it out$"):
        log_likelihoods([spie.Sarsa(learned=False)], [NO_BUMPS, OTHER], replay)


# Actions alone


@pytest.mark.slow
def test_q_is_sarsa_along_replayed_actions():
    """What the MDP answered is a recording, and along it Q is the same."""
    actions = np.random.default_rng(0).integers(4, size=(2, 60))
    agent = spie.Sarsa(reward="sr-r", **RATES)
    keep = spie.Keep(matrices=("Q",), paths=(0, 1))
    free = spie.grid("S..\n...\n...")
    trace = agent.run(free, 60, 2, replay=spie.Replay(actions), keep=keep)
    for seed, path in trace.paths.items():
        np.testing.assert_array_equal(path.actions, actions[seed])
        states = np.append(path.states, path.next_states[-1])
        expected = reference(agent, free, 0, 0, along=[(states, path.actions, None, free)])
        np.testing.assert_allclose(trace.Q[seed], expected.Q, rtol=0, atol=1e-13)
    ends = agent.run(BUMPS, 12, 2, episodes=5, replay=spie.Replay(actions), keep=keep)
    for seed, path in ends.paths.items():
        cuts = np.cumsum(ends.episode_steps[seed])
        along = [
            (np.append(path.states[i:j], path.next_states[j - 1]), path.actions[i:j], None, BUMPS)
            for i, j in itertools.pairwise([0, *cuts])
        ]
        expected = reference(agent, BUMPS, 0, 0, along=along)
        np.testing.assert_allclose(ends.Q[seed], expected.Q, rtol=0, atol=1e-13)
