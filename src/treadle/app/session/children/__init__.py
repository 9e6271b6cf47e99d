"""The subagents of a session: how they are opened, have their rights narrowed, and are watched at work."""
