import copy
import dataclasses
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

import spie
from corridor import Corridor
from spie.agents.dqn import losses
from spie.agents.dqn.agent import AGENTS, DQN
from spie.agents.dqn.bonuses import Scale
from spie.agents.dqn.build import build
from spie.agents.dqn.hardware import check_bf16
from spie.agents.dqn.losses import pf_loss, q_loss, reconstruction_loss, sf_loss, td_error, total_loss
from spie.agents.dqn.networks import Architecture, Head
from spie.agents.dqn.optimisers import Adam, RMSprop
from spie.agents.dqn.state import weights_of
from spie.representations import pr, sr, stationary

torch.set_num_threads(1)
TINY = {"preset": "small", "gamma": 0.9, "learning_starts": 100, "batch": 32, "epsilon_fraction": 0.3}


def tensor(*values):
    """One lane."""
    return torch.tensor([values], dtype=torch.float64)


# -- The losses, by hand


def test_sf_loss_is_equation_10_with_its_end():
    phi, psi, psi_next = tensor([1.0, 0.0], [1.0, 0.0]), tensor([2.0, 1.0], [2.0, 1.0]), tensor([4.0, 2.0], [4.0, 2.0])
    # errors (1 + 2 - 2, 0 + 1 - 1) = (1, 0), and (1 - 2, 0 - 1) = (-1, -1) where the episode ended
    assert sf_loss(phi, psi, psi_next, 0.5, tensor(1.0, 0.0)).tolist() == [(1 + 0 + 1 + 1) / 4]


def test_pf_loss_is_equation_15():
    phi_next, xi, xi_next = tensor([1.0, 0.0]), tensor([4.0, 2.0]), tensor([2.0, 3.0])
    assert pf_loss(phi_next, xi, xi_next, 0.5).tolist() == [((1 + 2 - 2) ** 2 + (0 + 1 - 3) ** 2) / 2]


def test_td_error_takes_the_best_next_action_and_stops_at_the_end():
    q_next = tensor([1.0, 3.0], [1.0, 3.0])
    delta = td_error(tensor(1.0, 1.0), tensor(0.5, 0.5), q_next, 0.9, tensor(1.0, 0.0))
    np.testing.assert_allclose(delta, [[0.5 + 2.7 - 1, 0.5 - 1]])


def test_q_loss_is_equation_17():
    td, mc = tensor(2.0, -1.0), tensor(-4.0, 1.0)
    np.testing.assert_allclose(q_loss(td, mc, 0.25), [((1.5 - 1) ** 2 + (-0.75 + 0.25) ** 2) / 2])
    assert q_loss(td, tensor(np.nan, np.nan), 0.0).tolist() == [(4 + 1) / 2]


def test_huber_is_the_square_up_to_one_and_a_line_of_the_same_slope_beyond():
    assert q_loss(tensor(0.5, -3.0), tensor(0.0, 0.0), 0.0, huber=True).tolist() == [(0.25 + 2 * 3 - 1) / 2]


def test_reconstruction_is_measured_in_grey_levels():
    frame, predicted = torch.zeros(1, 1, 2, 2), torch.tensor([[[[0.0, 0.0], [0.0, 2 / 255]]]])
    np.testing.assert_allclose(reconstruction_loss(frame, predicted), [4 / 4], rtol=1e-6)


def test_total_loss_is_equation_18():
    losses = {"q": torch.tensor([1.0]), "sf": torch.tensor([2.0]), "recon": torch.tensor([3.0])}
    assert total_loss(losses, {"q": 1, "sf": 1500, "pf": 7, "recon": 0.001}).tolist() == [pytest.approx(3001.003)]


# -- Heads against the closed forms


