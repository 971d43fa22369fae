"""The ablation of Appendix D: Montezuma's Revenge with and without the auxiliary task of reconstruction."""

from spie.paper import atari
from spie.paper import published as paper
from spie.paper.claims import Claim
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.rules import OVER_BUDGET
from spie.runs.run import Run

GAME = "montezuma-revenge"
WITHOUT = {"reconstruction": False}


def runs(seeds: int, frames: int = atari.SMALL_TIER) -> list[Run]:
    """With it, which is a run of Table 2, and without."""
    return [
        atari.game_run(GAME, agent, frames, seeds, **({} if reconstruction else WITHOUT))
        for agent, reconstruction in paper.RECONSTRUCTION
    ]


def printed(run: Run) -> paper.Cell:
    return paper.RECONSTRUCTION[run.agent, run.variant != WITHOUT]


WITH_IT, WITHOUT_IT, SF_WITHOUT = (cell.mean for cell in paper.RECONSTRUCTION.values())

# fmt: off
CLAIMS = (
    Claim("atari-reconstruction", "Appendix D", "", "Without reconstruction DQN-SF-PF scores significantly less.",
          f"Montezuma's Revenge with and without; printed: {WITH_IT} and {WITHOUT_IT}", unmeasured=OVER_BUDGET),
    Claim("atari-without-reconstruction", "Appendix D", "", "Without it, SF-PF still scores more than SF alone.",
          f"Montezuma's Revenge, both without; printed: {WITHOUT_IT} and {SF_WITHOUT}", unmeasured=OVER_BUDGET),
)
# fmt: on

register_experiment(
    Experiment(
        "recon",
        "Montezuma's Revenge with and without reconstruction (Appendix D)",
        atari.section(printed),
        runs,
        claims=CLAIMS,
        measure=atari.scored,
        compared=atari.beside(printed),
        long=True,
        on="processes",
        frames=atari.SMALL_TIER,
    )
)
