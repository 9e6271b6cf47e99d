"""Reviewing a diff: what changed, what a model finds in it, and what became of the findings."""
