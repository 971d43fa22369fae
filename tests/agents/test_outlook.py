"""Novelty and its potential on frames: of each lane what spie/novelty.py says, and of pay what theory says."""

import dataclasses

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import spie
from corridor import Corridor
from spie.agents.dqn import losses
from spie.agents.dqn.bonuses import Surroundings
from spie.agents.dqn.build import build
from spie.agents.dqn.outlook import BLOCK, FIRST, FrameFeatures, LaneMatrices, median_distance
from spie.agents.dqn.replay import FrameReplay
from spie.novelty import RENEWED, SuccessorNovelty
from spie.tasks.pixels import make_pixels

LANES, D = 3, 10


def unit_rows(rng, *shape):
    rows = rng.normal(size=shape)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def walk(lanes, alone, steps, seed=0):
    """Feed both the same random steps; episodes end in one lane at a time. Returns the largest difference in e."""
    rng, worst = np.random.default_rng(seed), 0.0
    places = unit_rows(rng, 12, D)
    here = places[np.zeros(LANES, int)]
    lanes.see(torch.from_numpy(here))
    for lane, one in enumerate(alone):
        one.novelty_and_see(here[lane])
    for t in range(steps):
        there, paid = places[rng.integers(0, 12, LANES)], rng.normal(size=LANES)
        discount = (np.arange(LANES) != t % 7).astype(float)
        e = lanes.see(torch.from_numpy(there)).numpy()
        lanes.step(*(torch.from_numpy(x) for x in (here, there, paid, discount)))
        for lane, one in enumerate(alone):
            before = one.novelty_and_see(there[lane])
            worst = max(worst, abs(e[lane] - before / np.sqrt(1 + before**2)))
            one.step(here[lane], there[lane], [paid[lane]], discount[lane])
        here, ended = there, discount == 0
        if ended.any():
            here = np.where(ended[:, None], places[0], there)
            lanes.see(torch.from_numpy(here), torch.from_numpy(ended))
            alone[int(np.argmax(ended))].novelty_and_see(places[0])
    return places, worst


def test_the_potential_is_the_same_on_two_threads():
    """A batch of 200 x 200 matrices and more is where LU of a library was seen to fail on more than one."""
    size, rng = 256, np.random.default_rng(1)
    lanes, threads = LaneMatrices(LANES, size, 0.9), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for _ in range(BLOCK):
            here, there = torch.from_numpy(unit_rows(rng, 2, LANES, size))
            lanes.see(there)
            lanes.step(here, there, torch.ones(LANES, dtype=torch.float64), torch.ones(LANES))
    finally:
        torch.set_num_threads(threads)
    for Lambda, X, paid, u in zip(lanes.Lambda, lanes.X, lanes.paid, lanes.u, strict=True):
        assert_allclose((Lambda - 0.9 * X) @ u, paid, atol=1e-12)


def test_lanes_side_by_side_learn_what_each_learns_alone():
    lanes, alone = LaneMatrices(LANES, D, 0.9), [SuccessorNovelty(D, g=0.9) for _ in range(LANES)]
    places, worst = walk(lanes, alone, 5 * BLOCK + 20)
    assert worst < 1e-12
    probe = torch.from_numpy(np.stack([places] * LANES))
    for lane, one in enumerate(alone):
        assert_allclose(lanes.potential(probe)[lane], one.potential(places)[:, 0], rtol=1e-9, atol=1e-12)
        # Of batches, in single precision: what is subtracted is of size 1
        assert_allclose(lanes.novelty(probe)[lane] ** 2, one.novelty(places) ** 2, atol=D * 2.0**-23)


def test_the_error_of_the_inverse_stays_below_its_bound():
    """As in tests/test_novelty.py: few directions many thousand times are the worst case."""
    rng, n = np.random.default_rng(1), 20 * RENEWED - 1
    lanes, places = LaneMatrices(1, D, 0.0), unit_rows(np.random.default_rng(1), 3, D)
    for s in rng.integers(0, 3, n).tolist():
        last = lanes.see(torch.from_numpy(places[s : s + 1])).item()
    lanes._absorb()
    exact = np.sqrt(places[s] @ np.linalg.solve(lanes.Lambda[0].numpy(), places[s]))
    assert abs(last / exact - 1) < RENEWED * 2.0**-53 * (1 + n)


