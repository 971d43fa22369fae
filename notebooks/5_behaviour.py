# %% [markdown]
# # Which model do recorded paths follow?
#
# Paths of animals or people in a maze, several models of how they choose, and the question which of them describes the
# paths best. The paths here are made up, so that we know the answer; yours come from
# `spie.Paths.from_csv("paths.csv", maze="maze.txt")`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import spie

SUBJECTS, TRIALS, STEPS = 6, 4, 60
maze = spie.grid("S...\n.#..\n...G", bumps=False)
rng = np.random.default_rng(0)


def walk(keeps_on):
    """A walker who turns back less often the larger `keeps_on` is."""
    states = [0]
    for _ in range(STEPS):
        options = maze.next[states[-1], maze.available[states[-1]], 0]
        new = [s for s in options if s not in states[-2:-1]]
        states.append(int(rng.choice(new if new and rng.random() < keeps_on else options)))
    return states


truth = np.linspace(0.3, 0.9, SUBJECTS)
walks = {f"subject {i}": [walk(keeps_on) for _ in range(TRIALS)] for i, keeps_on in enumerate(truth)}
paths = spie.Paths.from_states(walks, maze)
for row in paths.report()[:2]:
    print(
        row["subject"],
        "made",
        row["choices"],
        "choices in",
        row["trials"],
        "trials and saw",
        row["states seen"],
        "states",
    )

# %% [markdown]
# Forced moves are no choices and are left out. `report` says how many choices each subject made, and what was dropped.
#
# ## Fit and compare
#
# `turn-back` has one weight: how much a walker avoids to go back where it came from. `random` has none. The lower BIC is
# the better model for its number of parameters.

# %%
fit = spie.fit(paths, ["random", "turn-back"], starts=3)
for row in fit.compare():
    print(f"{row['model']:10} BIC {row['bic']:8.1f}, best for {row['best_for']} of {SUBJECTS} subjects")
assert fit.compare()[0]["model"] == "turn-back"

# %% [markdown]
# ## Does the parameter mean something?
#
# Here we know how each subject walked, so that the fitted weights can be laid beside the truth. With real data, do this
# first on simulated subjects, on your mazes and your lengths: `fit.recover()` and `fit.confusion()`, or `--check` of the
# command. A parameter that does not come back cannot be interpreted.

# %%
weights = fit["turn-back"].values()[:, 0]
low, high = (bound[:, 0] for bound in fit["turn-back"].interval())
figure, ax = plt.subplots(figsize=(5, 3.2), layout="constrained")
ax.errorbar(truth, weights, yerr=[weights - low, high - weights], fmt="o")
ax.set(xlabel="chance that a walker keeps on (truth)", ylabel="weight of turning back (fitted)")
print(f"correlation {np.corrcoef(truth, weights)[0, 1]:.2f}")

# %% [markdown]
# ## Held out
#
# A model is judged on what it was not fitted to: whole subjects here, whole sessions where subjects have several, never
# single steps, which resemble their neighbours.

# %%
for row in fit.crossvalidate(by="subject"):
    print(row)

# %% [markdown]
# All of this, with a page, is one command: `spie fit paths.csv --maze maze.txt`.
# [Recorded paths](../docs/behaviour.md) has the models, the conventions, and what nine rats and twenty mice did.
