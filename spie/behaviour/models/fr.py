"""r_FR: high where many places are soon reached for the first time."""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("fr", "SARSA with |F[s, :]|, high where much is soon reached"))
