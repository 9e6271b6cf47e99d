"""Texts about a session that every surface shares: numbers, calls, questions, and what makes text harmless to show."""
