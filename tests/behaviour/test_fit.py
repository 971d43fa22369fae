"""Fits: what was put in comes out, what cannot be done is said, and what is finished is not done again."""

import numpy as np
import pytest
from test_models import recorded

import spie
from spie.behaviour.fit import _paid_otherwise
from spie.behaviour.heldout import error_of_ratio, fold_of_steps
from spie.behaviour.reading import Trial
from spie.behaviour.recovery import information, simulated
from spie.behaviour.rows import Rows
from spie.behaviour.shelf import Shelf
from spie.behaviour.state_values import StateValues
from spie.page.behaviour import _held_out, scatter
from spie.page.plots.curves import curve_panel

MODELS = ("sr-agent", "bee-line")  # which share kernels


@pytest.fixture(scope="module")
def walks():
    """Three subjects who head for the goal, seven trials of up to 60 steps in each of two mazes."""
    paths = recorded(trials=14, steps=60, subjects=3)
    values = np.array([[1.0, -1.5, 0.6], [0.8, -1.0, 0.5], [1.2, -2.0, 0.4]])
    return simulated(spie.model("bee-line"), values, paths, np.arange(3), 1)


@pytest.fixture(scope="module")
def fit(walks):
    return spie.fit(walks, MODELS, starts=3)


@pytest.mark.slow
def test_the_model_that_was_simulated_is_the_best_and_its_weights_are_near(fit):
    table = fit.compare()
    assert table[0]["model"] == "bee-line"
    assert table[0]["best_for"] == 3
    low, high = fit["bee-line"].interval()
    inside = (low <= [[1.0, -1.5, 0.6], [0.8, -1.0, 0.5], [1.2, -2.0, 0.4]]) & (
        high >= [[1.0, -1.5, 0.6], [0.8, -1.0, 0.5], [1.2, -2.0, 0.4]]
    )
    assert inside.sum() >= 7  # of nine intervals of 95 %; fewer than 7 happens once in 2000
    at_random = spie.loglikelihood("random", fit.paths)
    assert at_random == pytest.approx([fit.paths.chance(subject) for subject in fit.paths.subjects])


@pytest.mark.slow
def test_criteria_count_choices_and_not_forced_moves(fit):
    rows = [row for row in fit.rows() if row["model"] == "bee-line"]
    for row, subject in zip(rows, fit.paths.subjects, strict=True):
        n = fit.paths.choices(subject)
        assert n < sum(len(trial.actions) for trial in fit.paths.of(subject)) + 1
        assert row["bic"] == pytest.approx(-2 * row["log_likelihood"] + 3 * np.log(n))
        assert row["aic"] == pytest.approx(-2 * row["log_likelihood"] + 6)
        assert row["per_choice"] == pytest.approx(row["log_likelihood"] / n)


@pytest.mark.slow
def test_estimates_at_a_bound_are_flagged(walks):
    narrow = spie.fit(walks, "bee-line", starts=2, bounds={"turn_back": (0.5, 2.0)})
    assert all("turn_back" in narrow["bee-line"].at_bound(i) for i in range(3))
    assert np.isnan(narrow["bee-line"].deviation[:, 1]).all()


@pytest.mark.slow
def test_a_group_draws_estimates_together(walks, fit):
    group = spie.fit(walks, "bee-line", "hierarchical", starts=3)["bee-line"]
    alone = fit["bee-line"]
    assert group.prior is not None
    assert alone.prior is None
    assert (group.x.std(axis=0) <= alone.x.std(axis=0) + 1e-6).all()
    assert (group.log_p <= alone.log_p + 1e-6).all()
    assert (spie.fit(walks, "bee-line", "map", starts=3)["bee-line"].log_p <= alone.log_p + 1e-6).all()


@pytest.mark.slow
def test_held_out_likelihood_prefers_the_model_that_was_simulated(fit):
    for by in ("session", "subject"):
        table = fit.crossvalidate(by=by, folds=3)
        assert table[0]["model"] == "bee-line"
        chance = sum(map(fit.paths.chance, fit.paths.subjects))
        for row in table:
            assert row["above_chance"] == pytest.approx((row["held_out"] - chance) / fit.choices.sum())
        assert table[0]["held_out"] <= fit["bee-line"].log_p.sum() + 1e-6  # what was not fitted is not fitted better


