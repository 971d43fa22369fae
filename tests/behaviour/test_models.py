"""Models: the walkers are what they are said to be, and what cannot be told apart is fixed and said."""

import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest

import spie
from reference_places import reference_places
from spie.behaviour.model import MODELS, shipped_models
from spie.behaviour.recovery import simulated
from spie.behaviour.state_values import StateValues

HOME = Path(os.environ.get("SPIE_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_data = pytest.mark.skipif(not HOME.is_dir(), reason="the public data is not here; see spie data")
ONE = "S...\n.#..\n...G"
TWO = "S.#.\n....\n.#.G"


def recorded(trials=4, steps=30, subjects=2, seed=0):
    """Random walks in two mazes in turn, with a goal that ends a trial."""
    from spie.behaviour.mazes import read_mazes

    rng, mazes = np.random.default_rng(seed), read_mazes({"one": ONE, "two": TWO})
    columns = {name: [] for name in ("subject", "session", "trial", "step", "state", "maze")}
    for subject in range(subjects):
        for trial in range(trials):
            maze = ["one", "two"][trial % 2]
            mdp, s = mazes[maze], 0
            for step in range(steps):
                for name, value in zip(columns, (subject, trial // 2, trial, step, s, maze), strict=True):
                    columns[name].append(value)
                if mdp.terminal[0][s]:
                    break
                s = int(mdp.next[s, rng.choice(np.flatnonzero(mdp.available[s])), 0])
    return spie.Paths.from_table(columns, {"one": ONE, "two": TWO})


@pytest.mark.slow
def test_the_sr_agent_is_a_whole_successor_matrix_read_at_the_goal():
    paths = recorded()
    one = StateValues(
        alpha=0.3, gamma=0.8, inverse_temperature=4.0, stickiness=0.3, heading=0.5, turn_back=-0.7, lapse=0.05
    )
    model = dataclasses.replace(spie.model("sr-agent"), walker=one, parameters=())
    each = model.run([one, one], paths, np.array([1, 0]), each=True)
    for row, subject in zip(each, ("1", "0"), strict=True):
        expected, _ = reference_places(one, paths, subject)
        np.testing.assert_allclose(row[: len(expected)], expected, rtol=1e-10)
    np.testing.assert_allclose(model.run([one, one], paths, np.array([1, 0])), each.sum(axis=1), rtol=1e-12)


@pytest.mark.slow
def test_the_planner_takes_the_shortest_way_in_the_maze_as_it_saw_it_last():
    paths = recorded()
    model = spie.model("planner")
    values = np.array([[0.8, 3.0]] * 2)  # gamma, inverse temperature
    each = model.log_p(values, paths, np.array([0, 1]), each=True)
    for row, subject in zip(each, ("0", "1"), strict=True):
        expected, opinions = reference_places(model.settings(values[0]), paths, subject)
        np.testing.assert_allclose(row[: len(expected)], expected, rtol=1e-12)
        assert opinions > len({s for trial in paths.of(subject) for s in trial.states[:-1]})  # it did change its mind


@pytest.mark.slow
def test_moves_whose_action_is_not_known_have_the_sum_over_actions():
    mdp = spie.grid("S.G", task="goal", bumps=True)
    known = spie.Paths.from_states([[0, 0, 1, 2]], mdp, actions=[[0, 1, 1]])
    move = spie.Paths.from_states([[0, 0, 1, 2]], mdp)
    one = {"alpha": 0.0, "gamma": 0.5}
    # in the west corner up, down and left all stay: three actions of the same value
    assert np.exp(
        spie.loglikelihood("sr-agent", move, **one) - spie.loglikelihood("sr-agent", known, **one)
    ) == pytest.approx(3)


@pytest.mark.slow
def test_an_action_that_is_not_known_sticks_as_the_first_that_makes_the_move():
    mdp = spie.grid("S..\n...\n..G", task="goal", bumps=True)
    paths = spie.Paths.from_states([[0, 0, 1, 1, 1, 2, 2, 5, 4, 3, 6, 6, 7]], mdp)
    assert (paths.trials[0].actions < 0).sum() == 3  # in corners either of two
    one = StateValues(start="bee-line", alpha=0.0, inverse_temperature=0.7, stickiness=0.8, turn_back=-0.5)
    model = dataclasses.replace(spie.model("bee-line"), walker=one, parameters=())
    (row,) = model.run([one], paths, np.array([0]), each=True)
    np.testing.assert_allclose(row, reference_places(one, paths, "1")[0], rtol=1e-12)


@pytest.mark.slow
def test_a_simulated_walk_ends_at_every_end_of_its_maze():
    maze = dataclasses.replace(spie.grid("..S..", bumps=False), terminal=np.array([True, False, False, False, True]))
    paths = dataclasses.replace(spie.Paths.from_states([[2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3]] * 5, maze), goal=0)
    made = simulated(spie.model("planner"), np.array([[0.5, 0.01]] * 3), paths, np.zeros(3, int), 1)
    assert {int(trial.states[-1]) for trial in made.trials} >= {0, 4}
    assert not any(maze.terminal[0][trial.states[:-1]].any() for trial in made.trials)


@pytest.mark.slow
def test_simulated_walks_keep_starts_mazes_and_lengths_and_repeat_by_seed():
    paths = recorded()
    for name in ("sr-agent", "count"):
        model = spie.model(name).identifiable(paths)
        values = np.array([[parameter.value(0.5) for parameter in model.parameters]] * 2)
        made = simulated(model, values, paths, np.array([0, 1]), 5)
        assert [t.states[0] for t in made.trials] == [t.states[0] for t in paths.trials]
        assert all(
            len(a.states) <= len(b.states) or b.states[-1] == paths.goal
            for a, b in zip(made.trials, paths.trials, strict=True)
        )
        again = simulated(model, values[:1], paths, np.array([1]), 6)
        for one, other in zip(again.trials, made.of("2"), strict=True):
            np.testing.assert_array_equal(one.states, other.states)


@pytest.mark.slow
def test_a_reward_of_the_users_is_a_model():
    @spie.reward("bottleneck")
    def bottleneck(M_next, N_next):
        return N_next - M_next

    paths = recorded()
    model = spie.model("bottleneck+turn-back")
    assert model.names == ("alpha", "eta", "inverse_temperature", "beta", "turn_back")
    assert np.isfinite(spie.loglikelihood("bottleneck", paths, alpha=0.2)).all()


@needs_data
@pytest.mark.slow
def test_golden_values_of_the_rats():
    rats = spie.data.tartarus(HOME / "tartarus", who="rats")
    assert spie.loglikelihood("random", rats).sum() == pytest.approx(-55_451.580430, rel=1e-8)
    published = spie.loglikelihood("sr-agent", rats, alpha=rats.published["alpha"], gamma=rats.published["gamma"])
    assert published.sum() == pytest.approx(-53_649.803157, rel=1e-8)
    # From scratch, three starts: the published likelihood of every rat, up to what the search leaves
    refitted = spie.fit(rats, "sr-agent", starts=3)["sr-agent"].log_p
    assert (refitted >= published - 1e-5).all()


def test_every_reward_that_an_agent_has_is_a_model():
    for name in spie.rewards.reward_names("tables and episodes"):
        assert spie.model(name).walker.rewards in ((name,), ()), name
    assert "beta" not in spie.model("none").names  # of nothing
    with pytest.raises(ValueError, match=r"^no behavioural model \"srx\"") as error:
        spie.model("srx")
    assert "sf-pf" not in str(error.value)  # which needs features


def test_without_rewards_beta_is_fixed_and_this_is_said():
    open_field = spie.grid("of-small")
    model = spie.model("sr-r").identifiable(open_field)
    assert model.names == ("alpha", "eta", "inverse_temperature")
    assert "only scales with the inverse temperature" in model.notes[0]
    paid = spie.model("sr-r").identifiable(spie.grid("of-small", task="goal"))
    assert "beta" in paid.names
    greedy = dataclasses.replace(spie.model("sr-r"), walker=spie.Sarsa(reward="sr-r"))
    fixed = greedy.identifiable(open_field)
    assert fixed.names == ("alpha", "eta")
    assert "does not see it at all" in fixed.notes[0]


def test_the_optimistic_start_of_a_count_grows_with_its_bonus():
    model = spie.model("count")
    for beta in (0.01, 1.0, 300.0):
        assert model.settings([0.1, 1.0, beta]).q0 == pytest.approx(beta / (1 - model.walker.gamma))
        assert model.fixed(beta=beta).walker.q0 == pytest.approx(beta / (1 - model.walker.gamma))
    assert model.with_settings({"beta": 2.0, "q0": 1.0}).q0 == 1


def test_bounds_on_both_sides_of_0_have_a_signed_scale():
    beta = spie.model("sr-r").bounded({"beta": (-100, 1000)}).parameters[-1]
    assert beta.scale == "signed"
    shares = np.array([0.0, 0.2, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(beta.share(beta.value(shares)), shares, atol=1e-12)
    assert beta.value(shares)[[0, -1]] == pytest.approx([-100, 1000])
    assert 0 < beta.share(0.0) < 1
    assert spie.model("sr-r").bounded({"beta": (0.1, 10)}).parameters[-1].scale == "log"


def test_every_shipped_model_has_a_summary_and_stays_within_its_bounds():
    assert len(MODELS.names()) >= 15
    for name, model in MODELS.items():
        assert model.summary, name
        for share in (0.0, 0.5, 1.0):
            model.settings([parameter.value(share) for parameter in model.parameters])
        for parameter in model.parameters:
            np.testing.assert_allclose(parameter.share(parameter.value(np.array([0.1, 0.9]))), [0.1, 0.9])


def test_models_that_cannot_be_asked_are_left_out_with_the_reason():
    paths = spie.Paths.from_states(["den", "fork", "left", "fork", "right"])
    names, why = shipped_models(paths)
    assert "turn-back" in names
    assert "Left out: heading (it needs a map, and these mazes are graphs)" in why
    goals = "Left out: bee-line, sr-agent, sr-agent-free, planner (it needs a goal, and these paths have none)"
    assert goals in why  # one line for all of them


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda paths: spie.loglikelihood("srr", paths), 'no behavioural model "srr"; did you mean "sr-r"?'),
        (lambda paths: spie.loglikelihood("sr-r+left", paths), 'no choice term "left"'),
        (lambda paths: spie.loglikelihood("sr-agent", paths, rate=1), 'no parameter of model sr-agent "rate"'),
        (lambda paths: spie.loglikelihood("sr-agent", paths, alpha=[1, 2, 3]), "alpha must be a number or one for"),
        (lambda paths: spie.loglikelihood("sr-agent", paths, alpha=2), "alpha must lie in [0, 1], not 2"),
        (lambda paths: spie.Parameter("alpha", 1, 0), "bounds must be finite and rise"),
        (lambda paths: spie.Parameter("alpha", 0, 1, "log"), "a logarithmic scale needs positive bounds"),
        (lambda paths: spie.ChoiceModel("m", spie.Sarsa(), (spie.Parameter("nose", 0, 1),)), "no setting of model m"),
        (lambda paths: spie.ChoiceModel("m", StateValues()), "its walks are those of Sarsa, not StateValues"),
    ],
)  # fmt: skip
def test_wrong_questions_get_one_clear_line(call, line):
    with pytest.raises(ValueError, match=r".") as error:
        call(recorded())
    assert line in str(error.value)
    assert "\n" not in str(error.value)
