"""The event log on SQLite."""
