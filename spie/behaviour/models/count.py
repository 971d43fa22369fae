"""Visit counts: 1 / sqrt(visits) as a bonus, with an optimistic start, so that what is new is worth most."""

from spie.behaviour.model import bonus_model, register_model

register_model(bonus_model("count", "a bonus for rarely visited places, optimistic start", q0=20.0))  # 1 / (1 - gamma)
