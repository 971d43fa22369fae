"""The ablation of Appendix D: Montezuma's Revenge with and without the auxiliary task of reconstruction."""

from typing import Any

from spie.paper import atari
from spie.paper import atari_measures as by
from spie.paper import published as paper
from spie.paper.claims import Claim
from spie.paper.registry import register_experiment
from spie.paper.rules import OVER_BUDGET
from spie.runs.run import Run

GAME = "montezuma-revenge"
WITHOUT: dict[str, Any] = {"reconstruction": False}


def runs(seeds: int, frames: int = atari.SMALL_TIER, network: str | None = None) -> list[Run]:
    """With it, which is a run of Table 2, and without."""
    return [
        atari.game_run(GAME, agent, frames, seeds, network, **({} if reconstruction else WITHOUT))
        for agent, reconstruction in paper.RECONSTRUCTION
    ]


def printed(run: Run) -> paper.Cell:
    return paper.RECONSTRUCTION[run.agent, run.variant != WITHOUT]


WITH_IT, WITHOUT_IT, SF_WITHOUT = (cell.mean for cell in paper.RECONSTRUCTION.values())

LESS: dict[str, Any] = {"unmeasured": OVER_BUDGET, "less": by.less("recon")}

# fmt: off
CLAIMS = (
    Claim("atari-reconstruction", "Appendix D", "", "Without reconstruction DQN-SF-PF scores significantly less.",
          f"Montezuma's Revenge with and without; printed: {WITH_IT} and {WITHOUT_IT}",
          by.above_itself("recon", GAME, "dqn-sf-pf", WITHOUT), **LESS),
    Claim("atari-without-reconstruction", "Appendix D", "", "Without it, SF-PF still scores more than SF alone.",
          f"Montezuma's Revenge, both without; printed: {WITHOUT_IT} and {SF_WITHOUT}",
          by.above("recon", "dqn-sf-pf", ["dqn-sr"], [GAME], **WITHOUT), **LESS),
)
# fmt: on

TITLE = "Montezuma's Revenge with and without reconstruction (Appendix D)"
register_experiment(atari.game_experiment("recon", TITLE, printed, runs, claims=CLAIMS))
