import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

import spie.tasks.mdp
from spie.tasks import grid, riverswim, sixarms
from spie.tasks.draw import draw, write
from spie.tasks.mdp import MDP, MDPEnv, reachable
from spie.tasks.registry import TASKS


def pair(**changes: Any) -> MDP:
    """Two states. In 0, action 0 gets to 1 with probability 1/4, paying 4; in 1, action 1 goes back, paying 1."""
    parts: dict[str, Any] = {
        "name": "pair",
        "next": [[[0, 1], [0, 0]], [[1, 0], [0, 0]]],
        "prob": [[[0.75, 0.25], [1, 0]], [[1, 0], [1, 0]]],
        "reward": [[[0, 4], [0, 0]], [[0, 0], [1, 0]]],
        "start": [1, 0],
    }
    return MDP(**parts | changes)


def edited(array: Any, index: tuple[int, ...], value: float) -> NDArray[np.float64]:
    changed = np.array(array, dtype=float)
    changed[index] = value
    return changed


def test_sizes_come_from_the_successor_lists() -> None:
    mdp = sixarms()
    assert (mdp.n_states, mdp.n_actions, mdp.n_successors, mdp.n_phases) == (7, 6, 2, 1)
    assert mdp.next.dtype == np.int32
    assert mdp.prob.dtype == np.float64
    assert mdp.reward.shape == (1, 7, 6, 2)
    assert mdp.terminal.shape == (1, 7)
    assert mdp.available.shape == (7, 6)
    assert mdp.labels == ("0", "1", "2", "3", "4", "5", "6")


def test_dense_P_and_R_are_those_computed_by_hand() -> None:
    assert_array_equal(pair().P, [[[0.75, 0.25], [1, 0]], [[0, 1], [1, 0]]])
    assert_array_equal(pair().R, [[1, 0], [0, 1]])


def test_probabilities_of_one_successor_listed_twice_add_up() -> None:
    mdp = pair(next=[[[1, 1], [0, 0]], [[1, 0], [0, 0]]])
    assert_array_equal(mdp.P[0, 0], [0, 1])
    assert_array_equal(mdp.R[0, 0], 1)
    assert_array_equal(mdp.transition()[0], [0.5, 0.5])


def test_padding_points_at_its_own_state_and_pays_nothing() -> None:
    mdp = pair(next=[[[0, 1], [0, 0]], [[1, -1], [0, 99]]], reward=edited(pair().reward[0], (1, 1, 1), np.nan))
    assert_array_equal(mdp.next[1], [[1, 1], [0, 1]])
    assert_array_equal(mdp.reward[0, 1], [[0, 0], [1, 0]])


