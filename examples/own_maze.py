"""A maze of your own from a text file, in closed form, in Gymnasium, and on the compiled engine."""

import tempfile
from pathlib import Path

import spie

MAZE = """
S...#....
.##.#.##.
.#.....#.
.#.###.#.
...#G....
"""

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "maze.txt")
    file.write_text(MAZE)
    maze = spie.grid(str(file), task="goal")  # -1 a step until G is reached

M = spie.sr(maze.transition(), gamma=0.95, terminal=maze.terminal[0])
print(f"{maze.n_states} states; the goal is most expected from {maze.labels[M[:, maze.terminal[0]].sum(1).argmax()]}")

env = spie.IntrinsicReward(spie.MDPEnv(maze, max_steps=200), "sr-r", beta=0.1)
env.action_space.seed(0)
env.reset(seed=0)
for _ in range(500):
    _, r, terminated, truncated, info = env.step(env.action_space.sample())
    if terminated or truncated:
        env.reset()
print(f"a random walk saw {env.bonus.learner.coverage:.0%}; its last step paid {info['intrinsic_reward']:.2f}")
