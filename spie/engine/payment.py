"""How a bonus is paid by compiled agents: in deviations from its mean."""

from typing import no_type_check

import numpy as np


@no_type_check
def standardised(lane, bonus):
    """A bonus by how far it lies from the mean of all so far, in deviations, less 1."""
    lane.n_bonuses += 1.0
    difference = bonus - lane.bonus_mean
    lane.bonus_mean += difference / lane.n_bonuses
    lane.bonus_squares += difference * (bonus - lane.bonus_mean)
    if lane.bonus_squares <= 0.0:
        return -1.0
    return (bonus - lane.bonus_mean) * np.sqrt(lane.n_bonuses / lane.bonus_squares) - 1.0