def test_arrays_are_copies_that_nobody_can_change() -> None:
    start = np.array([1.0, 0.0])
    mdp = pair(start=start)
    start[:] = 7
    assert_array_equal(mdp.start, [1, 0])
    for array in (mdp.next, mdp.prob, mdp.reward, mdp.start, mdp.terminal, mdp.available, grid("of-small").cells):
        assert array is not None
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"next": np.zeros((0, 2, 1), int)}, "no states, actions or successors: next has shape (0, 2, 1)"),
        ({"next": [[0, 1], [0, 1]]}, "next must be integers [S, A, K], not int64 [2, 2]"),
        ({"next": np.zeros((2, 2, 2))}, "next must be integers [S, A, K], not float64 [2, 2, 2]"),
        (
            {"next": [[[0, 2], [0, 0]], [[1, 0], [0, 0]]]},
            "P[0, 0] leads to 2, but the states are 0..1 (state 0, action 0)",
        ),
        (
            {"next": [[[0, 1], [0, 0]], [[1, 0], [-1, 0]]]},
            "P[1, 1] leads to -1, but the states are 0..1 (state 1, action 1)",
        ),
        ({"prob": np.ones((2, 2))}, "prob has shape [2, 2], not [2, 2, 2]"),
        ({"prob": edited(pair().prob, (1, 0, 0), 0.9)}, "P[1, 0] sums to 0.9, not 1 (state 1, action 0)"),
        ({"prob": edited(pair().prob, (1, 0, 0), 1 + 1e-8)}, "P[1, 0] sums to 1.00000001, not 1 (state 1, action 0)"),
        ({"prob": edited(pair().prob, (1, 0, 0), np.inf)}, "P[1, 0] sums to inf, not 1 (state 1, action 0)"),
        (
            {"prob": [[[1.25, -0.25], [1, 0]], [[1, 0], [1, 0]]]},
            "P[0, 0] holds -0.25, which is no probability (state 0, action 0)",
        ),
        (
            {"prob": edited(pair().prob, (0, 1, 0), np.nan)},
            "P[0, 1] holds nan, which is no probability (state 0, action 1)",
        ),
        ({"reward": np.zeros((3, 2, 2))}, "reward has shape [3, 2, 2], not [1, 2, 2, 2]"),
        ({"reward": np.zeros((0, 2, 2, 2))}, "reward has shape [0, 2, 2, 2], not [1, 2, 2, 2]"),
        (
            {"reward": edited(pair().reward, (0, 0, 0, 1), np.nan)},
            "reward nan in phase 0 is not finite (state 0, action 0)",
        ),
        (
            {"reward": edited(np.zeros((2, 2, 2, 2)), (1, 1, 1, 0), -np.inf)},
            "reward -inf in phase 1 is not finite (state 1, action 1)",
        ),
        ({"start": [1, 0, 0]}, "start has shape [3], not [2]"),
        ({"start": [0.5, 0.4]}, "start sums to 0.9, not 1"),
        ({"start": [1.5, -0.5]}, "start holds -0.5, which is no probability (state 1)"),
        ({"start": [np.nan, 1]}, "start holds nan, which is no probability (state 0)"),
        ({"terminal": [False]}, "terminal has shape [1], not [1, 2]"),
        ({"terminal": [[True, True]]}, "every state is terminal in phase 0"),
        ({"terminal": [True, False]}, "state 0 is a start and terminal in phase 0"),
        ({"available": [True, True]}, "available has shape [2], not [2, 2]"),
        ({"available": [[True, True], [False, False]]}, "state 1 has no available action"),
        ({"available": [[True, False], [True, True]]}, "P[0, 1] sums to 1, but action 1 is not available in state 0"),
        ({"episodes_per_phase": -1}, "episodes_per_phase (0: never) must be a whole number of at least 0, not -1"),
        ({"labels": ("a",)}, "1 labels for 2 states"),
        ({"labels": ("a", "b\x1b[2J")}, r"labels must be texts in one line, not b\x1b[2J"),
        ({"cells": [(0, 0), (0, 1)]}, "cells and shape come together"),
        ({"cells": [(0, 0), (0, 2)], "shape": (1, 2)}, "cell (0, 2) of state 1 is outside the (1, 2) grid"),
    ],
)
def test_a_bad_table_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(f"pair: {message}") + "$"):
        pair(**changes)


def test_probabilities_may_be_off_by_rounding() -> None:
    third = 0.1 + 0.2  # 0.30000000000000004
    assert pair(prob=[[[1 - third, third], [1, 0]], [[1, 0], [1, 0]]]).n_states == 2


def test_P_past_memory_says_how_much_it_would_need() -> None:
    S = 20_000
    mdp = MDP("big", np.zeros((S, 2, 1), np.int32), np.ones((S, 2, 1)), np.zeros((S, 2, 1)), np.eye(1, S)[0])
    with pytest.raises(ValueError, match=re.escape("big: P [20000, 2, 20000] would need 6.4 GB; use transition()")):
        _ = mdp.P


