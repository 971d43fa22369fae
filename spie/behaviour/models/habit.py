"""What was done here before: a trace of past choices in each state, whatever came of them."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import TERMS, ChoiceModel, register_model

WALKER = Sarsa(reward="none", alpha=0.0, policy="softmax", next_action="carry")
register_model(ChoiceModel("habit", WALKER, TERMS["habit"], "what was done in this place before"))
