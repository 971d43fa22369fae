"""Claims that restate others: abstract, introduction and conclusion."""

from spie.paper.claims import Claim
from spie.paper.registry import register_claims

# fmt: off
CLAIMS = (
    Claim("abstract", "Abstract", "",
          "SPIE explores more efficiently and more plausibly where rewards are rare and regions joined by doors.",
          "as coverage-fastest, goal-efficiency and cycling",
          same_as=("coverage-fastest", "goal-efficiency", "cycling")),
    Claim("introduction", "Section 1", "",
          "In discrete and continuous tasks SPIE learns from fewer samples and ends with a higher return.",
          "as table1-above-baselines, goal-efficiency, asymptote and mountain-car, but more where those say much more",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote", "mountain-car"), plain=True),
    Claim("conclusion-structure", "Section 5", "",
          "Retrospective information leads to bottlenecks and between regions.",
          "as border-and-doors and cycling", same_as=("border-and-doors", "cycling")),
    Claim("conclusion-coverage", "Section 5", "", "SPIE explores discrete MDPs faster in the absence of reward.",
          "as coverage-fastest", same_as=("coverage-fastest",)),
    Claim("conclusion-cycling", "Section 5", "", "SPIE cycles between clusters.", "as cycling",
          same_as=("cycling",)),
    Claim("conclusion-improves", "Section 5", "",
          "In discrete and continuous tasks SPIE improves on other bonuses in sample efficiency, final performance and "
          "adapting to changes.", "as introduction, and moving-goals",
          same_as=("table1-above-baselines", "goal-efficiency", "asymptote", "mountain-car", "moving-goals"),
          plain=True),
)
# fmt: on

register_claims("restatements", CLAIMS)
