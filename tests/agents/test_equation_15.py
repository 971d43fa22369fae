"""Eq. 15: the PF head learns on phi(s'; theta); against a few independent lines of torch, and the closed form."""

import gymnasium as gym
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from gymnasium.vector import AutoresetMode, VectorEnv

from corridor import Corridor
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
from spie.representations import pr, sr

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SETTINGS = {
    "preset": "small", "gamma": 0.9, "learning_starts": 60, "batch": 16, "mmc": 0.0, "train_every": 4,
    "target": "periodic", "target_every": 40, "rate": 2e-3, "eps": 1e-8, "w_recon": 1e-3,
}  # fmt: skip


# -- The same updates in plain torch: dictionaries of weights, no module of ours


def features(p, x):
    """phi of frames x [B, 1, H, W]."""
    conv = p["encoder.convolutions.0.weight"][0].permute(0, 3, 1, 2)
    x = F.relu(F.conv2d(x, conv, p["encoder.convolutions.0.bias"][0], stride=4)).permute(0, 2, 3, 1).flatten(1)
    x = F.relu(x @ p["encoder.layers.0.weight"][0] + p["encoder.layers.0.bias"][0])
    x = x @ p["encoder.layers.1.weight"][0] + p["encoder.layers.1.bias"][0]
    return x / x.norm(dim=1, keepdim=True)


def head(p, name, phi):
    hidden = F.relu(phi.detach() @ p[f"{name}.first.weight"][0] + p[f"{name}.first.bias"][0])
    return hidden @ p[f"{name}.second.weight"][0] + p[f"{name}.second.bias"][0]


def values(p, phi):
    return phi @ p["q.weight"][0] + p["q.bias"][0]


def reference_loss(p, target, batch, reads):
    """Eqs 10, 15 and 17 of one batch, as printed; the encoder learns from Q alone."""
    frames = torch.from_numpy(batch.frames).float() / 255
    s, s_next, rows = frames[:, :1], frames[:, 1:], torch.arange(len(frames))
    a, discount = torch.from_numpy(batch.action), torch.from_numpy(batch.discount)
    with torch.no_grad():
        before, after = features(target, s), features(target, s_next)
        q_next = values(target, after).max(dim=1).values
        psi_goal = before + 0.99 * discount[:, None] * head(target, "psi", after)
        xi_goal = after + 0.99 * head(target, "xi", before)
        read = features(p, s_next) if reads == "online" else after
    phi = features(p, s)
    q = values(p, phi)[rows, a]
    delta = torch.tensor(batch.total.tolist()) + 0.9 * discount * q_next - q
    huber = torch.where(delta.abs() < 1, delta**2, 2 * delta.abs() - 1)
    return huber.mean() + (psi_goal - head(p, "psi", phi)).pow(2).mean() + (xi_goal - head(p, "xi", read)).pow(2).mean()


@pytest.mark.parametrize("reads", ["online", "target"])
def test_norms_of_psi_and_xi_after_every_copy_are_those_of_a_few_lines_of_torch(reads, monkeypatch):
    learner = build(DQN(**SETTINGS | {"pf_reads": reads, "reconstruction": False}), Corridor(size=12), [3], 300)
    online = {name: torch.nn.Parameter(p.detach().clone()) for name, p in learner.online.named_parameters()}
    target = {name: p.detach().clone() for name, p in online.items()}
    optimiser = torch.optim.Adam(online.values(), 2e-3, eps=1e-8)
    (replay,), batches = learner.replays, []
    sample = replay.sample
    monkeypatch.setattr(replay, "sample", lambda *a, **o: batches.append(sample(*a, **o)) or batches[-1])
    x = torch.from_numpy(Corridor(6, size=12).frames_of_all()).float().unsqueeze(1) / 255
    copies = []
    for _ in learner.loop():
        for batch in batches:
            optimiser.zero_grad()
            reference_loss(online, target, batch, reads).backward()
            optimiser.step()
        batches.clear()
        if learner.step >= 60 and learner.step % 40 == 0:
            target = {name: p.detach().clone() for name, p in online.items()}
            with torch.no_grad():
                ours = [getattr(learner.target, name)(learner.target.phi(x[None]))[0] for name in ("psi", "xi")]
                theirs = [head(target, name, features(target, x)) for name in ("psi", "xi")]
            copies.append([[y.abs().sum(dim=1).mean().item() for y in pair] for pair in (ours, theirs)])
    ours, theirs = np.array(copies).transpose(1, 0, 2)
    assert len(ours) == 6
    np.testing.assert_allclose(ours, theirs, rtol=2e-4)


# -- The closed form, while phi is being learned


CHAIN = np.array([[0.1, 0.7, 0.2, 0.0], [0.0, 0.2, 0.8, 0.0], [0.3, 0.0, 0.1, 0.6], [0.8, 0.1, 0.0, 0.1]])


class Chain(VectorEnv):
    """A walk on CHAIN for ever, whatever the action; a state is a bright quarter of the image."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(self, n=1):
        self.num_envs, self.s = n, np.zeros(n, np.int64)
        self.single_observation_space = gym.spaces.Box(0, 255, (8, 8), np.uint8)
        self.single_action_space = gym.spaces.Discrete(2)

    def frames(self):
        frames = np.zeros((len(self.s), 8, 8), np.uint8)
        for frame, s in zip(frames, self.s, strict=True):
            frame[s // 2 * 4 : s // 2 * 4 + 4, s % 2 * 4 : s % 2 * 4 + 4] = 255
        return frames

    def reset(self, *, seed=None, options=None):
        self.rngs = [np.random.default_rng(one) for one in seed]
        self.s[:] = 0
        return self.frames(), {}

    def step(self, actions):
        self.s = np.array([rng.choice(4, p=CHAIN[s]) for rng, s in zip(self.rngs, self.s, strict=True)])
        never = np.zeros(len(self.s), np.bool_)
        return self.frames(), np.zeros(len(self.s)), never, never, {}


def test_psi_and_xi_become_the_closed_forms_while_phi_is_being_learned():
    """xi(s') = sum over s of N[s, s'] phi(s), whatever phi has become by then; psi(s) = sum of M[s, s'] phi(s')."""
    settings = SETTINGS | {
        "gamma_sr": 0.5, "gamma_pr": 0.5, "epsilon": 1.0, "target_every": 20, "batch": 64, "w_recon": 0.1, "rate": 1e-3,
        "train_every": 2,
    }  # fmt: skip
    learner = build(DQN(**settings), Chain(), [0], 2000)
    every = Chain(4)
    every.s = np.arange(4)
    x = torch.from_numpy(every.frames()[None, :, None]).float() / 255
    walked, first = [0], learner.target.phi(x)
    for _ in learner.loop():
        walked.append(int(learner.env.s[0]))
        learner.optimiser.rate = 1e-3 if learner.step < 1500 else 2e-4
    with torch.no_grad():
        phi = learner.target.phi(x)
        psi, xi = learner.target.psi(phi), learner.target.xi(phi)
    assert (phi - first).norm(dim=-1).mean() > 0.2  # else this test has lost its subject
    counts = np.zeros((4, 4))
    np.add.at(counts, (walked[:-1], walked[1:]), 1)
    P = counts / counts.sum(axis=1, keepdims=True)  # the chain that was learned from
    M, N = torch.from_numpy(sr(P, 0.5)).float(), torch.from_numpy(pr(P, 0.5)).float()
    for found, expected in ((psi, M @ phi), (xi, N.T @ phi)):
        errors = (found - expected).norm(dim=-1) / expected.norm(dim=-1)
        assert errors.mean() < 0.05
