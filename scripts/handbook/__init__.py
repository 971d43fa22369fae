"""Notebooks as pages: parsed, run cell by cell, written as Markdown."""
