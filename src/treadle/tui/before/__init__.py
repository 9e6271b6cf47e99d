"""What the terminal asks before there is a session."""
