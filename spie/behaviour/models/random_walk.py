"""Any legal move, each alike: what every other model is held against."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import ChoiceModel, register_model

WALKER = Sarsa(reward="none", alpha=0.0, policy="softmax", next_action="carry")
register_model(ChoiceModel("random", WALKER, (), "any legal move, each alike"))
