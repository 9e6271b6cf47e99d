"""One decision function for everything the agent may do."""
