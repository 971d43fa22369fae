import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from spie.tasks.chains import riverswim, sixarms


def test_riverswim_swims_right_against_the_current() -> None:
    right = [
        [0.7, 0.3, 0, 0, 0, 0],
        [0.1, 0.6, 0.3, 0, 0, 0],
        [0, 0.1, 0.6, 0.3, 0, 0],
        [0, 0, 0.1, 0.6, 0.3, 0],
        [0, 0, 0, 0.1, 0.6, 0.3],
        [0, 0, 0, 0, 0.7, 0.3],
    ]
    assert_array_equal(riverswim().P[:, 0], right)


def test_riverswim_drifts_left_with_certainty() -> None:
    left = [
        [1, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 0],
    ]
    assert_array_equal(riverswim().P[:, 1], left)


def test_riverswim_pays_only_for_staying_at_an_end() -> None:
    mdp = riverswim()
    paid = {
        (s, a, int(mdp.next[s, a, k])): mdp.reward[0, s, a, k].item()
        for s, a, k in np.argwhere(mdp.reward[0] != 0).tolist()
    }
    assert paid == {(5, 0, 5): 10_000, (0, 1, 0): 5}
    assert_allclose(mdp.R[:, 0], [0, 0, 0, 0, 0, 3000], rtol=1e-15)


def test_riverswim_starts_in_state_1_or_2_and_never_ends() -> None:
    assert_array_equal(riverswim().start, [0, 0.5, 0.5, 0, 0, 0])
    assert not riverswim().terminal.any()


def test_sixarms_enters_its_rooms_with_falling_probability() -> None:
    hub = sixarms().P[0]
    for a, p in enumerate([1, 0.15, 0.10, 0.05, 0.03, 0.01]):
        expected = np.zeros(7)
        expected[a + 1], expected[0] = p, 1 - p
        assert_array_equal(hub[a], expected)


def test_sixarms_keeps_and_pays_room_1_unless_action_4_leaves_it() -> None:
    mdp = sixarms()
    for a in range(6):
        assert_array_equal(mdp.P[1, a], np.eye(7)[0 if a == 4 else 1])
    assert_array_equal(mdp.R[1], [50, 50, 50, 50, 0, 50])


def test_sixarms_keeps_and_pays_the_other_rooms_for_one_action_each() -> None:
    mdp = sixarms()
    for room, pay in zip(range(2, 7), [133, 300, 800, 1666, 6000], strict=True):
        for a in range(6):
            stays = a == room - 1
            assert_array_equal(mdp.P[room, a], np.eye(7)[room if stays else 0])
            assert mdp.R[room, a] == (pay if stays else 0)


def test_sixarms_pays_nothing_on_the_way_in_starts_in_the_hub_and_never_ends() -> None:
    mdp = sixarms()
    assert not mdp.reward[0, 0].any()
    assert_array_equal(mdp.start, [1, 0, 0, 0, 0, 0, 0])
    assert not mdp.terminal.any()
