"""Errors as people read them: their words, their exit codes."""
