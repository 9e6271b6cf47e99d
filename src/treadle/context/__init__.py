"""The prompt as a projection of the log."""
