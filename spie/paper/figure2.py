"""Figure 2: the network of DQN-SF-PF, with the shapes that a state of four frames passes through."""

from spie.paper.atari import SHAPE
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.results import Results
from spie.paper.sections import HeadLayers, LayerBox, NetworkDiagram, SectionPart, Text

ACTIONS = 18


def section(experiment: Experiment, results: Results) -> list[SectionPart]:
    """The network as it is built."""
    try:
        from spie.agents.dqn.networks import layers  # loads torch
    except ImportError:
        return [Text("", ['Drawing the network needs torch: pip install "spie-rl[deep]"'])]

    built = layers("paper", SHAPE, actions=ACTIONS)

    def branch(*places: str, last: str = "") -> list[LayerBox]:
        found = [built[place] for place in built if place.startswith(places)]
        names = [layer.what for layer in found]
        names[-1] = last or names[-1]
        return [LayerBox(name, layer.shape) for name, layer in zip(names, found, strict=True)]

    trunk = [LayerBox("frames", SHAPE), *branch("encoder", last="FC, unit length: φ")]
    heads = [HeadLayers("Q", branch("q"))]
    heads += [HeadLayers(name, branch(place), is_cut=True) for name, place in (("ψ", "psi"), ("ξ", "xi"))]
    embedded, *decoder = branch(
        "decoder.features", "decoder.first", "decoder.second", "decoder.deconv", last="next frame"
    )
    embedded = embedded._replace(name="FC, times action")
    millions = sum(layer.parameters for layer in built.values()) / 1e6
    caption = f"{millions:.2f} million parameters; ‖: no gradient goes back; φ and the action predict the next frame"
    return [NetworkDiagram(caption, trunk, heads, [embedded, *decoder])]


register_experiment(Experiment("figure2", "Figure 2: the network of DQN-SF-PF", section))
