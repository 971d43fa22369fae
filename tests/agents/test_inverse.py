"""Features learned by inverse dynamics: their gradient, what they show and leave out, and what is computed again."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import spie
from corridor import Corridor
from spie.agents.dqn.bonuses import Surroundings
from spie.agents.dqn.build import build
from spie.agents.dqn.inverse import LearnedFeatures
from spie.agents.dqn.outlook import FIRST, FrameFeatures

SIDE, CELLS = 12, 6


def pictures(rng, cells):
    """A figure in a cell, rows 0 to 3, and noise of the same brightness and twice its size below it."""
    frames = np.zeros((*cells.shape, SIDE, SIDE), np.float32)
    frames[..., 4:, :] = rng.random((*cells.shape, SIDE - 4, SIDE))
    for i in range(2):
        np.put_along_axis(frames[..., :4, :], (2 * cells + i)[..., None, None], 1.0, axis=-1)
    return torch.from_numpy(frames)


def walk(rng, lanes, batch):
    """Steps around a ring of cells: action 0 to the left, 1 to the right."""
    cells, a = rng.integers(CELLS, size=(lanes, batch)), rng.integers(2, size=(lanes, batch))
    return pictures(rng, cells), torch.from_numpy(a), pictures(rng, (cells + 2 * a - 1) % CELLS)


def features_of(lanes, kind=LearnedFeatures):
    settings = spie.agent("dqn-sp-novelty", preset="small", novelty_features=32)
    around = Surroundings(settings, (SIDE, SIDE), list(range(lanes)), "cpu", tiled=False)
    return LearnedFeatures(around, 2) if kind is LearnedFeatures else FrameFeatures(around)


def test_the_gradient_is_how_far_the_chances_are_from_what_was_done():
    """d loss / d logits = (p - 1(a)) / B: of the last layer's bias the sum of it, of its weights hidden^T times it."""
    features, (frames, a, after) = features_of(2), walk(np.random.default_rng(0), 2, 8)
    features.loss(frames, a, after).sum().backward()
    first, last = features.predictor
    with torch.no_grad():
        both = torch.cat([features.codes(frames), features.codes(after)], dim=-1)
        hidden = torch.relu(both @ first.weight + first.bias[:, None])
        p = torch.softmax(hidden @ last.weight + last.bias[:, None], dim=-1)
        wrong = (p - torch.nn.functional.one_hot(a, 2)) / 8
    assert_allclose(
        features.loss(frames, a, after).detach(), -p.gather(2, a[..., None]).log().mean(dim=(1, 2)), rtol=1e-5
    )
    assert_allclose(last.bias.grad, wrong.sum(dim=1), atol=1e-6)
    assert_allclose(last.weight.grad, hidden.mT @ wrong, atol=1e-6)


def test_the_gradient_reaches_the_first_layer_with_the_slope_of_the_loss():
    features, (frames, a, after) = features_of(2), walk(np.random.default_rng(0), 2, 8)
    features.loss(frames, a, after).sum().backward()
    weight, step = features.encoder.layers[0].weight, 0.02
    direction = weight.grad / weight.grad.norm()
    losses = []
    for sign in (-1, 1):
        with torch.no_grad():
            weight.add_(direction, alpha=sign * step)
            losses.append(features.loss(frames, a, after).sum().item())
            weight.sub_(direction, alpha=sign * step)
    assert_allclose((losses[1] - losses[0]) / (2 * step), weight.grad.norm().item(), rtol=0.02)


def test_features_come_to_show_the_agent_and_not_the_noise():
    """Distances of pictures of one cell over those of two: most of them is noise, until the encoder has learned."""
    rng, learned, untrained = np.random.default_rng(1), features_of(2), features_of(2, FrameFeatures)
    for _ in range(120):
        learned.learn(*walk(rng, 2, 32))
    cells = np.arange(FIRST)[None].repeat(2, axis=0) % CELLS
    same = torch.from_numpy(cells[0][:, None] == cells[0])
    similar = {}
    for name, features in (("learned", learned), ("untrained", untrained)):
        codes = features.codes(pictures(rng, cells))
        distance = torch.cdist(codes, codes)
        similar[name] = distance[:, same & ~torch.eye(FIRST, dtype=torch.bool)].mean() / distance[:, ~same].mean()
        features.set_width(codes)
    assert similar["learned"] < 0.35
    assert similar["untrained"] > 0.7
    phi = learned(learned.codes(pictures(rng, cells)))
    kernel = phi @ phi.mT
    assert kernel[:, same].mean() > kernel[:, ~same].mean() + 0.5