def test_sf_and_pf_heads_on_a_chain_of_one_hot_states_converge_to_the_closed_form_sr_and_pr():
    P = np.array([[0.1, 0.7, 0.2, 0.0], [0.0, 0.2, 0.8, 0.0], [0.3, 0.0, 0.1, 0.6], [0.8, 0.1, 0.0, 0.1]])
    gamma, z = 0.6, stationary(P)
    s, s_next = (torch.from_numpy(x.ravel()) for x in np.indices((4, 4)))
    weight = torch.from_numpy((z[:, None] * P).ravel()).float()  # all transitions, as often as the chain makes them
    phi = torch.eye(4).unsqueeze(0)
    psi, xi = (Head(Architecture((), (), 4, 64, 0), 0, [torch.Generator().manual_seed(i)]) for i in range(2))
    optimiser = Adam([*psi.parameters(), *xi.parameters()], 0.01)
    one = torch.ones(16, 1)
    for _ in range(800):
        with torch.no_grad():
            psi_target, xi_target = psi(phi)[0], xi(phi)[0]
        # each transition is a lane of its own here, so that each has its weight
        sf = sf_loss(phi[0, s, None], psi(phi)[0, s, None], psi_target[s_next, None], gamma, one)
        pf = pf_loss(phi[0, s_next, None], xi_target[s, None], xi(phi)[0, s_next, None], gamma)
        (weight * (sf + pf)).sum().backward()
        optimiser.step()
        optimiser.rate *= 0.994
    np.testing.assert_allclose(psi(phi)[0].detach(), sr(P, gamma), atol=0.02)
    np.testing.assert_allclose(xi(phi)[0].detach(), pr(P, gamma).T, atol=0.02)  # xi(s') is the column of s'


# -- Optimiser


@pytest.mark.slow
def test_rmsprop_is_centred_with_eps_inside_the_root():
    w = torch.nn.Parameter(torch.tensor([1.0]))
    optimiser = RMSprop([w], rate=0.1, decay=0.5, eps=0.01)
    expected, mean, square = 1.0, 0.0, 0.0
    for g in (2.0, -1.0, 3.0):
        w.grad = torch.tensor([g])
        optimiser.step()
        mean, square = 0.5 * mean + 0.5 * g, 0.5 * square + 0.5 * g * g
        expected -= 0.1 * g / np.sqrt(square - mean**2 + 0.01)
        assert w.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_rmsprop_stays_finite_where_rounding_would_make_the_variance_negative():
    """A constant large gradient: torch's own centred RMSprop gives NaN here."""
    ours, theirs = (torch.nn.Parameter(torch.zeros(1000)) for _ in range(2))
    optimisers = RMSprop([ours], rate=0.1, eps=1e-8), torch.optim.RMSprop([theirs], 0.1, 0.95, 1e-8, centered=True)
    g = torch.linspace(100, 1000, 1000)
    for _ in range(300):
        for w, optimiser in zip((ours, theirs), optimisers, strict=True):
            w.grad = g.clone()
            optimiser.step()
    assert torch.isfinite(ours).all()
    assert not torch.isfinite(theirs).all()  # else this test has lost its subject


def test_adam_is_torchs():
    ours, theirs = (torch.nn.Parameter(torch.ones(3)) for _ in range(2))
    optimisers = Adam([ours], 0.1, 1e-6), torch.optim.Adam([theirs], 0.1, eps=1e-6)
    for g in ([1.0, -2.0, 0.0], [0.5, 2.0, 3.0]):
        ours.grad, theirs.grad = torch.tensor(g), torch.tensor(g)
        for optimiser in optimisers:
            optimiser.step()
    torch.testing.assert_close(ours, theirs)


# -- Settings


