"""One level of a MiniGrid task, state by state: every action is played in every state of the real environment."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DIRECTIONS = ("right", "down", "left", "up")


class LevelTables(NamedTuple):
    """What an MDP is made of."""

    next: NDArray[np.int32]  # [S, A, 1]
    reward: NDArray[np.float64]  # [S, A, 1]
    terminal: NDArray[np.bool_]  # [S]
    labels: tuple[str, ...]


class Level:
    """One level: its environment, and every movable thing in it, so that a state can be read and set."""

    def __init__(self, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.env = _make(name)
        self.raw: Any = self.env.unwrapped
        self.raw.gen_obs = dict  # what is seen is no part of the dynamics, and slow to draw
        self.reset()
        self.things: list[Any] = []
        for thing in self.raw.grid.grid:
            while thing is not None and thing.type not in ("wall", "goal", "lava", "floor"):
                self.things.append(thing)
                thing = thing.contains
        self.number = {id(thing): i for i, thing in enumerate(self.things)}
        self.fixed = [None if id(thing) in self.number else thing for thing in self.raw.grid.grid]

    def reset(self) -> None:
        self.env.reset(seed=self.seed)

    def state(self) -> tuple[Any, ...]:
        """Position, direction, what is carried, and the place and state of every thing."""
        raw, width = self.raw, self.raw.grid.width
        where = {
            id(thing): i for i, thing in enumerate(raw.grid.grid) if thing is not None and id(thing) in self.number
        }
        things = []
        for thing in self.things:
            place = -1 if thing is raw.carrying else where.get(id(thing), -2)  # -2: in a box, or gone
            inside = -1 if thing.contains is None else self.number[id(thing.contains)]
            opened = (thing.is_open, thing.is_locked) if thing.type == "door" else (False, False)
            things.append((place, inside, *opened))
        x, y = raw.agent_pos
        return int(y) * width + int(x), int(raw.agent_dir), *things

    def set(self, state: tuple[Any, ...]) -> None:
        """Put the environment into a state."""
        raw, (at, direction, *things) = self.raw, state
        width = raw.grid.width
        raw.agent_pos, raw.agent_dir = (at % width, at // width), direction
        cells, raw.carrying = list(self.fixed), None
        for thing, (place, inside, is_open, is_locked) in zip(self.things, things, strict=True):
            thing.contains = None if inside < 0 else self.things[inside]
            if thing.type == "door":
                thing.is_open, thing.is_locked = is_open, is_locked
            if place >= 0:
                cells[place] = thing
                thing.cur_pos = np.array([place % width, place // width])
            elif place == -1:
                raw.carrying = thing
                thing.cur_pos = np.array([-1, -1])
        raw.grid.grid = cells
        raw.step_count = -1  # so that success pays 1, however long it took

    def label(self, state: tuple[Any, ...]) -> str:
        at, direction, *things = state
        words = [f"{at // self.raw.grid.width},{at % self.raw.grid.width} {DIRECTIONS[direction]}"]
        for thing, (place, _, is_open, is_locked) in zip(self.things, things, strict=True):
            if place == -1:
                words.append(f"carries {thing.color} {thing.type}")
            if thing.type == "door":
                words.append(f"{thing.color} door {'open' if is_open else 'locked' if is_locked else 'closed'}")
        return ", ".join(words)


def _make(name: str) -> Any:
    import gymnasium

    try:
        import minigrid
    except ModuleNotFoundError:
        raise ImportError('MiniGrid tasks need minigrid: pip install "spie-rl[minigrid]"') from None
    register: Any = minigrid.register_minigrid_envs
    if "MiniGrid-Empty-8x8-v0" not in gymnasium.registry:
        register()
    if name not in gymnasium.registry or not name.startswith("MiniGrid-"):
        raise ValueError(f'no MiniGrid task "{name}"; ids look like MiniGrid-Empty-8x8-v0')
    return gymnasium.make(name).unwrapped


def enumerate_level(name: str, seed: int = 0, limit: int = 200_000) -> LevelTables:
    """All states that a level can get into, numbered as they are found from its start, and what each action does.

    The end of an episode is a state of its own. Refused where there are more than `limit` states, or where a step draws
    at random.
    """
    if seed < 0 or limit < 1:
        raise ValueError(f"{name}: seed {seed}, limit {limit}; give a seed from 0 on and a limit from 1 on")
    level = Level(name, seed)
    first = (False, level.state())
    number, queue = {first: 0}, [first]
    successors: list[list[int]] = []
    rewards: list[list[float]] = []
    A = int(level.raw.action_space.n)
    generator = level.raw.np_random.bit_generator
    for s, (ended, state) in enumerate(queue):  # grows as it is walked
        if ended:
            successors.append([s] * A)
            rewards.append([0.0] * A)
            continue
        row, paid = [], []
        before = generator.state
        for a in range(A):
            level.set(state)
            _, reward, terminated, _, _ = level.raw.step(a)
            found = bool(terminated), level.state()
            if found not in number:
                number[found] = len(queue)
                queue.append(found)
                if len(queue) > limit:
                    raise ValueError(
                        f"{name}: more than {limit:,} states (found after {s + 1:,} of them were played); "
                        "raise the limit, or take a smaller level"
                    )
            row.append(number[found])
            paid.append(float(reward))
        if generator.state != before:
            raise ValueError(f"{name}: a step draws at random, so that a table of one level cannot hold it")
        successors.append(row)
        rewards.append(paid)
    labels = tuple(level.label(state) + (", over" if ended else "") for ended, state in queue)
    terminal = np.array([ended for ended, _ in queue])
    return LevelTables(np.array(successors, np.int32)[:, :, None], np.array(rewards)[:, :, None], terminal, labels)
