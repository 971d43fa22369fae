# %% [markdown]
# # Exploration, and the controls that keep it honest
#
# Two rooms, no reward anywhere, and four walkers: at random, with the bonus of the successor representation (r_SR),
# with that of SPIE (r_SR-R), and with a plain cost of 1 a step, which knows nothing of the maze. Who sees it all first?

# %%
import matplotlib.pyplot as plt
import numpy as np

import spie

SEEDS, STEPS = 200, 2000
maze = spie.grid("cluster-simple")
agents = {"random walk": "random", "SARSA-SR": "sarsa-sr", "SARSA-SRR": "sarsa-srr", "constant cost": "constant"}
traces = {label: spie.agent(name, maze).run(maze, STEPS, SEEDS) for label, name in agents.items()}

# %% [markdown]
# An agent is a value: its settings. `run` takes a task, a number of steps and seeds, and returns a trace with the seed
# as first axis. The first run of a kind compiles for some seconds; 200 seeds of 2000 steps take a moment then.

# %%
at = np.arange(0, STEPS + 1, 20)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for label, trace in traces.items():
    ax.plot(at, 100 * trace.coverage(at).mean(axis=0), label=label)
ax.set(xlabel="steps", ylabel="cells seen, %")
ax.legend()
for label, trace in traces.items():
    steps = np.median(trace.steps_to(0.9))
    print(f"{label:14} 90 % seen after", f"{steps:,.0f} steps" if steps <= STEPS else f"more than {STEPS:,} steps")

# %% [markdown]
# SPIE's bonus is faster than a random walk, and r_SR, which looks forward only, is slower. But a constant cost, with no
# representation at all, has most of the gain: a bonus that is never positive makes whatever was never tried look good.
# What is left for the representation, beside the spread of the seeds? Below 1, SPIE needs fewer steps than the cost.

# %%
rng = np.random.default_rng(0)
drawn = rng.integers(SEEDS, size=(2000, 2, SEEDS))  # seeds drawn with replacement: a bootstrap
for share in (0.9, 0.99):
    ours, control = (traces[label].steps_to(share) for label in ("SARSA-SRR", "constant cost"))
    ratios = np.median(ours[drawn[:, 0]], axis=1) / np.median(control[drawn[:, 1]], axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    ratio = np.median(ours) / np.median(control)
    print(f"to {share:.0%} of the cells: {ratio:.2f} times the steps of the constant cost [{low:.2f}, {high:.2f}]")

# %% [markdown]
# ## Where do they go?
#
# Visits of the first seed. SARSA-SR stays where it has been; SPIE and the cost spread out.

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 3.4), layout="constrained")
for ax, (label, trace) in zip(axes, traces.items(), strict=True):
    spie.plot.values(maze, trace.visits[0], ax=ax, label="visits")
    ax.set_title(label)

# %% [markdown]
# ## What to take home
#
# - Put `constant`, `count` and `random` beside every bonus. If a control does as well, the representation is not
#   the cause.
# - One seed shows a path, not a result. Take many, choose settings on some and judge on others:
#   `spie sweep cluster-simple --agent sarsa-srr --agent constant --top 5 --confirm 1000`.
# - The page of `spie report` does all of this for every claim of the paper. Next: [your own reward](3_own_reward.py).
