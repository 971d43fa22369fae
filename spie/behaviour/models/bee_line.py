"""Straight to the goal, as the crow flies, with momentum: no learning, no knowledge of the walls."""

from spie.behaviour.model import INVERSE_TEMPERATURE, TERMS, ChoiceModel, register_model
from spie.behaviour.state_values import PLACE_WALKS, StateValues

WALKER = StateValues(start="bee-line", alpha=0.0)
PARAMETERS = (INVERSE_TEMPERATURE, *TERMS["turn-back"], *TERMS["heading"])
SUMMARY = "to the goal as the crow flies, with momentum"
register_model(ChoiceModel("bee-line", WALKER, PARAMETERS, SUMMARY, ("goal", "map"), walks=PLACE_WALKS))