def test_transition_averages_over_the_policy() -> None:
    assert_array_equal(pair().transition(), [[0.875, 0.125], [0.5, 0.5]])
    assert_array_equal(pair().transition(np.array([[1, 0], [0.25, 0.75]])), [[0.75, 0.25], [0.75, 0.25]])


def test_the_default_policy_is_uniform_over_the_available_actions() -> None:
    mdp = pair(available=[[True, False], [True, True]], prob=edited(pair().prob, (0, 1, 0), 0))
    assert_array_equal(mdp.transition(), [[0.75, 0.25], [0.5, 0.5]])


def test_a_terminal_row_of_the_chain_is_the_start_distribution() -> None:
    assert_array_equal(pair(terminal=[False, True]).transition(), [[0.875, 0.125], [1, 0]])
    start = [0.25, 0.75, 0, 0]
    ring = MDP("ring", [[[1]], [[2]], [[3]], [[0]]], 1, 0, start, terminal=[False, False, True, True])  # type: ignore[arg-type]
    assert_array_equal(ring.transition(), [[0, 1, 0, 0], [0, 0, 1, 0], start, start])
    corridor = grid("....G", task="goal")  # no S: any of the four free cells
    assert_array_equal(corridor.transition()[4], [0.25, 0.25, 0.25, 0.25, 0])


def test_each_phase_has_its_own_terminal_row() -> None:
    mdp = grid("S.G.1", task="moving-goal")
    start = [1, 0, 0, 0, 0]
    first, second = mdp.transition(), mdp.transition(phase=1)
    assert_array_equal(first[2], start)
    assert_array_equal(second[4], start)
    assert_array_equal(second[2], [0, 0.25, 0.5, 0.25, 0])
    assert_array_equal(first[4], [0, 0, 0, 0.25, 0.75])


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.ones(2), "policy has shape [2], not [2, 2]"),
        ([[1.5, -0.5], [1, 0]], "policy holds -0.5, which is no probability (state 0, action 1)"),
        ([[1, 0], [0.5, 0.4]], "policy sums to 0.9, not 1 (state 1)"),
        ([[0, 1], [1, 0]], "policy takes action 1, which is not available (state 0)"),
    ],
)
def test_a_bad_policy_is_refused(policy: Any, message: str) -> None:
    mdp = pair(available=[[True, False], [True, True]], prob=edited(pair().prob, (0, 1, 0), 0))
    with pytest.raises(ValueError, match=re.escape(f"pair: {message}")):
        mdp.transition(policy)


def test_an_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("pair: no phase 1; phases are 0..0")):
        pair().transition(phase=1)


@pytest.mark.parametrize(
    "mdp",
    [
        riverswim(),
        grid("cluster-hard", task="goal"),
        grid("cluster-hard", bumps=False),
        grid(".....\n.G...", task="goal"),
        MDP.from_gymnasium(gym.make("FrozenLake-v1")),
    ],
    ids=["riverswim", "goal", "no bumps", "any start", "frozen lake"],
)
def test_the_sparse_chain_equals_the_dense_one(mdp: MDP, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = mdp.transition()
    monkeypatch.setattr(spie.tasks.mdp, "DENSE_STATES", mdp.n_states - 1)
    sparse = mdp.transition()
    assert sparse.format == "csr"
    assert_allclose(sparse.toarray(), dense, rtol=0, atol=1e-15)
    assert_allclose(dense.sum(axis=1), 1, rtol=0, atol=1e-15)


def test_the_chain_is_sparse_above_5000_states() -> None:
    assert isinstance(grid("\n".join(["." * 50] * 100)).transition(), np.ndarray)
    P = grid("\n".join(["." * 50] * 101)).transition()
    assert P.format == "csr"
    assert P.nnz == 4 * 5050 - 4  # four entries a cell, bumps on the diagonal; the two bumps of a corner share one
    assert (P[[0], [0]], P[[0], [1]], P[[0], [50]]) == (0.5, 0.25, 0.25)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("FrozenLake-v1", {"is_slippery": True}),
        ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}),
        ("CliffWalking-v1", {}),
        ("CliffWalking-v1", {"is_slippery": True}),
        ("Taxi-v4", {}),
        ("Taxi-v4", {"is_rainy": True}),
    ],
)
def test_a_toy_text_table_is_taken_over_entry_by_entry(name: str, options: dict[str, Any]) -> None:
    env: Any = gym.make(name, **options)
    table = env.unwrapped.P
    mdp = MDP.from_gymnasium(env)
    assert (mdp.name, mdp.n_states, mdp.n_actions) == (name, env.observation_space.n, env.action_space.n)
    assert_array_equal(mdp.start, env.unwrapped.initial_state_distrib)
    terminal = mdp.terminal[0]
    visited = reachable(mdp.next, mdp.start > 0, stop=terminal) & ~terminal
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            rows = list(zip(mdp.prob[s, a], mdp.next[s, a], mdp.reward[0, s, a], strict=True))
            assert rows[: len(table[s][a])] == [(p, s_next, r) for p, s_next, r, _ in table[s][a]]
            assert all(p == 0 for p, _, _ in rows[len(table[s][a]) :])
            if visited[s]:
                assert [terminal[s_next] for _, s_next, _, _ in table[s][a]] == [end for *_, end in table[s][a]]


