import numpy as np

from made_up import a_trace
from spie.paper.claims import judge
from spie.paper.figure3 import CLAIMS, shortest_paths
from spie.tasks import grid


def test_the_second_round_of_a_goal_is_compared_with_its_first():
    steps = np.repeat([10, 20, 30, 5, 20, 60], 30)  # goals G, G1, G2, and again
    trace = a_trace(np.zeros((12, 3)), episode_steps=np.tile(steps, (12, 1)))

    class Moving:
        def trace(self, experiment, env, agent, **variant):
            return trace if env.endswith("/moving-goal") else None

    def parts_of(claim_id):
        (found,) = judge(Moving(), [claim for claim in CLAIMS if claim.id == claim_id])
        return found.parts

    parts = parts_of("ever-shorter")
    assert [part.value for part in parts] == [0.5, 0.5, 1, 1, 2, 2] * 2
    assert [part.value for part in parts_of("ever-shorter-than-sarsa")] == [1] * 12


def test_shortest_paths_are_those_of_the_map():
    assert shortest_paths(grid("of-small", task="goal")) == [18]  # from corner to corner
    assert shortest_paths(grid("of-small", task="moving-goal")) == [18, 9, 9]
    assert shortest_paths(grid("S.#.\n..#G\n....", task="goal")) == [6]  # round the wall: 2 down, 3 right, 1 up
