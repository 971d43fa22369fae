"""r_SR: high where little follows, by the successor representation."""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("sr", "SARSA with 1 / |M[s, :]|, high where little follows"))
