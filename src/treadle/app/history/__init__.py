"""A session's past: its checkpoints, and the ways back to them."""
