"""Table 3: the agents of Table 1 with fixed SR and FR."""

from spie.paper import published as paper
from spie.paper.chains import CHAINS, chain_table, earns
from spie.paper.claims import Claim, printed_above
from spie.paper.contenders import of
from spie.paper.measures import compare, reward, together
from spie.paper.registry import register_experiment
from spie.paper.rules import LESS, MORE

SR, FR, SRR = of("table1", "sarsa-sr", "sarsa-fr", "sarsa-srr")
SR_FIXED, FR_FIXED, SRR_FIXED = of("table3", "sarsa-sr-fixed", "sarsa-fr-fixed", "sarsa-srr-fixed")

# fmt: off
CLAIMS = (
    Claim("fixed-sr-fr-worse", "Appendix B", "Table 3",
          "On the chains SARSA-SR and SARSA-FR earn less when fixed, SARSA-FR on SixArms excepted.",
          "mean reward fixed over learned: less; more for SARSA-FR on SixArms",
          together(earns(SR_FIXED, SR, what="sarsa-sr", **LESS),
                   compare(reward, FR_FIXED, [FR], ["riverswim"], "sarsa-fr riverswim", **LESS),
                   compare(reward, FR_FIXED, [FR], ["sixarms"], "sarsa-fr sixarms", **MORE))),
    Claim("fixing-improves-srr", "Appendix B", "Table 3", "On the chains SARSA-SRR earns more with a fixed SR.",
          "mean reward fixed over learned: more", earns(SRR_FIXED, SRR, **MORE),
          printed_above("sarsa-srr-fixed", ["sarsa-srr"], tuple(CHAINS), paper.TABLE_1 | paper.TABLE_3)),
    Claim("table3-best", "Appendix B", "Table 3", "Of the agents with fixed representations SARSA-SRR earns most.",
          "mean reward over that of fixed SARSA-SR and SARSA-FR: more",
          earns(SRR_FIXED, SR_FIXED, FR_FIXED, **MORE)),
)
# fmt: on

register_experiment(chain_table("table3", "Table 3: the same with fixed SR and FR", paper.TABLE_3, CLAIMS))
