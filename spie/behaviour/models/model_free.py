"""A model-free agent: SARSA on the rewards alone."""

from spie.agents.sarsa.settings import Sarsa
from spie.behaviour.model import ALPHA, INVERSE_TEMPERATURE, ChoiceModel, Parameter, register_model

WALKER = Sarsa(reward="none", policy="softmax", next_action="carry")
PARAMETERS = (ALPHA, Parameter("gamma", 0.01, 0.999), INVERSE_TEMPERATURE)
register_model(ChoiceModel("model-free", WALKER, PARAMETERS, "SARSA on the rewards alone", ("reward",)))
