"""SPIE's r_SR-R: away from places that many others lead to."""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("sr-r", "SARSA with M[s, s'] - |M[:, s']|, away from where many lead"))
