"""A planning agent: a learned model, and optimism for outcomes that were not seen yet."""
