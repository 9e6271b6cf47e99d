"""Subagents: the files that describe them, and the copies of the workspace in which those that write work."""