def test_the_agents_of_the_paper_are_settings():
    assert set(AGENTS) >= {"dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf"}
    agents = {name: spie.agent(name) for name in AGENTS}
    assert {name: agents[name].mmc for name in ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf")} == {
        "dqn": 0, "dqn-mmc": 0.1, "rnd": 0, "dqn-sr": 0.1, "dqn-sf-pf": 0.1,
    }  # fmt: skip
    assert all(agent.reconstruction for agent in agents.values())
    sf_pf = agents["dqn-sf-pf"]
    assert (sf_pf.norm, agents["dqn-sr"].norm, sf_pf.beta, sf_pf.rate, sf_pf.w_sf) == ("l1", "l2", 0.07, 2.5e-4, 1500)
    assert DQN(preset="small", beta=3).beta == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bonus": "sfpf"}, 'no bonus of DQN "sfpf"; did you mean "sf-pf"'),
        ({"preset": "tiny"}, 'no preset of DQN "tiny"'),
        ({"norm": "l3"}, 'no norm of DQN "l3"'),
        ({"beta": float("nan")}, "beta must be a finite number"),
        ({"gamma": 1.5}, r"gamma must lie in \[0, 1\]"),
        ({"batch": 0}, "batch must be a whole number of at least 1"),
        ({"rate": 0.0}, "rate must be above 0"),
        ({"learning_starts": -1}, "learning_starts must be a whole number"),
        ({"clip": "yes"}, 'no clip of DQN "yes"'),
        ({"value_heads": "two"}, "value_heads=two needs a bonus, mmc=0 and bonus_at=collection"),
    ],
)
def test_a_wrong_setting_is_one_clear_line(settings, message):
    with pytest.raises(ValueError, match=message):
        DQN(**settings)


# -- The agent


def learn(agent, steps=600, lanes=1, **env):
    learner = build(agent, Corridor(lanes * agent.envs, **env), range(lanes), steps)
    return learner, [episode for ended in learner.loop() for episode in ended]


def finite(learner):
    return all(torch.isfinite(p).all() for p in learner.online.parameters())


EASY = {"cells": 4, "slip": 0.0}  # 3 steps to the end; a random walk takes 3 x 4 = 12 on average


def typical(episodes, lanes, after):
    """Mean length of the late episodes of the lane in the middle: no test hangs on one seed."""
    late = [[e.length for e in episodes if e.lane == lane and e.step > after] for lane in range(lanes)]
    return np.median([np.mean(lengths) for lengths in late])


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns_a_small_pixel_task(name):
    learner, episodes = learn(spie.agent(name, **TINY | {"train_every": 4}), 800, lanes=5, **EASY)
    assert typical(episodes, 5, 600) < 6
    assert finite(learner)


OPTIONS = [
    {"sf_pf": "printed"}, {"psi": "state-action"}, {"bonus_at": "sampling"}, {"norm": "l2"},
    {"target": "periodic", "target_every": 50}, {"scale": "standard", "offset": -1.0}, {"stack": 3},
    {"loss": "squared"},
    {"optimiser": "rmsprop", "rate": 2.5e-4, "eps": 1e-3}, {"envs": 3}, {"reconstruction": False}, {"mmc": 0.0},
    {"mmc": 0.0, "bonus_at": "sampling"}, {"bonus": "rnd", "bonus_at": "sampling"},
    {"bonus": "count", "bonus_at": "sampling"}, {"sf_start": "s_next"}, {"pf_reads": "target"},
    {"relu_features": True}, {"bonus_from": "start"}, {"bonus": "rnd", "value_heads": "two"},
    {"n_step": 3}, {"bonus": "novelty", "n_step": 3},
]  # fmt: skip


@pytest.fixture(scope="module")
def plain():
    return learn(DQN(**TINY), steps=180)[0]


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_every_option_runs_and_matters(option, plain):
    learner, _ = learn(DQN(**TINY | option), steps=180)
    assert learner.updates == plain.updates > 0
    assert finite(learner)
    ours, others = weights_of(learner), weights_of(plain)
    assert ours.keys() != others.keys() or not all(np.array_equal(ours[name], others[name]) for name in ours)


@pytest.mark.slow
def test_learning_still_works_in_bf16():
    """In a process of its own, because a processor whose matrix unit is announced but missing would end this one."""
    program = """
import numpy as np, torch
from corridor import Corridor
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
torch.set_num_threads(1)
agent = DQN(preset="small", gamma=0.9, learning_starts=100, train_every=4, epsilon_fraction=0.3, precision="bf16")
learner = build(agent, Corridor(5, cells=4, slip=0.0), range(5), 800)
episodes = [e for ended in learner.loop() for e in ended if e.step > 600]
assert learner.online.q.weight.dtype == torch.float32
print(np.median([np.mean([e.length for e in episodes if e.lane == lane]) for lane in range(5)]))
"""
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert float(out.stdout) < 6


