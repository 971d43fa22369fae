"""Image tasks: their pictures, their rules, and many copies at once against Gymnasium's own vector environment."""

import dataclasses
import functools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.testing import assert_array_equal

import spie
from spie.tasks.mdp import MDP
from spie.tasks.noise import NOISES, STRIP, WALKER
from spie.tasks.pixels import (
    AGENT,
    FREE,
    GOAL,
    WALL,
    PixelsEnv,
    PixelsVectorEnv,
    PixelTask,
    deep_sea,
    images,
    make_pixels,
    pixels,
)
from spie.tasks.vector import generators

IDS = ["spie/Pixels-FourRooms-v0", "spie/Pixels-ClusterHard-v0", "spie/Pixels-DeepSea-v0", "spie/Pixels-Grid-v0"]


@pytest.mark.parametrize("name", IDS)
def test_an_id_passes_gymnasiums_checker(name):
    env = gym.make(name, render_mode="rgb_array").unwrapped
    check_env(env)
    assert env.observation_space.shape == (20, 20)


def test_the_id_for_any_map_takes_its_name():
    assert gym.make("spie/Pixels-Grid-v0", name="cluster-hard").unwrapped.mdp.name == "cluster-hard"
    assert gym.make("spie/Pixels-FourRooms-v0", max_steps=7).unwrapped.max_steps == 7
    assert gym.make("spie/Pixels-DeepSea-v0").unwrapped.mdp.name == "deep-sea-10"


@pytest.mark.parametrize("name", ["four-rooms", "deep-sea-6", "S.\n.G", "spie/Pixels-ClusterHard-v0"])
def test_a_task_by_name_makes_copies_and_a_single_one_and_can_be_made_again(name):
    task = spie.task(name, kind="images")
    env, single = task.make(3), task.env()
    assert (task.kind, task.frame_skip, env.num_envs, env.max_steps) == ("images", 1, 3, single.max_steps)
    assert task.shape == env.single_observation_space.shape == single.observation_space.shape
    again, options = task.recipe
    assert spie.task(again, kind="images", **options).digest == task.digest


def test_the_digest_is_of_the_map_and_of_all_options(tmp_path):
    base = pixels("S.\n.G")
    (tmp_path / "same.txt").write_text("S.\n.G\n")
    assert pixels(tmp_path / "same.txt").digest == base.digest == pixels("S.\n.G", max_steps=40).digest
    wide = PixelTask(dataclasses.replace(base.mdp, shape=(2, 3)), 40)  # the same tables in another picture
    others = [pixels("S.\n.G", max_steps=9), pixels("S#\n.G"), PixelTask(spie.grid("S.\n.G", task="goal"), 40), wide]
    assert len({base.digest, *(task.digest for task in others)}) == 5


def test_a_picture_shows_walls_goal_and_agent():
    env = make_pixels("S.\n#G")
    observation, info = env.reset()
    assert info["state"] == [0]
    assert_array_equal(observation[0], np.kron([[AGENT, FREE], [WALL, GOAL]], np.ones((10, 10))))
    observation, *_ = env.step([1])
    assert_array_equal(observation[0, ::10, ::10], [[FREE, AGENT], [WALL, GOAL]])


@pytest.mark.parametrize(("map", "shape"), [("four-rooms", (20, 20)), ("of-large", (20, 20)), (21 * ".", (20, 21))])
def test_a_picture_has_20_pixels_a_side_or_as_many_as_the_map(map, shape):
    pictures = images(spie.grid(map))
    assert pictures.shape[1:] == shape
    assert_array_equal((pictures == AGENT).sum(axis=(1, 2)), 1)  # one pixel per cell
    assert len(np.unique(pictures.reshape(len(pictures), -1), axis=0)) == len(pictures)  # states can be told apart


def test_a_goal_pays_one_and_ends_and_nothing_else_pays():
    env = make_pixels("S.G")
    env.reset()
    _, rewards, terminated, truncated, info = env.step([1])
    assert (rewards, terminated, truncated, info["state"]) == (0, False, False, 1)
    _, rewards, terminated, truncated, info = env.step([1])
    assert (rewards, terminated, truncated, info["state"]) == (1, True, False, 2)
    with pytest.raises(ValueError, match="no episode is under way in environment 0"):
        env.step([1])


