"""Behavioural models, one file each. A file registers its model when it is imported."""