@pytest.mark.slow
def test_the_large_networks_run_in_bf16_too():
    """Their convolutions, and one lane, take other ways than small networks side by side."""
    program = """
import torch
from corridor import Corridor
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
torch.set_num_threads(1)
for precision in ("fp32", "bf16"):
    agent = DQN(preset="nature", learning_starts=10, replay=100, batch=8, precision=precision, mmc=0.0, rate=1e-5)
    learner = build(agent, Corridor(1, size=84), [0], 30)
    list(learner.loop())
    assert learner.updates == 5
    print(*(learner.recent[name][0] for name in ("q_loss", "sf_loss", "pf_loss", "recon_loss")))
"""
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    full, half = np.array([line.split() for line in out.stdout.splitlines()], float)
    np.testing.assert_allclose(half, full, rtol=0.05, atol=1e-4)  # of the first update, on the same batch
    assert not np.array_equal(half, full)


@pytest.mark.slow
@pytest.mark.parametrize(("reads", "of_theta"), [("online", [True, False]), ("target", [True])])
def test_an_update_looks_at_s_with_a_gradient_and_at_the_next_state_without_one(reads, of_theta):
    learner, _ = learn(DQN(**TINY | {"pf_reads": reads}), steps=120)
    passes = []
    for name in ("online", "target"):
        encoder = getattr(learner, name).encoder
        note = lambda module, inputs, out, name=name: passes.append((name, out.shape[1], out.requires_grad))  # noqa: E731
        encoder.register_forward_hook(note)
    learner.update()
    assert passes == [("target", 64, False), *[("online", 32, gradient) for gradient in of_theta]]


def test_several_environments_take_one_pass_to_act():
    learner = build(DQN(**TINY | {"envs": 3, "epsilon": 0.0}), Corridor(3), [0], 30)
    passes = []
    learner.online.encoder.register_forward_hook(lambda module, inputs, out: passes.append(out.shape[:2]))
    learner.act(learner.stacks, 0.0, learner.rngs)
    assert passes == [(1, 3)]


@pytest.mark.slow
def test_sf_and_pf_losses_of_an_update_leave_the_encoder_alone_and_the_reconstruction_does_not():
    def moved(**weights):
        learner, _ = learn(DQN(**TINY | {"w_q": 0.0, "w_sf": 0.0, "w_pf": 0.0, "w_recon": 0.0} | weights), steps=110)
        first = build(learner.settings, Corridor(), [0], 10).online
        now = dict(learner.online.named_parameters())
        return {name.split(".")[0] for name, p in first.named_parameters() if not torch.equal(p, now[name])}

    assert moved(w_sf=1.0, w_pf=1.0) == {"psi", "xi"}
    assert moved(w_recon=1.0) == {"encoder", "decoder"}


def test_the_preset_for_small_tasks_is_what_it_should_be():
    s = DQN(preset="small")
    assert (s.optimiser, s.rate, s.eps, s.target, s.polyak) == ("adam", 5e-4, 1e-6, "polyak", 0.01)
    assert (s.epsilon, s.epsilon_fraction, s.train_every) == (0.05, 0.05, 8)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beta": "abc"}, "beta must be a number, not abc"),
        ({"gamma": None}, "gamma must be a number, not None"),
        ({"mmc": True}, "mmc must be a number, not True"),
        ({"envs": None}, "envs must be a whole number of at least 1 and at most 4,096, not None"),
        ({"device": None}, "device must be auto, cpu or cuda, not None"),
    ],
    ids=str,
)
def test_a_setting_of_another_kind_is_one_clear_line(setting, message):
    with pytest.raises(ValueError, match=message):
        DQN(**setting)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is such a device here")
@pytest.mark.parametrize("device", ["cuda", "gpu"])
def test_a_device_that_is_not_there_is_one_clear_line(device):
    with pytest.raises(ValueError, match=rf"device {device} cannot be used here \(.*\); use auto, cpu or cuda"):
        build(DQN(**TINY | {"device": device}), Corridor(), [0], 10)


