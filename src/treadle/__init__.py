"""Treadle: a coding agent that says what it did, what it may do, what it costs and how to undo it."""

__version__ = "0.1.0"
