"""Table 2: five deep agents on six Atari games."""

from typing import Any

from spie.paper import atari
from spie.paper import atari_measures as by
from spie.paper import published as paper
from spie.paper.claims import Claim, printed_above
from spie.paper.experiment import Tier, in_blocks
from spie.paper.registry import register_experiment
from spie.paper.rules import OVER_BUDGET
from spie.runs.run import Run

GAMES = tuple(dict.fromkeys(game for game, _ in paper.TABLE_2))
ABOVE_SR = ("gravitar", "montezuma-revenge", "private-eye", "solaris")


HOURS = 10**6  # frames of the tier of that name
HOURS_GAMES = ("montezuma-revenge", "freeway")
HOURS_AGENTS = ("dqn-sf-pf", "dqn-mmc", "dqn-sr", "rnd", "dqn-sp-novelty")  # the last is ours: no printed cell


def runs(seeds: int, frames: int = atari.SMALL_TIER, network: str | None = None) -> list[Run]:
    """Six games, five agents."""
    return [atari.game_run(game, agent, frames, seeds, network) for game, agent in paper.TABLE_2]


def runs_of_hours(seeds: int) -> list[Run]:
    """Two games, four agents and one of ours; those first of which one seed says most."""
    return [atari.game_run(game, agent, HOURS, seeds, "nature") for agent in HOURS_AGENTS for game in HOURS_GAMES]


TIERS = {
    "minutes": Tier(atari.SMALL_TIER, 1),
    "hours": Tier(HOURS, 2, in_blocks(runs_of_hours, 1)),
    "paper": Tier(atari.PAPER_FRAMES, 10),
}


def printed(run: Run) -> paper.Cell | None:
    return paper.TABLE_2.get((run.env, run.agent))


LESS: dict[str, Any] = {"unmeasured": OVER_BUDGET, "less": by.less("table2")}
RIVALS = ["dqn", "dqn-mmc", "rnd", "dqn-sr"]
THIRD = paper.FRAMES_TO_LEARN["dqn-sf-pf"] / paper.FRAMES_TO_LEARN["dqn-sr"]

# fmt: off
CLAIMS = (
    Claim("atari-best", "Abstract", "Table 2",
          "DQN-SF-PF scores higher than other methods on Atari games with rare rewards.",
          "Table 2, all games and agents: score less the other's, above 0",
          by.above("table2", "dqn-sf-pf", RIVALS, GAMES),
          printed_above("dqn-sf-pf", RIVALS, GAMES, paper.TABLE_2), **LESS),
    Claim("atari-above-sr", "Section 4", "Table 2", "DQN-SF-PF scores significantly higher than DQN-SR on four games.",
          "Table 2, 2 standard errors, the printed spreads read as standard deviations of 10 seeds",
          by.above("table2", "dqn-sf-pf", ["dqn-sr"], ABOVE_SR),
          printed_above("dqn-sf-pf", ["dqn-sr"], ABOVE_SR, paper.TABLE_2, 10), **LESS),
    Claim("atari-like-sr", "Section 4", "Table 2", "It scores about the same as DQN-SR on Freeway and Venture.",
          "Table 2: score over the other's, similar",
          by.similar("table2", "dqn-sf-pf", "dqn-sr", ("freeway", "venture")), **LESS),
    Claim("atari-above-rnd", "Section 4", "Table 2", "DQN-SF-PF scores higher than RND on all six games.",
          "Table 2: score less the other's, above 0", by.above("table2", "dqn-sf-pf", ["rnd"], GAMES),
          printed_above("dqn-sf-pf", ["rnd"], GAMES, paper.TABLE_2), **LESS),
    Claim("atari-efficiency", "Section 4", "Table 2",
          "DQN-SF-PF learns faster, too: on Montezuma's Revenge in a third of DQN-SR's frames.",
          "frames until the score is near its final one, over DQN-SR's; printed: "
          + " against ".join(f"{n / 1e6:g} million" for n in paper.FRAMES_TO_LEARN.values()),
          by.saturates("table2", "montezuma-revenge", "dqn-sf-pf", "dqn-sr", THIRD), **LESS),
    Claim("atari-losses", "Section 4", "eq. 18", "The printed weights bring the four losses to similar scales.",
          "mean of each weighted loss over Q's, second half of the run: within a factor of ten",
          by.scales("table2", "dqn-sf-pf", GAMES), **LESS),
)
# fmt: on

register_experiment(
    atari.game_experiment(
        "table2", "Table 2: Atari scores", printed, runs, claims=CLAIMS, published=paper.TABLE_2, tiers=TIERS
    )
)
