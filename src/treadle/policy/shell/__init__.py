"""Shell lines: what they would run, read and write."""
