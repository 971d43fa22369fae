import numpy as np
import pytest
from numpy.testing import assert_array_equal

from spie.agents.dqn import replay as replay_module
from spie.agents.dqn.batch import SeveralSteps
from spie.agents.dqn.replay import SLOT, FrameReplay, monte_carlo

SHAPE = (3, 2)


def frame(n):
    """A frame that tells its number."""
    return np.full(SHAPE, n, np.uint8)


def numbers(frames):
    return frames[..., 0, 0].tolist()


def filled(**options):
    """Two environments in turn: the first sees 0 1 2 3 and ends there, then 4 5; the second sees 10 ... 15."""
    replay = FrameReplay(100, SHAPE, envs=2, gamma=0.5, **options)
    for t in range(6):
        ends = t == 2
        replay.add(0, frame(t if t < 3 else t + 1), t % 2, t, 10 * t, terminal=ends, bonus=t / 8, state=t)
        if ends:
            replay.end(0, frame(3))
        replay.add(1, frame(10 + t), 0, 1, 1)
    return replay


def transitions(replay, finished=False):
    """All that can be sampled: the numbers of the frames -> the batch's row."""
    batch = replay.sample(500, np.random.default_rng(0), finished=finished)
    return {tuple(n): i for i, n in enumerate(numbers(batch.frames))}, batch


def test_stacks_are_gathered_within_an_episode_and_repeat_its_first_frame():
    seen, _ = transitions(filled(stack=3))
    assert set(seen) == {
        (0, 0, 0, 1), (0, 0, 1, 2), (0, 1, 2, 3),  # the last frame 3 is there as s'
        (4, 4, 4, 5), (4, 4, 5, 6),  # and no transition leads from it to the next episode's 4
        (10, 10, 10, 11), (10, 10, 11, 12), (10, 11, 12, 13), (11, 12, 13, 14), (12, 13, 14, 15),
    }  # fmt: skip


def test_a_transition_keeps_what_belongs_to_it():
    seen, batch = transitions(filled(stack=1))
    i = seen[2, 3]
    fields = (batch.action[i], batch.reward[i], batch.bonus[i], batch.total[i], batch.state[i], batch.discount[i])
    assert fields == (0, 2, 0.25, 20, 2, 0)
    assert batch.discount[seen[1, 2]] == 1


def test_monte_carlo_returns_are_direct_sums():
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=40).tolist()
    direct = [sum(0.9**k * r for k, r in enumerate(rewards[t:])) + 0.9 ** (40 - t) * 7 for t in range(40)]
    np.testing.assert_allclose(monte_carlo(rewards, 0.9, 7.0), direct, rtol=1e-6)


def test_returns_are_filled_in_at_the_end_and_only_finished_episodes_are_sampled_for_them():
    replay = filled(stack=1)
    assert (replay.transitions, replay.finished) == (10, 3)
    seen, batch = transitions(replay, finished=True)
    returns = {n: batch.value[i] for n, i in seen.items()}
    assert returns == {(0, 1): 0 + 5 + 5, (1, 2): 10 + 10, (2, 3): 20}  # rewards 0, 10, 20, discount 1/2


def test_a_time_limit_is_no_end_and_adds_what_would_have_come():
    replay = FrameReplay(10, SHAPE, gamma=0.5)
    replay.add(0, frame(0), 0, 1, 1)
    replay.end(0, frame(1), value=8.0)
    batch = replay.sample(4, np.random.default_rng(0), finished=True)
    assert batch.discount.tolist() == [1] * 4
    assert batch.value.tolist() == [1 + 0.5 * 8] * 4


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_oldest_go_first_and_no_stack_reaches_into_what_is_gone(on_disk, tmp_path):
    replay = FrameReplay(20, SHAPE, stack=3, segment=8, folder=tmp_path if on_disk else None)
    for t in range(50):
        replay.add(0, frame(t), 0, 0, 0)
        if t % 12 == 11:
            replay.end(0, frame(100 + t))
    seen, _ = transitions(replay)
    # 50 steps and 4 last frames make 54 slots, of which 20 live: the last frame 135, then 36 ... 47, 147, 48, 49, and
    # before them 32 ... 35 of an older episode, whose first two have lost part of their stack.
    assert set(seen) == {
        (32, 33, 34, 35), (33, 34, 35, 135), (36, 36, 36, 37), (36, 36, 37, 38),
        *((t - 2, t - 1, t, t + 1) for t in range(38, 47)), (45, 46, 47, 147), (48, 48, 48, 49),
    }  # fmt: skip
    assert replay.transitions == 4 + 12 + 1
    assert len(list(tmp_path.iterdir())) == (7 if on_disk else 0)


def test_an_unfinished_episode_longer_than_the_replay_gives_no_returns_and_says_so():
    replay = FrameReplay(20, SHAPE)
    for t in range(50):
        replay.add(0, frame(t), 0, 0, 0)
    assert replay.finished == 0
    with pytest.raises(ValueError, match="no transition to sample yet"):
        replay.sample(2, np.random.default_rng(0), finished=True)
    replay.end(0, frame(50))
    assert replay.finished == replay.transitions == 19