def test_rmsprop_off_the_cpu_does_the_same():
    """By the operations that a GPU would do, on the CPU."""
    g = torch.Generator().manual_seed(0)
    start, gradients = torch.randn(50, generator=g), torch.randn(5, 50, generator=g)

    class Elsewhere(torch.Tensor):
        device = torch.device("meta")

    results = []
    for kind in (torch.Tensor, Elsewhere):
        p = start.clone().as_subclass(kind).requires_grad_()
        optimiser = RMSprop([p], 0.01)
        for gradient in gradients:
            p.grad = gradient.clone().as_subclass(kind)
            optimiser.step()
        results.append(p.detach().as_subclass(torch.Tensor))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-7)


def test_bf16_that_would_crash_is_one_clear_line(monkeypatch):
    check_bf16.cache_clear()
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], -signal.SIGILL))
    with pytest.raises(ValueError, match="bf16 crashes on this processor; set ONEDNN_MAX_CPU_ISA"):
        build(DQN(**TINY | {"precision": "bf16"}), Corridor(), [0], 10)
    check_bf16.cache_clear()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_and_another_gives_another():
    one, again, other = (build(DQN(**TINY), Corridor(), [seed], 160) for seed in (1, 1, 2))
    runs = [[e for ended in learner.loop() for e in ended] for learner in (one, again, other)]
    assert runs[0] == runs[1] != runs[2]
    for name, array in weights_of(one).items():
        assert np.array_equal(array, weights_of(again)[name])


@pytest.mark.slow
def test_lanes_side_by_side_are_the_runs_of_their_seeds():
    """Up to the rounding of a batched product, which a few updates do not magnify."""
    both = build(DQN(**TINY), Corridor(2), [5, 6], 110)
    alone = build(DQN(**TINY), Corridor(1), [6], 110)
    for learner in (both, alone):
        list(learner.loop())
    np.testing.assert_array_equal(both.visits[1], alone.visits[0])
    for name, array in weights_of(alone).items():
        if array.ndim > 1:
            np.testing.assert_allclose(weights_of(both)[name][1:], array, atol=1e-4)


@pytest.mark.slow
def test_the_bonus_paid_is_the_one_of_the_states_and_the_target_network():
    agent = DQN(**TINY | {"scale": "none", "beta": 2.0, "learning_starts": 1000, "bonus_from": "start"})
    learner = build(agent, Corridor(), [0], 20)
    with torch.no_grad():
        for parameter in learner.online.parameters():
            parameter.add_(0.5)  # unlike those of the target network
    list(learner.loop())
    (replay,) = learner.replays
    batch = replay.transitions_at(np.array([3]))
    frames = torch.from_numpy(batch.frames / 255).float().unsqueeze(0)
    phi, phi_next = learner.target.phi(frames[:, :, :1]), learner.target.phi(frames[:, :, 1:])
    r_sf_pf = 1 / learner.target.xi(phi_next).abs().sum() - 1 / learner.target.psi(phi).abs().sum()
    assert batch.bonus[0] == pytest.approx(float(r_sf_pf), rel=1e-4)
    assert batch.total[0] == pytest.approx(batch.reward[0] + 2 * batch.bonus[0])


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["prose", "printed"])
def test_a_bonus_at_sampling_is_the_one_of_the_target_network_now(reading, monkeypatch):
    settings = {"bonus_at": "sampling", "mmc": 0.0, "scale": "none", "beta": 2.0, "sf_pf": reading}
    learner, _ = learn(DQN(**TINY | settings), steps=120)
    target, seen = copy.deepcopy(learner.target), {}
    sample, td = learner.replays[0].sample, losses.td_error
    monkeypatch.setattr(learner.replays[0], "sample", lambda *a, **o: seen.setdefault("batch", sample(*a, **o)))
    monkeypatch.setattr(losses, "td_error", lambda q, r, *rest: td(q, seen.setdefault("r", r), *rest))
    learner.update()
    frames = torch.from_numpy(seen["batch"].frames / 255).float().unsqueeze(0)
    phi, phi_next = target.phi(frames[:, :, :1]), target.phi(frames[:, :, 1:])
    past = phi_next if reading == "printed" else target.xi(phi_next)
    bonus = 1 / past.abs().sum(dim=-1) - 1 / target.psi(phi).abs().sum(dim=-1)
    expected = torch.tensor(seen["batch"].reward.tolist()) + 2 * bonus
    torch.testing.assert_close(seen["r"], expected.detach(), rtol=1e-4, atol=1e-5)
    assert not np.allclose(seen["batch"].total, expected.detach())  # what was paid when it was collected