@pytest.mark.slow
def test_held_out_parameters_are_fitted_with_the_prior_of_the_fit(walks, monkeypatch):
    monkeypatch.setattr("spie.behaviour.estimates.WIDE", 1e-3)  # which leaves the data no say
    found = spie.fit(walks, "bee-line", "map", starts=2)
    middle = {parameter.name: parameter.value(0.5) for parameter in found["bee-line"].model.parameters}
    expected = spie.loglikelihood("bee-line", walks, **middle).sum()
    assert found.crossvalidate()[0]["held_out"] == pytest.approx(expected, rel=1e-3)
    assert abs(spie.fit(walks, "bee-line", starts=2).crossvalidate()[0]["held_out"] - expected) > 1


def test_other_numbers_of_a_walker_are_another_part(monkeypatch):
    before = spie.model("planner").identity
    monkeypatch.setattr(StateValues, "version", 2)
    assert spie.model("planner").identity != before


def test_a_recording_that_pays_otherwise_than_the_maze_is_spoken_of():
    maze = spie.grid("S.G", task="goal", bumps=False)
    trial = Trial("a", "1", "1", 0, np.array([0, 1, 2], np.int32), np.array([-1, -1], np.int32), np.array([0.0, 1.0]))
    paid = maze.reward[0, 1, 1, 0]
    for rewards, otherwise in (([maze.reward[0, 0, 1, 0], paid], False), ([0.0, paid + 1], True)):
        paths = spie.Paths((maze,), (trial._replace(rewards=np.array(rewards)),))
        assert _paid_otherwise(paths) == otherwise


def test_the_standard_error_of_a_difference_per_choice():
    d, n = np.array([3.0, 1.0, 5.0, 2.0]), np.array([10, 10, 10, 10])
    assert error_of_ratio(d, n) == pytest.approx((d / n).std(ddof=1) / 2)  # as many choices each: that of a mean
    assert error_of_ratio(0.3 * np.array([5, 80, 20]), np.array([5, 80, 20])) == pytest.approx(0, abs=1e-12)
    rng = np.random.default_rng(0)  # else as far as it scatters: 4000 groups of 40 subjects
    n = rng.integers(50, 150, (4000, 40))
    d = 0.2 * n + rng.normal(0, 10, n.shape)
    found = np.mean([error_of_ratio(*one) for one in zip(d, n, strict=True)])
    spread = (d.sum(axis=1) / n.sum(axis=1)).std()
    assert found == pytest.approx(spread, rel=0.05)  # of which 1.1 % are the standard error of the spread


def test_the_page_says_which_models_are_not_told_apart():
    def rows(*behind):
        return Rows([{"model": f"m{i}", "behind_best": b, "standard_error": 0.1} for i, b in enumerate(behind)])

    assert _held_out(rows(0, 0.15, 0.3), 9).endswith("m0 is the best; less than two standard errors behind it: m1.")
    assert "all others more than two standard errors (over 9 subjects) behind it" in _held_out(rows(0, 0.25), 9)
    alike = Rows([{"model": name, "behind_best": 1e-9, "standard_error": 0.0} for name in ("one", "other")])
    assert "less than two standard errors behind it: other" in _held_out(alike, 9)
    assert "no saying how sure" in _held_out(rows(0, 0.25), 1)
    assert _held_out(None, 9) == _held_out(rows(0), 9) == "Nothing was compared on held-out choices."


def test_whole_sessions_are_held_out():
    paths = recorded(trials=14)
    folds = fold_of_steps(paths, "0", 3)
    at = 0
    for trial in paths.of("0"):
        assert set(folds[at : at + len(trial.actions)]) == {int(trial.session) % 3}
        at += len(trial.actions)
    assert at == len(folds)


@pytest.mark.slow
def test_what_was_put_in_is_recovered_as_well_as_the_choices_say():
    # Weights of a size at which choices are neither certain nor random, and about 310 choices
    weights = {"inverse_temperature": (0.2, 2.0), "turn_back": (-2.0, 1.0), "heading": (-1.0, 2.0)}
    found = spie.fit(recorded(trials=60, steps=60), "bee-line", starts=5, bounds=weights).recover(24)
    assert (found.log_p_found >= found.log_p_truth - 1e-6).all()
    assert found.within >= 0.8  # 99 % are expected; fewer than 20 of 24 happens once in ten million
    # Fisher's z of a correlation of n pairs has a standard error of 1 / sqrt(n - 3)
    assert (found.expected > 0.9).all()
    assert (np.arctanh(found.correlation) > np.arctanh(found.expected) - 3 / np.sqrt(21)).all()
    assert found.best_determined[1] > 0.9
    assert "bee-line: 24 simulated subjects" in str(found.rows())
    panels = scatter(found).panels
    assert [panel.points.shape for panel in panels] == [(24, 2)] * 3
    assert "estimate by true" in curve_panel(panels[0]).get_label()


