"""What a learner is made of; `build` makes them from settings, a test may make its own; and what it tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spie.agents.dqn.bonuses import DeepBonus, Scale
from spie.agents.dqn.networks import Network
from spie.agents.dqn.optimisers import Adam, RMSprop
from spie.agents.dqn.outlook import Outlook
from spie.agents.dqn.replay import FrameReplay


@dataclass(frozen=True)
class Parts:
    """The parts of a `Learner`."""

    env: Any  # a VectorEnv with the environments of all lanes, lane by lane; see `spie.tasks.base.ImageTask`
    online: Network
    target: Network
    optimiser: RMSprop | Adam
    bonus: DeepBonus | None
    scale: Scale
    replays: Sequence[FrameReplay]  # one per lane
    rngs: Sequence[np.random.Generator]  # one per lane, for actions and samples
    device: str
    frame_skip: int = 1  # frames that a step takes
    outlook: Outlook | None = None  # where the bonus asks for novelty, or a potential is paid


@dataclass(frozen=True)
class Episode:
    """An episode that just ended."""

    lane: int
    env: int
    step: int  # of the lane, when it ended
    reward: float  # extrinsic, undiscounted, before clipping
    length: int
    terminal: bool  # False: truncated
