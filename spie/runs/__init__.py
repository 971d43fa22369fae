"""Runs: what determines a result, where it is computed, where it is kept."""