def test_frozen_lake_ends_in_its_holes_and_goal() -> None:
    assert_array_equal(np.flatnonzero(MDP.from_gymnasium(gym.make("FrozenLake-v1")).terminal), [5, 7, 11, 12, 15])


def test_the_cliff_is_no_end_but_a_way_back_to_the_start() -> None:
    mdp = MDP.from_gymnasium(gym.make("CliffWalking-v1"))
    assert_array_equal(np.flatnonzero(mdp.terminal), [47])  # row 3, column 11
    right = 1
    assert (mdp.next[36, right, 0], mdp.reward[0, 36, right, 0]) == (36, -100)


def test_taxi_ends_at_the_four_deliveries_whatever_its_dead_rows_say() -> None:
    env: Any = gym.make("Taxi-v4").unwrapped
    mdp = MDP.from_gymnasium(env)
    delivered = [env.encode(row, column, i, i) for i, (row, column) in enumerate(env.locs)]
    assert_array_equal(np.flatnonzero(mdp.terminal), delivered)
    # 25 places x 4 destinations x (3 other places or the taxi), and the four ends
    assert reachable(mdp.next, mdp.start > 0, stop=mdp.terminal[0]).sum() == 25 * 4 * 4 + 4
    drop_off = 5
    assert env.P[delivered[0]][drop_off] == [(1.0, delivered[0], -10, False)]  # such rows are passed over


class Tabled(gym.Env[Any, Any]):
    """State 1 ends the episode when action 0 enters it, and does not when action 1 does."""

    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)
    initial_state_distrib = np.array([1.0, 0.0])
    P = {s: {a: [(1.0, 1, 0.0, a == 0)] for a in range(2)} for s in range(2)}  # noqa: RUF012


def test_ends_that_depend_on_the_action_are_refused() -> None:
    message = "Tabled: entering state 1 ends some episodes and not others (state 0, action 1)"
    with pytest.raises(ValueError, match=re.escape(message)):
        MDP.from_gymnasium(Tabled())


def test_an_environment_without_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="MountainCar-v0: carries no table P; FrozenLake, CliffWalking and Taxi do"):
        MDP.from_gymnasium(gym.make("MountainCar-v0"))


def test_a_passenger_outside_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="Taxi-v4: the table P knows nothing of fickle_passenger"):
        MDP.from_gymnasium(gym.make("Taxi-v4", fickle_passenger=True))