def test_a_single_finished_transition_among_many_is_found():
    replay = FrameReplay(5000, SHAPE)
    replay.add(0, frame(1), 0, 0, 3)
    replay.end(0, frame(2))
    for t in range(4000):
        replay.add(0, frame(t % 256), 0, 0, 0)
    batch = replay.sample(8, np.random.default_rng(0), finished=True)
    assert numbers(batch.frames) == [[1, 2]] * 8


def test_a_million_atari_steps_fit_into_seven_and_a_half_gigabytes():
    assert FrameReplay.bytes_for(1_000_000, (84, 84)) < 7.5e9


def test_the_stated_memory_is_what_is_used():
    replay = FrameReplay(64, (84, 84), segment=16)
    for _ in range(300):
        replay.add(0, np.zeros((84, 84), np.uint8), 0, 0, 0)
    used = sum(s.nbytes for s in replay._segments.values()) + replay._slots.nbytes
    assert replay._slots.nbytes == 64 * SLOT.itemsize
    assert FrameReplay.bytes_for(64, (84, 84), 16) - 16 * 84 * 84 < used <= FrameReplay.bytes_for(64, (84, 84), 16)


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_restored_replay_gives_the_same_samples_and_goes_on_alike(on_disk, tmp_path):
    def write(replay, first, last):
        for t in range(first, last):
            replay.add(t % 2, frame(t % 256), t % 5, t, t)
            if t % 13 == 0:
                replay.end(t % 2, frame(200))

    options = {"envs": 2, "stack": 2, "segment": 8, "folder": tmp_path if on_disk else None}
    replay = FrameReplay(30, SHAPE, **options)
    write(replay, 0, 41)
    replay.save_frames(tmp_path)
    write(replay, 41, 47)
    segments = replay.save_frames(tmp_path)  # appends
    arrays, values = replay.fields()
    arrays = {name: array.copy() for name, array in arrays.items()}
    write(replay, 47, 60)  # a run that was killed had gone on
    other = FrameReplay(30, SHAPE, **options)
    other.restore(arrays, values, tmp_path, segments)
    write(other, 47, 60)
    for finished in (False, True):
        ours = replay.sample(50, np.random.default_rng(3), finished=finished)
        theirs = other.sample(50, np.random.default_rng(3), finished=finished)
        for name in vars(ours):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert replay.save_frames(tmp_path) == other.save_frames(tmp_path)


def test_a_damaged_or_missing_segment_is_named(tmp_path):
    replay = filled(stack=1)
    segments = replay.save_frames(tmp_path)
    arrays, values = replay.fields()
    path = tmp_path / replay_module.segment_name(0)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"frames-000000.u8 is damaged"):
        FrameReplay(100, SHAPE, envs=2).restore(arrays, values, tmp_path, segments)
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"frames-000000.u8 is missing or too short"):
        FrameReplay(100, SHAPE, envs=2).restore(arrays, values, tmp_path, segments)


def test_it_is_ready_once_something_can_be_sampled_and_not_before():
    """Where an episode was longer than the replay, its last transitions are finished, but their stacks are gone."""
    replay = FrameReplay(30, SHAPE, stack=4)
    rng = np.random.default_rng(0)
    heard = []
    for t in range(90):
        replay.add(0, frame(t), 0, 0, 0)
        if t == 44:
            replay.end(0, frame(t))
        ready = replay.ready(finished=True)
        heard.append((ready, replay.finished > 0))
        if ready:
            replay.sample(4, rng, finished=True)
        else:
            with pytest.raises(ValueError, match="no transition to sample yet"):
                replay.sample(4, rng, finished=True)
    assert (False, True) in heard
    assert (True, True) in heard


def test_the_steps_that_follow_stop_where_an_episode_ends_or_has_no_more_yet():
    """Two environments take turns; one episode ends by itself after 3 steps, the other is cut after 2."""
    replay = FrameReplay(100, (1, 1), envs=2)
    for t in range(3):
        replay.add(0, np.full((1, 1), t, np.uint8), 0, 0.0, 10.0**t, terminal=t == 2)
        if t < 2:
            replay.add(1, np.full((1, 1), 100 + t, np.uint8), 0, 0.0, 5.0)
    replay.end(0, np.full((1, 1), 3, np.uint8))
    replay.end(1, np.full((1, 1), 102, np.uint8))
    replay.add(1, np.full((1, 1), 200, np.uint8), 0, 0.0, 5.0)
    first = np.array([0, 1, 2, 3, 4])  # frames 0, 100, 1, 101, 2
    steps = replay.following(first, 3)
    assert_array_equal(steps.counts, [[1, 1, 1], [1, 1, 0], [1, 1, 0], [1, 0, 0], [1, 0, 0]])
    assert_array_equal(steps.after[:, 0, 0, 0], [3, 102, 3, 102, 3])
    assert_array_equal(steps.ended, [True, False, True, False, True])
    several = SeveralSteps([replay], [steps])
    assert_array_equal(several.discounted(several.array("total"), 0.5), [[1 + 5 + 25, 7.5, 10 + 50, 5, 100]])
    assert_array_equal(several.discount(0.5), [[0, 0.5, 0, 1, 0]])
    one = replay.following(first, 1)
    assert_array_equal(one.after[:, 0, 0, 0], replay.transitions_at(first).frames[:, 1, 0, 0])
    assert_array_equal(one.ended, replay.transitions_at(first).discount == 0)
