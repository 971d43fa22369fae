"""Recorded paths of animals and people: models of them, likelihoods, fits and comparisons."""
