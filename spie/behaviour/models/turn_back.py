"""A single weight for going back to where one came from: the simplest model of a path."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import TERMS, ChoiceModel, register_model

WALKER = Sarsa(reward="none", alpha=0.0, policy="softmax", next_action="carry")
register_model(ChoiceModel("turn-back", WALKER, TERMS["turn-back"], "a weight for turning back, mostly negative"))