def test_a_potential_moves_values_and_no_td_error():
    rng = np.random.default_rng(0)
    q, r, u, u_next, value = torch.from_numpy(rng.normal(size=(5, 1, 6))).unbind(0)
    q_next, discount = torch.from_numpy(rng.normal(size=(1, 6, 3))), torch.tensor([[1.0, 0, 1, 1, 0, 1]])
    plain = losses.td_error(q, r, q_next, 0.9, discount)
    moved = losses.td_error(
        q - u, losses.shaped(r, u, u_next, 0.9, discount), q_next - u_next[..., None], 0.9, discount
    )
    assert_allclose(moved, plain, atol=1e-12)
    assert_allclose((value - u) - (q - u), value - q, atol=1e-12)  # of the return, as the learner takes it


def test_of_several_drawn_one_is_kept_by_the_square_of_its_bonus():
    """Two kinds equally often, bonus 1 and 2, two drawn: a mixed pair, half of them, keeps the larger 4 times in 5."""
    replay = FrameReplay(1000, (2, 2))
    for t in range(400):
        replay.add(0, np.zeros((2, 2), np.uint8), 0, 0.0, 0.0, bonus=1 + t % 2)
    n = 20_000
    kept = replay.sample(n, np.random.default_rng(0), draws=2)
    share = (kept.bonus == 2).mean()
    expected = 0.25 + 0.5 * 0.8
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    replay.set_bonus(np.arange(400), np.zeros(400))  # no bonus at all: as without
    assert len(replay.sample(64, np.random.default_rng(0), draws=8).action) == 64


def test_the_width_is_the_median_distance_of_distinct_frames():
    codes = np.array([[0.0, 0], [3, 4], [0, 0], [3, 4], [6, 8]])
    assert median_distance(codes) == 5  # of 5, 5 and 10
    assert median_distance(codes[:1].repeat(4, axis=0)) == 0


@pytest.mark.parametrize(("first", "message"), [(torch.ones(2, 5, 64), "frames are all equal"),
                                                (torch.full((2, 5, 64), torch.nan), "not finite")])  # fmt: skip
def test_frames_that_give_no_width_are_one_clear_line(first, message):
    settings = spie.agent("dqn-sp-novelty", preset="small", novelty_features=8)
    features = FrameFeatures(Surroundings(settings, (20, 20), [0, 1], "cpu", tiled=False))
    with pytest.raises(ValueError, match=message) as error:
        features.set_width(first)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"novelty_features": 0}, "novelty_features must be a whole number of at least 1"),
        ({"potential_gamma": 1.0}, r"potential_gamma must lie in \[0, 1\)"),
        ({"draws": 0}, "draws must be a whole number of at least 1"),
        ({"bonus": "none", "draws": 2}, "with bonus=none give draws=1"),
        (
            {"value_heads": "two", "potential": True, "bonus_at": "collection", "mmc": 0.0},
            "potential needs value_heads",
        ),
    ],
)
def test_wrong_settings_are_one_clear_line(settings, message):
    with pytest.raises(ValueError, match=message):
        spie.DQN(**{"bonus": "sp-novelty", "preset": "small"} | settings)


@pytest.mark.slow
def test_rewards_that_are_not_finite_are_one_clear_line():
    class Rich(Corridor):
        def step(self, actions):
            frames, rewards, *rest = super().step(actions)
            return frames, rewards + np.inf, *rest

    with pytest.raises(ValueError, match="a step paid inf; novelty and its potential need finite rewards"):
        list(build(spie.DQN(bonus="none", preset="small", potential=True), Rich(1), [0], 10).loop())


@pytest.mark.slow
def test_frames_that_are_all_equal_stop_a_run_with_one_line():
    class Blank(Corridor):
        def step(self, actions):
            frames, *rest = super().step(actions)
            return np.zeros_like(frames), *rest

    with pytest.raises(ValueError, match=f"the first {FIRST} frames are all equal"):
        list(build(spie.agent("dqn-novelty", preset="small"), Blank(1), [0], 100).loop())


