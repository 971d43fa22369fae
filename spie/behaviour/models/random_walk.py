"""Any legal move, each alike: what every other model is held against."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import Model, register_model

WALKER = Sarsa(reward="none", alpha=0.0, policy="softmax", next_action="carry")
register_model(Model("random", WALKER, (), "any legal move, each alike"))
