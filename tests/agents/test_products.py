import pytest
import torch

from corridor import Corridor
from spie.agents.dqn import products
from spie.agents.dqn.agent import DQN
from spie.agents.dqn.build import build
from spie.agents.dqn.networks import Network, NetworkOptions, architecture
from spie.agents.dqn.products import FEWEST, check_onednn, has_onednn, linear

torch.set_num_threads(1)
needs_onednn = pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")
SHAPES = [(32, 1024, 64), (33, 401, 129), (64, 70, 512)]


def parts(batch, n_in, n_out, seed=0):
    """x, weight, bias, and a gradient of the output."""
    generator = torch.Generator().manual_seed(seed)
    x, weight = torch.randn(batch, n_in, generator=generator), torch.randn(n_in, n_out, generator=generator)
    assert batch * n_in * n_out >= FEWEST
    return x, weight, torch.randn(n_out, generator=generator), torch.randn(batch, n_out, generator=generator)


def gradients(x, weight, bias, g, fully):
    leaves = [p.clone().requires_grad_() for p in (x, weight, bias)]
    y = linear(*leaves, fully)
    y.backward(g)
    return y.detach(), *(p.grad for p in leaves)


@needs_onednn
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fully", [False, True])
def test_a_product_and_its_gradients_are_those_of_float64_to_the_rounding_of_their_sums(shape, fully, monkeypatch):
    monkeypatch.setattr(products, "is_amd", lambda: True)  # so that oneDNN is used either way
    x, weight, bias, g = parts(*shape)
    batch, n_in, n_out = shape
    found = gradients(x, weight, bias, g, fully)
    X, W, b, G = (p.double() for p in (x, weight, bias, g))
    sums = [(X @ W + b, n_in + 1), (G @ W.T, n_out), (X.T @ G, batch), (G.sum(0), batch)]
    sizes = [X.abs() @ W.abs() + b.abs(), G.abs() @ W.T.abs(), X.T.abs() @ G.abs(), G.abs().sum(0)]
    unit = 2.0**-24
    for value, (expected, terms), size in zip(found, sums, sizes, strict=True):
        assert ((value.double() - expected).abs() <= terms * unit * size).all()  # whatever the order of the sum


@needs_onednn
@pytest.mark.skipif(not products.is_amd(), reason="elsewhere torch computes this gradient by itself")
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_used_without_being_asked_for_has_the_bits_of_torch(shape):
    x, weight, bias, g = parts(*shape)
    y, _, of_weight, _ = gradients(x, weight, bias, g, fully=False)
    assert torch.equal(y, torch.addmm(bias, x, weight))
    assert torch.equal(of_weight, x.T @ g)


@needs_onednn
@pytest.mark.slow
def test_an_agent_learns_with_either_and_their_weights_stay_close():
    def learned(**options):
        settings = DQN(preset="small", learning_starts=64, batch=256, network="small", device="cpu", **options)
        learner = build(settings, Corridor(), [0], 200)
        while learner.step < 80:
            learner.advance()
        return torch.cat([p.detach().ravel() for p in learner.online.parameters()])

    by_torch, by_onednn = learned(), learned(products="onednn")
    assert not torch.equal(by_torch, torch.zeros_like(by_torch))
    torch.testing.assert_close(by_onednn, by_torch, rtol=0, atol=5e-4)  # the rate of Adam, which bounds each step


@needs_onednn
def test_a_network_and_its_gradients_are_the_same_up_to_rounding_with_either():
    def found(onednn):
        generators = [torch.Generator().manual_seed(0)]
        options = NetworkOptions(onednn=onednn)
        network = Network((4, 84, 84), 3, architecture("nature"), generators, options=options)
        x = torch.rand(1, 8, 4, 84, 84, generator=torch.Generator().manual_seed(1))
        phi = network.phi(x)
        frame = network.decoder(phi, torch.zeros(1, 8, dtype=torch.long))
        (frame.square().mean() + network.psi(phi).square().sum() + network.values(phi).square().sum()).backward()
        return {name: p.grad for name, p in network.named_parameters() if p.grad is not None}

    by_torch, by_onednn = found(False), found(True)
    assert len(by_torch) > 20
    for name, gradient in by_torch.items():
        torch.testing.assert_close(by_onednn[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max()))


@pytest.mark.parametrize(("device", "precision"), [("cuda", "fp32"), ("cpu", "bf16")])
def test_onednn_where_there_is_none_is_one_line(device, precision):
    with pytest.raises(ValueError, match="products=onednn is for cpu and fp32"):
        check_onednn(device, precision)


def test_a_word_that_is_no_library_is_refused():
    with pytest.raises(ValueError, match='no products of DQN "mkl"'):
        DQN(products="mkl")
