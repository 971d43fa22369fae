"""Choosing settings: choose on some seeds, confirm on others."""
