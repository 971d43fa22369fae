# %% [markdown]
# # Your own intrinsic reward
#
# A reward is one function. The names of its parameters say what it needs; what it does not name is not kept up to date,
# and costs nothing. It then works in the compiled agents, in Gymnasium, in sweeps and in models of behaviour.

# %%
import spie


@spie.reward("sr-r-bounded")
def bounded(M_next, M_col_next):
    return (M_next - M_col_next) / (1 + M_col_next)


# %% [markdown]
# `M_next` is M[s, s'], `M_col_next` the sum of column s'. There are also rows of M and F, columns of N, visits, and
# norms of features; `spie/rewards.py` lists them, beside every reward of the paper.
#
# ## Is it sound?
#
# `check_reward` plays at random and looks: are there numbers at all, does each term matter, do ends of episodes leak, does
# the bonus fade, how large is it beside the environment's own reward, what does it cost?

# %%
env = spie.IntrinsicReward(spie.MDPEnv(spie.grid("cluster-simple"), max_steps=200), "sr-r-bounded")
spie.check_reward(env, steps=1000)

# %% [markdown]
# ## Does it help?
#
# A maze with a goal, -1 a step until it is reached. The bonus competes with no bonus, with the paper's, and with a
# count of visits, which is the control to beat.

# %%
text = """
S...#....
.##.#.##.
.#.....#.
.#.###.#.
...#G....
"""
maze = spie.grid(text, task="goal")
for reward in ("none", "sr-r", "sr-r-bounded", "count"):
    trace = spie.Sarsa(reward=reward).run(maze, steps=1000, episodes=50, seeds=100)
    first, all_steps = trace.episode_steps[:, 0], trace.episode_steps.sum(axis=1)
    error = all_steps.std(ddof=1) / len(all_steps) ** 0.5
    print(
        f"{reward:13} first found after {first.mean():4.0f} steps; 50 episodes took {all_steps.mean():5.0f} ± {error:.0f}"
    )

# %% [markdown]
# A bonus can find the goal sooner and then keep the agent from going straight there. How strong it is, `beta`, matters more
# than its formula: a sweep tries many, and confirms the best on fresh seeds.
#
# ```
# spie sweep my-maze.txt --rewards my_rewards.py --agent sarsa-srr reward=sr-r-bounded,sr-r,count beta=.01,.1,1
# spie check sr-r-bounded --from my_rewards.py
# ```
#
# Next: [the same bonus in Stable-Baselines3](4_stable_baselines3.py).
