"""check_reward finds what is wrong with a reward, and what is worth knowing of a sound one."""

import itertools
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from test_wrappers import Car

import spie
from spie import cli, rewards

STEPS = 300


def notes(findings):
    return {finding.check: finding.found for finding in findings if finding.verdict == "note"}


def open_field():
    return spie.MDPEnv(spie.grid("....\n....\n...."), max_steps=50)


def one_way():
    """A ring of four states, mostly walked one way round: column sums of M differ."""
    following = np.array([[[1, 0]], [[2, 1]], [[3, 0]], [[0, 1]]])
    prob = np.full((4, 1, 2), 0.5)
    return spie.MDPEnv(spie.MDP("ring", following, prob, np.zeros((4, 1, 2)), np.eye(4)[0]), max_steps=50)


@pytest.mark.slow
@pytest.mark.parametrize("reward", rewards.reward_names("tables"))
def test_every_reward_on_tables_is_sound(reward, capsys):
    findings = spie.check_reward(reward, open_field(), STEPS)
    assert {finding.verdict for finding in findings} <= {"ok", "note"}
    printed = " ".join(capsys.readouterr().out.split())
    assert f'reward "{reward}" on MDPEnv' in printed
    assert all(finding.check in printed for finding in findings)
    assert {"episodes", "finite numbers", "repeats", "1 and 4 environments", "episode edges", "scale", "terms"} <= {
        finding.check for finding in findings
    }
    assert any("6 episodes reset by hand" in finding.found for finding in findings)


@pytest.mark.slow
@pytest.mark.parametrize("reward", rewards.reward_names("features"))
def test_every_reward_on_features_is_sound(reward):
    findings = spie.check_reward(reward, gym.wrappers.TimeLimit(Car(), 20), STEPS)
    assert {finding.verdict for finding in findings} <= {"ok", "note"}


@pytest.mark.slow
def test_rnd_is_checked_like_any_other():
    torch.set_num_threads(1)
    findings = spie.check_reward("rnd", gym.wrappers.TimeLimit(Car(), 20), 100)
    assert {finding.verdict for finding in findings} <= {"ok", "note"}
    assert notes(findings)["sign"].startswith("never negative")


@pytest.mark.slow
def test_it_says_which_rewards_become_constant():
    @spie.reward("predecessors")
    def predecessors(N_col_next):
        return -N_col_next

    for reward in ("sr", "predecessors", "count"):
        assert "becomes constant as it is learned" in notes(spie.check_reward(reward, one_way(), STEPS))["in the end"]
    for reward in ("sr-r", "sr-r(b)"):
        assert "in the end" not in notes(spie.check_reward(reward, one_way(), STEPS))
    # In a maze with bumps P is symmetric, and every column of the exact M has the same sum
    assert "in the end" in notes(spie.check_reward("sr-r(b)", open_field(), STEPS))
    assert "in the end" not in notes(spie.check_reward("sr-r", open_field(), STEPS))


def test_it_names_a_term_that_does_not_matter():
    @spie.reward("idle")
    def idle(M_next, F_row, visits):
        return M_next + 0 * F_row + min(visits, 0)

    found = [f.found for f in spie.check_reward("idle", open_field(), STEPS) if f.check == "terms"]
    assert found == [
        "F_row never changes what it pays: leave it out",
        "visits never changes what it pays: leave it out",
        "M_next: each makes a difference",
    ]


@pytest.mark.slow
def test_it_tells_the_sign_and_a_size_that_drowns_other_rewards():
    assert notes(spie.check_reward("sr-r", open_field(), STEPS))["sign"].startswith("never positive: Q = 0 is optimist")
    assert notes(spie.check_reward("count", open_field(), STEPS))["sign"].startswith("never negative")
    loud = spie.IntrinsicReward(gym.make("CliffWalking-v1"), "sr-r", beta=1e4)
    assert 'it outweighs the reward: lower beta, or beta="auto"' in notes(spie.check_reward(loud, steps=STEPS))["scale"]
    even = spie.IntrinsicReward(gym.make("CliffWalking-v1"), "sr-r", beta="auto")
    assert "scale" not in notes(spie.check_reward(even, steps=STEPS))
    assert even.bonus.steps == 0  # a wrapper is checked by a copy


