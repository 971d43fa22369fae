"""Random streams: known answers, no two alike, and draws as frequent and as independent as they should be.

A frequency may be 5 standard errors off, which happens by chance once in two million checks.
"""

import numpy as np
import pytest

import spie
from reference import stream
from spie.engine.lanes import aligned_zeros, mix, random_streams, run_chunks

GOLDEN = 0x9E3779B97F4A7C15
RIGHT, LEFT = 0, 1
MATRICES = tuple("QMFN")


def recorded(n):
    """All matrices kept and n seeds recorded: the kernels of test_sarsa."""
    return spie.Keep(MATRICES, paths=range(n))


def assert_frequency(happened, probability):
    """The share of true entries is `probability`, to 5 standard errors."""
    happened = np.asarray(happened)
    assert happened.size >= 1000
    assert abs(happened.mean() - probability) < 5 * np.sqrt(probability * (1 - probability) / happened.size)


def test_mix_is_splitmix64():
    # the first outputs for seed 1234567, as published with the generator
    words = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * np.uint64(GOLDEN)
    expected = [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip
    assert mix(words).tolist() == expected


def test_streams_are_those_of_the_reference_weak_strides_included():
    seeds = np.array([*range(500), 2**32, 2**62, 2**63 - 1])
    key, stride = random_streams(seeds)
    for i, seed in enumerate(seeds.tolist()):
        word = stream(seed)
        assert mix(key[i] + np.arange(4, dtype=np.uint64) * stride[i]).tolist() == [word(n) for n in range(4)]
    before = mix((2 * seeds.astype(np.uint64) + np.uint64(2)) * np.uint64(GOLDEN)) | np.uint64(1)
    assert (stride != before).any()  # some stride was weak
    assert (stride % np.uint64(2) == 1).all()  # odd, so that a stream repeats after 2^64 words and not before
    assert (np.bitwise_count(stride ^ (stride >> np.uint64(1))) >= 24).all()


def test_streams_of_neighbouring_seeds_have_nothing_in_common():
    key, stride = random_streams(np.arange(2000))
    words = mix(key[:, None] + np.arange(50, dtype=np.uint64) * stride[:, None])
    assert len(np.unique(words)) == words.size
    for a, b in ((words[1:], words[:-1]), (words[:, 1:], words[:, :-1]), (words[1:, 1:], words[:-1, :-1])):
        equal_bits = 64 - np.bitwise_count(a ^ b).astype(float)  # mean 32, variance 16
        assert abs(equal_bits.mean() - 32) < 5 * 4 / np.sqrt(equal_bits.size)
    for bit in range(64):
        assert_frequency(words >> np.uint64(bit) & np.uint64(1) == 1, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("next_action", ["resample", "carry"])
def test_actions_and_successors_have_their_probabilities_and_know_nothing_of_each_other(next_action):
    agent = spie.Sarsa(epsilon=1, next_action=next_action)
    paths = agent.run(spie.riverswim(), 20_000, 8, keep=recorded(8)).paths.values()
    s, a, s_next = (np.stack([getattr(path, name) for path in paths]) for name in ("states", "actions", "next_states"))
    assert_frequency(a == RIGHT, 1 / 2)
    for state in (0, 1, 2):
        assert_frequency(a[s == state] == RIGHT, 1 / 2)
    for back in (1, 2, 3):  # neither an action nor where it led tells of a later action
        assert_frequency(a[:, back:] == a[:, :-back], 1 / 2)
        assert_frequency((a[:, back:] == RIGHT)[(s_next[:, :-back] == 2) & (s[:, :-back] == 1)], 1 / 2)
    for state in (1, 2):
        tried = (s == state) & (a == RIGHT)
        for move, probability in ((-1, 0.1), (0, 0.6), (1, 0.3)):
            assert_frequency(s_next[tried] == state + move, probability)
            again = tried[:, 1:] & tried[:, :-1]  # tried in state s twice running: the first time it stayed
            assert_frequency(s_next[:, 1:][again] == state + move, probability)
    np.testing.assert_array_equal(s_next[a == LEFT], np.maximum(s[a == LEFT] - 1, 0))


@pytest.mark.slow
def test_ties_are_broken_evenly():
    agent = spie.Sarsa(reward="none", epsilon=0, alpha=0)
    paths = agent.run(spie.sixarms(), 20_000, 2, keep=recorded(2)).paths
    actions = np.concatenate([path.actions for path in paths.values()])
    for a in range(6):
        assert_frequency(actions == a, 1 / 6)
        assert_frequency((actions[1:] == a)[actions[:-1] == a], 1 / 6)


@pytest.mark.slow
def test_exploring_takes_every_action_alike_whatever_made_it_explore():
    agent = spie.Sarsa(epsilon=0.3, alpha=0, ties="first")  # Q stays 0, so greedy is action 0
    paths = agent.run(spie.sixarms(), 20_000, 2, keep=recorded(2)).paths.values()
    actions = np.concatenate([path.actions for path in paths])
    assert_frequency(actions == 0, 0.7 + 0.3 / 6)
    for a in range(1, 6):
        assert_frequency(actions == a, 0.3 / 6)


@pytest.mark.slow
def test_starts_have_their_probabilities_first_and_later():
    first = spie.Sarsa(reward="none").run(spie.riverswim(), 1, 20_000).first_visit == 0
    np.testing.assert_array_equal(first.sum(axis=1), 1)
    assert_frequency(first[:, 1], 1 / 2)
    assert_frequency(first[:, 2], 1 / 2)

    mdp = spie.grid(".......\n.......\n...G...", "goal")  # no S: anywhere
    path = spie.Sarsa(reward="none", epsilon=0.5).run(mdp, 30_000, [6], keep=spie.Keep(MATRICES, paths=[6])).paths[6]
    ends = np.flatnonzero(mdp.terminal[0, path.next_states[:-1]])
    begins = path.states[ends + 1]
    for s in np.flatnonzero(mdp.start):
        assert_frequency(begins == s, 1 / 20)
    far = np.abs(mdp.cells[path.states[ends], 1] - 3) == 1  # stepped into the goal from its left or right
    assert_frequency(mdp.cells[begins[far], 1] < 3, 9 / 20)


def test_zeros_begin_on_a_cache_line():
    for shape in ((5,), (3, 8), (4, 40)):
        array = aligned_zeros(*shape)
        assert array.shape == shape
        assert array.ctypes.data % 64 == 0
        assert not array.any()


def test_chunks_run_all_their_lanes_and_report_progress():
    done, reports = [], []
    chunks = [(done.append, slice(i, i + 3)) for i in range(0, 12, 3)]
    run_chunks(chunks, 2, reports.append)
    assert sorted(lanes.start for lanes in done) == [0, 3, 6, 9]
    assert reports == [0.25, 0.5, 0.75, 1.0]


def test_an_error_in_a_chunk_ends_the_run():
    def fails(lanes):
        raise ValueError(f"lane {lanes.start}")

    with pytest.raises(ValueError, match=r"^lane 0$"):
        run_chunks([(fails, slice(0, 1))] * 50, 1, None)
