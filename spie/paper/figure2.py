"""Figure 2: the network of DQN-SF-PF, with the shapes that a state of four frames passes through."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spie.paper.atari import SHAPE
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import HeadLayers, LayerBox, NetworkDiagram, SectionPart, Text

if TYPE_CHECKING:
    from spie.agents.dqn.networks import NetworkLayer

ACTIONS = 18


def boxes(layers: "Sequence[NetworkLayer]", last: str = "") -> list[LayerBox]:
    """A box for each layer, under the name of its kind; `last` is the name of the last."""
    found = [LayerBox(layer.kind, layer.shape) for layer in layers]
    return [*found[:-1], found[-1]._replace(name=last or found[-1].name)]


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The network as it is built."""
    try:
        from spie.agents.dqn.networks import layers  # loads torch
    except ImportError:
        return [Text("", ['Drawing the network needs torch: pip install "spie-rl[deep]"'])]

    built = layers("paper", SHAPE, actions=ACTIONS)

    trunk = [LayerBox("frames", SHAPE), *boxes(built.encoder, last="FC, unit length: φ")]
    heads = [
        HeadLayers("Q", boxes(built.q)),
        HeadLayers("ψ", boxes(built.psi), is_cut=True),
        HeadLayers("ξ", boxes(built.xi), is_cut=True),
    ]
    embedded, *decoder = boxes(built.decoder, last="next frame")
    embedded = embedded._replace(name="FC, times action")
    millions = built.parameters / 1e6
    caption = f"{millions:.2f} million parameters; ‖: no gradient goes back; φ and the action predict the next frame"
    return [NetworkDiagram(caption, trunk, heads, [embedded, *decoder])]


register_experiment(Experiment("figure2", "Figure 2: the network of DQN-SF-PF", section))
