"""Speed and quality figures, printed by `make bench`."""
