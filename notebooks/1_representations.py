# %% [markdown]
# # Three maps of one maze: M, N and F
#
# A maze of two rooms with one door, and a walker that turns at random. Its **successor representation** M says what a
# place leads to, its **predecessor representation** N what leads to a place, its **first-occupancy representation** F
# how soon a place is reached at all. All three have a closed form and a rule that learns them step by step.

# %%
import matplotlib.pyplot as plt
import numpy as np

import spie

maze = spie.grid("cluster-simple", bumps=False)
maze

# %% [markdown]
# ## The closed forms
#
# `maze.transition()` is the chain of the random walk, P [S, S]. Row s of M counts, with discount, the visits to every
# place after s; column s of N the visits before s. F is M divided by its own diagonal, so that only first visits count.

# %%
P = maze.transition()
gamma = 0.95
M, N, F = spie.sr(P, gamma), spie.pr(P, gamma), spie.fr(P, gamma)
np.testing.assert_allclose(M, np.eye(len(P)) + gamma * P @ M)  # the Bellman equation of M
np.testing.assert_allclose(F, M / M.diagonal())
print(f"{len(P)} states; from any of them {M.sum(axis=1).mean():.1f} discounted visits, 1 / (1 - gamma)")

# %% [markdown]
# From a place near the door, most of what is expected lies in its own room; F is nearly flat where M peaks, because the
# second visit no longer counts.

# %%
place = maze.labels.index("4,4")


def draw(M, N, F):
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.9), layout="constrained")
    for ax, row, name in zip(axes, (M[place], N[:, place], F[place]), ("M[s, :]", "N[:, s]", "F[s, :]"), strict=True):
        spie.plot.values(maze, row, ax=ax, of=place)
        ax.set_title(name)


draw(M, N, F)

# %% [markdown]
# ## Past and future mirror each other
#
# With z, how often each state is visited in the long run, N diag(z) = diag(z) M (equation 13 of the paper). A random walk
# is the same forwards and backwards, so that here even N[:, s] = M[s, :]: what leads to a place is what it leads to.

# %%
z = spie.stationary(P)
np.testing.assert_allclose(N * z, z[:, None] * M)
np.testing.assert_allclose(N.T, M)
print(f"a corner has {z.min():.4f} of the visits, a place in the middle of a room {z.max():.4f}")

# %% [markdown]
# A walker with a direction is not: let it go right three times as often as elsewhere. Its future lies to the right,
# its past to the left. Equation 13 still holds, with the z of this walker.

# %%
policy = maze.available * np.array([1.0, 3.0, 1.0, 1.0])  # up, right, down, left
drift = maze.transition(policy / policy.sum(axis=1, keepdims=True))
M_right, N_right, z_right = spie.sr(drift, gamma), spie.pr(drift, gamma), spie.stationary(drift)
np.testing.assert_allclose(N_right * z_right, z_right[:, None] * M_right)
draw(M_right, N_right, spie.fr(drift, gamma))

# %% [markdown]
# ## The same, learned
#
# One transition (s, s') changes row s of M and column s' of N. Each rule has its closed form as its fixed point; a
# walk of a few thousand steps comes near it and, with a constant rate, stays near it.

# %%
rng = np.random.default_rng(0)
learned_M, learned_N, s, errors = np.eye(len(P)), np.eye(len(P)), 0, []
for t in range(20_000):
    s_next = rng.choice(len(P), p=P[s])
    learned_M[s] += 0.05 * spie.td_sr(learned_M, s, s_next, gamma)
    learned_N[:, s_next] += 0.05 * spie.td_pr(learned_N, s, s_next, gamma)
    s = s_next
    if t % 500 == 0:
        errors.append([t, abs(learned_M - M).mean() / M.mean(), abs(learned_N - N).mean() / N.mean()])
t, of_M, of_N = np.array(errors).T
assert of_M[-1] < of_M[0]

figure, ax = plt.subplots(figsize=(5, 3), layout="constrained")
ax.plot(t, of_M, label="M")
ax.plot(t, of_N, label="N")
ax.set(xlabel="steps", ylabel="mean error / mean entry")
ax.legend()

# %% [markdown]
# ## A bonus out of both
#
# The paper's reward r_SR-R of a step from s to s' is M[s, s'] minus the sum of the column M[:, s']: what is expected
# from here, against what is expected from everywhere. It is never positive, and least negative where few places lead.

# %%
column_sums = M.sum(axis=0)
bonus = np.full(len(P), np.nan)
for s_next in range(len(P)):
    before = np.flatnonzero(P[:, s_next])
    bonus[s_next] = np.mean(M[before, s_next] - column_sums[s_next])
spie.plot.values(maze, bonus, label="mean r_SR-R of entering a state, M known")
print(f"between {bonus.min():.1f} and {bonus.max():.1f}")

# %% [markdown]
# Next: [exploration and its controls](2_exploration.py) lets agents act on such a bonus while they learn M.