# -- The steps at random before learning starts


LONG = {"cells": 20, "size": 40, "cap": 1000}  # no episode ends within some steps: step t is in slot t


@pytest.mark.slow
@pytest.mark.parametrize(("bonus", "paid"), [("learning", False), ("start", True)])
@pytest.mark.parametrize("name", ["dqn-sr", "dqn-sf-pf", "dqn-constant", "rnd"])
def test_steps_at_random_are_paid_no_bonus_unless_asked_for(name, bonus, paid):
    settings = TINY | {"learning_starts": 20, "train_every": 1000, "mmc": 0.0, "bonus_from": bonus}
    learner, _ = learn(spie.agent(name, **settings), steps=30, **LONG)
    slots = learner.replays[0]._slots
    assert (slots["bonus"][:20] != 0).tolist() == [paid] * 20
    assert (slots["total"][:20] != slots["reward"][:20]).tolist() == [paid] * 20
    assert (slots["bonus"][20:30] != 0).all()
    assert learner.scale.count == (30 if paid else 10)


@pytest.mark.slow
def test_the_first_step_that_is_paid_has_the_bonus_of_its_own_states():
    agent = DQN(**TINY | {"scale": "none", "learning_starts": 10, "train_every": 1000})
    learner, _ = learn(agent, steps=14, **LONG)
    frames = torch.from_numpy(learner.replays[0].transitions_at(np.array([10])).frames / 255).float().unsqueeze(0)
    phi, phi_next = learner.target.phi(frames[:, :, :1]), learner.target.phi(frames[:, :, 1:])
    r_sf_pf = 1 / learner.target.xi(phi_next).abs().sum() - 1 / learner.target.psi(phi).abs().sum()
    assert learner.replays[0]._slots["bonus"][10] == pytest.approx(float(r_sf_pf), rel=1e-4)


@pytest.mark.slow
def test_rnd_has_its_statistics_from_every_frame_and_its_predictor_from_the_random_steps_on():
    agent = spie.agent("rnd", **TINY | {"learning_starts": 40, "train_every": 4})
    learner = build(agent, Corridor(), [0], 100)
    shown = []
    step = learner.env.step

    def watched(actions):
        result = step(actions)
        shown.append(result[0][0] / 255)
        return result

    learner.env.step = watched
    before = learner.bonus.rnd.parameters[0].clone()
    while learner.step < 36:
        learner.advance()
    rnd = learner.bonus.rnd
    np.testing.assert_allclose(rnd.mean[0, 0], np.mean(shown, axis=0), atol=1e-6)
    np.testing.assert_allclose(rnd.square[0, 0], np.mean(np.square(shown), axis=0), atol=1e-6)
    assert not torch.equal(before, rnd.parameters[0])
    assert learner.updates == 0
    assert learner.recent["rnd_loss"][-1] < learner.recent["rnd_loss"][0]


def test_the_scale_of_rnd_is_the_deviation_of_its_discounted_return():
    scale, rng = Scale("return", lanes=1, envs=2, gamma=0.9), np.random.default_rng(0)
    bonuses = rng.random((500, 2))
    returns, now = [], np.zeros(2)
    for bonus in bonuses:
        now = 0.9 * now + bonus
        returns.append(now)
        scale.observe(bonus[None])
    np.testing.assert_allclose(scale(np.ones((1, 2))), 1 / np.std(returns), rtol=1e-6)
    first = Scale("return")
    first.observe(np.full((1, 1), 0.3))
    assert np.isfinite(first(np.full((1, 1), 0.3))).all()


