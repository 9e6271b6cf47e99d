"""How the commands of a session run: how they are judged, what they reach, and who is asked."""
