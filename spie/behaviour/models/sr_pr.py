"""r_SR-PR: the same with the predecessor representation in place of the SR's column."""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("sr-pr", "SARSA with M[s, s'] - |N[:, s']|, away from what much led to"))