@pytest.mark.slow
def test_information_is_what_theory_says_of_a_single_weight():
    """A weight for turning back: d log p / d weight is 1(turned back) - p(turn back), where that is possible."""
    paths = recorded(trials=6)
    model = spie.model("bee-line").fixed(inverse_temperature=0.0, heading=0.0)
    weight = -0.7
    (found,) = information(model, np.array([[model.parameters[0].share(weight)]]), paths.only(["0"])).reshape(-1, 1)
    expected = 0.0
    for trial in paths.of("0"):
        maze = paths.mazes[trial.maze]
        for before, s, s_next in zip(trial.states, trial.states[1:], trial.states[2:], strict=False):
            ways = maze.next[s, maze.available[s], 0]
            p = np.exp(weight * (ways == before))
            expected += ((s_next == before) - p[ways == before].sum() / p.sum()) ** 2
    width = model.parameters[0].high - model.parameters[0].low
    assert found[0] == pytest.approx(expected * width**2, rel=1e-3)


@pytest.mark.slow
def test_models_that_differ_are_told_apart(fit):
    found = fit.confusion(4, starts=2)
    assert found.counts.sum(axis=1).tolist() == [4, 4]
    assert found.shares[1, 1] == 1


@pytest.mark.slow
def test_simulated_subjects_of_the_true_model_walk_like_the_subjects(fit):
    table = {row["who"]: row for row in fit.simulate(5).rows()}
    assert abs(table["bee-line"]["back"] - table["subjects"]["back"]) < 0.08
    assert abs(table["sr-agent"]["back"] - table["subjects"]["back"]) > 0.08


@pytest.mark.slow
def test_a_fit_that_was_stopped_goes_on_with_the_same_result(walks, fit, tmp_path, monkeypatch):
    def killed(what, share):
        if "bee-line" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spie.fit(walks, MODELS, starts=3, folder=tmp_path, progress=killed)
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 1
    kept[0].write_text("{")  # damaged: made again
    whole = spie.fit(walks, MODELS, starts=3, folder=tmp_path)
    again = spie.fit(walks, MODELS, starts=3, folder=tmp_path)
    for name in MODELS:
        np.testing.assert_array_equal(whole[name].x, fit[name].x)
        np.testing.assert_array_equal(again[name].log_p, fit[name].log_p)


def test_a_shelf_gives_back_what_it_was_given(tmp_path):
    shelf, asked = Shelf(tmp_path), []

    def make():
        asked.append(1)
        return {"x": np.array([[0.1, np.nan], [1e-300, -np.inf]])}

    for _ in range(2):
        np.testing.assert_array_equal(shelf.kept({"a": 1}, make)["x"], make()["x"])
    assert len(asked) == 3
    assert shelf.has({"a": 1})
    assert not shelf.has({"a": 2})


BAD = {
    "no such model": (lambda paths: spie.fit(paths, "srr"), 'no behavioural model "srr"'),
    "no such method": (lambda paths: spie.fit(paths, method="guess"), 'no method "guess"'),
    "no starts": (lambda paths: spie.fit(paths, "random", starts=0), "starts must be a whole number of at least 1"),
    "no models": (lambda paths: spie.fit(paths, []), "no model is given"),
    "no choice": (
        lambda paths: spie.fit(spie.Paths.from_states({"a": [0, 1, 2], "b": [[0, 1], [2, 1]]}, "S.."), "random"),
        "subject b had no choice: every move was forced; leave the subject out",
    ),
    "no goal": (lambda paths: spie.fit(spie.Paths.from_states([0, 1, 2, 1]), "sr-agent"), "it needs a goal"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_clear_line(what):
    call, line = BAD[what]
    with pytest.raises(ValueError, match=r".") as error:
        call(recorded())
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_checks_that_cannot_be_done_are_one_clear_line(fit):
    one_session = spie.fit(recorded(trials=2), "random")
    one_subject = spie.fit(recorded(subjects=1), "random")
    for call, line in [
        (lambda: one_session.crossvalidate(), "subject 0 has one session only: there is nothing to hold out"),
        (lambda: one_subject.crossvalidate(by="subject"), "there is one subject only"),
        (lambda: fit.crossvalidate(by="step"), 'no way to hold out "step"'),
        (
            lambda: one_subject.recover(model="random"),
            "model random has no free parameters",
        ),
        (lambda: fit.recover(1, "bee-line"), "at least 3 subjects"),
        (lambda: fit.confusion(models=["bee-line"]), "at least 2 models"),
        (lambda: fit["srr"], 'no fitted model "srr"'),
    ]:
        with pytest.raises(ValueError, match=line):
            call()
