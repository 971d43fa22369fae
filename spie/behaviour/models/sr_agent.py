"""The classic SR agent: the value of a neighbour is M[neighbour, :] w, w is 1 at the goal.

M starts at (I - gamma T)^-1, T the chain of an earlier phase or else the random walk in the first maze, and learns all
the while. The inverse temperature is 1, as where the model was published; "sr-agent" with it free is "sr-agent-free".
"""

from spie.behaviour.model import ALPHA, INVERSE_TEMPERATURE, ChoiceModel, Parameter, register_model
from spie.behaviour.state_values import PLACE_WALKS, StateValues

GAMMA = Parameter("gamma", 0.01, 0.999)
WALKER = StateValues(start="successors")
SUMMARY = "value of a neighbour = M[neighbour, goal]"
FREE = "the SR agent with its inverse temperature free"
register_model(ChoiceModel("sr-agent", WALKER, (ALPHA, GAMMA), SUMMARY, ("goal",), walks=PLACE_WALKS))
register_model(
    ChoiceModel("sr-agent-free", WALKER, (ALPHA, GAMMA, INVERSE_TEMPERATURE), FREE, ("goal",), walks=PLACE_WALKS)
)