@pytest.mark.slow
def test_what_is_paid_for_a_frame_is_its_novelty_and_the_potential_is_of_what_was_paid():
    settings = spie.agent("dqn-sp-novelty", preset="small", learning_starts=100, novelty_features=32)
    learner = build(settings, make_pixels("cluster-hard", n=2), [4, 5], 400)
    for _ in range(90):
        learner.advance()
    first = learner.replays[0].transitions_at(np.arange(40))  # in the first episode, before the width is known
    assert_array_equal(first.bonus, 1)
    assert_array_equal(first.total, 0)  # steps at random are paid nothing
    outlook, matrices = learner.outlook, learner.outlook.matrices
    assert outlook.ready
    for _ in range(210):
        learner.advance()
    assert learner.replays[0].transitions_at(np.arange(40)).bonus.min() < 1  # learned from since, and known by then
    matrices._absorb()
    exact = torch.linalg.inv(matrices.Lambda)
    assert_allclose(matrices.inverse, exact, atol=1e-10)
    now = outlook.of(learner.images(learner.stacks[:, :, -1])).double()
    e = torch.einsum("lbd,lde,lbe->lb", now, exact, now).sqrt()
    assert_allclose(outlook.novelty(now.float()), e, atol=1e-3)
    assert matrices.steps == 300 - FIRST + 1  # the last of the first steps leads from nowhere
    assert matrices.u.abs().max() > 0


@pytest.mark.slow
def test_a_count_is_paid_in_the_same_way_on_request():
    alike = {"scale": "standard", "offset": -1.0, "bonus_at": "sampling", "potential": True, "draws": 8}
    settings = spie.agent("dqn-count", preset="small", learning_starts=80, novelty_features=16, **alike)
    ours = dataclasses.asdict(settings)
    theirs = dataclasses.asdict(spie.agent("dqn-sp-novelty", preset="small", learning_starts=80, novelty_features=16))
    assert {name for name in ours if ours[name] != theirs[name]} == {"bonus"}
    learner = build(settings, make_pixels("cluster-hard", n=1), [4], 120)
    for _ in learner.loop():
        pass
    assert learner.updates > 0


@pytest.mark.slow
def test_of_several_steps_each_is_paid_what_it_is_worth_now():
    """Counts known, so the pay can be computed by hand: beta ((1 / sqrt(n) - mean) / deviation - 1), gamma apart."""
    alike = {"scale": "standard", "offset": -1.0, "bonus_at": "sampling", "draws": 8, "n_step": 3}
    settings = spie.agent("dqn-count", preset="small", learning_starts=80, **alike)
    learner = build(settings, make_pixels("S.G", n=1), [4], 200)
    for _ in learner.loop():
        pass
    batch, replay = learner._sampled(finished=True), learner.replays[0]
    r, after, discount = learner.paid_ahead(batch)
    scale, visits, ends = learner.scale, learner.visits[0], 0
    deviation = np.sqrt(scale.square[0] - scale.mean[0] ** 2)
    for i, slot in enumerate(batch.array("slots")[0].tolist()):
        expected, k, over = 0.0, 0, False
        while k < 3 and not over and replay.field("next", np.array(slot)) > 0:  # it is 0 where an episode was cut
            at = replay.transitions_at(np.array([slot]))
            bonus = (1 / np.sqrt(visits[at.state[0]]) - scale.mean[0]) / (deviation + 1e-8) - 1
            expected += 0.99**k * (at.reward[0] + 0.01 * bonus)
            slot, over, k = slot + int(replay.field("next", np.array(slot))), at.discount[0] == 0, k + 1
        assert abs(r[0, i].item() - expected) < 1e-5
        assert_array_equal(after[0, i, 0].numpy() * 255, at.frames[0, 1])
        assert_allclose(discount[0, i], 0 if over else 0.99 ** (k - 1), rtol=1e-6)
        ends += over
    assert 0 < ends < settings.batch


def test_a_bonus_of_the_network_can_be_summed_over_steps_only_as_it_was_collected():
    settings = spie.DQN(bonus="sf-pf", preset="small", n_step=2, bonus_at="sampling")
    with pytest.raises(ValueError, match="n_step above 1 needs bonus_at=collection"):
        build(settings, make_pixels("S.G", n=1), [0], 10)
    with pytest.raises(ValueError, match="n_step above 1 needs value_heads=one and psi=state"):
        spie.DQN(preset="small", n_step=2, psi="state-action")
