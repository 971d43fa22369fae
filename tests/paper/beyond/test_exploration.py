"""The judge of exploration: scores by what could be had, exact evaluation of greedy policies, seeds and tasks apart."""

import numpy as np
import pytest

import spie
from spie.paper.beyond import exploration
from spie.paper.beyond.exploration_page import outcome
from spie.paper.beyond.exploration_tasks import (
    HELD_OUT,
    TASKS,
    TUNING,
    best_episode,
    goals,
    greedy_success,
    shortest,
    steps_after_a_switch,
)


def optimal_q(mdp, gamma=0.999):
    """Q of the best policy, by value iteration."""
    Q = np.zeros((mdp.n_states, mdp.n_actions))
    for _ in range(3000):
        V = np.where(mdp.terminal[0], 0, Q.max(axis=1))
        Q = (mdp.prob * (mdp.reward[0] + gamma * V[mdp.next])).sum(axis=2)
    return Q


def test_the_greedy_policy_is_evaluated_exactly():
    mdp = spie.task("frozen-lake", size="4x4")
    best, bumping = optimal_q(mdp), np.tile([1.0, 0, 0, 0], (16, 1))  # always left: never leaves the start
    assert greedy_success(mdp, np.stack([best, bumping]), 100).tolist() == [1.0, 0.0]
    assert greedy_success(mdp, best[None], 5) == [0.0]  # the shortest way takes 6 steps
    slippery = spie.task("frozen-lake", size="4x4", slippery=True)
    (chance,) = greedy_success(slippery, optimal_q(slippery)[None], 100)
    assert chance == pytest.approx(best_episode(slippery, 100), abs=0.01)  # the goal pays 1, so it is the reward


def test_equal_values_are_taken_with_equal_chance():
    mdp = spie.grid("S\nG", "goal")  # up, right, left stay; down reaches the goal
    assert greedy_success(mdp, np.zeros((1, 2, 4)), 2)[0] == pytest.approx(1 - 0.75**2)


@pytest.mark.parametrize("name", ["frozen-lake-8x8", "deep-sea-20", "taxi", "cliff-walking"])
def test_goals_are_what_pays_most_to_end_with(name):
    mdp = TASKS[name].mdp
    assert goals(mdp).sum() >= 1
    assert goals(mdp).sum() < mdp.terminal.sum() or name in ("cliff-walking", "taxi")


def test_the_best_of_what_could_be_had():
    assert shortest(TASKS["of-small/goal"].mdp) == 18
    assert shortest(TASKS["of-small/moving-goal"].mdp) == (18 + 9 + 9) / 3
    assert best_episode(TASKS["deep-sea-20"].mdp, 20) == pytest.approx(0.99)
    assert TASKS["cliff-walking"].scale == pytest.approx(13)


def test_seeds_and_tasks_of_choice_and_confirmation_are_apart():
    assert not set(TUNING) & set(HELD_OUT)
    digests = [{task.mdp.digest for task in tasks.values()} for tasks in (TUNING, HELD_OUT)]
    assert not digests[0] & digests[1]
    for choice in exploration.contests(100).values():
        assert not {*choice.seeds} & {*choice.confirm}
        assert len(choice.confirm) == 100
        assert len(choice) <= 64


OWN = {  # what makes each contender differ from plain SARSA, in all of its settings
    "bare": lambda s: s.reward == "none" and not s.optimism and s.q0 == 0,
    "constant": lambda s: s.reward == "constant",
    "optimistic start": lambda s: s.reward == "none" and s.q0 > 0,
    "count as reward": lambda s: s.reward == "count",
    "count as optimism": lambda s: s.reward == "none" and s.optimism > 0 and s.count == "visits",
    "column as optimism": lambda s: s.reward == "none" and s.optimism > 0 and s.count in ("sr-column", "pr-column"),
    "sp-novelty": lambda s: s.reward == "count" and s.standardised and s.potential,
    "etd": lambda s: s.reward == "etd",
    "random": lambda s: s.reward == "none" and s.epsilon == 1,
    "sarsa-sr": lambda s: s.reward == "sr",
    "sarsa-fr": lambda s: s.reward == "fr",
    "sarsa-srr": lambda s: s.reward == "sr-r",
    "sarsa-sr-pr": lambda s: s.reward == "sr-pr",
    "spie": lambda s: isinstance(s, spie.Planner) and s.curiosity > 0,
}


def test_every_contender_tries_what_its_name_says():
    found = exploration.contests(100)
    assert set(found) == set(OWN) == {*exploration.CONTROLS, *exploration.PAPER, *exploration.OURS}
    for name, choice in found.items():
        assert all(OWN[name](choice.settings(i)) for i in range(len(choice))), name


def test_frozen_settings_are_among_those_tried():
    choice = exploration.contests(100)["spie"]
    assert spie.agent("spie") in [choice.settings(i) for i in range(len(choice))]


def test_wins_ties_and_losses_follow_from_the_interval():
    x = np.random.default_rng(0).normal(size=100)
    assert outcome(x + 1, x) == "wins"
    assert outcome(x, x + 1) == "loses"
    assert outcome(x, x + 0.01) == "ties"


@pytest.mark.slow
def test_scores_lie_between_nothing_and_all_that_could_be_had():
    for name in ("of-small", "cluster-simple/moving-goal", "frozen-lake-4x4"):
        task = TASKS[name]
        trace = spie.agent("spie").run(task.mdp, task.steps, 3, episodes=task.episodes, keep=task.keep)
        assert ((task.score(trace) > 0.1) & (task.score(trace) <= 1)).all()
        if name.endswith("goal"):
            assert (steps_after_a_switch(trace) > 9).all()
