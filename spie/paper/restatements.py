"""Claims that restate others: abstract, introduction and conclusion."""

from spie.paper.claims import Claim
from spie.paper.registry import register_claims

# fmt: off
CLAIMS = (
    Claim("abstract", "Abstract", "",
          "SPIE explores more efficiently and more plausibly where rewards are rare and regions joined by doors.",
          "as coverage-fastest, goal-efficiency and cycling",
          same_as=("coverage-fastest", "goal-efficiency", "cycling")),
    Claim("introduction", "Section 1", "", "SPIE learns from fewer samples and ends with a higher return.",
          "as table1-above-baselines, goal-efficiency and asymptote",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote")),
    Claim("conclusion-structure", "Section 5", "",
          "Retrospective information leads to bottlenecks and between regions.",
          "as border-and-doors and cycling", same_as=("border-and-doors", "cycling")),
    Claim("conclusion-coverage", "Section 5", "", "SPIE explores discrete MDPs faster in the absence of reward.",
          "as coverage-fastest", same_as=("coverage-fastest",)),
    Claim("conclusion-cycling", "Section 5", "", "SPIE cycles between clusters.", "as cycling",
          same_as=("cycling",)),
    Claim("conclusion-improves", "Section 5", "",
          "SPIE improves on other bonuses in sample efficiency, final performance and adapting to changes.",
          "as table1-above-baselines, goal-efficiency, asymptote and moving-goals (discrete tasks)",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote", "moving-goals")),
)
# fmt: on

register_claims("restatements", CLAIMS)
