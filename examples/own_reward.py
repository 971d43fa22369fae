"""A reward of your own in ten lines: engine, wrapper and check know it at once."""

import spie


@spie.reward("sr-r-bounded")
def bounded(M_next, M_col_next):
    """SR-R, but never below -1."""
    return (M_next - M_col_next) / (1 + M_col_next)


env = spie.IntrinsicReward(spie.MDPEnv(spie.grid("cluster-simple"), max_steps=200), "sr-r-bounded")
spie.check_reward(env, steps=1000)  # numbers, episode edges, scale, does each term matter, does it fade