def test_an_episode_is_truncated_at_its_cap_but_not_when_it_ends_there():
    env = make_pixels("S.G", n=2, max_steps=2)
    env.reset()
    env.step([1, 0])
    _, _, terminated, truncated, _ = env.step([1, 0])
    assert_array_equal(terminated, [True, False])
    assert_array_equal(truncated, [False, True])
    caps = [make_pixels(name).max_steps for name in ("four-rooms", "cluster-hard", "S.G", "deep-sea-4")]
    assert caps == [200, 50, 40, None]


@pytest.mark.parametrize(("name", "steps", "goals"), [("four-rooms", 30_000, 0.9), ("cluster-hard", 40_000, 0.7)])
def test_a_random_walk_finds_the_goal_about_once_in_a_run(name, steps, goals):
    env = make_pixels(name)
    P, goal = env.mdp.transition(), env.mdp.terminal[0]
    P[goal] = np.eye(env.n_states)[goal]  # who is there stays there
    found = (env.mdp.start @ np.linalg.matrix_power(P, env.max_steps))[goal]
    assert found * steps / env.max_steps == pytest.approx(goals, abs=0.05)


def test_deep_sea_pays_for_the_one_way_that_always_goes_right():
    mdp = deep_sea(3)
    right = {0: 2, 2: 5, 5: 9}  # the diagonal
    total, s = 0.0, 0
    while not mdp.terminal[0, s]:
        a = mdp.next[s, :, 0].tolist().index(right[s])
        total, s = total + mdp.reward[0, s, a, 0], int(mdp.next[s, a, 0])
    assert (s, total) == (9, pytest.approx(0.99))
    assert (mdp.reward > 0).sum() == 1
    assert mdp.n_states == 1 + 2 + 3 + 4
    assert (images(deep_sea(3)) == GOAL).any(axis=(1, 2)).sum() == 9  # hidden when the agent is there


def test_which_action_goes_right_in_deep_sea_differs_between_cells():
    mdp = deep_sea(30)
    inner = ~mdp.terminal[0]
    assert 0.4 < (mdp.next[inner, 0, 0] > mdp.next[inner, 1, 0]).mean() < 0.6  # 465 fair coins: sd .023


def slippery():
    """A corridor where both the start and every step are drawn."""
    base = spie.grid("....G", task="goal")
    stay = np.arange(5)[:, None, None].repeat(4, axis=1)
    next = np.concatenate([base.next, stay], axis=2)
    prob = np.broadcast_to([0.7, 0.3], next.shape)
    return MDP(
        "slippery", next, prob, np.zeros(next.shape), base.start, base.terminal, cells=base.cells, shape=base.shape
    )


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("mdp", [make_pixels("S.#\n..G").mdp, slippery()], ids=["plain", "slippery"])
def test_many_copies_are_gymnasiums_vector_environment_step_for_step(mdp, noise):
    ours = PixelsVectorEnv(mdp, 9, generators(0, 3), noise)
    one = functools.partial(PixelsEnv, mdp, max_steps=9, noise=noise)
    theirs = SyncVectorEnv([one] * 3, autoreset_mode=AutoresetMode.DISABLED)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space

    def equal(a, b):
        assert_array_equal(a[-1]["state"][b[-1]["_state"]], b[-1]["state"][b[-1]["_state"]])
        for x, y in zip(a[:-1], b[:-1], strict=True):
            assert_array_equal(x, y)

    equal(ours.reset(seed=5), theirs.reset(seed=5))
    ends = 0
    for actions in np.random.default_rng(0).integers(4, size=(100, 3)):
        step = ours.step(actions)
        equal(step, theirs.step(actions))
        over = step[2] | step[3]
        if over.any():
            ends += 1
            equal(ours.reset(options={"reset_mask": over}), theirs.reset(options={"reset_mask": over.copy()}))
    assert ends > 10


def test_a_patch_stands_beside_the_map_and_is_new_at_every_step():
    task = pixels("S.G", noise="patch")
    env = task.make(1)
    seen = [env.reset()[0], *(env.step([0])[0] for _ in range(3))]  # against the wall: the state stays
    maps, strips = zip(*((frame[0, :, :-STRIP], frame[0, :, -STRIP:]) for frame in seen), strict=True)
    assert task.shape == (20, 20 + STRIP)
    assert all((frame == maps[0]).all() for frame in maps)
    assert len({strip.tobytes() for strip in strips}) == 4
    drawn = np.concatenate(strips).ravel()  # 320 uniform numbers of 0 ... 255: the mean has a deviation of 4.1
    assert abs(drawn.mean() - 127.5) < 4 * 256 / np.sqrt(12 * drawn.size)


