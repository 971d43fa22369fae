"""A planner that knows the goal: the value of a neighbour is gamma^d, d the shortest way from there to the goal.

The way is planned in the maze as the walker knows it: which moves are open it sees in the place where it is, and
elsewhere it remembers them as it saw them last. Before the first trial it knows what the SR agent starts with: the
chain of an earlier phase, or else the first maze. There is nothing left to hope for, so `spie.Planner`'s optimism is
not needed.
"""

from spie.behaviour.model import INVERSE_TEMPERATURE, ChoiceModel, Parameter, register_model
from spie.behaviour.state_values import PLACE_WALKS, StateValues

WALKER = StateValues(start="planned", alpha=0.0)
PARAMETERS = (Parameter("gamma", 0.01, 0.999), INVERSE_TEMPERATURE)
SUMMARY = "the shortest way to the goal, as far as known"
register_model(ChoiceModel("planner", WALKER, PARAMETERS, SUMMARY, ("goal",), walks=PLACE_WALKS))