def test_a_second_width_does_not_depend_on_the_first():
    features, once = features_of(2), features_of(2)
    codes = torch.randn(2, FIRST, 64, generator=torch.Generator().manual_seed(0))
    features.set_width(7 * codes)
    features.set_width(codes)
    once.set_width(codes)
    assert_array_equal(features.W, once.W)


@pytest.mark.slow
def test_what_novelty_knows_is_computed_again_from_all_frames_steps_and_pay(monkeypatch):
    monkeypatch.setattr(LearnedFeatures, "updates", 3)
    settings = spie.agent(
        "dqn-sp-novelty", preset="small", learning_starts=80, novelty_features=16, envs=2, replay=1000,
        novelty_encoder="inverse-dynamics",
    )  # fmt: skip
    learner = build(settings, Corridor(4), [4, 5], 400)
    turns = []
    monkeypatch.setattr(learner.outlook, "renew", lambda *given: turns.append(learner.step))
    renew = type(learner.outlook).renew
    for _ in range(170):
        learner.advance()
    assert turns == [80, 160, 320]
    renew(learner.outlook, learner.replays, learner.images, learner.images(learner.stacks[:, :, -1]))
    outlook = learner.outlook
    for lane, log in enumerate(learner.replays):

        def phi(frame, lane=lane):
            whole = learner.images(np.broadcast_to(frame, (2, 1, *frame.shape)).copy())
            return outlook.of(whole)[lane, 0].double()

        Lambda, X, paid = torch.eye(16).double(), torch.zeros(16, 16).double(), torch.zeros(16).double()
        for slot in range(log.head):
            at, frame = np.array([slot]), log.gather(np.array([slot]))[0]
            Lambda += torch.outer(phi(frame), phi(frame))
            paid += log.field("total", at).item() * phi(frame)
            if log.field("next", at) and not log.field("terminal", at):
                X += torch.outer(phi(frame), phi(log.entered(at)[0]))
        for env in range(2):
            now = phi(learner.stacks[lane, env, -1])
            Lambda += torch.outer(now, now)
            if learner.length[lane, env]:  # the step just taken is not in the log
                X += torch.outer(phi(log.gather(np.array([log.newest(env)]))[0]), now)
        assert_allclose(outlook.matrices.Lambda[lane], Lambda, atol=log.head * 2.0**-20)
        assert_allclose(outlook.matrices.X[lane], X, atol=log.head * 2.0**-20)
        assert_allclose(outlook.matrices.paid[lane], paid, atol=log.head * 2.0**-20)
        frames, steps = torch.trace(Lambda) - 16, 170 * 2
        assert frames == pytest.approx(steps + 2 + (log.head - steps), abs=1e-3)  # each once, of length 1
    assert_allclose(outlook.matrices.inverse @ outlook.matrices.Lambda, np.stack([np.eye(16)] * 2), atol=1e-9)
    solved = torch.linalg.solve(outlook.matrices.Lambda - 0.95 * outlook.matrices.X, outlook.matrices.paid)
    assert_allclose(outlook.matrices.u, solved, rtol=1e-9)


def test_features_that_nothing_asks_for_are_refused():
    with pytest.raises(ValueError, match="bonus none asks for no novelty; leave novelty_encoder out"):
        build(spie.DQN(bonus="none", preset="small", novelty_encoder="inverse-dynamics"), Corridor(1), [0], 10)
    with pytest.raises(ValueError, match='no novelty_encoder of DQN "trained"'):
        spie.DQN(bonus="novelty", novelty_encoder="trained")