def test_a_state_is_found_by_its_label_or_its_number() -> None:
    mdp = grid("S#.")
    assert (mdp.state("0,2"), mdp.state("1"), riverswim().state("5")) == (1, 1, 5)
    with pytest.raises(
        ValueError, match=r"^map: no state \"0,1\"; give a number 0\.\.1 or the row,column of a free cell"
    ):
        mdp.state("0,1")
    with pytest.raises(ValueError, match=r"^riverswim: no state \"6\"; give a number 0\.\.5$"):
        riverswim().state("6")


@pytest.mark.parametrize("render_mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("RiverSwim", {}),
        ("SixArms", {}),
        ("Grid", {}),
        *[("Grid", {"map": "cluster-hard", "task": task}) for task in ("explore", "goal", "moving-goal")],
        ("Grid", {"map": ".....\n.G.1.\n.....", "task": "moving-goal"}),
    ],
)
def test_registered_environments_pass_gymnasiums_check(
    name: str, options: dict[str, Any], render_mode: str | None
) -> None:
    check_env(gym.make(f"spie/{name}-v0", render_mode=render_mode, **options).unwrapped)


def test_every_id_of_the_registry_is_known_to_gymnasium_and_the_other_way_round() -> None:
    entries = [entry for tasks in TASKS.values() for _, entry in tasks.items() if entry.gymnasium]
    assert {"RiverSwim", "SixArms", "Grid", "SparseMountainCar", "SparsePendulum"} <= {e.gymnasium for e in entries}
    ids = {name for name in gym.registry if name.startswith("spie/") and not name.startswith("spie/Pixels-")}
    assert {f"spie/{entry.gymnasium}-v0" for entry in entries if entry.kind != "images"} == ids
    for entry in entries:
        assert gym.registry[f"spie/{entry.gymnasium}-v0"].max_episode_steps == entry.max_steps


def test_arguments_of_make_reach_the_map_and_the_limits() -> None:
    env: Any = gym.make("spie/Grid-v0", map="cluster-simple", task="goal", bumps=False, max_steps=3).unwrapped
    assert (env.mdp.n_states, env.mdp.n_phases, env.max_steps) == (91, 1, 3)
    assert env.mdp.terminal.sum() == 1
    assert not env.mdp.available.all()


def test_a_registered_environment_runs_as_a_vector_and_as_a_list_of_pictures() -> None:
    envs = gym.make_vec("spie/RiverSwim-v0", num_envs=3, vectorization_mode="sync")
    states, _ = envs.reset(seed=0)
    assert states.shape == (3,)
    envs.close()
    film = gym.make("spie/RiverSwim-v0", render_mode="rgb_array_list")
    film.reset(seed=0)
    film.step(0)
    assert len(film.render()) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("mdp", [riverswim(), sixarms(), MDP.from_gymnasium(gym.make("FrozenLake-v1"))])
def test_steps_come_as_often_as_their_probability(mdp: MDP) -> None:
    n = 2000
    env = MDPEnv(mdp)
    env.reset(seed=1)
    for s in np.flatnonzero(~mdp.terminal[0]):
        for a in range(mdp.n_actions):
            counts = np.zeros(mdp.n_states)
            paid = 0.0
            for _ in range(n):
                env.state, env.over = int(s), False
                s_next, r, *_ = env.step(a)
                counts[s_next] += 1
                paid += r
            p = mdp.P[s, a]
            standard_error = np.sqrt(p * (1 - p) / n)  # 0 where p is 0 or 1: there the count is exact
            assert (np.abs(counts / n - p) <= 5 * standard_error).all()
            spread = np.sqrt((mdp.prob[s, a] * (mdp.reward[0, s, a] - mdp.R[s, a]) ** 2).sum() / n)
            assert abs(paid / n - mdp.R[s, a]) <= 5 * spread + 1e-9 * abs(mdp.R[s, a])


