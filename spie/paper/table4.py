"""Table 4: the ablations of r_SR-R, eqs 22 and 23."""

from spie.paper import published as paper
from spie.paper.chains import CHAINS, chain_table, earns
from spie.paper.claims import Claim, printed_above
from spie.paper.contenders import of
from spie.paper.registry import register_experiment
from spie.paper.rules import LESS, MORE, NO_LESS

SRR, A, B, C = of("table4", "sarsa-srr", "sarsa-srr-a", "sarsa-srr-b", "sarsa-srr-c")

# fmt: off
CLAIMS = (
    Claim("combination", "Section 4", "Table 4", "Both parts of r_SR-R together earn more than either alone.",
          "mean reward over that of (a), prospective alone, and (b), retrospective alone: more",
          earns(SRR, A, B, **MORE),
          printed_above("sarsa-srr", ["sarsa-srr-a", "sarsa-srr-b"], tuple(CHAINS), paper.TABLE_4)),
    Claim("prospective-alone", "Appendix B", "eq. 22, Table 4", "The prospective part (a) alone is not enough.",
          "mean reward of (a) over SARSA-SRR's: less", earns(A, SRR, **LESS)),
    Claim("retrospective-alone", "Appendix B", "eq. 22, Table 4",
          "The retrospective part (b) alone does about as well as the whole, or better.",
          "mean reward of (b) over SARSA-SRR's: no less", earns(B, SRR, **NO_LESS)),
    Claim("balance", "Appendix B", "eq. 23, Table 4", "Without a pull to bottlenecks, as in (c), the agent earns less.",
          "mean reward of (c) over SARSA-SRR's: less", earns(C, SRR, **LESS)),
)
# fmt: on

register_experiment(chain_table("table4", "Table 4: ablations (a), (b), (c) of SR-R", paper.TABLE_4, CLAIMS))
