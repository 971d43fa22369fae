"""Momentum: one weight for turning back, one for going straight on."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import TERMS, ChoiceModel, register_model

WALKER = Sarsa(reward="none", alpha=0.0, policy="softmax", next_action="carry")
PARAMETERS = TERMS["turn-back"] + TERMS["heading"]
register_model(ChoiceModel("heading", WALKER, PARAMETERS, "turning back and going straight on", ("map",)))