def test_bonuses_with_values_of_their_own_go_on_where_an_episode_ends():
    """By hand: rewards stop at the end, bonuses take the value of where episodes begin."""
    q, ahead = torch.tensor([[[1.0, 2.0], [1.0, 2.0]]]), torch.tensor([[[10.0, 20.0], [10.0, 20.0]]])
    start, discount = torch.tensor([[[7.0, 30.0], [7.0, 50.0]]]), torch.tensor([[1.0, 0.0]])
    r, bonus = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.25]])
    of_reward, of_bonus = losses.two_head_errors(q, r, bonus, ahead, start, (0.9, 0.5), discount)
    np.testing.assert_allclose(of_reward, [[0.5 + 9 - 1, 0.5 - 1]])
    np.testing.assert_allclose(of_bonus, [[0.25 + 10 - 2, 0.25 + 20 - 2]])


def test_clipping_is_before_and_after_the_bonus():
    agent = DQN(**TINY | {"bonus": "constant", "beta": 0.75, "clip": True, "scale": "none"})
    learner = build(agent, Corridor(), [0], 1)
    paid = learner.pay(np.array([[5.0, -5.0, 0.0]]), -np.ones((1, 3)))
    assert paid.tolist() == [[0.25, -1.0, -0.75]]


def test_epsilon_falls_in_a_line():
    learner = build(DQN(**TINY | {"epsilon": 0.1, "epsilon_fraction": 0.5}), Corridor(), [0], 1000)
    values = []
    for learner.step in (0, 250, 500, 900):
        values.append(learner.epsilon)
    np.testing.assert_allclose(values, [1, 0.55, 0.1, 0.1])
    learner = build(DQN(), Corridor(size=84), [0], 10)  # the paper: from 1 to 0.1 over a million frames
    learner.step, learner.frame_skip = 100_000, 5
    assert learner.epsilon == pytest.approx(0.55)


@pytest.mark.slow
def test_polyak_and_periodic_targets_follow_as_they_should():
    learner = build(DQN(**TINY | {"target": "periodic", "target_every": 120}), Corridor(), [0], 200)
    online, target = learner.online.q.weight, learner.target.q.weight
    first = target.clone()
    for _ in range(119):
        learner.advance()
    assert learner.updates > 0
    assert torch.equal(target, first)
    learner.advance()  # the copy at step 120
    assert torch.equal(target, online)
    assert not torch.equal(target, first)
    for _ in range(10):
        learner.advance()
    assert not torch.equal(online, target)  # it learns on
    before, now = target.clone(), online.clone()
    learner._follow(0.25)
    torch.testing.assert_close(target, 0.75 * before + 0.25 * now)
    learner._follow(1)
    assert torch.equal(target, now)


@pytest.mark.slow
def test_visits_of_true_states_are_counted():
    learner, episodes = learn(DQN(**TINY | {"bonus": "count"}), steps=60)
    assert learner.visits.sum() == 60 + 1 + len(episodes)  # every step arrives somewhere, and so does every reset
    assert learner.first_visit[0, 0] == 0
    np.testing.assert_array_equal(learner.first_visit[0] >= 0, learner.visits[0] > 0)


def test_a_count_bonus_without_true_states_is_one_clear_line():
    env = Corridor()
    env.n_states = 0
    with pytest.raises(ValueError, match="bonus count needs an env that tells its true states"):
        build(DQN(**TINY | {"bonus": "count"}), env, [0], 10)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run():
    agent = dataclasses.replace(DQN(**TINY), rate=1e30)
    with pytest.raises(ValueError, match=r"step \d+: the loss is (nan|inf); a smaller rate may help"):
        learn(agent, steps=200)


@pytest.mark.slow
def test_the_papers_network_takes_a_few_updates_with_each_agent():
    for name in ("dqn", "dqn-mmc", "rnd", "dqn-sr", "dqn-sf-pf"):
        agent = spie.agent(name, batch=2, learning_starts=60, replay=200, target_every=64)
        learner, _ = learn(agent, steps=68, size=84, cap=20)
        assert learner.updates == 3
        assert finite(learner)
