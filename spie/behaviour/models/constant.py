"""A constant cost of every step, which makes what was not tried look better than what was.

Without an end an optimistic start does the same: Q + 1 / (1 - gamma) obeys the same rule as Q. So it is listed once.
"""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("constant", "SARSA with a cost of every step; the same as an optimistic start"))