def test_episodes_begin_as_often_as_the_start_distribution_says() -> None:
    env = MDPEnv(riverswim())
    env.reset(seed=1)
    counts = np.bincount([env.reset()[0] for _ in range(2000)], minlength=6) / 2000
    assert_array_equal(np.flatnonzero(counts), [1, 2])
    assert abs(counts[1] - 0.5) <= 5 * np.sqrt(0.25 / 2000)


def test_an_entry_of_probability_0_is_never_drawn() -> None:
    # The first of two successors has probability 0; a draw of exactly 0.0 must pass over it.
    env = MDPEnv(pair(next=[[[0, 1], [0, 0]], [[1, 0], [0, 0]]], prob=[[[0, 1], [1, 0]], [[1, 0], [1, 0]]]))
    env.reset(seed=0)

    class Zero:
        def random(self) -> float:
            return 0.0

    env._np_random = Zero()  # type: ignore[assignment]
    assert env.step(0)[:2] == (1, 4)


def test_the_same_seed_gives_the_same_episode() -> None:
    def walk(seed: int) -> list[Any]:
        env = MDPEnv(riverswim())
        return [env.reset(seed=seed)[0], *[env.step(0)[0] for _ in range(50)]]

    assert walk(3) == walk(3)
    assert walk(3) != walk(4)


def walk(env: MDPEnv, action: int) -> tuple[float, bool]:
    """Reward and end of one step from a new episode."""
    env.reset()
    _, r, terminated, _, _ = env.step(action)
    return r, terminated


def test_the_goal_moves_on_after_its_episodes_and_comes_round() -> None:
    up, right, left = 0, 1, 3
    env = MDPEnv(grid("1SG", task="moving-goal", episodes_per_goal=2))
    phases = []
    for _ in range(10):
        env.reset()
        phases.append(env.phase)
        goal_side = (right, left)[env.phase]
        assert env.step(up)[1:3] == (-1, False)
        assert env.step(goal_side)[1:3] == (0, True)
    assert phases == [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]


def test_in_a_later_phase_the_first_goal_is_a_plain_cell() -> None:
    right, left = 1, 3
    env = MDPEnv(grid("1SG", task="moving-goal", episodes_per_goal=1))
    assert walk(env, right) == (0, True)
    assert walk(env, right) == (-1, False)  # phase 1; left unfinished, it counts all the same
    assert walk(env, left) == (-1, False)  # phase 0 again


def test_episodes_without_a_step_do_not_count_and_a_seed_starts_over() -> None:
    env = MDPEnv(grid("1SG", task="moving-goal", episodes_per_goal=1))
    for _ in range(3):
        env.reset()
    assert (env.episode, env.phase) == (0, 0)
    env.step(1)
    env.reset()
    assert (env.episode, env.phase) == (1, 1)
    env.reset(seed=0)
    assert (env.episode, env.phase) == (0, 0)


