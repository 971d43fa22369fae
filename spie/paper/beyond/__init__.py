"""Experiments that are not the paper's."""