def test_a_walker_goes_to_neighbouring_cells_under_the_agent_and_is_in_nobodys_way():
    env, plain = (pixels("\n".join(["." * 10] * 10), 500, noise).make(1) for noise in ("walker", "none"))
    env.reset(seed=3), plain.reset(seed=3)
    last = None
    moves = hidden = 0
    for a in np.random.default_rng(0).integers(4, size=400):
        undisturbed = plain.step([a])[0][0, ::2, ::2]
        frame = env.step([a])[0][0, ::2, ::2]
        where = np.argwhere(frame == WALKER)
        assert len(where) <= 1
        hidden += len(where) == 0  # under the agent
        assert_array_equal(np.where(frame == WALKER, undisturbed, frame), undisturbed)
        if last is not None and len(where):
            distance = np.abs(where[0] - last).sum()
            assert distance <= 1  # against a wall it stays
            moves += distance
        last = where[0] if len(where) else None
    assert moves > 200
    assert hidden < 40


def test_noise_is_part_of_what_a_task_is():
    tasks = [pixels("of-small", noise=noise) for noise in NOISES]
    assert len({task.digest for task in tasks}) == 3
    for task in tasks:
        name, options = task.recipe
        assert spie.task(name, kind="images", **options).digest == task.digest
    with pytest.raises(ValueError, match='no noise of an image task "snow"'):
        pixels("of-small", noise="snow")


def play(env, actions):
    seen = []
    for a in actions:
        observation, reward, terminated, truncated, info = env.step(a)
        seen.append((observation.tobytes(), reward.tolist(), terminated.tolist(), truncated.tolist(), *info["state"]))
        if (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
    return seen


@pytest.mark.parametrize("noise", NOISES)
def test_a_restored_environment_goes_on_as_the_saved_one(noise):
    actions = np.random.default_rng(0).integers(4, size=(60, 4))
    env, other = (PixelsVectorEnv(slippery(), 9, generators(seed, 4), noise) for seed in (0, 1))
    env.reset()
    play(env, actions[:10])
    state = env.get_state()
    went = play(env, actions[10:])
    other.set_state(state)
    assert play(other, actions[10:]) == went
    with pytest.raises(ValueError, match="no states"):
        make_pixels("S.G").set_state(state)


def test_a_copy_behaves_the_same_alone_and_among_others():
    actions = np.random.default_rng(0).integers(4, size=(50, 3))
    many = PixelsVectorEnv(slippery(), 9, generators([7, 8, 9], 3))
    alone = PixelsVectorEnv(slippery(), 9, generators(8, 1))
    many.reset(), alone.reset()
    for a in actions:
        many_step, alone_step = many.step(a), alone.step(a[1:2])
        assert many_step[-1]["state"][1] == alone_step[-1]["state"][0]
        for env, step in ((many, many_step), (alone, alone_step)):
            if (step[2] | step[3]).any():
                env.reset(options={"reset_mask": step[2] | step[3]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_pixels("four-room"), 'no map or file "four-room"; did you mean "four-rooms"'),
        (lambda: make_pixels("deep-sea-x"), "deep-sea-N"),
        (lambda: make_pixels("deep-sea-0"), "depth must be a whole number of at least 1"),
        (lambda: make_pixels("of-small", n=0), "n = 1 or more"),
        (lambda: make_pixels("of-small", n=2, seed=[1]), "1 seeds for 2 environments"),
        (lambda: make_pixels("of-small", max_steps=0), "max_steps is 0"),
        (lambda: make_pixels("of-small").reset(options={"reset_mask": np.array([False])}), "at least one of them true"),
        (lambda: make_pixels("of-small").reset(seed=[1, 2]), "2 seeds for 1 environments"),
        (lambda: images(spie.riverswim()), "riverswim: no map"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_an_action_that_does_not_fit_is_refused():
    env = make_pixels("of-small", n=2)
    env.reset()
    for actions in ([4, 0], [0, -1], [0]):
        with pytest.raises(ValueError, match=r"2 actions of 0\.\.3 are needed"):
            env.step(actions)
