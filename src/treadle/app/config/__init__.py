"""The settings: their layers, where each value stands in a file, and how one is set."""