def test_max_steps_truncates_but_an_end_on_the_last_step_is_an_end() -> None:
    right = 1
    env = MDPEnv(grid("S..G", task="goal"), max_steps=3)
    env.reset()
    assert [env.step(right)[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]
    env = MDPEnv(grid("S..G", task="goal"), max_steps=2)
    env.reset()
    assert [env.step(right)[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_the_action_mask_shows_what_is_available() -> None:
    right, down = 1, 2
    env = MDPEnv(grid("S.\n..", bumps=False))
    _, info = env.reset()
    assert info["action_mask"].dtype == np.int8
    assert_array_equal(info["action_mask"], [0, 1, 1, 0])
    assert_array_equal(env.step(right)[4]["action_mask"], [0, 0, 1, 1])
    assert_array_equal(env.step(down)[4]["action_mask"], [1, 0, 0, 1])
    assert MDPEnv(grid("S.\n..")).reset()[1] == {}


@pytest.mark.parametrize(
    ("action", "message"),
    [(0, "map: action 0 is not available in state 0; available: 1, 2"), (4, "map: no action 4; actions are 0..3")],
)
def test_an_action_that_is_not_on_offer_is_refused(action: int, message: str) -> None:
    env = MDPEnv(grid("S.\n..", bumps=False))
    env.reset()
    with pytest.raises(ValueError, match=re.escape(message)):
        env.step(action)


def test_stepping_outside_an_episode_is_refused() -> None:
    env = MDPEnv(grid("SG", task="goal"))
    with pytest.raises(ValueError, match=r"map: no episode is under way; call reset\(\) first"):
        env.step(1)
    env.reset()
    env.step(1)
    with pytest.raises(ValueError, match=r"map: no episode is under way; call reset\(\) first"):
        env.step(1)


def test_bad_settings_of_the_environment_are_refused() -> None:
    with pytest.raises(ValueError, match='riverswim: no render mode "human"; known: rgb_array, ansi'):
        MDPEnv(riverswim(), render_mode="human")
    with pytest.raises(ValueError, match="riverswim: max_steps is 0; give 1 or more, or None for no limit"):
        MDPEnv(riverswim(), max_steps=0)
    with pytest.raises(ValueError, match=r"riverswim: nothing to render; call reset\(\) first"):
        MDPEnv(riverswim(), render_mode="ansi").render()


def test_text_shows_the_agent_on_the_map_or_in_brackets() -> None:
    mdp = grid("S#.\n..G", task="goal")
    assert write(mdp, 2) == "S#.\n@.G"
    assert write(mdp, 0) == "@#.\n..G"
    assert write(riverswim(), 2) == "0 1 [2] 3 4 5"
    env = MDPEnv(mdp, render_mode="ansi")
    env.reset()
    env.step(2)
    assert env.render() == "S#.\n@.G"


def test_text_and_picture_show_the_goal_of_the_phase() -> None:
    mdp = grid("S.G1", task="moving-goal")
    assert (write(mdp, 1, phase=0), write(mdp, 1, phase=1)) == ("S@G.", "S@.G")
    assert (draw(mdp, 1, phase=0) != draw(mdp, 1, phase=1)).any()


def test_a_start_that_may_be_anywhere_is_not_marked() -> None:
    assert write(grid("...\n..."), 4) == "...\n.@."


def test_the_picture_has_dark_walls_light_cells_tinted_ends_and_a_disc() -> None:
    mdp = grid("S#.\n..G", task="goal")
    picture = draw(mdp, 3)  # the agent at row 1, column 1
    side = picture.shape[0] // 2
    assert picture.shape == (2 * side, 3 * side, 3)
    assert picture.dtype == np.uint8
    cell = {
        (r, c): picture[r * side + 1 : (r + 1) * side, c * side + 1 : (c + 1) * side] for r in (0, 1) for c in (0, 1, 2)
    }
    for place in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2)]:
        assert (cell[place] == cell[place][0, 0]).all()  # one colour each
    wall, free, start, goal = (cell[place][0, 0] for place in [(0, 1), (0, 2), (0, 0), (1, 2)])
    assert wall.max() < 64
    assert free.min() > 224
    assert len({tuple(colour.tolist()) for colour in (wall, free, start, goal)}) == 4
    agent = (cell[1, 1] != free).any(axis=2)
    assert agent[side // 2 - 1, side // 2 - 1]
    assert not agent[0, 0]
    assert 0.3 < agent.mean() < 0.5  # a disc of radius 0.35: pi 0.35^2 = 0.38


def test_a_chain_is_drawn_as_a_row_of_boxes() -> None:
    picture = draw(riverswim(), 5)
    side = picture.shape[0]
    assert picture.shape == (side, 6 * side, 3)
    assert_array_equal(picture[:, 3 * side : 4 * side], picture[:, 4 * side : 5 * side])  # plain
    assert (picture[:, :side] != picture[:, side : 2 * side]).any()  # 1 is a start, 0 is none
    assert (picture[:, 4 * side : 5 * side] != picture[:, 5 * side :]).any()  # the agent
