"""Settings and composition."""
