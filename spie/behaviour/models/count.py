"""Visit counts: 1 / sqrt(visits) as a bonus, with an optimistic start, so that what is new is worth most.

The start is the most that the bonus can pay, beta / (1 - gamma), so it grows with beta. A start that stayed behind
a large beta would make what was done often look best: a habit, not a bonus for what is new.
"""

from spie.behaviour.model import bonus_model, register_model

SUMMARY = "SARSA with a bonus for rarely visited places, optimistic start"
register_model(bonus_model("count", SUMMARY, ("q0",), q0=20.0))  # 1 / (1 - gamma)
