"""Table 1: five agents on RiverSwim and SixArms."""

from spie.paper import published as paper
from spie.paper.chains import CHAINS, chain_table, earns
from spie.paper.claims import Claim, printed_above
from spie.paper.contenders import CONTROLS, of
from spie.paper.registry import register_experiment
from spie.paper.rules import MORE, MUCH_MORE, SIMILAR

BASELINES = ("sarsa", "sarsa-sr", "sarsa-fr")
SRR, SR_PR = of("table1", "sarsa-srr", "sarsa-sr-pr")

# fmt: off
CLAIMS = (
    Claim("table1-best", "Section 4", "Table 1", "SARSA-SRR earns significantly more than all other agents of Table 1.",
          "mean reward over that of the others: much more",
          earns(SRR, *of("table1", *BASELINES), SR_PR, **MUCH_MORE),
          printed_above("sarsa-srr", [*BASELINES, "sarsa-sr-pr"], tuple(CHAINS), paper.TABLE_1, 100)),
    Claim("table1-above-baselines", "Section 4", "Table 1",
          "SARSA-SRR earns significantly more than the three agents named before: SARSA, SARSA-SR and SARSA-FR.",
          "mean reward over that of the others: much more",
          earns(SRR, *of("table1", *BASELINES), **MUCH_MORE),
          printed_above("sarsa-srr", BASELINES, tuple(CHAINS), paper.TABLE_1, 100)),
    Claim("table1-best-of-controls", "Section 4", "Table 1",
          "SARSA-SRR earns more than agents without representation.",
          "mean reward over that of the controls: more",
          earns(SRR, *of("table1", *CONTROLS), **MORE), ours=True, controls=True),
    Claim("sr-pr-comparable", "Section 4", "Table 1", "With the PR for the SR's columns, rewards are comparable.",
          "mean reward of SARSA-SR-PR over SARSA-SRR's: similar", earns(SR_PR, SRR, **SIMILAR)),
)
# fmt: on

TITLE = "Table 1: reward on RiverSwim and SixArms in 5000 steps"
register_experiment(chain_table("table1", TITLE, paper.TABLE_1, CLAIMS))
