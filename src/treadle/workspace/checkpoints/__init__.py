"""Checkpoints: the files of a workspace at a point in time, kept outside of it, compared and restored."""