calls = itertools.count()
FAULTS = {
    "impatient": (lambda M_next: M_next + next(calls), "repeats: the same steps give other bonuses"),
    "hasty": (lambda M_col_next: 1 / M_col_next, 'episodes: reward "hasty" is nan at step 1 of MDPEnv: M_col_next = 0'),
    "silent": (lambda M_next: None, "episodes: float() argument must be"),
    "plural": (lambda M_next: np.array([M_next, M_next]), "episodes: "),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_raised_and_printed(name, capsys):
    function, message = FAULTS[name]
    spie.reward(name)(function)
    with pytest.raises(ValueError, match=f'^reward "{name}": ') as error:
        spie.check_reward(name, open_field(), STEPS)
    assert message in str(error.value)
    assert "FAULT" in capsys.readouterr().out


def test_it_says_whether_a_bonus_pays_for_ending_an_episode(capsys):
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    findings = spie.check_reward("constant", lake, STEPS, beta="auto")
    assert 'it pays for ending an episode: ends="neutral" does not' in notes(findings)["sign"]
    assert "(auto)" in capsys.readouterr().out
    assert len(repr(findings)) < 80
    neutral = spie.IntrinsicReward(lake, "constant", 0.01, ends="neutral", gamma=0.9)
    assert "pays for ending" not in notes(spie.check_reward(neutral, steps=STEPS))["sign"]


def test_a_check_needs_steps():
    with pytest.raises(ValueError, match=r"^check_reward: steps must be a whole number of at least 1, not 0$"):
        spie.check_reward("sr", open_field(), 0)


def test_an_environment_that_breaks_its_own_rules_is_found():
    class Outside(Car):
        def step(self, action):
            s, *rest = super().step(action)
            return s + 5, *rest

    with pytest.raises(ValueError, match="is not in the observation space"):
        spie.check_reward("count", Outside(), STEPS)


def command(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["spie", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    return stop.value.code or 0


@pytest.mark.slow
def test_the_command_checks_rewards_of_the_library_and_of_a_file(monkeypatch, capsys, tmp_path):
    assert command(monkeypatch, "check", "sr", "--steps", "300") == 0
    assert "becomes constant" in " ".join(capsys.readouterr().out.split())
    own = tmp_path / "own.py"
    own.write_text("import spie\nspie.reward('mine')(lambda M_next: -M_next)\n")
    assert command(monkeypatch, "check", "mine", "--from", str(own), "--env", "FrozenLake-v1", "--steps", "300") == 0
    assert 'reward "mine" on FrozenLake-v1' in capsys.readouterr().out
    assert command(monkeypatch, "check", "mine", "--from", str(own), "--env", "riverswim", "--steps", "300") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "300 steps, episodes: 0 terminated, 1 truncated or still under way" in said
    assert "note no episode ended within 300 random steps: the same bonuses alone" in said
    for words, message in (
        (["nothing"], 'no intrinsic reward "nothing"'),
        (["sr", "--env", "Nowhere-v0"], "--env Nowhere-v0: "),
        (["sr", "--env", "riverswm"], 'no task, map or file "riverswm"; did you mean "riverswim"?'),
        (["sr", "--steps", "3"], "--steps must be 100 or more, not 3"),
        (["sr", "--from", "nowhere.py"], "nowhere.py"),
    ):
        assert command(monkeypatch, "check", *words) == 2
        assert message in capsys.readouterr().err


def test_what_counts_rewards_above_the_bonus_is_named_and_what_has_none_is_refused(capsys):
    env = spie.IntrinsicReward(gym.make("FrozenLake-v1"), "count")
    findings = spie.check_reward(gym.wrappers.RecordEpisodeStatistics(env), steps=100)
    assert [found.found for found in findings if found.check == "order"] == [
        "RecordEpisodeStatistics above counts the bonus as reward; write "
        "IntrinsicReward(RecordEpisodeStatistics(env), ...)"
    ]
    assert not [found for found in spie.check_reward(env, steps=100) if found.check == "order"]
    with pytest.raises(ValueError, match="check_reward takes a name, or an environment in an IntrinsicReward, not <"):
        spie.check_reward(gym.make("FrozenLake-v1"))
