import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch import nn

from spie.agents.dqn.networks import Network, architecture, tiles

torch.set_num_threads(1)


def build(name, shape=(4, 84, 84), actions=18, lanes=1, **options):
    generators = [torch.Generator().manual_seed(lane) for lane in range(lanes)]
    return Network(shape, actions, architecture(name), generators, **options)


def test_the_papers_network_has_26_37_million_parameters_with_18_actions():
    parameters = sum(p.numel() for p in build("paper").parameters())
    assert f"{parameters / 1e6:.2f}" == "26.37"


@pytest.mark.parametrize(
    ("name", "shape", "sizes", "features", "decoder_sizes"),
    [
        ("paper", (4, 84, 84), [(64, 40, 40), (64, 20, 20), (64, 10, 10)], 1024, [(64, 20, 20), (64, 40, 40)]),
        ("nature", (4, 84, 84), [(32, 20, 20), (64, 9, 9), (64, 7, 7)], 512, [(64, 9, 9), (32, 20, 20)]),
        ("small", (1, 20, 20), [(16, 5, 5)], 64, []),
        ("small", (1, 15, 13), [(16, 4, 4)], 64, []),  # padded to 16 x 16, so that no pixel is lost
    ],
)
def test_every_layer_has_the_shape_it_should(name, shape, sizes, features, decoder_sizes):
    network = build(name, shape, actions=3)
    seen = {}
    for path, module in network.named_modules():
        module.register_forward_hook(lambda module, inputs, out, path=path: seen.__setitem__(path, tuple(out.shape)))
    phi = network.phi(torch.rand(1, 2, *shape))
    a = torch.zeros(1, 2, dtype=torch.long)
    assert [seen[f"encoder.convolutions.{i}"] for i in range(len(sizes))] == [(1, 2, *size) for size in sizes]
    assert phi.shape == network.psi(phi).shape == network.xi(phi).shape == (1, 2, features)
    assert network.q(phi).shape == (1, 2, 3)
    assert network.decoder(phi, a).shape == (1, 2, *shape[1:])
    head = architecture(name).head
    assert seen["decoder.embed"] == seen["decoder.features"] == seen["psi.first"] == seen["xi.first"] == (1, 2, head)
    assert seen["decoder.first"] == (1, 2, architecture(name).decoder)
    for i, size in enumerate(decoder_sizes):
        assert seen[f"decoder.deconvolutions.{i}"] == (1, 2, *size)


def test_phi_has_unit_length():
    phi = build("small", (1, 20, 20)).phi(torch.rand(1, 7, 1, 20, 20))
    torch.testing.assert_close(torch.linalg.vector_norm(phi, dim=-1), torch.ones(1, 7))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "nature", "small"])
def test_a_lane_computes_the_same_alone_and_among_others(name):
    """Also a test of our batched products against PyTorch's convolutions, which one lane uses."""
    three, shape = build(name, (2, 40, 36), 3, lanes=3), (2, 40, 36)
    x, a = torch.rand(3, 2, *shape), torch.tensor([[0, 2], [1, 1], [2, 0]])
    phi = three.phi(x)
    frames = three.decoder(phi, a)
    for lane in range(3):
        one = Network(shape, 3, architecture(name), [torch.Generator().manual_seed(lane)])
        here = slice(lane, lane + 1)
        torch.testing.assert_close(one.phi(x[here]), phi[here])
        torch.testing.assert_close(one.decoder(phi[here], a[here]), frames[here], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("stack", [1, 3])
def test_images_read_tile_by_tile_are_the_same_images(stack):
    frames = np.random.default_rng(0).integers(256, size=(2, 5, stack + 1, 20, 20), dtype=np.uint8)
    expected = frames[0, 0, 0].reshape(5, 4, 5, 4)[2, :, 3]  # rows 8 to 11, columns 12 to 15
    assert_array_equal(tiles(frames, 4)[0, 0, 0].reshape(5, 5, 4, 4)[2, 3], expected)
    assert tiles(frames, 0) is frames
    plain, tiled = (build("small", (stack, 20, 20), 4, lanes=2, tiled=tiled) for tiled in (False, True))
    assert (plain.encoder.tile, tiled.encoder.tile) == (0, 4)
    a = torch.zeros(2, 5, dtype=torch.long)
    whole, by_tile = (torch.from_numpy(tiles(frames, side)[:, :, :-1] / 255).float() for side in (0, 4))
    phi = plain.phi(whole)
    torch.testing.assert_close(tiled.phi(by_tile), phi)
    image = plain.decoder(phi, a)
    torch.testing.assert_close(tiled.decoder(phi, a), torch.from_numpy(tiles(image.detach().numpy(), 4)))


@pytest.mark.parametrize(("lanes", "shape"), [(1, (1, 20, 20)), (2, (1, 19, 20))])
def test_one_lane_and_images_that_tiles_do_not_cover_are_read_whole(lanes, shape):
    assert build("small", shape, 4, lanes=lanes, tiled=True).encoder.tile == 0


def gradient_of_encoder(network, value):
    network.zero_grad()
    value.sum().backward()
    return sum(0.0 if p.grad is None else float(p.grad.abs().sum()) for p in network.encoder.parameters())


def test_sf_and_pf_teach_the_encoder_nothing_and_the_others_do():
    network = build("small", (1, 20, 20), 4)
    x, a = torch.rand(1, 3, 1, 20, 20), torch.tensor([[0, 1, 2]])
    assert gradient_of_encoder(network, network.psi(network.phi(x)).square()) == 0
    assert gradient_of_encoder(network, network.xi(network.phi(x)).square()) == 0
    assert gradient_of_encoder(network, network.decoder(network.phi(x), a).square()) > 0
    assert gradient_of_encoder(network, network.q(network.phi(x)).square()) > 0


def test_the_decoder_depends_on_the_action_and_psi_only_where_asked():
    x, left, right = torch.rand(1, 1, 1, 20, 20), torch.tensor([[0]]), torch.tensor([[1]])
    network = build("small", (1, 20, 20), 2)
    phi = network.phi(x)
    assert not torch.equal(network.decoder(phi, left), network.decoder(phi, right))
    assert torch.equal(network.psi(phi, left), network.psi(phi, right))
    network = build("small", (1, 20, 20), 2, psi_actions=True)
    assert not torch.equal(network.psi(phi, left), network.psi(phi, right))


def test_an_agent_builds_only_the_heads_it_uses():
    network = build("small", (1, 20, 20), 4, heads=(), decoder=False)
    assert network.psi is network.xi is network.decoder is None
    assert isinstance(network.q, nn.Module)


def test_an_image_too_small_for_the_network_is_one_clear_line():
    with pytest.raises(ValueError, match="an image of 20 x 20 is too small for this network; try preset small"):
        build("nature", (4, 20, 20))


def test_our_deconvolution_has_the_gradients_of_pytorchs():
    network = build("paper", (2, 40, 36), 3)
    deconv = network.decoder.deconvolutions[1]
    x = torch.rand(1, 2, 64, 9, 8, requires_grad=True)
    y = deconv(x)
    weights = torch.rand_like(y)
    ours = torch.autograd.grad((weights * y).sum(), [x, deconv.weight, deconv.bias])
    weight = deconv.weight[0].movedim(-1, 1)
    y = torch.nn.functional.conv_transpose2d(x[0], weight, deconv.bias[0], 2, 2)
    theirs = torch.autograd.grad((weights[0] * y).sum(), [x, deconv.weight, deconv.bias])
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
