"""Table 2: five deep agents on six Atari games."""

from spie.paper import atari
from spie.paper import published as paper
from spie.paper.claims import Claim, printed_above
from spie.paper.experiment import Experiment
from spie.paper.registry import register_experiment
from spie.paper.rules import OVER_BUDGET
from spie.runs.run import Run

GAMES = tuple(dict.fromkeys(game for game, _ in paper.TABLE_2))
ABOVE_SR = ("gravitar", "montezuma-revenge", "private-eye", "solaris")


def runs(seeds: int, frames: int = atari.SMALL_TIER) -> list[Run]:
    """Six games, five agents."""
    return [atari.game_run(game, agent, frames, seeds) for game, agent in paper.TABLE_2]


def printed(run: Run) -> paper.Cell:
    return paper.TABLE_2[run.env, run.agent]


# fmt: off
CLAIMS = (
    Claim("atari-best", "Abstract", "Table 2",
          "DQN-SF-PF scores higher than other methods on Atari games with rare rewards.",
          "Table 2, all games and agents", unmeasured=OVER_BUDGET,
          printed=printed_above("dqn-sf-pf", ["dqn", "dqn-mmc", "rnd", "dqn-sr"], GAMES, paper.TABLE_2)),
    Claim("atari-above-sr", "Section 4", "Table 2", "DQN-SF-PF scores significantly higher than DQN-SR on four games.",
          "Table 2, 2 standard errors, the printed spreads read as standard deviations of 10 seeds",
          unmeasured=OVER_BUDGET, printed=printed_above("dqn-sf-pf", ["dqn-sr"], ABOVE_SR, paper.TABLE_2, 10)),
    Claim("atari-like-sr", "Section 4", "Table 2", "It scores about the same as DQN-SR on Freeway and Venture.",
          "Table 2", unmeasured=OVER_BUDGET),
    Claim("atari-above-rnd", "Section 4", "Table 2", "DQN-SF-PF scores higher than RND on all six games.",
          "Table 2", unmeasured=OVER_BUDGET, printed=printed_above("dqn-sf-pf", ["rnd"], GAMES, paper.TABLE_2)),
    Claim("atari-efficiency", "Section 4", "Table 2",
          "DQN-SF-PF learns faster, too: on Montezuma's Revenge in a third of DQN-SR's frames.",
          "frames until the score is near its final one; printed: "
          + " against ".join(f"{n / 1e6:g} million" for n in paper.FRAMES_TO_LEARN.values()), unmeasured=OVER_BUDGET),
    Claim("atari-losses", "Section 4", "eq. 18", "The printed weights bring the four losses to similar scales.",
          "mean of each weighted loss", unmeasured=OVER_BUDGET),
)
# fmt: on

register_experiment(
    Experiment(
        "table2",
        "Table 2: Atari scores",
        atari.section(printed),
        runs,
        claims=CLAIMS,
        published=paper.TABLE_2,
        measure=atari.scored,
        compared=atari.beside(printed),
        long=True,
        on="processes",
        frames=atari.SMALL_TIER,
    )
)
